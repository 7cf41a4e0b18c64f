#!/usr/bin/env python3
"""Golden values of rankme and alpha-req, written with numpy and scikit-learn after the definitions of the papers and of the authors' programs:
the entropy of singular values plus 1e-7 (RankMe), and a weighted least squares fit, by the normal equations, to the explained variances of
scikit-learn's PCA, for the zero-based indices 5 to 99 (alpha-ReQ). Writes spectra.json beside itself.
"""
import json, os
import numpy as np
from sklearn.decomposition import PCA

def rankme(x):
    s = np.linalg.svd(x, compute_uv=False)
    p = s / s.sum() + 1e-7
    return np.exp(-(p * np.log(p)).sum())

def alpha(x):
    eigen = PCA(svd_solver="full").fit(x).explained_variance_ratio_
    eigen = eigen[eigen > eigen[0] * 1e-20]  # others are rounding errors
    index = np.arange(5, min(100, len(eigen)))
    y = np.log(eigen[index])[:, None]
    a = np.stack([-np.log(index + 1), np.ones(len(index))], 1)
    w = 1 / (index + 1)[:, None]
    return np.linalg.solve(a.T @ (a * w), (a * w).T @ y)[0, 0]

rng = np.random.default_rng(3)
cases = []
for n, p, decay, kind in [(60, 24, 0.5, ""), (24, 40, 1, ""), (130, 110, 0.3, ""), (50, 16, 0.5, "equal rows"),
                          (50, 16, 0.5, "constant columns"), (50, 16, 0.5, "other scales")]:
    x = rng.normal(size=(n, p)) * np.arange(1.0, p + 1) ** -decay @ np.linalg.qr(rng.normal(size=(p, p)))[0] + rng.normal(size=p)
    if kind == "equal rows":
        x[30:] = x[:20]
    if kind == "constant columns":
        x[:, :3] = 0
    if kind == "other scales":
        x[:, 1] *= 2000
    x = np.round(x, 3).astype(np.float32)
    d = x.astype(float)
    cases.append({"n": n, "p": p, "x": [round(float(v), 3) for v in x.ravel()], "rankme": rankme(d), "alpha-req": alpha(d)})
    print(n, p, cases[-1]["rankme"], cases[-1]["alpha-req"])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "spectra.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
