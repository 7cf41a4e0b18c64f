"""Trains the probes of Plachouras et al. 2025 in PyTorch on a small problem: golden.json is what the tests of the package are held
against. The data come from a linear congruential generator, so that nothing but its results need be kept.

    python3 golden.py > golden.json
"""
import json
import sys

import numpy as np
import torch


def numbers(n, seed):
    """n numbers in [-1, 1), the same in every language: x <- 1664525 x + 1013904223 mod 2^32."""
    out, x = np.empty(n), seed
    for i in range(n):
        x = (1664525 * x + 1013904223) % 2**32
        out[i] = x / 2**31 - 1
    return out


N, D, TRAIN, VALID = 600, 16, 400, 100
X = numbers(N * D, 1).reshape(N, D)
NOISE = numbers(N, 2)
Y = 0.5 * X[:, 0] + 0.3 * X[:, 1] * X[:, 2] + 0.4 * np.abs(X[:, 3]) + 0.1 * NOISE
C = (X[:, 0] > 0).astype(int) + (X[:, 1] + X[:, 2] > 0.5).astype(int)


# Of each kind: the hidden layers, the seeds, and whether it learns classes too. A narrow mlp is fast enough for many seeds.
KINDS = {"slp": ([], 10, True), "mlp": ([512, 256], 10, True), "narrow mlp": ([32, 16], 6, False)}


def net(kind, outputs):
    sizes = [D] + KINDS[kind][0] + [outputs]
    layers = []
    for i in range(len(sizes) - 1):
        if i:
            layers.append(torch.nn.ReLU())
        layers.append(torch.nn.Linear(sizes[i], sizes[i + 1]))
    return torch.nn.Sequential(*layers)


def fit(kind, classes, seed):
    torch.manual_seed(seed)
    model = net(kind, 3 if classes else 1)
    x = torch.tensor(X, dtype=torch.float32)
    y = torch.tensor(C) if classes else torch.tensor(Y, dtype=torch.float32)[:, None]
    loss = torch.nn.CrossEntropyLoss() if classes else torch.nn.MSELoss()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
    best, weights, waited = np.inf, None, 0
    for _ in range(100):
        order = torch.randperm(TRAIN)
        for at in range(0, TRAIN, 32):
            i = order[at:at + 32]
            optimiser.zero_grad()
            loss(model(x[i]), y[i]).backward()
            optimiser.step()
        with torch.no_grad():
            now = loss(model(x[TRAIN:TRAIN + VALID]), y[TRAIN:TRAIN + VALID]).item()
        if now < best:
            best, waited = now, 0
            weights = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            waited += 1
            if waited >= 10:
                break
    model.load_state_dict(weights)
    with torch.no_grad():
        p = model(x[TRAIN + VALID:])
    if classes:
        return (p.argmax(1).numpy() == C[TRAIN + VALID:]).mean()
    return float(np.sqrt(np.mean((p[:, 0].numpy() - Y[TRAIN + VALID:]) ** 2)))


torch.set_num_threads(1)
out = {}
for kind, (_, seeds, both) in KINDS.items():
    for classes in [False, True][:1 + both]:
        values = [fit(kind, classes, s) for s in range(seeds)]
        out[kind + (" accuracy" if classes else " rmse")] = {"mean": float(np.mean(values)), "deviation": float(np.std(values, ddof=1))}
        print(kind, classes, values, file=sys.stderr)
json.dump(out, sys.stdout, indent=1)
