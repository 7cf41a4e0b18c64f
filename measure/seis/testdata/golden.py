#!/usr/bin/python3
"""Writes golden.json: SEIS by the singular value decompositions of the d x n matrices themselves, in float64.

usage: golden.py CIFAR_TEST_BATCH.bin
Each case carries its activations, in sixteenths (signed bytes, base64) and with an offset, but for "cifar", which the test makes from the file.
"""
import base64, json, sys
import numpy as np, scipy.ndimage, torch

rng = np.random.default_rng(7)


def leading(a, fraction):
    a = a - a.mean(1, keepdims=True)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    k = int(np.searchsorted(np.cumsum(s**2) / np.sum(s**2), fraction)) + 1
    return u[:, :k], s[:k], vt[:k]


def seis(z, zt, fraction):
    """z, zt: b x c x d."""
    a, b = (v.astype(np.float64).transpose(2, 0, 1).reshape(v.shape[2], -1) for v in (z, zt))
    (ua, sa, va), (ub, sb, vb) = leading(a, fraction), leading(b, fraction)
    p, rho, qt = np.linalg.svd(va @ vb.T, full_matrices=False)
    w, v = ua @ (p / sa[:, None]), ub @ (qt.T / sb[:, None])
    cos = np.abs((w * v).sum(0)) / (np.linalg.norm(w, axis=0) * np.linalg.norm(v, axis=0))
    return {"equivariance": rho.mean(), "invariance": (rho * cos).mean(), "rank": min(len(sa), len(sb))}


def sixteenths(z):
    return np.clip(np.round(z * 16), -127, 127) / 16


def smooth(*shape):
    z = rng.standard_normal(shape)
    return sixteenths(scipy.ndimage.gaussian_filter(z, [0, 0, 1, 1], mode="wrap") * 5 + rng.standard_normal(shape) * 0.2 + 1)


def turned(z, degrees):
    r = scipy.ndimage.rotate(z, degrees, (3, 2), reshape=False, order=1)
    return sixteenths(r + rng.standard_normal(z.shape) * 0.2)


def flat(z):
    return z.reshape(*z.shape[:2], -1)


def channels_last(z):
    return z.transpose(0, 2, 3, 1)


def pack(v):
    return base64.b64encode((np.ascontiguousarray(v) * 16).astype("i1").tobytes()).decode()


cases = []


def case(name, axes, z, zt, plain, plain_t, fraction=0.99, positions=3136, offset=(0, 0)):
    assert np.array_equal(z, sixteenths(z)) and np.array_equal(zt, sixteenths(zt))
    cases.append({"name": name, "axes": axes, "shape": z.shape, "variance": fraction, "positions": positions, "offset": offset,
                  "z": pack(z), "zt": pack(zt), **seis(plain, plain_t, fraction)})


z = smooth(30, 4, 6, 6)
zt = turned(z, 20)
case("turned by 20 degrees", "NCHW", z, zt, flat(z), flat(zt))
case("nine tenths of the variance", "NCHW", z, zt, flat(z), flat(zt), fraction=0.9)
case("channels last", "NHWC", channels_last(z), channels_last(zt), flat(z), flat(zt))
case("means far from zero", "NCHW", z, zt, flat(z + 50), flat(zt - 30), offset=(50, -30))

rest = smooth(30, 3, 5, 5)
rest_t = turned(rest, -35)
tokens, tokens_t = (flat(v).transpose(0, 2, 1) for v in (rest, rest_t))
first = sixteenths(rng.standard_normal((30, 1, 3)))
case("tokens with a class token", "NTC", np.concatenate([first, tokens], 1), np.concatenate([-first, tokens_t], 1), flat(rest), flat(rest_t))
case("tokens without", "NTC", tokens, tokens_t, flat(rest), flat(rest_t))

line = flat(smooth(30, 3, 1, 20))
line_t = sixteenths(np.roll(line, 2, 2) + rng.standard_normal(line.shape) * 0.3)
case("maps of one dimension", "NCT", line, line_t, line, line_t)

z = smooth(24, 3, 12, 10)
zt = turned(z, 10)
pool = lambda v: torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(v), (6, 5)).numpy()
case("pooled", "NCHW", z, zt, flat(pool(z)), flat(pool(zt)), positions=31)
pool = lambda v: torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(v), (7, 6)).numpy()
case("pooled by cells that overlap, channels last", "NHWC", channels_last(z), channels_last(zt), flat(pool(z)), flat(pool(zt)), positions=42)

z = smooth(7, 2, 5, 5)
zt = turned(z, 40)
case("fewer observations than positions", "NCHW", z, zt, flat(z), flat(zt), fraction=0.9)


def pictures(n):
    """A layer of four channels on CIFAR-10 pictures, and the same on the pictures averaged over 2 x 2 pixels and so moved by half a pixel."""
    x = np.fromfile(sys.argv[1], np.uint8).reshape(-1, 3073)[:n, 1:].reshape(n, 3, 32, 32).astype("f4") / np.float32(255)

    def layer(x):
        dx, dy = np.zeros_like(x[:, 0]), np.zeros_like(x[:, 0])
        dx[:, :, :-1] = np.maximum(x[:, 0, :, 1:] - x[:, 0, :, :-1], 0)
        dy[:, :-1] = np.maximum(x[:, 1, 1:] - x[:, 1, :-1], 0)
        return np.stack([x[:, 0], dx, dy, x[:, 2]], 1)

    y = np.zeros_like(x)
    y[:, :, :-1, :-1] = (x[:, :, :-1, :-1] + x[:, :, :-1, 1:] + x[:, :, 1:, :-1] + x[:, :, 1:, 1:]) / 4
    return layer(x), layer(y)


z, zt = pictures(700)
cases.append({"name": "cifar", "axes": "NCHW", "shape": z.shape, "variance": 0.99, "positions": 3136, **seis(flat(z), flat(zt), 0.99)})
json.dump(cases, open("golden.json", "w"), indent=1)
for c in cases:
    print(c["name"], c["equivariance"], c["invariance"], c["rank"])
