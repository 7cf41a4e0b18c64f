"""Trains the probes of Plachouras et al. 2025 in PyTorch on representations of photographs. cifar.npz has what a ResNet-20 trained on CIFAR-10 makes of 600
pictures of the test batch, 64 numbers each, and their mean hue and value; cifar.json is what the tests of the package are held against.

    python3 cifar.py test_batch.bin resnet20-cifar10.onnx cifar.npz > cifar.json

The network is executed in PyTorch from the weights in the ONNX file, and the factors are computed in numpy, apart from what is tested.
"""
import json
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

N, TRAIN, VALID = 600, 400, 100


def pictures(path):
    """The first N pictures, N x 3 x 32 x 32 in [0, 1]: a byte for the label, then planes of red, green and blue."""
    raw = np.fromfile(path, np.uint8, N * 3073).reshape(N, 3073)
    return raw[:, 1:].reshape(N, 3, 32, 32).astype(np.float32) / 255


def hsv(x):
    """The mean hue in parts of a turn, and the mean value, of pictures N x 3 x 32 x 32, in float64 and unrounded."""
    r, g, b = x.astype(np.float64).transpose(1, 0, 2, 3)
    v, low = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
    c = np.where(v > low, v - low, 1)
    h = np.where(v == r, (g - b) / c, np.where(v == g, 2 + (b - r) / c, 4 + (r - g) / c)) / 6 % 1
    return np.where(v > low, h, 0).mean((1, 2)), v.mean((1, 2))


def penultimate(model, x):
    """What enters the last layer of a ResNet-20 whose shortcuts pad with zeros: the mean over space of what its 19 convolutions make of x."""
    w = {i.name: torch.tensor(numpy_helper.to_array(i)) for i in model.graph.initializer}
    convs = [(w[n.input[1]], w[n.input[2]]) for n in model.graph.node if n.op_type == "Conv"]
    h = F.relu(F.conv2d(x, *convs[0], padding=1))
    for block in range(9):
        first, second = convs[1 + 2 * block], convs[2 + 2 * block]
        stride = 2 if block in (3, 6) else 1
        y = F.conv2d(F.relu(F.conv2d(h, *first, stride, 1)), *second, padding=1)
        more = (y.shape[1] - h.shape[1]) // 2
        h = F.relu(y + F.pad(h[:, :, ::stride, ::stride], (0, 0, 0, 0, more, more)))
    return h.mean((2, 3))


def fit(z, y, hidden, seed):
    """The RMSE on the test samples of a probe trained with the paper's settings."""
    torch.manual_seed(seed)
    sizes, layers = [z.shape[1]] + hidden + [1], []
    for i in range(len(sizes) - 1):
        layers += [torch.nn.ReLU()] if i else []
        layers += [torch.nn.Linear(sizes[i], sizes[i + 1])]
    net, loss = torch.nn.Sequential(*layers), torch.nn.MSELoss()
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3)
    best, weights, waited = np.inf, None, 0
    for _ in range(100):
        order = torch.randperm(TRAIN)
        for at in range(0, TRAIN, 32):
            i = order[at:at + 32]
            optimiser.zero_grad()
            loss(net(z[i]), y[i]).backward()
            optimiser.step()
        with torch.no_grad():
            now = loss(net(z[TRAIN:TRAIN + VALID]), y[TRAIN:TRAIN + VALID]).item()
        if now < best:
            best, waited, weights = now, 0, {k: v.clone() for k, v in net.state_dict().items()}
        else:
            waited += 1
            if waited >= 10:
                break
    net.load_state_dict(weights)
    with torch.no_grad():
        return torch.sqrt(F.mse_loss(net(z[TRAIN + VALID:]).double(), y[TRAIN + VALID:].double())).item()


def main(batch, network, out):
    torch.set_num_threads(1)
    x = pictures(batch)
    mean, std = np.float32([0.485, 0.456, 0.406])[:, None, None], np.float32([0.229, 0.224, 0.225])[:, None, None]
    with torch.no_grad():
        z = penultimate(onnx.load(network), torch.tensor((x - mean) / std))
    hue, value = hsv(x)
    np.savez(out, z=z.numpy(), hue=hue.astype(np.float32), value=value.astype(np.float32))
    golden = {}
    for target, y in {"hue": hue, "value": value}.items():
        y = torch.tensor(y, dtype=torch.float32)[:, None]
        for kind, (hidden, seeds) in {"slp": ([], 10), "mlp": ([512, 256], 16), "narrow mlp": ([32, 16], 24)}.items():
            found = [fit(z, y, hidden, s) for s in range(seeds)]
            golden[f"{kind} {target}"] = {"mean": float(np.mean(found)), "deviation": float(np.std(found, ddof=1)), "seeds": seeds}
            print(kind, target, golden[f"{kind} {target}"], file=sys.stderr)
    json.dump(golden, sys.stdout, indent=1)


main(*sys.argv[1:])
