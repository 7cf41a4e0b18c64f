"""Activations as arrays: those of ONNX Runtime, of a served module, and of a run."""

import json
import subprocess

import networks
import numpy
import pytest
import torch

import noether_ml
from noether_ml import _command, _data, _export, _measure

QUARTER = [{"name": "quarter", "rotate": {"values": [90]}}]
PIXELS = {"crop": [32, 32], "mean": [0, 0, 0], "std": [1, 1, 1]}


@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_of_a_module(images, engine):
    """The activations equal those of the module's own forward pass on the images, and on the rotated ones."""
    torch.manual_seed(1)
    module = networks.Shared().eval()
    found = noether_ml.activations(module, images, ["relu"], transforms=QUARTER, preprocess=PIXELS, engine=engine, quiet=True)
    assert list(found) == ["clean", "quarter/90"]
    outputs = []
    module.relu.register_forward_hook(lambda _, __, y: outputs.append(y))
    for view, of in (("clean", images), ("quarter/90", numpy.rot90(images, axes=(1, 2)))):
        x = torch.from_numpy(of.astype("float32").transpose(0, 3, 1, 2) / 255)
        outputs.clear()
        with torch.no_grad():
            module(x)
        (layer,) = found[view]
        got = found[view][layer]
        assert any(got.shape == y.shape and numpy.allclose(got, y, atol=1e-5) for y in outputs), (view, layer, got.shape)


def test_pooled_into_a_folder(images, tmp_path):
    torch.manual_seed(1)
    module = networks.Shared()
    whole = noether_ml.activations(module, images, ["relu"], preprocess=PIXELS, quiet=True)["clean"]
    pooled = noether_ml.activations(module, images, ["relu"], preprocess=PIXELS, pool="mean", folder=tmp_path / "kept", quiet=True)["clean"]
    (name,) = whole
    assert isinstance(pooled[name], numpy.memmap)
    numpy.testing.assert_allclose(pooled[name], whole[name].mean((2, 3)), rtol=1e-5, atol=1e-6)
    with pytest.raises(noether_ml.Error, match="exists"):
        noether_ml.activations(module, images, ["relu"], preprocess=PIXELS, folder=tmp_path / "kept", quiet=True)


def test_of_a_run(images):
    torch.manual_seed(1)
    run = noether_ml.measure(networks.Shared(), images, layers=["relu"], transforms=QUARTER, measures=["distance"], preprocess=PIXELS, quiet=True)
    found = run.activations(quiet=True)
    (name,) = found["clean"]
    x, y = (found[view][name].reshape(16, -1) for view in ("clean", "quarter/90"))
    cosine = 1 - (x * y).sum(1) / numpy.linalg.norm(x, axis=1) / numpy.linalg.norm(y, axis=1)
    scores = run.scores
    assert scores[scores.statistic == "cosine"].value.iloc[0] == pytest.approx(cosine.mean(), abs=1e-6)
    with pytest.raises(noether_ml.Error, match="say which one"):
        run.activations(model="other")


def test_zarr(images, tmp_path):
    """What noether extract writes as Zarr equals what it writes as npy, also read by rows."""
    zarr = pytest.importorskip("zarr", "3")
    torch.manual_seed(1)
    study = {"name": "zarr", "data": _data.prepare(images, None, None, None)[0].entry, "transforms": QUARTER, "measures": ["distance"],
             "models": [{"name": "net", "onnx": str(_export.export(networks.Shared(), (3, 32, 32))), "preprocess": PIXELS, "layers": ["all"]}]}
    (tmp_path / "study.yaml").write_text(_measure.written(study))
    for kind in ("zarr", "npy"):
        subprocess.run([_command.program(), "extract", tmp_path / "study.yaml", f"--out={tmp_path / kind}", f"--format={kind}"], check=True, capture_output=True)
    entries = json.loads((tmp_path / "npy/net/activations.json").read_text())
    group = zarr.open_group(tmp_path / "zarr/net", mode="r")
    assert len(entries) > 6
    for e in entries:
        want, name = numpy.load(tmp_path / "npy/net" / e["file"]), e["file"].replace(".npy", ".zarr")
        for array in (group[name], zarr.open_array(tmp_path / "zarr/net" / name, mode="r")):
            assert array.dtype == want.dtype and array.metadata.dimension_names == (tuple(e["axes"]) if e.get("axes") else None)
            numpy.testing.assert_array_equal(array[:], want)
            numpy.testing.assert_array_equal(array[3:5], want[3:5])


def test_wrong_arguments(images):
    module = networks.Shared()
    with pytest.raises(noether_ml.Error, match='--pool is "median"'):
        noether_ml.activations(module, images, ["relu"], pool="median", preprocess=PIXELS, quiet=True)
    with pytest.raises(noether_ml.Error, match='no layer matches "nothing"'):
        noether_ml.activations(module, images, ["nothing"], preprocess=PIXELS, quiet=True)
    with pytest.raises(noether_ml.Error, match="those of one model"):
        noether_ml.activations({"a": module, "b": module}, images, ["relu"], quiet=True)
