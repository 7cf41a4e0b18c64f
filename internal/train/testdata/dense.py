#!/usr/bin/env python3
"""Golden values of dense and multi-task training: what PyTorch makes, in float64 and eight steps, of a small network with a map
of classes and a vector as outputs. The loss is the cross entropy of the positions plus 0.5 times the binary cross entropy of the
vector; positions of class -1 are ignored. In one batch all positions of a sample are.

Writes dense.json beside this file. Debian: python3-torch.
"""
import json, pathlib
import torch, torch.nn as nn, torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(5)
conv, head, linear = nn.Conv2d(2, 4, 3, 1, 1, bias=False), nn.Conv2d(4, 3, 1, bias=False), nn.Linear(4, 2)
names = {"conv": conv.weight, "head": head.weight, "weight": linear.weight, "bias": linear.bias}
flat = lambda: {k: (v.T if k == "weight" else v).detach().flatten().tolist() for k, v in names.items()}
out = {"start": flat(), "batches": [], "losses": [], "positions": [], "correct": []}
opt = torch.optim.SGD(names.values(), 0.2, momentum=0.9)
for step in range(8):
    x, t, p = torch.rand(3, 2, 5, 4) * 2 - 1, torch.randint(-1, 3, (3, 5, 4)), (torch.rand(3, 2) > 0.5).double()
    if step == 4:
        t[1] = -1
    z = F.relu(conv(x))
    y, v = head(z), linear(z.mean((2, 3)))
    dense = F.cross_entropy(y, t, ignore_index=-1)
    loss = dense + 0.5 * F.binary_cross_entropy_with_logits(v, p)
    opt.zero_grad()
    loss.backward()
    opt.step()
    right = [float((y[i].argmax(0) == t[i])[t[i] >= 0].double().mean()) if (t[i] >= 0).any() else 0.0 for i in range(3)]
    out["batches"].append({"x": x.flatten().tolist(), "t": t.flatten().tolist(), "p": p.flatten().tolist()})
    out["losses"].append(float(loss)), out["positions"].append(float(dense)), out["correct"].append(sum(right) / 3)
out["end"] = flat()
pathlib.Path(__file__).with_name("dense.json").write_text(json.dumps(out) + "\n")
