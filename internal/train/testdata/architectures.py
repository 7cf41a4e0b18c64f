#!/usr/bin/env python3
"""Shapes of the weights of torchvision's networks, without their first convolution and last layers, which differ for CIFAR.

Writes architectures.json beside this file. Debian: python3-torchvision.
"""
import json, pathlib
import torchvision.models as models


def shapes(module, skip):
    return [list(v.shape) for name, v in module.named_parameters() if not name.startswith(skip)]


out = {}
for depth in (18, 34, 50, 101, 152):
    out[f"resnet{depth}"] = shapes(getattr(models, f"resnet{depth}")(), ("conv1.", "fc."))
for depth in (11, 13, 16, 19):
    net = getattr(models, f"vgg{depth}_bn")().features
    biases = {name + ".bias" for name, m in net.named_modules() if type(m).__name__ == "Conv2d"}  # redundant before a BatchNorm
    out[f"vgg{depth}"] = [list(v.shape) for name, v in net.named_parameters() if name not in biases]
path = pathlib.Path(__file__).with_name("architectures.json")
path.write_text(json.dumps(out) + "\n")
