"""Noether reads the config of a processor as the library transformers does.

Each processor of images and videos is made with many configs. For each, Noether gives the pixels of
the library's own processor, or an error that says how to go on."""

import base64
import importlib
import json
import os
import subprocess
import wave

import numpy
import pytest
from conftest import ROOT

import noether_ml

transformers = pytest.importorskip("transformers", minversion="5")
onnx = pytest.importorskip("onnx")
from PIL import Image  # noqa: E402

TABLE = json.loads((ROOT / "internal/model/preprocessing/processors.json").read_text())

# Largest and mean difference of pixels, in levels of 1/255, by the interpolation. Noether resizes
# as Pillow does. The processors resize with torchvision, which rounds its weights otherwise.
BOUNDS = {None: (0, 0), 1: (2, 0.02), 2: (1, 0.05), 3: (2, 0.02)}
NEAREST = 0.01  # of the pixels may differ: those that lie midway between two
FLOATS = (1, 0.4)  # DINOv3 resizes numbers that are not rounded to 8 bits
# VivitImageProcessor resizes with Pillow. Since version 12.2, Pillow may change the height before the
# width, and each pass clips values beyond those of 8 bits.
PILLOW = {1: (30, 0.4), 2: (1, 0.3), 3: (20, 0.4)}

SIZE = {"size": {"height": 40, "width": 40}}
CROP = {"do_center_crop": True, "crop_size": {"height": 32, "width": 32}}
MEAN = {"do_normalize": True, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}
CHANGES = {
    "defaults": {},
    "a square": SIZE,
    "a rectangle": {"size": {"height": 40, "width": 56}},
    "the short side": {"size": {"shortest_edge": 40}},
    "the short side of 392": {"size": {"shortest_edge": 392}},
    "a number": {"size": 40},
    "two numbers": {"size": [40, 48]},
    "both edges": {"size": {"shortest_edge": 40, "longest_edge": 48}},
    "the long side": {"size": {"longest_edge": 48}},
    "largest sides": {"size": {"max_height": 48, "max_width": 44}},
    "not resized": {"do_resize": False},
    "not resized, cropped": {"do_resize": False, **CROP},
    "square and crop": {**SIZE, **CROP},
    "short side and crop": {"size": {"shortest_edge": 41}, **CROP},
    "a crop that is wide": {"size": {"shortest_edge": 40}, "do_center_crop": True, "crop_size": {"height": 27, "width": 38}},
    "a crop of a rectangle": {"size": {"height": 40, "width": 56}, **CROP},
    "a crop that is larger": {"size": {"shortest_edge": 24}, "do_center_crop": True, "crop_size": 49},
    "not cropped": {**SIZE, "do_center_crop": False},
    "nearest": {**SIZE, "resample": 0},
    "Lanczos": {**SIZE, "resample": 1},
    "bilinear": {**SIZE, "resample": 2},
    "bicubic": {**SIZE, "resample": 3},
    "box": {**SIZE, "resample": 4},
    "not rescaled": {**SIZE, "do_rescale": False, **MEAN},
    "rescaled to 2": {**SIZE, "rescale_factor": 1 / 127.5},
    "rescaled to 510": {**SIZE, "do_normalize": False, "rescale_factor": 2},
    "normalised": {**SIZE, **MEAN},
    "not normalised": {**SIZE, "do_normalize": False},
    "neither": {**SIZE, "do_normalize": False, "do_rescale": False},
    "padded": {**SIZE, "do_pad": True},
    "not padded": {**SIZE, "do_pad": False},
    "padded to a size": {**SIZE, "do_pad": True, "pad_size": {"height": 64, "width": 64}},
    "padded, of the short side": {"size": {"shortest_edge": 40}, "do_pad": True},
    "flipped": {**SIZE, "do_flip_channel_order": True},
    "not flipped": {**SIZE, "do_flip_channel_order": False},
    "include_top": {**SIZE, **MEAN, "include_top": True},
    "no include_top": {**SIZE, **MEAN, "include_top": False},
    "include_top alone": {**SIZE, **MEAN, "do_normalize": False, "include_top": True},
    "rescale_offset": {**SIZE, "rescale_factor": 1 / 127.5, "rescale_offset": True},
    "offset": {**SIZE, "rescale_factor": 1 / 127.5, "offset": True},
    "no offset": {**SIZE, "offset": False},
    "crop_pct": {"size": {"shortest_edge": 40}, "crop_pct": 0.8},
    "crop_pct of a square": {**SIZE, "crop_pct": 0.8},
    "multiples": {"size": {"height": 40, "width": 52}, "ensure_multiple_of": 14},
    "aspect": {**SIZE, "keep_aspect_ratio": True},
    "aspect and multiples": {**SIZE, "keep_aspect_ratio": True, "ensure_multiple_of": 8},
    "divisor": {**SIZE, "size_divisor": 32, "do_pad": True},
    "grey": {**SIZE, "do_grayscale": True},
    "thumbnail": {**SIZE, "do_thumbnail": True},
    "patches": {**SIZE, "crop_to_patches": True},
}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Images of noise over a gradient, higher and wider and of odd sizes."""
    folder, random = tmp_path_factory.mktemp("images"), numpy.random.default_rng(3)
    paths = []
    for height, width in ((61, 45), (75, 104)):
        ramp = numpy.linspace(0, 255, height * width * 3).reshape(height, width, 3)
        pixels = numpy.where(random.random((height, width, 1)) < 0.5, ramp, random.integers(0, 256, ramp.shape))
        paths.append(folder / f"{width}.png")
        Image.fromarray(pixels.astype(numpy.uint8)).save(paths[-1])
    return paths


@pytest.fixture(scope="module")
def noether(tmp_path_factory):
    """Sends questions to the command that prints what Noether makes of an input."""
    command = tmp_path_factory.mktemp("command") / "pixels"
    subprocess.run(["go", "build", "-o", command, "./internal/study/open/pixels"], cwd=ROOT, check=True)

    def ask(questions):
        text = "".join(json.dumps({k: str(v) for k, v in q.items()}) + "\n" for q in questions)
        done = subprocess.run([command], input=text, capture_output=True, text=True, check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(questions)
        return answers

    return ask


def values(answer):
    return numpy.frombuffer(base64.b64decode(answer["values"]), "<f4").reshape(answer["shape"])


def classes(kind):
    """The library's classes by name: those with torchvision, and without where there are no others."""
    suffix, module = ("ImageProcessor", "image_processing") if kind == "image" else ("VideoProcessor", "video_processing")
    models = os.path.join(os.path.dirname(transformers.__file__), "models")
    found = {}
    for folder in sorted(os.listdir(models)):
        path = os.path.join(models, folder, f"{module}_{folder}.py")
        if os.path.exists(path):
            loaded = importlib.import_module(f"transformers.models.{folder}.{module}_{folder}")
            found.update(
                (name, value)
                for name, value in vars(loaded).items()
                if name.endswith(suffix) and getattr(value, "__module__", "") == loaded.__name__ and name != "Auto" + suffix
            )
    return found


