"""Models that are given as timm:NAME, with a stub in place of the package timm."""

import sys
import types

import networks
import pytest

import noether
from noether import _models


@pytest.fixture
def timm(monkeypatch):
    package, data = types.ModuleType("timm"), types.ModuleType("timm.data")

    def create_model(name, pretrained):
        if name != "net.a1_in1k":
            raise RuntimeError(f"Unknown model ({name})\nmore lines")
        assert pretrained
        return networks.Shared()  # a small convolutional network

    package.create_model, package.data = create_model, data
    data.resolve_data_config = lambda options, model: {
        "input_size": (3, 32, 48), "crop_pct": 0.8, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.2, 0.1), "interpolation": "bicubic"}
    monkeypatch.setitem(sys.modules, "timm", package)
    monkeypatch.setitem(sys.modules, "timm.data", data)


# prepare exports the model to ONNX, and turns timm's configuration of the data into the
# preprocessing that Noether applies.
def test_timm(timm):
    prepared = _models.prepare("timm:net.a1_in1k")
    assert prepared.name == "net.a1_in1k"
    # 40 is the shorter side, 32, divided by crop_pct.
    assert prepared.preprocess == {"resize": 40, "crop": [32, 48], "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.1], "interpolation": "bicubic"}
    assert noether.inspect(prepared.path)["inputs"][0]["shape"].endswith("3 x 32 x 48")
    with pytest.raises(noether.Error, match=r"^timm:other: Unknown model \(other\)$"):
        _models.prepare("timm:other")


def test_without_timm(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)  # lets the import fail
    with pytest.raises(noether.Error, match="pip install timm"):
        _models.prepare("timm:net")
