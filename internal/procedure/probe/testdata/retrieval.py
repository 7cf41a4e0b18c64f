#!/usr/bin/python3
"""Writes retrieval.json: recall and mean reciprocal rank by numpy, in float64, of vectors that retrieval_test.go makes too.

Ties are ordered at random: the values are means over all orders, computed by averaging over the places of the tied group.
"""
import json
import numpy as np

N, D = 300, 7
i, j = np.mgrid[0:N, 0:D]
clean = np.sin(1.7 * i + 0.9 * j + 0.1 * i * j).astype(np.float32).astype(np.float64)
moved = (clean + 0.9 * np.cos(2.3 * i - 1.1 * j)).astype(np.float32).astype(np.float64)
clean[20:26] = clean[20]  # six equal vectors
clean[30] = 0
moved[40] = 0
moved[20] = clean[20]


def unit(x):
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(norm > 0, x / np.where(norm > 0, norm, 1), 0)


cosines = unit(moved) @ unit(clean).T
own = np.diag(cosines)[:, None]
better = (cosines > own + 1e-6).sum(1)
tied = (np.abs(cosines - own) <= 1e-6).sum(1)
places = [np.arange(b + 1, b + t + 1) for b, t in zip(better, tied)]
out = {f"recall-{k}": float(np.mean([np.mean(p <= k) for p in places])) for k in (1, 10)}
out["mean-reciprocal-rank"] = float(np.mean([np.mean(1 / p) for p in places]))
every = np.arange(1, N + 1)
out["chance"] = {"recall-1": 1 / N, "recall-10": 10 / N, "mean-reciprocal-rank": float(np.mean(1 / every))}
json.dump(out, open("retrieval.json", "w"), indent=1)
