#!/usr/bin/env python3
"""Attacks an ONNX classifier by the authors' package autoattack, standard version, to compare with robust-accuracy.

usage: PYTHONPATH=auto-attack reference.py MODEL.onnx CIFAR10.bin --indices 5,17,... --norm Linf --radius 0.0314 [--mean ... --std ...]

github.com/fra31/auto-attack at a39220048b3c9f2cca9a4d3a54604793c68eca7e. The graph is computed by PyTorch, operator by operator. The
indices are those of the images of a run of noether: the first of its random order. Prints the accuracy after each attack, as JSON.
"""
import argparse, json, sys, time
import numpy as np, onnx, onnx.numpy_helper as nh, torch, torch.nn.functional as F
from autoattack import AutoAttack


class Graph(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        graph = onnx.load(path).graph
        self.nodes = graph.node
        self.weights = {i.name: torch.from_numpy(nh.to_array(i).copy()) for i in graph.initializer}
        self.input = next(i.name for i in graph.input if i.name not in self.weights)
        self.output = graph.output[0].name

    def forward(self, x):
        v = {**self.weights, self.input: x}
        for n in self.nodes:
            a = {k.name: onnx.helper.get_attribute_value(k) for k in n.attribute}
            i = [v[k] if k else None for k in n.input]
            v[n.output[0]] = self.compute(n.op_type, a, i)
        return v[self.output]

    def compute(self, op, a, i):
        match op:
            case "Conv":
                x, pads = i[0], a.get("pads", [0, 0, 0, 0])
                x = F.pad(x, (pads[1], pads[3], pads[0], pads[2]))
                return F.conv2d(x, i[1], i[2] if len(i) > 2 else None, a.get("strides", [1, 1]), 0, a.get("dilations", [1, 1]), a.get("group", 1))
            case "BatchNormalization":
                return F.batch_norm(i[0], i[3], i[4], i[1], i[2], eps=a.get("epsilon", 1e-5))
            case "Relu":
                return F.relu(i[0])
            case "Add":
                return i[0] + i[1]
            case "Sub":
                return i[0] - i[1]
            case "Mul":
                return i[0] * i[1]
            case "Div":
                return i[0] / i[1]
            case "Constant":
                return torch.from_numpy(nh.to_array(a["value"]).copy())
            case "Identity":
                return i[0]
            case "GlobalAveragePool":
                return i[0].mean((2, 3), keepdim=True)
            case "ReduceMean":
                axes = a.get("axes") or i[1].tolist()
                return i[0].mean(tuple(axes), keepdim=bool(a.get("keepdims", 1)))
            case "Flatten":
                return i[0].flatten(a.get("axis", 1))
            case "Reshape":
                return i[0].reshape([i[0].shape[k] if s == 0 else s for k, s in enumerate(i[1].tolist())])
            case "Squeeze":
                return i[0].squeeze(tuple(a.get("axes") or i[1].tolist()))
            case "Gemm":
                w = i[1].T if a.get("transB") else i[1]
                return i[0] @ w + (i[2] if len(i) > 2 else 0)
            case "MatMul":
                return i[0] @ i[1]
            case "Slice":
                starts, ends, axes, steps = (t.tolist() for t in (i[1:] + [torch.ones(len(i[1]), dtype=torch.int64)])[:4])
                s = [slice(None)] * i[0].dim()
                for b, e, k, t in zip(starts, ends, axes, steps):
                    s[k] = slice(b, min(e, i[0].shape[k]), t)
                return i[0][tuple(s)]
            case "Pad":
                pads = (a.get("pads") or i[1].tolist())
                half = len(pads) // 2
                return F.pad(i[0], [p for k in reversed(range(half)) for p in (pads[k], pads[half + k])])
            case "Concat":
                return torch.cat(i, a["axis"])
        sys.exit(f"operator {op} is not known here")


p = argparse.ArgumentParser()
p.add_argument("model"), p.add_argument("data")
p.add_argument("--indices", required=True)
p.add_argument("--norm", default="Linf"), p.add_argument("--radius", type=float, required=True)
p.add_argument("--mean", type=float, nargs=3), p.add_argument("--std", type=float, nargs=3)
p.add_argument("--seed", type=int, default=1), p.add_argument("--batch", type=int, default=100), p.add_argument("--threads", type=int, default=1)
a = p.parse_args()
torch.set_num_threads(a.threads)
records = np.fromfile(a.data, np.uint8).reshape(-1, 3073)[[int(i) for i in a.indices.split(",")]]
y = torch.from_numpy(records[:, 0].astype(np.int64))
x = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255)
net = Graph(a.model).eval()
mean, std = (torch.tensor(v).view(1, 3, 1, 1) if v else None for v in (a.mean, a.std))
passes = [0]


def model(x):
    passes[0] += len(x)
    return net((x - mean) / std if mean is not None else x)


attack = AutoAttack(model, norm=a.norm, eps=a.radius, version="standard", device="cpu", seed=a.seed, verbose=True)
lines = []
attack.logger.log = lambda text: (lines.append(text), print(text, file=sys.stderr))
start = time.time()
adversarial = attack.run_standard_evaluation(x, y, bs=a.batch)
after = [float(l.split(": ")[1].split("%")[0]) for l in lines if "accuracy" in l and "%" in l and not l.startswith("Warning")]
print(json.dumps({"model": a.model, "norm": a.norm, "radius": a.radius, "images": len(x), "after": after, "seconds": round(time.time() - start, 1), "images_computed": passes[0]}))
