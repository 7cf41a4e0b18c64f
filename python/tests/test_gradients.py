"""Measures that search for inputs, by vector-Jacobian products of a module that this process serves."""

import warnings

import networks
import numpy
import pytest
import torch

import noether_ml

KEYS = ["model", "layer", "other_model", "other_layer", "transformation", "parameter", "measure", "variant", "statistic"]


def scores(engine, models, images, labels=None, **keys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = noether_ml.measure(models, (images, labels) if labels is not None else images, engine=engine, quiet=True, **keys)
    assert not run.failures
    return run.scores.set_index(KEYS).value


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
