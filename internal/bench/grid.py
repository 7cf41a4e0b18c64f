#!/usr/bin/env python3
"""Times similarities of all pairs of layers of two networks in numpy, as other programs compute
them: for the table "grid" of bench.

usage: grid.py WAY N LAYERS STEP WIDTH [THREADS]

WAY is the method of a program. torch_cka goes through batches of 256 samples and computes the
unbiased HSIC of the two Gram matrices for each pair of layers and batch (minibatch CKA, Nguyen et
al. 2021). resi computes linear CKA from the arrays for each pair, as the benchmark ReSi (Klabunde
et al. 2025) does with fewer variables than samples; resi-all also Procrustes, mean CCA, SVCCA and
R^2 of linear regression.

N is the number of samples, LAYERS that of the layers of each network, and WIDTH that of the values
of a layer. With WIDTH 0 the layers are pooled maps of a ResNet-56: 16, 32 and 64 channels. Only
every STEP-th layer of each network is compared: the time of what is done for a layer of the first
network is multiplied by STEP, and that of what is done for a pair by STEP^2. Prints one JSON
object. One thread, or THREADS.

OpenBLAS takes slow kernels for processors that it does not know. Here it takes the same kernels as
in Noether, which sets OPENBLAS_CORETYPE too.
"""
import os, pathlib, sys
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = (sys.argv[6:] or ["1"])[0]
flags = pathlib.Path("/proc/cpuinfo")
flags = flags.read_text().split() if flags.exists() else []
for flag, kernels in (("avx512vl", "SkylakeX"), ("avx2", "Haswell")):
    if flag in flags:
        os.environ.setdefault("OPENBLAS_CORETYPE", kernels)
import json, resource, time
import numpy as np

way, n, layers, step, width = sys.argv[1], *map(int, sys.argv[2:6])
r = np.random.default_rng(1)
# Forty latent variables, which all layers share.
z = (r.standard_normal((n, 40)) * np.linspace(1, 0.1, 40)).astype(np.float32)

def network():
    """The layers of a network: n x p each."""
    widths = [width or 16 << (3 * i // layers) for i in range(0, layers, step)]
    return [np.maximum(z @ r.standard_normal((40, p)).astype(np.float32) / 3 + 0.5 * r.standard_normal((n, p)).astype(np.float32), 0) for p in widths]

class Clock:
    """Adds up wall-clock and processor time of what is done inside with blocks."""
    def __init__(self, factor):
        self.factor, self.total = factor, np.zeros(2)
    now = staticmethod(lambda: np.array([time.perf_counter(), time.process_time()]))
    def __enter__(self):
        self.began = self.now()
    def __exit__(self, *error):
        self.total += self.factor * (self.now() - self.began)

layer, pair = Clock(step), Clock(step**2)

def unbiased(k, l):
    """The unbiased HSIC of two Gram matrices with zero diagonals."""
    m, one = len(k), np.ones(len(k), np.float32)
    t = np.trace(k @ l) + (one @ k @ one) * (one @ l @ one) / ((m - 1) * (m - 2)) - 2 * (one @ k @ l @ one) / (m - 2)
    return t / (m * (m - 3))

def gram(x):
    k = x @ x.T
    np.fill_diagonal(k, 0)
    return k

def torch_cka(a, b):
    sums = np.zeros((len(a), len(b), 3))
    for at in range(0, n - 255, 256):
        for i, x in enumerate(a):
            with layer:
                k = gram(x[at:at + 256])
                own = unbiased(k, k)
            for j, y in enumerate(b):
                with pair:
                    l = gram(y[at:at + 256])
                    sums[i, j] += [unbiased(k, l), own, unbiased(l, l)]
    return sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])

def hsic(k, l):
    return np.trace((k - k.mean(0)[:, None]) @ (l - l.mean(0)[:, None])) / (n - 1) ** 2

def cka(x, y):
    if n < x.shape[1]:
        k, l = x @ x.T, y @ y.T
        return hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l))
    return np.linalg.norm(y.T @ x) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))

def leading(x):
    """The left singular vectors that hold 99 % of the energy, for SVCCA."""
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    k = np.searchsorted(np.cumsum(s**2), 0.99 * np.sum(s**2)) + 1
    return u[:, :k]

def others(x, y):
    """Procrustes, mean CCA, SVCCA and R^2 of linear regression."""
    qx, qy = np.linalg.qr(x)[0], np.linalg.qr(y)[0]
    s = np.linalg.svd(x.T @ y, compute_uv=False).sum() / np.linalg.norm(x) / np.linalg.norm(y)
    rho = np.linalg.svd(qx.T @ qy, compute_uv=False).mean()
    sv = np.linalg.svd(leading(x).T @ leading(y), compute_uv=False).mean()
    return s, rho, sv, np.linalg.norm(qy.T @ x) ** 2 / np.linalg.norm(x) ** 2

def resi(a, b, more):
    for x in a:
        for y in b:
            with pair:
                u, v = x - x.mean(0), y - y.mean(0)
                cka(u, v)
                if more:
                    others(u, v)

a, b = network(), network()
torch_cka(a, b) if way == "torch_cka" else resi(a, b, way == "resi-all")
seconds, cpu = layer.total + pair.total
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
