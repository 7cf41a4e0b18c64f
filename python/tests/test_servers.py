"""Models on inference servers that people use: MLServer, which takes JSON, and KServe, which takes bytes.

They are in an environment of their own: see requirements-servers.txt.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from pathlib import Path

import networks
import onnx
import pytest
import torch

import noether_ml
from noether_ml import _command, _export, _measure

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


def mlserver(files, folder):
    port = free_port()
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port(), "parallel_workers": 0}))
    for name, path in files.items():
        graph = onnx.load(path).graph
        inputs, outputs = ([{"name": v.name, "datatype": "FP32", "shape": [-1, *(d.dim_value for d in v.type.tensor_type.shape.dim[1:])]} for v in values]
                           for values in (graph.input, graph.output))
        (folder / name).mkdir()
        (folder / name / "model-settings.json").write_text(json.dumps({
            "name": name, "implementation": "mlserver_onnx.Onnx", "parameters": {"uri": str(path), "version": "v1"}, "inputs": inputs, "outputs": outputs}))
    environment = {**os.environ, "PYTHONPATH": str(HERE / "servers")}
    command = [PYTHON, "-c", "from mlserver.cli.main import main; main()", "start", str(folder)]
    return running(command, f"http://127.0.0.1:{port}/v2/models/net", folder / "log", env=environment, cwd=folder)


def kserve(files, folder):
    port = free_port()
    command = [PYTHON, HERE / "servers/kserve_onnx.py", *(f"{name}={path}" for name, path in files.items()), f"--http_port={port}"]
    return running(command, f"http://127.0.0.1:{port}/v2/models/net", folder / "log", cwd=folder)


def exported(module, layers, folder):
    """Export a module with layers as outputs, and its gradient by a cotangent of the first layer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = onnx.load(_export.export(module, (3, 32, 32)))
    shapes = {v.name: v for v in onnx.shape_inference.infer_shapes(graph).graph.value_info}
    graph.graph.output.extend(shapes[name] for name in layers)
    onnx.save(graph, folder / "net.onnx")
    subprocess.run([_command.program(), "grad", folder / "net.onnx", "-o", folder / "vjp.onnx", f"--of={layers[0]}", "--by=input",
                    f"--cotangent=cotangent {layers[0]}"], check=True, capture_output=True)
    vjp = onnx.load(folder / "vjp.onnx")
    gradient, = (o for o in vjp.graph.output if o.name not in [*layers, "output"])
    vjp.graph.node.append(onnx.helper.make_node("Identity", [gradient.name], ["gradient input"]))
    gradient.name = "gradient input"
    onnx.save(vjp, folder / "vjp.onnx")
    return {"net": folder / "net.onnx", "net.vjp": folder / "vjp.onnx"}


@pytest.mark.parametrize("make, layers", [
    (networks.small_resnet, ["layer1.0", "layer2.0"]), (networks.small_vit, ["encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_1"])])
def test_scores_are_those_of_the_file(make, layers, images, tmp_path):
    """Predictions, layers, SEIS and inversion: the file, MLServer, KServe, and the worker that runs the module."""
    torch.manual_seed(1)
    module = networks.trained(make())
    files = exported(module, layers, tmp_path)
    torch.save(module, tmp_path / "net.pt")
    (tmp_path / "mine.py").write_text(f"import sys, torch\nsys.path.append({str(HERE)!r})\ndef net(): return torch.load({str(tmp_path / 'net.pt')!r}, weights_only=False), (3, 32, 32)\n")
    data = _measure._data.prepare(images, None, None, None)[0].entry
    axes = {} if make is networks.small_resnet else {"axes": dict.fromkeys(layers, "NTC")}
    common = {"layers": [*layers, "output"], "output": "output", "scores": "logits", "preprocess": {"crop": [32, 32]}, **axes}
    measures = ["effective-invariance", "prediction-divergence", "distance", "seis", "similarity"]
    found = []
    with contextlib.ExitStack() as stack:
        models = [{"name": "file", "onnx": str(files["net"])}, {"name": "worker", "python": "mine:net"}]
        for server in (mlserver, kserve):
            (tmp_path / server.__name__).mkdir()
            models.append({"name": server.__name__, "url": stack.enter_context(server(files, tmp_path / server.__name__))})
        stir = [{"stir": {"between": [m["name"], models[m["name"] == "file"]["name"]], "layers": "same", "steps": 8, "images": 8}} for m in models]
        for name, chosen in (("read", {"measures": measures}), ("inverted", {"measures": stir, "layers": layers[:1]})):
            own = {"layers": chosen.pop("layers")} if "layers" in chosen else {}
            run = _measure.run({
                "name": name, "python": sys.executable, "python-path": [str(tmp_path)], "data": data, "models": [{**m, **common, **own} for m in models],
                "transforms": [{"name": "quarter", "rotate": {"values": [90, 180]}}], **chosen}, tmp_path / name, quiet=True, allow_python=True)
            assert not run.failures
            scores = run.scores.set_index(["layer", "transformation", "parameter", "measure", "variant", "statistic"])
            found.append([scores[scores.model == m["name"]].value for m in models])
    for (file, *others), least in zip(found, (50, 3)):
        for served in others:
            assert len(file) == len(served) > least
            difference = (file - served).abs()
            assert difference.max() < 1e-3, difference.sort_values()[-10:]


def test_a_server_that_ends(images, tmp_path):
    """What the server does not answer fails, with one line; the rest stays."""
    module = networks.small_resnet()
    path = _export.export(module, (3, 32, 32))
    data = _measure._data.prepare(images, None, None, None)[0].entry
    (tmp_path / "server").mkdir()
    with kserve({"net": path}, tmp_path / "server") as url:
        pass
    with pytest.warns(UserWarning, match="noether"):
        run = _measure.run({
            "name": "ends", "data": data, "models": [{"name": "file", "onnx": str(path)}, {"name": "served", "url": url}],
            "transforms": [{"flip": "horizontal"}], "measures": ["distance"]}, tmp_path / "run", quiet=True)
    assert set(run.scores.model) == {"file"}
    assert all("\n" not in f["error"] and "connection refused" in f["error"] for f in run.failures)
    assert isinstance(run, noether_ml.Run)
