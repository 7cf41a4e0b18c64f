"""Exports, serves, measures and differentiates the networks of the zoo, and stores what was found.

    python -m zoo [--out FILE] [--ways tracing,dynamo,worker] [--again] [PATTERN...]

Each network has a process of its own. FILE is a JSON object of what was found by the name of the
network; ways that it has already are left out, unless --again is given.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .networks import networks

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "docs" / "results" / "zoo.json"
WAYS = ("tracing", "dynamo", "worker")
SECONDS = 900  # of one network


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=__doc__)
    parser.add_argument("pattern", nargs="*", default=["*"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--ways", default=",".join(WAYS))
    o = parser.parse_args()
    found = json.loads(o.out.read_text("utf-8")) if o.out.is_file() else {}
    for name in networks():
        ways = [way for way in o.ways.split(",") if o.again or way not in found.get(name, {})]
        if ways and any(fnmatch.fnmatch(name, p) for p in o.pattern):
            found[name] = {**found.get(name, {}), **one(name, ways)}
            print(name, json.dumps(found[name]), flush=True)
            partial = o.out.with_suffix(".tmp")
            partial.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
            os.replace(partial, o.out)
    return 0


def one(name: str, ways: list[str]) -> dict[str, object]:
    """Return what check.py finds for a network, as far as it came in its time."""
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        out = Path(folder) / "found.json"
        environment = {**os.environ, "NOETHER_CACHE": folder, "PYTHONPATH": str(HERE.parent)}
        command = [sys.executable, "-W", "ignore", "-m", "zoo.check", name, str(out), *ways]
        try:
            done = subprocess.run(command, cwd=folder, env=environment, timeout=SECONDS, capture_output=True, text=True, errors="replace")
            problem = "" if done.returncode == 0 else f"the process ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]:.200}"
        except subprocess.TimeoutExpired:
            problem = f"not finished after {SECONDS} s"
        found: dict[str, object] = json.loads(out.read_text("utf-8")) if out.is_file() else {}
        return {**found, "problem": problem} if problem else found


if __name__ == "__main__":
    sys.exit(main())
