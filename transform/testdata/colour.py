"""Golden values for hue, saturation, brightness and JPEG: python3 colour.py writes colour.json.

hue, saturation and brightness are torchvision's functions on tensors; negative factors, which those refuse, are PIL's, to whom torchvision
passes PIL images on. jpeg is PIL's: the test looks at the mean absolute difference from ours.
"""
import io
import json
import numpy as np
import torch
import torchvision.transforms.functional as F
from PIL import Image

rng = np.random.default_rng(7)
small = rng.integers(0, 256, (3, 4, 5)).astype(np.float32) / 255
small[:, 0, 0] = 0
small[:, 0, 1] = 1
small[:, 0, 2] = 0.5
small[:, 0, 3] = [1, 0, 0]


def numbers(a, digits=7):
    return [float(f"{v:.{digits}g}") for v in np.asarray(a, float).ravel()]


def pil(x):
    return Image.fromarray((x.transpose(1, 2, 0) * 255).round().astype(np.uint8))


def unpil(m):
    return np.asarray(m, np.float32).transpose(2, 0, 1) / 255


cases = []
for kind, name, f, values in [("hue", "shift", F.adjust_hue, [-0.5, -0.21, 0, 0.1, 1 / 3, 0.5]), ("saturation", "factor", F.adjust_saturation, [0, 0.3, 1, 2]), ("brightness", "factor", F.adjust_brightness, [0, 0.7, 2])]:
    for v in values:
        cases.append({"kind": kind, "parameter": name, "value": v, "within": 3e-6, "y": numbers(f(torch.tensor(small), v))})
for kind, name, f, values in [("saturation", "factor", F.adjust_saturation, [-0.5, -2]), ("brightness", "factor", F.adjust_brightness, [-0.5, -2])]:
    for v in values:  # PIL rounds to 8 bits, grey first
        cases.append({"kind": kind, "parameter": name, "value": v, "within": 3 / 255, "y": numbers(unpil(f(pil(small), v)), 5)})

y, x = np.mgrid[0:32, 0:40]
scene = np.stack([x / 39, y / 31, 0.5 + 0.5 * np.sin(x / 5) * np.cos(y / 7)]).astype(np.float32)
scene = (scene * 255).round() / 255
jpegs = []
for q in [1, 10, 30, 50, 75, 95, 100]:
    b = io.BytesIO()
    pil(scene).save(b, "JPEG", quality=q)
    jpegs.append({"quality": q, "y": [int(v) for v in np.asarray(Image.open(b)).transpose(2, 0, 1).ravel()]})
json.dump({"small": numbers(small), "cases": cases, "jpegs": jpegs}, open("colour.json", "w"), separators=(",", ":"))
