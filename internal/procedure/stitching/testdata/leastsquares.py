#!/usr/bin/env python3
"""Golden values for the least squares fit of a stitch, with numpy's lstsq on the arrays themselves: the ridge is p further rows.

The Go code solves the normal equations from moments. Writes leastsquares.json beside itself: arrays, and the predictions W a + c.
"""
import json, os
import numpy as np

def fit(x, y):
    mx, my = x.mean(0), y.mean(0)
    p = x.shape[1]
    ridge = max(1e-6 * np.sum((x - mx) ** 2) / p, 1e-30)
    w = np.linalg.lstsq(np.vstack([x - mx, np.sqrt(ridge) * np.eye(p)]), np.vstack([y - my, np.zeros((p, y.shape[1]))]), rcond=None)[0]
    return (x - mx) @ w + my

def case(name, n, p, q, seed, spoil=lambda x: x):
    r = np.random.default_rng(seed)
    x = spoil(np.maximum(r.standard_normal((n, 3)) @ r.standard_normal((3, p)) + 0.5 * r.standard_normal((n, p)), 0) + 1)
    y = x @ r.standard_normal((p, q)) / np.linalg.norm(x) * np.sqrt(n) + 0.3 * r.standard_normal((n, q))
    x, y = x.astype(np.float32), y.astype(np.float32)
    return {"name": name, "p": p, "q": q, "x": [float(v) for v in x.ravel()], "y": [float(v) for v in y.ravel()],
            "predicted": [float(v) for v in fit(x.astype(float), y.astype(float)).ravel()]}

def equal(x):
    x[20:30] = x[:10]
    return x

def constant(x):
    x[:, 2] = 1.25
    return x

cases = [
    case("more samples than channels", 60, 6, 4, 1),
    case("more channels than samples", 20, 31, 4, 2),
    case("equal rows", 45, 6, 5, 3, equal),
    case("a constant channel", 40, 6, 4, 4, constant),
    case("channels of very different scales", 60, 5, 3, 5, lambda x: x * 10.0 ** -np.arange(5)),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "leastsquares.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
