"""Preprocessing as other libraries describe it, as the value of the key preprocess of a study."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _applied, _cache
from ._command import Error, call

# Keys that tell the config of a processor of transformers from the keys of a study.
_PROCESSOR = ("image_processor_type", "feature_extractor_type", "video_processor_type", "image_processor", "feature_extractor", "video_processor")

# The files of a folder of transformers, in the order in which they are looked for.
_FILES = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")


def resolve(preprocess: Any) -> Any:
    """Return a preset, keys of a study, or a path, for what preprocess= takes.

    That is one of these; a processor of transformers, its dict or its folder; the data config of timm;
    or transforms of torchvision: a Compose, a transform, or weights or their transforms(). For any
    other function it is an Applied.
    """
    if preprocess is None or isinstance(preprocess, (str, os.PathLike)):
        return _path(preprocess)
    if isinstance(preprocess, Mapping):
        if any(key in preprocess for key in _PROCESSOR):
            return _processor(json.dumps(dict(preprocess), default=_plain))
        return _timm(preprocess) if "input_size" in preprocess else dict(preprocess)
    if hasattr(preprocess, "to_json_string") and hasattr(preprocess, "to_dict"):
        return _processor(_json_of(preprocess))
    if callable(getattr(preprocess, "transforms", None)):  # weights of torchvision
        preprocess = preprocess.transforms()
    try:
        return _torchvision(preprocess)
    except Error:
        if callable(preprocess) and not isinstance(preprocess, type):
            return _applied.Applied(preprocess)
        raise


def keys(preprocess: Any) -> Any:
    """Return what resolve does, but fail for a function."""
    found = resolve(preprocess)
    if isinstance(found, _applied.Applied):
        raise Error("a function as preprocess= holds for all models and is applied to the data of measure: give it to measure itself")
    return found


def _path(preprocess: Any) -> Any:
    """Return a preset, or the path of a file, for the path of a folder that of the file in it."""
    if preprocess is None or isinstance(preprocess, str) and not os.path.isdir(preprocess):
        return preprocess
    path = Path(preprocess).absolute()
    if not path.is_dir():
        return str(path)
    for name in _FILES:
        file = path / name
        if file.is_file() and (name != "processor_config.json" or any(key in json.loads(file.read_text("utf-8")) for key in _PROCESSOR)):
            return str(file)
    raise Error(f"{path} has no preprocessor_config.json and no processor_config.json with a processor")


def _json_of(processor: Any) -> str:
    """Return the config of a processor, of one that joins several that of the one for images, else for audio, else for videos."""
    for part in ("image_processor", "feature_extractor", "video_processor"):
        inner = getattr(processor, part, None)
        if inner is not None:
            return _json_of(inner)
    text: str = processor.to_json_string()
    return text


def _processor(config: str) -> Any:
    """Return the keys of a study for the config of a processor, or the path of a file with it."""
    with _cache.temporary("models") as folder:
        path = folder / "preprocessor_config.json"
        path.write_text(config, "utf-8")
        try:
            return call(["preprocessing", str(path)])
        except Error as e:
            if "asks for a spectrogram" in str(e):  # which is no key
                return str(_cache.keep("models", folder) / path.name)
            raise Error(str(e).replace(f"reading {path}: ", "the processor: ")) from None


def _timm(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a study for the data config of a model of timm, as its create_transform reads it."""
    channels, height, width = config["input_size"]
    pct = config.get("crop_pct") or 0.875
    interpolation = config.get("interpolation") or "bilinear"
    mode = config.get("crop_mode") or "center"
    out: dict[str, Any] = {"crop": height if height == width else [height, width], "channels": channels, "interpolation": "bilinear" if interpolation == "random" else interpolation}
    sides = [math.floor(side / pct) for side in (height, width)]
    if mode == "squash":
        if sides != [height, width]:
            out.update(resize=sides[0], stretch=True)
            if sides[0] != sides[1]:
                raise Error("timm's crop_mode squash with a crop_pct below 1 is supported for squares only: give preprocess= as keys of a study")
    elif mode == "center":
        out["resize"] = sides[0]
        if sides[0] != sides[1]:
            raise Error("timm's crop_mode center is supported for squares only: give preprocess= as keys of a study")
    else:
        raise Error(f"timm's crop_mode {mode!r} is not supported: give preprocess= as keys of a study")
    for key in ("mean", "std"):
        if config.get(key) is not None:
            out[key] = [float(v) for v in config[key]]
    return out


