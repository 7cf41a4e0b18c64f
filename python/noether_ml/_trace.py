"""Export of modules by tracing, to graphs whose tensors have the names of the modules."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from . import _export
from ._command import Error, first_line

# Domain and type of the ONNX operator that marks the output of a module while it is exported.
MARK = ("noether", "ModuleOutput")


def write(module: Any, example: Any, names: list[str], path: Path) -> None:
    """Write the graph of a module to a file. names are those of the outputs."""
    import onnx

    branches = _trace(module, example, names, path)
    if branches:
        _check_branches(module, example, branches)
    model = onnx.load(str(path), load_external_data=False)
    _rename(model, {name for name, _ in module.named_modules()})
    onnx.save(model, str(path))


def _trace(module: Any, example: Any, names: list[str], path: Path) -> list[str]:
    """Write a graph with marks, and return the lines of code that depend on values of tensors."""
    import torch

    options: dict[str, Any] = {}  # newer versions of PyTorch need dynamo=False for the exporter by tracing
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    with _export._evaluating(module), _marked(module), _export._without_fast_path(module, example) as example, \
            _export.silenced(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            axes = {name: {0: "batch"} for name in ["input", *names]}
            # With TrainingMode.PRESERVE batch normalisation is not folded into the convolution before it.
            torch.onnx.export(module, (example,), str(path), input_names=["input"], output_names=names, dynamic_axes=axes,
                              training=torch.onnx.TrainingMode.PRESERVE, custom_opsets={MARK[0]: 1}, **options)
        except Error:
            raise
        except Exception as e:
            reason = first_line(e).partition("  [Caused by")[0]  # which is followed by part of the graph
            raise Error(f"{type(module).__name__} cannot be exported to ONNX: {reason}") from None
    return [f"{Path(w.filename).name}:{w.lineno}" for w in caught
            if w.category.__name__ == "TracerWarning" and re.search("boolean|number|float|integer|index", str(w.message))]


@contextlib.contextmanager
def _marked(module: Any) -> Iterator[None]:
    """Mark the outputs of all modules inside a module."""
    import torch

    class Mark(torch.autograd.Function):  # type: ignore[misc]  # of an optional package
        @staticmethod
        def forward(ctx: Any, x: Any, name: str, entered: int, left: int) -> Any:
            return x.view_as(x)

        @staticmethod
        def symbolic(g: Any, x: Any, name: str, entered: int, left: int) -> Any:
            y = g.op("::".join(MARK), x, name_s=name, entered_i=entered, left_i=left)  # _s: a string, _i: an integer
            y.setType(x.type())
            return y

    def mark(value: Any, *when: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Mark.apply(value, *when) if value.is_floating_point() else value
        if type(value) in (tuple, list) and value:
            return type(value)([mark(value[0], *when), *value[1:]])
        if isinstance(value, MutableMapping) and value:
            first = next(iter(value))
            value[first] = mark(value[first], *when)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type) and dataclasses.fields(value):
            first = dataclasses.fields(value)[0].name
            value = dataclasses.replace(value, **{first: mark(getattr(value, first), *when)})
        return value

    clock = itertools.count()
    entered: list[int] = []  # when the calls began that have not ended
    hooks = []
    for name, m in _export.hookable(module):
        hooks.append(m.register_forward_pre_hook(lambda _m, _in: entered.append(next(clock))))
        hooks.append(m.register_forward_hook(lambda _m, _in, out, name=name: mark(out, name, entered.pop(), next(clock))))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _check_branches(module: Any, example: Any, branches: Sequence[str]) -> None:
    """Raise an error if the graph depends on input values, since an exported graph has no branches.

    branches are the lines of code ("file:line") that may cause this, from _trace.
    """
    import torch

    graphs = set()
    with _export._evaluating(module), _export._without_fast_path(module, example) as example, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in (1, 100, -100, 0):  # of the example: small, large, negative and no values
            try:
                graph = torch.jit.trace(module, scale * example, check_trace=False, strict=False).inlined_graph
            except Exception as e:
                raise Error(f"{type(module).__name__} cannot be exported to ONNX: {first_line(e)}") from None
            graphs.add(re.sub(r"__torch__[\w.]*", "", str(graph)))  # the names of classes differ from trace to trace
    if len(graphs) > 1:
        raise Error(f"{type(module).__name__} cannot be exported to ONNX: its operations depend on the values of the input, at {branches[0]}")


def _rename(model: Any, modules: set[str]) -> None:
    """Replace marks by names: tensors get the names of the modules that return them.

    If several modules return the same tensor, it gets the name of the outermost of those that it is
    computed in: a module that was entered after another one returned the tensor only passes it on.
    For the others there are copies, which no other node reads.
    """
    import onnx

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
    final: dict[str, str] = {}
    returned: dict[str, int] = {}  # when the first module returned a tensor
    for n in marks:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        module_name, count = attributes["name"].decode(), 0
        name = module_name
        while name in taken:
            count += 1
            name = f"{module_name}_{count}"
        taken.add(name)
        t = root(n.input[0])
        names.setdefault(t, []).append(name)
        if attributes["entered"] < returned.setdefault(t, attributes["left"]):
            final[t] = t if t in fixed else name
    outputs = {x.name for x in graph.output}
    for t in {n.output[0] for n in marks} & outputs:  # a module's output is the model's
        final[root(t)] = t
    _name_reshaped(graph, root, final, taken)
    _name_inside(graph, modules, final, taken)
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


# Operators that only change the shape of a tensor, and those that take a part, a mean or a maximum of it.
_RESHAPING = ("Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_REDUCING = ("Gather", "ReduceMax", "ReduceMean", "Slice")
# Functions that a module calls between its own modules, and operators of several tensors.
_FUNCTIONS = ("AveragePool", "Clip", "Elu", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LeakyRelu", "MaxPool", "Relu", "Sigmoid", "Softmax", "Tanh")
_JOINING = ("Add", "Concat")


def _name_reshaped(graph: Any, root: Callable[[str], str], final: dict[str, str], taken: set[str]) -> None:
    """Name tensors next to a module's output: the name of the module and the type of operator, such as "pool.flatten".

    They are copies of it in another shape, parts and means of it, and the tensors that a module only
    reshapes before it returns them. What the outermost module itself computes of them, as by
    torch.nn.functional, is named too: no module has its name.
    """
    nodes = [n for n in graph.node if (n.domain, n.op_type) != MARK]
    fixed = {x.name for x in [*graph.input, *graph.output, *graph.initializer]}
    readers: dict[str, int] = {}
    for n in nodes:
        for x in n.input if n.op_type != "Shape" else ():
            readers[root(x)] = readers.get(root(x), 0) + 1
    operators = {n.output[0]: n.op_type for n in nodes if n.output}
    module = dict(final)  # whose output a tensor is or nearly is

    def name(tensor: str, of: str) -> None:
        if tensor in final or tensor in fixed or tensor not in operators:
            return
        module[tensor] = module[of]
        base = f"{module[of]}.{operators[tensor].lower()}"
        found = next(x for x in itertools.chain([base], (f"{base}_{i}" for i in itertools.count(1))) if x not in taken)
        taken.add(found)
        final[tensor] = found

    for n in reversed(nodes):
        if n.op_type in _RESHAPING and n.output[0] in module and readers.get(root(n.input[0])) == 1:
            name(root(n.input[0]), n.output[0])
    for n in nodes:
        near = [root(x) for x in n.input if root(x) in module and root(x) not in fixed]
        outermost = n.output and re.fullmatch("/[^/]+", n.output[0])
        if near and near[0] == root(n.input[0]) and n.op_type in (*_RESHAPING, *_REDUCING, *_FUNCTIONS):
            name(n.output[0], near[0])
        elif near and outermost and n.op_type in _JOINING:
            name(n.output[0], near[-1])


def _name_inside(graph: Any, modules: set[str], final: dict[str, str], taken: set[str]) -> None:
    """Name sums, concatenations and parts in a module that no module returns: the module and the operator, such as "layers.0.add".

    The exporter's name of a tensor has the modules: /stages/stages.0/blocks/blocks.1/Add_output_0.
    """
    fixed = {x.name for x in [*graph.input, *graph.output, *graph.initializer]}
    for n in graph.node:
        path = n.output[0].split("/") if n.output else []
        if n.op_type not in (*_JOINING, *_REDUCING) or n.output[0] in final or n.output[0] in fixed or len(path) < 3 or path[0]:
            continue
        parts: list[str] = []
        for part in path[1:-1]:  # of a list of modules the exporter repeats the name
            parts = [*parts[:-1], part] if parts and part.startswith(parts[-1] + ".") else [*parts, part]
        module = ".".join(parts)
        if module not in modules:
            continue
        base = f"{module}.{n.op_type.lower()}"
        final[n.output[0]] = next(x for x in itertools.chain([base], (f"{base}_{i}" for i in itertools.count(1))) if x not in taken)
        taken.add(final[n.output[0]])


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
