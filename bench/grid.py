#!/usr/bin/env python3
"""Times similarities of all pairs of layers of two networks in numpy, as other programs compute them: for the table "grid" of bench.

usage: grid.py WAY N LAYERS

WAY is the method of a program: torch_cka goes through batches of 256 samples and computes the unbiased HSIC of the two Gram matrices for each
pair of layers and batch (minibatch CKA, Nguyen et al. 2021); resi computes the Gram matrices of all samples anew for each pair (linear CKA);
resi-all also computes Procrustes, mean CCA, SVCCA and R^2 of linear regression from the arrays for each pair. The layers are pooled maps of a
ResNet-56: 16, 32 and 64 channels. Prints one JSON object.
"""
import json, resource, sys, time
import numpy as np

way, n, layers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = np.random.default_rng(1)
z = (r.standard_normal((n, 40)) * np.linspace(1, 0.1, 40)).astype(np.float32)

def network():
    widths = [16 << (3 * i // layers) for i in range(layers)]
    return [np.maximum(z @ r.standard_normal((40, p)).astype(np.float32) / 3 + 0.5 * r.standard_normal((n, p)).astype(np.float32), 0) for p in widths]

def unbiased(k, l):
    m, one = len(k), np.ones(len(k), np.float32)
    t = np.trace(k @ l) + (one @ k @ one) * (one @ l @ one) / ((m - 1) * (m - 2)) - 2 * (one @ k @ l @ one) / (m - 2)
    return t / (m * (m - 3))

def gram(x):
    k = x @ x.T
    np.fill_diagonal(k, 0)
    return k

def torch_cka(a, b):
    sums = np.zeros((layers, layers, 3))
    for at in range(0, n - 255, 256):
        for i, x in enumerate(a):
            k = gram(x[at:at + 256])
            own = unbiased(k, k)
            for j, y in enumerate(b):
                l = gram(y[at:at + 256])
                sums[i, j] += [unbiased(k, l), own, unbiased(l, l)]
    return sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])

def cka(x, y):
    k, l = x @ x.T, y @ y.T
    centre = lambda a: a - a.mean(0) - a.mean(1)[:, None] + a.mean()
    k, l = centre(k), centre(l)
    return (k * l).sum() / np.sqrt((k * k).sum() * (l * l).sum())

def leading(x):
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    k = np.searchsorted(np.cumsum(s**2), 0.99 * np.sum(s**2)) + 1
    return u[:, :k]

def others(x, y):
    qx, qy = np.linalg.qr(x)[0], np.linalg.qr(y)[0]
    s = np.linalg.svd(x.T @ y, compute_uv=False).sum() / np.linalg.norm(x) / np.linalg.norm(y)
    rho = np.linalg.svd(qx.T @ qy, compute_uv=False).mean()
    sv = np.linalg.svd(leading(x).T @ leading(y), compute_uv=False).mean()
    return s, rho, sv, np.linalg.norm(qy.T @ x) ** 2 / np.linalg.norm(x) ** 2

def resi(a, b, more):
    for x in a:
        for y in b:
            x, y = x - x.mean(0), y - y.mean(0)
            cka(x, y)
            if more:
                others(x, y)

a, b = network(), network()
began = time.perf_counter()
torch_cka(a, b) if way == "torch_cka" else resi(a, b, way == "resi-all")
print(json.dumps({"seconds": time.perf_counter() - began, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
