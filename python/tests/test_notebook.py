"""The notebooks of docs/examples run from their first cell to their last."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))
NEEDS = {"quantised-model": "onnxruntime"}


@pytest.mark.skipif(not all(map(importlib.util.find_spec, ("nbconvert", "ipykernel"))), reason="needs nbconvert and ipykernel")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    out = tmp_path / "out.ipynb"
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", str(out), str(path)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, timeout=600)
    cells = json.loads(out.read_text())["cells"]
    outputs = [o for c in cells for o in c.get("outputs", [])]
    assert any(o["output_type"] == "execute_result" for o in outputs)
    if path.stem == "first-look":
        pages = ["".join(o["data"]["text/html"]) for o in outputs if "text/html" in o.get("data", {})]
        assert sum(map(len, pages)) < 300_000 and any("data:image/svg+xml" in page for page in pages) and any("layer4" in page for page in pages)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_form(path):
    """A notebook has at most twelve cells and no stored output, opens in Colab, and is listed."""
    cells = json.loads(path.read_text())["cells"]
    assert len(cells) <= 12 and not any(c.get("outputs") for c in cells)
    links = re.findall(r"colab\.research\.google\.com/github/noether-ml/noether/blob/main/(\S+?)\)", "".join(cells[0]["source"]))
    assert links == [str(path.relative_to(ROOT))]
    assert f"]({path.name})" in (path.parent / "README.md").read_text("utf-8")
