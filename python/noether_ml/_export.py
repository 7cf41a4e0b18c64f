"""Export of PyTorch modules to ONNX models whose tensors have the names of the modules."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import difflib
import inspect
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _cache
from ._command import Error, call, first_line, require

# The largest difference between an exported file and its module, relative to the norm of a tensor.
# Rounding gives 1e-6 to 1e-4; a batch size that is fixed in the graph gives 0.1 and more.
TOLERANCE = 0.01

# The most bytes of outputs of modules that are compared, of those with the shortest names first.
COMPARED = 256 << 20


class RandomError(Error):
    """A module gives other outputs each time."""


class OutputError(Error):
    """A module returns no tensor."""


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Discard what Python, and what libraries in C print: a failing export prints its graph."""
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        kept = []
        for number in (1, 2):
            with contextlib.suppress(OSError):  # it is closed
                kept.append((number, os.dup(number)))
        _flush()
        for number, _ in kept:
            os.dup2(nothing.fileno(), number)
        try:
            yield
        finally:
            _flush()
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)


def _flush() -> None:
    """Write what libraries in C have buffered, and Python's own standard output."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # it is closed
            if stream is not None:
                stream.flush()
    if os.name != "nt":
        ctypes.CDLL(None).fflush(None)


def export(module: Any, input: Any = None) -> Path:
    """Export a module to the cache and return the file.

    input is a batch whose first sample is an example, or the shape of one sample. The exported model
    takes batches of any size. A tensor gets the name of the outermost module that computes and
    returns it. If that module is called again, "_1" is appended to the name, then "_2", and so on. Of
    a tuple the first tensor gets the name. A module in a type of 16 bits is exported in float32.
    Training mode and device of the module do not change.

    The file is compared with the module, at batches of one and three samples. If tracing fails, or its
    file differs from the module, PyTorch's exporter by dynamo writes it, with a warning that says why.
    """
    require("onnx", "exporting a torch.nn.Module needs")
    from . import _dynamo, _trace

    module = in_float32(unwrapped(module))
    check_weights(module)
    example = _example(module, input)
    with uncompiled(module), called(module, example) as names:
        check_random(module, example)
        try:
            return _kept(module, example, names, _trace.write)
        except Error as e:
            if not _dynamo.available():
                raise
            traced = e
        try:
            path = _kept(module, example, names, _dynamo.write)
        except Error as e:
            raise Error(f"{traced}; by dynamo: {str(e).removeprefix(type(module).__name__ + ' ')}") from None
        warnings.warn(f"noether: {traced}; so dynamo exported it, and layers have the names that its file gives", stacklevel=2)
        return path


def _kept(module: Any, example: Any, names: list[str], write: Callable[..., None]) -> Path:
    """Write a file to the cache, compare it with the module, and return it. names are those of the outputs."""
    with _cache.temporary("models") as folder:
        path = folder / "model.onnx"
        write(module, example, names, path)
        _compare(module, example, path)
        return _cache.keep("models", folder) / "model.onnx"


def unwrapped(module: Any) -> Any:
    """Return the module inside wrappers for several devices or for compilation."""
    import torch

    while True:
        if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            break
    if isinstance(module, torch.jit.ScriptModule):
        raise Error("a scripted or traced module no longer has the calls of its modules: pass the torch.nn.Module itself, or export it to ONNX and pass the file")
    return module


def hookable(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the modules inside a module that take hooks, with their names: scripted ones take none."""
    import torch

    return ((name, m) for name, m in module.named_modules() if name and not isinstance(m, torch.jit.ScriptModule))


@contextlib.contextmanager
def uncompiled(module: Any) -> Iterator[Callable[[bool], None] | None]:
    """Let modules inside a module that torch.compile has compiled run as they are, so that their layers can be read.

    Yields a function that says whether they run compiled until its next call; None if there are none.
    """
    children = [(m, name, child) for m in module.modules() for name, child in m._modules.items() if hasattr(child, "_orig_mod")]
    compiled_calls = [(m, m._compiled_call_impl) for m in module.modules() if getattr(m, "_compiled_call_impl", None) is not None]

    def switch(compiled: bool) -> None:
        for m, name, child in children:
            m._modules[name] = child if compiled else child._orig_mod
        for m, compiled_call in compiled_calls:
            m._compiled_call_impl = compiled_call if compiled else None

    switch(False)
    try:
        yield switch if children or compiled_calls else None
    finally:
        switch(True)


