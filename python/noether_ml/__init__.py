"""Measure how invariant, equivariant and informative the layers of a neural network are.

A thin client of the command noether.

    import noether_ml
    run = noether_ml.measure(model, data, layers=["layer?"])  # layer1, layer2, ...
    run.scores
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _cache, _data, _models, _preprocess
from ._command import Error, Progress, call, flags, query, require, shadow
from ._extract import activations
from ._measure import measure
from ._run import Run, table

__all__ = ["Error", "Inversion", "Run", "activations", "compare", "demo", "grad", "inspect", "invert", "load", "measure", "train"]

if _warning := shadow():
    warnings.warn(f"noether: {_warning}", stacklevel=2)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return query("version")["noether"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(folder: str | os.PathLike[str]) -> Run:
    """Return the run in a folder."""
    return Run(folder)


def demo(folder: str | os.PathLike[str] = "runs/demo") -> Run:
    """Measure three small trained networks, which come with the program, and return the run."""
    call(["demo", f"--out={os.fspath(folder)}", "--json"])
    return Run(folder)


def compare(
    x: Any,
    y: Any,
    *,
    measure: str | Sequence[str] | None = None,
    pool: str | None = None,
    variance: float | None = None,
    samples: int | None = None,
    memory: str | None = None,
    seed: int | None = None,
) -> Any:
    """Compare two arrays of activations: row i of both is for input i.

    x and y are arrays, or paths of .npy files. Returns a row for each statistic: a pandas DataFrame,
    or a list of dicts without pandas. The options are those of "noether compare"; measure names
    statistics.
    """
    with _cache.temporary("data") as folder:
        paths = [_activations(a, folder / f"{n}.npy") for n, a in (("x", x), ("y", y))]
        options = flags(measure=measure, pool=pool, variance=variance, samples=samples, memory=memory, seed=seed)
        try:
            rows = call(["compare", *paths, "--json", *options])
        except Error as e:
            raise Error(str(e).replace(str(folder) + os.sep, "")) from None
    return table([{k: r.get(k) for k in ("measure", "statistic", "value", "low", "high", "null", "n", "warning")} for r in rows])


def _activations(a: Any, path: Path) -> str:
    """Write an array of activations, and return its path."""
    if isinstance(a, (str, os.PathLike)):
        return os.fspath(a)
    numpy = require("numpy", "arrays need")
    numpy.save(path, numpy.ascontiguousarray(_data.array(numpy, a, path.stem)))
    return str(path)


def inspect(model: Any, *, layers: str | Sequence[str] | None = None, size: int | None = None, input: Any = None) -> dict[str, Any]:
    """Return a model's inputs, outputs and layers, as "noether inspect --json" prints them.

    size is the side of images in pixels for a model that leaves it open. input is an example batch
    or the shape of one sample, for a PyTorch module.
    """
    return query("inspect", _models.prepare(model, input=input).path, layers=layers, size=size)


def grad(
    model: Any,
    output: str | os.PathLike[str],
    *,
    of: str | None = None,
    by: str | Sequence[str] | None = None,
    cotangent: str | None = None,
    sum: bool = False,
    jvp: bool = False,
    input: Any = None,
) -> dict[str, Any]:
    """Write an ONNX model that also computes gradients. Return what "noether grad --json" prints.

    The gradients are those of the tensor named of with respect to the tensors named by. cotangent
    is the name of an input that weights the elements of the former; with sum, all have the weight
    1. jvp adds the derivative along a direction instead of gradients.
    """
    path = _models.prepare(model, input=input).path
    return query("grad", path, out=os.fspath(output), of=of, by=by, cotangent=cotangent, sum=sum, jvp=jvp)


class Inversion:
    """A folder of inverted images that "noether invert" has written."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json: settings, and the distances of each image."""
        found: dict[str, Any] = json.loads((self.folder / "summary.json").read_text("utf-8"))
        return found

    @property
    def x(self) -> Any:
        """The original images, n x c x h x w, with values between 0 and 1."""
        return self._array("x")

    @property
    def inverted(self) -> Any:
        """The images that were found: inverted[i] for x[i]."""
        return self._array("inverted")

    @property
    def contact(self) -> Path:
        """The contact sheet, a PNG file."""
        return self.folder / "contact.png"

    def _array(self, name: str) -> Any:
        import numpy

        return numpy.load(self.folder / f"{name}.npy")

    def _repr_png_(self) -> bytes:
        return self.contact.read_bytes()


def invert(
    model: Any,
    data: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    layer: str | None = None,
    preprocess: Any = None,
    against: Any = None,
    input: Any = None,
    quiet: bool = False,
    **options: Any,
) -> Inversion:
    """Find images that a layer maps to the same representation as the images at a path.

    against is a second model, in which the representations of the two images should differ. options
    are the flags of "noether invert", such as limit, start, optimiser, steps, seed.
    """
    prepared = _models.prepare(model, _preprocess.keys(preprocess), input)
    other = _models.prepare(against, input=input).path if against is not None else None
    steps = prepared.preprocess
    if isinstance(steps, Mapping):
        steps = json.dumps(steps, default=_preprocess._plain)
    progress = Progress(quiet)
    call(["invert", prepared.path, f"--data={os.fspath(data)}", f"--out={os.fspath(folder)}", "--json",
          *flags(layer=layer, preprocess=steps, against=other, **options)], progress)
    return Inversion(folder)


def train(recipe: str | os.PathLike[str], folder: str | os.PathLike[str], *, checkpoints: int | None = None,
          quiet: bool = False, **variables: Any) -> Any:
    """Train a network as described in a training file, and return the summary.

    The model is FOLDER/model.onnx. A file with the key vary gives a list of summaries, and a model in
    a folder for each. With checkpoints=n, the networks of the first epoch and of every n-th are
    also saved. variables are the values of ${NAME} in the file.
    """
    values = [f"--var={name}={value}" for name, value in variables.items()]
    return call(["train", os.fspath(recipe), f"--out={os.fspath(folder)}", "--json", *flags(checkpoints=checkpoints), *values], Progress(quiet))