def real(kind, cls, config, path):
    """The pixels of the library's processor, c x h x w, and the processor; None if it fails."""
    image = Image.open(path)
    try:
        text = {"apply_ocr": False} if hasattr(cls, "apply_ocr") else {}  # which needs another library, and leaves the pixels
        processor = cls(**config, **text)
        given = numpy.stack([numpy.array(image)] * 2) if kind == "video" else image
        out = processor(given, return_tensors="np")
    except Exception:  # of any kind: this class does not take this config
        return None, None
    pixels = next((v for k, v in out.items() if k.startswith("pixel_values")), numpy.zeros(0))
    return numpy.asarray(pixels, dtype=numpy.float64).reshape((-1, *pixels.shape[-3:]))[0] if pixels.ndim > 3 else pixels, processor


def level(processor):
    """The difference that 1/255 of an image's range makes in the model's input."""
    scale = processor.rescale_factor if processor.do_rescale else 1
    std = numpy.min(processor.image_std) if processor.do_normalize else 1
    if getattr(processor, "include_top", False):
        std *= numpy.min(processor.image_std)
    return scale / std


@pytest.mark.parametrize("kind", ["image", "video"])
def test_pixels_of_every_processor(kind, noether, images, tmp_path):
    asked, wanted = [], []
    for name, cls in classes(kind).items():
        for change, keys in CHANGES.items():
            path = tmp_path / f"{name} {change}.json"
            path.write_text(json.dumps({f"{kind}_processor_type": name, **keys}))
            asked += [{"config": path, "image": image} for image in images]
            wanted += [(name, cls, change, keys, image) for image in images]
    answers = noether(asked)
    equal, wrong, refused = {}, [], []
    for answer, (name, cls, change, keys, image) in zip(answers, wanted):
        if "error" in answer:
            refused.append(f"{name}, {change}: {answer['error']}")
            continue
        want, processor = real(kind, cls, keys, image)
        if want is None:
            continue
        got = values(answer)
        if got.shape != want.shape:
            wrong.append(f"{name}, {change}: shape {got.shape}, want {want.shape}")
            continue
        resized = processor.do_resize and processor.size is not None
        resample = int(processor.resample) if resized else None
        levels = numpy.abs(got - want) / level(processor)
        if resample == 0:
            if (levels > 1e-3).mean() > NEAREST:
                wrong.append(f"{name}, {change}: {(levels > 1e-3).mean():.3g} of the values differ")
            else:
                equal.setdefault(name, []).append(change)
            continue
        worst, mean = BOUNDS[resample]
        if "DINOv3" in name and resized:
            worst, mean = FLOATS
        if name == "VivitImageProcessor" and resized:
            worst, mean = PILLOW[resample]
        if levels.max() > worst + 1e-3 or levels.mean() > mean + 1e-4:
            wrong.append(f"{name}, {change}: differs by up to {levels.max():.3g} levels, {levels.mean():.3g} on average")
            continue
        equal.setdefault(name, []).append(change)
    assert not wrong, "\n".join(wrong)
    # A config that the library takes is refused with what to do.
    assert not [e for e in refused if "preprocess: {" not in e and "size" not in e and "crop_pct" not in e]
    print(f"{kind}: {sum(map(len, equal.values()))} configs of {len(equal)} classes are equal, {len(refused)} are refused")
    standard = {n for n, c in TABLE[kind].items() if c.get("standard")}
    suffix = "ImageProcessor" if kind == "image" else "VideoProcessor"
    assert {n.removesuffix(suffix) for n in equal} == standard
    assert len(standard) >= (40 if kind == "image" else 4)
    assert min(len(c) for c in equal.values()) >= 10, equal


