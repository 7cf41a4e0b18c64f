"""Golden values of COCO's average precision, on made-up boxes, by pycocotools.

Run in this folder: python3 coco.py > coco.json

The set has groups (iscrowd), objects of all sizes, objects that extend beyond the image, boxes that are
found for several classes, equal scores, an image without labels and boxes, images with one of the two,
a class without objects, and more than 100 boxes of a class in an image.
A second implementation, below, follows the definition in pycocotools' cocoeval.py (evaluateImg,
accumulate, summarize with the default parameters for boxes) in NumPy, and must agree.
"""
import json
import sys

import numpy as np

rng = np.random.default_rng(11)
H, W, N, CLASSES = 200, 300, 42, 4
EMPTY, CROWDED = 40, 41  # images without boxes, and with 130 of a class
THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
RANGES = {"all": (0, 1e10), "small": (0, 32**2), "medium": (32**2, 96**2), "large": (96**2, 1e10)}


def iou(d, g, crowd):
    w = min(d[0] + d[2], g[0] + g[2]) - max(d[0], g[0])
    h = min(d[1] + d[3], g[1] + g[3]) - max(d[1], g[1])
    if w <= 0 or h <= 0:
        return 0.0
    return w * h / (d[2] * d[3] if crowd else d[2] * d[3] + g[2] * g[3] - w * h)


def evaluate(found, labelled, limits):
    """One image and class: for each threshold, what each box matches; and which objects are ignored."""
    objects = sorted(labelled, key=lambda g: bool(g["iscrowd"]) or not limits[0] <= g["area"] <= limits[1])
    ignored = np.array([bool(g["iscrowd"]) or not limits[0] <= g["area"] <= limits[1] for g in objects], bool)
    boxes = sorted(found, key=lambda d: -d["score"])[:100]
    matched = np.zeros((len(THRESHOLDS), len(boxes)), bool)
    skipped = np.zeros((len(THRESHOLDS), len(boxes)), bool)
    for t, threshold in enumerate(THRESHOLDS):
        taken = [False] * len(objects)
        for i, d in enumerate(boxes):
            best, at_least = -1, min(threshold, 1 - 1e-10)
            for j, g in enumerate(objects):
                if taken[j] and not g["iscrowd"]:
                    continue
                if best > -1 and not ignored[best] and ignored[j]:
                    break
                v = iou(d["bbox"], g["bbox"], g["iscrowd"])
                if v < at_least:
                    continue
                best, at_least = j, v
            if best == -1:
                area = d["bbox"][2] * d["bbox"][3]
                skipped[t, i] = not limits[0] <= area <= limits[1]
                continue
            taken[best] = True
            matched[t, i] = True
            skipped[t, i] = ignored[best]
    return [d["score"] for d in boxes], matched, skipped, int((~ignored).sum())


def precisions(found, labelled, category, limits):
    """The precision of a class at each threshold and recall, or None without objects."""
    parts = []
    for image in range(N):
        d = [b for b in found if b["image_id"] == image and b["category_id"] == category]
        g = [b for b in labelled if b["image_id"] == image and b["category_id"] == category]
        if d or g:
            parts.append(evaluate(d, g, limits))
    positives = sum(p[3] for p in parts)
    if positives == 0:
        return None
    order = np.argsort(-np.concatenate([p[0] for p in parts]), kind="mergesort")
    matched = np.concatenate([p[1] for p in parts], 1)[:, order]
    skipped = np.concatenate([p[2] for p in parts], 1)[:, order]
    right = np.cumsum(matched & ~skipped, 1).astype(float)
    wrong = np.cumsum(~matched & ~skipped, 1).astype(float)
    out = np.zeros((len(THRESHOLDS), len(RECALLS)))
    for t in range(len(THRESHOLDS)):
        recall = right[t] / positives
        precision = right[t] / (right[t] + wrong[t] + np.spacing(1))
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        at = np.searchsorted(recall, RECALLS, side="left")
        out[t, at < len(precision)] = precision[at[at < len(precision)]]
    return out


