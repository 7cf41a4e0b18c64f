"""A function as preprocess=: it is applied to the images in this process, before the study."""

from __future__ import annotations

import csv
import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from . import _cache, _data, _files
from ._command import Error, call, first_line, require

# Calls for the first image. A function that draws random numbers, such as whether to flip it, returns others.
_CALLS = 12


class Applied:
    """A function of an image, and what the values that it returns mean.

    It gets an image as the data have it, files as images of PIL, and returns what the model takes.
    What it returns for black and for white are the values 0 and 1 of the images of the study, which
    transformations change, and keys of the study bring them back: the model gets, for an image that
    nothing has changed, what the function returned.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = getattr(function, "__name__", type(function).__name__)
        adapt = {"albumentations": _albumentations, "kornia": _kornia}.get(type(function).__module__.partition(".")[0])
        self._call = adapt(function) if adapt is not None else function

    def prepare(self, data: Any, labels: Any, limit: int | None) -> tuple[_data.Prepared, dict[str, Any]]:
        """Return data to which the function was applied, as an entry of a study, and the keys of preprocess."""
        numpy = require("numpy", "arrays and data sets need")
        items, names = _items(numpy, data, labels, limit)
        head, items = _files.first(items)
        if head is None:
            raise Error("the data set is empty")
        if _files.is_recording(head[0]) or len(getattr(head[0], "shape", (1, 1))) == 1:
            raise Error("a function as preprocess= is applied to images, not to recordings: give what it returns for them as {'arrays': ..., 'layout': 'raw'}")
        first = self._apply(numpy, head[0], 0)
        self._check_random(numpy, head[0], first)
        low, high, bgr, known = self._bounds(numpy, head[0], first)
        targets: list[Any] = []
        least, greatest = (0.0, 1.0) if known else (numpy.inf, -numpy.inf)
        with _cache.temporary("data") as folder:
            with open(folder / "images", "wb") as file:
                for i, (image, label) in enumerate(items):
                    x = self._apply(numpy, image, i)
                    if x.shape != first.shape:
                        raise self._error(f"returns the shape {x.shape} for image {i} and {first.shape} for the first: it must bring them to one size")
                    x = ((x - low) / (high - low)).astype("<f4")
                    least, greatest = min(least, float(x.min())), max(greatest, float(x.max()))
                    file.write(numpy.ascontiguousarray(x[::-1] if bgr else x).data)
                    targets.append(label)
            if not numpy.array_equal(self._apply(numpy, head[0], 0), first):
                raise self._error("returns something else for the first image after the others: it must keep nothing between calls")
            if least == greatest:
                raise self._error(f"returns the value {least:g} for each pixel of each image")
            self._warn(least, greatest, known)
            x = numpy.memmap(folder / "images", "<f4", "r", shape=(len(targets), *first.shape))
            y = None if all(t is None for t in targets) else _data._whole_labels(numpy, targets, len(targets))
            step = max(1, (16 << 20) // first.nbytes)
            chunks = (((x[i:i + step] - least) / (greatest - least), None if y is None else y[i:i + step]) for i in range(0, len(x), step))
            prepared = _data._write(numpy, None, chunks)._replace(framed=True, names=names)
        scale = 1 / ((high - low) * (greatest - least))
        keys: dict[str, Any] = {"mean": (-(low + (high - low) * least) * scale).reshape(-1).tolist(), "std": scale.reshape(-1).tolist()}
        return prepared, {**keys, "order": "bgr"} if bgr else keys

    def _error(self, text: str) -> Error:
        return Error(f"preprocess: {self._name} {text}")

    def _apply(self, numpy: Any, image: Any, i: int) -> Any:
        """Return what the function makes of an image: C x H x W of float64."""
        try:
            out = self._call(image)
        except Exception as e:
            shape = f" of {image.dtype} and the shape {tuple(image.shape)}" if hasattr(image, "dtype") else ""
            raise self._error(f"fails for image {i}, {type(image).__module__}.{type(image).__name__}{shape}: {type(e).__name__}: {first_line(e)}") from None
        if isinstance(out, Mapping):  # of a processor of transformers
            name = _files.column(out, _files.INPUTS)
            out = out[name] if name is not None else out
        if isinstance(out, (list, tuple)) and len(out) == 1:
            out = out[0]
        if not hasattr(out, "shape"):
            raise self._error(f"returns {type(out).__name__}: it must return the tensor or the array that the model takes for an image")
        out = _data.array(numpy, out, f"what {self._name} returns").astype(numpy.float64)
        x = out[0] if out.ndim == 4 and out.shape[0] == 1 else out[None] if out.ndim == 2 else out
        if x.ndim != 3 or x.shape[0] not in (1, 3) and x.shape[2] not in (1, 3) or x.size == 0:
            raise self._error(f"returns the shape {out.shape} for an image: it must have 1 or 3 channels, first or last")
        if not numpy.isfinite(x).all():
            raise self._error(f"returns NaN or infinity for image {i}")
        return x if x.shape[0] in (1, 3) else x.transpose(2, 0, 1)

    def _check_random(self, numpy: Any, image: Any, first: Any) -> None:
        for _ in range(_CALLS):
            x = self._apply(numpy, image, 0)
            if x.shape != first.shape or not numpy.array_equal(x, first):
                raise self._error("draws random numbers: give the preprocessing of an evaluation")

    def _bounds(self, numpy: Any, image: Any, first: Any) -> tuple[Any, Any, bool, bool]:
        """Return what the function returns for black and for white in each channel, whether channels are reversed, and whether this is known."""
        def middle(*colour: int) -> Any:
            x = self._apply(numpy, _filled(numpy, image, colour), 0)
            return x[:, x.shape[1] // 2, x.shape[2] // 2]

        unknown = numpy.zeros((len(first), 1, 1)), numpy.ones((len(first), 1, 1)), False, False
        try:
            low, high = middle(0, 0, 0), middle(1, 1, 1)
        except Error:  # one that divides by the deviation of an image without any
            return unknown
        if (numpy.abs(high - low) < 1e-6 * (1 + numpy.abs(low))).any():
            return unknown
        bgr = len(first) == 3 and numpy.allclose((middle(1, 0, 0) - low) / (high - low), (0, 0, 1), atol=0.01)
        return low[:, None, None], high[:, None, None], bgr, True

    def _warn(self, least: float, greatest: float, known: bool) -> None:
        if not known:
            warnings.warn(f"noether: preprocess: {self._name} returns the same for black and white images, as if each were standardised: "
                          f"its least and its greatest value, {least:.4g} and {greatest:.4g}, are black and white for transformations", stacklevel=6)
        elif least < -1e-3 or greatest > 1 + 1e-3:
            warnings.warn(f"noether: preprocess: {self._name} returns values from {least:.4g} to {greatest:.4g}, if those of a black and a white image are 0 and 1, "
                          "as bicubic resizing of floats and equalisation do: the least and the greatest are black and white for transformations", stacklevel=6)


def _albumentations(transform: Any) -> Callable[[Any], Any]:
    import numpy

    return lambda image: transform(image=numpy.asarray(image))["image"]


def _kornia(transform: Any) -> Callable[[Any], Any]:
    import numpy
    import torch

    def apply(image: Any) -> Any:
        if not hasattr(image, "detach"):
            image = torch.from_numpy(numpy.array(image)).permute(2, 0, 1) / 255
        with torch.no_grad():
            return transform(image[None])[0]

    return apply


def _filled(numpy: Any, image: Any, colour: tuple[int, ...]) -> Any:
    """Return an image of the kind, the size and the type of another, of one colour, with 1 for white."""
    if _files.is_picture(image):
        if image.mode not in ("L", "P", "RGB", "RGBA"):
            raise Error(f"black and white of images in mode {image.mode} are not known")
        return require("PIL.Image", "images need").new("RGB", image.size, tuple(255 * c for c in colour)).convert(image.mode)
    values = numpy.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
    white = 255 if values.dtype == numpy.uint8 else 1
    filled = numpy.zeros_like(values)
    if values.ndim == 3 and values.shape[0] == 3:
        filled[...] = numpy.reshape(colour, (3, 1, 1)) * white
    else:
        filled[...] = numpy.multiply(colour, white) if values.ndim == 3 and values.shape[2] == 3 else colour[1] * white
    if not hasattr(image, "detach"):
        return filled
    import torch

    return torch.from_numpy(filled).to(image)


def _items(numpy: Any, data: Any, labels: Any, limit: int | None) -> tuple[Iterator[tuple[Any, Any]], list[str] | None]:
    """Return images as the data have them, with their labels, and the names of the classes if they are known."""
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise Error(f"limit is {limit!r}: it must be a whole number from 1, or None")
    if isinstance(data, (str, os.PathLike)) and labels is None and Path(data).is_dir():
        found = call(["image-files", os.fspath(data)])
        for note in found["notes"] or ():
            warnings.warn(f"noether: {note}", stacklevel=6)
        labels = [None if f["label"] < 0 else f["label"] for f in found["files"]]
        return _of_files([Path(data, f["file"]) for f in found["files"]], labels, limit), found["classes"]
    if hasattr(data, "columns") and hasattr(data, "itertuples") and labels is None:
        keys = next(v for v in _files.table(data, None)[0].values() if isinstance(v, Mapping))
        with open(keys["labels"], newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        texts = [row.get("label") or None for row in rows]
        names = sorted({t for t in texts if t is not None})
        numbers = all(t.lstrip("-").isdigit() for t in names)
        labels = [None if t is None else int(t) if numbers else names.index(t) for t in texts]
        return _of_files([Path(keys["folder"], row["file"]) for row in rows], labels, limit), None if numbers else names
    if isinstance(data, tuple) and len(data) == 2 and labels is None and not isinstance(data[1], int):
        data, labels = data
    if isinstance(data, (str, os.PathLike, Mapping)) or isinstance(data, list) and data and isinstance(data[0], Mapping) and not _files.is_sample(data[0]):
        raise Error("a function as preprocess= is applied to images that Python has: a folder of images, a DataFrame of paths, arrays, a list or a Dataset")
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise Error(f"data must be a folder, arrays, a Dataset or a DataLoader, not {type(data).__name__}")
    if labels is not None:
        data = list(zip(data, _data._labels(numpy, labels, len(data))))
    batched = hasattr(data, "batch_size") and hasattr(data, "dataset") and data.batch_size is not None
    pairs: Iterator[tuple[Any, Any]] = map(_files.pair, _data._items(data, None if batched else limit)) if not _data._is_array(data) else ((x, None) for x in data)
    if batched:
        pairs = ((x, y) for xs, ys in pairs for x, y in zip(xs, [None] * len(xs) if ys is None else ys))
    return islice(pairs, limit), _files.class_names(data)


def _of_files(paths: list[Path], labels: list[int | None], limit: int | None) -> Iterator[tuple[Any, Any]]:
    """Yield images of PIL with their labels, as many as limit says of them in a random order."""
    image = require("PIL.Image", "images of files need")
    files = list(zip(paths, labels))
    if limit is not None:
        files = random.Random(1).sample(files, min(limit, len(files)))  # those of a folder are sorted by class
    for path, label in files:
        try:
            yield image.open(path).convert("RGB"), label
        except Exception as e:
            raise Error(f"{path} cannot be read: {first_line(e)}") from None