def test_files_of_the_library(noether, images, tmp_path):
    """The files that the library saves, of either backend, alone and in a processor_config.json, and older names."""
    from transformers import CLIPImageProcessor, CLIPImageProcessorPil, CLIPProcessor, CLIPTokenizer

    processor = CLIPImageProcessor(size={"shortest_edge": 40}, crop_size={"height": 33, "width": 36})
    want, _ = real("image", CLIPImageProcessor, {"size": processor.size, "crop_size": processor.crop_size}, images[0])
    paths = []
    for name, saved in {"torchvision": processor, "pil": CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size={"height": 33, "width": 36})}.items():
        saved.save_pretrained(tmp_path / name)
        paths.append(tmp_path / name / "preprocessor_config.json")
    vocabulary = {"<|startoftext|>": 0, "<|endoftext|>": 1, "a</w>": 2}
    CLIPProcessor(processor, CLIPTokenizer(vocab=vocabulary, merges=[])).save_pretrained(tmp_path / "joined")
    paths.append(tmp_path / "joined" / "processor_config.json")
    assert "image_processor" in json.loads(paths[-1].read_text())
    config = json.loads(paths[0].read_text())
    del config["image_processor_type"]
    for key in ("image_processor_type", "feature_extractor_type"):
        for name in ("CLIPImageProcessorFast", "CLIPFeatureExtractor"):
            paths.append(tmp_path / f"{key} {name}.json")
            paths[-1].write_text(json.dumps({**config, key: name}))
    for path, answer in zip(paths, noether([{"config": path, "image": images[0]} for path in paths])):
        assert "error" not in answer, (path, answer)
        assert numpy.abs(values(answer) - want).max() * 255 * 0.26 < 2.1, path


