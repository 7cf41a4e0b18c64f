"""`noether parity` on real networks, against onnxruntime's qdq_loss_debug, Polygraphy and sub-graphs of onnxruntime.

The networks are a ResNet-20 for CIFAR-10 and a MobileNetV3 that tells whether a line of text is upside down, both trained.
onnxruntime quantises them.
"""

import json
import os
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from noether_ml._command import call

quantization = pytest.importorskip("onnxruntime.quantization")
import onnx  # noqa: E402
from onnxruntime.quantization import (  # noqa: E402
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization import qdq_loss_debug as debug  # noqa: E402

DATA = os.environ.get("NOETHER_TESTDATA")
if not DATA:
    pytest.skip("needs NOETHER_TESTDATA", allow_module_level=True)
# With a mean of 0.5 all pixels would lie half-way between two steps of a quantised input, so that the
# rounding of their last bit would decide.
NETWORKS = {
    "resnet": (Path(DATA, "models", "resnet20-cifar10.onnx"), (32, 32), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "mobilenet": (Path(DATA, "trained", "ppocr-cls.onnx"), (48, 192), [0.48] * 3, [0.5] * 3),
}


class Reader(CalibrationDataReader):
    def __init__(self, name, samples):
        self.batches = iter([{name: s[None]} for s in samples])

    def get_next(self):
        return next(self.batches, None)


class Network:
    """A network with its images, and quantised forms of it."""

    def __init__(self, folder, which):
        source, size, mean, std = NETWORKS[which]
        self.folder, self.float = folder, folder / "float.onnx"
        quantization.shape_inference.quant_pre_process(source, self.float, skip_symbolic_shape=True)
        self.input = onnx.load(self.float).graph.input[0].name
        self.images = self.read(size)
        np.save(folder / "images.npy", self.images)
        self.preprocess = json.dumps({"mean": mean, "std": std})
        self.x = ((self.images / 255 - mean) / std).astype(np.float32).transpose(0, 3, 1, 2)

    @staticmethod
    def read(size):
        from PIL import Image

        if size == (32, 32):
            raw = np.fromfile(Path(DATA, "cifar10", "test_batch.bin"), np.uint8, 3073 * 60).reshape(60, 3073)
            return raw[:, 1:].reshape(60, 3, 32, 32).transpose(0, 2, 3, 1)
        files = sorted(Path(DATA, "imagenet-samples").rglob("*.JPEG"))[:40]
        return np.stack([np.asarray(Image.open(f).convert("RGB").resize(size[::-1])) for f in files])

    def reader(self, n=None):
        return Reader(self.input, self.x[:n])

    def quantise(self, name="int8", **options):
        path = self.folder / f"{name}.onnx"
        quantize_static(self.float, path, self.reader(16), **{"quant_format": QuantFormat.QDQ, **options})
        return path

    def pruned(self):
        path, model = self.folder / "pruned.onnx", onnx.load(self.float)
        for w in model.graph.initializer:
            values = onnx.numpy_helper.to_array(w)
            if values.dtype == np.float32 and values.ndim > 1:
                limit = np.quantile(np.abs(values), 0.3)
                w.CopyFrom(onnx.numpy_helper.from_array(np.where(np.abs(values) < limit, 0, values).astype(np.float32), w.name))
        onnx.save(model, path)
        return path

    def parity(self, other, *flags):
        return call(["parity", str(self.float), str(other), str(self.folder / "images.npy"), "--preprocess", self.preprocess, "--limit", str(len(self.x)), "--json", *flags])

    def activations(self, path):
        """All tensors of a network, by onnxruntime."""
        all_outputs = self.folder / "outputs.onnx"
        debug.modify_model_output_intermediate_tensors(str(path), str(all_outputs))
        return debug.collect_activations(str(all_outputs), self.reader())


@pytest.fixture(scope="module", params=list(NETWORKS))
def network(request, tmp_path_factory):
    return Network(tmp_path_factory.mktemp(request.param), request.param)


def snr(x, y):
    x, y = (np.concatenate([np.ravel(v) for v in values]).astype(float) for values in (x, y))
    return 10 * np.log10((x**2).sum() / ((x - y) ** 2).sum())


def test_qdq_loss_debug(network):
    other = network.quantise()
    found = network.parity(other)
    floats, quantised = network.activations(network.float), network.activations(other)
    errors = debug.compute_activation_error(debug.create_activation_matching(quantised, floats))
    compared = 0
    for layer in found["layers"]:
        got = layer["statistics"]["snr"]["value"]
        if layer["layer"] in errors:
            want = errors[layer["layer"]]["xmodel_err"]
        else:  # it leaves out layers without a tensor of their name before the rounding
            want = snr(floats[layer["layer"]], quantised[layer["other"]])
        assert got == pytest.approx(want, abs=0.5), layer["layer"]
        compared += layer["layer"] in errors
    assert compared > 20 and len(found["layers"]) > 30
    assert "no_local" not in found


def test_leaving_layers_in_float_helps(network):
    before = network.parity(network.quantise())
    nodes = before["nodes_to_exclude"]
    assert nodes
    after = network.parity(network.quantise("mixed", nodes_to_exclude=nodes))
    output = before["layers"][-1]["layer"]
    of = {which: next(layer for layer in r["layers"] if layer["layer"] == output)["statistics"]["snr"]["value"] for which, r in (("before", before), ("after", after))}
    assert of["after"] > of["before"], of


def test_integer_operators_are_compared(network):
    """The layers of a file of operators on integers are those of the same quantisation with QDQ nodes."""
    options = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QUInt8}
    qdq = network.parity(network.quantise("qdq", **options))
    integer = network.parity(network.quantise("qoperator", quant_format=QuantFormat.QOperator, **options))
    assert integer["other"]["form"] == "quantised, as QOperator"
    by_name = {layer["layer"]: layer for layer in qdq["layers"]}
    both = [layer for layer in integer["layers"] if layer["quantised"] and layer["layer"] in by_name]
    assert len(both) > 0.6 * len(qdq["layers"])
    for layer in both:
        assert layer["statistics"]["snr"]["value"] == pytest.approx(by_name[layer["layer"]]["statistics"]["snr"]["value"], abs=3), layer["layer"]


def test_dynamic_and_half(network):
    dynamic = network.folder / "dynamic.onnx"
    quantize_dynamic(network.float, dynamic)
    found = network.parity(dynamic)
    assert found["other"]["form"] == "quantised, dynamically"
    assert found["predictions"][0]["agreement"]["value"] > 0.5


@pytest.mark.parametrize("form", ["pruned", "int8"])
def test_polygraphy(network, form):
    """The differences of a pruned and of a quantised form are those of Polygraphy.

    A value halfway between two steps of the quantised form is rounded by its last bit, so engines differ there by a step.
    """
    comparator = pytest.importorskip("polygraphy.comparator")
    other = network.quantise() if form == "int8" else network.pruned()
    layers = {layer["layer"]: layer for layer in network.parity(other)["layers"]}
    assert len(layers) > 30
    runs = [network.activations(path) for path in (network.float, other)]
    pairs = {name: (runs[0][name], runs[1][layer.get("other") or name]) for name, layer in layers.items()}
    largest_of_peer = {}
    for k in range(3):
        one, two = (comparator.IterationResult(OrderedDict((name, np.asarray(pair[i][k])) for name, pair in pairs.items())) for i in range(2))
        simple = comparator.SimpleCompareFunc(atol=1e9, rtol=1e9)(one, two)
        for name in pairs:
            largest_of_peer.setdefault(name, []).append(float(simple[name].max_absdiff))
    for name, (x, y) in pairs.items():
        largest = [float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in zip(x, y, strict=True)]
        assert largest_of_peer[name] == pytest.approx(largest[:3], rel=1e-5)
        assert layers[name]["statistics"]["largest-difference"]["value"] == pytest.approx(np.mean(largest), rel=1e-3 if form == "pruned" else 0.05), name
