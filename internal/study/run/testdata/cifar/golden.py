#!/usr/bin/python3
"""Measures two CIFAR-10 ResNets with PyTorch and numpy: what a study of the same must find.

usage: golden.py DATA_FOLDER > golden.json      (some minutes, 8 GB)

DATA_FOLDER holds cifar10/test_batch.bin and models/resnet{20,32}-cifar10.onnx. Only the weights are taken from the ONNX
files: the network is written out here. The pictures are the first IMAGES of the file (for SEIS the first SEIS_IMAGES) and
everything, the forward pass included, is float64, so that no rounding of a float32 engine is in the numbers.

Definitions: SEIS by singular value decompositions of the d x n matrices (section 3 of its paper; the cosine of canonical
vectors in the common spatial basis), effective invariance by equation 1 of Deng et al. 2022, divergences with
natural logarithms, distances as means over samples. Transformations act on pictures in [0, 1] and are torchvision's.
Written to stderr: how close each decision was that rounding could turn (the rank at 99 %, the largest of the logits).
"""
import json
import math
import multiprocessing
import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process for each model in place of threads
import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as F
import torchvision.transforms.functional as T

IMAGES, SEIS_IMAGES, BATCH, VARIANCE = 200, 200, 100, 0.99
MODELS = {"resnet20": (3, 0.8103), "resnet32": (5, 0.8256)}  # blocks in each of three stages; accuracy on all 10,000 images
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BILINEAR = T.InterpolationMode.BILINEAR
LAYER_COLUMNS = ["cosine", "l1", "l2", "equivariance", "invariance", "rank", "rank_moved", "observations"]


def affine(x, rotate, right, down, scale):
    """Counter-clockwise degrees, fractions of the sides; torchvision's affine takes clockwise degrees and pixels."""
    h, w = x.shape[-2:]
    return T.affine(x, angle=-rotate, translate=[right * w, down * h], scale=scale, shear=[0.0, 0.0], interpolation=BILINEAR)


def blur(x, sigma):
    side = 2 * math.ceil(3 * sigma) + 1
    return T.gaussian_blur(x, [side, side], [sigma, sigma])


# name, parameter, the models for which SEIS is computed (it takes most of the time), the transformation of
# N x 3 x H x W in [0, 1]
BOTH, FIRST, NONE = ("resnet20", "resnet32"), ("resnet20",), ()
TRANSFORMS = [
    ("quarter", "90", FIRST, lambda x: torch.rot90(x, 1, (2, 3))),
    ("quarter", "180", FIRST, lambda x: torch.rot90(x, 2, (2, 3))),
    ("quarter", "270", FIRST, lambda x: torch.rot90(x, 3, (2, 3))),
    ("gray", "", BOTH, lambda x: T.rgb_to_grayscale(x, num_output_channels=3)),
    ("tilt", "", BOTH, lambda x: T.rotate(x, 15.0, interpolation=BILINEAR)),
    ("tilt-filled", "", NONE, lambda x: T.rotate(x, 15.0, interpolation=BILINEAR, fill=[0.0])),
    ("affine", "", BOTH, lambda x: affine(x, 10.0, 0.05, -0.05, 1.1)),
    ("blur", "", FIRST, lambda x: blur(x, 1.0)),
]


class Net:
    """He et al.'s ResNet for CIFAR, BatchNorm folded into its convolutions, shortcuts without parameters (option A).

    forward gives the logits and every convolution's and ReLU's output under the name of its tensor in the ONNX file.
    """

    def __init__(self, path, blocks, dtype):
        graph = onnx.load(path).graph
        value = {i.name: torch.from_numpy(onnx.numpy_helper.to_array(i).copy()).to(dtype) for i in graph.initializer}
        self.conv = {n.output[0]: (value[n.input[1]], value[n.input[2]]) for n in graph.node if n.op_type == "Conv"}
        self.linear, self.blocks = (value["linear.weight"], value["linear.bias"]), blocks

    def forward(self, x):
        taps = {}

        def conv(x, name, stride=1):
            weight, bias = self.conv[name]
            taps[name] = F.conv2d(x, weight, bias, stride, padding=1)
            return taps[name]

        def relu(x, name):
            taps[name] = F.relu(x)
            return taps[name]

        x = relu(conv(x, "/conv1/Conv_output_0"), "/Relu_output_0")
        for stage in (1, 2, 3):
            for block in range(self.blocks):
                at, stride = f"/layer{stage}/layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
                y = relu(conv(x, f"{at}/conv1/Conv_output_0", stride), f"{at}/Relu_output_0")
                y = conv(y, f"{at}/conv2/Conv_output_0")
                if stride > 1:  # every other pixel, and zeros for the new channels, half of them before and half after
                    new = y.shape[1] - x.shape[1]
                    x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, new // 2, new // 2))
                x = relu(y + x, f"{at}/Relu_1_output_0")
        return F.linear(x.mean((2, 3)), *self.linear), taps


def cifar(path, dtype):
    raw = np.fromfile(path, np.uint8).reshape(-1, 3073)
    return torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy()).to(dtype) / 255, raw[:, 0].astype(np.int64)


def normalised(x):
    channel = lambda v: torch.tensor(v, dtype=x.dtype).view(1, 3, 1, 1)
    return (x - channel(MEAN)) / channel(STD)


def run(net, x):
    """Logits and the activations of all layers by name, float64, for each batch."""
    for batch in x.split(BATCH):
        y, taps = net.forward(normalised(batch))
        yield y.double().numpy(), {name: z.double().numpy() for name, z in taps.items()}


