"""Writes corrupt.npz: what the corruptions that draw nothing make of two pictures.

Run as `python3 corrupt.py` in this folder (numpy, scipy, PIL). Written from the code of Hendrycks and Dietterich 2019, with scipy in
the place of OpenCV and scikit-image. Of each result every 13th value is kept.
"""

import io

import numpy as np
import scipy.ndimage as nd
from PIL import Image

SMALL = {
    "defocus-blur": [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
    "zoom-blur": [np.arange(1, 1.06, 0.01), np.arange(1, 1.11, 0.01), np.arange(1, 1.16, 0.01), np.arange(1, 1.21, 0.01), np.arange(1, 1.26, 0.01)],
    "brightness": [0.05, 0.1, 0.15, 0.2, 0.3],
    "contrast": [0.75, 0.5, 0.4, 0.3, 0.15],
    "pixelate": [0.95, 0.9, 0.85, 0.75, 0.65],
    "jpeg-compression": [80, 65, 58, 50, 40],
}
LARGE = {
    "defocus-blur": [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    "zoom-blur": [np.arange(1, 1.11, 0.01), np.arange(1, 1.16, 0.01), np.arange(1, 1.21, 0.02), np.arange(1, 1.26, 0.02), np.arange(1, 1.31, 0.03)],
    "brightness": [0.1, 0.2, 0.3, 0.4, 0.5],
    "contrast": [0.4, 0.3, 0.2, 0.1, 0.05],
    "pixelate": [0.6, 0.5, 0.4, 0.3, 0.25],
    "jpeg-compression": [25, 18, 15, 10, 7],
}


def disk(radius, alias):
    if radius <= 8:
        line, reach = np.arange(-8, 9), 1
    else:
        line, reach = np.arange(-np.ceil(radius), np.ceil(radius) + 1), 2
    x, y = np.meshgrid(line, line)
    d = (x**2 + y**2 <= radius**2).astype(float)
    d /= d.sum()
    g = np.exp(-np.arange(-reach, reach + 1) ** 2 / (2 * alias**2))
    g /= g.sum()
    return nd.correlate1d(nd.correlate1d(d, g, 0, mode="mirror"), g, 1, mode="mirror")


def defocus_blur(x, c, scale):
    k = disk(c[0] * scale, c[1] * scale)
    return np.stack([nd.correlate(p, k, mode="mirror") for p in x])


def clipped_zoom(x, z):
    h, w = x.shape[1:]
    ch, cw = int(np.ceil(h / z)), int(np.ceil(w / z))
    top, left = (h - ch) // 2, (w - cw) // 2
    big = nd.zoom(x[:, top : top + ch, left : left + cw], (1, z, z), order=1)
    t, l = (big.shape[1] - h) // 2, (big.shape[2] - w) // 2
    return big[:, t : t + h, l : l + w]


def zoom_blur(x, c, scale):
    return (x + sum(clipped_zoom(x, z) for z in c)) / (len(c) + 1)


def brightness(x, c, scale):
    import colorsys

    out = np.empty_like(x)
    for i in np.ndindex(x.shape[1:]):
        h, s, v = colorsys.rgb_to_hsv(*x[(slice(None), *i)])
        out[(slice(None), *i)] = colorsys.hsv_to_rgb(h, s, np.clip(v + c, 0, 1))
    return out


def contrast(x, c, scale):
    m = x.mean((1, 2), keepdims=True)
    return (x - m) * c + m


def pixelate(x, c, scale):
    h, w = x.shape[1:]
    out = []
    for p in x:
        m = Image.fromarray(p.astype(np.float32), mode="F")
        out.append(np.asarray(m.resize((int(w * c), int(h * c)), Image.BOX).resize((w, h), Image.BOX)))
    return np.stack(out)


def jpeg_compression(x, c, scale):
    m = Image.fromarray(np.rint(x.transpose(1, 2, 0) * 255).astype(np.uint8))
    f = io.BytesIO()
    m.save(f, "JPEG", quality=c)
    return np.asarray(Image.open(f)).transpose(2, 0, 1) / 255.0


def grey_jpeg(x, c):
    f = io.BytesIO()
    Image.fromarray(x).save(f, "JPEG", quality=c)
    return np.asarray(Image.open(f)) / 255.0


def picture(h, w, seed):
    g = np.random.default_rng(seed)
    x = nd.gaussian_filter(g.standard_normal((3, h, w)), (0, h / 16, w / 16))
    x = (x - x.min()) / (x.max() - x.min())
    return np.rint(x * 255).astype(np.uint8)


out = {}
for name, h, w, table, native in (("small", 32, 40, SMALL, 32), ("large", 96, 128, LARGE, 224)):
    x = picture(h, w, 5)
    out[name] = x
    out[f"{name}-grey"] = grey_jpeg(x[0], table["jpeg-compression"][2]).ravel()[::13].astype(np.float32)
    for kind, levels in table.items():
        for s in (1, 3, 5):
            f = globals()[kind.replace("-", "_")]
            y = np.clip(f(x / 255.0, levels[s - 1], h / native), 0, 1)
            out[f"{name}-{kind}-{s}"] = y.ravel()[::13].astype(np.float32)
np.savez_compressed("corrupt.npz", **out)
