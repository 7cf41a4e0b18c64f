#!/usr/bin/python3
"""Writes golden.json: equivariance errors of layers of a ResNet-20 on CIFAR-10 images, by numpy, scipy and PyTorch alone.

usage: golden.py MODELS/resnet20-cifar10.onnx CIFAR10/test_batch.bin

The statistics are computed from their definitions in float64. Images are transformed by PyTorch's grid_sample (circular shifts by roll).
"""
import json
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as F
from scipy.ndimage import map_coordinates

N = 40
BLOCK = min(32, max(2, N // 20))

model = onnx.load(sys.argv[1])
tensors = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
weights = [(torch.tensor(tensors[n.input[1]]), torch.tensor(tensors[n.input[2]])) for n in model.graph.node if n.op_type == "Conv"]
mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def layers(x):
    with torch.no_grad():
        take = iter(weights)
        conv = lambda z, stride=1: F.conv2d(z, *next(take), stride=stride, padding=1)
        out = {}
        z = conv((torch.tensor(x, dtype=torch.float32) - mean) / std)
        out["/conv1/Conv_output_0"] = z
        z = F.relu(z)
        for stage, width in enumerate([16, 32, 64]):
            for block in range(3):
                stride = 2 if stage > 0 and block == 0 else 1
                y = conv(F.relu(conv(z, stride)))
                if stride == 2:
                    z = F.pad(z[:, :, ::2, ::2], (0, 0, 0, 0, width // 4, width // 4))
                z = F.relu(y + z)
            if stage > 0:
                out["/layer%d/layer%d.2/Relu_1_output_0" % (stage + 1, stage + 1)] = z
        return {k: v.numpy().astype(np.float64) for k, v in out.items()}


# A transformation is the matrix and the shift, as a fraction of the side, of the position that a position is read from: pixels to the
# right and down from the centre.
def rotation(degrees):
    a = np.deg2rad(degrees)
    return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


transforms = {
    "quarter": (rotation(90), [0, 0], False),
    "rotate": (rotation(30), [0, 0], False),
    "flip": (np.diag([-1.0, 1.0]), [0, 0], False),
    "scale": (np.eye(2) / 1.25, [0, 0], False),
    "shift": (np.eye(2), [-0.0625, 0.09], False),
    "wrap": (np.eye(2), [-0.0625, 0], True),
}


def sources(matrix, shift, h, w):
    """Rows and columns that each position is read from."""
    i, j = np.mgrid[0:h, 0:w]
    x, y = j - (w - 1) / 2, i - (h - 1) / 2
    sx = matrix[0, 0] * x + matrix[0, 1] * y + shift[0] * w
    sy = matrix[1, 0] * x + matrix[1, 1] * y + shift[1] * h
    return np.round(sy + (h - 1) / 2, 9), np.round(sx + (w - 1) / 2, 9)


def inverse(t):
    matrix, shift, wrap = t
    back = np.linalg.inv(matrix)
    return back, list(-back @ np.array(shift)), wrap


def act(t, z):
    """tau of maps of c x h x w."""
    rows, columns = sources(t[0], t[1], *z.shape[1:])
    mode = "grid-wrap" if t[2] else "nearest"
    return np.stack([map_coordinates(c, [rows, columns], order=1, mode=mode) for c in z])


def mask(t, h, w, margin):
    if t[2]:
        return np.ones((h, w), bool)
    inside = lambda r, c, m: (r >= m * h - 1e-9) & (r <= h - 1 - m * h + 1e-9) & (c >= m * w - 1e-9) & (c <= w - 1 - m * w + 1e-9)
    r, c = sources(t[0], t[1], h, w)
    br, bc = sources(*inverse(t)[:2], h, w)
    i, j = np.mgrid[0:h, 0:w]
    return inside(i, j, margin) & inside(r, c, margin) & inside(br, bc, margin)


def moved_images(t, x):
    if t[2]:
        return np.roll(x, round(-t[1][0] * x.shape[3]), 3)
    h, w = x.shape[2:]
    rows, columns = sources(t[0], t[1], h, w)
    grid = np.stack([(2 * columns + 1) / w - 1, (2 * rows + 1) / h - 1], -1)
    grid = torch.tensor(np.broadcast_to(grid, (len(x), h, w, 2)).copy())
    return F.grid_sample(torch.tensor(x), grid, mode="bilinear", padding_mode="zeros", align_corners=False).numpy()


def statistics(t, z, zt, margin):
    ok = mask(t, *z.shape[1:], margin)
    moved = act(t, z)
    a, b = moved[:, ok], zt[:, ok]
    back = act(inverse(t), moved)[:, ok] - z[:, ok]
    return {"relative-error": np.linalg.norm(a - b) / np.linalg.norm(a), "cosine": (a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b),
            "floor": np.linalg.norm(back) / np.linalg.norm(z[:, ok])}


data = np.fromfile(sys.argv[2], np.uint8).reshape(-1, 3073)[:N, 1:].reshape(N, 3, 32, 32)
images = data.astype(np.float64) / 255
clean = layers(images)
# The partner of a sample is the next of its block, of the last the first.
partner = [i + 1 if i // BLOCK == (i + 1) // BLOCK and i + 1 < N else i // BLOCK * BLOCK for i in range(N)]
out = []
for name, t in transforms.items():
    for margin in (0, 0.125):
        if t[2] and margin:
            continue
        transformed = layers(moved_images(t, images))
        for layer, z in clean.items():
            one = [statistics(t, z[i], transformed[layer][i], margin) for i in range(N)]
            other = [statistics(t, z[i], transformed[layer][partner[i]], margin) for i in range(N)]
            average = lambda rows, keys: {k: float(np.mean([r[k] for r in rows])) for k in keys}
            out.append({"transform": name, "margin": margin, "layer": layer, "scores": average(one, ["relative-error", "cosine", "floor"]),
                        "null": average(other, ["relative-error", "cosine"])})
with open("golden.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(o) for o in out) + "\n]\n")
