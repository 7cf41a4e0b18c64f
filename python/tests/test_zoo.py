"""A few networks of the zoo (python/zoo), by tracing and by the worker. make zoo has all, by dynamo too."""

import json

import pytest

pytest.importorskip("timm")
pytest.importorskip("torchvision")
pytest.importorskip("transformers", minversion="5")
from zoo import check, page


@pytest.mark.parametrize("name", ["timm/lcnet_050", "transformers/Wav2Vec2ForSequenceClassification"])
def test_network(name, tmp_path):
    """A network of images and one of audio."""
    ways = ("tracing", "worker")  # dynamo takes a minute
    found = check.check(name, tmp_path / "found.json", ways)
    assert found == json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert {way: page.problem(found, way) for way in ways} == dict.fromkeys(ways, "")
    layers = found["tracing"]["layers"]
    assert 0 < layers["default"] <= layers["all"]


def test_what_fails():
    """A step that failed, that was not done or whose gradient is off is a problem, and the way that measure takes counts."""
    good = {"export": True, "layers": {"all": 3, "default": 2, "named": 2}, "run": {"scores": 5, "undefined": 0}, "gradient": 1e-6}
    served = {key: value for key, value in good.items() if key != "export"}
    cases = {
        "": good, "export: no": {"export": "error: no"}, "run: not finished after 9 s": {k: v for k, v in good.items() if k != "run"} | {"late": "not finished after 9 s"},
        "layers: no names of modules: /Add": {**good, "layers": {"all": 3, "default": 2, "named": 1, "others": ["/Add"]}},
        "gradient: 1e-02 from PyTorch's, which differs by 1e-04 by rounding; in float64 not computed": {**good, "gradient": 0.01},
        "gradient: 1e-02 from PyTorch's, which differs by 1e-04 by rounding; in float64 0.02": {**good, "gradient": 0.01, "gradient in float64": 0.02},
        "run: no score is defined": {**good, "run": {"scores": 5, "undefined": 5}},
    }
    assert page.problem({"tracing": {**good, "gradient": 0.01, "gradient in float64": 1e-12}}, "tracing") == ""
    for text, case in cases.items():
        assert page.problem({"tracing": case, "gradient in float32": 1e-4}, "tracing") == text
    assert page.taken({"tracing": {"export": "error: no"}, "dynamo": good}) == "dynamo" and page.taken({"worker": served}) == "worker"
    assert page.problem({"worker": served}, "worker") == "" and page.problem({"problem": "its process hung"}, "worker") == "its process hung"
    table = page.tables({"timm/resnet18": {"tracing": good, "dynamo": {"export": "error: a|b"}, "worker": served}})
    assert "| timm | 1 | 1 | 1 | 1 | 0 | 1 |" in table and "| timm/resnet18 | dynamo | export: a¦b |" in table and "| ok | no file | ok | 2 of 2 | 1e-06 |" in table


def test_in_float64(tmp_path):
    """The gradient of a file in float64 is PyTorch's to rounding of constants, such as 1/6, in float32."""
    found = check.Check("timm/lcnet_050", tmp_path / "found.json")
    found.by("tracing")
    assert 0 < found.gradient_in_float64() < 1e-7
