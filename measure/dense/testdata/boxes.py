"""Golden values of dense-equivariance for boxes and class maps, by NumPy alone.

Run in this folder: python3 boxes.py > golden.json

Boxes are lists of left, top, right, bottom (fractions), score and class. Visible parts are counted on
a grid of points, not by cutting polygons. Boxes whose part is near a half are drawn again.
"""
import json
import math

import numpy as np

H, W = 120, 160
rng = np.random.default_rng(5)


def forward(kind):
    """Returns the affine map of fractions of a transformation: M, t with p' = M p + t."""
    name, value = kind
    size = np.diag([W, H]).astype(float)
    if name == "rotate":  # counter-clockwise about the centre; y points down
        a = math.radians(value)
        turn = np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
        m = np.linalg.inv(size) @ turn @ size
        return m, np.array([0.5, 0.5]) - m @ np.array([0.5, 0.5])
    if name == "flip":
        return np.diag([-1.0, 1.0]), np.array([1.0, 0.0])
    if name == "scale":
        m = np.eye(2) * value
        return m, np.array([0.5, 0.5]) * (1 - value)
    return np.eye(2), np.array(value)  # translate: x, y


def corners(b):
    return np.array([[b[0], b[1]], [b[2], b[1]], [b[2], b[3]], [b[0], b[3]]])


def part(b, inside):
    """The part of a box of which the points satisfy a condition."""
    u = (np.arange(300) + 0.5) / 300
    x, y = np.meshgrid(b[0] + u * (b[2] - b[0]), b[1] + u * (b[3] - b[1]))
    return inside(np.stack([x.ravel(), y.ravel()], 1)).mean()


def unit(p):
    return ((p >= 0) & (p <= 1)).all(1)


