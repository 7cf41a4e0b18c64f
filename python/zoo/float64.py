"""Computes an ONNX file in float64, by the reference implementation of ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def run(path: Path, name: str, x: Any) -> Any:
    """Return the output of a name for the first input x."""
    model = onnx.load(str(path), load_external_data=True)
    convert(model.graph)
    (got,) = ReferenceEvaluator(model, new_ops=[Pad]).run([name], {model.graph.input[0].name: x.astype(numpy.float64)})
    return got


class Pad(OpRun):  # type: ignore[misc]  # of a package without types
    """Pads by a constant, and cuts where a padding is negative, which the reference implementation lacks."""

    def _run(self, data: Any, pads: Any, value: Any = None, axes: Any = None, mode: str = "constant") -> tuple[Any]:
        if mode != "constant":
            raise NotImplementedError(f"Pad in the mode {mode}")
        axes = range(data.ndim) if axes is None else axes
        width = [(0, 0)] * data.ndim
        cut = [slice(None)] * data.ndim
        for i, axis in enumerate(axes):
            before, after = int(pads[i]), int(pads[i + len(axes)])
            width[axis] = max(before, 0), max(after, 0)
            cut[axis] = slice(max(-before, 0), data.shape[axis] - max(-after, 0))
        return (numpy.pad(data[tuple(cut)], width, constant_values=0 if value is None else value.item()),)


def convert(graph: Any) -> None:
    """Make the tensors of float32 of a graph and of its subgraphs such of float64."""
    for tensor in graph.initializer:
        _widen(tensor)
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    del graph.value_info[:]
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                _widen(a.t)
            elif a.type == onnx.AttributeProto.GRAPH:
                convert(a.g)
            elif node.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                a.i = TensorProto.DOUBLE
            elif node.op_type == "Constant" and a.name == "value_float":
                a.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(numpy.array(a.f, numpy.float64))))


def _widen(tensor: Any) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(numpy.float64), tensor.name))
