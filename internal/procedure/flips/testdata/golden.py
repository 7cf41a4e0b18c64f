"""Writes golden.json: the flip rates and top-5 distances of random class scores.

The distance is computed as Hendrycks and Dietterich 2019 define it, from the permutation of all
classes: the number of places j - 1 from 1 to 5 between a class's rank in one frame and in the
other, summed over the first five classes. Run with numpy.
"""

import json
import pathlib

import numpy as np

FRAMES, CLASSES = 6, 12


def ranks(scores):
    """The rank of each class, from 1; equal scores in the order of the classes."""
    order = np.argsort(-scores, kind="stable")
    out = np.empty(len(scores), int)
    out[order] = np.arange(1, len(scores) + 1)
    return out


def distance(before, after):
    by_rank = np.argsort(before)  # the class of each rank in the earlier frame
    total = 0
    for i in range(1, 6):
        sigma = after[by_rank[i - 1]]
        for j in range(min(i, sigma) + 1, max(i, sigma) + 1):
            total += 1 <= j - 1 <= 5
    return total


rng = np.random.default_rng(5)
videos = []
for _ in range(4):
    scores = np.cumsum(rng.normal(size=(FRAMES, CLASSES)), axis=0).round(1).astype(np.float32)
    scores[2, 3] = scores[2, 7]  # a tie
    r = [ranks(s) for s in scores]
    first = [s.argmax() for s in scores]
    values = []
    for against in ("before", "first"):
        pairs = [(j - 1 if against == "before" else 0, j) for j in range(1, FRAMES)]
        values += [
            float(np.mean([first[i] != first[j] for i, j in pairs])),
            float(np.mean([distance(r[i], r[j]) for i, j in pairs])),
        ]
    videos.append({"scores": scores.tolist(), "values": values})
(pathlib.Path(__file__).parent / "golden.json").write_text(json.dumps(videos) + "\n")
