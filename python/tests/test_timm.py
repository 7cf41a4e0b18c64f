"""Models that are given as timm:NAME."""

import sys

import pytest

import noether_ml
from noether_ml import _models


# prepare exports the model to ONNX, and turns timm's configuration of the data into the
# preprocessing that Noether applies.
def test_timm(monkeypatch):
    timm = pytest.importorskip("timm")
    create = timm.create_model
    # Random weights in place of the pretrained ones, which would be downloaded.
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained: create(name, pretrained=not pretrained))
    prepared = _models.prepare("timm:convnext_atto.d2_in1k")
    assert prepared.name == "convnext_atto.d2_in1k"
    # 256 is the shorter side, 224, divided by crop_pct.
    assert prepared.preprocess == {"resize": 256, "crop": 224, "channels": 3, "interpolation": "bicubic",
                                   "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    found = noether_ml.inspect(prepared.path)
    assert found["inputs"][0]["shape"].endswith("3 x 224 x 224")
    assert {"stages.0", "stages.1", "stages.2", "stages.3"} & set(_models.chosen_layers(found))
    with pytest.raises(noether_ml.Error, match=r"^timm:other: Unknown model \(other\)"):
        _models.prepare("timm:other")


def test_without_timm(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)  # lets the import fail
    with pytest.raises(noether_ml.Error, match="pip install timm"):
        _models.prepare("timm:net")
