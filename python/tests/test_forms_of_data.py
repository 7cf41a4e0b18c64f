"""Data as people have them: data sets of Hugging Face, images of PIL, recordings, videos, tables of paths."""

import csv
import re
import warnings
from types import MappingProxyType

import networks
import numpy
import pytest
import torch
from torch import nn

import noether_ml
from noether_ml import _data, _files

FLIP = [{"name": "flip", "flip": "horizontal"}]
SIZES = [(40, 32), (32, 48), (33, 35), (64, 40)]  # of the images of the fixture pictures


@pytest.fixture
def pictures():
    Image = pytest.importorskip("PIL.Image")
    rng = numpy.random.default_rng(1)
    return [Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=numpy.uint8)) for width, height in SIZES]


@pytest.fixture
def expected(pictures, tmp_path):
    """The scores of a folder of the pictures."""
    (tmp_path / "folder").mkdir()
    for i, picture in enumerate(pictures):
        picture.save(tmp_path / "folder" / f"{i}.png")
    return scores(tmp_path / "folder")


def scores(data, module=None, **options):
    torch.manual_seed(1)
    options = {"transforms": FLIP, "preprocess": {"resize": 36, "crop": 32, "mean": [0.5] * 3, "std": [0.5] * 3}, **options}
    run = noether_ml.measure(module or networks.small_resnet(), data, measures=["distance"], layers=["layer4"], quiet=True, **options)
    return list(run.scores.value)


def test_pictures_of_any_size(pictures, expected):
    assert scores(pictures) == pytest.approx(expected)
    assert scores([(p, i % 2) for i, p in enumerate(pictures)]) == pytest.approx(expected)
    assert scores(iter(pictures)) == pytest.approx(expected)
    assert scores([{"img": p, "label": 1} for p in pictures]) == pytest.approx(expected)


def test_a_table_of_paths(pictures, expected, tmp_path):
    pandas = pytest.importorskip("pandas")
    paths = [tmp_path / "folder" / f"{i}.png" for i in range(4)]
    assert scores(pandas.DataFrame({"path": paths, "label": ["b", "a", "b", "a"]})) == pytest.approx(expected)
    with pytest.raises(noether_ml.Error, match=r"no file .*gone.png, which the DataFrame names"):
        scores(pandas.DataFrame({"path": [*paths, "gone.png"]}))
    with pytest.raises(noether_ml.Error, match="columns where, what"):
        scores(pandas.DataFrame({"where": paths, "what": 1}))


def test_hugging_face(pictures, expected):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["dog", "cat"])})
    made = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1, 1, 0]}, features=features)
    assert scores(made) == pytest.approx(expected)
    assert scores(made.to_iterable_dataset()) == pytest.approx(expected)
    found, = _data.prepare(made, limit=3)
    assert found.names == ["dog", "cat"] and found.labelled
    with open(found.entry["images"]["labels"]) as f:
        assert [row["label"] for row in csv.DictReader(f)] == ["0", "1", "1"]
    with pytest.raises(noether_ml.Error, match="the splits train, test: give one of them"):
        scores(datasets.DatasetDict(train=made, test=made))


class Classifier(nn.Module):
    """Of dogs and cats, with the names of its outputs as transformers has them."""

    class config:
        id2label = MappingProxyType({0: "Cat", 1: "Dog", 2: "Bird"})

    def forward(self, pixel_values):
        mean = pixel_values.mean((1, 2, 3))
        return torch.stack([mean, -mean, 0 * mean], 1)


def test_classes_are_matched_by_name():
    class Animals(torch.utils.data.Dataset):
        classes = ("dog", "cat")

        def __len__(self):
            return 4

        def __getitem__(self, i):  # dogs are dark and cats bright
            return torch.full((3, 8, 8), float(i % 2)), i % 2

    run = noether_ml.measure(Classifier(), Animals(), transforms=FLIP, measures=["accuracy"], preprocess={"mean": [0.5] * 3, "std": [1.0] * 3}, quiet=True)
    clean = run.scores[run.scores.statistic == "clean"]
    assert clean.value.iloc[0] == 1


def test_classes_that_may_be_others_warn(images):
    class Digits:
        classes = ("0 - zero", "1 - one")

        def __len__(self):
            return 4

        def __getitem__(self, i):
            return torch.from_numpy(images[i]).permute(2, 0, 1) / 255, i % 2

    with pytest.warns(UserWarning, match="m has 5 outputs and the data set 2 classes"):
        noether_ml.measure({"m": networks.Shared()}, Digits(), transforms=FLIP, measures=["accuracy"], layers="relu", preprocess="none", quiet=True)


