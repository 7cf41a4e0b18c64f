"""Images of any size and recordings as folders of files with a table of labels, and tables of paths."""

from __future__ import annotations

import csv
import os
import struct
import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from . import _cache
from ._command import Error, first_line, require

# Names of the columns of a data set or a table, the most usual first.
IMAGES = ("image", "img", "pixel_values", "images", "picture", "photo")
SOUNDS = ("audio", "waveform", "speech", "input_values", "array")
LABELS = ("label", "labels", "fine_label", "class", "target", "y")
PATHS = ("path", "file", "filename", "image", "img", "filepath", "image_path", "audio")
INPUTS = (*IMAGES, *SOUNDS, "input", "inputs", "x", "data")

SOUND_FILES = (".wav", ".flac")

# Waveforms of floats that were not divided by their full scale are above, those that clip are below.
_LOUDEST = 100


def is_picture(value: Any) -> bool:
    """Report whether a value is an image of PIL."""
    return hasattr(value, "convert") and hasattr(value, "getbands")


def is_recording(value: Any) -> bool:
    """Report whether a value is a recording of Hugging Face datasets: samples and their rate."""
    return isinstance(value, Mapping) and "sampling_rate" in value and "array" in value


def is_sample(item: Mapping[str, Any]) -> bool:
    """Report whether a dict is an item of a data set, and not an entry of a study."""
    return any(is_picture(v) or is_recording(v) or hasattr(v, "shape") and k not in ("arrays", "pairs") for k, v in item.items())


def column(names: Iterable[str], known: Iterable[str]) -> str | None:
    """Return the name that comes first in a list of known ones, or None."""
    lower = {str(name).lower(): name for name in names}
    return next((lower[k] for k in known if k in lower), None)


def undecoded(data: Any) -> Any:
    """Return a data set of Hugging Face whose recordings are not decoded, which would need torchcodec."""
    for name, feature in (getattr(data, "features", None) or {}).items():
        if type(feature).__name__ == "Audio" and hasattr(data, "cast_column"):
            data = data.cast_column(name, type(feature)(decode=False))
    return data


def pair(item: Any) -> tuple[Any, Any]:
    """Return the sample and the label of an item of a data set, or None for a missing label."""
    if isinstance(item, Mapping) and not is_recording(item):
        if isinstance(item.get("bytes"), bytes) or "path" in item and "bytes" in item:
            return _decoded(item), None
        name = column(item, INPUTS)
        if name is None:
            raise Error(f"the data set returns dicts, with the keys {', '.join(map(str, item))}, of which none is an image or a recording: "
                        "wrap it so that it returns (image, label)")
        label = column((k for k in item if k != name), LABELS)
        value = item[name]
        if isinstance(value, Mapping) and not is_recording(value) and "bytes" in value:
            value = _decoded(value)
        elif type(value).__name__ == "AudioDecoder":
            value = {"array": value["array"], "sampling_rate": value["sampling_rate"]}
        elif name in SOUNDS and "sampling_rate" in item:
            value = {"array": value, "sampling_rate": item["sampling_rate"]}
        return value, None if label is None else item[label]
    if isinstance(item, (tuple, list)):
        if not item:
            raise Error("the data set returns empty items")
        if len(item) > 2 and isinstance(item[1], int) and hasattr(item[0], "shape") and len(item[0].shape) == 2 and item[0].shape[0] <= 2:
            return {"array": item[0], "sampling_rate": item[1]}, item[2]  # of torchaudio: waveform, rate, label
        return item[0], item[1] if len(item) > 1 else None
    return item, None


def _decoded(value: Mapping[str, Any]) -> Any:
    """Return the recording or the image in bytes or a file, as a column of Hugging Face datasets has it."""
    import io

    data, path = value.get("bytes"), value.get("path")
    if data is None:
        data = Path(str(path)).read_bytes()
    if data[:4] in (b"RIFF", b"fLaC", b"OggS") or str(path).lower().endswith((".wav", ".flac", ".mp3", ".ogg")):
        soundfile = require("soundfile", "recordings of a data set need")
        try:
            array, rate = soundfile.read(io.BytesIO(data), dtype="float32")
        except Exception as e:
            raise Error(f"a recording cannot be decoded: {first_line(e)}") from None
        return {"array": array.mean(1) if array.ndim == 2 else array, "sampling_rate": rate}
    image = require("PIL.Image", "images of a data set need")
    return image.open(io.BytesIO(data))


