"""Export of PyTorch modules to ONNX models whose tensors have the names of the modules."""

from __future__ import annotations

import contextlib
import difflib
import re
import warnings
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from . import _cache
from ._command import Error, first_line, require

# Domain and type of the ONNX operator that marks the output of a module while it is exported.
MARK = ("noether", "ModuleOutput")


def export(module: Any, input: Any = None) -> Path:
    """Export a module to the cache and return the file.

    input is a batch whose first sample is an example, or the shape of one sample. The exported model
    takes batches of any size. The tensor that a module inside returns gets the name of that module.
    If that module is called again, "_1" is appended to the name, then "_2", and so on. Of a tuple the
    first tensor gets the name. Training mode and device of the module do not change.
    """
    onnx = require("onnx", "exporting a torch.nn.Module needs")
    module = unwrapped(module)
    example = _example(module, input)
    with _cache.temporary("models") as folder:
        path = folder / "model.onnx"
        graph, branches = _trace(module, example, path, onnx)
        if branches:
            _check_branches(module, example, branches)
        _rename(graph)
        onnx.save(graph, str(path))
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
        return torch.cat([one, one.flip(-1)]).to(device)
    shape = tuple(input or (3, 224, 224))
    generator = torch.Generator().manual_seed(1)
    return torch.rand((2, *shape), generator=generator).to(device=device, dtype=dtype)


def _trace(module: Any, example: Any, path: Path, onnx: Any) -> tuple[Any, list[str]]:
    """Export a module. Return the model, and the lines of code that depend on values of tensors."""
    import inspect

    import torch

    options: dict[str, Any] = {}  # newer versions of PyTorch need dynamo=False for the exporter by tracing
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    with _evaluating(module), _marked(module), _without_fast_path(module, example) as example, \
            warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            names = _outputs(module(example))
            axes = {name: {0: "batch"} for name in ["input", *names]}
            # With TrainingMode.PRESERVE batch normalisation is not folded into the convolution before it.
            torch.onnx.export(module, (example,), str(path), input_names=["input"], output_names=names, dynamic_axes=axes,
                              training=torch.onnx.TrainingMode.PRESERVE, custom_opsets={MARK[0]: 1}, **options)
        except Error:
            raise
        except Exception as e:
            raise Error(f"{type(module).__name__} cannot be exported to ONNX: {first_line(e)}") from None
    branches = [f"{Path(w.filename).name}:{w.lineno}" for w in caught
                if w.category.__name__ == "TracerWarning" and re.search("boolean|number|float|integer|index", str(w.message))]
    return onnx.load(str(path), load_external_data=False), branches


def _outputs(value: Any) -> list[str]:
    """Return a name for each tensor among the outputs, in the order of the exporter."""
    import torch

    if isinstance(value, torch.Tensor):
        return ["output"]
    items = list(value.items()) if isinstance(value, MutableMapping) else list(enumerate(value)) if isinstance(value, (list, tuple)) else []
    names: list[str] = []
    for key, item in items:
        inner = _outputs(item) if item is not None else []
        names += [f"output.{key}{rest[len('output'):]}" for rest in inner]
    if not names:
        raise Error(f"the module returns {type(value).__name__}, which contains no tensor")
    return names


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Set a module to evaluation mode, and restore the mode of each of its modules at the end."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training