def check_weights(module: Any) -> None:
    """Raise an error if a module has parameters without values."""
    import torch

    values = [*module.parameters(), *module.buffers()]
    if any(torch.nn.parameter.is_lazy(v) for v in values):
        raise Error(f"{type(module).__name__} has lazy modules without weights: call it once on a batch, or load its weights")
    loads = any(hasattr(m, "_hf_hook") for m in module.modules())  # accelerate loads weights when they are used
    if not loads and any(v.device.type == "meta" for v in values):
        raise Error(f"{type(module).__name__} has parameters on the device meta, which have no values: load its weights")


def in_float32(module: Any) -> Any:
    """Return a module, or its copy in float32 if it has weights of 16 bits, which ONNX Runtime lacks operators for."""
    import torch

    if not any(v.dtype in (torch.float16, torch.bfloat16) for v in [*module.parameters(), *module.buffers()]):
        return module
    try:
        return copy.deepcopy(module).float()
    except Exception as e:
        raise Error(f"{type(module).__name__} cannot be copied to float32: {first_line(e)}") from None


def _example(module: Any, input: Any) -> Any:
    """Return a batch of two samples on the module's device.

    They are made from the first sample of input or, if input is no tensor, at random.
    """
    import torch

    values = [*module.parameters(), *module.buffers()]
    device = values[0].device if values else torch.device("cpu")
    dtype = next((v.dtype for v in values if v.is_floating_point()), torch.float32)
    if isinstance(input, torch.Tensor):
        one = input.detach()[:1]
        one = one.to(device, dtype) if one.is_floating_point() else one.to(device)
        return torch.cat([one, one.flip(-1)])
    shape = tuple(input or image_shape(module) or (3, 224, 224))
    generator = torch.Generator().manual_seed(1)
    return torch.rand((2, *shape), generator=generator).to(device=device, dtype=dtype)


def image_shape(module: Any) -> tuple[int, int, int] | None:
    """Return channels, height and width of the images that a module of timm or transformers says it takes, or None."""
    known = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    size = known.get("input_size") if isinstance(known, Mapping) else getattr(known, "input_size", None)
    if size is not None and len(size) == 3:
        return (int(size[0]), int(size[1]), int(size[2]))
    config = getattr(module, "config", None)
    for part in (config, getattr(config, "vision_config", None), getattr(config, "backbone_config", None)):
        side = getattr(part, "image_size", None)
        if side:
            height, width = (side, side) if isinstance(side, int) else side
            return (int(getattr(part, "num_channels", 3)), int(height), int(width))
    return None


@contextlib.contextmanager
def called(module: Any, example: Any) -> Iterator[list[str]]:
    """Let a module take one tensor, and return a tensor or a tuple of tensors.

    Yields the list of the names of these tensors, which each call sets.

    Other parameters keep their defaults: the exporter would make inputs of them. The tensor is passed
    as the module's main input (transformers), else as pixel_values or input_values if it has such a
    parameter, else as the first.
    """
    forward = module.forward
    key = _parameter(module, forward, example)
    output = output_name(module)
    names: list[str] = []

    def one(x: Any) -> Any:
        names.clear()
        found: list[Any] = []
        for name, value in outputs(forward(x) if key is None else forward(**{key: x}), output):
            if not any(value is other for other in found):
                found.append(value)
                names.append(name)
        if not found:
            raise OutputError(f"{type(module).__name__} returns no tensor, alone or in tuples, dicts and data classes")
        return found[0] if len(found) == 1 else tuple(found)

    own = module.__dict__.get("forward")
    module.forward = one
    try:
        yield names
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def _parameter(module: Any, forward: Callable[..., Any], example: Any) -> str | None:
    """Return the parameter that takes the samples, or None for the first one. Others must have defaults."""
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):
        return None
    named = {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    wanted = [str(getattr(module, "main_input_name", ""))]
    if example.is_floating_point():
        wanted = ["pixel_values", "pixel_values_videos", "input_values", "input_features", *wanted]
    key = next((w for w in wanted if w in named), None)
    if key is None and not any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values()):
        key = next(iter(named), None)
    first = next((n for n, p in parameters.items() if p.kind is not p.VAR_KEYWORD), None)
    others = [n for n, p in parameters.items()
              if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and n != (key or first)]
    if others:
        raise Error(f"{type(module).__name__} takes {key or first} and also needs {', '.join(others)}: "
                    "pass a module that takes one tensor, and gives the others constant values")
    return key


