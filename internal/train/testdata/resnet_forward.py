#!/usr/bin/env python3
"""Outputs of torchvision's ResNets whose weights are drawn by a hash of their names.

Writes resnet_forward.json beside this file, for TestResNetForward, which draws the same weights.
Debian: python3-torchvision.
"""
import json, pathlib, re, zlib
import numpy as np
import torch
import torchvision.models as models


def uniform(name, n):
    """Returns n numbers in [0, 1): a hash of the name and the index."""
    h = (np.arange(n, dtype=np.uint32) + np.uint32(1)) * np.uint32(2654435761) + np.uint32(zlib.crc32(name.encode()))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    h ^= h >> np.uint32(16)
    return (h >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)


def ours(name):
    """Returns the name of a weight in Noether's networks."""
    name = re.sub(r"^layer(\d+)\.(\d+)\.", lambda m: f"stage{m[1]}.block{int(m[2]) + 1}.", name)
    name = name.replace("downsample.0.", "shortcut.conv.").replace("downsample.1.", "shortcut.norm.")
    name = re.sub(r"(^|\.)conv1\.", r"\1conv.", name) if name.startswith("conv1.") else name
    name = "norm." + name[4:] if name.startswith("bn1.") else re.sub(r"\.bn(\d)\.", r".norm\1.", name)
    name = name.replace("running_mean", "mean").replace("running_var", "variance").replace("fc.", "linear.")
    return re.sub(r"(norm\d?)\.weight$", r"\1.scale", name)


out = {}
for depth in (18, 50):
    net = getattr(models, f"resnet{depth}")(num_classes=10).eval()
    with torch.no_grad():
        for name, v in net.state_dict().items():
            if name.endswith("num_batches_tracked"):
                continue
            name = ours(name)
            u = torch.from_numpy(uniform(name, v.numel()))
            u = u.reshape(v.T.shape).T if name == "linear.weight" else u.reshape(v.shape)  # inputs x outputs
            if v.ndim > 1:
                v.copy_((2 * u - 1) * (6 / v[0].numel()) ** 0.5)
            elif name.endswith((".scale", ".variance")):
                v.copy_(0.5 + u)
            else:
                v.copy_(u - 0.5)
        x = torch.from_numpy(uniform("x", 2 * 3 * 64 * 96)).reshape(2, 3, 64, 96)
        y = net(x)
    out[f"resnet{depth}"] = {"parameters": sum(p.numel() for p in net.parameters()), "y": y.flatten().tolist()}
path = pathlib.Path(__file__).with_name("resnet_forward.json")
path.write_text(json.dumps(out) + "\n")
