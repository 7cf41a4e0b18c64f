"""Writes models.json: the statistics of prediction-agreement by numpy and scipy, straight from their definitions, on predictions of several
kinds."""
import json
import numpy as np
from scipy.spatial.distance import jensenshannon
from scipy.special import log_softmax


def logs(z):
    return log_softmax(z, 1).astype(np.float32)


def terms(lp, lq, label):
    p, q = np.exp(lp.astype(float)), np.exp(lq.astype(float))
    c, d = p.argmax(1), q.argmax(1)
    return {
        "disagreement": (c != d) * 1.0,
        "js": np.array([jensenshannon(x / x.sum(), y / y.sum()) ** 2 for x, y in zip(p, q)]),
        "l2": np.linalg.norm(p - q, axis=1),
        "negative-flips": ((c == label) & (d != label)) * 1.0, "positive-flips": ((c != label) & (d == label)) * 1.0,
        "accuracy-difference": (d == label) * 1.0 - (c == label),
        "correct-first": (c == label) * 1.0, "correct-second": (d == label) * 1.0,
        "predicted-first": c * 1.0, "predicted-second": d * 1.0, "confidence-first": p.max(1), "confidence-second": q.max(1),
    }


def kappa(x, y):
    """Cohen's kappa of two binary raters, from the table of their answers."""
    table = np.array([[np.mean((x == i) & (y == j)) for j in (0, 1)] for i in (0, 1)])
    observed, expected = np.trace(table), table.sum(1) @ table.sum(0)
    return (observed - expected) / (1 - expected)


def statistics(t, K):
    a, b, dis = t["correct-first"], t["correct-second"], t["disagreement"].mean()
    wrong = 1 - a.mean(), 1 - b.mean()
    low, high = abs(wrong[0] - wrong[1]), min(sum(wrong), 1)
    # Two independent models: the first is right or makes one of K - 1 errors, as is the second.
    expected = 0
    for i in range(K):
        for j in range(K):
            p = a.mean() if i == 0 else wrong[0] / (K - 1)
            q = b.mean() if j == 0 else wrong[1] / (K - 1)
            expected += (i != j) * p * q
    out = {k: t[k].mean() for k in ("disagreement", "js", "l2", "negative-flips", "positive-flips", "accuracy-difference")}
    out |= {"error-consistency": kappa(a, b), "expected-disagreement": expected, "normalised-disagreement": (dis - low) / (high - low)}
    null = {"negative-flips": a.mean() * wrong[1], "positive-flips": b.mean() * wrong[0], "error-consistency": 0,
            "normalised-disagreement": (expected - low) / (high - low)}
    return {k: float(v) for k, v in out.items()}, {k: float(v) for k, v in null.items()}


def at(t, rows):
    return {k: v[rows] for k, v in t.items()}


def case(name, N, K, seed, spoil=lambda z: z):
    block = min(32, max(2, N // 20))
    groups = min(20, -(-N // block))
    rng = np.random.default_rng(seed)
    label = rng.integers(0, K, N)
    common = 1.2 * rng.standard_normal((N, K)) + 1.5 * np.eye(K)[label]
    first, second = [logs(spoil(common + rng.standard_normal((N, K)))) for _ in range(2)]
    t = terms(first, second, label)
    group = np.arange(N) // block % groups
    # The partner of a sample is the next of its block, of the last the first.
    partner = [i + 1 if i // block == (i + 1) // block and i + 1 < N else i // block * block for i in range(N)]
    pairs = [i for i in range(N) if partner[i] != i]
    shuffled = terms(first[pairs], second[[partner[i] for i in pairs]], label[pairs])
    scores, null = statistics(t, K)
    null |= {k: float(shuffled[k].mean()) for k in ("disagreement", "js", "l2")}
    replicates = [statistics(at(t, group != g), K)[0] for g in range(groups)]
    classes = {f"class=c{c}": statistics(at(t, label == c), K)[0] for c in range(K)} if K < 5 else {}
    return {
        "Name": name, "N": N, "K": K, "Clean": first.flatten().tolist(), "Moved": second.flatten().tolist(), "Label": label.tolist(),
        "Scores": scores, "Null": null, "Class": classes, "Replicates": {k: [r[k] for r in replicates] for k in scores},
        "Samples": {k: v.tolist() for k, v in t.items()},
    }


def equal(z):
    z[20:40] = z[:20]
    return z


def constant(z):
    z[:, 1] = 0.5
    return z


json.dump([
    case("more samples than classes", 67, 4, 11),
    case("more classes than samples", 24, 31, 12),
    case("equal rows", 60, 4, 13, equal),
    case("a constant class", 60, 4, 14, constant),
    case("classes of very different scales", 60, 6, 15, lambda z: z * 10.0 ** -np.arange(6)),
    case("probabilities of 0 and 1", 60, 5, 16, lambda z: 200 * z),
], open("models.json", "w"))
