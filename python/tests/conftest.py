import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("KERAS_BACKEND", "torch")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A separate cache for each test, which must leave no temporary files there."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("NOETHER_CACHE", str(folder))
    yield folder
    if os.access(folder, os.R_OK):  # not if the test created no cache
        assert not list(folder.rglob(".tmp-*"))


@pytest.fixture
def images():
    """Sixteen images of 32 x 32, N x H x W x C."""
    import numpy

    return numpy.random.default_rng(1).integers(0, 256, (16, 32, 32, 3), dtype=numpy.uint8)
