"""Makes the files of this folder: a small network, its quantised form, images and golden values.

Needs numpy, onnx and onnxruntime. The values between the models are onnxruntime's: its
qdq_loss_debug collects the activations and computes the signal-to-noise ratio. The local errors are
those of sub-graphs that onnx.utils.extract_model cuts out of the quantised file, run on the
activations of the float file. The other statistics are numpy's.

    python make.py
"""

import json
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization import qdq_loss_debug as debug

rng = np.random.default_rng(5)
images = rng.integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)  # as dataset.OpenArrays reads them
images[:6] //= 2  # dark ones, so that the ranges are calibrated too narrowly
np.save("images.npy", images)
x = images.transpose(0, 3, 1, 2).astype(np.float32) / 255


def weight(name, *shape, scale=1.0):
    return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], name=output + "_node", **attributes)


graph = helper.make_graph(
    [
        node("Conv", ["image", "w1", "b1"], "conv1", pads=[1, 1, 1, 1]),
        node("Relu", ["conv1"], "relu1"),
        node("Conv", ["relu1", "w2", "b2"], "conv2", pads=[1, 1, 1, 1], group=4),
        node("Add", ["conv2", "relu1"], "sum"),
        node("Relu", ["sum"], "relu2"),
        node("GlobalAveragePool", ["relu2"], "pool"),
        node("Flatten", ["pool"], "flat"),
        node("Gemm", ["flat", "w3", "b3"], "logits"),
    ],
    "tiny",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 8, 8])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 5])],
    [
        weight("w1", 4, 3, 3, 3, scale=0.3), weight("b1", 4, scale=0.1),
        weight("w2", 4, 1, 3, 3, scale=0.3), weight("b2", 4, scale=0.1),
        weight("w3", 4, 5), weight("b3", 5, scale=0.1),
    ],
)
opset = helper.make_opsetid("", 17)
onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), "float.onnx")


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.batches = iter([{"image": samples}])

    def get_next(self):
        return next(self.batches, None)


calibration = Reader(x[:6])
quantize_static("float.onnx", "quantised.onnx", calibration, quant_format=QuantFormat.QDQ)
quantised = onnx.load("quantised.onnx")

with tempfile.TemporaryDirectory() as folder:
    activations = []
    for name in ["float", "quantised"]:
        path = os.path.join(folder, name + ".onnx")
        debug.modify_model_output_intermediate_tensors(name + ".onnx", path)
        activations.append(debug.collect_activations(path, Reader(x)))
    matching = debug.create_activation_matching(activations[1], activations[0])
    errors = debug.compute_activation_error(matching)

    # The dequantised tensor of each layer of the float model in the quantised one.
    other = {}
    for n in quantised.graph.node:
        if n.op_type == "DequantizeLinear" and n.input[0].endswith("_QuantizeLinear_Output"):
            layer = n.output[0].removesuffix("_DequantizeLinear_Output")
            if layer in activations[0] and layer != "image":
                other[layer] = n.output[0]
    computes = {out: n for n in quantised.graph.node for out in n.output}
    constants = {t.name: numpy_helper.to_array(t) for t in quantised.graph.initializer}
    stop = set(other.values())

    # collect_activations returns them flat.
    shapes = dict.fromkeys(["relu1", "conv2", "relu2"], (4, 8, 8))
    shapes |= {"pool": (4, 1, 1), "flat": (4,), "logits": (5,)}

    def inputs_of(tensor, found):
        for name in computes[tensor].input:
            if name in stop or name == "image":
                found.add(name)
            elif name in computes:
                inputs_of(name, found)
        return found

    golden = {}
    for layer, tensor in other.items():
        a = np.concatenate(activations[0][layer]).astype(np.float64).reshape(len(x), -1)
        b = np.concatenate(activations[1][tensor]).astype(np.float64).reshape(len(x), -1)
        inputs = sorted(inputs_of(tensor, set()))
        path = os.path.join(folder, "part.onnx")
        onnx.utils.extract_model("quantised.onnx", path, inputs, [tensor])
        back = {v: k for k, v in other.items()}
        feed = {"image": x} if "image" in inputs else {}
        for name in stop & set(inputs):
            feed[name] = activations[0][back[name]][0].reshape(-1, *shapes[back[name]])
        c = onnxruntime.InferenceSession(path).run(None, feed)[0]
        c = c.astype(np.float64).reshape(len(x), -1)
        q = computes[tensor]
        scale, zero = float(constants[q.input[1]]), int(constants[q.input[2]])
        low, high = (-128 - zero) * scale, (127 - zero) * scale
        below = (b < low + scale / 4) & (a < low - scale / 2)
        clipped = below | (b > high - scale / 4) & (a > high + scale / 2)
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        golden[layer] = {
            "other": tensor,
            "relative-l2": float(np.linalg.norm(a - b) / np.linalg.norm(a)),
            "cosine": float(np.mean(1 - (a * b).sum(1) / norms)),
            "largest-difference": float(np.abs(a - b).max(1).mean()),
            "saturated": float(clipped.mean()),
            "local-relative-l2": float(np.linalg.norm(a - c) / np.linalg.norm(a)),
        }
        if layer in errors:
            golden[layer]["snr"] = errors[layer]["xmodel_err"]
        else:  # qdq_loss_debug leaves out layers without a tensor before the rounding of the same name
            golden[layer]["snr"] = float(-20 * np.log10(golden[layer]["relative-l2"]))

logits = [np.concatenate(a["logits"]).reshape(len(x), 5) for a in activations]
same = logits[0].argmax(1) == logits[1].argmax(1)
with open("golden.json", "w") as file:
    json.dump({"layers": golden, "agreement": float(same.mean())}, file, indent=1, sort_keys=True)