class Waves(nn.Module):
    """A network for waveforms."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.head = nn.Conv1d(1, 4, 50, stride=10), nn.Linear(4, 3)

    def forward(self, input_values):
        return self.head(self.conv(input_values[:, None]).relu().mean(2))


GAIN = [{"name": "gain", "gain": {"values": [-6]}}]


def waves(data, **options):
    options = {"transforms": GAIN, **options}
    run = noether_ml.measure(Waves(), data, measures=["distance"], layers="output", input=(800,), quiet=True, **options)
    scores = run.scores
    return scores[(scores.statistic == "l2") & (scores.mean_over == "")].value.iloc[0]


@pytest.fixture
def recordings():
    return numpy.random.default_rng(1).uniform(-0.5, 0.5, (4, 800)).astype(numpy.float32)


def test_waveforms(recordings):
    module = Waves().eval()
    with torch.no_grad():
        x = torch.from_numpy(recordings)
        want = (module(x) - module(x * 10 ** (-6 / 20))).norm(dim=1).mean().item()
    forms = {
        "array": recordings, "tensor": torch.from_numpy(recordings), "list": list(recordings), "labelled": (recordings, [0, 1, 2, 0]),
        "torchaudio": [(torch.from_numpy(x)[None], 8000, "yes") for x in recordings], "dicts": [{"audio": {"array": x, "sampling_rate": 8000}, "label": 1} for x in recordings],
    }
    for name, data in forms.items():
        assert waves(data, rate=8000) == pytest.approx(want, rel=1e-4), name
    with pytest.raises(noether_ml.Error, match="sample rate in Hz, rate=16000"):
        waves(recordings)
    assert waves(recordings, rate=8000, transforms=None) > 0  # the defaults are transformations of sound


def as_written(values, tmp_path):
    """The waveform that a recording is written as."""
    _files._write_wave(numpy, tmp_path / "x.wav", {"array": values, "sampling_rate": 8000}, None)
    return numpy.frombuffer((tmp_path / "x.wav").read_bytes()[44:], "<f4")


def test_waveforms_of_integers(recordings, tmp_path):
    x = recordings[0]
    for scale, dtype, offset in ((2**15, numpy.int16, 0), (2**31, numpy.int32, 0), (128, numpy.uint8, 128)):
        whole = numpy.floor(x.astype(numpy.float64) * scale + offset).astype(dtype)
        for values in (whole, numpy.stack([whole, whole], 1), torch.from_numpy(whole)[None]):  # also of two channels
            numpy.testing.assert_allclose(as_written(values, tmp_path), x, atol=1.01 / scale)
    for values, message in ((whole.astype(numpy.int64), "of int64, whose full scale is not known"), (x * 32768, "divide by 32768")):
        with pytest.raises(noether_ml.Error, match=message):
            as_written(values, tmp_path)


def test_pictures_of_16_bits(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    values = numpy.linspace(0, 65535, 64).reshape(8, 8)
    for picture in (Image.fromarray(values.astype(numpy.uint16)), Image.fromarray(values.astype(numpy.int32))):
        _files._eight_or_sixteen_bits(picture).save(tmp_path / "x.png")
        assert numpy.abs(numpy.asarray(Image.open(tmp_path / "x.png")) - values).max() < 1
    for wrong in (values.astype(numpy.float32), 2 * values.astype(numpy.int32), -values.astype(numpy.int32)):
        with pytest.raises(noether_ml.Error, match="convert it to 8 bits"):
            _files._eight_or_sixteen_bits(Image.fromarray(wrong))


def test_a_table_without_paths(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(noether_ml.Error, match="column image of the DataFrame has a value of type dict"):
        _files.table(pandas.DataFrame({"image": [{"bytes": b""}], "label": [1]}), None)


def test_recordings_of_hugging_face(recordings):
    datasets = pytest.importorskip("datasets")
    soundfile = pytest.importorskip("soundfile")
    import io

    def encoded(x):
        out = io.BytesIO()
        soundfile.write(out, x, 8000, format="WAV", subtype="FLOAT")
        return {"bytes": out.getvalue(), "path": None}

    table = datasets.Dataset.from_dict({"audio": [encoded(x) for x in recordings], "label": [0, 1, 0, 1]})
    data = table.cast_column("audio", datasets.Audio())  # whose decoding needs torchcodec
    assert waves(data) == pytest.approx(waves(recordings, rate=8000), rel=1e-6)


class Clips(nn.Module):
    """A network for videos of transformers: batch, frames, channels, height, width."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.head = nn.Conv3d(3, 4, (2, 3, 3)), nn.Linear(4, 3)

    def forward(self, pixel_values):
        y = self.conv(pixel_values.transpose(1, 2))
        return self.head((y * torch.arange(y.shape[2])[:, None, None]).relu().mean((2, 3, 4)))


