"""Files that are kept between calls: exported models, arrays and run folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ._command import Error

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# The largest size of the models, and of the arrays, in bytes, unless NOETHER_CACHE_SIZE is set. The
# command noether has the same default (internal/fetch).
DEFAULT_SIZE = 100 * 10**9


def folder(kind: str) -> Path:
    """Return the folder for "models", "data" or "runs", and create it."""
    chosen = os.environ.get("NOETHER_CACHE")
    if chosen:
        base = Path(chosen)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches" / "noether"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "noether"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noether"
    path = base / "python" / kind
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Error(f"no cache folder: {e}; set NOETHER_CACHE to a folder that can be written") from None
    return path


@contextmanager
def temporary(kind: str) -> Iterator[Path]:
    """Make a new folder in the cache, and remove it at the end."""
    parent = folder(kind)
    _remove_abandoned(parent)
    try:
        path = Path(tempfile.mkdtemp(prefix=".tmp-", dir=parent))
    except OSError as e:
        raise Error(f"the cache cannot be written: {e}; set NOETHER_CACHE to a folder that can be") from None
    lock = _lock(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _lock(path: Path) -> int | None:
    """Lock a folder until the returned descriptor is closed, or this process ends.

    Returns None where there are no locks. Raises BlockingIOError if another process holds the lock.
    """
    if fcntl is None:
        return None
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    except OSError as e:
        if descriptor is not None:
            os.close(descriptor)
        if isinstance(e, BlockingIOError):
            raise
        return None


def _remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders of processes that were killed.

    No process holds their lock. On systems without locks, folders unchanged for a day are removed.
    """
    for old in parent.glob(".tmp-*"):
        try:
            age = time.time() - old.stat().st_mtime
            lock = _lock(old)
        except OSError:  # another process uses it, or has removed it
            continue
        # In seconds. A process locks its folder shortly after creating it.
        if age > (60 if lock is not None else 86400):
            shutil.rmtree(old, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def keep(kind: str, source: Path) -> Path:
    """Move a folder into the cache, whose name there is a hash of its files, and return its path.

    The files are on disk before the folder is in the cache. A folder that is there already remains
    unless its files have changed since, for instance by a failure of the disk.
    """
    key = hash_files(source)
    at = folder(kind) / key
    if at.exists() and _is_damaged(at, key):
        with temporary(kind) as old, suppress(OSError):  # another process has replaced it meanwhile
            os.rename(at, old / key)
    if not at.exists():
        _trim(kind, at)
        try:
            for path in (*source.iterdir(), source):
                _sync(path)
            os.rename(source, at)
            _sync(at.parent)
        except OSError as e:
            if not at.exists():
                raise Error(f"{at} cannot be written: {e}") from None
    os.utime(at)
    return at


def _is_damaged(at: Path, key: str) -> bool:
    try:
        return hash_files(at) != key
    except OSError:
        return True


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _trim(kind: str, new: Path) -> None:
    """Remove the least recently used entries other than new until they have the allowed size."""
    text = os.environ.get("NOETHER_CACHE_SIZE", str(DEFAULT_SIZE))
    try:
        remaining = int(text)
    except ValueError:
        raise Error(f"NOETHER_CACHE_SIZE is {text!r}, not a number of bytes") from None
    entries = [p for p in folder(kind).iterdir() if not p.name.startswith(".tmp-") and p != new]
    for p in sorted(entries, key=lambda p: p.stat().st_mtime, reverse=True):
        remaining -= sum(f.stat().st_size for f in p.rglob("*") if f.is_file()) if p.is_dir() else p.stat().st_size
        if remaining < 0:
            shutil.rmtree(p, ignore_errors=True) if p.is_dir() else p.unlink(missing_ok=True)


def hash_files(folder: Path) -> str:
    """Return a hash of the files of a folder and their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + b"\0")
        with open(path, "rb") as f:
            while block := f.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:32]
