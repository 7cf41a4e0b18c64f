#!/usr/bin/env python3
"""Golden values of training: what PyTorch's optimisers and losses make of a small network in float64 in eight steps.

Writes golden.json beside this file. Debian: python3-torch.
"""
import json, pathlib
import torch, torch.nn.functional as F

torch.set_default_dtype(torch.float64)
OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
}
LOSSES = {
    "squared-error": lambda y, t: F.mse_loss(y, t),
    "cross-entropy": lambda y, t: F.cross_entropy(y, t),
    "binary-cross-entropy": lambda y, t: F.binary_cross_entropy_with_logits(y, t),
    "cosine-distance": lambda y, t: (1 - F.cosine_similarity(y, t, dim=1)).mean(),
}


def case(optimiser, loss, clip):
    g = torch.Generator().manual_seed(7)
    rand = lambda *s: torch.rand(*s, generator=g) * 2 - 1
    w = [rand(5, 7), rand(7), rand(7, 3), rand(3)]
    start = [p.clone() for p in w]
    for p in w:
        p.requires_grad_(True)
    opt = OPTIMISERS[optimiser](w)
    batches, losses = [], []
    for _ in range(8):
        x = rand(6, 5)
        t = torch.randint(0, 3, (6,), generator=g) if loss == "cross-entropy" else (rand(6, 3) > 0).double() if loss[0] == "b" else rand(6, 3)
        y = F.relu(x @ w[0] + w[1]) @ w[2] + w[3]
        opt.zero_grad()
        l = LOSSES[loss](y, t)
        l.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(w, clip)
        opt.step()
        batches.append({"x": x.flatten().tolist(), "t": t.flatten().tolist()})
        losses.append(float(l))
    flat = lambda ps: [p.detach().flatten().tolist() for p in ps]
    return {"optimiser": optimiser, "loss": loss, "clip": clip, "start": flat(start), "end": flat(w), "losses": losses, "batches": batches}


cases = [case(o, "squared-error", 0) for o in OPTIMISERS]
cases += [case("sgd", l, 0) for l in LOSSES if l != "squared-error"] + [case("momentum", "cross-entropy", 0.1)]
round10 = lambda v: float(f"{v:.10g}") if isinstance(v, float) else [round10(u) for u in v] if isinstance(v, list) else {k: round10(u) for k, u in v.items()} if isinstance(v, dict) else v
pathlib.Path(__file__).with_name("golden.json").write_text(json.dumps(round10(cases)) + "\n")
