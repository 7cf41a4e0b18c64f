#!/usr/bin/python3
"""Writes golden.json: out-of-sample R^2 of four operators by numpy in float64, on maps that latent_test.go makes too.

Predictions are made observation by observation, with ridge regression of centred data, and compared with those of the mean.
"""
import json
import numpy as np

N, C, S, FOLDS = 40, 5, 6, 5
BLOCK = 2
i, c, y, x = np.mgrid[0:N, 0:C, 0:S, 0:S]
z = np.sin(1.3 * i + 2.1 * c + 0.7 * y - 0.4 * x + 0.05 * i * y * (c + 1)).astype(np.float32).astype(np.float64)
noise = np.cos(0.9 * i * (c + 1) + 1.9 * y + 2.7 * x * (i % 7)).astype(np.float32).astype(np.float64)
turned = np.rot90(z, 1, (2, 3))
mixed = 0.8 * np.roll(turned, 1, 1) + 0.3 * z + 0.25 * noise + 0.5
mixed = mixed.astype(np.float32).astype(np.float64)
fold = np.arange(N) // BLOCK % 20 % FOLDS


def observations(v, which):
    return v[which].transpose(0, 2, 3, 1).reshape(-1, C)


def r2(source, ridge):
    error = total = 0
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        a, b = observations(source, train), observations(mixed, train)
        p, q = observations(source, test), observations(mixed, test)
        total += ((q - b.mean(0)) ** 2).sum()
        if ridge is None:
            error += ((q - p) ** 2).sum()
            continue
        centred = a - a.mean(0)
        moments = centred.T @ centred
        m = np.linalg.solve(moments + ridge * np.trace(moments) / C * np.eye(C), centred.T @ (b - b.mean(0)))
        error += ((q - b.mean(0) - (p - a.mean(0)) @ m) ** 2).sum()
    return 1 - error / total


json.dump({"identity": r2(z, None), "place": r2(turned, None), "channels": r2(z, 1e-3), "both": r2(turned, 1e-3)}, open("golden.json", "w"), indent=1)