def first(items: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """Return the first item, or None, and all items."""
    it = iter(items)
    head = list(islice(it, 1))
    return (head[0] if head else None), chain(head, it)


def write(numpy: Any, items: Iterable[Any], limit: int | None, rate: int | None = None) -> tuple[dict[str, Any], bool, tuple[int, ...] | None]:
    """Write images of PIL as PNG, or recordings as WAV, with their labels.

    Return an entry, whether there are labels, and channels, height and width if they are those of all images.
    """
    rows: list[tuple[str, Any]] = []
    lengths: set[float] = set()
    shapes: set[tuple[int, ...]] = set()
    wrong: int | None = None  # the first item whose label is neither a number nor a text
    with _cache.temporary("data") as folder:
        kind = "images"
        for i, item in enumerate(islice(items, limit)):
            x, y = pair(item)
            if is_picture(x):
                name = f"{i:06d}.png"
                x = _eight_or_sixteen_bits(x)
                x.save(folder / name, compress_level=1)
                shapes.add((3 if x.mode == "RGB" else 1, x.height, x.width))
            elif kind == "sound" or i == 0:
                kind, name = "sound", f"{i:06d}.wav"
                lengths.add(_write_wave(numpy, folder / name, x, rate))
            else:
                raise Error(f"item {i} of the data set is no image of PIL as those before it, but {type(x).__name__}")
            rows.append((name, _label(y)))
            if rows[-1][1] is None and wrong is None:
                wrong = i
                warnings.warn(f"noether: the label of item {i} of the data set, of type {type(y).__name__}, is neither a whole number nor a text: "
                              "labels are left out", stacklevel=2)
        if not rows:
            raise Error("the data set is empty")
        labelled = all(y is not None for _, y in rows) and any(y != "" for _, y in rows)
        if labelled:
            with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as f:
                csv.writer(f).writerows([("file", "label"), *rows])
        at = _cache.keep("data", folder)
    keys: dict[str, Any] = {"folder": str(at)}
    if labelled:
        keys["labels"] = str(at / "labels.csv")
    else:
        keys["layout"] = "flat"
    if kind == "sound":
        keys["rate"] = "model"
        if len(lengths) == 1:
            keys["length"] = lengths.pop()
    return {"name": "data", kind: keys}, labelled, shapes.pop() if len(shapes) == 1 else None


def _eight_or_sixteen_bits(image: Any) -> Any:
    """Return an image of PIL as one that a PNG holds without transparency: of 16 bits if it is grey and has them."""
    if image.mode in ("L", "RGB") or image.mode.startswith("I;16"):
        return image
    if image.mode in ("I", "F"):  # of 32 bits
        low, high = image.getextrema()
        if image.mode == "F" or low < 0 or high > 65535:
            raise Error(f"an image of PIL in mode {image.mode} has values from {low:g} to {high:g}: convert it to 8 bits, or give arrays of floats from 0 to 1")
        return image.convert("I;16")
    return image.convert("L" if image.mode == "1" else "RGB")


def _label(y: Any) -> Any:
    """Return a label as a whole number, perhaps given as a float, or a text; "" if it is missing, and None for anything else."""
    if hasattr(y, "item") and getattr(y, "size", 1) in (1, ()) or hasattr(y, "numel") and y.numel() == 1:
        y = y.item()
    elif callable(getattr(y, "numel", None)):
        return None
    if y is None or isinstance(y, float) and y != y:
        return ""
    if isinstance(y, float) and y.is_integer() or isinstance(y, bool):
        return int(y)
    return y if isinstance(y, (int, str)) else None


def _write_wave(numpy: Any, path: Path, value: Any, rate: int | None) -> float:
    """Write a recording of 32-bit floats. Return its length in seconds."""
    if is_recording(value):
        value, rate = value["array"], int(value["sampling_rate"])
    if rate is None:
        raise Error("recordings need their sample rate in Hz: give rate=16000, for instance")
    from ._data import array

    x = array(numpy, value, "a recording")
    if x.dtype.kind in "iu":
        if x.dtype.itemsize > 4:
            raise Error(f"a recording has values of {x.dtype}, whose full scale is not known: give int16, or floats from -1 to 1")
        half = 2.0 ** (8 * x.dtype.itemsize - 1)
        x = (x - half) / half if x.dtype.kind == "u" else x / half
    elif x.size and numpy.abs(x).max() > _LOUDEST:
        raise Error(f"a recording has floats up to {numpy.abs(x).max():g}, whose full scale is 1: divide by 32768 if they were int16")
    if x.ndim == 2 and 1 in x.shape:
        x = x.reshape(-1)
    elif x.ndim == 2:
        x = x.mean(0 if x.shape[0] < x.shape[1] else 1)  # of channels
    if x.ndim != 1 or not len(x):
        raise Error(f"a recording has the shape {x.shape}: it must be samples, or channels x samples")
    data = x.astype("<f4").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 3, 1, rate, 4 * rate, 4, 32, b"data", len(data))
    path.write_bytes(head + data)
    return len(x) / rate