@pytest.mark.parametrize("normalised", [True, False])
def test_waveforms(noether, tmp_path, normalised):
    """Values of Wav2Vec2FeatureExtractor, as its default is and without normalisation."""
    samples = numpy.random.default_rng(2).normal(0.1, 0.3, 3000).astype("<f4")
    samples.tofile(tmp_path / "wave")
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=normalised)
    extractor.save_pretrained(tmp_path)
    want = extractor(samples, sampling_rate=16000, return_tensors="np")["input_values"]
    (answer,) = noether([{"config": tmp_path / "preprocessor_config.json", "waveform": tmp_path / "wave"}])
    assert "error" not in answer, answer
    numpy.testing.assert_allclose(values(answer), want, atol=2e-5 if normalised else 0)


def extractors():
    """The library's feature extractors of audio by name."""
    folder, found = os.path.join(os.path.dirname(transformers.__file__), "models"), {}
    for kind in sorted(os.listdir(folder)):
        if os.path.exists(os.path.join(folder, kind, f"feature_extraction_{kind}.py")):
            loaded = importlib.import_module(f"transformers.models.{kind}.feature_extraction_{kind}")
            found.update((name, value) for name, value in vars(loaded).items()
                         if name.endswith("FeatureExtractor") and getattr(value, "__module__", "") == loaded.__name__ and not name.startswith("Auto"))
    return found


def test_each_audio_extractor_is_applied_or_refused(noether, tmp_path):
    asked, names = [], list(extractors())
    for name in names:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"feature_extractor_type": name, "sampling_rate": 16000}))
        asked.append({"config": path, "waveform": os.devnull})
    assert len(names) > 25
    for name, answer in zip(names, noether(asked)):
        if name not in ("ASTFeatureExtractor", "Wav2Vec2FeatureExtractor", "WhisperFeatureExtractor"):
            assert name in answer["error"] and "preprocess: {rate" in answer["error"], answer
        else:
            assert "error" not in answer, answer


@pytest.mark.parametrize("name, keys, seconds", [
    ("ASTFeatureExtractor", {"num_mel_bins": 32, "max_length": 64}, 0.4),  # zeros are added to 38 frames
    ("ASTFeatureExtractor", {"num_mel_bins": 40, "max_length": 30, "do_normalize": False}, 0.5),  # of 48 frames 18 are left out
    ("ClapFeatureExtractor", {"truncation": "rand_trunc", "max_length_s": 1}, 0.3),  # three times, then zeros
    ("ClapFeatureExtractor", {"truncation": "rand_trunc", "max_length_s": 1, "padding": "repeat", "frequency_min": 50}, 0.3),
    ("ClapFeatureExtractor", {"truncation": "rand_trunc", "max_length_s": 1, "padding": "pad", "feature_size": 32, "hop_length": 320}, 0.3),
    ("WhisperFeatureExtractor", {"chunk_length": 1, "feature_size": 16}, 0.4),
])
def test_spectrograms(tmp_path, name, keys, seconds):
    """Spectrograms of recordings that are shorter than the model's input."""
    extractor = getattr(transformers, name)(**keys)
    waves = numpy.random.default_rng(3).normal(0, 0.2, (2, int(seconds * extractor.sampling_rate))).clip(-1, 1).astype("f4")
    want = next(iter(extractor(list(waves), sampling_rate=extractor.sampling_rate, return_tensors="np").values()))
    got = features(tmp_path, extractor, waves, want.shape)
    # In units of the deviation: values are logarithms, and samples are written with 16 bits.
    assert numpy.abs(got - want).max() < 0.02 * want.std()


