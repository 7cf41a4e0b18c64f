"""preprocess= as the objects of transformers, timm and torchvision."""

import json

import networks
import numpy
import pytest
import torch
from PIL import Image
from test_processors import images as images_of_files
from test_processors import noether as pixels
from test_processors import values

import noether_ml
from noether_ml import _preprocess
from noether_ml._applied import Applied

torchvision = pytest.importorskip("torchvision")
from torchvision import transforms as v1  # noqa: E402

__all__ = ["images_of_files", "pixels"]

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
BICUBIC = v1.InterpolationMode.BICUBIC


def of_torchvision():
    """Transforms with the keys that they become."""
    normalise = {"mean": MEAN, "std": STD}
    cases = {
        "resize and crop": (v1.Compose([v1.Resize(41), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
                            {"resize": 41, "crop": 32, "interpolation": "bilinear", **normalise}),
        "of a rectangle": (v1.Compose([v1.Resize([40], BICUBIC), v1.CenterCrop((30, 36)), v1.ToTensor()]),
                           {"resize": 40, "crop": [30, 36], "interpolation": "bicubic"}),
        "stretched": (v1.Compose([v1.Resize((40, 52)), v1.ToTensor()]), {"crop": [40, 52], "interpolation": "bilinear"}),
        "stretched and cropped": (v1.Compose([v1.Resize((40, 40)), v1.CenterCrop(30), v1.ToTensor(), v1.Normalize(MEAN, STD)]),
                                  {"resize": 40, "stretch": True, "crop": 30, "interpolation": "bilinear", **normalise}),
        "not scaled": (v1.Compose([v1.Resize(40), v1.CenterCrop(32), v1.PILToTensor()]),
                       {"resize": 40, "crop": 32, "interpolation": "bilinear", "range": [0, 255]}),
        "nested": (v1.Compose([v1.Compose([v1.Resize(40)]), v1.Compose([v1.CenterCrop(32), v1.ToTensor()])]),
                   {"resize": 40, "crop": 32, "interpolation": "bilinear"}),
    }
    if hasattr(torchvision.transforms, "v2") and hasattr(torchvision.transforms.v2, "ToDtype"):
        v2 = torchvision.transforms.v2
        cases["version 2"] = (v2.Compose([v2.ToImage(), v2.Resize(41, antialias=True), v2.CenterCrop(32), v2.ToDtype(torch.float32, scale=True),
                                          v2.Normalize(MEAN, STD)]), {"resize": 41, "crop": 32, "interpolation": "bilinear", **normalise})
        bytes_of = [v2.ToImage(), v2.ToDtype(torch.uint8, scale=True), v2.Resize(41, antialias=True), v2.CenterCrop(32)]
        not_scaled = {"resize": 41, "crop": 32, "interpolation": "bilinear", "range": [0, 255]}
        cases["bytes that stay"] = (v2.Compose(bytes_of), not_scaled)
        cases["floats of bytes"] = (v2.Compose([*bytes_of, v2.ToDtype(torch.float32, scale=False)]), not_scaled)
        cases["floats scaled too late"] = (v2.Compose([*bytes_of, v2.ToDtype(torch.float32), v2.ToDtype(torch.float32, scale=True)]), not_scaled)
        cases["bytes of floats"] = (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Resize(41), v2.CenterCrop(32), v2.ToDtype(torch.uint8, scale=True)]), not_scaled)
    return cases


@pytest.mark.parametrize("name", of_torchvision())
def test_transforms_of_torchvision(name, pixels, images_of_files):
    transform, keys = of_torchvision()[name]
    assert _preprocess.resolve(transform) == keys
    compare(keys, transform, pixels, images_of_files)


def compare(keys, transform, pixels, images):
    """Compare the pixels of a preprocessing with those of a transform, to 2/255."""
    for image, answer in zip(images, pixels([{"config": json.dumps(keys), "image": image} for image in images])):
        assert "error" not in answer, answer
        want = numpy.asarray(transform(Image.open(image)), dtype=numpy.float64)
        got = values(answer)
        assert got.shape == want.shape
        levels = numpy.abs(got - want) * 255 * numpy.reshape(keys.get("std", [1] * 3), (3, 1, 1)) / numpy.diff(keys.get("range", [0, 1]))
        # Pillow, since version 12.2, may change the height before the width: single pixels are clipped otherwise.
        assert levels.max() <= (2 if keys["interpolation"] == "bilinear" else 20) and levels.mean() < 0.4


