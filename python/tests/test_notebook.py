"""The notebook of docs/examples runs from its first cell to its last."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not all(map(importlib.util.find_spec, ("nbconvert", "ipykernel"))), reason="needs nbconvert and ipykernel")
def test_first_look(tmp_path):
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", str(tmp_path / "out.ipynb"), str(ROOT / "docs" / "examples" / "first-look.ipynb")]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, timeout=300)
    cells = json.loads((tmp_path / "out.ipynb").read_text())["cells"]
    pages = ["".join(o["data"]["text/html"]) for c in cells for o in c.get("outputs", []) if "text/html" in o.get("data", {})]
    assert sum(map(len, pages)) < 300_000 and any("data:image/svg+xml" in page for page in pages) and any("layer4" in page for page in pages)