@contextlib.contextmanager
def _marked(module: Any) -> Iterator[None]:
    """Mark the outputs of all modules inside a module."""
    import torch

    class Mark(torch.autograd.Function):  # type: ignore[misc]  # of an optional package
        @staticmethod
        def forward(ctx: Any, x: Any, name: str) -> Any:
            return x.view_as(x)

        @staticmethod
        def symbolic(g: Any, x: Any, name: str) -> Any:
            y = g.op("::".join(MARK), x, name_s=name)  # _s: the attribute name is a string
            y.setType(x.type())
            return y

    def mark(value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            return Mark.apply(value, name) if value.is_floating_point() else value
        if type(value) in (tuple, list) and value:
            return type(value)([mark(value[0], name), *value[1:]])
        if isinstance(value, MutableMapping) and value:
            first = next(iter(value))
            value[first] = mark(value[first], name)
        return value

    hooks = [m.register_forward_hook(lambda _m, _in, out, name=name: mark(out, name))
             for name, m in module.named_modules() if name]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


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


def _check_branches(module: Any, example: Any, branches: Sequence[str]) -> None:
    """Raise an error if the graph depends on input values, since an exported graph has no branches.

    branches are the lines of code ("file:line") that may cause this, from _trace.
    """
    import torch

    graphs = set()
    with _evaluating(module), _without_fast_path(module, example) as example, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in (1, 100, -100):  # of the example: small, large and negative values
            try:
                graph = torch.jit.trace(module, scale * example, check_trace=False, strict=False).inlined_graph
            except Exception as e:
                raise Error(f"{type(module).__name__} cannot be exported to ONNX: {first_line(e)}") from None
            graphs.add(re.sub(r"__torch__[\w.]*", "", str(graph)))  # the names of classes differ from trace to trace
    if len(graphs) > 1:
        raise Error(f"{type(module).__name__} cannot be exported to ONNX: its operations depend on the values of the input, at {branches[0]}")


def _rename(model: Any) -> None:
    """Replace marks by names: tensors get the names of the modules that return them.

    If several modules return the same tensor, it gets the name of the outermost. For the others there
    are copies, which no other node reads.
    """
    graph = model.graph
    marks = [n for n in graph.node if (n.domain, n.op_type) == MARK]
    fixed = {x.name for x in [*graph.input, *graph.output, *graph.initializer]}
    taken = fixed | {name for n in graph.node for name in n.output}
    source = {n.output[0]: n.input[0] for n in marks}

    def root(name: str) -> str:  # the tensor before all marks
        while name in source:
            name = source[name]
        return name

    names: dict[str, list[str]] = {}  # of modules, by the tensor that they return
    for n in marks:
        module_name, count = n.attribute[0].s.decode(), 0
        name = module_name
        while name in taken:
            count += 1
            name = f"{module_name}_{count}"
        taken.add(name)
        names.setdefault(root(n.input[0]), []).append(name)
    final = {t: t if t in fixed else given[-1] for t, given in names.items()}
    outputs = {x.name for x in graph.output}
    for t in {n.output[0] for n in marks} & outputs:  # a module's output is the model's
        final[root(t)] = t
    _rename_tensors(graph, lambda name: final.get(root(name), root(name)))
    kept = [n for n in graph.node if (n.domain, n.op_type) != MARK]
    kept += [_identity(final[t], name) for t, given in names.items() for name in given if name != final[t]]
    kept += [_identity(root(t), t) for t in outputs - {name for n in kept for name in n.output}]
    del graph.node[:]
    graph.node.extend(kept)
    del graph.value_info[:]
    for i, o in reversed(list(enumerate(model.opset_import))):
        if o.domain == MARK[0]:
            del model.opset_import[i]


def _identity(source: str, name: str) -> Any:
    import onnx

    return onnx.helper.make_node("Identity", [source], [name], name=name)


def _rename_tensors(graph: Any, new_name: Any) -> None:
    """Rename the inputs and outputs of the nodes of a graph and of its subgraphs, except marks.

    new_name returns the new name of a tensor.
    """
    for n in graph.node:
        if (n.domain, n.op_type) == MARK:
            continue
        for tensors in (n.input, n.output):
            tensors[:] = [new_name(x) if x else x for x in tensors]
        for a in n.attribute:
            for inner in [a.g, *a.graphs] if a.HasField("g") or a.graphs else []:
                _rename_tensors(inner, new_name)
                for out in inner.output:
                    out.name = new_name(out.name)


def near(name: str, names: Sequence[str]) -> str:
    """Return a suggestion of similar names for an error message, or an empty string."""
    found = difflib.get_close_matches(name, names, 3)
    return f" (did you mean {' or '.join(map(repr, found))}?)" if found else ""
