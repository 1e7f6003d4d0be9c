"""Records that nobody edits by hand: JSON data with the digest of what stands in it.

A record of estimates, of gates or of measurements is made by a tool. A figure changed afterwards is
found out when the record is read, and so is a record that is not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent / "records"
"""Where the records of this package lie."""

_DIGEST: Final = "digest"


class RecordError(ValueError):
    """A record is missing, void or not as it was recorded; the message names it and what to do."""


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as JSON reads it back, with its digest; a digest that it has is left out."""
    plain = {name: value for name, value in data.items() if name != _DIGEST}
    kept: dict[str, Any] = json.loads(json.dumps(plain))
    text = json.dumps(kept, sort_keys=True)
    return {**kept, _DIGEST: hashlib.sha256(text.encode()).hexdigest()}


def read_sealed(path: Path, how: str) -> dict[str, Any]:
    """Read a record.

    Args:
      path: the file.
      how: what makes it anew, for messages: "`make gates` estimates what is missing".

    Raises:
      RecordError: it is missing, or was changed by hand.
    """
    if not path.is_file():
        raise RecordError(f"there is no record {path.name}; {how}")
    kept: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if kept.get(_DIGEST) != sealed(kept)[_DIGEST]:
        raise RecordError(
            f"{path.name} is not as it was recorded: something was changed by hand; remove it, "
            f"and {how}"
        )
    return kept


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Write a record.

    Raises:
      OSError: the file cannot be written.
    """
    path.write_text(json.dumps(sealed(data), indent=1, ensure_ascii=False) + "\n", "utf-8")