def table(data: Any, limit: int | None) -> tuple[dict[str, Any], bool]:
    """Return the entry for a DataFrame of paths and labels, and whether there are labels."""
    name = column(data.columns, PATHS)
    if name is None:
        raise Error(f"the DataFrame has the columns {', '.join(map(str, data.columns))}: one with the paths must be called {', '.join(PATHS[:4])} or the like")
    label = column((c for c in data.columns if c != name), LABELS)
    other = next((p for p in data[name] if not isinstance(p, (str, os.PathLike))), None)
    if other is not None:
        raise Error(f"the column {name} of the DataFrame has a value of type {type(other).__name__}: it must have the paths of files")
    paths = [os.path.abspath(os.fspath(p)) for p in data[name]]
    missing = [p for p in paths if not os.path.isfile(p)]
    if missing:
        raise Error(f"there is no file {missing[0]}, which the DataFrame names" + (f"; {len(missing)} are missing" if len(missing) > 1 else ""))
    if not paths:
        raise Error("the DataFrame is empty")
    root = os.path.commonpath([os.path.dirname(p) for p in paths])
    rows = [(os.path.relpath(p, root),) for p in paths] if label is None else [(os.path.relpath(p, root), y) for p, y in zip(paths, data[label])]
    with _cache.temporary("data") as folder:
        with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows([("file", "label")[:len(rows[0])], *rows])
        at = _cache.keep("data", folder)
    kind = "sound" if all(p.lower().endswith(SOUND_FILES) for p in paths) else "images"
    keys: dict[str, Any] = {"folder": root, "labels": str(at / "labels.csv")}
    if kind == "sound":
        keys["rate"] = "model"
    entry: dict[str, Any] = {"name": "data", kind: keys}
    if limit is not None:
        entry.update(limit=limit, shuffle=True)
    return entry, label is not None


def arrays(numpy: Any, value: Any, folder: Path, name: str) -> Any:
    """Write the arrays in a value of an entry of a study, and return it with their paths."""
    if hasattr(value, "__array__") and hasattr(value, "shape"):
        from ._data import array

        path = folder / f"{name}.npy"
        numpy.save(path, numpy.ascontiguousarray(array(numpy, value, name)))
        return path
    if isinstance(value, Mapping) and value and all(hasattr(v, "__array__") and hasattr(v, "shape") for v in value.values()) and name != "pairs":
        from ._data import array

        path = folder / f"{name}.npz"
        numpy.savez(path, **{k: array(numpy, v, k) for k, v in value.items()})
        return path
    if isinstance(value, Mapping):
        return {k: arrays(numpy, v, folder, k) for k, v in value.items()}
    return value


def class_names(data: Any) -> list[str] | None:
    """Return the names of the classes that a data set of torchvision or Hugging Face gives, in the order of its labels."""
    inner = data
    while hasattr(inner, "dataset"):  # of a DataLoader or a Subset
        inner = inner.dataset
    names = getattr(inner, "classes", None)
    features = getattr(inner, "features", None)
    if names is None and isinstance(features, Mapping):
        label = column(features, LABELS)
        names = getattr(features.get(label), "names", None)
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(n, (str, tuple)) for n in names):
        return None
    return [n if isinstance(n, str) else n[0] for n in names]


def labels_of(entry: Mapping[str, Any]) -> list[Any]:
    """Return the labels of an entry that write or the writer of arrays has made, each once, in order."""
    path = next((v.get("labels") for v in entry.values() if isinstance(v, Mapping) and "labels" in v), None)
    if path is None:
        return []
    if str(path).endswith(".npy"):
        import numpy

        return sorted({int(v) for v in numpy.load(path)})
    with open(path, newline="", encoding="utf-8") as f:
        found = [row["label"] for row in csv.DictReader(f) if row["label"]]
    return sorted({int(v) for v in found}) if all(v.lstrip("-").isdigit() for v in found) else sorted(set(found))
