"""Models that are no modules of PyTorch as models that the server serves: each as a function of a batch."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import _functions
from ._command import Error, first_line, require
from ._server import DATATYPES, Model, Port, Room


class Batched(NamedTuple):
    """A function of a batch, a NumPy array, that returns an array, or a dict or a tuple of arrays."""

    call: Callable[[Any], Any]
    shape: Sequence[Any] | None  # of a sample, with None for any size; None: the caller must know it
    dtype: str
    digest: str
    outputs: Sequence[str] = ()  # names of those arrays that are outputs; the others are layers. (): all are


class Function:
    """A function of a batch as a model. The names of its arrays are those of its layers."""

    independent = True  # samples should have the values that they have alone

    def __init__(self, function: Batched, input: Any) -> None:
        import numpy

        self._function = function
        given = input.shape[1:] if hasattr(input, "shape") else input
        shape = function.shape if function.shape is not None else given
        if shape is not None and None in shape and given is not None and len(given) == len(shape) == 3:  # of any size
            height, width = given[-2:]
            shape = (height, width, shape[2]) if shape[0] is None else (shape[0], height, width)
        if shape is None or None in shape:
            raise Error("the shape of the input is not known: give input=(3, 224, 224), or let the function have an attribute input")
        self.inputs = [Port("input", DATATYPES[function.dtype], (-1, *map(int, shape)))]
        self.digest = hashlib.sha256(f"{function.digest} {tuple(shape)}".encode()).hexdigest()
        x = numpy.random.default_rng(1).random((2, *shape)).astype(function.dtype)
        one, two = self._run(x[:1]), self._run(x)

        def port(name: str) -> Port:
            a, b = one[name].shape, two[name].shape
            batched = a[:1] == (1,) and b[:1] == (2,) and a[1:] == b[1:]
            return Port(name, "FP32", (-1, *b[1:]) if batched else b)

        ports = [port(name) for name in two if name in one]
        self.outputs = [p for p in ports if not function.outputs or p.name in function.outputs]
        self.layers = [p for p in ports if p not in self.outputs]

    def _run(self, x: Any) -> dict[str, Any]:
        import numpy

        try:
            found = self._function.call(x)
        except Exception as e:
            raise Error(f"the model fails on a batch of {x.shape}: {type(e).__name__}: {first_line(e)}") from None
        if isinstance(found, (tuple, list)):
            found = {f"output.{i}": a for i, a in enumerate(found)}
        if not isinstance(found, Mapping):
            found = {"output": found}
        try:
            return {str(name): numpy.asarray(a.detach().float().cpu() if hasattr(a, "detach") else a, numpy.float32) for name, a in found.items()}
        except (TypeError, ValueError):
            raise Error(f"the model returns {type(next(iter(found.values()), None)).__name__}s that hold no numbers: an array, or a tuple or a dict of arrays, is needed") from None

    def infer(self, inputs: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], room: Room) -> None:
        found = self._run(inputs["input"].copy())
        for name in wanted:
            if name in found:
                room(name, found[name].shape)[...] = found[name]

    def default_layers(self) -> list[str]:
        return [p.name for p in [*self.layers, *self.outputs] if p.shape[:1] == (-1,)]

    def derivatives(self) -> Mapping[str, Model]:
        return {}


def is_program(model: Any) -> bool:
    """Return whether a model is a torch.export.ExportedProgram, which PyTorch has since version 2.1."""
    program = getattr(getattr(sys.modules.get("torch"), "export", None), "ExportedProgram", None)
    return program is not None and isinstance(model, program)


def is_keras(model: Any) -> bool:
    """Return whether a model is one of Keras, which with its backend torch is a torch.nn.Module too."""
    return any(c.__module__.startswith("keras.") and c.__name__ == "Model" for c in type(model).__mro__)


def adapted(model: Any) -> Any:
    """Return a model as a torch.nn.Module or as Batched; None if it is neither, nor can become one."""
    torch = sys.modules.get("torch")
    if any(c.__module__.startswith("transformers.pipelines.") for c in type(model).__mro__):
        raise Error("a pipeline of transformers returns texts: pass its model (pipe.model) and preprocess=pipe.image_processor, or pipe.feature_extractor")
    if isinstance(model, (str, os.PathLike)):
        load = _FILES.get(Path(model).suffix)
        return load(Path(model)) if load is not None and "://" not in str(model) else None
    if torch is not None and isinstance(model, torch.jit.ScriptModule):
        return _scripted(model, _of_weights(model.state_dict(), torch.__version__, str(model.code)))
    if is_program(model):
        return sys.modules["torch"].export.unflatten(model)
    if is_keras(model):
        return _keras(model)
    if torch is not None and isinstance(model, torch.nn.Module):
        return model
    if callable(model):
        return Batched(model, getattr(model, "input", None), "float32", _functions._digest(model))
    return None


def _of_file(path: Path, version: str) -> str:
    if not path.is_file():
        raise Error(f"there is no model at {path}")
    return hashlib.sha256(path.read_bytes() + version.encode()).hexdigest()


def _of_weights(weights: Mapping[str, Any], *texts: str) -> str:
    sum = hashlib.sha256("\n".join(texts).encode())
    for name, w in sorted(weights.items()):
        sum.update(name.encode())
        sum.update(w.cpu().contiguous().numpy().tobytes() if hasattr(w, "cpu") else w.tobytes())
    return sum.hexdigest()


def _exported(path: Path) -> Any:
    torch = require("torch", f"{path.name} needs")
    _of_file(path, "")
    if not hasattr(getattr(torch, "export", None), "load"):
        raise Error(f"{path.name} needs PyTorch 2.1 or later, and this is {torch.__version__}")
    return torch.export.unflatten(torch.export.load(path))


def _torchscript(path: Path) -> Batched:
    torch = require("torch", f"{path.name} needs")
    digest = _of_file(path, torch.__version__)
    try:
        return _scripted(torch.jit.load(path, map_location="cpu"), digest)
    except RuntimeError:
        raise Error(f"{path} is no scripted module, but weights or a pickled object: load it, and pass the torch.nn.Module") from None


def _scripted(module: Any, digest: str) -> Batched:
    """A scripted module runs as it is: of its layers there are no hooks."""
    import torch

    device = next((p.device for p in module.parameters()), torch.device("cpu"))

    def numpy(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: numpy(v) for k, v in value.items()}
        return tuple(map(numpy, value)) if isinstance(value, (tuple, list)) else value.float().cpu().numpy()

    def call(x: Any) -> Any:
        with torch.no_grad():
            return numpy(module.eval()(torch.from_numpy(x).to(device)))

    return Batched(call, None, "float32", digest)


def _tflite(path: Path) -> Batched:
    import numpy

    litert = require("ai_edge_litert.interpreter", f"{path.name} needs ai-edge-litert, and")
    interpreter = litert.Interpreter(str(path))
    interpreter.allocate_tensors()
    taken, = interpreter.get_input_details()

    def quantised(x: Any) -> Any:
        scale, zero = taken["quantization"]
        bounds = numpy.iinfo(taken["dtype"]) if scale else None
        return (x / scale + zero).round().clip(bounds.min, bounds.max).astype(taken["dtype"]) if bounds else x

    def real(a: Any, detail: Mapping[str, Any]) -> Any:
        scale, zero = detail["quantization"]
        return (a.astype("float32") - zero) * scale if scale else a

    def call(x: Any) -> dict[str, Any]:
        interpreter.resize_tensor_input(taken["index"], x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(taken["index"], quantised(x))
        interpreter.invoke()
        return {d["name"]: real(interpreter.get_tensor(d["index"]), d) for d in interpreter.get_output_details()}

    dtype = "float32" if taken["quantization"][0] else numpy.dtype(taken["dtype"]).name
    return Batched(call, taken["shape"][1:], dtype, _of_file(path, "litert"))


def _openvino(path: Path) -> Batched:
    openvino = require("openvino", f"{path.name} needs")
    core = openvino.Core()
    graph = core.read_model(path)
    taken = graph.input(0)
    shape = taken.get_partial_shape()
    shape[0] = -1
    graph.reshape(shape)
    compiled = core.compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    names = [o.get_any_name() if o.get_names() else f"output.{i}" for i, o in enumerate(compiled.outputs)]

    def call(x: Any) -> dict[str, Any]:
        found = compiled(x)
        return {name: found[i] for i, name in enumerate(names)}

    weights = path.with_suffix(".bin")
    digest = _of_file(path, openvino.__version__ + (_of_file(weights, "") if weights.exists() else ""))
    return Batched(call, [d.get_length() for d in list(shape)[1:]], taken.get_element_type().to_dtype().name, digest, names)


def _keras_file(path: Path) -> Batched:
    keras = require("keras", f"{path.name} needs")
    return _keras(keras.saving.load_model(path))


def _keras(model: Any) -> Batched:
    """Layers of a functional model are its outputs too; a subclass has its own outputs alone."""
    keras = require("keras", "a model of Keras needs")
    layers = {x.name: x.output for x in model.layers if not isinstance(x, keras.layers.InputLayer) and hasattr(x, "output")} if model.inputs else {}
    outputs = list(model.output_names) if model.inputs else []
    whole = keras.Model(model.inputs, layers) if layers else model

    def call(x: Any) -> Any:
        return keras.tree.map_structure(keras.ops.convert_to_numpy, whole(x, training=False))

    weights = {f"{i} {w.path}": keras.ops.convert_to_numpy(w) for i, w in enumerate(model.weights)}
    digest = _of_weights(weights, keras.__version__, keras.backend.backend(), model.to_json() if model.inputs else repr(type(model)))
    return Batched(call, model.input_shape[1:] if model.inputs else None, "float32", digest, outputs)


_FILES: dict[str, Callable[[Path], Any]] = {".pt2": _exported, ".pt": _torchscript, ".ts": _torchscript, ".tflite": _tflite, ".xml": _openvino,
                                           ".keras": _keras_file}
