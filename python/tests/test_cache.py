"""The cache of arrays and models: what is kept is on disk, and verified before it is used again."""

import os

import pytest

from noether_ml import _cache


def store(content: bytes):
    with _cache.temporary("data") as folder:
        (folder / "x.npy").write_bytes(content)
        return _cache.keep("data", folder)


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "another file"])
def test_a_damaged_entry_is_replaced(damage):
    content = bytes(range(256)) * 64
    at = store(content)
    file = at / "x.npy"
    if damage == "truncated":
        os.truncate(file, 1000)
    elif damage == "changed":
        file.write_bytes(content[:-1] + b"\x00")
    elif damage == "missing":
        file.unlink()
    else:
        (at / "y.npy").write_bytes(b"1")
    assert store(content) == at
    assert [p.name for p in at.iterdir()] == ["x.npy"] and file.read_bytes() == content
    assert [p.name for p in at.parent.iterdir()] == [at.name]


def test_an_intact_entry_remains():
    at = store(b"content")
    before = (at / "x.npy").stat()
    assert store(b"content") == at
    assert (at / "x.npy").stat().st_ino == before.st_ino


def test_files_are_on_disk_before_they_are_in_the_cache(monkeypatch):
    events = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda d: (events.append(os.fstat(d).st_ino), fsync(d)))
    monkeypatch.setattr(os, "rename", lambda a, b: (events.append("rename"), rename(a, b)))
    at = store(b"content")
    assert events == [(at / "x.npy").stat().st_ino, at.stat().st_ino, "rename", at.parent.stat().st_ino]
