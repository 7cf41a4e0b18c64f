"""Exports, serves, measures and differentiates the networks of the zoo, and stores what was found.

    python -m zoo [--out FILE] [--ways tracing,dynamo,worker] [--again] [--seconds N] [PATTERN...]

Each network has a process of its own, forked from one that has imported the libraries. FILE is a JSON
object of what was found by the name of the network; ways that it has already are left out, unless
--again is given. Each way has N seconds.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .networks import ordered

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "zoo.json"
WAYS = ("tracing", "dynamo", "worker")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=__doc__)
    parser.add_argument("pattern", nargs="*", default=["*"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=int, default=120)
    o = parser.parse_args()
    found = json.loads(o.out.read_text("utf-8")) if o.out.is_file() else {}
    _preload()
    for name in ordered():
        ways = [way for way in o.ways.split(",") if o.again or way not in found.get(name, {})]
        if ways and any(fnmatch.fnmatch(name, p) for p in o.pattern):
            known = {key: value for key, value in found.get(name, {}).items() if key != "problem"}
            found[name] = {**known, **_one(name, ways, o.seconds)}
            print(name, json.dumps(found[name]), flush=True)
            partial = o.out.with_suffix(".tmp")
            partial.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
            os.replace(partial, o.out)
    return 0


def _preload() -> None:
    """Import the libraries, and export a module by dynamo, which imports further ones.

    One thread computes: those of a pool would be missing in forked processes.
    """
    import timm  # noqa: F401
    import torch
    import torchvision  # noqa: F401
    import transformers.modeling_utils  # noqa: F401

    from noether_ml import _dynamo

    from . import check  # noqa: F401

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        _dynamo.write(torch.nn.Linear(2, 2), torch.zeros(2, 2), ["output"], Path(folder) / "model.onnx")


def _one(name: str, ways: Sequence[str], seconds: int) -> dict[str, Any]:
    """Return what check finds for a network, as far as it came in its time."""
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        out = Path(folder) / "found.json"
        process = multiprocessing.get_context("fork").Process(target=_run, args=(name, out, ways, seconds))
        process.start()
        process.join(len(ways) * seconds + 60)  # the process ends a way that takes longer, but not within an operator
        problem = ""
        if process.exitcode is None:
            process.kill()
            process.join()
            problem = "its process hung"
        elif process.exitcode != 0:
            lines = (Path(folder) / "log").read_text("utf-8", "replace").strip().splitlines()
            problem = f"its process ended with {process.exitcode}: {(lines or [''])[-1]:.200}"
        found: dict[str, Any] = json.loads(out.read_text("utf-8")) if out.is_file() else {}
        return {**found, "problem": problem} if problem else found


def _run(name: str, out: Path, ways: Sequence[str], seconds: int) -> None:
    """Check a network in this process."""
    from .check import check

    os.chdir(out.parent)
    os.environ["NOETHER_CACHE"] = str(out.parent)
    with open("log", "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    warnings.simplefilter("ignore")
    check(name, out, ways, seconds)


if __name__ == "__main__":
    sys.exit(main())
