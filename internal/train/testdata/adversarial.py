#!/usr/bin/env python3
"""Golden values of adversarial training: what PyTorch makes, in float64 and ten steps of SGD with momentum and decay, of the
network of network.py, by AT, TRADES and MART in an l2 and an linf ball, with two steps of the search from recorded points.

The losses are written as in the code of the papers' authors: the search in evaluation mode; TRADES calls the network in training
mode on x, x' and x, MART on x and x'. Writes adversarial.json beside this file. Debian: python3-torch.
"""
import json, pathlib
import torch, torch.nn as nn, torch.nn.functional as F

import network as base

torch.set_default_dtype(torch.float64)
BETA, STEPS = 4.0, 2


def ascend(x0, x, g, norm, radius, size):
    if norm == "linf":
        x = x + size * g.sign()
        x = torch.min(torch.max(x, x0 - radius), x0 + radius)
    else:
        n = g.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        x = x + size * g / n.clamp(min=1e-30)
        d = x - x0
        x = x0 + d * (radius / d.flatten(1).norm(dim=1).view(-1, 1, 1, 1)).clamp(max=1)
    return x.clamp(0, 1)


def search(net, x0, start, t, defence, norm, radius, size):
    net.eval()
    x, p = start, F.softmax(net(x0), dim=1).detach()
    for _ in range(STEPS):
        x = x.detach().requires_grad_()
        if defence == "trades":
            loss = F.kl_div(F.log_softmax(net(x), dim=1), p, reduction="sum")
        else:
            loss = F.cross_entropy(net(x), t, reduction="sum")
        x = ascend(x0, x, torch.autograd.grad(loss, x)[0], norm, radius, size)
    net.train()
    return x.detach()


def loss_of(net, x, adv, t, defence):
    n = len(x)
    if defence == "at":
        return F.cross_entropy(net(adv), t)
    if defence == "trades":
        logits = net(x)
        robust = F.kl_div(F.log_softmax(net(adv), dim=1), F.softmax(net(x), dim=1), reduction="sum") / n
        return F.cross_entropy(logits, t) + BETA * robust
    logits, logits_adv = net(x), net(adv)
    p = F.softmax(logits_adv, dim=1)
    order = torch.argsort(p, dim=1)[:, -2:]
    other = torch.where(order[:, -1] == t, order[:, -2], order[:, -1])
    boosted = F.cross_entropy(logits_adv, t) + F.nll_loss(torch.log(1.0001 - p + 1e-12), other)
    clean = F.softmax(logits, dim=1)
    kl = F.kl_div(torch.log(p + 1e-12), clean, reduction="none").sum(1)
    return boosted + BETA * (kl * (1.0000001 - clean.gather(1, t[:, None])[:, 0])).sum() / n


def golden(defence, norm):
    torch.manual_seed(5)
    radius = 0.1 if norm == "linf" else 0.8
    size = 2.5 * radius / STEPS
    net = base.Net([4, 6]).train()
    with torch.no_grad():
        for m in net.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.weight.uniform_(0.5, 1.5)
                m.bias.uniform_(-0.5, 0.5)
    start, batches, losses = base.weights(net), [], []
    opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9, weight_decay=5e-3)
    for _ in range(10):
        x, t = (torch.rand(5, 2, 6, 6) * 1000).round() / 1000, torch.randint(0, 3, (5,))
        near = (x + 0.02 * torch.randn_like(x)).float().double()
        adv = search(net, x, near, t, defence, norm, radius, size)
        opt.zero_grad()
        loss = loss_of(net, x, adv, t, defence)
        loss.backward()
        opt.step()
        batches.append({"x": x.flatten().tolist(), "t": t.tolist(), "start": near.flatten().tolist()})
        losses.append(float(loss))
    row = {"defence": defence, "norm": norm, "radius": radius, "beta": BETA, "steps": STEPS, "end": base.weights(net), "losses": losses}
    return row, {"start": start, "batches": batches}


rows, same = zip(*(golden(d, n) for d in ("at", "trades", "mart") for n in ("l2", "linf")))
assert all(s == same[0] for s in same)  # all start from the same weights, batches and points
pathlib.Path(__file__).with_name("adversarial.json").write_text(json.dumps(base.short({**same[0], "rows": list(rows)})) + "\n")
