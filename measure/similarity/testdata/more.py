#!/usr/bin/env python3
"""Golden values for pls-predictivity and the statistics of one representation, with numpy alone, on the arrays of list.json.

pls-predictivity is the NIPALS algorithm on the arrays, which takes the residuals of predictors and targets after each component. The Go
code works along principal axes and on products of the arrays. Writes more.json beside itself: a list with one entry for each case.
"""
import json, os
import numpy as np

def pls(x, y, folds, components):
    fold, residual, total = np.arange(len(x)) % folds, 0, 0
    for k in range(folds):
        a, b = fold != k, fold == k
        mx, my = x[a].mean(0), y[a].mean(0)
        target, z, test = x[a] - mx, y[a] - my, y[b] - my
        predicted, first = np.zeros((b.sum(), x.shape[1])), None
        for _ in range(min(components, len(z) - 1, z.shape[1])):
            u, d, _ = np.linalg.svd(z.T @ target)
            first = d[0] if first is None else first
            if d[0] <= 1e-11 * first:
                break
            t, tt = z @ u[:, 0], test @ u[:, 0]
            load, c = z.T @ t / (t @ t), target.T @ t / (t @ t)
            z, target, test = z - np.outer(t, load), target - np.outer(t, c), test - np.outer(tt, load)
            predicted += np.outer(tt, c)
        residual += np.sum((x[b] - mx - predicted) ** 2)
        total += np.sum((x[b] - mx) ** 2)
    return 1 - residual / total

def distances(x):
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(2))

def two_nn(x):
    d = np.sort(distances(x), 1)
    d = d[d[:, 1] > 0]
    mu = np.sort(np.log(d[:, 2] / d[:, 1]))
    f = np.arange(1, len(mu) + 1) / len(mu)
    k = int(0.9 * len(mu))
    return np.linalg.lstsq(mu[:k, None], -np.log(1 - f[:k]), rcond=None)[0][0]

def effective_rank(x):
    s = np.linalg.svd(x, compute_uv=False)
    p = s[s > s[0] * 1e-14]
    p = p / p.sum()
    return np.exp(-(p * np.log(p)).sum())

def rankme(x):
    s = np.linalg.svd(x, compute_uv=False)
    p = s / s.sum() + 1e-7
    return np.exp(-(p * np.log(p)).sum())

def geometry(x):
    m = x.mean(0)
    return {"magnitude": np.linalg.norm(m), "concentricity": np.mean(x @ m / np.linalg.norm(x, axis=1)) / np.linalg.norm(m),
            "uniformity": np.log(np.exp(-2 * distances(x) ** 2).mean()), "intrinsic-dimension": two_nn(x), "effective-rank": effective_rank(x), "rankme": rankme(x)}

here = os.path.dirname(os.path.abspath(__file__))
out = []
for c in json.load(open(os.path.join(here, "list.json"))):
    x, y = [np.array(c[k], np.float32).astype(float).reshape(c["n"], -1) for k in "xy"]
    values = [{"folds": f, "components": k, "value": float(pls(x, y, f, k))} for f, k in [(5, 3), (4, 1), (3, 5), (5, 25)]]
    out.append({"pls": values, "geometry": {k: float(v) for k, v in geometry(x).items()}})
with open(os.path.join(here, "more.json"), "w") as f:
    json.dump(out, f)
    f.write("\n")
