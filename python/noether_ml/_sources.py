"""The source code that an object of Python depends on, to be hashed.

What runs is not always what a file says. Of a module that was edited after it was imported, the hash
also covers what of its code and constants is another in memory. A module that is imported later, as
by an import in a function, must have the file that was hashed: check fails otherwise.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.machinery
import importlib.metadata
import inspect
import os
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Optional

from ._command import Error

# The states of the files that were hashed, and the names of the modules that were not imported then, with their files.
_states: dict[Path, os.stat_result] = {}
_ahead: dict[str, Path] = {}


def of(*modules: ModuleType | None) -> list[str]:
    """Return the sources of modules and of the user's modules that they import, and the versions of installed packages.

    Modules that are installed have no source here, but the version of their package.
    """
    sources: dict[Path, str] = {}
    packages: set[str] = set()
    edited: list[str] = []
    ahead = [found for m in modules if m is not None for found in [_place(m)] if found is not None]
    while ahead:
        path, name, root = ahead.pop()
        if path in sources:
            continue
        sources[path] = ""
        with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError, ValueError):
            _states[path] = os.stat(path)
            sources[path] = path.read_text("utf-8")
            tree = ast.parse(sources[path])
            module = sys.modules.get(name or "__main__")
            place = _place(module)
            if module is not None and place is not None and place[0] == path:
                edited += _edited(module, sources[path], tree)
            else:
                _ahead[name] = path
            for imported in _imports(tree, name if path.name == "__init__.py" else name.rpartition(".")[0]):
                local = [*_files(root, imported)]
                if not local and (loaded := _place(sys.modules.get(imported))) is not None:
                    local = [loaded]
                ahead += local
                if not local:
                    packages.add(imported.partition(".")[0])
    versions = {name: v for name in packages - set(getattr(sys, "stdlib_module_names", ())) for v in [_version(name)] if v}
    return [*sorted(f"{path.name}\n{text}" for path, text in sources.items()), *sorted(f"{name} {v}" for name, v in versions.items()), *sorted(edited)]


def check() -> None:
    """Fail if a module was imported from a file that is another than when its source was hashed."""
    for name in _ahead.keys() & sys.modules.keys():
        path, place = _ahead[name], _place(sys.modules[name])
        if place is not None and place[0] == path and _state(os.stat(path)) != _state(_states[path]):
            raise Error(f"{path.name} was imported after it had changed since its source was hashed: run again")  # and each time
        del _ahead[name]


def check_since(start: int) -> None:
    """Fail if a file that was hashed has changed since a time in nanoseconds, at which nothing was imported from it yet."""
    tick = 10_000_000  # which the clock of a file system may be behind
    for path, state in _states.items():
        if start - tick < state.st_ctime_ns < time.time_ns():
            raise Error(f"{path.name} has changed since it was imported: run again")


def _state(s: os.stat_result) -> tuple[int, ...]:
    """Return what no program can restore once it has written to a file: the time of the last change of its inode is among it."""
    return s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino


def _edited(module: ModuleType, text: str, tree: ast.Module) -> list[str]:
    """Return what of a module's functions and constants is not as in its file."""
    loader = getattr(module, "__loader__", None)
    if type(loader) is not importlib.machinery.SourceFileLoader:  # one that rewrites code, as pytest does
        return []
    in_file = set(map(stable, _codes(compile(text, str(module.__file__), "exec", dont_inherit=True))))
    codes = [stable(f.__code__) for f in _functions(module, module) if os.path.basename(f.__code__.co_filename) == os.path.basename(str(module.__file__))]
    assigned = [t.id for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
                for t in (node.targets if isinstance(node, ast.Assign) else [node.target]) if isinstance(t, ast.Name)]
    assigned += [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    constants = []
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or assigned.count(target.id) > 1 or not hasattr(module, target.id):
            continue
        with contextlib.suppress(ValueError, TypeError, SyntaxError):
            value, now = stable(ast.literal_eval(node.value or "")), getattr(module, target.id)
            if isinstance(now, (int, float, complex, str, bytes, tuple, type(None))) and value != stable(now):
                constants.append(f"{module.__name__}.{target.id} = {stable(now)}")
    return constants + [f"{module.__name__}: {code}" for code in codes if code not in in_file]


def _functions(module: ModuleType, holder: Any) -> Iterator[Any]:
    """Yield the functions of a module, also those of its classes."""
    f: Any
    for value in list(vars(holder).values()):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        for f in (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value,):
            if getattr(f, "__module__", None) != module.__name__:
                continue
            if isinstance(f, type):
                if f is not holder and f.__qualname__.startswith(getattr(holder, "__qualname__", "")):
                    yield from _functions(module, f)
            elif hasattr(f, "__code__"):
                yield inspect.unwrap(f)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, CodeType):
            yield from _codes(c)


def stable(value: Any) -> str:
    """Return the repr of a constant or of code that is the same in every process, wherever the code is in its file."""
    if isinstance(value, CodeType):
        parts = value.co_name, value.co_code.hex(), value.co_names, value.co_varnames, value.co_freevars, value.co_consts
        return f"code{stable(parts)}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(stable, value)))}}}"
    if type(value) in (tuple, list):
        return f"({', '.join(map(stable, value))})"
    return repr(value)


def used(function: Any) -> list[ModuleType]:
    """Return the modules that the code of a function names, or whose objects it names."""
    known = getattr(function, "__globals__", {})
    objects = [known[name] for name in getattr(getattr(function, "__code__", None), "co_names", ()) if name in known]
    found = [o if isinstance(o, ModuleType) else sys.modules.get(getattr(o, "__module__", None) or "") for o in objects]
    return [m for m in found if m is not None]


_Place = Optional["tuple[Path, str, Path]"]


def _place(module: ModuleType | None) -> _Place:
    """Return the file and the name of a user's own module, and the folder that it is imported from; None for others."""
    file = getattr(module, "__file__", None)
    if module is None or not file or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    name = "" if module.__name__ == "__main__" else module.__name__
    depth = name.count(".") + (path.name == "__init__.py")
    if _installed(path) or depth >= len(path.parents):
        return None
    return path, name, path.parents[depth]


def _installed(path: Path) -> bool:
    if {"site-packages", "dist-packages"} & set(path.parts) or path.parent == Path(__file__).resolve().parent:
        return True
    paths = sysconfig.get_paths()
    return any(Path(paths[key]).resolve() in path.parents for key in ("stdlib", "platstdlib"))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the names of modules, or perhaps of objects in them, that source code imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*filter(None, above), *filter(None, [node.module])])
            if base:
                yield base
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _files(root: Path, name: str) -> Iterator[tuple[Path, str, Path]]:
    """Yield the files below root that the import of a module runs."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        base = root.joinpath(*parts[:i])
        for path in (base / "__init__.py", base.with_name(base.name + ".py")):
            if path.is_file() and not _installed(path):
                yield path, ".".join(parts[:i]), root
                break


def _version(package: str) -> str:
    found = getattr(sys.modules.get(package), "__version__", None)
    if found is None:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
            found = importlib.metadata.version(package)
    return str(found or "")
