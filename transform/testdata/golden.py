"""Writes golden.npz and golden.json: what torchvision.functional makes of some small pictures.

Run as `python3 golden.py` in this folder (torchvision 0.14). All is computed in float64, so that the goldens do not carry the
rounding of torchvision's float32 sampling grid; the script checks that float32 agrees with them to 1e-5.
"""

import json

import numpy as np
import torch
import torchvision.transforms.functional as F
import torchvision.transforms.functional_tensor as FT

BILINEAR, NEAREST = F.InterpolationMode.BILINEAR, F.InterpolationMode.NEAREST
MODES = {"bilinear": BILINEAR, "nearest": NEAREST}


def pictures():
    g = np.random.default_rng(20240)
    return {
        "square": g.random((3, 8, 8), dtype=np.float32),
        "wide": g.random((3, 10, 15), dtype=np.float32),
        "tall-grey": g.random((1, 13, 9), dtype=np.float32),
        "maps": g.standard_normal((16, 7, 6), dtype=np.float32) * 3,
        "pixel": g.random((3, 1, 1), dtype=np.float32),
    }


def affine(x, angle=0.0, translate=(0.0, 0.0), scale=1.0, shear=(0.0, 0.0), interpolation="bilinear", fill=None, outside="fill"):
    """F.affine with translate in fractions of the sides and, like F.rotate, a counter-clockwise angle."""
    h, w = x.shape[-2:]
    pixels = [translate[0] * w, translate[1] * h]
    if outside == "fill":
        fill = None if fill is None else [fill]
        return F.affine(x, -angle, pixels, scale, list(shear), interpolation=MODES[interpolation], fill=fill)
    matrix = F._get_inverse_affine_matrix([0.0, 0.0], -angle, pixels, scale, list(shear))
    theta = torch.tensor(matrix, dtype=x.dtype).reshape(1, 2, 3)
    grid = FT._gen_affine_grid(theta, w=w, h=h, ow=w, oh=h)
    return torch.nn.functional.grid_sample(x[None], grid, mode=interpolation, padding_mode="reflection", align_corners=False)[0]


def rotate(x, angle, interpolation="bilinear", fill=None):
    return F.rotate(x, angle, interpolation=MODES[interpolation], fill=None if fill is None else [fill])


def crop(x, side, interpolation="bilinear"):
    h, w = x.shape[-2:]
    bh, bw = round(side * h), round(side * w)
    top, left = int(round((h - bh) / 2.0)), int(round((w - bw) / 2.0))
    return F.resized_crop(x, top, left, bh, bw, [h, w], interpolation=MODES[interpolation])


def grayscale(x):
    return F.rgb_to_grayscale(x, num_output_channels=x.shape[0])


def blur(x, sigma, kernel):
    return F.gaussian_blur(x, [kernel, kernel], [sigma, sigma])


