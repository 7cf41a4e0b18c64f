"""Export of modules by dynamo, PyTorch's exporter of today, for modules that tracing does not export."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from pathlib import Path
from typing import Any

from . import _export
from ._command import Error


def available() -> bool:
    """Report whether this PyTorch has the exporter, and its package onnxscript is installed."""
    import torch

    return tuple(int(v) for v in torch.__version__.split(".")[:2]) >= (2, 6) and importlib.util.find_spec("onnxscript") is not None


def write(module: Any, example: Any, names: list[str], path: Path) -> None:
    """Write the graph of a module to a file, with any number of samples. names are those of the outputs."""
    import torch

    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # a failing export logs its graph
    try:
        with _export._evaluating(module), _export._without_fast_path(module, example) as example, warnings.catch_warnings(), \
                _export.silenced():
            warnings.simplefilter("ignore")
            module(example)  # which sets the names
            program = torch.onnx.export(module, (example,), dynamo=True, input_names=["input"], output_names=list(names), verbose=False,
                                        dynamic_shapes=({0: torch.export.Dim("batch")},))
            program.save(str(path))
    except Error:
        raise
    except Exception as e:
        raise Error(f"{type(module).__name__} cannot be exported to ONNX: {_cause(e)}") from None
    finally:
        logging.disable(level)


def _cause(e: BaseException) -> str:
    """Return the first line of the exception that caused others, at most 200 characters."""
    while e.__cause__ is not None:
        e = e.__cause__
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return f"{lines[0] if lines else type(e).__name__:.200}"
