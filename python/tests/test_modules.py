"""PyTorch modules: names and values of layers, and modules that cannot be exported."""

import collections
import copy
import dataclasses
import types
import warnings

import networks
import numpy
import onnx
import pytest
import torch
from torch import nn

import noether_ml
from noether_ml import _dynamo, _export

FLIP = [{"name": "flip", "flip": "horizontal"}]


def outputs_of_modules(module, x):
    """Return the output of each call of a submodule (of a tuple, the first tensor), by the name that the export gives it."""
    found, hooks = {}, []

    def keep(name):
        def hook(_module, _inputs, out):
            out = out[0] if isinstance(out, tuple) else out
            key, n = name, 0
            while key in found:
                n += 1
                key = f"{name}_{n}"
            found[key] = out.detach().clone()
        return hook

    for name, m in module.named_modules():
        if name:
            hooks.append(m.register_forward_hook(keep(name)))
    module.eval()
    with torch.no_grad():
        module(x)
    for h in hooks:
        h.remove()
    return found


@pytest.mark.parametrize("make", [networks.Shared, networks.small_resnet, networks.small_vit, networks.small_swin, networks.small_convnext])
def test_each_layer_has_the_values_of_its_module(make, images):
    torch.manual_seed(1)
    module = networks.trained(make())
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    plain, flipped = outputs_of_modules(module, x), outputs_of_modules(module, x.flip(3))
    # The distance between the values for x and for its mirror image differs from layer to layer.
    want = {name: (plain[name] - flipped[name]).flatten(1).norm(dim=1).mean().item() for name in plain
            if plain[name].dim() > 1 and len(plain[name]) == len(x)}
    run = noether_ml.measure(module, images, transforms=FLIP, measures=["distance"], layers=list(want), quiet=True)
    scores = run.scores
    scores = scores[scores.statistic == "l2"].groupby("layer").value.first()
    assert set(scores.index) == set(want)
    for name, value in want.items():
        assert scores[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name
    if make is networks.Shared:
        # relu and twin are called twice, twin is also named conv3, and stage.2 returns its input.
        assert {"relu", "relu_1", "twin", "twin_1", "stage.2"} <= set(want)


def test_scores_are_those_of_the_exported_file(images):
    module = networks.trained(networks.small_resnet())
    # seis measures how far a layer's activations for x predict those for the mirror image linearly.
    options = dict(transforms=FLIP, measures=["effective-invariance", "distance", "seis"], layers=["layer1", "layer2.0.conv1"], name="net", quiet=True,
                   preprocess={"crop": [32, 32], "mean": [0, 0, 0], "std": [1, 1, 1]})  # else that of a file is guessed
    of_module = noether_ml.measure(module, images, **options).scores
    path = _export.export(module, (3, 32, 32))
    of_file = noether_ml.measure(path, images, **options).scores
    assert list(of_module.layer) == list(of_file.layer)
    assert numpy.allclose(of_module.value, of_file.value, rtol=0, atol=1e-6, equal_nan=True)


def test_export_restores_mode_and_hooks():
    module = networks.Shared().train()
    module.bn1.eval()
    _export.export(module, (3, 32, 32))
    assert module.training and module.relu.training and not module.bn1.training
    assert not any(m._forward_hooks for m in module.modules())
    assert all(p.requires_grad for p in module.parameters())


def test_two_exports_have_the_same_path():
    module = networks.Shared()
    assert _export.export(module, (3, 32, 32)) == _export.export(module, (3, 32, 32))


def test_default_layers_are_the_ends_of_blocks(images):
    run = noether_ml.measure(networks.small_resnet(), images, transforms=FLIP, measures=["distance"], quiet=True)
    assert {"layer1", "layer2", "layer3", "layer4"} <= set(run.scores.layer)


def test_a_layer_that_does_not_exist(images):
    with pytest.raises(noether_ml.Error, match=r"layer1\.0\.conv2") as e:
        noether_ml.measure(networks.small_resnet(), images, layers=["layer1.0.conv7"], quiet=True)
    assert "\n" not in str(e.value)
    with pytest.raises(noether_ml.Error, match="no layer matches"):
        noether_ml.measure(networks.Shared(), images, layers=["unused"], quiet=True)


class Branching(nn.Module):
    """Has a branch that depends on the values of the input, which an exported graph cannot represent."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        x = self.conv(x)
        if x.mean() > self.conv.bias.mean() + 1e-4:
            x = x.relu()
        return x.mean((2, 3))


class Failing(nn.Module):
    """Raises an error of two lines."""

    def forward(self, x):
        raise ValueError("this does not run\nat all")


@pytest.mark.parametrize("module, text", [
    (Branching(), "depend on the values of the input, at test_modules.py"),
    (Failing(), "this does not run"),
    (torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3))), "scripted"),
])
def test_a_module_that_cannot_be_exported_gives_an_error_of_one_line(module, text, images):
    torch.manual_seed(1)
    with pytest.raises(noether_ml.Error, match=text) as e:
        noether_ml.measure(module, images, engine="onnx", quiet=True)
    assert "\n" not in str(e.value)


class Wrong(nn.Module):
    """Computes something else for other numbers of samples, which an exported graph cannot."""

    def __init__(self, code):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.code = code

    def forward(self, x):
        x = self.conv(x).mean((2, 3))
        if self.code == "len":
            return x * len(x)
        if self.code == "int":
            return x / int(x.shape[0])
        if self.code == "numpy":
            return x + torch.from_numpy(x.detach().numpy().sum(1, keepdims=True))
        return x if x.shape[0] == 2 else 2 * x


@pytest.mark.parametrize("code", ["len", "int", "numpy", "if"])
def test_a_file_that_differs_from_its_module_is_refused(code, capfd, monkeypatch):
    monkeypatch.setattr(_dynamo, "available", lambda: False)
    with pytest.raises(noether_ml.Error, match=r"Wrong was exported wrongly: (for a batch of [13], output output differs by \d+%|the file fails)") as e:
        _export.export(Wrong(code), (3, 16, 16))
    assert "\n" not in str(e.value)
    assert capfd.readouterr().out == ""


needs_dynamo = pytest.mark.skipif(not _dynamo.available(), reason="needs PyTorch 2.6 and onnxscript")


@needs_dynamo
def test_dynamo_exports_what_tracing_does_not(images, capfd):
    """NumPy becomes a constant by tracing; the file by dynamo computes what the module does, and has its names."""
    torch.manual_seed(1)
    module = nn.Sequential(collections.OrderedDict(stem=nn.Conv2d(3, 3, 3), numpy=Wrong("numpy"), head=nn.Linear(4, 5))).eval()
    with pytest.warns(UserWarning, match="Sequential was exported wrongly: .*; so dynamo exported it"):
        path = _export.export(module, (3, 32, 32))
    assert capfd.readouterr().out == ""
    assert {"stem", "numpy.conv", "numpy"} <= {layer["name"] for layer in noether_ml.inspect(path)["layers"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(module, images, engine="onnx", transforms=FLIP, measures=["distance"], layers=["numpy", "output"], quiet=True)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        want = (module(x) - module(x.flip(3))).norm(dim=1).mean().item()
    scores = run.scores
    assert scores[(scores.layer == "output") & (scores.statistic == "l2")].value.iloc[0] == pytest.approx(want, rel=1e-4)


@needs_dynamo
@pytest.mark.parametrize("code", ["len", "if"])
def test_what_both_exporters_cannot_is_served(code, images, capfd):
    with pytest.raises(noether_ml.Error, match=r"Wrong was exported wrongly: .*; by dynamo: .*") as e:
        _export.export(Wrong(code), (3, 32, 32))
    assert "\n" not in str(e.value)
    with pytest.warns(UserWarning, match=r"; by dynamo: .*; so PyTorch runs the module itself"):
        run = noether_ml.measure(Wrong(code), images, transforms=FLIP, measures=["distance"], layers="output", quiet=True, preprocess="none")
    assert len(run.scores) and capfd.readouterr().out == ""


class Random(nn.Module):
    def __init__(self, code):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3))
        self.code = code
        self.block.register_forward_hook(lambda _m, _in, out: self.noise(out))

    def noise(self, x):
        return nn.functional.dropout(x) if self.code == "dropout" else x + torch.randn_like(x)

    def forward(self, x):
        return self.block(self.conv(x)).mean((2, 3))


@pytest.mark.parametrize("code", ["dropout", "randn"])
def test_a_random_module_is_refused(code, images):
    with pytest.raises(noether_ml.Error, match="Random is random in evaluation mode: the output of block differs from call to call"):
        noether_ml.measure(Random(code), images, quiet=True)
    with pytest.warns(UserWarning, match="Random is random"):
        noether_ml.measure(Random(code), images, engine="torch", layers="output", transforms=FLIP, measures=["distance"], quiet=True)


@dataclasses.dataclass
class Answer:
    logits: torch.Tensor
    states: tuple
    cache: object = None


class Returns(nn.Module):
    """Has several parameters, of which one takes the images, and outputs of any structure."""

    main_input_name = "pixel_values"

    def __init__(self, kind):
        super().__init__()
        self.kind, self.conv, self.fc = kind, nn.Conv2d(3, 4, 3), nn.Linear(4, 5)

    def forward(self, ids=None, *, pixel_values=None, flag=True, scale=2.0):
        assert ids is None and flag is True and scale == 2.0, "a default became an input"
        state = self.conv(pixel_values)
        logits = self.fc(state.mean((2, 3)))
        if self.kind == "dataclass":
            return Answer(logits, (state, None), cache=object())
        if self.kind == "nested":
            return {"logits": logits, "more": {"states": [state, logits], "loss": None}, "text": "x"}
        return logits


@pytest.mark.parametrize("kind, names", [
    ("tensor", ["output"]), ("dataclass", ["output.logits", "output.states.0"]), ("nested", ["output.logits", "output.more.states.0"]),
])
def test_outputs_and_parameters_of_any_structure(kind, names):
    module = Returns(kind)
    path = _export.export(module, (3, 16, 16))
    found = noether_ml.inspect(path)
    assert [o["name"] for o in found["outputs"]] == names and [i["name"] for i in found["inputs"]] == ["input"]
    assert "forward" not in module.__dict__


def test_a_module_that_needs_two_inputs_says_so(images):
    class Two(nn.Module):
        def forward(self, x, mask):
            return (x * mask).mean((2, 3))

    with pytest.raises(noether_ml.Error, match="Two takes x and also needs mask: pass a module that takes one tensor"):
        noether_ml.measure(Two(), images, engine="onnx", quiet=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_16_bits_are_exported_in_float32(dtype, images):
    module = networks.trained(networks.small_resnet()).to(dtype)
    options = dict(transforms=FLIP, measures=["distance"], layers=["layer1"], engine="onnx", quiet=True)
    of_16 = noether_ml.measure(module, images, name="net", **options).scores
    of_32 = noether_ml.measure(copy.deepcopy(module).float(), images, name="net", **options).scores
    assert numpy.allclose(of_16.value, of_32.value, equal_nan=True)
    assert module.conv1.weight.dtype == dtype


class Passing(nn.Module):
    """Its second block begins with a module that returns its input, as timm's shortcuts do."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.shortcut, self.conv = nn.Identity(), nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x):
            return self.shortcut(x) + self.conv(x)

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[self.Block() for _ in range(3)])
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(self.blocks(x)).mean((2, 3))


