"""Logging to Weights & Biases, with a mock of the functions of wandb that are used."""

import subprocess
import sys
import types
from pathlib import Path

import networks
import pytest
import torch

import noether
from noether import _wandb


class MockRun:
    """A run of wandb that records what is logged, and rejects values that wandb would reject."""

    def __init__(self, options):
        self.options, self.summary, self.steps, self.metrics, self.artifacts, self.exit_code = options, {}, [], {}, [], None
        self.dir = str(Path(options["dir"] or ".") / "wandb" / f"offline-run-{options['name']}" / "files")

    def define_metric(self, name, step_metric=None):
        self.metrics[name] = step_metric

    def log(self, values):
        assert all(isinstance(v, (int, float)) for v in values.values())
        self.steps.append(values)

    def log_artifact(self, artifact):
        self.artifacts.append(artifact)

    def finish(self, exit_code=0):
        self.exit_code = exit_code


@pytest.fixture
def wandb(monkeypatch):
    package = types.ModuleType("wandb")
    package.runs = []

    def init(*, project, group, name, config, mode, dir):
        package.runs.append(MockRun(dict(project=project, group=group, name=name, config=config, mode=mode, dir=dir)))
        return package.runs[-1]

    class Artifact:
        def __init__(self, name, type):
            assert name and all(c.isalnum() or c in "-_." for c in name)
            self.name, self.files = name, []

        def add_file(self, path):
            assert Path(path).is_file()
            self.files.append(Path(path).name)

    package.init, package.Artifact = init, Artifact
    monkeypatch.setitem(sys.modules, "wandb", package)
    return package


# Measures two layers of a small convolutional network on the 16 random images of the fixture images
# in conftest.py, with the default transformations and measures.
@pytest.fixture
def run(images, tmp_path):
    torch.manual_seed(1)
    return noether.measure(networks.Shared(), images, layers=["relu", "penultimate"], name="first look", folder=tmp_path / "run", quiet=True)


def test_to_wandb(run, wandb, tmp_path):
    """Check the scores for a rotation by 90 degrees (quarter). Those of predictions (ei, effective invariance) have no layer."""
    folders = run.to_wandb(folder=tmp_path)
    (logged,) = wandb.runs
    assert folders == [str(tmp_path / "wandb" / f"offline-run-{logged.options['name']}")]
    assert logged.options["mode"] == "offline" and logged.options["project"] == "first look" and logged.exit_code == 0
    # Names in wandb are measure.statistic/transformation/parameter. With /low they are those of the
    # lower end of the 95 % interval. A layer's depth is the number of nodes on the longest path to
    # it from the input.
    scores = run.scores
    of_predictions = scores[(scores.layer == "") & (scores["transform"] == "quarter") & (scores.parameter == "90") & (scores.statistic == "ei")].iloc[0]
    assert logged.summary["effective-invariance.ei/quarter/90"] == of_predictions.value and logged.summary["effective-invariance.ei/quarter/90/low"] == of_predictions.low
    depths = [step["depth"] for step in logged.steps]
    assert depths == sorted(set(scores[scores.layer != ""].depth))
    for step in logged.steps:
        of_layer = scores[(scores.depth == step["depth"]) & (scores["transform"] == "quarter") & (scores.parameter == "90") & (scores.statistic == "cosine")]
        assert step["distance.cosine/quarter/90"] == of_layer.value.iloc[0]
    assert logged.metrics["distance.cosine/quarter/90"] == "depth"
    assert logged.artifacts[0].files == ["study.yaml", "run.json", "scores.csv", "scores.parquet", "report.html"]


# main is the command noether export-wandb.
def test_command(run, wandb, tmp_path, capsys):
    assert _wandb.main([str(run.folder), "--project", "mine", "--dir", str(tmp_path)]) == 0
    assert wandb.runs[0].options["project"] == "mine" and "offline-run-" in capsys.readouterr().out


# The environment of the tests has no package wandb, so the import fails.
def test_without_the_package(run, tmp_path):
    with pytest.raises(noether.Error, match="pip install wandb"):
        run.to_wandb()
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-m", "noether", "export-wandb", str(run.folder)], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.strip() == "noether: logging to Weights & Biases needs the package wandb: pip install wandb"
