"""The process that serves one function of Python that a study file names.

The command noether starts it with the interpreter of the study, and writes a line of JSON to its
standard input: the use of the function ("models", "transforms" or "measures"), its name
(package.module:function), and folders with modules. The worker answers with a line of JSON on its
standard output: the address where it serves the function, and the function's digest. It ends with
its standard input.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from . import _functions, _models, _server, _sources
from ._command import Error, first_line


def load(name: str) -> Any:
    """Return the object of a name such as package.module:function."""
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except Exception as e:
        raise Error(f"{module} cannot be imported: {type(e).__name__}: {first_line(e)}") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Error(f"{module} has no {attribute}")
        found = getattr(found, part)
    return found


def made(function: Any) -> tuple[Any, Any]:
    """Return a model and, if it is known, an example or the shape of its input.

    function is the model, or returns it, or returns it with an example or a shape.
    """
    found = function
    if inspect.isclass(function) or inspect.isroutine(function) and not _parameters(function):
        try:
            found = function()
        except Exception as e:
            raise Error(f"{getattr(function, '__name__', function)} fails: {type(e).__name__}: {first_line(e)}") from None
    model, input = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    return model, input if input is not None else getattr(model, "input", None)


def _parameters(function: Any) -> list[str]:
    """Return the names of the parameters that a call needs."""
    with contextlib.suppress(TypeError, ValueError):
        return [p.name for p in inspect.signature(function).parameters.values()
                if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return ["x"]


@contextlib.contextmanager
def prepared(use: str, name: str, shape: Any) -> Iterator[dict[str, _server.Model]]:
    """Yield the models that serve a function, by name."""
    function = load(name)
    if use == "transforms":
        yield {name: _functions.Transformation(function)}
    elif use == "measures":
        yield {name: _functions.Measure(function)}
    else:
        model, known = made(function)
        with _models.serving(model, known if known is not None else shape) as served:
            yield {name: served, **{name + end: m for end, m in served.derivatives().items()}}


def main() -> None:
    request = json.loads(sys.stdin.readline())
    start = time.time_ns()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what functions print is no answer
    sys.path[:0] = request["path"]
    try:
        with prepared(request["use"], request["function"], request["input"]) as models, _server.serving(models) as address:
            _sources.check_since(start)
            print(json.dumps({"address": address, "digest": next(iter(models.values())).digest}), file=answers, flush=True)
            while sys.stdin.readline():
                pass
    except Error as e:
        print(e, file=sys.stderr, flush=True)
        os._exit(1)
    finally:
        sys.stdout.flush()
    os._exit(0)  # threads of a function that hangs do not end