def test_a_tensor_has_the_name_of_the_outermost_module_that_it_leaves():
    path = _export.export(Passing(), (3, 16, 16))
    graph = onnx.load(path).graph
    read = {name for n in graph.node for name in n.input}
    assert {"blocks.0", "blocks.1", "blocks"} <= read and not any("shortcut" in name or "drop" in name for name in read)
    assert {n.output[0] for n in graph.node if n.op_type == "Add"} == {"blocks.0", "blocks.1", "blocks"}
    # The other modules' names are copies.
    assert {"blocks.1.shortcut", "blocks.2.shortcut", "blocks.2", "drop"} <= {name for n in graph.node for name in n.output}


class Shuffle(nn.Module):
    """Returns what it has computed in another order, and flattens what a module returns."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 2, 3, padding=1)

        def forward(self, x):
            y = torch.cat([x[:, :2], self.conv(x)], 1)
            return y.view(-1, 2, 2, *y.shape[2:]).transpose(1, 2).reshape(y.shape)

    def __init__(self):
        super().__init__()
        self.stem, self.block, self.pool, self.fc = nn.Conv2d(3, 4, 3), self.Block(), nn.AdaptiveAvgPool2d(1), nn.Linear(4, 5)

    def forward(self, x):
        return self.fc(self.pool(self.block(self.stem(x))).flatten(1))


def test_reshaped_tensors_have_the_name_of_the_module():
    graph = onnx.load(_export.export(Shuffle(), (3, 16, 16))).graph
    made = {(n.op_type, n.output[0]) for n in graph.node}
    assert ("Concat", "block.concat") in made and {("Flatten", "pool.flatten"), ("Reshape", "pool.reshape")} & made
    assert "block" in {name for n in graph.node for name in n.input}


class Residual(nn.Module):
    """Has sums that no module returns."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix, self.mlp = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

        def forward(self, x):
            x = x + self.mix(x)
            return x + self.mlp(x)

    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(nn.Sequential(self.Block(), self.Block()))
        self.late = nn.ModuleList([self.Block()])

    def forward(self, x):
        return self.late[0](self.stages(x)).mean((2, 3))


