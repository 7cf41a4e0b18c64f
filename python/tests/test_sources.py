"""The hash of a function follows the user's modules that it imports, and nothing else of theirs."""

import ast
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


def test_code_that_was_edited_after_its_import(tmp_path, monkeypatch):
    """What runs is in memory: its hash is neither that of the earlier nor that of the new file, unless the code is the same."""
    text = "import used\nSIZE = 2\nCALLS = 0\ndef f(image):\n    global CALLS\n    CALLS += 1\n    return used.g(image)\n"
    helper = "SCALE = 2\nclass C:\n    @property\n    def p(self):\n        return 1\ndef g(x):\n    return SCALE * x\n"
    (tmp_path / "edited.py").write_text(text)
    (tmp_path / "used.py").write_text(helper)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    edited, used = importlib.import_module("edited"), importlib.import_module("used")
    before = _functions._digest(edited.f)
    edited.f(1)
    assert _functions._digest(edited.f) == before  # a counter is no constant
    for change in (("SCALE = 2", "SCALE = 3"), ("return 1", "return 2"), ("SCALE * x", "x * SCALE")):
        (tmp_path / "used.py").write_text(helper.replace(*change))
        stale = _functions._digest(edited.f)
        importlib.reload(used)
        fresh = _functions._digest(edited.f)
        assert len({before, stale, fresh}) == 3, change
        (tmp_path / "used.py").write_text(helper)
        importlib.reload(used)
        assert _functions._digest(edited.f) == before, change
    used.SCALE = 5  # from outside
    assert _functions._digest(edited.f) != before
    (tmp_path / "used.py").write_text("# a remark\n" + helper)
    importlib.reload(used)
    assert _sources._edited(used, (tmp_path / "used.py").read_text(), ast.parse(helper)) == []
    for name in ("edited", "used"):
        del sys.modules[name]


def test_sets_have_one_hash(tmp_path):
    """The order of a set differs from process to process."""
    (tmp_path / "aug.py").write_text("def f(image, known={'a', 'b', 'c', 'd'}):\n    return image if image in {'a', 'b', 'c', 'd', 'e'} else 1\n")
    package = str(importlib.import_module("noether_ml").__path__[0])
    code = f"import sys; sys.path.append({package!r}[:-len('/noether_ml')])\n{PRINT}"
    found = {subprocess.run([sys.executable, "-B", "-c", code], cwd=tmp_path, env={"PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=True).stdout
             for seed in range(4)}
    assert len(found) == 1
