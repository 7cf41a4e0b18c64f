"""The source code that an object of Python depends on, to be hashed."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Optional


def of(*modules: ModuleType | None) -> list[str]:
    """Return the sources of modules and of the user's modules that they import, and the versions of installed packages.

    Modules that are installed have no source here, but the version of their package.
    """
    sources: dict[Path, str] = {}
    packages: set[str] = set()
    ahead = [found for m in modules if m is not None for found in [_place(m)] if found is not None]
    while ahead:
        path, name, root = ahead.pop()
        if path in sources:
            continue
        sources[path] = ""
        with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError, ValueError):
            sources[path] = path.read_text("utf-8")
            for imported in _imports(ast.parse(sources[path]), name if path.name == "__init__.py" else name.rpartition(".")[0]):
                local = [*_files(root, imported)]
                if not local and (loaded := _place(sys.modules.get(imported))) is not None:
                    local = [loaded]
                ahead += local
                if not local:
                    packages.add(imported.partition(".")[0])
    versions = {name: v for name in packages - set(getattr(sys, "stdlib_module_names", ())) for v in [_version(name)] if v}
    return [*sorted(f"{path.name}\n{text}" for path, text in sources.items()), *sorted(f"{name} {v}" for name, v in versions.items())]


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
