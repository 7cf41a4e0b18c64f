"""Data of all supported forms give the same scores, and bad data an error of one line."""

import os
import subprocess
import sys
import textwrap
import time

import networks
import numpy
import pytest
import torch

import noether_ml
from noether_ml import _cache, _data

# The fixtures images (16 of 32 x 32, uint8) and cache (a folder for the test) are in conftest.py.

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
OPTIONS = dict(transforms=[{"flip": "horizontal"}], measures=["effective-invariance", "distance"], layers=["relu"], quiet=True)


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(1)
    return networks.trained(networks.Shared())


class Samples(torch.utils.data.Dataset):
    """A data set of pairs of an image and a label."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def test_all_forms_give_the_same_scores(module, images, tmp_path):
    labels = numpy.arange(16) % 5
    unit = images.transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    normalised = (unit - numpy.array(MEAN, numpy.float32).reshape(3, 1, 1)) / numpy.array(STD, numpy.float32).reshape(3, 1, 1)
    samples = Samples(torch.from_numpy(normalised), labels)
    saved = tmp_path / "x.npy"
    numpy.save(saved, images)
    # An entry is an item of the list data of a study, the file that says what to measure.
    forms = {
        "uint8": images, "float": unit, "double": unit.astype(numpy.float64), "strided": numpy.asfortranarray(unit),
        "tensor": torch.from_numpy(unit), "normalised": normalised, "labelled": (images, labels), "dataset": samples,
        "loader": torch.utils.data.DataLoader(samples, batch_size=3), "entry": {"name": "data", "arrays": str(saved)},
    }
    want = None
    for name, data in forms.items():
        scores = noether_ml.measure(module, data, preprocess={"mean": MEAN, "std": STD}, input=(3, 32, 32), **OPTIONS).scores
        want = scores if want is None else want
        assert numpy.allclose(scores.value, want.value, atol=1e-6, equal_nan=True), name


def test_order_limit_and_labels(cache, images):
    labels = numpy.arange(16) % 5
    loader = torch.utils.data.DataLoader(Samples(torch.from_numpy(images).permute(0, 3, 1, 2) / 255, labels), batch_size=3)
    # prepare writes the arrays to the cache, and returns entries with their paths.
    found, = _data.prepare(loader, limit=7)
    x, y = (numpy.load(found.entry["arrays"][k]) for k in ("inputs", "labels"))
    assert x.dtype == numpy.uint8 and (x == images[:7].transpose(0, 3, 1, 2)).all() and (y == labels[:7]).all()


def test_the_limit_of_an_array_with_labels(cache, images):
    found, = _data.prepare((images, numpy.arange(16) % 5), limit=7)
    assert (numpy.load(found.entry["arrays"]["labels"]) == numpy.arange(7) % 5).all()


def test_floats_that_are_not_multiples_of_1_255_are_kept(images, cache):
    unit = images.transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    unit[9] *= 0.3333
    samples = [(unit[i],) for i in range(16)]
    found, = _data.prepare(samples)
    assert numpy.allclose(numpy.load(found.entry["arrays"]["inputs"]), unit, atol=1e-6)


def test_labels_give_accuracy(module, images):
    run = noether_ml.measure(module, images, labels=numpy.arange(16) % 5, transforms=[{"flip": "horizontal"}], layers=["relu"], quiet=True)
    assert "accuracy" in set(run.scores.measure)


class Dicts(Samples):
    """A data set of dicts that do not say which of their values is the image."""

    def __getitem__(self, i):
        return {"a": self.x[i], "b": self.y[i]}


@pytest.mark.parametrize("data, text", [
    (Dicts(numpy.zeros((2, 3, 8, 8), numpy.float32), [0, 1]), "dicts, with the keys a, b"),
    (numpy.zeros((4, 8), numpy.uint8), "shape"),
    (numpy.zeros((0, 8, 8, 3), numpy.uint8), "shape"),
    (numpy.full((4, 3, 8, 8), 7.5), "from 7.5 to 7.5"),
    (numpy.full((4, 3, 8, 8), numpy.nan), "NaN"),
    (numpy.array([["a"]]), "not numbers"),
    ((numpy.zeros((4, 8, 8, 3), numpy.uint8), [1, 2]), "labels"),
    ([(numpy.zeros((3, 8, 8), numpy.float32), 0), (numpy.zeros((3, 9, 8), numpy.float32), 0)], "differ in shape"),
    ("nowhere", "no data at nowhere"),
    (7, "not int"),
    ({"name": "x", "picture": "y"}, "picture"),
])
def test_bad_data_give_an_error_of_one_line(module, data, text):
    with pytest.raises(noether_ml.Error, match=text) as e:
        noether_ml.measure(module, data, input=(3, 32, 32), **OPTIONS)
    assert "\n" not in str(e.value)


class Unconvertible:
    """Cannot be converted to an array, and the error has no text."""

    def __array__(self, *args, **kwargs):
        raise MemoryError


def test_an_error_without_text_is_named_by_its_type():
    with pytest.raises(noether_ml.Error, match="numbers: MemoryError"):
        _data.array(numpy, Unconvertible())


def test_labels_missing(module, images):
    with pytest.raises(noether_ml.Error, match="label") as e:
        noether_ml.measure(module, images, **{**OPTIONS, "measures": ["accuracy"]})
    assert "\n" not in str(e.value)


def test_folders_that_cannot_be_created(module, images, cache, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("NOETHER_CACHE", str(file / "cache"))
    with pytest.raises(noether_ml.Error, match="NOETHER_CACHE"):
        noether_ml.measure(module, images, **OPTIONS)
    monkeypatch.setenv("NOETHER_CACHE", str(cache))
    with pytest.raises(noether_ml.Error, match="file"):
        noether_ml.measure(module, images, folder=file / "run", **OPTIONS)


def test_the_cache_is_bounded(images, cache, monkeypatch):
    # One set of images takes 49,152 bytes: three fit, besides the newest.
    monkeypatch.setenv("NOETHER_CACHE_SIZE", "150000")
    for i in range(5):
        _data.prepare(images + numpy.uint8(i))
    assert 1 <= len(list((cache / "python" / "data").iterdir())) <= 4


def test_folders_of_killed_processes_are_removed(images, cache):
    data = cache / "python" / "data"
    past = time.time() - 3600  # seconds; unused folders that are older than 60 are removed
    with _cache.temporary("data") as used:
        for name, modified in (("killed", past), ("recent", time.time()), (used.name, past)):
            folder = data / name if name == used.name else data / f".tmp-{name}"
            folder.mkdir(exist_ok=True)
            (folder / "inputs.npy").write_bytes(b"x")
            os.utime(folder, (modified, modified))
        _data.prepare(images)
        assert {p.name for p in data.glob(".tmp-*")} == {".tmp-recent", used.name}
    (data / ".tmp-recent" / "inputs.npy").unlink()
    (data / ".tmp-recent").rmdir()


def test_two_processes_with_one_cache(cache):
    code = textwrap.dedent("""
        import sys; sys.path[:0] = sys.argv[1:]
        import networks, noether_ml, numpy, torch
        torch.manual_seed(1)
        x = numpy.random.default_rng(1).integers(0, 256, (16, 32, 32, 3), dtype=numpy.uint8)
        run = noether_ml.measure(networks.Shared(), x, layers=["relu"], measures=["distance"], quiet=True)
        print(run.scores.value.sum())
    """)
    paths = [p for p in sys.path if p.endswith(("python", "tests"))]
    processes = [subprocess.Popen([sys.executable, "-c", code, *paths], stdout=subprocess.PIPE) for _ in range(2)]
    printed = [p.communicate()[0] for p in processes]
    assert [p.returncode for p in processes] == [0, 0]
    assert printed[0] == printed[1]
