"""Conversion of data of any supported form to entries of a study: items of its list data."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import _cache, _files
from ._command import Error, first_line, require

# Mean and standard deviation of each channel, by the name of a preset of preprocessing.
PRESETS: dict[str, tuple[list[float], list[float]]] = {
    "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "cifar10": ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    "clip": ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]),
}

HEADER = 128  # bytes of the header of an .npy file


class Prepared(NamedTuple):
    """Data as an entry of a study."""

    entry: dict[str, Any]
    shape: tuple[int, ...] | None = None  # of one sample, channels first, if known
    # Whether the samples already have the size that the model takes. Floats count as framed, since
    # they usually come from a transform of the data set that resizes and crops.
    framed: bool = False
    labelled: bool = False
    names: list[str] | None = None  # of the classes, in the order of the numbers that are their labels

    @property
    def sound(self) -> bool:
        return any(kind in self.entry for kind in ("sound", "librispeech", "tones"))

    @property
    def raw(self) -> bool:
        """Whether the samples are arrays that the model takes as they are, which no transformation of a study applies to."""
        arrays = self.entry.get("arrays")
        return isinstance(arrays, Mapping) and arrays.get("layout") == "raw"


def prepare(data: Any, labels: Any = None, limit: int | None = None, preprocess: Any = None, rate: int | None = None) -> list[Prepared]:
    """Return data as entries of a study. Arrays, Datasets and DataLoaders are written to the cache.

    limit is the largest number of samples, preprocess is that of the model, and rate the sample rate of
    recordings that do not have their own.
    """
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise Error(f"limit is {limit!r}: it must be a whole number from 1, or None")
    if isinstance(data, Mapping) and data and all(hasattr(v, "features") for v in data.values()):
        raise Error(f"the data set has the splits {', '.join(map(str, data))}: give one of them, such as data[{next(iter(data))!r}]")
    if isinstance(data, Mapping) or isinstance(data, list) and data and all(isinstance(d, Mapping) and not _files.is_sample(d) for d in data):
        entries = [data] if isinstance(data, Mapping) else data
        if labels is not None:
            raise Error("labels are for arrays only: an entry of a study has its own labels")
        return [Prepared(_entry(_with_arrays(e), limit)) for e in entries]
    if isinstance(data, (str, os.PathLike)):
        if labels is not None:
            raise Error("labels are for arrays only: a folder has its labels in the names of its folders, or in a CSV; see the reference of data")
        return [Prepared(_entry_of_path(Path(data), limit))]
    if hasattr(data, "columns") and hasattr(data, "itertuples"):
        if labels is not None:
            raise Error("labels are for arrays only: a DataFrame has its own, in the column label")
        entry, labelled = _files.table(data, limit)
        return [Prepared(entry, labelled=labelled)]
    if isinstance(data, tuple) and len(data) == 2 and labels is None and not isinstance(data[1], int):
        data, labels = data
    numpy = require("numpy", "arrays and data sets need")
    if _is_array(data) and data.ndim == 3 and labels is None and (data.shape[2] in (1, 3, 4) or data.shape[0] == 3):
        raise Error(f"the array has the shape {tuple(data.shape)}: if it is one image, give x[None]; if it is {data.shape[0]} grey images, give x[:, None]")
    if _is_array(data) and getattr(data, "ndim", 0) in (2, 5):
        return [_recordings(numpy, data, labels, limit, rate) if data.ndim == 2 else _clips(numpy, data, labels, limit)]
    if _is_array(data):
        return [_write(numpy, preprocess, _slices(numpy, data, labels, limit))]
    if isinstance(data, list) and labels is not None and len(labels) == len(data):
        data, labels = list(zip(data, labels)), None
    if labels is not None:
        raise Error("labels are for arrays and lists only: a Dataset or DataLoader returns its own, as (image, label)")
    if hasattr(data, "__iter__") or hasattr(data, "__getitem__"):
        names = _files.class_names(data)
        batched = hasattr(data, "batch_size") and hasattr(data, "dataset") and data.batch_size is not None
        head, items = _files.first(_items(_files.undecoded(data), limit))
        x = None if head is None else _files.pair(head)[0]
        if not batched and (_files.is_picture(x) or _files.is_recording(x) or len(getattr(x, "shape", ())) == 1):
            entry, labelled, shape = _files.write(numpy, items, limit, rate)
            return [Prepared(entry, shape, labelled=labelled, names=names)]
        return [_write(numpy, preprocess, _chunks(numpy, items, limit, batched))._replace(names=names)]
    raise Error(f"data must be a folder, an entry of a study, arrays, a Dataset or a DataLoader, not {type(data).__name__}")


def _with_arrays(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry of a study in which arrays are replaced by the files that they are written to."""
    if not any(hasattr(v, "__array__") or isinstance(v, Mapping) for v in entry.values()):
        return entry
    numpy = require("numpy", "arrays need")
    with _cache.temporary("data") as folder:
        out = _files.arrays(numpy, entry, folder, "data")
        if not any(folder.iterdir()):
            return entry
        at = _cache.keep("data", folder)

        def moved(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {k: moved(v) for k, v in value.items()}
            return str(at / value.name) if isinstance(value, Path) and value.parent == folder else value

        found: Mapping[str, Any] = moved(out)
        if _is_array(entry.get("arrays")):  # {"arrays": x, "layout": "raw"}
            found = {k: v for k, v in found.items() if k not in ("layout", "labels")} | {"arrays": {
                "inputs": found["arrays"], **{k: found[k] for k in ("layout", "labels") if k in found}}}
        return found


def _recordings(numpy: Any, data: Any, labels: Any, limit: int | None, rate: int | None) -> Prepared:
    """Write recordings of one length, the rows of an array."""
    x, y = array(numpy, data)[:limit], None
    if rate is None:
        raise Error(f"the array has the shape {tuple(data.shape)}: waveforms (N x T) need their sample rate in Hz, rate=16000 for instance; "
                    "images are N x H x W x C of uint8, N x C x H x W of floats, or N x H x W")
    if labels is not None:
        y = _labels(numpy, labels, len(data))[:limit]
    entry, labelled, _ = _files.write(numpy, x if y is None else zip(x, y), limit, rate)
    return Prepared(entry, labelled=labelled)


def _clips(numpy: Any, data: Any, labels: Any, limit: int | None) -> Prepared:
    """Write videos, the rows of an array that the model takes as it is."""
    x = array(numpy, data)[:limit]
    with _cache.temporary("data") as folder:
        numpy.save(folder / "x.npy", numpy.ascontiguousarray(x if x.dtype.kind == "f" else x / numpy.float32(255), dtype="<f4"))
        if labels is not None:
            numpy.save(folder / "y.npy", _labels(numpy, labels, len(data))[:limit].astype(numpy.int64))
        at = _cache.keep("data", folder)
    keys = {"inputs": str(at / "x.npy"), "layout": "raw", **({"labels": str(at / "y.npy")} if labels is not None else {})}
    return Prepared({"name": "data", "arrays": keys}, x.shape[1:], True, labels is not None)


def moved(data: Prepared, transforms: Any) -> list[Prepared]:
    """Return pairs of arrays that a model takes as they are, and of the same after each transformation, a function of one sample.

    Without transformations, videos (batch, frames and channels or channels and frames, height, width) are
    mirrored, and played backwards.
    """
    numpy = require("numpy", "arrays need")
    keys = dict(data.entry["arrays"])
    if str(keys["inputs"]).endswith(".npz"):
        raise Error("arrays of several inputs need pairs: {'pairs': {'clean': ..., 'moved': ..., 'layout': 'raw'}}")
    x = numpy.load(keys["inputs"], mmap_mode="r")
    changes: list[tuple[str, Any]] = []
    if transforms is None and x.ndim == 5:
        frames = 1 if x.shape[1] in (1, 3) and x.shape[2] not in (1, 3) else 0  # the axis in a sample
        changes = [("mirrored", lambda v: v[..., ::-1]), ("backwards", lambda v: numpy.flip(v, frames))]
    for t in transforms or ():
        python = t.get("python") if isinstance(t, Mapping) else {"function": t}
        keys_of: Mapping[str, Any] = python if isinstance(python, Mapping) else {}
        function = keys_of.get("function")
        if not callable(function):
            raise Error(f"arrays that a model takes as they are, such as videos and spectrograms, are transformed by functions of Python or given as pairs, not {t!r}")
        name = str(t.get("name", "")) if isinstance(t, Mapping) else ""
        name = name or getattr(function, "__name__", type(function).__name__).strip("<>")
        strength = keys_of.get("strength")
        values = strength.get("values") if isinstance(strength, Mapping) else None if strength is None else [strength]
        changes += [(name, function)] if values is None else [(f"{name}-{v:g}", functools.partial(function, strength=v)) for v in values]
    if not changes:
        raise Error("arrays that a model takes as they are need transforms=, functions of one sample, or pairs: {'pairs': {'clean': x, 'moved': y, 'layout': 'raw'}}")
    out = []
    for name, change in changes:
        with _cache.temporary("data") as folder:
            changed = numpy.stack([array(numpy, change(numpy.array(v)), name) for v in x]).astype(x.dtype)
            if "labels" in keys:
                numpy.savez(folder / "moved.npz", x=changed)
            else:
                numpy.save(folder / "moved.npy", changed)
            at = next(_cache.keep("data", folder).iterdir())
        rest = {k: v for k, v in data.entry.items() if k not in ("arrays", "name")}
        clean = keys["inputs"]
        if "labels" in keys:
            clean = _labelled(numpy, x, keys["labels"])
        out.append(data._replace(entry={"name": name, "pairs": {"clean": str(clean), "moved": str(at), "layout": "raw"}, **rest}))
    return out


def _labelled(numpy: Any, x: Any, labels: str) -> Path:
    """Write an array and its labels to one file."""
    with _cache.temporary("data") as folder:
        numpy.savez(folder / "x.npz", x=x, labels=numpy.load(labels))
        return _cache.keep("data", folder) / "x.npz"


def _labels(numpy: Any, labels: Any, count: int) -> Any:
    y = array(numpy, labels, "labels")
    if y.shape == (count, 1):
        y = y[:, 0]
    if y.shape != (count,):
        raise Error(f"the labels have the shape {y.shape}: it must be {(count,)}, one label for each sample")
    if y.dtype.kind == "f":
        wrong = y[~(y == numpy.rint(y))]
        if wrong.size:
            raise Error(f"label {wrong[0]} is not a whole number: labels are whole numbers from 0, or -1 for none")
    return y.astype(numpy.int64)


def _entry(entry: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
    """Return an entry of a study with its paths made absolute."""
    def absolute(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: v if k in ("name", "label", "layout", "part") else absolute(v) for k, v in value.items()}
        if isinstance(value, list):
            return [absolute(v) for v in value]
        if isinstance(value, os.PathLike) or isinstance(value, str) and os.path.exists(value):
            return os.path.abspath(value)
        return value

    out: dict[str, Any] = absolute(entry)
    out.setdefault("name", "data")
    if limit is not None:
        out["limit"] = limit
    return out


# The kind of data of a file, or of a folder of such files, by its ending.
_KINDS = {".npy": "arrays", ".npz": "arrays", ".parquet": "parquet", ".tar": "webdataset", ".mp4": "video", ".mkv": "video", ".webm": "video", ".avi": "video", ".mov": "video"}


def _entry_of_path(path: Path, limit: int | None) -> dict[str, Any]:
    """Return the entry for a folder of images, or for a .npy or .npz file."""
    if not path.exists():
        raise Error(f"there are no data at {path}")
    kind = _KINDS.get(path.suffix.lower(), "")
    if path.is_dir():
        found = {Path(name).suffix.lower() for _, _, files in os.walk(path) for name in files}
        kinds = {_KINDS.get(suffix, "sound" if suffix in _files.SOUND_FILES else "images") for suffix in found}
        kind = kinds.pop() if len(kinds) == 1 and kinds != {"arrays"} else "images"
    if not kind:
        raise Error(f"{path} is neither a folder of images nor .npy nor .npz: name its kind, as in {{'cifar10': {str(path)!r}}}")
    entry: dict[str, Any] = {"name": path.resolve().name.split(".")[0] or "data", kind: str(path.resolve())}
    if limit is not None:
        entry["limit"] = limit
        if kind == "images":
            entry["shuffle"] = True  # the images of a folder are sorted by class
    return entry


def _is_array(data: Any) -> bool:
    return hasattr(data, "__array__") and hasattr(data, "shape") and hasattr(data, "dtype")


def array(numpy: Any, data: Any, what: str = "data") -> Any:
    """Return a numpy array of numbers or booleans. An error names the data as what."""
    if hasattr(data, "detach"):
        data = data.detach().cpu()
        if str(data.dtype) == "torch.bfloat16":  # which numpy lacks
            data = data.float()
    if getattr(data, "mask", None) is not None and numpy.ma.is_masked(data):
        raise Error(f"{what} is a masked array, and {int(data.mask.sum())} of its values are masked: fill them (x.filled(0)) or leave out their samples")
    try:
        a = numpy.asarray(data)
    except Exception as e:
        raise Error(f"{what} cannot be converted to an array of numbers: {first_line(e)}") from None
    if a.dtype.kind not in "buif":  # bool, unsigned, signed, float
        raise Error(f"{what} contains values of type {a.dtype}, not numbers")
    return a


def _slices(numpy: Any, data: Any, labels: Any, limit: int | None) -> Iterator[tuple[Any, Any]]:
    """Yield the images and labels of arrays in chunks of up to 16 MiB."""
    x = array(numpy, data)
    if x.ndim not in (3, 4) or len(x) == 0:
        raise Error(f"the array has the shape {x.shape}: images must be N x H x W x C of uint8, N x C x H x W of floats, or N x H x W")
    y = None
    if labels is not None:
        y = _labels(numpy, labels, len(x))[:limit]
    x = x[:limit]
    step = max(1, (16 << 20) // max(1, x[:1].nbytes))
    for i in range(0, len(x), step):
        yield x[i:i + step], None if y is None else y[i:i + step]


def _items(data: Any, limit: int | None) -> Iterator[Any]:
    """Iterate over a Dataset by its indices, and over other objects directly."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "dataset") or not hasattr(data, "__iter__"):
        for i in range(len(data) if limit is None else min(limit, len(data))):
            yield data[i]
    else:
        yield from data


def _chunks(numpy: Any, items: Iterable[Any], limit: int | None, batched: bool) -> Iterator[tuple[Any, Any]]:
    """Yield samples in chunks, with their labels if all labels of the chunk are whole numbers."""
    images: list[Any] = []
    targets: list[Any] = []
    left = limit if limit is not None else -1  # samples to come; without a limit it never reaches 0
    for item in items:
        x, y = _files.pair(item)
        x = array(numpy, x, "an item of the data set")
        if batched:
            x = x if limit is None else x[:left]
            yield x, None if y is None else _whole_labels(numpy, y, len(x))
            left -= len(x)
        else:
            if images and images[0].shape != x.shape:
                raise Error(f"the items of the data set differ in shape, {images[0].shape} and {x.shape}: resize and crop them in its transform, "
                            "or let it return images of PIL and give preprocess=")
            images.append(x)
            targets.append(y)
            left -= 1
            if len(images) * x.nbytes > 16 << 20:
                yield numpy.stack(images), _whole_labels(numpy, targets, len(images))
                images, targets = [], []
        if left == 0:
            break
    if images:
        yield numpy.stack(images), _whole_labels(numpy, targets, len(images))


def _whole_labels(numpy: Any, values: Any, count: int) -> Any:
    """Return labels as whole numbers, perhaps given as floats, or None with a warning if they are something else."""
    if all(v is None for v in values):
        return None
    try:
        y = numpy.asarray([v.item() if hasattr(v, "item") and getattr(v, "ndim", 0) == 0 else v for v in values])
    except Exception:
        y = numpy.asarray(None)
    if y.ndim == 1 and len(y) >= count and y.dtype.kind in "iufb":
        whole = y[:count]
        if y.dtype.kind != "f":
            return whole.astype(numpy.int64)
        if numpy.isfinite(whole).all() and (whole == numpy.rint(whole)).all():
            return whole.astype(numpy.int64)
    kind = type(values[0]).__name__ if len(values) else "None"
    warnings.warn(f"noether: the labels of the samples, of type {kind}, are not all whole numbers: they are left out", stacklevel=2)
    return None


def _normalisation(preprocess: Any) -> tuple[Any, Any] | None:
    """Return the mean and the standard deviation of a preprocessing, or None if it has neither."""
    if isinstance(preprocess, str):
        return PRESETS.get(preprocess)
    if isinstance(preprocess, Mapping):
        mean, std = PRESETS.get(str(preprocess.get("preset")), (None, None))
        mean, std = preprocess.get("mean", mean), preprocess.get("std", std)
        return None if mean is None and std is None else (0 if mean is None else mean, 1 if std is None else std)
    return None


def _write(numpy: Any, preprocess: Any, chunks: Iterable[tuple[Any, Any]]) -> Prepared:
    with _cache.temporary("data") as folder, contextlib.closing(_Writer(numpy, preprocess, folder)) as writer:
        for x, y in chunks:
            writer.add(x, y)
        if writer.count == 0:
            raise Error("the data set is empty")
        return writer.finish()


class _Writer:
    """Writes samples to an array in the cache, whose name is a hash of its content.

    If the floats of the first chunk are outside 0 to 1 and preprocess has a mean or a standard
    deviation, the samples were normalised by these, and the normalisation is reversed. Floats that
    are multiples of 1 / 255 are then written as bytes.
    """

    def __init__(self, numpy: Any, preprocess: Any, folder: Path) -> None:
        self.numpy, self.normalisation, self.folder = numpy, _normalisation(preprocess), folder
        self.count = 0  # samples so far
        self.shape: tuple[int, ...] = ()  # of a sample
        self.bytes = True  # whether all samples so far are written as bytes, not floats
        self.floats = self.normalised = False  # of the first chunk: has floats, and normalised ones
        self.labels: list[Any] | None = []  # one array for each chunk; None if a chunk has none
        self.file = open(folder / "x.npy", "w+b")
        self.file.write(bytes(HEADER))

    def close(self) -> None:
        self.file.close()

    def add(self, x: Any, y: Any) -> None:
        """Write a chunk of samples with their labels, or None if they have none."""
        if x.ndim not in (3, 4):
            raise Error(f"an item of the data set has the shape {x.shape[1:]}: images must be H x W x C of uint8, C x H x W of floats, or H x W")
        if self.count == 0:
            self.shape, self.floats = x.shape[1:], x.dtype.kind == "f"
            if len(self.shape) == 3 and self.shape[0] not in (1, 3) and self.shape[2] not in (1, 3):
                raise Error(f"an image has the shape {self.shape}: it must have 1 or 3 channels, first or last, without transparency, "
                            "as x[..., :3] of H x W x 4")
        elif x.shape[1:] != self.shape:
            raise Error(f"the items of the data set differ in shape, {self.shape} and {x.shape[1:]}: resize and crop them in its transform")
        x = self._to_unit_interval(x) if x.dtype.kind == "f" else self._to_bytes(x)
        if self.bytes and x.dtype.kind == "f":
            self._rewrite_as_floats()
        if not self.bytes and x.dtype.kind != "f":
            x = x.astype(self.numpy.float32) / 255
        if x.nbytes * 2 > shutil.disk_usage(self.folder).free:
            raise Error(f"the disk of {self.folder.parent} is full: give limit=, or set NOETHER_CACHE to another disk")
        self.file.write(self.numpy.ascontiguousarray(x).data)
        self.count += len(x)
        if y is None:
            self.labels = None
        elif self.labels is not None:
            self.labels.append(self.numpy.asarray(y))

    def _to_bytes(self, x: Any) -> Any:
        """Return whole numbers from 0 to 255 as bytes, and booleans as 0 and 255."""
        if x.dtype.kind == "b":
            return x.astype(self.numpy.uint8) * 255
        if x.size and (x.min() < 0 or x.max() > 255):
            raise Error(f"the values of the images are from {x.min()} to {x.max()}: whole numbers must be from 0 to 255")
        return x.astype(self.numpy.uint8, copy=False)

    def _to_unit_interval(self, x: Any) -> Any:
        """Reverse a normalisation. Return floats from 0 to 1, or bytes for multiples of 1 / 255."""
        np = self.numpy
        x = x.astype(np.float32)
        if not np.isfinite(x).all():
            raise Error("the images contain NaN or infinity")
        outside = bool(x.min() < -1e-3 or x.max() > 1 + 1e-3)
        if self.count == 0:
            self.normalised = outside and self.normalisation is not None
        if self.normalised:
            mean, std = (np.asarray(v, np.float32).reshape(-1, *[1] * (x.ndim - 2)) for v in self.normalisation or ())
            if x.ndim == 4 and mean.shape[0] > 1 and x.shape[1] != mean.shape[0]:
                raise Error(f"the images have {x.shape[1]} channels (N x C x H x W) and the preprocessing {mean.shape[0]}")
            x = x * std + mean
            outside = bool(x.min() < -1e-3 or x.max() > 1 + 1e-3)
        if outside:
            raise Error(f"the values of the images are from {x.min():.4g} to {x.max():.4g}: floats must be from 0 to 1, or normalised by the mean and std of preprocess=")
        x = x.clip(0, 1)
        if self.normalised and self.count == 0 and (np.abs(x * 255 - np.rint(x * 255)) < 0.02).mean() < 0.5:
            warnings.warn("noether: with the normalisation of preprocess= reversed, the values of most pixels are no multiples of 1/255: the mean and the "
                          "deviation may be others than those that normalised the images (or these were resized as floats)", stacklevel=7)
        if self.bytes:
            rounded = np.rint(x * 255)
            if np.abs(x * 255 - rounded).max() < 1e-3:
                return rounded.astype(np.uint8)
        return x

    def _rewrite_as_floats(self) -> None:
        """Convert the samples that were written as bytes to floats."""
        path = self.folder / "floats.npy"
        with open(path, "wb") as floats:
            floats.write(bytes(HEADER))
            self.file.seek(HEADER)
            while block := self.file.read(1 << 20):
                floats.write((self.numpy.frombuffer(block, self.numpy.uint8).astype(self.numpy.float32) / 255).data)
        self.file.close()
        os.replace(path, self.folder / "x.npy")
        self.file = open(self.folder / "x.npy", "r+b")
        self.file.seek(0, os.SEEK_END)
        self.bytes = False

    def finish(self) -> Prepared:
        """Write the header and the labels, and return the entry."""
        shape = (self.count, *self.shape)
        layout = "NHW" if len(shape) == 3 else "NCHW" if self.floats and shape[1] in (1, 3) or shape[3] not in (1, 3) else "NHWC"
        text = repr({"descr": "|u1" if self.bytes else "<f4", "fortran_order": False, "shape": shape}).encode()
        self.file.seek(0)
        # The header of the .npy format: magic and version (8 bytes), the length of the text (2),
        # and the text, padded with spaces and ended by a newline.
        self.file.write(b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little") + text.ljust(HEADER - 11) + b"\n")
        self.file.close()
        labelled = bool(self.labels)
        if labelled:
            self.numpy.save(self.folder / "y.npy", self.numpy.concatenate(self.labels).astype(self.numpy.int64))
        at = _cache.keep("data", self.folder)
        arrays = {"inputs": str(at / "x.npy"), "layout": layout}
        if labelled:
            arrays["labels"] = str(at / "y.npy")
        sample_shape = {"NHW": (1, *shape[1:]), "NCHW": shape[1:], "NHWC": (shape[-1], *shape[1:3])}[layout]
        return Prepared({"name": "data", "arrays": arrays}, sample_shape, self.floats, labelled)
