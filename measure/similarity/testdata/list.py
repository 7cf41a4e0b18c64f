#!/usr/bin/env python3
"""Golden values for the statistics that are functions of sides, with numpy and scipy from the definitions of the papers and of ReSi, netrep and scipy.

Each statistic is written as its definition says, on the arrays themselves. The Go code takes other routes: Gram matrices, singular
values, an assignment algorithm of its own. Writes list.json beside itself.
"""
import json, os
import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import pdist, squareform, cdist
from scipy.stats import spearmanr, pearsonr, kendalltau, rankdata

def neighbours(x, s):
    metric = {"euclidean": "euclidean", "cosine": "cosine"}[s["metric"]]
    d = squareform(pdist(x, metric))
    e = d.copy()
    np.fill_diagonal(e, np.inf)
    return np.argsort(e, 1, kind="stable")[:, :s["neighbours"]], d

def centre(a):
    return a - a.mean(0) - a.mean(1)[:, None] + a.mean()

def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

def pad(x, y):
    p = max(x.shape[1], y.shape[1])
    return [np.hstack([a, np.zeros((len(a), p - a.shape[1]))]) for a in (x, y)]

def whiten(x, alpha):
    if alpha > 1 - 1e-7:
        return x
    lam, v = np.linalg.eigh(x.T @ x)
    return x @ ((v * (alpha + (1 - alpha) / np.sqrt(np.maximum(lam, 1e-7)))) @ v.T)

