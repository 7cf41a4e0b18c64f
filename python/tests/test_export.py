"""Runs written for other places, read by their own libraries where these are installed."""

import json
import xml.etree.ElementTree as xml

import networks
import pytest

import noether_ml


@pytest.fixture
def run(images):
    return noether_ml.measure(networks.small_resnet(), images, name="net", layers="output", quiet=True, measures=["effective-invariance", "distance"],
                              transforms=[{"name": "tilt", "rotate": {"values": [5, 20]}}, {"name": "flip", "flip": "horizontal"}])


def test_each_place(run, tmp_path):
    (tmp_path / "README.md").write_text("# Net\n")
    assert run.export("model-card", tmp_path / "README.md") is None
    card = (tmp_path / "README.md").read_text("utf-8")
    assert card.startswith("# Net\n\n<!-- noether: begin -->") and "| net |" in card
    assert "<svg" in (tmp_path / "README-noether.svg").read_text("utf-8")
    assert json.loads(run.export("eee", relationship="first_party"))["model_info"]["name"] == "net"
    assert xml.fromstring(run.export("junit")).find("testsuite").get("name") == "net"
    assert "worst: " in run.export("badge", statistic="ei")
    with pytest.raises(noether_ml.Error, match="--dataset"):
        run.export("hf-eval")
    with pytest.raises(noether_ml.Error, match="--to leaderboard is not one of"):
        run.export("leaderboard")


def test_results_of_the_hub(run, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    yaml = pytest.importorskip("yaml")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("needs a huggingface_hub that reads .eval_results")
    path = tmp_path / ".eval_results" / "noether.yaml"
    run.export("hf-eval", path, dataset="acme/rotated", source="https://example.org/run", measure="effective-invariance", statistic="ei")
    entries = hub.parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8")))
    scores = run.scores
    expected = scores[(scores.measure == "effective-invariance") & (scores.statistic == "ei") & (scores.mean_over != "") | (scores.transformation == "flip") & (scores.statistic == "ei")]
    assert {e.task_id: e.value for e in entries} == {f"data.{r.transformation}.effective-invariance.ei": r.value for r in expected.itertuples()}
    assert all(e.dataset_id == "acme/rotated" and e.source_url and "n = 16" in e.notes for e in entries)
