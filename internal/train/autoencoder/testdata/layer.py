"""Writes layer.json: an autoencoder trained by hand in numpy, for the tests of this package.

    python3 layer.py > layer.json

J and its gradient are written out from the package's comment; Adam as Kingma and Ba (2015) have it, its rate along half a cosine.
One batch holds all patterns, so that their order does not matter.
"""
import json
import numpy as np

r = np.random.default_rng(5)
n, m, p, steps = 6, 4, 10, 5
decay, target, weight, rate = 0.05, -0.6, 2.0, 0.01
x = r.uniform(-0.9, 0.9, (p, n))
held = r.uniform(-0.9, 0.9, (4, n))
bound = np.sqrt(6 / (n + m))
w1, w2 = r.uniform(-bound, bound, (m, n)), r.uniform(-bound, bound, (n, m))
b1, b2 = np.full(m, np.arctanh(target)), np.zeros(n)
start = {"w1": w1.T.tolist(), "w2": w2.T.tolist()}
params = [w1, b1, w2, b2]
mean, square = [np.zeros_like(a) for a in params], [np.zeros_like(a) for a in params]


def forward(x):
    w1, b1, w2, b2 = params
    h = np.tanh(x @ w1.T + b1)
    return h, np.tanh(h @ w2.T + b2)


def gradient():
    w1, b1, w2, b2 = params
    h, y = forward(x)
    dy = 2 * (y - x) / p * (1 - y**2)
    dh = dy @ w2 + 2 * weight * (h.mean(0) - target) / p
    dh = dh * (1 - h**2)
    return [(dh.T @ x + 2 * decay * w1) / n, dh.sum(0) / n, (dy.T @ h + 2 * decay * w2) / n, dy.sum(0) / n]


curve = []
for t in range(1, steps + 1):
    a = rate * (1 + np.cos(np.pi * (t - 1) / steps)) / 2
    for i, g in enumerate(gradient()):
        mean[i] = 0.9 * mean[i] + 0.1 * g
        square[i] = 0.999 * square[i] + 0.001 * g * g
        params[i] = params[i] - a * (mean[i] / (1 - 0.9**t)) / (np.sqrt(square[i] / (1 - 0.999**t)) + 1e-8)
    curve.append(float(((forward(held)[1] - held) ** 2).sum(1).mean()))

print(json.dumps({"n": n, "m": m, "decay": decay, "target": target, "weight": weight, "rate": rate, "steps": steps,
                  "x": x.tolist(), "held": held.tolist(), "start": start, "curve": curve,
                  "w1": params[0].tolist(), "b1": params[1].tolist(), "w2": params[2].tolist(), "b2": params[3].tolist()}))
