"""Golden values for package firing, from numpy and PyTorch alone: a ResNet-20 on the paper's gratings and on CIFAR-10.

    python3 golden.py MODELS/resnet20-cifar10.onnx CIFAR10/test_batch.bin

writes gratings.bin, the values of some units on every grating, rounded to 16 bits, and golden.json. Definitions: Goodfellow et al.
(2009), section 4 and footnote 1; Quiroga et al. (2019, 2020) as the library tmeasures has them.
"""
import json
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as F
from scipy.stats import norm

torch.set_num_threads(1)
model = onnx.load(sys.argv[1])
tensors = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
convs = [n for n in model.graph.node if n.op_type == "Conv"]
weights = [(torch.tensor(tensors[n.input[1]]), torch.tensor(tensors[n.input[2]])) for n in convs]
mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def layers(x):
    """The first convolution, the ends of the second and third stage, and the pooled vector, on n x 3 x 32 x 32 in [0, 1]."""
    with torch.no_grad():
        take = iter(weights)
        conv = lambda z, stride=1: F.conv2d(z, *next(take), stride=stride, padding=1)
        out = {}
        z = conv((torch.tensor(x) - mean) / std)
        out["/conv1/Conv_output_0"] = z
        z = F.relu(z)
        for stage, width in enumerate([16, 32, 64]):
            for block in range(3):
                stride = 2 if stage > 0 and block == 0 else 1
                y = conv(F.relu(conv(z, stride)))
                if stride == 2:
                    z = F.pad(z[:, :, ::2, ::2], (0, 0, 0, 0, width // 4, width // 4))
                z = F.relu(y + z)
            if stage > 0:
                out["/layer%d/layer%d.2/Relu_1_output_0" % (stage + 1, stage + 1)] = z
        out["/ReduceMean_output_0"] = z.mean((2, 3))
        return {k: v.numpy() for k, v in out.items()}


def see(x, batch=100):
    parts = [layers(x[i:i + batch]) for i in range(0, len(x), batch)]
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}


def gratings(size=32):
    """table[f, o, p]: 4 frequencies, 80 orientations in steps of 4.5 degrees, 21 phases. Phases that differ by a wavelength are one."""
    xs = (np.arange(size) + 0.5 - size / 2) * np.pi / size
    x, y = xs[None, :], -xs[:, None]
    pictures, at = [], np.zeros((4, 80, 21), int)
    for f, omega in enumerate([2, 4, 6, 8]):
        period = 40 // omega if omega != 6 else 20  # in steps of pi / 20, where that is whole
        for o in range(80):
            theta = np.deg2rad(4.5 * o)
            for p in range(21):
                if p >= period:
                    at[f, o, p] = at[f, o, p % period]
                    continue
                at[f, o, p] = len(pictures)
                pictures.append(0.5 + 0.5 * np.sin(omega * (x * np.cos(theta) + y * np.sin(theta) - p * np.pi / 20)))
    pictures = np.stack(pictures).astype(np.float32)
    return np.repeat(pictures[:, None], 3, 1), at


def firing_rates(inputs, q, pictures):
    return (inputs >= q).mean(), (pictures >= q).mean()


def threshold(values, rate=0.01):
    k = int(np.ceil(rate * len(values) - 1e-9))
    return np.sort(values)[-k]


def better(inputs, around):
    """inputs: P(x); around(s h): the values of s h along the trajectories. The sign with the better score."""
    best = None
    for s in (1, -1):
        q = threshold(s * inputs)
        g, l = firing_rates(s * inputs, q, around(s))
        if best is None or l / g > best["score"]:
            best = {"sign": s, "threshold": float(s * q), "global": float(g), "local": float(l), "score": float(l / g)}
    return best


def on_gratings():
    pictures, at = gratings()
    seen = see(pictures)
    rng = np.random.default_rng(5)
    units = []
    for name in seen:
        flat = seen[name].reshape(len(pictures), -1)
        alive = np.flatnonzero(flat.std(0) > 1e-3)
        units += [flat[:, u] for u in rng.choice(alive, 3, replace=False)]
    codes = []
    for v in units:
        scaled = (v - v.min()) / (v.max() - v.min())
        codes.append(np.round(scaled * 60000 - 30000).astype("<i2")[at])
    codes = np.stack(codes)  # units x 4 x 80 x 21
    codes.tofile("gratings.bin")
    grid = codes[:, :, [2 * i % 80 for i in range(21)], :]  # the orientations of P(x): 0 to 180 in steps of 9
    out = []
    for u in range(len(codes)):
        inputs = grid[u].reshape(-1).astype(float)

        def around(which):
            def values(s):
                f, o, p = np.unravel_index(np.argmax(s * inputs), (4, 21, 21))
                if which == "phase":
                    return s * np.array([codes[u, f, 2 * o % 80, (p + j) % 20] if j else grid[u, f, o, p] for j in range(-20, 21)], float)
                return s * np.array([codes[u, f, (2 * o + j) % 80, p] for j in range(-40, 41)], float)
            return values

        out.append({"phase": better(inputs, around("phase")), "orientation": better(inputs, around("orientation"))})
    return out


def quotient(a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b > 0, a / b, np.where(a > 0, np.inf, 1))


def finite_mean(v):
    return float(v[np.isfinite(v)].mean())


def on_pictures(n=200):
    raw = np.fromfile(sys.argv[2], np.uint8, 3073 * n).reshape(n, 3073)
    labels, x = raw[:, 0].astype(int), raw[:, 1:].reshape(n, 3, 32, 32).astype(np.float32) / 255
    turned = [see(np.ascontiguousarray(np.rot90(x, k, (2, 3)))) for k in range(4)]
    out = {}
    for name in turned[0]:
        maps = np.stack([t[name] for t in turned], 1).astype(np.float64)  # n x 4 x ...
        a = maps.reshape(n, 4, -1)
        tv, sv = a.std(1, ddof=1).mean(0), a.std(0, ddof=1).mean(0)
        limit = a[:, 0].mean(0) + np.maximum(a[:, 0].std(0, ddof=1), 1e-16) * norm.ppf(0.99)
        got = {
            "transformational-variance": finite_mean(tv), "sample-variance": finite_mean(sv), "normalised-variance": finite_mean(quotient(tv, sv)),
            "goodfellow-normal": finite_mean(quotient((a > limit).mean((0, 1)), (a[:, 0] > limit).mean(0))),
        }
        if maps.ndim == 5:
            back = np.stack([np.rot90(maps[:, k], -k, (2, 3)) for k in range(4)], 1).reshape(n, 4, -1)
            got["same-equivariance"] = finite_mean(quotient(back.std(1, ddof=1).mean(0), back.std(0, ddof=1).mean(0)))
        scores, information = [], []
        for u in range(a.shape[2]):
            inputs = a[:, 0, u]
            best = better(inputs, lambda s: s * a[np.argsort(-s * inputs, kind="stable")[:10], :, u].reshape(-1))
            scores.append(best["score"])
            f = best["sign"] * inputs >= best["sign"] * best["threshold"]
            joint = np.array([[((labels == c) & (f == v)).mean() for c in range(10)] for v in (False, True)])
            expected = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
            information.append(float((joint[joint > 0] * np.log(joint[joint > 0] / expected[joint > 0])).sum()))
        top = max(1, int(round(0.2 * len(scores))))
        got["invariance"] = float(np.sort(scores)[-top:].mean())
        got["mutual-information"] = float(np.sort(information)[-top:].mean())
        out[name] = got
    return out


json.dump({"units": on_gratings(), "layers": on_pictures()}, open("golden.json", "w"), indent=1)