def test_weights_of_torchvision(pixels, images_of_files):
    weights = torchvision.models.ResNet18_Weights.DEFAULT
    want = {"resize": 256, "crop": 224, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "interpolation": "bilinear"}
    assert _preprocess.resolve(weights) == _preprocess.resolve(weights.transforms()) == want
    compare(want, weights.transforms(), pixels, images_of_files)
    assert "crop" not in _preprocess.resolve(torchvision.models.segmentation.FCN_ResNet50_Weights.DEFAULT)


@pytest.mark.parametrize("steps", [
    [v1.ToTensor(), v1.RandomCrop(8)], [v1.CenterCrop(8), v1.Resize(8), v1.ToTensor()], [v1.Resize((8, 9)), v1.CenterCrop(8), v1.ToTensor()],
    [v1.Resize(8, max_size=9), v1.ToTensor()], [v1.ToTensor(), v1.Normalize(MEAN, STD), v1.Resize(8)], [v1.ToTensor(), v1.Lambda(lambda x: x)],
    [v1.CenterCrop(8), v1.ToTensor()], [v1.ToTensor(), v1.Normalize(MEAN, STD), v1.Normalize(MEAN, STD)], [v1.ToTensor(), v1.Normalize(MEAN, STD), v1.Grayscale()],
    [v1.ToTensor(), v1.Resize(8, antialias=False)], [v1.ToTensor(), v1.Resize(8, BICUBIC, antialias=True)], [v1.PILToTensor(), v1.Resize(8, v1.InterpolationMode.NEAREST)],
    [v1.ToTensor(), v1.ConvertImageDtype(torch.int16)],
])
def test_other_transforms_are_no_keys(steps):
    assert isinstance(_preprocess.resolve(v1.Compose(steps)), Applied)
    with pytest.raises(noether_ml.Error, match=r"list is not supported at its place: it takes a resize, .* or keys of a study$"):
        _preprocess.resolve(steps)


@pytest.mark.parametrize("config", [
    {"input_size": (3, 32, 32), "crop_pct": 0.9, "crop_mode": "center", "interpolation": "bicubic"}, {"input_size": (3, 40, 40), "crop_pct": 1.0},
    {"input_size": (3, 32, 32), "crop_pct": 0.8, "crop_mode": "squash"}, {"input_size": (3, 32, 40), "crop_pct": 1.0, "crop_mode": "squash"},
])
def test_data_configs_of_timm(config, pixels, images_of_files):
    timm = pytest.importorskip("timm.data")
    config = {"interpolation": "bilinear", "mean": tuple(MEAN), "std": tuple(STD), **config}
    compare(_preprocess.resolve(config), timm.create_transform(**config, is_training=False), pixels, images_of_files)
    if config["input_size"][1] == config["input_size"][2]:
        compare(_preprocess.resolve(timm.create_transform(**config, is_training=False)), timm.create_transform(**config, is_training=False),
                pixels, images_of_files)


@pytest.mark.parametrize("config, text", [
    ({"input_size": (3, 32, 32), "crop_mode": "border"}, "border"), ({"input_size": (3, 32, 40), "crop_pct": 0.9}, "squares only"),
])
def test_other_data_configs_of_timm_are_refused(config, text):
    with pytest.raises(noether_ml.Error, match=text):
        _preprocess.resolve(config)