def darker(clip, strength):
    return clip * (1 - strength)


def test_videos():
    x = numpy.random.default_rng(1).uniform(size=(4, 5, 3, 16, 16)).astype(numpy.float32)
    module = Clips().eval()

    def want(change):
        with torch.no_grad():
            return (module(torch.from_numpy(x)) - module(torch.from_numpy(change(x).copy()))).norm(dim=1).mean().item()

    run = noether_ml.measure(Clips(), (x, [0, 1, 2, 0]), layers="output", quiet=True)
    found = run.scores[run.scores.statistic == "l2"].set_index("data").value
    found = found[run.scores[run.scores.statistic == "l2"].layer.values == "output"]
    assert found["mirrored"] == pytest.approx(want(lambda v: v[..., ::-1]), rel=1e-4)
    assert found["backwards"] == pytest.approx(want(lambda v: v[:, ::-1]), rel=1e-4)
    assert "accuracy" in set(run.scores.measure)
    run = noether_ml.measure(Clips(), x, transforms=[{"python": {"function": darker, "strength": {"values": [0.1, 0.4]}}}], measures=["distance"], layers="output", quiet=True)
    found = run.scores[run.scores.statistic == "l2"].set_index("data").value
    assert found["darker-0.4"] == pytest.approx(want(lambda v: v * 0.6), rel=1e-4)
    with pytest.raises(noether_ml.Error, match=r"are transformed by functions of Python or given as pairs, not {'rotate'"):
        noether_ml.measure(Clips(), x, transforms=[{"rotate": 90}], quiet=True)


