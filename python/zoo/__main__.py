"""Exports, serves, measures and differentiates the networks of the zoo, and stores what was found.

    python -m zoo [--out FILE] [--ways tracing,dynamo,worker] [--again] [--seconds N] [PATTERN...]

Each network has a process of its own, which is forked from one that has imported the libraries. FILE is
a JSON object of what was found by the name of the network; ways that it has already are left out, unless
--again is given. A network has N seconds.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from pathlib import Path

from .networks import ordered

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "docs" / "results" / "zoo.json"
WAYS = ("tracing", "dynamo", "worker")
LIBRARIES = ["onnx", "onnxscript", "timm", "torchvision", "transformers", "zoo.check"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=__doc__)
    parser.add_argument("pattern", nargs="*", default=["*"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=int, default=900)
    o = parser.parse_args()
    found = json.loads(o.out.read_text("utf-8")) if o.out.is_file() else {}
    multiprocessing.set_forkserver_preload(LIBRARIES)
    for name in ordered():
        ways = [way for way in o.ways.split(",") if o.again or way not in found.get(name, {})]
        if ways and any(fnmatch.fnmatch(name, p) for p in o.pattern):
            known = {key: value for key, value in found.get(name, {}).items() if key != "problem"}
            found[name] = {**known, **one(name, ways, o.seconds)}
            print(name, json.dumps(found[name]), flush=True)
            partial = o.out.with_suffix(".tmp")
            partial.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
            os.replace(partial, o.out)
    return 0


def one(name: str, ways: list[str], seconds: int) -> dict[str, object]:
    """Return what zoo.check finds for a network, as far as it came in its time."""
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        out = Path(folder) / "found.json"
        process = multiprocessing.get_context("forkserver").Process(target=_run, args=(name, out, ways))
        process.start()
        process.join(seconds)
        problem = ""
        if process.exitcode is None:
            os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
            problem = f"not finished after {seconds} s"
        elif process.exitcode != 0:
            lines = (Path(folder) / "log").read_text("utf-8", "replace").strip().splitlines()
            problem = f"the process ended with {process.exitcode}: {(lines or [''])[-1]:.200}"
        found: dict[str, object] = json.loads(out.read_text("utf-8")) if out.is_file() else {}
        return {**found, "problem": problem} if problem else found


def _run(name: str, out: Path, ways: list[str]) -> None:
    """Check a network in this process, whose children end with it."""
    from .check import check

    os.setsid()
    os.chdir(out.parent)
    os.environ["NOETHER_CACHE"] = str(out.parent)
    with open("log", "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    warnings.simplefilter("ignore")
    check(name, out, ways)


if __name__ == "__main__":
    sys.exit(main())
