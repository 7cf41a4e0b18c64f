"""Vectors and sums that take the place of whole activations in an answer: see engine/oip/reductions.go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAST_SQUARES = 1e-22  # as measure.LeastSquares


def pooled(x: Any, pool: Mapping[str, Any]) -> Any:
    """Return the activations x of n samples as n x p: the positions are pooled, as internal/pooling does."""
    axes = [1 + axis for axis in pool["axes"]]
    x = x.float()
    if pool["kind"] == "class":
        x = x.select(axes[0], 0)
    elif pool["kind"] == "max":
        x = x.amax(axes)
    elif axes:
        if pool["from"] > 0:
            x = x.narrow(axes[0], pool["from"], x.shape[axes[0]] - pool["from"])
        x = x.mean(axes)
    return x.flatten(1)


def reduced(reduction: Mapping[str, Any], clean: Any, moved: Any, partners: Any) -> Any:
    """Return the sums of a reduction (measure.Reduction) for activations of n samples, clean and transformed, as n x width.

    partners has the index of another sample for each.
    """
    import torch

    x, y = clean.float().flatten(1), moved.float().flatten(1)
    lengths = [z.square().sum(1, keepdim=True).clamp_min(LEAST_SQUARES).sqrt() for z in (x, y)]
    columns = []
    for s in reduction["sums"]:
        a, b = (x / lengths[0], y / lengths[1]) if s["directions"] else (x, y)
        if s["of"] == "shuffled":
            a = a[partners]
        value = {"clean": a, "transformed": b}.get(s["of"])
        value = a - b if value is None else value
        columns.append((value.abs() if s["absolute"] else value.square()).sum(1, keepdim=True))
    if "pool" in reduction:
        columns += [pooled(z, reduction["pool"]) for z in (clean, moved)]
    return torch.cat(columns, 1)