def softmax(y):
    e = np.exp(y - y.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def divergence(p, q):
    """Kullback and Leibler's, for each row; no probability here underflows to 0."""
    return (p * np.log(p / q)).sum(1)


def prediction(clean, moved, labels):
    p, q = softmax(clean), softmax(moved)
    c, d = p.argmax(1), q.argmax(1)
    m = (p + q) / 2
    right, still = (c == labels).mean(), (d == labels).mean()
    return {
        "clean": right, "moved": still, "drop": right - still,
        "ei": np.where(c == d, np.sqrt(p.max(1) * q.max(1)), 0).mean(),
        "js": ((divergence(p, m) + divergence(q, m)) / 2).mean(),
        "kl": divergence(p, q).mean(),
        "l2": np.linalg.norm(p - q, axis=1).mean(),
        "agreement": (c == d).mean(),
    }


def distance(z, zt):
    a, b = z.reshape(len(z), -1), zt.reshape(len(zt), -1)
    cosine = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.stack([1 - cosine, np.abs(a - b).sum(1), np.linalg.norm(a - b, axis=1)], 1)  # a row for each sample


def leading(z):
    """The leading singular vectors of A, d x n, its rows centred; and how near the share at the cut is to another rank."""
    b, c, h, w = z.shape
    a = z.transpose(2, 3, 0, 1).reshape(h * w, b * c)
    u, s, vt = np.linalg.svd(a - a.mean(1, keepdims=True), full_matrices=False)
    share = np.cumsum(s**2) / np.sum(s**2)
    k = int(np.searchsorted(share, VARIANCE)) + 1
    return (u[:, :k], s[:k], vt[:k]), np.abs(share[max(k - 2, 0) : k] - VARIANCE).min()


def seis(clean, moved):
    (ua, sa, va), (ub, sb, vb) = clean, moved
    p, rho, qt = np.linalg.svd(va @ vb.T)
    w = ua @ (p[:, : len(rho)] / sa[:, None])  # canonical vectors, whitening included, in the spatial basis
    v = ub @ (qt[: len(rho)].T / sb[:, None])
    cosine = np.abs((w * v).sum(0)) / (np.linalg.norm(w, axis=0) * np.linalg.norm(v, axis=0))
    return [rho.mean(), (rho * cosine).mean(), len(sa), len(sb), va.shape[1]]


def gap(logits):
    top = np.sort(logits, 1)
    return (top[:, -1] - top[:, -2]).min()


def for_seis(batches, name):
    return leading(np.concatenate([taps[name] for _, taps in batches])[:SEIS_IMAGES])


def study(model, net, pictures, labels):
    clean = list(run(net, pictures))
    names = list(clean[0][1])
    clean_logits = np.concatenate([y for y, _ in clean])
    subspaces = {name: for_seis(clean, name) for name in names}
    out = []
    for transform, parameter, seis_models, move in TRANSFORMS:
        first, logits, distances = [], [], {name: [] for name in names}
        for (_, z), (y, zt) in zip(clean, run(net, move(pictures))):
            logits.append(y)
            for name in names:
                distances[name].append(distance(z[name], zt[name]))
            if len(first) * BATCH < SEIS_IMAGES:
                first.append((y, zt))
        layers = {name: list(np.concatenate(d).mean(0)) for name, d in distances.items()}
        margins = {}
        for name in names if model in seis_models else ():
            subspace, margin = for_seis(first, name)
            layers[name] += seis(subspaces[name][0], subspace)
            margins[name] = min(margin, subspaces[name][1])
        logits = np.concatenate(logits)
        out.append({"transform": transform, "parameter": parameter,
                    "prediction": prediction(clean_logits, logits, labels), "layers": layers})
        nearest = min(margins, key=margins.get, default=None)
        print(model, transform, parameter, "logits", min(gap(clean_logits), gap(logits)), "rank", margins.get(nearest), nearest,
              file=sys.stderr, flush=True)
    return out


def accuracy(net, x, labels):
    right = [net.forward(normalised(b))[0].argmax(1).numpy() for b in x.split(250)]
    return float((np.concatenate(right) == labels).mean())


def rounded(v):
    if isinstance(v, dict):
        return {k: rounded(x) for k, x in v.items()}
    if isinstance(v, list):
        return [rounded(x) for x in v]
    return v if isinstance(v, (int, str)) else float(f"{float(v):.9g}")


def written(models):
    """JSON with a line for each layer."""
    text = json.dumps(rounded({"images": IMAGES, "seis_images": SEIS_IMAGES, "layer_columns": LAYER_COLUMNS, "models": models}))
    return text.replace('{"transform"', '\n{"transform"').replace('], "/', '],\n"/').replace('"layers": {', '"layers": {\n')


def measured(model):
    folder = sys.argv[1]
    torch.set_num_threads(1)
    (blocks, known), path, pictures = MODELS[model], f"{folder}/models/{model}-cifar10.onnx", f"{folder}/cifar10/test_batch.bin"
    with torch.no_grad():
        found = accuracy(Net(path, blocks, torch.float32), *cifar(pictures, torch.float32))
        assert found == known, f"{model}: an accuracy of {found}, not {known}: the network is not the one in the file"
        x, labels = cifar(pictures, torch.float64)
        return study(model, Net(path, blocks, torch.float64), x[:IMAGES], labels[:IMAGES])


if __name__ == "__main__":
    with multiprocessing.Pool(len(MODELS)) as pool:
        print(written(dict(zip(MODELS, pool.map(measured, MODELS)))))
