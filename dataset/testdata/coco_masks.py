"""Golden masks of regions in COCO's format: python3 coco_masks.py maskapi.so writes coco_masks.json.

maskapi.so is the C code of pycocotools (common/maskApi.c of github.com/cocodataset/cocoapi), which its Python functions frPyObjects, decode,
area and merge call, compiled by: cc -O2 -shared -fPIC maskApi.c -o maskapi.so

Class masks are made of the masks as torchvision's references/segmentation/coco_utils.py makes them (ConvertCocoPolysToMask), with -1 for its
255, and -1 in groups. An optional second argument is the number of random polygons.
"""
import ctypes
import json
import sys

import numpy as np

api = ctypes.CDLL(sys.argv[1])
POLYGONS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
rng = np.random.default_rng(22)


class RLE(ctypes.Structure):
    _fields_ = [("h", ctypes.c_ulong), ("w", ctypes.c_ulong), ("m", ctypes.c_ulong), ("counts", ctypes.POINTER(ctypes.c_uint))]


api.rleToString.argtypes, api.rleToString.restype = [ctypes.POINTER(RLE)], ctypes.c_char_p
api.rleFrPoly.argtypes = [ctypes.POINTER(RLE), ctypes.POINTER(ctypes.c_double), ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
api.rleEncode.argtypes = [ctypes.POINTER(RLE), ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
api.rleDecode.argtypes = [ctypes.POINTER(RLE), ctypes.c_char_p, ctypes.c_ulong]
api.rleFrString.argtypes = [ctypes.POINTER(RLE), ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]
api.rleMerge.argtypes = [ctypes.POINTER(RLE), ctypes.POINTER(RLE), ctypes.c_ulong, ctypes.c_int]
api.rleArea.argtypes = [ctypes.POINTER(RLE), ctypes.c_ulong, ctypes.POINTER(ctypes.c_uint)]


def counts(r):
    return [r.counts[i] for i in range(r.m)]


def decode(r):
    out = ctypes.create_string_buffer(r.h * r.w)
    api.rleDecode(r, out, 1)
    return np.frombuffer(out.raw, np.uint8).reshape(r.w, r.h).T.copy()


def encode(mask):
    r = RLE()
    api.rleEncode(r, mask.T.astype(np.uint8).tobytes(), *mask.shape, 1)
    return r


def area(r):
    out = ctypes.c_uint()
    api.rleArea(r, 1, out)
    return out.value


def union(polygons, h, w):
    parts = (RLE * len(polygons))()
    for r, p in zip(parts, polygons):
        api.rleFrPoly(r, (ctypes.c_double * len(p))(*p), len(p) // 2, h, w)
    out = RLE()
    api.rleMerge(parts, out, len(parts), 0)
    return out


def case(name, polygons, h, w):
    r = union(polygons, h, w)
    mask = encode(decode(r))  # so that its runs are canonical
    assert area(mask) == area(r)
    return {"name": name, "height": h, "width": w, "segmentation": polygons, "runs": counts(mask), "area": area(r)}


def blob(n, centre, size, decimals):
    angle = np.sort(rng.uniform(0, 2 * np.pi, n))
    radius = size * rng.uniform(0.3, 1, n)
    points = np.stack([centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)], 1)
    return [float(v) for v in np.round(points, decimals).ravel()]


def random_polygon(h, w):
    kind, decimals = rng.integers(0, 5), int(rng.choice([0, 1, 2, 6]))
    centre = rng.uniform(-0.3, 1.3, 2) * [w, h]
    if kind == 0:  # self-crossing
        points = rng.uniform(-0.4, 1.4, (rng.integers(3, 12), 2)) * [w, h]
        return [float(v) for v in np.round(points, decimals).ravel()]
    if kind == 1:  # thin
        far = centre + rng.uniform(-1, 1, 2) * [w, h]
        across = rng.uniform(-1, 1, 2)
        return [float(v) for v in np.round(np.concatenate([centre, far, far + across, centre + across]), decimals)]
    if kind == 2:  # a rectangle
        x, y, u, v = np.round([*centre, *(centre + rng.uniform(0, 0.6, 2) * [w, h])], decimals)
        return [float(a) for a in [x, y, u, y, u, v, x, v]]
    return blob(rng.integers(3, 30), centre, rng.uniform(0.5, max(h, w)), decimals)


cases = [
    case("pixel", [[2, 3, 3, 3, 3, 4, 2, 4]], 8, 6),
    case("half pixels", [[1.5, 1.5, 4.5, 1.5, 4.5, 5.5, 1.5, 5.5]], 8, 6),
    case("whole image", [[0, 0, 6, 0, 6, 8, 0, 8]], 8, 6),
    case("around the image", [[-5, -5, 60, -5, 60, 80, -5, 80]], 8, 6),
    case("outside", [[-9, -9, -2, -9, -2, -1], [7, 1, 30, 1, 30, 7], [1, 9, 5, 20, 3, 30]], 8, 6),
    case("horizontal line", [[0, 3, 6, 3, 0, 3]], 8, 6),
    case("vertical line", [[3, 0, 3, 8, 3, 0]], 8, 6),
    case("point", [[3, 3, 3, 3, 3, 3]], 8, 6),
    case("sliver", [[0.3, 0.2, 29.7, 19.1, 29.7, 19.6, 0.3, 0.7]], 20, 30),
    case("bow tie", [[2, 2, 28, 18, 28, 2, 2, 18]], 20, 30),
    case("star", [[15, 0, 21, 19, 1, 7, 29, 7, 9, 19]], 20, 30),
    case("spiral over itself", [[2, 2, 27, 2, 27, 17, 2, 17, 2, 2, 27, 2, 27, 17, 2, 17, 2, 5, 20, 5, 20, 12, 6, 12]], 20, 30),
    case("parts that overlap", [[2, 2, 20, 2, 20, 12, 2, 12], [10, 6, 28, 6, 28, 18, 10, 18]], 20, 30),
    case("closed by its first point", [[3.2, 4.1, 20.7, 3.3, 11.4, 17.9, 3.2, 4.1]], 20, 30),
    case("far away", [[-1e5, -2e4, 1e5, 3e4, 12.5, 9e4]], 20, 30),
    case("one column", [[-1, 3, 2, 5, 0.4, 9]], 15, 1),
    case("one row", [[3, -1, 5, 2, 9, 0.4]], 1, 15),
]
for i in range(POLYGONS):
    h, w = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    cases.append(case(f"random {i}", [random_polygon(h, w) for _ in range(rng.integers(1, 4))], h, w))

runs = []
for name, mask in {
    "empty": np.zeros((7, 5), bool),
    "full": np.ones((7, 5), bool),
    "first pixel": np.arange(35).reshape(5, 7).T == 0,
    "last pixel": np.arange(35).reshape(5, 7).T == 34,
    "checkerboard": np.indices((7, 5)).sum(0) % 2 == 0,
    "noise": rng.uniform(size=(23, 31)) < 0.4,
    "stripes": np.indices((300, 200))[1] % 37 < rng.integers(1, 37, (1, 200)),
    "large": np.hypot(*(np.indices((480, 640)) - np.array([200, 300])[:, None, None])) < 170,
}.items():
    r = encode(mask)
    text = api.rleToString(r)
    back = RLE()
    api.rleFrString(back, text, *mask.shape)
    assert counts(back) == counts(r) and (decode(back) == mask).all() and area(r) == mask.sum()
    runs.append({"name": name, "size": mask.shape, "counts": counts(r), "compressed": text.decode(), "area": area(r)})

maps = []
for i in range(6):
    h, w, n = 24, 32, int(rng.integers(1, 7))
    objects = [{"segmentation": [random_polygon(h, w)], "class": int(rng.integers(1, 5)), "crowd": False} for _ in range(n)]
    if i % 2:
        group = blob(9, (20, 12), 9, 1)
        objects.append({"segmentation": {"size": [h, w], "counts": counts(encode(decode(union([group], h, w))))}, "class": 2, "crowd": True})
    masks = np.stack([decode(union(o["segmentation"] if not o["crowd"] else [group], h, w)) for o in objects]).astype(int)
    target = (masks * np.array([o["class"] for o in objects])[:, None, None]).max(0)
    target[masks.sum(0) > 1] = -1
    for o, mask in zip(objects, masks):
        target[(mask > 0) & o["crowd"]] = -1
    maps.append({"height": h, "width": w, "objects": objects, "classes": target.ravel().tolist()})

with open("coco_masks.json", "w") as f:
    json.dump({"source": "maskApi.c of cocoapi", "polygons": cases, "runs": runs, "maps": maps}, f, separators=(",", ":"))
