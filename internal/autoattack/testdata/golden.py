#!/usr/bin/env python3
"""Writes golden.json: images that the attacks of the authors' package autoattack ask a network for, one after the other.

usage: PYTHONPATH=auto-attack golden.py      # github.com/fra31/auto-attack at a39220048b3c9f2cca9a4d3a54604793c68eca7e

The network, the images and the random numbers come from formulas, so that no generator is shared with the Go code: the k-th random
number is the fractional part of (k + 1) times the golden ratio. For each case: the indices of queries, and every 9th value of the
images at these. Also how many images of a larger set each attack breaks alone, and all of them in order.
"""
import json, math, pathlib
import numpy as np, torch
from autoattack.autopgd_base import APGDAttack, APGDAttack_targeted
from autoattack.fab_pt import FABAttack_PT
from autoattack.square import SquareAttack

C, H, W, HIDDEN, CLASSES, STRIDE = 2, 10, 10, 24, 10, 9
i, j, k = np.arange(HIDDEN)[:, None], np.arange(C * H * W)[None], np.arange(CLASSES)[:, None]
first = torch.from_numpy((np.sin(1.7 * i + 0.9 * j + 0.013 * i * j) * 0.6).astype(np.float32)).double()
second = torch.from_numpy((np.cos(2.3 * k + 1.1 * i.T + 0.17 * k * i.T)).astype(np.float32)).double()
radii = {"Linf": 0.0015, "L2": 0.012}


def network(x):
    queries.append(x.detach().numpy().reshape(len(x), -1)[0].copy())
    return (torch.tanh((x.double().flatten(1) - 0.5) @ first.T) @ second.T).float()


def image(n):
    return torch.from_numpy((0.5 + 0.5 * np.sin(0.37 * (n + 1) * (j[0] + 1) + n)).astype(np.float32)).view(1, C, H, W)


class Draws:
    """torch.rand and torch.randn (here uniform in [-1, 1]) from the sequence."""

    def __init__(self):
        self.count = 0

    def rand(self, *shape):
        shape = shape[0] if not isinstance(shape[0], int) else shape
        n = math.prod(shape)
        u = [(self.count + 1 + m) * 0.6180339887498949 % 1 for m in range(n)]
        self.count += n
        return torch.tensor(u, dtype=torch.float64).float().view(tuple(shape))

    def randn(self, *shape):
        return 2 * self.rand(*shape) - 1


def run(attack, x, y):
    global queries
    draws = Draws()
    real = torch.rand, torch.randn
    torch.rand, torch.randn = draws.rand, draws.randn
    queries = []
    try:
        found = attack(x, y)
    finally:
        torch.rand, torch.randn = real
    return found


cases, at = [], {"apgd-ce": [0, 1, 2, 22, 23, 60, 100], "apgd-t": [0, 1, 2, 22, 23, 60, 100], "fab-t": [0, 2, 4, 20, 60, 198], "square": [0, 1, 2, 30, 120, 300]}
queries = []
for norm, radius in radii.items():
    for n in range(2):
        x = image(n)
        y = network(x).argmax(1)
        for name in at:
            for part in range(1 if name in ("apgd-ce", "square") else 2):
                target = network(x).sort(1)[1][:, -2 - part]
                if name == "apgd-ce":
                    a = APGDAttack(network, n_iter=100, norm=norm, eps=radius, loss="ce", device="cpu")
                    f = a.attack_single_run
                elif name == "apgd-t":
                    a = APGDAttack_targeted(network, n_iter=100, norm=norm, eps=radius, device="cpu")
                    a.y_target = target
                    f = a.attack_single_run
                elif name == "fab-t":
                    a = FABAttack_PT(network, n_iter=100, norm=norm, eps=radius, targeted=True, device="cpu")
                    a.target_class = 2 + part
                    f = lambda x, y: a.attack_single_run(x, y, is_targeted=True)
                else:
                    a = SquareAttack(network, norm=norm, n_queries=301, eps=radius, p_init=0.8, resc_schedule=False, device="cpu")
                    f = a.attack_single_run
                if name != "fab-t":
                    a.init_hyperparam(x)
                run(f, x, y)
                asked = queries[2:] if name == "fab-t" else queries  # the first two are of x, for its label and the target
                assert len(asked) > at[name][-1], (norm, name, n, part, len(asked))
                cases.append({"norm": norm.lower(), "attack": name, "image": n, "part": part, "queries": at[name],
                              "values": [[round(float(v), 7) for v in asked[q][::STRIDE]] for q in at[name]]})

bumps = {}
for s in (1, 2, 3, 5, 6, 9):
    a = SquareAttack(network, norm="L2", eps=1, device="cpu")
    real, torch.rand = torch.rand, lambda *shape: torch.zeros(1)
    bumps[s] = [round(float(v), 7) for v in a.eta(s).flatten()]
    torch.rand = real
a = SquareAttack(network, norm="L2", eps=1, p_init=0.8, resc_schedule=False, device="cpu")
steps = [0, 10, 11, 50, 51, 200, 201, 500, 501, 1000, 1001, 2000, 2001, 4000, 4001, 4999]
sides = [[s, int(round(math.sqrt(a.p_selection(s) * 32 * 32)))] for s in steps]

# Accuracies of 14 images under each attack alone, of the complete attacks with their own random numbers.
x = torch.cat([image(n) for n in range(14)])
y = network(x).argmax(1)
accuracies = []
for norm, radius in {"Linf": 0.004, "L2": 0.035}.items():
    torch.manual_seed(1)
    tools = {"apgd-ce": APGDAttack(network, n_iter=100, norm=norm, eps=radius, seed=1, loss="ce", device="cpu"),
             "apgd-t": APGDAttack_targeted(network, n_iter=100, norm=norm, eps=radius, seed=1, device="cpu"),
             "fab-t": FABAttack_PT(network, n_iter=100, norm=norm, eps=radius, seed=1, targeted=True, device="cpu"),
             "square": SquareAttack(network, norm=norm, n_queries=5000, eps=radius, p_init=0.8, seed=1, resc_schedule=False, device="cpu")}
    robust = {name: network(a.perturb(x, y)).argmax(1) == y for name, a in tools.items()}
    every = torch.stack(list(robust.values())).all(0)
    accuracies.append({"norm": norm.lower(), "radius": radius, "images": len(x), "alone": {name: int(v.sum()) for name, v in robust.items()},
                       "robust": int(every.sum()), "by": [int(v) for v in every]})

out = {"radii": {n.lower(): r for n, r in radii.items()}, "stride": STRIDE, "cases": cases, "bumps": bumps, "sides": sides, "accuracies": accuracies}
(pathlib.Path(__file__).parent / "golden.json").write_text(json.dumps(out) + "\n")
for a in accuracies:
    print({k: v for k, v in a.items() if k != "by"})
