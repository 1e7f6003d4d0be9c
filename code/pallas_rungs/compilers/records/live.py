"""What a compiler says, from the compiler where it is installed, and else from a record.

A page that shows a compiler's words can be built on a machine that does not have it: the repository
keeps a record of them, with date and versions, and the page says that it shows a record. Where the
compiler is installed nothing is read from a record; but in a build of the book a record that these
very versions no longer bear out is an error, so that records cannot rot. A reader who changes a
downloaded page gets what the compiler says to the change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from pallas_rungs.compilers.once import FOLDER, make_once

RECORDS: Final = Path(__file__).resolve().parent
"""The folder of the records, one JSON file each: `made`, `versions`, `value`."""

RENEW: Final = "PALLAS_RUNGS_RENEW_RECORDS"
"""The variable that has records written: `1` after a kernel, a page or a pin changed."""


class Compiler(Protocol):
    """The modules `libtpu` and `cuda`."""

    def why_unavailable(self) -> str:
        """Say why it cannot be used here; empty when it can."""

    def installed_versions(self) -> dict[str, str]:
        """Versions of the packages that decide what it says."""


class RecordError(LookupError):
    """A record is missing, or is not what the compiler says; the message tells how to renew it."""


@dataclass(frozen=True)
class Known:
    """What a compiler says, and how this process knows.

    Attributes:
      value: JSON data.
      versions: of the packages that made it.
      made: the date of the record, `2026-11-30`; empty where the compiler was asked in this build.
    """

    value: Any
    versions: dict[str, str]
    made: str = ""

    @property
    def remark(self) -> str:
        """How a page must mark this; empty where the compiler was asked in this build."""
        if not self.made:
            return ""
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        return f"from a record of {self.made}, made with {versions}"


def live_or_recorded(name: str, make: Callable[[], Any], compiler: Compiler) -> Known:
    """Return what a compiler says: asked here, once in a build, or else as it was recorded.

    Args:
      name: a file name without an ending; equal names must mean equal questions.
      make: asks the compiler; gives JSON data that is the same each time, so no times or paths.
      compiler: the module `libtpu` or `cuda`.

    Raises:
      RecordError: the compiler is not here and there is no record; or it is, and in a build the
        record is missing, or one of the same versions says something else.
      OSError: the build's folder or, while records are renewed, theirs cannot be written.
    """
    record = RECORDS / f"{name}.json"
    if compiler.why_unavailable():
        return _recorded(name, record)
    versions = compiler.installed_versions()
    value = _asked(name, make)
    if os.environ.get(RENEW) == "1":
        _write(record, value, versions)
    elif os.environ.get(FOLDER):
        _compare(name, record, value, versions)
    return Known(value, versions)


def from_record(name: str, make: Callable[[], Any], compiler: Compiler) -> Known:
    """Return what a compiler said when the record was made, and ask it only to renew the record.

    For what takes too long to be asked in each build. The page that shows it asks a part of it by
    `live_or_recorded` and compares, so that the record cannot rot unseen.

    Args:
      name: as for `live_or_recorded`.
      make: as for `live_or_recorded`.
      compiler: the module `libtpu` or `cuda`.

    Raises:
      RecordError: there is no record.
      OSError: while records are renewed, theirs cannot be written.
    """
    record = RECORDS / f"{name}.json"
    if os.environ.get(RENEW) == "1" and not compiler.why_unavailable():
        _write(record, _asked(name, make), compiler.installed_versions())
    return _recorded(name, record)


def recorded(
    name: str,
    make: Callable[[Sequence[str]], Mapping[str, Any]],
    keys: Sequence[str],
    sample: Sequence[str],
    compiler: Compiler,
) -> Known:
    """Return the record of what a compiler says to many questions, too many to ask in a build.

    Where the compiler is, in the versions that made the record, it is asked a few of them again.

    Args:
      name: a file name without an ending; equal names must mean equal questions.
      make: asks the compiler these questions; gives JSON data for each, the same each time.
      keys: all of the questions.
      sample: those that are asked again.
      compiler: the module `libtpu` or `cuda`.

    Returns:
      The record, a mapping from the keys; what was made just now while records are renewed.

    Raises:
      RecordError: there is no record; it is of other questions; or the compiler says something
        else to one of the sample.
      ValueError: a question of the sample is none of the keys.
    """
    if strange := [key for key in sample if key not in keys]:
        raise ValueError(f"{strange[0]!r} is asked again, and is none of the {len(keys)} keys")
    record = RECORDS / f"{name}.json"
    here = not compiler.why_unavailable()
    if here and os.environ.get(RENEW) == "1":
        versions = compiler.installed_versions()
        value = json.loads(json.dumps(dict(make(keys))))
        _write(record, value, versions)
        return Known(value, versions)
    if not record.exists():
        raise RecordError(f"there is no record {name!r} yet; {_how(record)}")
    known = _recorded(name, record)
    if list(known.value) != list(keys):
        raise RecordError(f"the record {name!r} is of other questions; {_how(record)}")
    if here and compiler.installed_versions() == known.versions:
        again = _asked(f"{name}-sample", lambda: dict(make(sample)))
        for key in sample:
            if again[key] != known.value[key]:
                raise RecordError(
                    f"the record {name!r} of {known.made} says {known.value[key]} of {key!r}, and "
                    f"the compiler says {again[key]} now; {_how(record)}"
                )
    return known


def _asked(name: str, make: Callable[[], Any]) -> Any:
    """What `make` gives, as it reads from JSON: the same from here and from the build's folder."""
    if not (folder := os.environ.get(FOLDER)):
        return json.loads(json.dumps(make()))
    kept = Path(folder) / f"record-{name}.json"
    make_once(kept, lambda: json.dumps(make()), wait=True)
    return json.loads(kept.read_text("utf8"))


def _recorded(name: str, record: Path) -> Known:
    if not record.exists():
        raise RecordError(
            f"there is no record {name!r}, and the compiler is not asked here; {_how(record)}"
        )
    kept = json.loads(record.read_text("utf8"))
    return Known(kept["value"], kept["versions"], kept["made"])


def _compare(name: str, record: Path, value: Any, versions: dict[str, str]) -> None:
    """Hold the record against what the compiler says, where it was made by the same versions."""
    if not record.exists():
        raise RecordError(f"there is no record {name!r} yet; {_how(record)}")
    kept = json.loads(record.read_text("utf8"))
    if kept["versions"] == versions and kept["value"] != value:
        raise RecordError(
            f"the record {name!r} of {kept['made']} is not what the compiler says now; "
            f"{_how(record)}"
        )


def _how(record: Path) -> str:
    return f"where the compiler is, `make records` writes {record.name}"


def _write(record: Path, value: Any, versions: dict[str, str]) -> None:
    if record.exists():
        kept = json.loads(record.read_text("utf8"))
        if kept["versions"] == versions and kept["value"] == value:
            return
    made = datetime.now(UTC).date().isoformat()
    record.parent.mkdir(parents=True, exist_ok=True)
    kept = {"made": made, "versions": versions, "value": value}
    record.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf8")
