"""The gradient of a network that PyTorch exported to ONNX, computed by PyTorch in float64 from the file, operator by operator.

usage: file64.py FOLDER ...   with model.onnx, x.npy, r.npy, and dx.npy: the gradient of PyTorch's own network in float64

Prints how far the two are apart. Exporters fold normalisations into float32 weights, so the file is another network, and a unit
within rounding of its kink may be on another side in it.
"""
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def window(a):
    pads = a.get("pads", [0] * 4)
    assert pads[:2] == pads[2:], "padding differs at the two ends"
    return a.get("strides", 1), pads[:2]


def step(n, i, a):
    op = n.op_type
    if op == "Conv":
        return F.conv2d(i[0], i[1], i[2] if len(i) > 2 else None, *window(a), a.get("dilations", 1), a.get("group", 1))
    if op == "MaxPool":
        return F.max_pool2d(i[0], a["kernel_shape"], *window(a), ceil_mode=bool(a.get("ceil_mode", 0)))
    if op == "AveragePool":
        return F.avg_pool2d(i[0], a["kernel_shape"], *window(a), count_include_pad=bool(a.get("count_include_pad", 0)))
    if op == "BatchNormalization":
        return F.batch_norm(i[0], i[3], i[4], i[1], i[2], False, 0, a.get("epsilon", 1e-5))
    if op == "Gemm":
        return i[0] @ (i[1].T if a.get("transB") else i[1]) + i[2]
    if op == "Pad":
        ends = i[1].reshape(2, -1).T.flip(0).flatten().tolist()  # PyTorch begins with the last axis
        return F.pad(i[0], ends) if any(ends) else i[0]
    if op == "Slice":
        starts, ends, axes = (v.tolist() for v in i[1:4])
        for start, end, axis in zip(starts, ends, axes):
            i[0] = i[0].narrow(axis, start, min(end, i[0].shape[axis]) - start)
        return i[0]
    if op == "Constant":
        return torch.from_numpy(numpy_helper.to_array(a["value"]).copy())
    return {
        "Relu": lambda: i[0].relu(),
        "Sigmoid": lambda: i[0].sigmoid(),
        "Add": lambda: i[0] + i[1],
        "Mul": lambda: i[0] * i[1],
        "Clip": lambda: i[0].clamp(i[1], i[2]),
        "Concat": lambda: torch.cat(i, a["axis"]),
        "GlobalAveragePool": lambda: i[0].mean((2, 3), keepdim=True),
        "ReduceMean": lambda: i[0].mean(tuple(a["axes"]), keepdim=bool(a.get("keepdims", 1))),
        "Flatten": lambda: i[0].flatten(a.get("axis", 1)),
        "Identity": lambda: i[0],
        "Cast": lambda: i[0],
        "Shape": lambda: torch.tensor(i[0].shape),
        "Gather": lambda: i[0][i[1]],
        "Unsqueeze": lambda: i[0].reshape(1),
        "Div": lambda: i[0] // i[1],
        "Reshape": lambda: i[0].reshape(i[1].tolist()),
        "Transpose": lambda: i[0].permute(a["perm"]),
    }[op]()


for folder in sys.argv[1:]:
    graph = onnx.load(f"{folder}/model.onnx").graph
    values = {w.name: torch.from_numpy(numpy_helper.to_array(w).copy()) for w in graph.initializer}
    values = {k: v.double() if v.is_floating_point() else v for k, v in values.items()}
    x = torch.from_numpy(np.load(f"{folder}/x.npy")).double().requires_grad_()
    values[graph.input[0].name] = x
    for n in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        values[n.output[0]] = step(n, [values[k] for k in n.input], attributes)
    (values[graph.output[0].name] * torch.from_numpy(np.load(f"{folder}/r.npy")).double()).sum().backward()
    want = np.load(f"{folder}/dx.npy").astype(np.float64)
    print(folder, "off by %.2g of the largest value" % (abs(x.grad.numpy() - want).max() / abs(want).max()))
