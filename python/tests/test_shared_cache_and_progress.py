"""Two processes that share a cache, and progress shown by tqdm."""

import json
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import networks

import noether_ml
from noether_ml._command import Progress

PYTHON = Path(__file__).resolve().parents[1]


def test_two_processes_share_a_cache(cache, tmp_path):
    program = textwrap.dedent("""
        import sys, numpy, torch
        sys.path[:0] = sys.argv[1:3]
        import networks, noether_ml
        torch.manual_seed(1)
        images = numpy.random.default_rng(1).integers(0, 256, (64, 32, 32, 3), dtype=numpy.uint8)
        print(len(noether_ml.measure(networks.Shared(), images, layers=["relu"], quiet=True).scores))
    """)
    environment = {**os.environ, "NOETHER_CACHE": str(cache)}
    processes = [subprocess.Popen([sys.executable, "-c", program, str(PYTHON), str(PYTHON / "tests")], env=environment, cwd=tmp_path, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    results = [(*p.communicate(), p.returncode) for p in processes]
    outputs = [out for out, _, code in results if code == 0]
    assert outputs and len(set(outputs)) == 1, results
    # The second waits, or fails since the first uses the run folder, where results are written.
    for _, err, code in results:
        assert code == 0 or "another process" in err.strip().splitlines()[-1], results
    for kind in ("models", "data"):
        assert len(list((cache / "python" / kind).iterdir())) == 1


def test_progress_by_tqdm(monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, unit):
            self.total, self.unit, self.n, self.description, self.closed = total, unit, 0, None, False
            bars.append(self)

        def set_description(self, description):
            self.description = description

        def update(self, n):
            self.n += n

        def close(self):
            self.closed = True

    package, auto = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", package)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    progress = Progress(quiet=False)
    for done in (10, 30):
        progress(json.dumps({"level": "INFO", "msg": "progress", "model": "m", "data": "d", "done": done, "total": 40}))
    progress.close()
    (bar,) = bars
    assert (bar.total, bar.n, bar.description, bar.closed) == (40, 30, "m on d", True)


def test_progress_to_the_end(images, monkeypatch):
    """Check that the bar of a whole run is full at its end."""
    seen = []
    monkeypatch.setattr(Progress, "_progress", lambda self, record: seen.append((record["done"], record["total"])))
    noether_ml.measure(networks.Shared(), images, layers=["relu"], measures=["distance"])
    noether_ml.activations(networks.Shared(), images, layers=["relu"])
    totals = [total for done, total in seen if done == total]
    assert len(totals) == 2 and seen[-1][0] == seen[-1][1] == len(images)