def test_processors_of_transformers(tmp_path, pixels, images_of_files):
    transformers = pytest.importorskip("transformers", minversion="5")
    processor = transformers.DeiTImageProcessor(size={"height": 40, "width": 40}, crop_size={"height": 32, "width": 32})
    processor.save_pretrained(tmp_path)
    keys = _preprocess.resolve(processor)
    assert keys["resize"] == 40 and keys["stretch"] and keys["crop"] == 32 and keys["crop-start"] == "floor"
    assert _preprocess.resolve(processor.to_dict()) == keys
    folder = _preprocess.resolve(str(tmp_path))
    assert folder == str(tmp_path / "preprocessor_config.json") and _preprocess.resolve(tmp_path) == folder
    compare(keys, lambda image: processor(image, return_tensors="np")["pixel_values"][0], pixels, images_of_files)
    joined = transformers.CLIPProcessor(processor, transformers.CLIPTokenizer(vocab={"<|startoftext|>": 0, "<|endoftext|>": 1}, merges=[]))
    assert _preprocess.resolve(joined) == keys
    joined.save_pretrained(tmp_path / "joined")
    assert _preprocess.resolve(tmp_path / "joined") == str(tmp_path / "joined" / "processor_config.json")
    assert _preprocess.resolve(transformers.Wav2Vec2FeatureExtractor()) == {"rate": 16000, "standardise": True}
    assert _preprocess.resolve(transformers.WhisperFeatureExtractor()).endswith("preprocessor_config.json")
    with pytest.raises(noether_ml.Error, match="do_thumbnail") as e:
        _preprocess.resolve(transformers.DonutImageProcessor())
    assert "\n" not in str(e.value) and str(tmp_path) not in str(e.value)
    with pytest.raises(noether_ml.Error, match="has no preprocessor_config"):
        _preprocess.resolve(tmp_path.parent)


def test_images_without_preprocess_warn(images, tmp_path, recwarn):
    options = dict(transforms=[{"flip": "horizontal"}], measures=["distance"], layers="output", quiet=True)
    module = networks.Shared()
    with pytest.warns(UserWarning, match="Shared gets images with values from 0 to 1, which are not normalised: set preprocess='none'"):
        noether_ml.measure(module, images, **options)
    module.pretrained_cfg = {"input_size": (3, 32, 32)}
    with pytest.warns(UserWarning, match="resolve_model_data_config"):
        noether_ml.measure(module, images, **options)
    recwarn.clear()
    noether_ml.measure(module, images, preprocess=v1.Compose([v1.Resize(32), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)]), **options)
    noether_ml.measure(module, images, preprocess="none", **options)
    noether_ml.measure(module, numpy.float32(images.transpose(0, 3, 1, 2) / 255), **options)  # as the user has prepared them
    assert not [w for w in recwarn if "not normalised" in str(w.message)]


def test_arrays_for_a_file_are_guessed_as_by_init(images, tmp_path):
    """A file of ONNX says nothing of its preprocessing, whether the images are in a folder or in memory."""
    options = dict(transforms=[{"flip": "horizontal"}], measures=["distance"], layers="output", quiet=True)
    path = tmp_path / "shared.onnx"
    torch.onnx.export(networks.Shared().eval(), (torch.zeros(2, 3, 32, 32),), path, dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
    with pytest.warns(UserWarning, match='preprocess="cifar10" is a guess, as noether init makes it'):
        guessed = noether_ml.measure(path, images, **options)
    assert guessed.scores.value.tolist() == noether_ml.measure(path, images, preprocess="cifar10", **options).scores.value.tolist()
    floats = numpy.float32(images.transpose(0, 3, 1, 2) / 255)
    with pytest.warns(UserWarning, match='as they are, where noether init would guess "cifar10"'):
        plain = noether_ml.measure(path, floats, **options)
    assert plain.scores.value.tolist() == noether_ml.measure(path, floats, preprocess="none", **options).scores.value.tolist()


@pytest.mark.parametrize("side, guess", [(32, {"preset": "cifar10", "resize": 32, "crop": 32}), (128, {"preset": "imagenet", "resize": 146, "crop": 128})])
def test_preprocessing_of_files_is_guessed_as_by_init(tmp_path, side, guess):
    for i in range(3):
        Image.fromarray(numpy.random.default_rng(i).integers(0, 256, (150, 160, 3), numpy.uint8)).save(tmp_path / f"{i}.png")
    options = dict(transforms=[{"flip": "horizontal"}], measures=["distance"], layers="output", quiet=True, input=(3, side, side))
    module = networks.Shared()
    with pytest.warns(UserWarning, match="is a guess, as noether init makes it"):
        guessed = noether_ml.measure(module, tmp_path, **options)
    stated = noether_ml.measure(module, tmp_path, preprocess=guess, **options)
    assert guessed.scores.value.tolist() == stated.scores.value.tolist()