def correlations(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    nx, ny = np.linalg.norm(x, axis=0), np.linalg.norm(y, axis=0)
    return (x / np.where(nx > 0, nx, 1)).T @ (y / np.where(ny > 0, ny, 1))

def transport(c):
    p, q = c.shape
    rows = np.kron(np.eye(p), np.ones(q))
    cols = np.kron(np.ones(p), np.eye(q))
    r = linprog(c.ravel(), A_eq=np.vstack([rows, cols[:-1]]), b_eq=np.concatenate([np.full(p, 1 / p), np.full(q - 1, 1 / q)]), method="highs")
    return r.fun

def two_nn(x):
    d = np.sort(squareform(pdist(x)), 1)
    d = d[d[:, 1] > 0]
    mu = np.sort(np.log(d[:, 2] / d[:, 1]))
    f = np.arange(1, len(mu) + 1) / len(mu)
    k = int(0.9 * len(mu))
    a, b = mu[:k], -np.log(1 - f[:k])
    return np.linalg.lstsq(a[:, None], b, rcond=None)[0][0]

def effective_rank(x):
    s = np.linalg.svd(x, compute_uv=False)
    s = s[s > s[0] * 1e-14]
    p = s / s.sum()
    return np.exp(-(p * np.log(p)).sum())

def concentricity(x):
    m = x.mean(0)
    return np.mean([cosine(a, m) if np.linalg.norm(a) > 0 else 0 for a in x])

def gulp(x, y, l):
    n = len(x)
    x, y = [np.sqrt(n) * a / np.linalg.norm(a) for a in (x, y)]
    sx, sy, sxy = x.T @ x / n, y.T @ y / n, x.T @ y / n
    inv = lambda a: np.linalg.pinv(a + l * np.eye(len(a)), rcond=1e-13, hermitian=True)
    ix, iy = inv(sx), inv(sy)
    t = np.trace(ix @ sx @ ix @ sx) + np.trace(iy @ sy @ iy @ sy) - 2 * np.trace(ix @ sxy @ iy @ sxy.T)
    return np.sqrt(max(t, 0))

def minibatch_cka(x, y):
    # The samples in order, in blocks of nearly equal size of at most 32. Each block is weighted by its number of samples.
    def u(a):
        a = a - np.diag(np.diag(a))
        m, r = len(a), a.sum(1)
        c = a - r[:, None] / (m - 2) - r / (m - 2) + r.sum() / ((m - 1) * (m - 2))
        return c - np.diag(np.diag(c))
    n, sums = len(x), np.zeros(3)
    blocks = -(-n // 32)
    for i in range(blocks):
        at = slice(i * n // blocks, (i + 1) * n // blocks)
        k, l = u(x[at] @ x[at].T), u(y[at] @ y[at].T)
        m = len(k)
        sums += m * np.array([np.sum(k * l), np.sum(k * k), np.sum(l * l)]) / (m * (m - 3))
    return sums[0] / np.sqrt(sums[1] * sums[2])

def ridge(x, y, s):
    fold, residual, total = np.arange(len(x)) % s["folds"], 0, 0
    for k in range(s["folds"]):
        a, b = fold != k, fold == k
        mx, my = x[a].mean(0), y[a].mean(0)
        z = y[a] - my
        w = np.linalg.solve(z.T @ z + s["ridge"] * np.sum(z**2) / z.shape[1] * np.eye(z.shape[1]), z.T @ (x[a] - mx))
        residual += np.sum((x[b] - mx - (y[b] - my) @ w) ** 2)
        total += np.sum((x[b] - mx) ** 2)
    return 1 - residual / total

def statistics(rx, ry, s, ties):
    x, y = rx - rx.mean(0), ry - ry.mean(0)
    fx, fy = (rx, ry) if s["centre"] == "none" else (x, y)
    n = len(x)
    out = {"minibatch-cka": minibatch_cka(x, y)}
    d = [np.round(pdist(a, {"squared-euclidean": "sqeuclidean"}.get(s["dissimilarity"], s["dissimilarity"])), 9) for a in (fx, fy)]
    outer = {"spearman": lambda a, b: spearmanr(a, b).correlation, "pearson": lambda a, b: pearsonr(a, b)[0],
             "kendall": lambda a, b: kendalltau(a, b).correlation, "cosine": cosine}[s["comparison"]]
    out["rsa"] = outer(*d)
    ex, ey = squareform(pdist(x)), squareform(pdist(y))
    out["rsm-norm-difference"] = np.linalg.norm(ex - ey, "fro" if s["norm"] == "frobenius" else 2)
    a, b = centre(ex), centre(ey)
    out["distance-correlation"] = np.sqrt((a * b).mean() / np.sqrt((a * a).mean() * (b * b).mean()))
    if not ties:
        form = (fx, fy) if s["metric"] == "cosine" else (x, y)
        (kx, dx), (ky, dy) = neighbours(form[0], s), neighbours(form[1], s)
        sets = [(set(p), set(q)) for p, q in zip(kx, ky)]
        out["mutual-knn"] = np.mean([len(p & q) / s["neighbours"] for p, q in sets])
        out["jaccard"] = np.mean([len(p & q) / len(p | q) for p, q in sets])
        out["second-order-cosine"] = np.mean([cosine(dx[i, list(p | q)], dy[i, list(p | q)]) for i, (p, q) in enumerate(sets)])
        scores = []
        for i, (p, q) in enumerate(sets):
            total = 0
            for j in p & q:
                r, t = list(kx[i]).index(j) + 1, list(ky[i]).index(j) + 1
                total += 2 / ((1 + abs(r - t)) * (r + t))
            scores.append(total / sum(1 / k for k in range(1, len(p & q) + 1)) if p & q else 0)
        out["rank-similarity"] = np.mean(scores)
        k, l = x @ x.T, y @ y.T
        mx, my = np.zeros((n, n)), np.zeros((n, n))
        for i in range(n):
            mx[i, kx[i]], my[i, ky[i]] = 1, 1
        out["cknna"] = np.sum(k * l * mx * my) / np.sqrt(np.sum(k**2 * mx) * np.sum(l**2 * my))
    px, py = pad(x, y)
    wx, wy = pad(whiten(x, s["alpha"]), whiten(y, s["alpha"]))
    q, _ = orthogonal_procrustes(wx, wy)
    out["shape-metric"] = np.arccos(min(cosine((wx @ q).ravel(), wy.ravel()), 1))
    q, _ = orthogonal_procrustes(px, py)
    out["procrustes-distance"] = np.linalg.norm(px @ q - py)
    gx, gy = pad(fx, fy)
    q, _ = orthogonal_procrustes(gx, gy)
    both = [(a, b) for a, b in zip(gx @ q, gy) if np.linalg.norm(a) > 1e-9 and np.linalg.norm(b) > 1e-9]
    out["aligned-cosine"] = np.mean([cosine(a, b) for a, b in both])
    i, j = linear_sum_assignment(gx.T @ gy, maximize=True)
    out["permutation-procrustes"] = np.linalg.norm(gx[:, i] - gy[:, j])
    c = correlations(x, y)
    i, j = linear_sum_assignment(c, maximize=True)
    out["hard-correlation-match"] = c[i, j].mean()
    out["soft-correlation-match"] = (c.max(0).mean() + c.max(1).mean()) / 2
    out["soft-matching"] = np.sqrt(transport(cdist(x.T, y.T, "sqeuclidean")))
    out["ridge-predictivity"] = ridge(x, y, s)
    out["gulp"] = gulp(x, y, s["lambda"])
    u = [np.linalg.svd(a)[0][:, :np.linalg.matrix_rank(a)] for a in (fx, fy)]
    out["eigenspace-overlap"] = np.linalg.norm(u[0].T @ u[1]) ** 2 / max(x.shape[1], y.shape[1])
    out["magnitude-difference"] = abs(np.linalg.norm(rx.mean(0)) - np.linalg.norm(ry.mean(0)))
    out["concentricity-difference"] = abs(concentricity(rx) - concentricity(ry))
    uniformity = lambda a: np.log(np.exp(-2 * squareform(pdist(a, "sqeuclidean"))).sum() / n**2)
    out["uniformity-difference"] = abs(uniformity(x) - uniformity(y))
    out["intrinsic-dimension-difference"] = abs(two_nn(x) - two_nn(y))
    out["effective-rank-difference"] = abs(effective_rank(rx) - effective_rank(ry))
    return {k: float(v) for k, v in out.items()}

DEFAULTS = {"metric": "euclidean", "centre": "columns", "dissimilarity": "cosine", "comparison": "spearman", "norm": "frobenius",
            "alpha": 1, "lambda": 0, "folds": 5, "ridge": 0.01, "neighbours": 6}
OTHERS = [
    {"metric": "cosine", "centre": "none", "dissimilarity": "correlation", "comparison": "pearson", "norm": "spectral", "alpha": 0.5, "lambda": 0.01, "folds": 4, "ridge": 1},
    {"metric": "cosine", "dissimilarity": "euclidean", "comparison": "kendall", "alpha": 0.1, "lambda": 0.3},
    {"dissimilarity": "squared-euclidean", "comparison": "cosine", "folds": 3, "ridge": 0.1, "lambda": 0.05},
]

def case(name, n, p, q, seed, spoil=lambda x, y: None, ties=False):
    r = np.random.default_rng(seed)
    z = r.standard_normal((n, 3))
    x = np.logaddexp(0, z @ r.standard_normal((3, p)) + 0.7 * r.standard_normal((n, p))) + 0.5
    y = np.logaddexp(0, z @ r.standard_normal((3, q)) + 0.7 * r.standard_normal((n, q))) - 1
    spoil(x, y)
    x, y = x.astype(np.float32), y.astype(np.float32)
    values = []
    for other in [{}] + OTHERS:
        s = DEFAULTS | other
        values.append({"settings": s, "values": statistics(x.astype(float), y.astype(float), s, ties)})
    return {"name": name, "n": n, "p": p, "q": q, "x": [float(v) for v in x.ravel()], "y": [float(v) for v in y.ravel()], "variants": values}

def duplicated(x, y):
    x[20:30], y[20:30] = x[:10], y[:10]

def constant(x, y):
    x[:, 2], y[:, 0] = 1.25, -3

def duplicated_far(x, y):
    # Two equal rows that are no other's neighbours, so that no ties decide on neighbours.
    x[:2], y[:2] = -9 - np.arange(x.shape[1]), -20 + np.arange(y.shape[1])

def scaled(x, y):
    x *= 10.0 ** -np.arange(0, x.shape[1] / 2, 0.5)[: x.shape[1]]
    y *= 10.0 ** np.arange(0, y.shape[1] / 4, 0.25)[: y.shape[1]]

def scaled_more(x, y):
    x *= 10.0 ** -np.arange(x.shape[1])
    y *= 10.0 ** (np.arange(y.shape[1]) / 2)

cases = [
    case("tall", 50, 6, 5, 1),
    case("equal widths", 40, 5, 5, 2),
    case("more variables than samples", 22, 30, 26, 3),
    case("one side wide", 24, 31, 4, 4),
    case("duplicated rows", 45, 6, 7, 5, duplicated, ties=True),
    case("constant columns", 40, 6, 4, 6, constant),
    case("columns of other scales", 48, 5, 6, 7, scaled),
    case("columns of very different scales", 70, 6, 5, 8, scaled_more),
    case("duplicated rows far away", 40, 6, 5, 9, duplicated_far),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "list.json"), "w") as f:
    json.dump(cases, f)
    f.write("\n")