def reference(found, labelled):
    table = {name: [precisions(found, labelled, k + 1, limits) for k in range(CLASSES)] for name, limits in RANGES.items()}
    mean = lambda rows: float(np.mean(np.concatenate([np.ravel(r) for r in rows])))
    have = lambda name: [p for p in table[name] if p is not None]
    out = {"": mean(have("all")), "iou=0.50": mean([p[0] for p in have("all")]), "iou=0.75": mean([p[5] for p in have("all")])}
    for name in ("small", "medium", "large"):
        out["size=" + name] = mean(have(name))
    for k, p in enumerate(table["all"]):
        if p is not None:
            out[f"class={k}"] = mean([p])
    return out


def library(found, labelled):
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    sys.stdout, printed = sys.stderr, sys.stdout  # it prints
    truth = COCO()
    truth.dataset = {"images": [{"id": i, "height": H, "width": W} for i in range(N)], "annotations": labelled,
                     "categories": [{"id": k + 1, "name": str(k)} for k in range(CLASSES)]}
    truth.createIndex()
    e = COCOeval(truth, truth.loadRes(found), "bbox")
    e.evaluate()
    e.accumulate()
    e.summarize()
    sys.stdout = printed
    out = dict(zip(["", "iou=0.50", "iou=0.75", "size=small", "size=medium", "size=large"], map(float, e.stats[:6])))
    for k in range(CLASSES):
        p = e.eval["precision"][:, :, k, 0, 2]
        if (p > -1).any():
            out[f"class={k}"] = float(p[p > -1].mean())
    return out


def box(shape):
    side = shape * rng.uniform(0.5, 1, 2)
    at = rng.uniform(0, 1, 2) * ([W, H] - side)
    return [float(v) for v in np.round(np.concatenate([at, side]), 2)]


labelled, found = [], []
for image in range(EMPTY):
    for _ in range(rng.integers(0, 6)):
        b = box(rng.choice([30, 70, 160]))
        if rng.uniform() < 0.25:  # a label that extends beyond the image
            axis = int(rng.integers(0, 2))
            b[axis] = float(np.round([-0.6, [W, H][axis] / b[2 + axis] - 0.3][int(rng.integers(0, 2))] * b[2 + axis], 2))
        k = int(rng.integers(1, CLASSES))  # the last class has no objects
        crowd = int(rng.uniform() < 0.1)
        labelled.append({"id": len(labelled) + 1, "image_id": image, "category_id": k, "bbox": b,
                         "area": float(np.round(b[2] * b[3] * rng.uniform(0.6, 1), 1)), "iscrowd": crowd})
        for _ in range(rng.integers(0, 4)):
            jitter = np.array(b) + rng.normal(0, 0.06, 4) * [b[2], b[3], b[2], b[3]]
            jitter[2:] = np.maximum(jitter[2:], 1)
            found.append({"image_id": image, "category_id": k if rng.uniform() < 0.8 else int(rng.integers(1, CLASSES + 1)),
                          "bbox": [float(v) for v in np.round(jitter, 2)], "score": float(np.round(rng.uniform(0.05, 1), 2))})
            if rng.uniform() < 0.4:  # the same box for another class
                found.append({**found[-1], "category_id": found[-1]["category_id"] % CLASSES + 1, "score": float(np.round(rng.uniform(0.05, 0.5), 2))})
    for _ in range(rng.integers(0, 3)):
        found.append({"image_id": image, "category_id": int(rng.integers(1, CLASSES + 1)), "bbox": box(90),
                      "score": float(np.round(rng.uniform(0.05, 0.8), 2))})
for i in range(130):  # the objects are found by the boxes of the lowest scores, of which the last 30 are left out
    b = box(30)
    if i >= 90 and i % 4 == 0:
        labelled.append({"id": len(labelled) + 1, "image_id": CROWDED, "category_id": 1, "bbox": b, "area": b[2] * b[3], "iscrowd": 0})
    found.append({"image_id": CROWDED, "category_id": 1, "bbox": b, "score": float(np.round(0.99 - 0.005 * i, 3))})
in_image = lambda boxes: {b["image_id"] for b in boxes}
scores = [b["score"] for b in found]
assert EMPTY not in in_image(found) | in_image(labelled) and in_image(found) ^ in_image(labelled) and len(set(scores)) < len(scores)
values, second = library(found, labelled), reference(found, labelled)
assert values.keys() == second.keys() and all(abs(second[k] - v) < 1e-9 for k, v in values.items()), (values, second)
print(json.dumps({"source": "pycocotools", "height": H, "width": W, "images": N, "classes": CLASSES, "labelled": labelled, "found": found, "map": values}))