def _torchvision(steps: Any) -> dict[str, Any]:
    """Return the keys of a study for transforms of torchvision, of either version."""
    out: dict[str, Any] = {}
    tensor = type(steps).__name__ == "Sequential"  # of the kinds that a step may get, an image or a tensor
    floats, high = False, 255  # the type of the values and the one of white
    for step in _flat(steps):
        kind = type(step).__name__
        own = type(step).__module__.split(".")[0] in ("torchvision", "timm")
        if own and kind in ("ImageClassification", "SemanticSegmentation", "VideoClassification", "ObjectDetection"):  # of weights
            _resize(out, getattr(step, "resize_size", None), step, tensor, floats)
            _crop(out, getattr(step, "crop_size", None), step)
            if hasattr(step, "mean"):
                _normalise(out, step)
            tensor, high, floats = True, high if floats else 1, True
        elif own and kind == "Resize" and getattr(step, "max_size", None) is None:
            _resize(out, step.size, step, tensor, floats)
        elif own and kind == "CenterCrop":
            _crop(out, step.size, step)
        elif own and kind in ("ToTensor", "MaybeToTensor"):
            tensor, high, floats = True, high if floats else 1, True
        elif own and kind in ("ConvertImageDtype", "ToDtype"):
            high, floats = _converted(step, high, floats)
        elif own and kind in ("PILToTensor", "ToImage", "MaybePILToTensor"):
            tensor = True
        elif own and kind in ("ToPureTensor", "Identity"):
            pass
        elif own and kind == "Grayscale" and step.num_output_channels == 1 and "mean" not in out:
            out["channels"] = 1
        elif own and kind == "Normalize":
            _normalise(out, step)
        else:
            raise _refused(step)
    if high == 255:
        out["range"] = [0, 255]
    return out


def _converted(step: Any, high: int, floats: bool) -> tuple[int, bool]:
    """Return the value of white, and whether values are floats, after a conversion to another type."""
    scale, dtype = getattr(step, "scale", True), str(step.dtype).removeprefix("torch.")
    if "float" in dtype and "{" not in dtype:  # a dict has a type for each kind of input
        return 1 if scale and not floats else high, True
    if dtype != "uint8" or floats and (high == 1) != scale:
        raise _refused(step)
    return 255, False


def _normalise(out: dict[str, Any], step: Any) -> None:
    if "mean" in out:
        raise _refused(step)
    out.update({key: [float(v) for v in getattr(step, key)] for key in ("mean", "std")})


def _flat(steps: Any) -> Iterable[Any]:
    """Yield transforms in their order, also those inside others."""
    inner = getattr(steps, "transforms", None)
    if inner is None and type(steps).__name__ == "Sequential":
        inner = steps
    if inner is None or callable(inner):
        yield steps
        return
    for step in inner:
        yield from _flat(step)


def _resize(out: dict[str, Any], size: Any, step: Any, tensor: bool, floats: bool) -> None:
    """Add a resize to the keys. One of a tensor has to agree with that of Pillow."""
    if size is None:
        return
    interpolation = getattr(step, "interpolation", "bilinear")
    filter = str(getattr(interpolation, "value", interpolation))
    agrees = filter == "nearest-exact" or getattr(step, "antialias", None) is True and (filter == "bilinear" or filter == "bicubic" and not floats)
    if "resize" in out or "crop" in out or "mean" in out or tensor and not agrees:
        raise _refused(step)
    sides = [size] if isinstance(size, int) else list(size)
    if len(sides) == 1:
        out["resize"] = sides[0]
    else:
        out["crop"] = sides  # without resize: stretched to this size
    out["interpolation"] = filter.replace("nearest-exact", "nearest")


def _crop(out: dict[str, Any], size: Any, step: Any) -> None:
    if size is None:
        return
    sides = [size] if isinstance(size, int) else list(size)
    sides = sides * 2 if len(sides) == 1 else sides
    stretched = out.get("crop")
    if "mean" in out or stretched is None and "resize" not in out:
        raise _refused(step)
    if stretched is not None and "resize" not in out and list(stretched) != sides:
        if stretched[0] != stretched[1]:
            raise _refused(step)
        out.update(resize=stretched[0], stretch=True)
    elif stretched is not None and "resize" in out:
        raise _refused(step)
    out["crop"] = sides if sides[0] != sides[1] else sides[0]


def _refused(step: Any) -> Error:
    name = f"{type(step).__module__}.{type(step).__name__}".replace("builtins.", "")
    return Error(f"preprocess: {name} is not supported at its place: it takes a resize, a centre crop, a conversion to tensors and a normalisation, "
                 "in this order; give a function of an image, which is applied as it is, or keys of a study")


def _plain(value: Any) -> Any:
    """Return what JSON lacks as what it has: enumerations, arrays, and dicts of a class of their own."""
    for attribute in ("value", "tolist", "items"):
        found = getattr(value, attribute, None)
        if found is not None:
            return dict(value) if attribute == "items" else found() if callable(found) else found
    raise Error(f"preprocess has {value!r}, which cannot be written as JSON")
