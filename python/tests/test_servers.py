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
from noether_ml import _export, _measure, _server, _torch

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
def running(command, url, ready, log, **options):
    """Run a server until the block ends, which begins when the server answers at the addresses ready."""
    with open(log, "wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, **options) as server:
        try:
            for _ in range(1800):
                assert server.poll() is None, log.read_text()
                with contextlib.suppress(OSError):
                    for address in ready:
                        urllib.request.urlopen(address, timeout=5).close()
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


def mlserver(path, vjp, folder):
    port = free_port()
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "parallel_workers": 0}))
    for name, keys in (("net", {"implementation": "mlserver_onnx.Onnx", "parameters": {"uri": str(path), "version": "v1"},
                                "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]}),
                       ("net.vjp", {"implementation": "mlserver_onnx.Vjp", "parameters": {"uri": str(vjp), "version": "v1"}})):
        (folder / name).mkdir()
        (folder / name / "model-settings.json").write_text(json.dumps({"name": name, **keys}))
    environment = {**os.environ, "PYTHONPATH": str(HERE / "servers")}
    command = [PYTHON, "-c", "from mlserver.cli.main import main; main()", "start", str(folder)]
    url = f"http://127.0.0.1:{port}/v2/models/net"
    return running(command, url, [url + "/ready", url + ".vjp/ready"], folder / "log", env=environment, cwd=folder)


def kserve(path, vjp, folder):
    port = free_port()
    command = [PYTHON, HERE / "servers/kserve_onnx.py", str(path), *([str(vjp)] if vjp else []), f"--http_port={port}"]
    url = f"http://127.0.0.1:{port}/v2/models/net"
    return running(command, url, [url + "/ready", *([url + ".vjp/ready"] if vjp else [])], folder / "log", cwd=folder)


@contextlib.contextmanager
def worker(module):
    """Serve a module as noether_ml.measure does with engine="torch"."""
    with _torch.model(module, torch.zeros(2, 3, 32, 32)) as served:
        models = {"net": served, **{f"net{end}": m for end, m in served.derivatives().items()}}
        with _server.serving(models) as address:
            yield address + "/v2/models/net"


def exported(module, layers, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = onnx.load(_export.export(module, (3, 32, 32)))
    for name in layers:
        graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    onnx.save(graph, path)
    return path


def gradients(path, layers, folder):
    """Write the network of a file with the gradients of layers, each for a cotangent of its own."""
    for i, name in enumerate(layers):
        next = folder / f"vjp-{i}.onnx"
        noether_ml.grad(path, next, of=name, by="input", cotangent=f"cotangent {name}")
        path = next
    return path


@pytest.mark.parametrize("make, layers", [
    (networks.small_resnet, ["layer1.0", "layer2.0"]), (networks.small_vit, ["encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_1"])])
def test_scores_are_those_of_the_file(make, layers, images, tmp_path):
    """Predictions, layers, SEIS and inversion (STIR) of a network, run in four ways."""
    torch.manual_seed(1)
    module, other = networks.trained(make()).eval(), networks.trained(make()).eval()
    path = exported(module, layers, tmp_path / "net.onnx")
    for name in ("mlserver", "kserve"):
        (tmp_path / name).mkdir()
    vjp = gradients(path, [*layers, "output"], tmp_path)
    axes = {} if make is networks.small_resnet else {"axes": dict.fromkeys(layers, "NTC")}
    common = {"layers": [*layers, "output"], "output": "output", "scores": "logits", **axes}
    with mlserver(path, vjp, tmp_path / "mlserver") as a, kserve(path, vjp, tmp_path / "kserve") as b, worker(module) as c:
        ways = {"file": {"onnx": str(path)}, "mlserver": {"url": a}, "kserve": {"url": b}, "worker": {"url": c}}
        run = _measure.run({
            "name": "servers", "data": _measure._data.prepare(images[:8], None, None, None)[0].entry,
            "models": [*({"name": name, **where, **common} for name, where in ways.items()),
                       {"name": "other", "onnx": str(exported(other, layers, tmp_path / "other.onnx")), **common}],
            "transforms": [{"name": "quarter", "rotate": {"values": [90]}}],
            "measures": ["effective-invariance", "prediction-divergence", "distance", "seis", "similarity",
                         {"stir": {"between": [[name, "other"] for name in ways], "layers": "same", "steps": 4, "images": 4}}]}, tmp_path / "run", quiet=True)
    assert not run.failures
    # Without labels, the agreement of the models with the first one is measured too.
    scores = run.scores[run.scores.measure != "prediction-agreement"].set_index(["layer", "transformation", "parameter", "measure", "variant", "statistic"])
    file = scores[scores.model == "file"].value
    assert {"effective-invariance", "distance", "seis", "stir"} <= set(file.index.get_level_values("measure"))
    for name in ways:
        served = scores[scores.model == name].value
        assert len(file) == len(served) > 40
        difference = (file - served.reindex(file.index)).abs() / file.abs().clip(lower=1)
        assert difference.max() < 1e-4, (name, difference.sort_values()[-5:])


def test_the_guide_has_what_is_tested():
    guide = (HERE.parent.parent / "docs/guides/inference-server.md").read_text()
    for name, first in (("onnx_gradients", "GRADIENT = "), ("mlserver_onnx", "class Vjp")):
        text = (HERE / f"servers/{name}.py").read_text()
        assert text[text.index(first):] in guide


def test_a_server_that_ends(images, tmp_path):
    """What the server does not answer fails, with one line; the rest stays."""
    module = networks.small_resnet()
    path = _export.export(module, (3, 32, 32))
    data = _measure._data.prepare(images, None, None, None)[0].entry
    (tmp_path / "server").mkdir()
    with kserve(path, None, tmp_path / "server") as url:
        pass
    with pytest.warns(UserWarning, match="noether"):
        run = _measure.run({
            "name": "ends", "data": data, "models": [{"name": "file", "onnx": str(path)}, {"name": "served", "url": url}],
            "transforms": [{"flip": "horizontal"}], "measures": ["distance"]}, tmp_path / "run", quiet=True)
    assert set(run.scores.model) == {"file"}
    assert all("\n" not in f["error"] and "connection refused" in f["error"] for f in run.failures)
    assert isinstance(run, noether_ml.Run)
