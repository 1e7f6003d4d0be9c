"""The disk cache: what it is keyed by, and that a damaged entry is never believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_rungs.compilers import cache


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PALLAS_RUNGS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _entry(folder: Path) -> Path:
    (path,) = folder.rglob("*.json")
    return path


def test_gives_back_what_was_stored(folder: Path) -> None:
    key = cache.key_of(b"program", {"chip": "v5e"})
    assert cache.load(key) is None
    assert cache.store(key, {"kind": "compiled", "seconds": 1.5})
    assert cache.load(key) == {"kind": "compiled", "seconds": 1.5}
    assert [path.suffix for path in folder.rglob("*") if path.is_file()] == [".json"]


def test_every_part_of_the_key_counts() -> None:
    parts = {"chip": "v5e", "libtpu": "1", "flags": ""}
    keys = {
        cache.key_of(b"a", parts),
        cache.key_of(b"b", parts),
        cache.key_of(b"a", {**parts, "chip": "v6e"}),
        cache.key_of(b"a", {**parts, "libtpu": "2"}),
        cache.key_of(b"a", {**parts, "flags": "--x"}),
    }
    assert len(keys) == 5


@pytest.mark.parametrize("damage", ["cut", "empty", "binary", "list", "changed", "other key"])
def test_a_damaged_entry_is_ignored_and_written_anew(folder: Path, damage: str) -> None:
    key = cache.key_of(b"program", {})
    cache.store(key, {"kind": "refused"})
    path = _entry(folder)
    text = path.read_text()
    path.write_bytes(
        {
            "cut": text[: len(text) // 2].encode(),
            "empty": b"",
            "binary": b"\x00\xff" * 20,
            "list": b"[]",
            "changed": text.replace("refused", "compiled").encode(),
            "other key": text.replace(key, "0" * len(key)).encode(),
        }[damage]
    )
    assert cache.load(key) is None
    cache.store(key, {"kind": "refused"})
    assert json.loads(path.read_text())["value"] == {"kind": "refused"}
    assert cache.load(key) == {"kind": "refused"}


def test_a_folder_that_cannot_be_made_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PALLAS_RUNGS_CACHE", str(tmp_path / "file"))
    assert not cache.store(cache.key_of(b"", {}), {})


@pytest.mark.parametrize(
    ("value", "allowed"), [(None, True), ("", True), ("0", True), ("1", False)]
)
def test_the_switch(monkeypatch: pytest.MonkeyPatch, value: str | None, allowed: bool) -> None:
    monkeypatch.delenv("PALLAS_RUNGS_NO_CACHE", raising=False)
    if value is not None:
        monkeypatch.setenv("PALLAS_RUNGS_NO_CACHE", value)
    assert cache.cache_allowed() is allowed
