#!/usr/bin/python3
"""Writes fcn.onnx, a small fully convolutional network with random weights, and fcn.json: how its class maps of CIFAR-10 images move, by
numpy and PyTorch alone.

usage: fcn.py CIFAR10/test_batch.bin
"""
import json
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N, CLASSES = 40, 5
BLOCK = min(32, max(2, N // 20))
torch.manual_seed(3)


class FCN(nn.Module):
    """Long et al. 2015: scores of strides 4 and 2, added and interpolated to the size of the image."""

    def __init__(self):
        super().__init__()
        conv = lambda a, b, stride: nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        self.one, self.two = conv(3, 8, 2), conv(8, 16, 2)
        self.fine, self.coarse = nn.Conv2d(8, CLASSES, 1), nn.Conv2d(16, CLASSES, 1)

    def forward(self, x):
        a = self.one(x)
        b = self.two(a)
        y = self.fine(a) + F.interpolate(self.coarse(b), scale_factor=2.0, mode="bilinear", align_corners=False)
        return F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)


images = np.fromfile(sys.argv[1], np.uint8).reshape(-1, 3073)[:N, 1:].reshape(N, 3, 32, 32).astype(np.float32) / 255
net = FCN()
with torch.no_grad():  # statistics of the images, and classes of similar size
    net(torch.tensor(images))
    for layer in (net.fine, net.coarse):
        layer.bias.zero_()
    net.eval()
    y = net(torch.tensor(images))
    net.coarse.bias -= y.mean((0, 2, 3))
torch.onnx.export(net, torch.tensor(images[:2]), "fcn.onnx", input_names=["image"], output_names=["out"], opset_version=13,
                  dynamic_axes={"image": {0: "batch"}, "out": {0: "batch"}})


def class_maps(x):
    with torch.no_grad():
        return net(torch.tensor(x)).argmax(1).numpy()


def rotation(degrees):
    a = np.deg2rad(degrees)
    return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


# A transformation is the matrix and the shift, as a fraction of the side, of the position that a position is read from: pixels to the
# right and down from the centre.
transforms = {"quarter": (rotation(90), [0, 0]), "rotate": (rotation(30), [0, 0]), "flip": (np.diag([-1.0, 1.0]), [0, 0]), "shift": (np.eye(2), [-0.0625, 0.125])}


def sources(t, h, w):
    i, j = np.mgrid[0:h, 0:w]
    x, y = j - (w - 1) / 2, i - (h - 1) / 2
    m, shift = t
    return np.round(m[1, 0] * x + m[1, 1] * y + shift[1] * h + (h - 1) / 2, 9), np.round(m[0, 0] * x + m[0, 1] * y + shift[0] * w + (w - 1) / 2, 9)


def moved_images(t, x):
    h, w = x.shape[2:]
    rows, columns = sources(t, h, w)
    grid = np.stack([(2 * columns + 1) / w - 1, (2 * rows + 1) / h - 1], -1)
    grid = torch.tensor(np.broadcast_to(grid, (len(x), h, w, 2)).astype(np.float64).copy())
    return F.grid_sample(torch.tensor(x, dtype=torch.float64), grid, mode="bilinear", padding_mode="zeros", align_corners=False).numpy().astype(np.float32)


def statistics(a, b, visible):
    """Over all samples: a are the moved maps and b those of the moved images."""
    a, b = a[:, visible], b[:, visible]
    inter = np.array([((a == k) & (b == k)).sum() for k in range(CLASSES)])
    union = np.array([((a == k) | (b == k)).sum() for k in range(CLASSES)])
    return {"pixel-agreement": float((a == b).mean()), "miou": float((inter / np.maximum(union, 1))[union > 0].mean())}


clean = class_maps(images)
partner = [i + 1 if i // BLOCK == (i + 1) // BLOCK and i + 1 < N else i // BLOCK * BLOCK for i in range(N)]
out = []
for name, t in transforms.items():
    rows, columns = (np.ceil(v - 0.5).astype(int) for v in sources(t, 32, 32))
    visible = (rows >= 0) & (rows < 32) & (columns >= 0) & (columns < 32)
    moved = clean[:, rows.clip(0, 31), columns.clip(0, 31)]
    then = class_maps(moved_images(t, images))
    out.append({"transform": name, "scores": statistics(moved, then, visible), "null": statistics(moved, then[partner], visible)})
with open("fcn.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(o) for o in out) + "\n]\n")
