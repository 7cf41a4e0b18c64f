#!/usr/bin/python3
"""Writes golden.json: a few steps of searches on trained CIFAR-10 ResNets, by PyTorch's autograd in float64.

usage: NOETHER_TESTDATA=/data golden.py

The networks are written out here from the weights in the ONNX files. Starts come from a formula, so that no generator is shared
with the Go code. Steps are few: sooner or later a unit near zero is positive in float32 and negative in float64, and from then on
the searches differ. For each case: the criterion of the best image after each step, that is, the number that the search makes
small (the loss, or the margin in attacks), and every 97th value of the best images in the end.
"""
import json, os, pathlib
import numpy as np, onnx, onnx.numpy_helper as nh, torch, torch.nn.functional as F

data = pathlib.Path(os.environ["NOETHER_TESTDATA"])
mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(1, 3, 1, 1)
N, STEPS, STRIDE = 4, 3, 97


def load(name):
    graph = onnx.load(data / "models" / f"{name}-cifar10.onnx").graph
    weights = {i.name: torch.from_numpy(nh.to_array(i).copy()).double() for i in graph.initializer}
    convs = [[weights[k] for k in n.input[1:]] for n in graph.node if n.op_type == "Conv"]
    blocks = (len(convs) - 1) // 6

    def features(x):
        layers = iter(convs)
        x = F.relu(F.conv2d((x - mean) / std, *next(layers), padding=1))
        for stage in range(3):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                y = F.relu(F.conv2d(x, *next(layers), stride=stride, padding=1))
                y = F.conv2d(y, *next(layers), padding=1)
                if stride == 2:
                    pad = y.shape[1] // 4
                    x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, pad, pad))
                x = F.relu(x + y)
        return x.mean((2, 3))

    return features, lambda z: F.linear(z, weights["linear.weight"], weights["linear.bias"])


def flat_norm(v):
    return v.flatten(1).norm(dim=1).view(-1, 1, 1, 1)


def search(loss_and_criterion, start, optimiser, size, project=lambda x: x, sign=False):
    x, best = start.clone(), start.clone()
    smallest, criteria = torch.full((N,), np.inf, dtype=torch.float64), []
    m = v = torch.zeros_like(x)
    for t in range(STEPS + 1):
        x.requires_grad_(True)
        loss, criterion = loss_and_criterion(x)
        (g,) = torch.autograd.grad(loss.sum(), x)
        with torch.no_grad():
            better = criterion < smallest
            smallest, best = torch.where(better, criterion, smallest), torch.where(better.view(-1, 1, 1, 1), x, best)
            criteria.append(smallest.tolist())
            g = g / flat_norm(g)
            if optimiser == "paper":
                x = x - size * (g.sign() if sign else g)
            else:
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
                x = x - size * m / (1 - 0.9 ** (t + 1)) / ((v / (1 - 0.999 ** (t + 1))).sqrt() + 1e-8)
            x = project(x).clamp(0, 1)
    return {"criterion": criteria, "best": best.detach().flatten()[::STRIDE].tolist()}


raw = np.fromfile(data / "cifar10" / "test_batch.bin", np.uint8, 3073 * N).reshape(N, 3073)
x = torch.from_numpy(raw[:, 1:].reshape(N, 3, 32, 32).astype(np.float64) / 255)
labels = torch.from_numpy(raw[:, 0].astype(np.int64))
noise = torch.from_numpy((np.arange(x.numel(), dtype=np.int64) * 7919 % 104729 % 256).reshape(x.shape) / 255.0)
(f1, head), (f2, _) = load("resnet20"), load("resnet32")
z1, z2 = f1(x), f2(x)


def distance(y):
    d = (f1(y) - z1).norm(dim=1)
    return d, d


def contrast(y):
    d = (f1(y) - z1).norm(dim=1) - (f2(y) - z2).norm(dim=1)
    return d, d


def normalised(y):
    d = (f1(y) - z1).norm(dim=1) / z1.norm(dim=1) - 0.1 * (f2(y) - z2).norm(dim=1) / z2.norm(dim=1)
    return d, d


def wrong(y):
    logs = head(f1(y)).log_softmax(1)
    hot = F.one_hot(labels, 10).bool()
    return logs[hot], logs[hot] - logs.masked_fill(hot, -np.inf).max(1).values


def l2(y):
    d = y - x
    return x + d * (0.25 / flat_norm(d).clamp_min(0.25))


json.dump({
    "steps": STEPS, "stride": STRIDE,
    "paper": search(distance, noise, "paper", 0.5),
    "adam": search(distance, noise, "adam", 0.01),
    "contrast": search(contrast, noise, "paper", 0.5),
    "normalised": search(normalised, noise, "paper", 0.5),
    "l2": search(wrong, x, "paper", 0.1, l2),
    "linf": search(wrong, x, "paper", 0.002, lambda y: torch.min(torch.max(y, x - 0.005), x + 0.005), sign=True),
}, open(pathlib.Path(__file__).with_name("golden.json"), "w"))
