"""Scores in MLflow, by its own tracking server, and read by its own client.

It is in the environment of the inference servers: see requirements-servers.txt.
"""

import json
import subprocess

import networks
import pytest
import torch
from test_servers import PYTHON, free_port, running

import noether_ml
from noether_ml import _command

READ = """
import json, sys, mlflow
client = mlflow.MlflowClient(sys.argv[1])
found = []
for run in client.search_runs([client.get_experiment_by_name(sys.argv[2]).experiment_id]):
    history = {key: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, key)] for key in run.data.metrics}
    found.append({"status": run.info.status, "tags": run.data.tags, "params": run.data.params, "metrics": history,
                  "files": [f.path for f in client.list_artifacts(run.info.run_id)], "id": run.info.run_id})
json.dump(found, sys.stdout)
"""


def test_scores_in_mlflow(images, tmp_path):
    torch.manual_seed(1)
    run = noether_ml.measure(networks.Shared(), images, layers=["relu", "penultimate"], name="first look", folder=tmp_path / "run", quiet=True, tags={"family": "small"})
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [PYTHON, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
               "--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db", "--artifacts-destination", str(tmp_path / "artifacts")]
    with running(command, url, [url + "/health"], tmp_path / "log", cwd=tmp_path):
        done = subprocess.run([_command.program(), "export", str(run.folder), "--mlflow", url], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        read = subprocess.run([PYTHON, "-c", READ, url, "first look"], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    found = json.loads(read.stdout)
    (whole,) = (r for r in found if "mlflow.parentRunId" not in r["tags"])
    (model,) = (r for r in found if r["tags"].get("mlflow.parentRunId") == whole["id"])
    assert {whole["status"], model["status"]} == {"FINISHED"} and model["tags"]["family"] == "small"
    assert {"scores.csv", "report.html", "study.yaml"} <= {*whole["files"], *model["files"]}
    scores = run.scores
    quarter = scores[(scores.transformation == "quarter") & (scores.parameter == 90)]
    (_, ei), = model["metrics"]["effective-invariance.ei/quarter/90"]
    assert ei == pytest.approx(quarter[(quarter.layer == "") & (quarter.statistic == "ei")].value.iloc[0])
    of_layers = quarter[quarter.statistic == "cosine"].sort_values("depth")
    got = sorted(model["metrics"]["distance.cosine/quarter/90"])
    assert [step for step, _ in got] == list(of_layers.depth)
    assert [value for _, value in got] == pytest.approx(list(of_layers.value))