def test_entries_with_arrays():
    """Spectrograms, and pairs of arrays that a model takes as they are."""
    x = numpy.random.default_rng(1).normal(-40, 10, size=(4, 6, 20)).astype(numpy.float32)
    module = nn.Sequential(nn.Conv1d(6, 3, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten()).eval()
    with torch.no_grad():
        want = (module(torch.from_numpy(x)) - module(torch.from_numpy(x[..., ::-1].copy()))).norm(dim=1).mean().item()
    options = dict(input=(6, 20), measures=["distance"], layers="output", quiet=True)
    for data, transforms in (({"arrays": x, "layout": "raw"}, [lambda v: v[..., ::-1]]), ({"pairs": {"clean": x, "moved": x[..., ::-1], "layout": "raw"}}, [])):
        run = noether_ml.measure(module, data, transforms=transforms, **options)
        assert run.scores[run.scores.statistic == "l2"].value.iloc[0] == pytest.approx(want, rel=1e-4)
    with pytest.raises(noether_ml.Error, match="need transforms=, functions of one sample, or pairs"):
        noether_ml.measure(module, {"arrays": x, "layout": "raw"}, **options)


def test_another_normalisation_warns(images):
    unit = images.transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    mean, std = numpy.array([0.4, 0.5, 0.6], numpy.float32), numpy.array([0.3, 0.3, 0.3], numpy.float32)
    x = (unit - mean[:, None, None]) / std[:, None, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _data.prepare(x, preprocess={"mean": list(mean), "std": list(std)})
    with pytest.warns(UserWarning, match="no multiples of 1/255: the mean and the deviation"):
        _data.prepare(x * 0.9, preprocess={"mean": list(mean), "std": list(std)})


QUICK = MappingProxyType({"transforms": FLIP, "measures": ["distance", "accuracy"], "layers": "output", "preprocess": "none", "quiet": True})
MODULE = MappingProxyType({"input": (3, 32, 32)})


def arrays():
    return numpy.random.default_rng(5).integers(0, 256, (6, 32, 32, 3), dtype=numpy.uint8)


def accuracy(data, **options):
    run = noether_ml.measure(networks.small_resnet(), data, **{**QUICK, **MODULE, **options})
    return [v for m, s, v in zip(run.scores.measure, run.scores.statistic, run.scores.value) if (m, s) == ("accuracy", "clean")]


class Items(torch.utils.data.Dataset):
    """Images with labels that a function gives."""

    def __init__(self, label):
        self.label, self.images = label, arrays().transpose(0, 3, 1, 2) / numpy.float32(255)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.label(i)


@pytest.mark.parametrize("label", [float, lambda i: torch.tensor(float(i)), lambda i: numpy.float32(i), lambda i: numpy.int8(i)])
def test_labels_that_are_whole_numbers_in_any_type(label):
    torch.manual_seed(1)
    want = accuracy((arrays(), numpy.arange(6) % 5), preprocess={"crop": 32})
    torch.manual_seed(1)
    assert accuracy(Items(lambda i: label(i % 5)), preprocess={"crop": 32}) == want
    assert len(want) == 1


@pytest.mark.parametrize("label", [lambda i: i + 0.5, lambda i: "cat", lambda i: [0, 1], lambda i: torch.eye(6)[i]])
def test_labels_that_are_left_out_are_said(label):
    with pytest.warns(UserWarning) as caught:
        assert accuracy(Items(label)) == []
    said = " ".join(str(w.message) for w in caught)
    assert re.search("labels of the samples, of type .* left out", said) and "accuracy is skipped: the data have no labels" in said


def test_labels_of_pictures(pictures):
    options = {"preprocess": {"resize": 36, "crop": 32}}
    torch.manual_seed(1)
    want = accuracy([(p, i) for i, p in enumerate(pictures)], classes=[0, 1, 2, 3], **options)
    torch.manual_seed(1)
    assert accuracy([{"img": p, "label": float(i)} for i, p in enumerate(pictures)], classes=[0, 1, 2, 3], **options) == want
    with pytest.warns(UserWarning, match="label of item 0 .* of type float, is neither"):
        accuracy([(p, 0.5) for p in pictures], **options)
    with pytest.warns(UserWarning, match="sample 1 has no label"):
        accuracy([(p, None if i == 1 else i) for i, p in enumerate(pictures)], classes=[0, 1, 2, 3], **options)


@pytest.mark.parametrize("data, message", [
    (arrays()[0], r"the shape \(32, 32, 3\): if it is one image, give x\[None\]"),
    (arrays()[0].transpose(2, 0, 1), "if it is one image"),
    (numpy.concatenate([arrays(), arrays()[..., :1]], -1), "1 or 3 channels, first or last"),
    (numpy.ma.masked_greater(arrays(), 250), "values are masked"),
    ((arrays(), numpy.arange(6) + 0.5), "label 0.5 is not a whole number"),
    ((arrays(), numpy.full(6, numpy.nan)), "label nan is not a whole number"),
])
def test_arrays_that_are_refused(data, message):
    with pytest.raises(noether_ml.Error, match=message) as e:
        accuracy(data)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("options, message", [
    ({"limit": -1}, "limit is -1: it must be a whole number from 1"), ({"limit": "5"}, "limit is '5'"), ({"transforms": "flip"}, "transforms is a list"),
])
def test_arguments_that_are_refused(options, message):
    with pytest.raises(noether_ml.Error, match=message):
        accuracy(arrays(), **options)


def test_one_measure_and_one_transformation():
    torch.manual_seed(1)
    one = noether_ml.measure(networks.small_resnet(), arrays(), transforms=FLIP[0], measures="distance", layers="output", preprocess="none", quiet=True)
    torch.manual_seed(1)
    several = noether_ml.measure(networks.small_resnet(), arrays(), transforms=FLIP, measures=["distance"], layers="output", preprocess="none", quiet=True)
    assert one.scores.value.tolist() == several.scores.value.tolist()


def test_bfloat16():
    x = torch.tensor(arrays().transpose(0, 3, 1, 2) / numpy.float32(255)).bfloat16()
    torch.manual_seed(1)
    want = noether_ml.measure(networks.small_resnet(), x.float().numpy(), **QUICK).scores.value.tolist()
    torch.manual_seed(1)
    assert noether_ml.measure(networks.small_resnet(), x, **QUICK).scores.value.tolist() == want


def test_a_class_and_a_state_dict_are_no_models():
    with pytest.raises(noether_ml.Error, match="the model is the class Linear"):
        noether_ml.measure(nn.Linear, arrays(), **QUICK)
    with pytest.raises(noether_ml.Error, match="state dict"):
        noether_ml.measure(networks.small_resnet().state_dict(), arrays(), **QUICK)


def test_strict_fails_for_a_sample_that_cannot_be_read(pictures, tmp_path):
    for i, picture in enumerate(pictures):
        picture.save(tmp_path / f"{i}.png")
    (tmp_path / "0.png").write_bytes((tmp_path / "0.png").read_bytes()[:-40])
    options = {**QUICK, "preprocess": {"resize": 36, "crop": 32}, "measures": "distance"}
    noether_ml.measure(networks.small_resnet(), tmp_path, input=(3, 32, 32), **options)
    with pytest.raises(noether_ml.Error, match=r"0\.png"):
        noether_ml.measure(networks.small_resnet(), tmp_path, input=(3, 32, 32), strict=True, folder=tmp_path / "strict", **options)
