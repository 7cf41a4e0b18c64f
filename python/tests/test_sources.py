"""The hash of a function follows the user's modules that it imports, and nothing else of theirs."""

import importlib
import subprocess
import sys

import pytest

from noether_ml import _functions, _sources

FILES = {
    "aug.py": "import json, numpy\nimport helper\nfrom pack import inner\nfrom pack.sub.deep import number as n\ndef f(image):\n    import late\n    return image\n",
    "helper.py": "import cycle\nX = 1\n", "cycle.py": "import helper\n", "late.py": "Y = 1\n", "other.py": "Z = 1\n",
    "pack/__init__.py": "", "pack/inner.py": "from . import beside\nfrom .sub import deep\n", "pack/beside.py": "B = 1\n",
    "pack/unused.py": "U = 1\n", "pack/sub/__init__.py": "", "pack/sub/deep.py": "from ..beside import B\nnumber = B\n",
    "site-packages/installed.py": "__version__ = '1'\n",
}
PRINT = "import sys; sys.path[:0] = ['.', 'site-packages']\nimport aug\nfrom noether_ml import _functions; print(_functions._digest(aug.f))"


@pytest.fixture
def digest(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    package = str(importlib.import_module("noether_ml").__path__[0])

    def of(**changed):
        for name, text in changed.items():
            (tmp_path / name).write_text(text)
        code = f"import sys; sys.path.append({package!r}[:-len('/noether_ml')])\n{PRINT}"
        return subprocess.run([sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    return of


def test_own_modules_count(digest):
    before = digest()
    assert digest() == before
    for name in ("helper.py", "cycle.py", "late.py", "pack/__init__.py", "pack/inner.py", "pack/beside.py", "pack/sub/deep.py", "aug.py"):
        after = digest(**{name: FILES[name] + "# changed\n"})
        assert after != before, name
        before = after
    for name in ("other.py", "pack/unused.py"):
        assert digest(**{name: "# changed\n"}) == before, name


def test_of_installed_packages_the_version_counts(digest):
    before = digest(**{"aug.py": "import installed\n" + FILES["aug.py"]})
    assert digest(**{"site-packages/installed.py": "__version__ = '1'\n# changed"}) == before
    assert digest(**{"site-packages/installed.py": "__version__ = '2'\n"}) != before


def test_a_broken_module_is_no_error(digest):
    digest(**{"late.py": "def ("})


def test_the_module_of_a_function_of_main(tmp_path):
    assert _sources.of(None) == []
    assert _functions._digest(len) == _functions._digest(len)