def test_sums_in_a_module_have_its_name_with_the_operators():
    graph = onnx.load(_export.export(Residual(), (3, 8, 8))).graph
    sums = [n.output[0] for n in graph.node if n.op_type == "Add"]
    assert sums == ["stages.0.0.add", "stages.0.0", "stages.0.1.add", "stages", "late.0.add", "late.0"]


class Functional(nn.Module):
    """Calls functions between its modules, as torchvision's DenseNet does, and adds branches, as timm's HRNet."""

    def __init__(self):
        super().__init__()
        self.stem, self.left, self.right, self.fc = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1), nn.Linear(4, 5)

    def forward(self, x):
        x = self.stem(x).relu()
        x = self.left(x) + self.right(x)
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class InRoot(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Linear(8, 5)

    def forward(self, x):
        a = torch.nn.functional.relu(self.conv1(x))
        b = torch.nn.functional.relu(a + self.conv2(a))
        return self.fc(torch.cat([b.mean((2, 3)), a.amax((2, 3))], 1))


@pytest.mark.parametrize("exporter", ["_trace", "_dynamo"])
def test_both_exporters_give_the_same_names_to_what_the_outermost_module_computes(exporter, tmp_path):
    if exporter == "_dynamo" and not noether_ml._dynamo.available():
        pytest.skip("needs the exporter by dynamo, of PyTorch 2.6, and onnxscript")
    module, path = InRoot().eval(), tmp_path / "net.onnx"
    example = _export._example(module, (3, 8, 8))
    with _export.called(module, example) as names:
        getattr(noether_ml, exporter).write(module, example, names, path)
    found = [layer["name"] for layer in noether_ml.inspect(str(path))["layers"]]
    assert found[:9] == ["conv1", "conv1.relu", "conv2", "conv2.add", "conv2.relu", "conv2.reducemean", "conv1.reducemax", "conv1.concat", "output"]


def test_what_the_outermost_module_computes_has_the_name_of_what_it_is_computed_from():
    graph = onnx.load(_export.export(Functional(), (3, 16, 16))).graph
    made = {n.output[0] for n in graph.node}
    assert {"stem", "stem.relu", "right.add", "right.globalaveragepool", "output"} <= made and not [name for name in made if name.startswith("/Add")]


@pytest.mark.parametrize("attribute, value, shape", [
    ("pretrained_cfg", {"input_size": (1, 20, 24)}, (1, 20, 24)),
    ("config", types.SimpleNamespace(image_size=20, num_channels=1), (1, 20, 20)),
    ("config", types.SimpleNamespace(vision_config=types.SimpleNamespace(image_size=[20, 24])), (3, 20, 24)),
])
def test_the_size_that_a_module_states(attribute, value, shape):
    module = nn.Conv2d(shape[0], 2, 3)
    setattr(module, attribute, value)
    found = noether_ml.inspect(_export.export(module))
    assert found["inputs"][0]["shape"] == f"batch x {shape[0]} x {shape[1]} x {shape[2]}"


def test_torch_without_onnx(images, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)  # "import onnx" fails
    with pytest.raises(noether_ml.Error, match="pip install onnx"):
        noether_ml.measure(networks.Shared(), images, engine="onnx", quiet=True)
    with pytest.warns(UserWarning, match="pip install onnx; so PyTorch runs the module itself"):
        run = noether_ml.measure(networks.Shared(), images, layers="output", quiet=True)
    assert len(run.scores)


def test_torchvision_name(images, monkeypatch, tmp_path):
    from torchvision import models

    # Random weights in place of the pretrained ones, which would be downloaded.
    weights = models.get_model_weights("resnet18").DEFAULT
    monkeypatch.setattr(type(weights), "get_state_dict", lambda self, *a, **k: models.resnet18().state_dict())
    prepared = noether_ml._models.prepare("torchvision:resnet18")
    assert prepared.name == "resnet18"
    assert prepared.preprocess == {"resize": 256, "crop": 224, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "interpolation": "bilinear"}
    with pytest.raises(noether_ml.Error, match="did you mean 'resnet18'"):
        noether_ml.measure("torchvision:resnet81", images)


class Fourier(nn.Module):
    """Has complex outputs, which ONNX lacks."""

    def forward(self, x):
        return torch.fft.fft(x.mean((2, 3)))


class Magnitudes(Fourier):
    def forward(self, x):
        z = super().forward(x)
        return z, z.abs()


class Text(nn.Module):
    def forward(self, x):
        return "text"


def test_a_failing_export_prints_nothing(images, capfd):
    with pytest.raises(noether_ml.Error, match=r"returns no tensor of real numbers: output \(complex\)"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noether_ml.measure(Fourier(), images, preprocess="none")
    out, err = capfd.readouterr()
    assert out == "" and "graph" not in err


def test_complex_tensors_are_left_out(images):
    run = noether_ml.measure(Magnitudes(), images, engine="torch", preprocess="none", transforms=[{"flip": "horizontal"}], measures="distance", quiet=True)
    assert set(run.scores.layer) == {"output.1"}  # the imaginary part of output.0 would be lost


def test_modules_that_cannot_be_measured(images):
    with pytest.raises(noether_ml.Error, match="Text returns no tensor"):
        noether_ml.measure(Text(), images, preprocess="none")
    with pytest.raises(noether_ml.Error, match="on the device meta, which have no values"):
        noether_ml.measure(nn.Sequential(nn.Flatten(), nn.Linear(3072, 5)).to("meta"), images, preprocess="none")
