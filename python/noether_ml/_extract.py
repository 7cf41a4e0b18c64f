"""Activations of layers as arrays, written by the command noether extract."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _cache, _measure
from ._command import Error, Progress, call, flags, require

Activations = dict[str, dict[str, Any]]


def activations(
    model: Any,
    data: Any,
    layers: str | Sequence[str] | None = None,
    *,
    transforms: Sequence[Mapping[str, Any] | Callable[..., Any]] = (),
    pool: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    preprocess: Any = None,
    labels: Any = None,
    limit: int | None = None,
    rate: int | None = None,
    input: Any = None,
    seed: int = 1,
    trials: int = 1,
    engine: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    inputs: Mapping[str, Any] | None = None,
    tokens: Mapping[str, Any] | None = None,
    axes: Mapping[str, str] | None = None,
    layout: str | None = None,
) -> Activations:
    """Return the activations of a model's layers on data, and on the transformed data.

    The result has a dict for each view: "clean", and for each transformation, value and trial, such
    as "rotate/90". Each has an array for each layer, with a row for each sample that could be read.

    pool: "mean", "max", "class" (the class token) or "flatten" makes one vector of the positions or
        tokens of a sample.
    folder: keeps the files; the arrays are then mapped from them, so that they need no memory. It
        must not exist.

    The other parameters are those of measure.
    """
    keys = {"axes": axes, "inputs": inputs, "layout": layout, "tokens": tokens}
    if isinstance(model, Mapping):
        raise Error("activations are those of one model")
    with _measure.prepared(model, data, keys=keys, study={}, transforms=transforms, measures=["distance"], layers=layers, preprocess=preprocess, labels=labels,
                           limit=limit, rate=rate, input=input, seed=seed, trials=trials, engine=engine) as (spec, environment, _), \
            _cache.temporary("runs") as temporary:
        path = temporary / "study.yaml"
        path.write_text(_measure.written(spec), "utf-8")
        return extract(path, folder, quiet, environment, pool=pool, device=device, threads=threads)[0]


def extract(study: Path, folder: str | os.PathLike[str] | None, quiet: bool, environment: Mapping[str, str] | None = None, **options: Any) -> list[Activations]:
    """Run noether extract, and return the activations of each model. options are flags."""
    numpy = require("numpy", "arrays need")
    with _cache.temporary("data") as temporary:
        out = Path(folder) if folder is not None else temporary / "activations"
        progress = Progress(quiet)
        layers = options.pop("layers", None)
        chosen = [f"--layers={layer}" for layer in ([layers] if isinstance(layers, str) else layers or [])]
        try:
            call(["extract", str(study), f"--out={out}", "--format=npy", "--log=json", *chosen, *flags(**options)], progress, silent=True, environment=environment)
        except Error as e:
            raise Error(str(e).replace(f"{study}: ", "").replace(str(study), "the study")) from None
        finally:
            progress.close()
        found = []
        for listed in sorted(out.rglob("activations.json")):
            views: Activations = {}
            for entry in json.loads(listed.read_text("utf-8")):
                array = numpy.load(listed.parent / entry["file"], mmap_mode=None if folder is None else "r")
                views.setdefault(entry["view"], {})[entry["layer"]] = array
            found.append(views)
        return found