def iou(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    area = lambda c: (c[2] - c[0]) * (c[3] - c[1])
    return w * h / (area(a) + area(b) - w * h)


def move(b, m, t):
    c = corners(b) @ m.T + t
    visible = part(b, lambda p: unit(p @ m.T + t))
    box = [*np.clip(c.min(0), 0, 1), *np.clip(c.max(0), 0, 1)] if visible > 0 else [0, 0, 0, 0]
    return [float(v) for v in box] + list(b[4:]), visible


def greedy(pairs, a, b, usable):
    left, right, out = set(), set(), []
    for v, i, j in pairs:
        if i not in left and j not in right and usable(i, j):
            left.add(i)
            right.add(j)
            out.append((v, i, j))
    return out, left, right


def compare(a, ca, b, cb, confidence):
    pairs = [(iou(x, y), i, j) for i, x in enumerate(a) for j, y in enumerate(b) if iou(x, y) >= 0.5]
    pairs.sort(key=lambda p: (a[p[1]][5] != b[p[2]][5], -p[0], p[1], p[2]))
    pairs = [p for p in pairs if a[p[1]][4] >= confidence and b[p[2]][4] >= confidence]
    first, left, right = greedy(pairs, a, b, lambda i, j: ca[i] and cb[j])
    rest = [p for p in pairs if p[1] not in left and p[2] not in right]
    second, _, _ = greedy(rest, a, b, lambda i, j: ca[i] != cb[j])
    ignored_a, ignored_b = {i for _, i, _ in second}, {j for _, _, j in second}
    na = [i for i in range(len(a)) if ca[i] and a[i][4] >= confidence and i not in ignored_a]
    nb = [j for j in range(len(b)) if cb[j] and b[j][4] >= confidence and j not in ignored_b]
    return first, na, nb


def random_boxes(m, t, n):
    out = []
    while len(out) < n:
        size = rng.uniform(0.05, 0.5, 2)
        at = rng.uniform(0, 1, 2) * (1 - size)
        b = [float(v) for v in np.float32([*at, *(at + size)])] + [float(np.float32(rng.uniform(0.05, 1))), int(rng.integers(3))]
        if abs(part(b, lambda p: unit(p @ m.T + t)) - 0.5) > 0.02:
            out.append(b)
    return out


def image(kind, n):
    m, t = forward(kind)
    back = np.linalg.inv(m)
    clean = random_boxes(m, t, n)
    shown = lambda p: unit((p - t) @ back.T)
    moved, counts = zip(*((c, v >= 0.5) for c, v in (move(b, m, t) for b in clean)))
    found = []
    for b in moved:  # found again with errors, or not
        if rng.uniform() < 0.2 or b[2] - b[0] < 0.02 or b[3] - b[1] < 0.02:
            continue
        jitter = rng.normal(0, 0.05, 4) * np.tile([b[2] - b[0], b[3] - b[1]], 2)
        c = [float(v) for v in np.float32(np.array(b[:4]) + jitter)]
        c += [float(np.float32(np.clip(b[4] + rng.normal(0, 0.1), 0.02, 1))), b[5] if rng.uniform() < 0.8 else int(rng.integers(3))]
        if c[0] < c[2] and c[1] < c[3] and abs(part(c, shown) - 0.5) > 0.02:
            found.append(c)
    identity = np.eye(2), np.zeros(2)
    found += [b for b in random_boxes(*identity, 2) if abs(part(b, shown) - 0.5) > 0.02]
    return clean, moved, counts, found, [part(b, shown) >= 0.5 for b in found]


def size(b):
    area = (b[2] - b[0]) * (b[3] - b[1]) * H * W
    return "small" if area < 32**2 else "medium" if area < 96**2 else "large"


def ratio(sums):
    return {k: a / b for k, (a, b) in sums.items() if b}


def boxes(kind):
    samples, sums = [], {}
    add = lambda key, a, b: sums.__setitem__(key, (sums.get(key, (0, 0))[0] + a, sums.get(key, (0, 0))[1] + b))
    for _ in range(6):
        clean, moved, counts, found, shown = image(kind, 8)
        samples.append({"clean": clean, "found": found})
        first, na, nb = compare(moved, counts, found, shown, 0.5)
        add("matched", 2 * len(first), len(na) + len(nb))
        partner = {("a", i): found[j] for _, i, j in first} | {("b", j): moved[i] for _, i, j in first}
        for v, i, j in first:
            add("iou", v, 1)
            add("class-flips", moved[i][5] != found[j][5], 1)
            add("confidence-change", found[j][4] - moved[i][4], 1)
        for side, all_boxes, chosen in (("a", moved, na), ("b", found, nb)):
            for i in chosen:
                b, p = all_boxes[i], partner.get((side, i))
                add("matched size=" + size(b), p is not None, 1)
                add(f"matched class={b[5]}", p is not None and p[5] == b[5], 1)
        for step in range(1, 10):
            f, x, y = compare(moved, counts, found, shown, step / 10)
            add(f"matched confidence={step / 10}", 2 * len(f), len(x) + len(y))
    return {"transform": kind[0], "value": kind[1], "samples": samples, "scores": ratio(sums)}


def maps(quarters):
    """Class maps of a square under quarter turns, by np.rot90."""
    n, k = 7, 4
    clean = rng.integers(0, k, (5, n, n))
    turned = np.rot90(clean, quarters, (1, 2))
    found = np.where(rng.uniform(size=turned.shape) < 0.3, rng.integers(0, k, turned.shape), turned)
    ious = []
    scores = {"pixel-agreement": float((found == turned).mean())}
    for c in range(k):
        both, either = ((found == c) & (turned == c)).sum(), ((found == c) | (turned == c)).sum()
        ious.append(both / either)
        scores[f"miou class={c}"] = float(ious[-1])
    scores["miou"] = float(np.mean(ious))
    return {"quarters": quarters, "clean": clean.tolist(), "found": found.tolist(), "scores": scores}


print(json.dumps({
    "height": H, "width": W,
    "boxes": [boxes(k) for k in [("rotate", 30), ("rotate", 180), ("flip", 0), ("scale", 1.5), ("scale", 0.6), ("translate", [0.3, -0.2])]],
    "maps": [maps(q) for q in (1, 2, 3)],
}))