def cases():
    """Yields kind, arguments as in a study file, picture, function."""
    for pic in ("square", "wide", "tall-grey", "maps"):
        for angle in (30, -77.5, 90, 180, 270, -90, 360):
            yield "rotate", {"angle": angle}, pic, lambda x, a=angle: rotate(x, a)
        yield "rotate", {"angle": 33, "interpolation": "nearest"}, pic, lambda x: rotate(x, 33, "nearest")
        yield "rotate", {"angle": 20, "fill": 0.5}, pic, lambda x: rotate(x, 20, fill=0.5)
        yield "rotate", {"angle": 20, "fill": 0}, pic, lambda x: rotate(x, 20, fill=0.0)
        yield "rotate", {"angle": 20, "fill": -1, "interpolation": "nearest"}, pic, lambda x: rotate(x, 20, "nearest", -1.0)
        yield "rotate", {"angle": 47, "outside": "reflect"}, pic, lambda x: affine(x, 47.0, outside="reflect")
        yield "translate", {"x": 0.13, "y": -0.27}, pic, lambda x: affine(x, translate=(0.13, -0.27))
        yield "translate", {"x": 0.9, "y": -1, "outside": "reflect"}, pic, lambda x: affine(x, translate=(0.9, -1), outside="reflect")
        for s in (0.8, 1.2, 3):
            yield "scale", {"factor": s}, pic, lambda x, s=s: affine(x, scale=float(s))
        yield "scale", {"factor": 0.23, "outside": "reflect"}, pic, lambda x: affine(x, scale=0.23, outside="reflect")
        yield "scale", {"factor": 1.7, "interpolation": "nearest"}, pic, lambda x: affine(x, scale=1.7, interpolation="nearest")
        yield "shear", {"x": 25}, pic, lambda x: affine(x, shear=(25.0, 0.0))
        yield "shear", {"x": -10, "y": 40, "fill": 1}, pic, lambda x: affine(x, shear=(-10.0, 40.0), fill=1.0)
        args = {"rotate": 12, "translate-x": 0.05, "translate-y": -0.04, "scale": 0.9, "shear-x": 5, "shear-y": -8}
        yield "affine", args, pic, lambda x: affine(x, 12.0, (0.05, -0.04), 0.9, (5.0, -8.0))
        yield "affine", {"rotate": -200, "translate": 0.1, "scale": 1.1, "interpolation": "nearest"}, pic, lambda x: affine(
            x, -200.0, (0.1, 0.1), 1.1, interpolation="nearest")
        yield "flip", {"direction": "horizontal"}, pic, F.hflip
        yield "flip", {"direction": "vertical"}, pic, F.vflip
        for side in (0.4, 0.75, 1):
            yield "crop", {"side": side}, pic, lambda x, s=side: crop(x, s)
        yield "crop", {"area": 0.5}, pic, lambda x: crop(x, 0.5 ** 0.5)
        yield "crop", {"side": 0.6, "interpolation": "nearest"}, pic, lambda x: crop(x, 0.6, "nearest")
        yield "gaussian-blur", {"sigma": 1}, pic, lambda x: blur(x, 1.0, 7)
        yield "gaussian-blur", {"sigma": 1.1}, pic, lambda x: blur(x, 1.1, 9)
        yield "gaussian-blur", {"sigma": 0.1}, pic, lambda x: blur(x, 0.1, 3)
        yield "gaussian-blur", {"sigma": 2.5, "kernel": 5}, pic, lambda x: blur(x, 2.5, 5)
    for pic in ("square", "wide", "tall-grey"):
        yield "grayscale", {}, pic, grayscale
        for f in (0, 0.3, 1, 1.8):
            yield "brightness", {"factor": f}, pic, lambda x, f=f: F.adjust_brightness(x, f)
            yield "contrast", {"factor": f}, pic, lambda x, f=f: F.adjust_contrast(x, f)
    # Shifts by pixels and a half, exact in binary on a side of 8: the nearest pixel is a tie.
    yield "translate", {"x": 0.1875, "y": -0.0625, "interpolation": "nearest"}, "square", lambda x: affine(
        x, translate=(0.1875, -0.0625), interpolation="nearest")
    yield "rotate", {"angle": 30}, "pixel", lambda x: rotate(x, 30)
    yield "affine", {"rotate": 30, "translate": 0.3, "outside": "reflect"}, "pixel", lambda x: affine(
        x, 30.0, (0.3, 0.3), outside="reflect")


def main():
    pics = pictures()
    arrays, table, worst = dict(pics), [], 0.0
    for kind, args, pic, f in cases():
        x = torch.from_numpy(pics[pic])
        want, single = f(x.double()), f(x)
        if args.get("interpolation") != "nearest":  # where rounding decides ties
            worst = max(worst, float((want - single).abs().max()))
        key = f"{len(table):03d}"
        arrays[key] = want.numpy().astype(np.float32)
        table.append({"golden": key, "kind": kind, "args": args, "picture": pic})
    assert worst < 1e-5, worst
    np.savez_compressed("golden.npz", **arrays)
    with open("golden.json", "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in table) + "\n]\n")
    print(f"{len(table)} cases; float32 is within {worst:.1e}")


main()
