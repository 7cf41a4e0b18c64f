"""Writes golden.json: the statistics of measure/distance by numpy and scipy, straight from their definitions."""
import json
import numpy as np
from scipy.spatial.distance import cityblock, cosine, euclidean

N, SHAPE = 45, (3, 2, 3)
BLOCK = min(32, max(2, N // 20))
rng = np.random.default_rng(0)
z = np.maximum(rng.standard_normal((N,) + SHAPE), 0).astype(np.float32)
w = np.maximum(z + 0.5 * rng.standard_normal((N,) + SHAPE), 0).astype(np.float32)
z, w = z.reshape(N, -1), w.reshape(N, -1)


def terms(a, b):
    a, b = a.astype(float), b.astype(float)
    return {"cosine": cosine(a, b), "l1": cityblock(a, b), "l2": euclidean(a, b),
            "relative-l2": euclidean(a, b) / np.sqrt((a @ a + b @ b) / 2)}


def mean(pairs):
    rows = [terms(a, b) for a, b in pairs]
    return {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}


partner = [i + 1 if i // BLOCK == (i + 1) // BLOCK and i + 1 < N else i // BLOCK * BLOCK for i in range(N)]
json.dump({"N": N, "Shape": SHAPE, "Clean": z.flatten().tolist(), "Moved": w.flatten().tolist(),
           "Scores": mean(zip(z, w)), "Null": mean((z[i], w[partner[i]]) for i in range(N) if partner[i] != i)},
          open("golden.json", "w"))
