"""Modules that run in this process, served to the command, instead of as exported files."""

import threading
import warnings

import networks
import numpy
import pytest
import torch
from torch import nn

import noether_ml
from noether_ml import _measure, _server, _torch

FLIP = [{"name": "flip", "flip": "horizontal"}]
KEYS = ["layer", "transformation", "parameter", "measure", "statistic"]


class Untraceable(nn.Module):
    """Its features pass through NumPy, which the exporter takes for constants."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.from_numpy(self.conv(x).relu().numpy().mean((2, 3))))


@pytest.mark.parametrize("make", [networks.Shared, networks.small_resnet, networks.small_vit, networks.small_swin, networks.small_convnext])
def test_scores_are_those_of_the_exported_file(make, images):
    torch.manual_seed(1)
    module = networks.trained(make())
    with _torch.model(module, torch.zeros(2, 3, 32, 32)) as served:
        names = [p.name for p in served.layers if p.shape[0] == -1]
    found = {}
    for engine in ("onnx", "torch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = noether_ml.measure(module, images, transforms=FLIP, engine=engine, quiet=True, layers=[*names, "output"],
                                     measures=["effective-invariance", "distance", "similarity"])
        found[engine] = run.scores.set_index(KEYS).value
    exported, served = found["onnx"], found["torch"]
    common = exported.index.intersection(served.index)
    assert len(common) > 0.9 * len(exported)
    assert (exported[common] - served[common]).abs().max() < 1e-4


def test_a_module_that_cannot_be_exported_is_served(images):
    module = Untraceable()
    run = noether_ml.measure(module, images, transforms=FLIP, engine="torch", quiet=True, measures=["distance"], layers=["conv", "output"])
    scores = run.scores[(run.scores.layer == "conv") & (run.scores.statistic == "l2")]
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        want = (module.conv(x) - module.conv(x.flip(3))).flatten(1).norm(dim=1).mean().item()
    assert scores.value.iloc[0] == pytest.approx(want, rel=1e-5)
    assert module.training  # as before


def test_the_folder_follows_the_weights(images):
    def folder(module):
        return noether_ml.measure(module, images, transforms=FLIP, engine="torch", quiet=True, measures=["distance"], layers=["conv"]).folder

    module = Untraceable()
    first = folder(module)
    assert folder(module) == first
    with torch.no_grad():
        module.conv.weight += 1
    assert folder(module) != first


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_types(dtype, images):
    torch.manual_seed(1)
    module = networks.small_resnet().eval()
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        want = (module(x) - module(x.flip(3))).norm(dim=1).mean().item()
    run = noether_ml.measure(module.to(dtype), images, transforms=FLIP, engine="torch", quiet=True, measures=["distance"], layers=["output"])
    got = run.scores[run.scores.statistic == "l2"].value.iloc[0]
    assert got == pytest.approx(want, rel=1e-5 if dtype == torch.float64 else 0.1)


@pytest.mark.skipif(not hasattr(torch, "_dynamo"), reason="needs torch.compile, of PyTorch 2")
@pytest.mark.parametrize("form", ["whole", "inside", "in place"])
def test_compiled_modules(form, images):
    """Outputs are computed by what torch.compile has made, where no layer is measured."""
    torch.manual_seed(1)
    module, calls = networks.trained(networks.small_resnet()).eval(), []

    def backend(graph, _inputs):
        return lambda *args: calls.append(len(args)) or graph(*args)

    given = module
    torch._dynamo.reset()
    if form == "whole":
        given = torch.compile(module, backend=backend)
    elif form == "inside":
        module.layer1 = torch.compile(module.layer1, backend=backend)
    else:
        module.compile(backend=backend)
    found, count = {}, {}
    for layers, measures in ((None, ["effective-invariance"]), (["layer1.0", "output"], ["effective-invariance", "distance"])):
        calls.clear()
        with pytest.warns(UserWarning, match="ResNet is compiled: what torch.compile has made of it computes outputs where no layer is measured"):
            run = noether_ml.measure(given, images, transforms=FLIP, engine="torch", quiet=True, preprocess="none", measures=measures, layers=layers)
        assert not run.failures
        count[layers is None], found[layers is None] = len(calls), run.scores[run.scores.statistic == "ei"].value.iloc[0]
    assert found[True] == pytest.approx(found[False], abs=1e-5)
    assert 0 < count[False] < count[True]  # the model is tried on noise, without layers, in both
    assert (form == "whole") or hasattr(module.layer1, "_orig_mod") == (form == "inside")  # as before


@pytest.mark.skipif(not hasattr(torch, "_dynamo"), reason="needs torch.compile, of PyTorch 2")
def test_a_compilation_that_fails(images):
    def backend(_graph, _inputs):
        raise ValueError("no luck\nand more")

    module = networks.small_resnet().eval()
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with _torch.model(torch.compile(module, backend=backend), x) as served, torch.no_grad():
        want, found = module(x), {}
        with pytest.warns(UserWarning, match="ResNet fails as torch.compile compiles it, ValueError: no luck; so the module inside runs"):
            served.run(x, {"output"}, lambda name, y, _: found.update({name: y}), compiled=True)
        served.run(x, {"output"}, lambda name, y, _: found.update({"again": y}), compiled=True)
    assert torch.equal(found["output"], want) and torch.equal(found["again"], want)


class InBfloat16(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.net(x)


@pytest.mark.parametrize("engine", [None, "torch"])
def test_autocast(engine, images):
    """Autocast of the caller's, or inside of forward, holds, whether or not a file could have it."""
    torch.manual_seed(1)
    module = networks.trained(networks.small_resnet()).eval()
    keys = dict(transforms=FLIP, quiet=True, measures=["distance"], layers=["output"], preprocess="none", engine=engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [noether_ml.measure(InBfloat16(module), images, **keys), noether_ml.measure(module, images, **keys)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            runs.append(noether_ml.measure(module, images, **keys))
    inside, plain, around = (run.scores[run.scores.statistic == "l2"].value.iloc[0] for run in runs)
    assert inside == around != plain


class Failing(nn.Module):
    def __init__(self, fail):
        super().__init__()
        self.conv, self.fail, self.calls = nn.Conv2d(3, 4, 3), fail, 0

    def forward(self, x):
        self.calls += 1
        print("a module that prints")
        y = self.conv(x).mean((2, 3))
        return self.fail(y) if self.calls > 6 else y


def raises(_y):
    raise ValueError("no luck\nand more lines")


@pytest.mark.parametrize("fail, want", [
    (raises, "ValueError: no luck"),
    (lambda y: y * float("nan"), "NaN or infinity"),
    (lambda y: y[:, :2], "shape"),
    (lambda y: y[:1], "changed during the run"),  # requests are halved until one sample is left, which fits
    (lambda y: "text", "did not compute output"),
])
def test_failures_are_one_line_and_others_stay(fail, want, images):
    models = {"good": networks.small_resnet(), "bad": Failing(fail)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(models, images, transforms=FLIP, engine="torch", quiet=True, measures=["distance"], layers="output")
    assert set(run.scores.model) == {"good"}
    assert any(want in str(f) and "\n" not in str(f["error"]) for f in run.failures), run.failures


class Identity(torch.autograd.Function):
    """The identity, of which change replaces the derivatives."""

    @staticmethod
    def forward(ctx, x, change):
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        return ctx.change(dy), None

    @staticmethod
    def jvp(ctx, dx, _):
        return ctx.change(dx)


class Sloped(nn.Module):
    def __init__(self, change):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.change = nn.Conv2d(3, 5, 3), change

    def forward(self, x):
        return Identity.apply(self.conv(x).mean((2, 3)), self.change)


@pytest.mark.parametrize("measure", [{"robust-accuracy": {"steps": 2, "radius": 0.5}}, {"lie-derivative": {"images": 8, "generators": ["translate-x"]}}])
def test_derivatives_that_fail(measure, images):
    """Of models whose derivatives fail, the other scores and the other models stay."""
    changes = {"good": lambda d: d, "prints": lambda d: print("to standard output") or d, "raises": raises, "shape": lambda d: d[:, :2], "batch": lambda d: d[:1], "nan": lambda d: d * float("nan")}
    labels = numpy.arange(len(images)) % 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure({name: Sloped(change) for name, change in changes.items()}, (images, labels), transforms=FLIP, engine="torch", quiet=True,
                                 measures=["distance", measure], layers="output", preprocess={"crop": [32, 32], "mean": [0, 0, 0], "std": [1, 1, 1]})
    rows = run.scores
    assert set(rows[rows.measure == "distance"].model) == set(changes)
    found = rows[rows.measure == next(iter(measure))].set_index(["model", "statistic"]).value
    assert found["good"].notna().all() and found["prints"].equals(found["good"])
    errors = {f["model"]: f["error"] for f in run.failures}
    assert set(errors) in ({"raises", "shape"}, {"raises", "shape", "nan"})
    assert abs(found["batch"] - found["good"]).max() < 1e-5  # requests are halved until one sample is left, which fits
    assert "ValueError: no luck" in errors["raises"] and not any("\n" in e for e in errors.values())
    if "nan" not in errors:
        assert found["nan"].isna().any()


def test_a_module_that_fails_at_once():
    module = Failing(raises)
    module.calls = 6
    with pytest.raises(noether_ml.Error, match=r"Failing.*fails on a batch of.*2, 3") as e:
        noether_ml.measure(module, numpy.zeros((4, 3, 16, 16), numpy.float32), engine="torch", quiet=True)
    assert "\n" not in str(e.value)


def test_engine_is_checked(images):
    with pytest.raises(noether_ml.Error, match='engine is "onnx" or "torch"'):
        noether_ml.measure(networks.small_resnet(), images, engine="jax")
    with pytest.raises(noether_ml.Error, match=r"runs a torch\.nn\.Module"):
        noether_ml.measure("model.onnx", images, engine="torch")


class Constant:
    """A model without PyTorch: its layer is its input, its output the mean."""

    inputs = (_server.Port("x", "FP32", (-1, 3)),)
    outputs = (_server.Port("y", "FP32", (-1, 1)),)
    layers = (_server.Port("copy", "FP32", (-1, 3)),)
    digest = "1"

    def infer(self, inputs, wanted, room):
        for name in wanted:
            if name == "copy":
                room(name, inputs["x"].shape)[:] = inputs["x"]
            if name == "y":
                room(name, (len(inputs["x"]), 1))[:] = inputs["x"].mean(1, keepdims=True)


def request(address, path, body=None, headers=None):
    """Send a request to a socket, and return its status, headers and body."""
    import http.client
    import socket

    connection = http.client.HTTPConnection("socket", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(address.removeprefix("unix:").partition(":")[0])
    connection.request("POST" if body is not None else "GET", path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def test_the_protocol():
    import json

    with _server.serving({"model": Constant()}) as address:
        status, _, body = request(address, "/v2/models/model")
        assert status == 200 and json.loads(body)["inputs"][0]["shape"] == [-1, 3]
        x = {"name": "x", "datatype": "FP32", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, 6]]}
        status, _, body = request(address, "/v2/models/model/infer", json.dumps({"inputs": [x]}))
        assert status == 200 and json.loads(body)["outputs"] == [{"name": "y", "shape": [2, 1], "datatype": "FP32", "data": [2, 5]}]
        head = json.dumps({"inputs": [{**x, "data": None, "parameters": {"binary_data_size": 24}}], "outputs": [
            {"name": "copy", "parameters": {"binary_data": True}}]}).replace('"data": null, ', "").encode()
        raw = numpy.arange(6, dtype=numpy.float32).tobytes()
        status, headers, body = request(address, "/v2/models/model/infer", head + raw, {_server.HEADER: str(len(head))})
        assert status == 200 and body[int(headers[_server.HEADER]):] == raw
        for path, body, want in [
            ("/v2/models/other", None, 404),
            ("/v2/models/model/infer", "not JSON", 500),
            ("/v2/models/model/infer", json.dumps({"inputs": [{**x, "datatype": "BYTES"}]}), 400),
            ("/v2/models/model/infer", json.dumps({"inputs": [x], "outputs": [{"name": "z"}]}), 500),
            ("/v2/systemsharedmemory/region/r/register", json.dumps({"key": "../../etc/passwd", "byte_size": 1}), 400),
            ("/v2/systemsharedmemory/region/r/register", json.dumps({"key": "/no-such", "byte_size": 1}), 400),
        ]:
            status, _, text = request(address, path, body)
            assert status == want and "error" in json.loads(text), (path, body)
    with pytest.raises(OSError):
        request(address, "/v2")
    assert not [t for t in threading.enumerate() if "serve_forever" in t.name]


class Disordered(Constant):
    """A model that returns the values of large batches in another order."""

    inputs = (_server.Port("image", "FP32", (-1, 3, 32, 32)),)
    outputs = (_server.Port("y", "FP32", (-1, 96)),)
    layers = ()
    most = 100

    def infer(self, inputs, wanted, room):
        x = inputs["image"].mean(3).reshape(-1, 96)
        for name in wanted:
            room(name, x.shape)[:] = x[::-1] if len(x) > self.most else x


def test_the_order_of_a_batch(images, tmp_path):
    other = Disordered()
    other.most = 4
    with _server.serving({"right": Disordered(), "disordered": other}) as address, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = _measure.run({"name": "order", "data": _measure._data.prepare(images, None, None, None)[0].entry, "transforms": FLIP, "measures": ["distance"],
                            "models": [{"name": name, "url": f"{address}/v2/models/{name}", "preprocess": "none"} for name in ("right", "disordered")]}, tmp_path / "run", quiet=True)
    found = run.scores.groupby("model").warning.first()
    assert "depend on the number of samples of its batch, or its place among them" in found["disordered"]
    assert "must give each sample its own values" in found["disordered"] and "first in node ," not in found["disordered"]
    assert "depend" not in str(found.get("right", ""))


class Scaled:
    """A model of two inputs, an image and a number of its own."""

    inputs = (_server.Port("image", "FP32", (-1, 3, 32, 32)), _server.Port("scale", "FP32", (1,)))
    outputs = (_server.Port("y", "FP32", (-1, 96)),)
    layers = ()
    digest = "1"

    def infer(self, inputs, wanted, room):
        for name in wanted:
            room(name, (len(inputs["image"]), 96))[:] = inputs["scale"] * inputs["image"].mean(3).reshape(-1, 96)


def test_a_model_of_two_inputs(images, tmp_path):
    with _server.serving({"scaled": Scaled()}) as address:
        models = [{"name": f"by {scale}", "url": address + "/v2/models/scaled", "inputs": {"scale": scale}, "preprocess": "none"} for scale in (1, 2.5)]
        run = _measure.run({"name": "two", "data": _measure._data.prepare(images, None, None, None)[0].entry, "models": models,
                            "transforms": [{"flip": "vertical"}], "measures": ["distance"]}, tmp_path / "run", quiet=True)
    assert not run.failures
    found = run.scores[run.scores.statistic == "l2"].set_index("model").value
    assert found["by 2.5"] == pytest.approx(2.5 * found["by 1"], rel=1e-5) and found["by 1"] > 0


def test_shared_memory_leaves_nothing(images):
    from pathlib import Path

    shm = Path("/dev/shm")
    before = set(shm.glob("noether-*"))
    noether_ml.measure(networks.small_resnet(), images, engine="torch", transforms=FLIP, quiet=True, measures=["distance"], layers="output")
    assert set(shm.glob("noether-*")) == before


def test_names_of_outputs():
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.output = nn.Linear(3, 2)

        def forward(self, x):
            y = self.output(x)
            return {"logits": y, "hidden": (x, [y])}

    with _torch.model(Nested(), torch.zeros(2, 3)) as served:
        assert [p.name for p in served.outputs] == ["result.logits", "result.hidden.0", "result.hidden.1.0"]
        assert [p.name for p in served.layers] == ["output"]
        assert served.layers[0].parameters == {"op": "Linear", "axes": "NC"}


VECTORS = [{"similarity": {"statistics": ["linear-cka"], "pool": "mean"}}, {"retrieval": {"pool": "max"}}]


@pytest.mark.parametrize("keeps", [False, True])
def test_vectors_and_sums_are_computed_by_the_module(keeps, images, monkeypatch, tmp_path):
    """The scores are those of whole activations; with keeps as where activations are on a graphics processor."""
    torch.manual_seed(1)
    module = networks.trained(networks.small_resnet())
    common = dict(transforms=[{"name": "turn", "rotate": {"values": [30, 60]}}], quiet=True, engine="torch", name="m", preprocess="none", input=(3, 32, 32),
                  layers=["layer1.0", "layer2.0"])

    def scores(name):
        """Measure in a cache of its own: others have representations, and runs."""
        monkeypatch.setenv("NOETHER_CACHE", str(tmp_path / name))
        found = []
        for part in (["distance"], VECTORS):  # a layer of which whole activations are read is not pooled
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = noether_ml.measure(module, images, measures=part, **common)
            assert not run.failures
            found.append(run.scores.set_index([*KEYS, "variant"]).value)
        return found

    asked, infer = [], _torch.Torch.infer
    monkeypatch.setattr(_torch.Torch, "extensions", {})
    whole = scores("whole")
    monkeypatch.setattr(_torch.Torch, "extensions", {"pools": True, "keeps": keeps})
    monkeypatch.setattr(_torch.Torch, "infer", lambda self, inputs, wanted, room: asked.append(dict(wanted)) or infer(self, inputs, wanted, room))
    for got, want in zip(scores("reduced"), whole):
        assert len(got) == len(want) > 3
        assert got.index.equals(want.index)
        assert (abs(got.to_numpy() - want.to_numpy()) <= 1e-4 * abs(want.to_numpy()) + 1e-5).all()
    used = {key for wanted in asked for parameters in wanted.values() for key in parameters}
    assert "pool" in used and ({"keep", "reduction"} <= used) == keeps
