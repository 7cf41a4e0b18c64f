"""Makes testdata/images: small images in many formats, and what PIL and torchvision read and make of them.

NAME.EXT is a picture; NAME.EXT.rgb.png is what PIL's convert("RGB") decodes from it. framed-*.png are torchvision's
transforms of scene.png; framing.json says which. Run with Python 3, PIL and torchvision; the results are kept in the
repository.
"""
import json
import os

import numpy as np
import torch
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import InterpolationMode as I

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images")
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(7)


def scene(w, h):
    """Saturated edges, a smooth ramp and noise: what tells one way of resampling from another."""
    y, x = np.mgrid[0:h, 0:w]
    a = np.zeros((h, w, 3))
    a[..., 0] = 255 * ((x // 7 + y // 5) % 2)
    a[..., 1] = 255 * x / w
    a[..., 2] = 127 + 127 * np.sin(x * y / 60)
    a += rng.normal(0, 12, a.shape)
    return Image.fromarray(a.clip(0, 255).astype(np.uint8))


def save(img, name, reference=True, **kw):
    path = os.path.join(out, name)
    img.save(path, **kw)
    if reference:
        Image.open(path).convert("RGB").save(path + ".rgb.png", optimize=True)


rgb = scene(61, 43)
save(rgb, "scene.png", reference=False, optimize=True)
for sub, label in [(0, "444"), (1, "422"), (2, "420")]:
    save(rgb, f"{label}.jpg", quality=90, subsampling=sub)
save(scene(16, 12), "even.jpg", quality=90, subsampling=2)
save(scene(4, 9), "narrow.jpg", quality=90, subsampling=2)
save(rgb, "progressive.jpg", quality=80, progressive=True)
save(rgb.convert("L"), "grey.jpg", quality=90)
save(rgb.convert("CMYK"), "cmyk.jpg", quality=95)
small = scene(19, 13)
alpha = small.copy()
alpha.putalpha(Image.fromarray(rng.integers(0, 256, (13, 19), dtype=np.uint8)))
save(alpha, "alpha.png")
save(small.quantize(16), "palette.png")
save(small.convert("L"), "grey.png")
save(small.convert("1"), "bits.png")
save(small.quantize(16), "palette.gif")
save(small, "colour.bmp")
save(small, "colour.tif", compression="tiff_lzw")
save(small, "lossless.webp", lossless=True)
save(scene(32, 24), "lossy.webp", quality=90)
Image.fromarray(rng.integers(0, 65536, (5, 7), dtype=np.uint16)).save(os.path.join(out, "deep.png"))



def patched(img, name, patch, **kw):
    """A kind of JPEG that PIL does not write, made of one that it does."""
    path = os.path.join(out, name)
    img.save(path, quality=90, **kw)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    with open(path, "wb") as f:
        f.write(patch(data))
    Image.open(path).convert("RGB").save(path + ".rgb.png", optimize=True)


def sampled(factors, w, h):
    """Other factors for as many blocks: a scrambled picture, which is as good."""
    def patch(data):
        at = data.index(b"\xff\xc0")
        data[at + 5:at + 9] = bytes([h >> 8, h & 255, w >> 8, w & 255])
        data[at + 11] = factors
        return data
    return patch


def as_rgb(data):
    """Components that are red, green and blue, by Adobe's marker."""
    data[2:20] = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"  # in place of JFIF's
    return data


def as_ycck(data):
    data[data.index(b"Adobe") + 11] = 2
    return data


patched(scene(64, 24), "440.jpg", sampled(0x12, 47, 28), subsampling=1)  # 12 units of two blocks: 6 x 2
patched(scene(48, 8), "440-narrow.jpg", sampled(0x12, 4, 42), subsampling=1)
patched(scene(64, 32), "411.jpg", sampled(0x41, 61, 29), subsampling=2)  # 8 units of four blocks
patched(small, "adobe-rgb.jpg", as_rgb, subsampling=0)
patched(small.convert("CMYK"), "ycck.jpg", as_ycck)
for (w, h) in [(1, 1), (1, 7), (2, 3), (5, 4), (33, 21)]:
    save(scene(w, h), f"lossy-{w}x{h}.webp", quality=90)
blended = scene(31, 18)
blended.putalpha(Image.fromarray(rng.integers(0, 256, (18, 31), dtype=np.uint8)))
save(blended, "lossy-alpha.webp", quality=60)
for (w, h) in [(1, 1), (3, 2), (5, 3)]:
    save(scene(w, h), f"tiny-{w}x{h}.jpg", quality=90, subsampling=2)

framings = []


def framed(name, transform, **frame):
    transform(rgb).save(os.path.join(out, f"framed-{name}.png"), optimize=True)
    framings.append({"name": name, "frame": frame})


modes = {"bilinear": I.BILINEAR, "bicubic": I.BICUBIC, "lanczos": I.LANCZOS, "nearest": I.NEAREST}
for mode, m in modes.items():
    for size in (17, 43, 71):
        framed(f"{mode}-{size}", T.Resize(size, m), Resize=size, Interpolation=mode)
    framed(f"{mode}-crop", T.Compose([T.Resize(30, m), T.CenterCrop((23, 26))]), Resize=30, Height=23, Width=26, Interpolation=mode)
    framed(f"{mode}-stretch", T.Resize((50, 28), m), Height=50, Width=28, Interpolation=mode)
framed("wide", T.Resize((43, 30), I.BILINEAR), Height=43, Width=30)
framed("tall", T.Resize((20, 61), I.BILINEAR), Height=20, Width=61)
framed("pad", T.Compose([T.Resize(20), T.CenterCrop((33, 35))]), Resize=20, Height=33, Width=35)
framed("pad-one-side", T.Compose([T.Resize(20), T.CenterCrop((27, 19))]), Resize=20, Height=27, Width=19)
# The library transformers rounds the start of a crop down.
framed("floor", lambda p: T.Resize(32)(p).crop((9, 1, 9 + 26, 1 + 29)), Resize=32, Height=29, Width=26, FloorCrop=True)
framed("square", T.Compose([T.Resize((32, 32)), T.CenterCrop(27)]), Resize=32, Square=True, Height=27, Width=27)
# Tensors are resampled in float32, without PIL's rounding: torch's antialiased interpolation is the reference.
for mode in ("bilinear", "bicubic"):
    for size in (17, 71):
        t = T.ToTensor()(rgb)
        h, w = T.Resize(size)(rgb).size[::-1]
        t = torch.nn.functional.interpolate(t[None], (h, w), mode=mode, antialias=True)[0]
        np.save(os.path.join(out, f"tensor-{mode}-{size}.npy"), t.numpy())

with open(os.path.join(out, "framing.json"), "w") as f:
    json.dump(framings, f, indent=1)
