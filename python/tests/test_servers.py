"""Models on inference servers that people use: MLServer, which takes JSON, and KServe, which takes bytes.

They are in an environment of their own: see requirements-servers.txt.
"""

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.request
import warnings
from pathlib import Path

import networks
import onnx
import pytest
import torch

import noether_ml
from noether_ml import _export, _measure

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parent / ".servers/bin/python"

if not PYTHON.exists():
    if os.environ.get("NOETHER_TESTDATA"):  # is set where everything that tests need is installed
        raise FileNotFoundError(f"{PYTHON}: install requirements-servers.txt there")
    pytest.skip(f"there is no {PYTHON}", allow_module_level=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(command, url, log, **options):
    """Run a server until the block ends, which begins when the server has the model."""
    with open(log, "wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, **options) as server:
        try:
            for _ in range(600):
                assert server.poll() is None, log.read_text()
                with contextlib.suppress(OSError), urllib.request.urlopen(url + "/ready", timeout=5) as answer:
                    if answer.status == 200:
                        break
                time.sleep(0.1)
            else:
                pytest.fail(log.read_text())
            yield url
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def mlserver(path, folder):
    port = free_port()
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "parallel_workers": 0}))
    (folder / "model-settings.json").write_text(json.dumps({
        "name": "net", "implementation": "mlserver_onnx.Onnx", "parameters": {"uri": str(path), "version": "v1"},
        "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]}))
    environment = {**os.environ, "PYTHONPATH": str(HERE / "servers")}
    command = [PYTHON, "-c", "from mlserver.cli.main import main; main()", "start", str(folder)]
    return running(command, f"http://127.0.0.1:{port}/v2/models/net", folder / "log", env=environment, cwd=folder)


def kserve(path, folder):
    port = free_port()
    command = [PYTHON, HERE / "servers/kserve_onnx.py", str(path), f"--http_port={port}"]
    return running(command, f"http://127.0.0.1:{port}/v2/models/net", folder / "log", cwd=folder)


@pytest.mark.parametrize("server", [mlserver, kserve])
@pytest.mark.parametrize("make, layers", [
    (networks.small_resnet, ["layer1.0", "layer2.0"]), (networks.small_vit, ["encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_1"])])
def test_scores_are_those_of_the_file(server, make, layers, images, tmp_path):
    torch.manual_seed(1)
    module = networks.trained(make())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = onnx.load(_export.export(module, (3, 32, 32)))
    for name in layers:
        graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    path = tmp_path / "net.onnx"
    onnx.save(graph, path)
    (tmp_path / "server").mkdir()
    data = _measure._data.prepare(images, None, None, None)[0].entry
    axes = {} if make is networks.small_resnet else {"axes": dict.fromkeys(layers, "NTC")}
    common = {"layers": [*layers, "output"], "output": "output", "scores": "logits", **axes}
    with server(path, tmp_path / "server") as url:
        run = _measure.run({
            "name": "servers", "data": data, "models": [{"name": "file", "onnx": str(path), **common}, {"name": "served", "url": url, **common}],
            "transforms": [{"name": "quarter", "rotate": {"values": [90, 180]}}],
            "measures": ["effective-invariance", "prediction-divergence", "distance", "seis", "similarity"]}, tmp_path / "run", quiet=True)
    # Without labels, the agreement of the models with the first one is measured too.
    scores = run.scores[run.scores.measure != "prediction-agreement"].set_index(["layer", "transformation", "parameter", "measure", "statistic"])
    file, served = (scores[scores.model == name].value for name in ("file", "served"))
    assert len(file) == len(served) > 50
    assert (file - served).abs().max() < 1e-4
    assert not run.failures


def test_a_server_that_ends(images, tmp_path):
    """What the server does not answer fails, with one line; the rest stays."""
    module = networks.small_resnet()
    path = _export.export(module, (3, 32, 32))
    data = _measure._data.prepare(images, None, None, None)[0].entry
    (tmp_path / "server").mkdir()
    with kserve(path, tmp_path / "server") as url:
        pass
    with pytest.warns(UserWarning, match="noether"):
        run = _measure.run({
            "name": "ends", "data": data, "models": [{"name": "file", "onnx": str(path)}, {"name": "served", "url": url}],
            "transforms": [{"flip": "horizontal"}], "measures": ["distance"]}, tmp_path / "run", quiet=True)
    assert set(run.scores.model) == {"file"}
    assert all("\n" not in f["error"] and "connection refused" in f["error"] for f in run.failures)
    assert isinstance(run, noether_ml.Run)