def output_name(module: Any) -> str:
    """Return the name of a module's output, which no module inside it has."""
    return "result" if any(name.split(".")[0] == "output" for name, _ in module.named_modules()) else "output"


def apply(module: Any, x: Any, compiled: Any = None) -> Any:
    """Return what a module, or what torch.compile has made of it, returns for a batch. It gets a copy, to which it may write."""
    key = _parameter(module, module.forward, x)
    call = compiled or module
    return call(x.clone()) if key is None else call(**{key: x.clone()})


def outputs(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of what a module returns, also in tuples, dicts and data classes, with their names."""
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from outputs(item, f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from outputs(item, f"{name}.{getattr(value, '_fields', range(len(value)))[i]}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from outputs(getattr(value, field.name), f"{name}.{field.name}")


def check_random(module: Any, example: Any) -> None:
    """Raise an error if a module gives other outputs each time, naming the innermost module that does."""
    import torch

    with _evaluating(module), _without_fast_path(module, example) as example, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first, second = _module_outputs(module, example), _module_outputs(module, example)
        except Error:
            raise
        except Exception as e:
            raise Error(f"{type(module).__name__} fails on a batch of {tuple(example.shape)}: {first_line(e)}") from None
    for name, value in first.items():  # in the order in which the modules end
        other = second.get(name)
        if other is None or value.shape != other.shape or not torch.allclose(value, other, rtol=1e-3, atol=1e-5, equal_nan=True):
            where = "its output" if name.startswith("output ") else f"the output of {name}"
            raise RandomError(f"{type(module).__name__} is random in evaluation mode: {where} differs from call to call; "
                              "look in forward for a dropout without training=self.training, for torch.rand or torch.randn, and for buffers that each call changes")


def _module_outputs(module: Any, x: Any) -> dict[str, Any]:
    """Return the floats that the modules inside return, by name, and those of the module itself.

    They are limited to COMPARED bytes.
    """
    import torch

    from ._torch import hooked

    found: dict[str, Any] = {}
    left = COMPARED

    def keep(name: str, value: Any, _kind: str) -> None:
        nonlocal left
        size = value.numel() * value.element_size()
        if value.is_floating_point() and size <= left:
            left -= size
            found[name] = value.detach().clone()

    with torch.no_grad(), hooked(module, None, keep):
        out = apply(module, x)
    for i, (_, value) in enumerate(outputs(out, "")):
        if value.is_floating_point():
            found[f"output {i}"] = value.detach()
    return found


def _compare(module: Any, example: Any, path: Path) -> None:
    """Raise an error if an exported file does not compute what its module does."""
    import onnx
    import torch

    numpy = require("numpy", "exporting a torch.nn.Module needs")

    graph = onnx.load(str(path), load_external_data=False).graph
    tensors = {x for n in graph.node for x in n.output}
    ends = [o.name for o in graph.output]
    batches = [example[:1], torch.cat([example, example[:1]])]
    with _evaluating(module), _without_fast_path(module, example), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = [_module_outputs(module, x) for x in batches]
        except Exception as e:
            raise Error(f"{type(module).__name__} fails on a batch of another size: {first_line(e)}") from None
    tensor = {f"output {i}": name for i, name in enumerate(ends)}
    asked = [key for key in wanted[1] if key in wanted[0] and tensor.get(key, key) in tensors]
    names = list(dict.fromkeys(tensor.get(key, key) for key in asked))
    with _cache.temporary("models") as folder:
        for i, x in enumerate(batches):
            numpy.save(folder / f"{i}.npy", x.detach().cpu().numpy())
        request = {"model": str(path), "inputs": [str(folder / f"{i}.npy") for i in range(2)], "tensors": names, "out": str(folder)}
        (folder / "request.json").write_text(json.dumps(request), "utf-8")
        try:
            call(["forward", str(folder / "request.json")])
        except Error as e:
            text = first_line(e).replace(str(folder) + "/", "").replace(str(path), "the file")
            raise Error(f"{type(module).__name__} was exported wrongly: the file fails for batches of 1 or 3 samples: {text:.200}") from None
        for key in asked:
            for i, x in enumerate(batches):
                got = torch.from_numpy(numpy.load(folder / f"{i}-{names.index(tensor.get(key, key))}.npy"))
                want = wanted[i][key].float().cpu()
                error = _difference(got, want)
                if not error <= TOLERANCE:
                    what = f"output {ends[int(key[7:])]}" if key in tensor else f"layer {key}"
                    raise Error(f"{type(module).__name__} was exported wrongly: for a batch of {len(x)}, {what} differs by {error:.0%} from the "
                                "module's (code that uses the number of samples, NumPy or Python's numbers becomes a constant)")
    warn_of_batch(module, *([found[key] for key in wanted[0] if key.startswith("output ") and key in wanted[1]] for found in wanted))


def warn_of_batch(module: Any, alone: Sequence[Any], together: Sequence[Any]) -> None:
    """Warn if the outputs for one sample differ from those for it as the first of several."""
    for one, several in zip(alone, together):
        batched = one.dim() > 0 and one.shape[1:] == several.shape[1:] and len(one) == 1 < len(several)
        if batched and not (error := _difference(several[:1].float().cpu(), one.float().cpu())) <= TOLERANCE:
            warnings.warn(f"noether: {type(module).__name__} gives another output for a sample that is alone (by {error:.0%}): its scores depend on the "
                          "other samples of a batch; look for statistics of the batch or its size in forward", stacklevel=2)
            return


def _difference(got: Any, want: Any) -> float:
    """Return the norm of the difference of two tensors relative to that of the second, at most 1 for shapes that differ."""
    if got.shape != want.shape:
        return 1.0
    if not want.numel():
        return 0.0
    same = (got == want) | (got.isnan() & want.isnan())
    difference = (got - want).masked_fill(same, 0)
    scale = want.masked_fill(~want.isfinite(), 0).norm()
    return float(difference.norm() / max(scale, 1e-6 * want.numel() ** 0.5))


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Set a module to evaluation mode, and restore the mode and the buffers of each of its modules at the end."""
    import torch

    modes = [(m, m.training) for m in module.modules()]
    buffers = [(m, name, b, b.detach().clone()) for m in module.modules() for name, b in m._buffers.items() if b is not None]
    module.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training
        for m, name, buffer, before in buffers:
            m._buffers[name] = buffer
            if not torch.equal(buffer, before) and not buffer.is_inference():
                buffer.data.copy_(before)


@contextlib.contextmanager
def _without_fast_path(module: Any, example: Any) -> Iterator[Any]:
    """Prevent attention from using PyTorch's fast path, a fused operator that ONNX does not have.

    Yields the example to use. If PyTorch has no switch for the fast path, the example requires
    gradients, which also prevents it.
    """
    import torch

    attends = any(isinstance(m, (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer)) for m in module.modules())
    switch = getattr(torch.backends, "mha", None)
    if attends and switch is not None:
        before = switch.get_fastpath_enabled()
        switch.set_fastpath_enabled(False)
        try:
            with torch.no_grad():
                yield example
        finally:
            switch.set_fastpath_enabled(before)
    elif attends:
        with torch.enable_grad():
            yield example.clone().requires_grad_(True)
    else:
        with torch.no_grad():
            yield example


def near(name: str, names: Sequence[str]) -> str:
    """Return a suggestion of similar names for an error message, or an empty string."""
    found = difflib.get_close_matches(name, names, 3)
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""
