"""Measures that search for inputs, by vector-Jacobian products of a module that this process serves."""

import warnings

import networks
import numpy
import pytest
import torch

import noether_ml
from noether_ml import _export

KEYS = ["model", "layer", "other_model", "other_layer", "transformation", "parameter", "measure", "variant", "statistic"]


def scores(engine, models, images, labels=None, factor=(), **keys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(models, (images, labels) if labels is not None else images, engine=engine, quiet=True, **keys)
    assert not run.failures
    return run.scores.set_index([*KEYS, *factor]).value


@pytest.mark.parametrize("make, layers", [
    (networks.small_resnet, ["layer1.0", "layer2.0", "avgpool"]),
    (networks.small_vit, ["encoder.layers.encoder_layer_0", "encoder.ln"])])
def test_scores_are_those_of_the_exported_file(make, layers, images):
    """Predictions, layers, SEIS, inversion (STIR) and attacks: served by PyTorch, and by ONNX Runtime."""
    torch.manual_seed(1)
    models = {"a": networks.trained(make()), "b": networks.trained(make())}
    labels = numpy.arange(16) % 5
    stir = {"between": ["a", "b"], "layers": "same", "steps": 10, "images": 8, "inversions": ["arbitrary", "adversarial"]}
    common = dict(layers=[*layers, "output"], transforms=[{"name": "quarter", "rotate": {"values": [90, 180]}}], measures=[
        "accuracy", "effective-invariance", "prediction-divergence", "distance", "similarity", "seis",
        {"stir": stir}, {"robust-accuracy": {"steps": 5, "radius": 0.5}}])
    exported, served = (scores(engine, models, images, labels, **common) for engine in ("onnx", "torch"))
    assert len(exported) == len(served) > 100
    difference = (exported - served.reindex(exported.index)).abs()
    for measure in ("stir", "robust-accuracy", "seis", "effective-invariance"):
        assert measure in difference.index.get_level_values("measure")
    assert difference.max() < 1e-3, difference.sort_values()[-10:]


def maps():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.Tanh(), torch.nn.Conv2d(4, 5, 1))


@pytest.mark.parametrize("side", [32, 20])
def test_outputs_whose_size_depends_on_that_of_the_images(side, images):
    """Maps as outputs: their cotangents and tangents have the size that images of the study give."""
    torch.manual_seed(1)
    models = {"a": maps(), "b": maps()}
    common = dict(layers=["0", "output"], transforms=[{"name": "flip", "flip": "horizontal"}], preprocess="none", measures=[
        {"stir": {"between": ["a", "b"], "layers": "same", "steps": 5, "images": 4}}, {"lie-derivative": {"images": 4, "generators": ["translate-x"]}}])
    exported, served = (scores(engine, models, numpy.ascontiguousarray(images[:, :side, :side]), **common) for engine in ("onnx", "torch"))
    assert len(exported) == len(served) > 10
    assert (exported - served.reindex(exported.index)).abs().max() < 1e-2


@pytest.mark.parametrize("make, layers", [
    (networks.small_resnet, ["layer1.0", "layer2.0", "avgpool"]),
    (networks.small_vit, ["encoder.layers.encoder_layer_0", "encoder.ln"])])
def test_lie_derivatives_are_those_of_the_exported_file(make, layers, images):
    """Forward-mode derivatives by PyTorch and by the graph, and with them the contributions of layers."""
    if make is networks.small_vit and torch.__version__ < "2":
        pytest.skip("PyTorch 1.13 has no forward mode of its fast attention")
    torch.manual_seed(1)
    module = networks.trained(make())
    lie = {"lie-derivative": {"images": 8, "generators": ["translate-x", "rotate", "brightness"]}}
    exported, served = (scores(engine, module, images, layers=[*layers, "output"], measures=[lie], preprocess={"crop": [32, 32], "mean": [0.5], "std": [0.25]},
                               name="m", factor=["factor"]) for engine in ("onnx", "torch"))
    assert set(exported.index.get_level_values("statistic")) == {"lee", "relative", "contribution"}
    assert len(exported) == len(served) > 20
    far = (exported - served.reindex(exported.index)).abs() > 1e-3 * exported.abs() + 1e-6
    assert not far.any(), [*zip(exported[far].index, exported[far], served.reindex(exported.index)[far])]


class Fold(torch.nn.Module):
    """Takes windows of maps apart and adds them up again."""

    def __init__(self, **keys):
        super().__init__()
        self.conv, self.keys = torch.nn.Conv2d(3, 4, 3, padding=1), keys

    def forward(self, x):
        windows = torch.nn.functional.unfold(self.conv(x), **self.keys)
        return torch.nn.functional.fold(windows * windows.tanh(), (12, 10), **self.keys).flatten(1)


@pytest.mark.skipif(torch.__version__ < "2", reason="PyTorch 1.13 exports no fold")
@pytest.mark.parametrize("keys", [
    {"kernel_size": 3, "padding": 1}, {"kernel_size": (2, 3), "stride": 2}, {"kernel_size": 3, "dilation": 2, "padding": 2}])
def test_fold(keys, tmp_path):
    """The gradient of Col2Im is PyTorch's, in float64 by ONNX's reference implementation."""
    from zoo import float64

    torch.manual_seed(1)
    module, x = Fold(**keys).eval(), torch.rand(3, 3, 12, 10, dtype=torch.float64)
    written = noether_ml.grad(_export.export(module, (3, 12, 10)), tmp_path / "gradient.onnx", of="output", sum=True)
    x.requires_grad_()
    module.double()(x).sum().backward()
    got = torch.from_numpy(float64.run(tmp_path / "gradient.onnx", written["gradients"]["input"], x.detach().numpy()))
    assert (got - x.grad).norm() < 1e-12 * x.grad.norm()
