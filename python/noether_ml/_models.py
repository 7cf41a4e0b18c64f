"""Conversion of models in any supported form (path, URL, PyTorch module and others) to ONNX files."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import _adapters, _cache, _export, _preprocess, _server, _torch
from ._command import Error, first_line, query, require


class Prepared(NamedTuple):
    """A model as a file, or as a module that this process serves."""

    path: str  # or URL; "": it is served
    name: str
    preprocess: Any = None  # if known
    served: _server.Served | None = None


@contextlib.contextmanager
def prepared(model: Any, preprocess: Any, input: Any, engine: str | None) -> Iterator[Prepared]:
    """Yield a model as a file, or a module as it is: if engine is "torch" or, without an engine, if it is on a GPU or cannot be exported."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, type) and issubclass(model, torch.nn.Module):
        raise Error(f"the model is the class {model.__name__}: make an object of it, {model.__name__}(...)")
    adapted = torch is not None and (isinstance(model, torch.jit.ScriptModule) or _adapters.is_program(model) or _adapters.is_keras(model))
    module = _export.unwrapped(model) if torch is not None and isinstance(model, torch.nn.Module) and not adapted else None
    found = _adapters.adapted(model) if module is None and not hasattr(model, "SerializeToString") else None
    if found is not None and engine != "onnx":
        with serving(found if not isinstance(found, _adapters.Batched) else model, input if input is not None else frame(preprocess)) as served:
            yield Prepared("", name_of(model), preprocess, served)
        return
    if module is None:
        if engine == "torch":
            raise Error(f'engine="torch" runs a torch.nn.Module, not {type(model).__name__}')
        yield prepare(model, preprocess, input)
        return
    _export.check_weights(module)
    on_gpu = next((p.device.type not in ("cpu", "meta") for p in module.parameters()), False)
    failed: Error | None = None
    if engine == "onnx" or engine is None and not on_gpu:
        try:
            exported = prepare(module, preprocess, input)
        except Error as e:
            if engine == "onnx" or isinstance(e, (_export.RandomError, _export.OutputError)):
                raise
            failed = e
        else:
            yield exported
            return
    with _torch.model(model, input if input is not None else frame(preprocess)) as served:
        if failed is not None:
            warnings.warn(f"noether: {failed}; so PyTorch runs the module itself", stacklevel=5)
        yield Prepared("", type(module).__name__.lower(), preprocess, served)


def name_of(model: Any) -> str:
    """Return the name of a model that is served."""
    return Path(model).stem if isinstance(model, (str, os.PathLike)) else str(getattr(model, "__name__", type(model).__name__)).lower()


@contextlib.contextmanager
def serving(model: Any, input: Any) -> Iterator[_server.Served]:
    """Yield a model that this process serves as it is. input is an example or the shape of a sample."""
    found = _adapters.adapted(model)
    if found is None:
        raise Error(f"a model is a torch.nn.Module, a file that a library runs, or a function of a batch, not {type(model).__name__}")
    if isinstance(found, _adapters.Batched):
        yield _adapters.Function(found, input)
        return
    with _torch.model(found, input) as served:
        yield served


def prepare(model: Any, preprocess: Any = None, input: Any = None) -> Prepared:
    """Return a model as a file, which a PyTorch module is exported to.

    preprocess is a preset's name or the keys of preprocess in a study.
    input is an example or the shape of one sample, for PyTorch modules.
    """
    if isinstance(model, str) and model.startswith(("torchvision:", "timm:")):
        library, _, name = model.partition(":")
        module, known = _torchvision(name) if library == "torchvision" else _timm(name)
        preprocess = preprocess if preprocess is not None else known
        return Prepared(str(_export.export(module, input if input is not None else frame(preprocess))), name, preprocess)
    if isinstance(model, str) and "://" in model:  # hf://org/name, https://...: the noether command downloads it
        repository = re.match(r"hf://[^/]+/([^/@]+)", model)
        return Prepared(model, repository[1] if repository else Path(model.partition("?")[0]).stem, preprocess)
    if isinstance(model, (str, os.PathLike)):
        path = Path(model).absolute()  # symbolic links are not resolved: weights and configuration are in the same folder
        if not path.exists():
            raise Error(f"there is no model at {model}")
        # NAME/model.onnx has the name NAME, and so has NAME/onnx/model.onnx, as on Hugging Face.
        above = path.parent.parent if path.parent.name == "onnx" else path.parent
        name = path.name if path.is_dir() else above.name if path.name == "model.onnx" and above.name else path.stem
        return Prepared(str(path), name, preprocess)
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return Prepared(_proto(model), model.graph.name or "model", preprocess)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        path = _export.export(model, input if input is not None else frame(preprocess))
        return Prepared(str(path), type(model).__name__.lower(), preprocess)
    raise Error(f"a model must be a path, 'hf://ORG/NAME', 'torchvision:NAME', 'timm:NAME', an onnx.ModelProto, a torch.nn.Module or a function of a batch, not {type(model).__name__}")


def frame(preprocess: Any) -> tuple[int, ...] | None:
    """Return channels, height and width of an image after preprocessing, or None if not known."""
    crops = {"imagenet": 224, "clip": 224, "cifar10": 32}  # pixels, by the preset's name
    crop: Any = None
    if isinstance(preprocess, str):
        crop = crops.get(preprocess)
    elif isinstance(preprocess, Mapping):
        crop = preprocess.get("crop", crops.get(str(preprocess.get("preset"))))
    if crop is None:
        return None
    height, width = (crop, crop) if isinstance(crop, int) else crop
    return (preprocess.get("channels", 3) if isinstance(preprocess, Mapping) else 3, height, width)


def inspect(path: str, images: Any = None) -> dict[str, Any]:
    """Return what "noether inspect --json" prints, for 224 x 224 pixels if the size is open.

    "suggested" is the preprocessing that "noether init" guesses for images, a path, if none is known.
    """
    return query("inspect", path, size=224, data=images)


def chosen_layers(found: Mapping[str, Any]) -> list[str] | None:
    """Return the layers that "noether init" chooses, or None for all layers.

    They are the outputs of a model's blocks, which have a role: the position in the network, such
    as "stage 2, block 1".
    """
    return [layer["name"] for layer in found["layers"] or [] if layer.get("role")] or None


def _proto(model: Any) -> str:
    try:
        raw = model.SerializeToString()
    except Exception as e:
        raise Error(f"the onnx.ModelProto cannot be written: {first_line(e)}; save it with external data and pass the path") from None
    with _cache.temporary("models") as folder:
        (folder / "model.onnx").write_bytes(raw)
        return str(_cache.keep("models", folder) / "model.onnx")


def _torchvision(name: str) -> tuple[Any, Any]:
    """Return a module with its default weights, and its preprocessing as the keys of a study."""
    require("torchvision", f"torchvision:{name} needs")
    from torchvision import models

    known = models.list_models()
    if name not in known:
        raise Error(f"torchvision has no model {name!r}{_export.near(name, known)}")
    weights = models.get_model_weights(name).DEFAULT
    try:
        module = models.get_model(name, weights=weights)
    except Exception as e:
        raise Error(f"torchvision:{name}: its weights cannot be loaded: {e}") from None
    return module, _preprocess.resolve(weights)


def _timm(name: str) -> tuple[Any, Any]:
    require("timm", f"timm:{name} needs")
    import timm.data

    try:
        module = timm.create_model(name, pretrained=True)
    except Exception as e:
        raise Error(f"timm:{name}: {first_line(e)}") from None
    return module, _preprocess.resolve(timm.data.resolve_data_config({}, model=module))
