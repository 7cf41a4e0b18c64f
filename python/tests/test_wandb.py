"""Logging to Weights & Biases, by the package itself, offline."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import networks
import pytest
import torch

import noether_ml
from noether_ml import _wandb

needs_wandb = pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="needs wandb")


# Measures two layers of a small convolutional network on the 16 random images of the fixture images
# in conftest.py, with the default transformations and measures.
@pytest.fixture
def run(images, tmp_path):
    torch.manual_seed(1)
    return noether_ml.measure(networks.Shared(), images, layers=["relu", "penultimate"], name="first look", folder=tmp_path / "run", quiet=True)


def records(folder):
    """Return the records that wandb has written for a run, which "wandb sync" would send.

    wandb writes them in a process of its own, the exit code last.
    """
    deadline = time.monotonic() + 120
    while True:
        found = written(folder)
        if any(r.WhichOneof("record_type") == "exit" for r in found):
            return found
        assert time.monotonic() < deadline
        time.sleep(0.1)


def written(folder):
    """Return the records that are in the file of a run so far.

    The file is a log of LevelDB after a header of seven bytes: blocks of 32 KiB with records of a
    checksum (4 bytes), a length (2), a type (1; 1 whole, 2 first, 3 middle, 4 last part) and the data.
    """
    from wandb.proto import wandb_internal_pb2

    (path,) = Path(folder).glob("run-*.wandb")
    data, at, found, part = path.read_bytes(), 7, [], b""
    while at < len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        part += data[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(part)
            found.append(record)
            part = b""
    return found


def values(items):
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


@needs_wandb
def test_to_wandb(run, tmp_path):
    """Check the scores for a rotation by 90 degrees (quarter). Those of predictions (ei, effective invariance) have no layer."""
    (folder,) = run.to_wandb(folder=tmp_path)
    assert Path(folder).parent == tmp_path / "wandb"
    found = records(folder)
    (started,) = (r.run for r in found if r.WhichOneof("record_type") == "run")
    assert started.project == "first look" and started.run_group == "first look"
    # Names in wandb are measure.statistic/transformation/parameter. With /low they are those of the
    # lower end of the 95 % interval. A layer's depth is the number of nodes on the longest path to
    # it from the input.
    summary = {}
    for r in found:
        if r.WhichOneof("record_type") == "summary":
            summary.update(values(r.summary.update))
    scores = run.scores
    quarter = scores[(scores.transformation == "quarter") & (scores.parameter == 90)]
    of_predictions = quarter[(quarter.layer == "") & (quarter.statistic == "ei")].iloc[0]
    assert summary["effective-invariance.ei/quarter/90"] == of_predictions.value and summary["effective-invariance.ei/quarter/90/low"] == of_predictions.low
    steps = [step for step in (values(r.history.item) for r in found if r.WhichOneof("record_type") == "history") if "depth" in step]
    depths = [step["depth"] for step in steps]
    assert depths == sorted(set(scores[scores.layer != ""].depth))
    for step in steps:
        of_layer = quarter[(quarter.depth == step["depth"]) & (quarter.statistic == "cosine")]
        assert step["distance.cosine/quarter/90"] == of_layer.value.iloc[0]
    (artifact,) = (r.artifact for r in found if r.WhichOneof("record_type") == "artifact") if any(r.WhichOneof("record_type") == "artifact" for r in found) else \
        (r.request.log_artifact.artifact for r in found if r.request.WhichOneof("request_type") == "log_artifact")
    assert [e.path for e in artifact.manifest.contents] == sorted(["study.yaml", "run.json", "scores.csv", "scores.parquet", "report.html"])
    assert next(r.exit.exit_code for r in found if r.WhichOneof("record_type") == "exit") == 0


# main is the command noether export-wandb.
@needs_wandb
def test_command(run, tmp_path, capsys):
    assert _wandb.main([str(run.folder), "--project", "mine", "--dir", str(tmp_path)]) == 0
    folder = capsys.readouterr().out.strip()
    assert "offline-run-" in folder and any(r.run.project == "mine" for r in records(folder))


def test_without_the_package(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(noether_ml.Error, match="pip install wandb"):
        run.to_wandb()
    root = Path(__file__).resolve().parents[1]
    code = "import sys; sys.modules['wandb'] = None; sys.argv[:] = ['noether', *sys.argv[1:]]; from noether_ml.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "export-wandb", str(run.folder)], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.strip() == "noether: logging to Weights & Biases needs the package wandb: pip install wandb"