def features(folder, extractor, waves, shape):
    """The features of recordings, read as the input of a model of one node beside the extractor's config."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["features"]), helper.make_node("ReduceMean", ["features"], ["y"], axes=[-1], keepdims=0)], "m",
                              [helper.make_tensor_value_info("x", kind, ["n", *shape[1:]])], [helper.make_tensor_value_info("y", kind, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    extractor.save_pretrained(folder)
    (folder / "waves").mkdir()
    for i, x in enumerate(waves):
        with wave.open(str(folder / "waves" / f"{i}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(extractor.sampling_rate)
            file.writeframes((x * 32767).round().astype("<i2").tobytes())
    # Whisper and CLAP have a length of their own.
    length = {"length": waves.shape[1] / extractor.sampling_rate} if type(extractor).__name__ == "ASTFeatureExtractor" else {}
    data = {"name": "waves", "sound": {"folder": str(folder / "waves"), **length}}
    return noether_ml.activations(folder / "model.onnx", data, "features", quiet=True)["clean"]["features"].reshape(shape)


# Settings that the classes of videos and of audio know, with values of which some are refused.
VIDEO = {
    "size": [{"height": 40, "width": 40}, {"height": 33, "width": 48}, {"shortest_edge": 41}, {"longest_edge": 48}, 36, {"shortest_edge": 40, "longest_edge": 56}],
    "do_resize": [True, False], "resample": [0, 2, 3], "do_center_crop": [True, False], "crop_size": [32, {"height": 27, "width": 38}, 49],
    "do_rescale": [True, False], "rescale_factor": [1 / 255, 1 / 127.5], "do_normalize": [True, False],
    "image_mean": [[0.4, 0.5, 0.6]], "image_std": [[0.2, 0.3, 0.4]], "do_convert_rgb": [True, False], "do_pad": [True, False],
    "do_sample_frames": [False, True], "num_frames": [2], "fps": [2], "return_metadata": [False], "patch_size": [8], "merge_size": [2],
    "temporal_patch_size": [2], "min_pixels": [3136], "max_pixels": [12544], "crop_to_patches": [False, True], "do_flip_channel_order": [True, False],
}
AUDIO = {
    "sampling_rate": [16000, 8000], "feature_size": [1, 16, 24], "do_normalize": [True, False], "padding_value": [0.0, 0.5], "padding_side": ["right", "left"],
    "return_attention_mask": [True, False], "n_fft": [256, 400], "hop_length": [160, 200], "chunk_length": [1, 2], "dither": [0.0, 0.1],
    "num_mel_bins": [24, 32], "max_length": [50, 80], "mean": [-4.0], "std": [3.0], "max_length_s": [1], "fft_window_size": [512, 1024],
    "frequency_min": [0, 60], "frequency_max": [6000, 7000], "top_db": [80], "padding": ["repeatpad", "repeat", "pad"], "truncation": ["rand_trunc", "fusion"],
}


def drawn(random, table, cls):
    """Some settings of a table that the class has, each with a value at random, and rarely one that it lacks."""
    known = {name for c in cls.__mro__ for name in [*getattr(c, "__annotations__", {}), *vars(c), *getattr(c.__init__, "__code__", drawn.__code__).co_varnames]}
    keys = [key for key in table if random.random() < (0.5 if key in known else 0.03)]
    return {key: table[key][random.integers(len(table[key]))] for key in keys}


def test_random_settings_of_video_processors(noether, images, tmp_path):
    random, asked, wanted = numpy.random.default_rng(11), [], []
    for name, cls in classes("video").items():
        for i in range(40):
            keys, path = drawn(random, VIDEO, cls), tmp_path / f"{name} {i}.json"
            path.write_text(json.dumps({"video_processor_type": name, **keys}))
            asked.append({"config": path, "image": images[i % 2]})
            wanted.append((name, cls, keys, images[i % 2]))
    equal, refused, wrong = {}, {}, []
    for answer, (name, cls, keys, image) in zip(noether(asked), wanted):
        if "error" in answer:
            named = [key for key in [*keys, name, "size", "crop_size", "do_", "steps"] if key in answer["error"]]
            refused[name] = refused.get(name, 0) + 1
            if not named or "\n" in answer["error"]:
                wrong.append(f"{name}, {keys}: {answer['error']}")
            continue
        want, processor = real("video", cls, keys, image)
        if want is None:
            continue
        got = values(answer)
        resample = int(processor.resample) if processor.do_resize and processor.size is not None else None
        if got.shape != want.shape:
            wrong.append(f"{name}, {keys}: shape {got.shape}, want {want.shape}")
            continue
        levels = numpy.abs(got - want) / level(processor)
        worst, mean = BOUNDS[resample] if resample != 0 else (numpy.inf, numpy.inf)
        if levels.max() > worst + 1e-3 or levels.mean() > mean + 1e-4 or resample == 0 and (levels > 1e-3).mean() > NEAREST:
            wrong.append(f"{name}, {keys}: differs by up to {levels.max():.3g} levels, {levels.mean():.3g} on average")
        equal[name] = equal.get(name, 0) + 1
    assert not wrong, "\n".join(wrong)
    print(f"equal: {equal}, refused: {sum(refused.values())} of {len(refused)} classes")
    assert len(equal) >= 4 and sum(equal.values()) > 20 and len(equal.keys() | refused.keys()) > 25


SPECTROGRAMS = ("ASTFeatureExtractor", "ClapFeatureExtractor", "WhisperFeatureExtractor")


def test_random_settings_of_audio_extractors(noether, tmp_path):
    random, asked, wanted = numpy.random.default_rng(12), [], []
    waves = random.normal(0, 0.2, (2, 8000)).clip(-1, 1).astype("f4")
    waves[0].tofile(tmp_path / "wave")
    for name, cls in extractors().items():
        for i in range(40):
            keys, path = drawn(random, AUDIO, cls), tmp_path / f"{name} {i}.json"
            if name == "ClapFeatureExtractor" and i % 4:  # the default is fusion, which is refused
                keys["truncation"] = "rand_trunc"
            path.write_text(json.dumps({"feature_extractor_type": name, **keys}))
            asked.append({"config": path, "waveform": tmp_path / "wave"})
            wanted.append((name, cls, keys))
    equal, refused, wrong = {}, set(), []
    for i, (answer, (name, cls, keys)) in enumerate(zip(noether(asked), wanted)):
        if "error" in answer:
            refused.add(name)
            # "padding" is the error's word for padding_value and padding_side.
            if not [key for key in [*keys, name, "padding with"] if key in answer["error"]] or "\n" in answer["error"]:
                wrong.append(f"{name}, {keys}: {answer['error']}")
            continue
        if name in SPECTROGRAMS and equal.get(name, 0) == 5:  # each is a run of its own
            continue
        try:
            extractor = cls(**keys)
            rate = extractor.sampling_rate
            want = next(iter(extractor(list(waves) if name in SPECTROGRAMS else waves[0], sampling_rate=rate, return_tensors="np").values()))
        except Exception:  # of any kind: this class does not take these settings
            continue
        if name in SPECTROGRAMS:
            folder = tmp_path / str(i)
            folder.mkdir()
            difference = numpy.abs(features(folder, extractor, waves, want.shape) - want).max() / (0.02 * want.std())
        else:
            difference = numpy.abs(values(answer) - want).max() / 2e-5
        if not difference <= 1:
            wrong.append(f"{name}, {keys}: differs by {difference:.3g} times the bound")
        equal[name] = equal.get(name, 0) + 1
    assert not wrong, "\n".join(wrong)
    print(f"equal: {equal}, refused: {len(refused)} classes")
    assert set(equal) == {"Wav2Vec2FeatureExtractor", *SPECTROGRAMS} and min(equal.values()) >= 5 and len(equal.keys() | refused) > 25
