"""PyTorch modules: names and values of layers, and modules that cannot be exported."""

import networks
import numpy
import pytest
import torch
from torch import nn

import noether
from noether import _export

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
    run = noether.measure(module, images, transforms=FLIP, measures=["distance"], layers=list(want), quiet=True)
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
    options = dict(transforms=FLIP, measures=["effective-invariance", "distance", "seis"], layers=["layer1", "layer2.0.conv1"], name="net", quiet=True)
    of_module = noether.measure(module, images, **options).scores
    path = _export.export(module, (3, 32, 32))
    of_file = noether.measure(path, images, **options).scores
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
    run = noether.measure(networks.small_resnet(), images, transforms=FLIP, measures=["distance"], quiet=True)
    assert {"layer1", "layer2", "layer3", "layer4"} <= set(run.scores.layer)


def test_a_layer_that_does_not_exist(images):
    with pytest.raises(noether.Error, match=r"layer1\.0\.conv2") as e:
        noether.measure(networks.small_resnet(), images, layers=["layer1.0.conv7"], quiet=True)
    assert "\n" not in str(e.value)
    with pytest.raises(noether.Error, match="no layer matches"):
        noether.measure(networks.Shared(), images, layers=["unused"], quiet=True)


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
    with pytest.raises(noether.Error, match=text) as e:
        noether.measure(module, images, engine="onnx", quiet=True)
    assert "\n" not in str(e.value)


def test_torch_without_onnx(images, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)  # "import onnx" fails
    with pytest.raises(noether.Error, match="pip install onnx"):
        noether.measure(networks.Shared(), images, engine="onnx", quiet=True)
    with pytest.warns(UserWarning, match="pip install onnx; so PyTorch runs the module itself"):
        run = noether.measure(networks.Shared(), images, layers="output", quiet=True)
    assert len(run.scores)


def test_torchvision_name(images, monkeypatch, tmp_path):
    from torchvision import models

    # Random weights in place of the pretrained ones, which would be downloaded.
    weights = models.get_model_weights("resnet18").DEFAULT
    monkeypatch.setattr(type(weights), "get_state_dict", lambda self, *a, **k: models.resnet18().state_dict())
    prepared = noether._models.prepare("torchvision:resnet18")
    assert prepared.name == "resnet18"
    assert prepared.preprocess == {"resize": 256, "crop": 224, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "interpolation": "bilinear"}
    with pytest.raises(noether.Error, match="did you mean 'resnet18'"):
        noether.measure("torchvision:resnet81", images)
