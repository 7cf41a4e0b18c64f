#!/usr/bin/python3
"""Runs the CIFAR-10 ResNets with PyTorch, operator by operator from the ONNX file, on the first 500 test images.

usage: cifar.py TESTDATA   writes cifar.json: how many are classified correctly, and the log-probabilities of the first image
"""
import json, os, sys
import numpy as np, onnx, torch, torch.nn.functional as F
from onnx import numpy_helper

data = sys.argv[1]
raw = np.fromfile(os.path.join(data, "cifar10/test_batch.bin"), np.uint8).reshape(-1, 3073)[:500]
label = torch.from_numpy(raw[:, 0].astype(np.int64))
x = torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).astype(np.float64) / 255)
x = (x - torch.tensor([0.485, 0.456, 0.406]).double().view(1, 3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).double().view(1, 3, 1, 1)


def run(path):
    m = onnx.load(path)
    v = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in m.graph.initializer}
    v = {k: t.double() if t.is_floating_point() else t for k, t in v.items()}
    v[m.graph.input[0].name] = x
    for n in m.graph.node:
        a = {p.name: onnx.helper.get_attribute_value(p) for p in n.attribute}
        i = [v[k] for k in n.input if k]
        if n.op_type == "Conv":
            assert a["pads"][:2] == a["pads"][2:]
            y = F.conv2d(*i, stride=a["strides"], padding=a["pads"][:2], groups=a.get("group", 1))
        elif n.op_type == "Relu":
            y = i[0].relu()
        elif n.op_type == "Add":
            y = i[0] + i[1]
        elif n.op_type == "Constant":
            y = torch.from_numpy(numpy_helper.to_array(a["value"]).copy())
        elif n.op_type == "Slice":
            y = i[0].numpy()
            for s, e, axis, step in zip(*[t.tolist() for t in i[1:]]):
                y = y[(slice(None),) * axis + (slice(s, None if e < -y.shape[axis] else e, step),)]
            y = torch.from_numpy(y.copy())
        elif n.op_type == "Pad":
            p, half = i[1].tolist(), len(i[1]) // 2
            y = F.pad(i[0], [q for d in reversed(range(half)) for q in (p[d], p[half + d])])
        elif n.op_type == "ReduceMean":
            y = i[0].mean(tuple(a["axes"]), keepdim=bool(a.get("keepdims", 1)))
        elif n.op_type == "GlobalAveragePool":
            y = i[0].mean((2, 3), keepdim=True)
        elif n.op_type == "AveragePool":
            y = F.avg_pool2d(i[0], a["kernel_shape"], a["strides"])
        elif n.op_type == "ConstantOfShape":
            y = torch.full(i[0].tolist(), numpy_helper.to_array(a["value"]).item())
        elif n.op_type == "Concat":
            y = torch.cat(i, a["axis"])
        elif n.op_type == "Reshape":
            y = i[0].reshape(i[1].tolist())
        elif n.op_type == "Transpose":
            y = i[0].permute(a["perm"])
        elif n.op_type == "Cast":
            y = i[0].to({1: torch.float64, 7: torch.int64}[a["to"]])
        elif n.op_type == "Flatten":
            y = i[0].flatten(1)
        elif n.op_type == "Gemm":
            y = i[0] @ (i[1].t() if a.get("transB") else i[1]) + i[2]
        else:
            raise SystemExit("no " + n.op_type)
        v[n.output[0]] = y
    return v[m.graph.output[0].name]


out = {}
for name in ("resnet20", "resnet32", "resnet56"):
    y = run(os.path.join(data, "models", name + "-cifar10.onnx"))
    out[name] = {"correct": int((y.argmax(1) == label).sum()), "first": F.log_softmax(y, 1)[0].tolist()}
json.dump(out, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cifar.json"), "w"), indent=1)
