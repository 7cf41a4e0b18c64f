#!/usr/bin/env python3
"""The changes of torchvision's TrivialAugmentWide, of an image with 8 bits, at several strengths of both signs. Those of colour are
computed on floats, but posterize, solarize and equalize, which torchvision has for 8 bits only.

Writes trivialaugment.json beside this file. Debian: python3-torchvision.
"""
import json, pathlib
import torch
from torchvision.transforms import InterpolationMode, autoaugment

torch.manual_seed(4)
h, w = 20, 16
ramp = torch.linspace(0, 200, h * w).reshape(1, h, w)
image = (ramp + 55 * torch.rand(3, h, w)).clamp(20, 255).to(torch.uint8)
image[2] = image[2] // 3 + 40
names = {"Identity": "identity", "ShearX": "shear-x", "ShearY": "shear-y", "TranslateX": "translate-x", "TranslateY": "translate-y",
         "Rotate": "rotate", "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness",
         "Posterize": "posterize", "Solarize": "solarize", "AutoContrast": "auto-contrast", "Equalize": "equalize"}
space = autoaugment.TrivialAugmentWide()._augmentation_space(31)
assert list(space) == list(names)
cases = []
for name, (magnitudes, signed) in space.items():
    for level in [5, 30] if magnitudes.ndim else [0]:
        for sign in [1, -1] if signed else [1]:
            m = float(magnitudes[level]) * sign if magnitudes.ndim else 0.0
            x = image if name in ("Posterize", "Solarize", "Equalize") else image.float() / 255
            y = autoaugment._apply_op(x, name, m, interpolation=InterpolationMode.NEAREST, fill=None)
            y = y.float() / 255 if y.dtype == torch.uint8 else y
            cases.append({"change": names[name], "level": level, "negative": sign < 0, "strength": m, "values": [round(v, 4) for v in y.flatten().tolist()]})
out = {"shape": [3, h, w], "image": image.flatten().tolist(), "cases": cases}
pathlib.Path(__file__).with_name("trivialaugment.json").write_text(json.dumps(out) + "\n")
