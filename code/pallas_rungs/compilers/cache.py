"""Compiler outcomes kept on disk, so that the same program is not compiled twice.

The key is a hash of everything that can change the answer: the exported program, the topology, the
versions of jax, jaxlib and libtpu, and the compiler's flags. Entries are written whole or not at
all; one that cannot be read is ignored and written anew. Set `PALLAS_RUNGS_CACHE` to move the
folder, `PALLAS_RUNGS_NO_CACHE=1` to go without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FORMAT = 1


def cache_allowed() -> bool:
    """False when `PALLAS_RUNGS_NO_CACHE` is set to anything but 0."""
    return os.environ.get("PALLAS_RUNGS_NO_CACHE", "0") in ("", "0")


def cache_folder() -> Path:
    """Where entries are kept: `PALLAS_RUNGS_CACHE`, else `~/.cache/pallas-rungs`."""
    if named := os.environ.get("PALLAS_RUNGS_CACHE"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pallas-rungs"


def key_of(program: bytes, parts: Mapping[str, Any]) -> str:
    """Return the key of a program and of all else that decides the outcome.

    Args:
      program: the exported program, byte for byte.
      parts: JSON data: topology, versions, flags.
    """
    described = json.dumps({"format": _FORMAT, **parts}, sort_keys=True).encode()
    return hashlib.sha256(hashlib.sha256(program).digest() + described).hexdigest()


def load(key: str) -> dict[str, Any] | None:
    """Return the entry of `key`, or None when there is none that can be read whole."""
    path = _path(key)
    try:
        entry = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return None
    if not isinstance(entry, dict) or entry.get("key") != key:
        return None
    value = entry.get("value")
    return value if isinstance(value, dict) and entry.get("sum") == _sum(value) else None


def store(key: str, value: dict[str, Any]) -> bool:
    """Keep `value` under `key`; False when the folder cannot be written."""
    path = _path(key)
    data = json.dumps({"key": key, "sum": _sum(value), "value": value}).encode()
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return False
    return True


def _path(key: str) -> Path:
    return cache_folder() / "compile" / key[:2] / f"{key}.json"


def _sum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
