"""Writes confounding.json, the golden values of TestConfounding: numpy, with the neighbours by an
argsort of all cosines, and ridge regression fitted anew without each sample.

The left-out means and penalties are those of all samples, as the measure defines.
"""

import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(7)
cases = []
for n, d, classes, sites, shift in [(60, 5, 3, 2, 1.5), (40, 70, 2, 3, 0.4)]:
    y, s = rng.integers(classes, size=n), rng.integers(sites, size=n)
    z = rng.normal(size=(n, d))
    z[np.arange(n), y] += 1
    z[np.arange(n), classes + s] += shift
    z = z.astype(np.float32)
    x = z.astype(np.float64)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cos = unit @ unit.T
    np.fill_diagonal(cos, -np.inf)
    k = 7
    nearest = np.argsort(-cos, axis=1, kind="stable")[:, :k]
    so = ((y[nearest] == y[:, None]) & (s[nearest] != s[:, None])).sum()
    os = ((y[nearest] != y[:, None]) & (s[nearest] == s[:, None])).sum()
    same_y, same_s = y[:, None] == y, s[:, None] == s
    all_so, all_os = (same_y & ~same_s).sum(), (~same_y & same_s).sum()

    def knn(label):
        right = 0
        for i in range(n):
            found = label[nearest[i]]
            count = np.bincount(found)
            right += next(v for v in found if count[v] == count.max()) == label[i]
        return right / n

    def probe(label, penalty=0.01):
        c = x - x.mean(0)
        lam = penalty * (c**2).sum() / d
        onehot = np.eye(label.max() + 1)[label]
        right = 0
        # The intercept is a further column without a penalty.
        a = np.hstack([c, np.ones((n, 1))])
        for i in range(n):
            keep = np.arange(n) != i
            w = np.linalg.solve(a[keep].T @ a[keep] + lam * np.diag([1.0] * d + [0.0]), a[keep].T @ onehot[keep])
            right += (a[i] @ w).argmax() == label[i]
        return right / n

    cases.append({"vectors": z.tolist(), "class": y.tolist(), "group": s.tolist(), "neighbours": k,
                  "values": {"robustness-index": so / (so + os), "knn-class": knn(y), "knn-factor": knn(s), "probe-class": probe(y), "probe-factor": probe(s)},
                  "nulls": {"robustness-index": all_so / (all_so + all_os), "knn-class": np.bincount(y).max() / n, "knn-factor": np.bincount(s).max() / n,
                            "probe-class": np.bincount(y).max() / n, "probe-factor": np.bincount(s).max() / n}})
Path(__file__).with_name("confounding.json").write_text(json.dumps(cases))
for c in cases:
    print(c["values"], c["nulls"])
