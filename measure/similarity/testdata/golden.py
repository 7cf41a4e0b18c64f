#!/usr/bin/env python3
"""Golden values for package similarity, with numpy and scipy from the definitions. Writes golden.json beside itself.

Each statistic is computed by the most literal formula, by other routes than the Go code takes: singular value decompositions
and QR of the data, explicit centring matrices, scipy's spearmanr and pdist, sorting.
"""
import json, os
import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

VARIANCE, BANDWIDTH, NEIGHBOURS = 0.9, 0.5, 7

def hsic(k, l):
    h = np.eye(len(k)) - 1 / len(k)
    return np.trace(k @ h @ l @ h)

def unbiased(k, l):
    # As a sum over distinct indices, by U-centring (Szekely and Rizzo 2014): <K~, L~> / (n (n - 3)).
    def u(a):
        a = a - np.diag(np.diag(a))
        n = len(a)
        r = a.sum(1)
        c = a - r[:, None] / (n - 2) - r[None] / (n - 2) + r.sum() / ((n - 1) * (n - 2))
        return c - np.diag(np.diag(c))
    n = len(k)
    return np.sum(u(k) * u(l)) / (n * (n - 3))

def cka(k, l, h):
    return h(k, l) / np.sqrt(h(k, k) * h(l, l))

def basis(x):
    x = x / np.where(np.linalg.norm(x, axis=0) > 0, np.linalg.norm(x, axis=0), 1)  # the same span
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    return u[:, s > s[0] * 1e-14 * max(x.shape)]

def canonical(x, y):
    qx = basis(x)
    u, s, _ = np.linalg.svd(qx.T @ basis(y), full_matrices=False)
    return np.clip(s, 0, 1), qx @ u

def keep(x):
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    k = int(np.searchsorted(np.cumsum(s**2) / np.sum(s**2), VARIANCE)) + 1
    return u[:, :k] * s[:k]

def rbf(x):
    d = pdist(x)
    return np.exp(-squareform(d) ** 2 / (2 * (BANDWIDTH * np.median(d)) ** 2))

def neighbours(x):
    # Row i: the probability that sample j is among the nearest of i when ties are broken at random.
    d = squareform(pdist(x))
    np.fill_diagonal(d, np.inf)
    out = np.zeros_like(d)
    for i, row in enumerate(d):
        last = np.sort(row)[NEIGHBOURS - 1]
        tied = np.isclose(row, last, rtol=1e-9, atol=1e-9)
        nearer = (row < last) & ~tied
        out[i, nearer] = 1
        out[i, tied] = (NEIGHBOURS - nearer.sum()) / tied.sum()
    return out

def pwcca(x, y):
    rho, h = canonical(x, y)
    a = np.abs(h.T @ x).sum(1)
    return a @ rho / a.sum()

def statistics(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    k, l = x @ x.T, y @ y.T
    q = basis(y)
    return {
        "linear-cka": cka(k, l, hsic),
        "debiased-cka": cka(k, l, unbiased),
        "rbf-cka": cka(rbf(x), rbf(y), hsic),
        "cca": canonical(x, y)[0].mean(),
        "svcca": canonical(keep(x), keep(y))[0].mean(),
        "pwcca": pwcca(x, y),
        "procrustes": np.linalg.norm(x.T @ y, "nuc") / np.linalg.norm(x) / np.linalg.norm(y),
        "linear-regression": 1 - np.sum((x - q @ (q.T @ x)) ** 2) / np.sum(x**2),
        "rsa": spearmanr(*(np.round(pdist(a, "cosine"), 12) for a in (x, y))).correlation,
        "mutual-knn": np.mean(np.sum(neighbours(x) * neighbours(y), 1)) / NEIGHBOURS,
    }

def case(name, n, p, q, seed, spoil=lambda x, y: None):
    r = np.random.default_rng(seed)
    z = r.standard_normal((n, 4))
    x = np.logaddexp(0, z @ r.standard_normal((4, p)) + r.standard_normal((n, p))) + 3
    y = np.logaddexp(0, z @ r.standard_normal((4, q)) + r.standard_normal((n, q))) - 1
    spoil(x, y)
    x, y = x.astype(np.float32), y.astype(np.float32)
    values = statistics(x.astype(np.float64), y.astype(np.float64))
    return {"name": name, "n": n, "p": p, "q": q, "x": [float(v) for v in x.ravel()], "y": [float(v) for v in y.ravel()],
            "variance": VARIANCE, "bandwidth": BANDWIDTH, "neighbours": NEIGHBOURS, "values": {k: float(v) for k, v in values.items()}}

def collinear(x, y):
    x[:, 1] = x[:, 0] + 1e-5 * x[:, 2]
    y[:, 3] = 100 * y[:, 0]
    x[:, 4] = 2.5  # a dead unit

def tied(x, y):
    x[5:45] = 0
    y[20:] = np.round(y[20:])  # many equal distances and equal samples

def scaled(x, y):
    # Ten and eight columns of scales down to 2^-36, each four times: exact dependence in wide arrays.
    for a, k in ((x, 10), (y, 8)):
        for j in range(a.shape[1]):
            a[:, j] = a[:, j % k].astype(np.float32) * 2.0 ** (0 if j >= k else -4 * j)

def wide_scales(x, y):
    x *= 10.0 ** -np.arange(x.shape[1] / 4, step=0.25)
    y *= 10.0 ** -np.arange(y.shape[1] / 4, step=0.25)

cases = [
    case("tall", 60, 7, 5, 1),
    case("one column", 30, 1, 3, 2),
    case("more variables than samples", 24, 40, 33, 3),
    case("one side wide", 24, 40, 5, 4),
    case("nearly dependent", 80, 8, 6, 5, collinear),
    case("badly scaled wide", 24, 40, 32, 7, scaled),
    case("wide of many scales", 24, 40, 33, 8, wide_scales),
    case("tied distances", 60, 6, 2, 6, tied),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
