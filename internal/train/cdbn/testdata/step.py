"""Writes step.json: two steps of contrastive divergence computed in numpy, position by position, for the tests of this package.

    python3 step.py > step.json

It also checks, by differences, that the positive phase is the derivative of the free energy, which is what contrastive divergence rests on.
"""
import json
import numpy as np

r = np.random.default_rng(3)
B, C, K, f, H, W = 2, 2, 3, 3, 6, 8  # samples, channels, groups of hidden units, side of a filter, sides of an image
h, w = H - f + 1, W - f + 1  # sides of a group
target, weight, decay, rate = 0.1, 2.0, 0.01, 0.2


def hidden_input(v, p):
    """The input of each hidden unit: the filter applied to v, plus the bias."""
    out = np.zeros((B, K, h, w))
    for y in range(h):
        for x in range(w):
            out[:, :, y, x] = np.einsum("bcij,kcij->bk", v[:, :, y:y + f, x:x + f], p["W"]) + p["b"]
    return out


def hidden_given(v, p):
    """The probability of each hidden unit given v, where at most one unit of a block of 2 x 2 is on."""
    e = np.exp(hidden_input(v, p))
    q = np.zeros_like(e)
    for y in range(0, h, 2):
        for x in range(0, w, 2):
            q[:, :, y:y + 2, x:x + 2] = e[:, :, y:y + 2, x:x + 2] / (1 + e[:, :, y:y + 2, x:x + 2].sum((2, 3), keepdims=True))
    return q


def free_energy(v, p):
    e = np.exp(hidden_input(v, p))
    blocks = e[:, :, 0::2, 0::2] + e[:, :, 1::2, 0::2] + e[:, :, 0::2, 1::2] + e[:, :, 1::2, 1::2]
    return 0.5 * (v**2).sum() - (p["c"] * v.sum((0, 2, 3))).sum() - np.log(1 + blocks).sum()


def sampled(q, u):
    """States of the hidden units, drawn from their probabilities q by one uniform number u for each block."""
    on = np.zeros_like(q)
    for b, k, y, x in np.ndindex(B, K, h // 2, w // 2):
        at = 0.0
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = q[b, k, 2 * y + i, 2 * x + j]
            if at <= u[b, k, y, x] < at + share:
                on[b, k, 2 * y + i, 2 * x + j] = 1
            at += share
    return on


def visible(on, p, binary):
    """The means of the visible units given the states of the hidden units."""
    v = np.zeros((B, C, H, W)) + p["c"][None, :, None, None]
    for b, k, y, x in np.ndindex(B, K, h, w):
        v[b, :, y:y + f, x:x + f] += on[b, k, y, x] * p["W"][k]
    return 1 / (1 + np.exp(-v)) if binary else v


def correlation(v, q):
    """For each element of each filter, the mean of q times the value of v that the element is multiplied by."""
    out = np.zeros((K, C, f, f))
    for i in range(f):
        for j in range(f):
            out[:, :, i, j] = np.einsum("bkyx,bcyx->kc", q, v[:, :, i:i + h, j:j + w])
    return out / (B * h * w)


def step(v, u, p, velocity, momentum, binary):
    """Updates the parameters p, and returns the error of reconstruction and the mean activation."""
    q = hidden_given(v, p)
    reconstruction = visible(sampled(q, u), p, binary)
    q_reconstruction = hidden_given(reconstruction, p)
    activity = q.mean((0, 2, 3))
    change = {"W": correlation(v, q) - correlation(reconstruction, q_reconstruction) - decay * p["W"],
              "b": activity - q_reconstruction.mean((0, 2, 3)) + weight * (target - activity),
              "c": (v - reconstruction).mean((0, 2, 3))}
    for n in p:
        velocity[n] = momentum * velocity[n] + rate * change[n]
        p[n] = p[n] + velocity[n]
    return float(((v - reconstruction) ** 2).mean()), float(activity.mean())


cases = []
for binary in (False, True):
    p = {"W": 0.5 * r.standard_normal((K, C, f, f)), "b": 0.3 * r.standard_normal(K) - 1, "c": 0.1 * r.standard_normal(C)}
    velocity = {n: np.zeros_like(a) for n, a in p.items()}
    case = {"binary": binary, "start": {n: a.ravel().tolist() for n, a in p.items()}, "v": [], "u": [], "error": [], "activity": []}
    for momentum in (0.5, 0.9):
        v = r.random((B, C, H, W)) if binary else r.standard_normal((B, C, H, W))
        u = r.random((B, K, h // 2, w // 2))
        d = 1e-5
        for n, at in (("W", (1, 1, 0, 2)), ("b", (2,)), ("c", (0,))):
            more, less = {k: a.copy() for k, a in p.items()}, {k: a.copy() for k, a in p.items()}
            more[n][at] += d
            less[n][at] -= d
            slope = -(free_energy(v, more) - free_energy(v, less)) / (2 * d)
            q = hidden_given(v, p)
            want = {"W": correlation(v, q) * B * h * w, "b": q.sum((0, 2, 3)), "c": v.sum((0, 2, 3))}[n][at]
            assert abs(slope - want) < 1e-6, (n, slope, want)
        e, a = step(v, u, p, velocity, momentum, binary)
        case["v"].append(v.ravel().tolist())
        case["u"].append(u.ravel().tolist())
        case["error"].append(e)
        case["activity"].append(a)
    case["end"] = {n: a.ravel().tolist() for n, a in p.items()}
    cases.append(case)

print(json.dumps({"B": B, "C": C, "K": K, "f": f, "H": H, "W": W, "target": target, "weight": weight, "decay": decay, "rate": rate,
                  "momentum": [0.5, 0.9], "cases": cases}))
