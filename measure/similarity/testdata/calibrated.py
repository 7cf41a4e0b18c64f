#!/usr/bin/env python3
"""Golden values of calibrated similarities, (s - E[s]) / (1 - E[s]), with numpy: E[s] is the mean over all 720 orders of the six rows of Y.
The Go code has this mean in closed form. Writes calibrated.json beside itself.
"""
import itertools, json, os
import numpy as np

def centred_gram(x):
    x = x - x.mean(0)
    return x @ x.T

def cka(k, l):
    return (k * l).sum() / np.linalg.norm(k) / np.linalg.norm(l)

def rbf(x):
    d2 = ((x[:, None] - x[None]) ** 2).sum(2)
    median = np.median(np.sqrt(d2[np.triu_indices(len(x), 1)]))
    k = np.exp(-d2 / (2 * (0.4 * median) ** 2))
    return k - k.mean(0) - k.mean(1)[:, None] + k.mean()

def regression(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    q = np.linalg.svd(y, full_matrices=False)[0]
    return np.linalg.norm(q.T @ x) ** 2 / np.linalg.norm(x) ** 2

def knn(x, y, k=2):
    def near(z):
        d = ((z[:, None] - z[None]) ** 2).sum(2)
        np.fill_diagonal(d, np.inf)
        return np.argsort(d, 1)[:, :k]
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(near(x), near(y))])

functions = {"linear-cka": lambda x, y: cka(centred_gram(x), centred_gram(y)), "rbf-cka": lambda x, y: cka(rbf(x), rbf(y)),
             "linear-regression": regression, "mutual-knn": knn}
rng = np.random.default_rng(5)
cases = []
for p, q, shared in [(3, 2, 0), (2, 3, 2), (3, 3, 0.5)]:
    x = rng.normal(size=(6, p))
    y = rng.normal(size=(6, q)) + shared * x @ rng.normal(size=(p, q))
    x, y = np.float32(x).astype(float), np.float32(y).astype(float)
    values = {}
    for name, f in functions.items():
        null = np.mean([f(x, y[list(order)]) for order in itertools.permutations(range(6))])
        values[name] = (f(x, y) - null) / (1 - null)
    cases.append({"x": x.tolist(), "y": y.tolist(), "values": values})
    print(values)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "calibrated.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
