"""What a compiler says, from the compiler where it is installed, and else from a record.

A page that shows a compiler's words can be built on a machine that does not have it: the repository
keeps a record of them, with date and versions, and the page says that it shows a record.

`live_or_recorded` is for what a build can wait for. Where the compiler is installed nothing is
read from a record; but in a build of the book a record that these very versions no longer bear out
is an error, so that records cannot rot. A reader who changes a downloaded page gets what the
compiler says to the change. `recorded` is for what takes minutes: its record is what everybody
reads, and where the compiler is, a part of it is asked again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
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


def recorded(
    name: str,
    make: Callable[[], Any],
    compiler: Compiler,
    *,
    again: Callable[[], Mapping[str, Any]] | None = None,
) -> Known:
    """Return what a compiler said when the record was made: for what a build cannot wait for.

    The whole is asked only to renew the record. So that the record cannot rot unseen, a part of it
    is asked in each build: by `again`, or by the page itself, which asks it by `live_or_recorded`
    and compares.

    Args:
      name: as for `live_or_recorded`.
      make: as for `live_or_recorded`.
      compiler: as for `live_or_recorded`.
      again: asks a part of `make`'s questions, where the compiler is in the versions that made the
        record; gives that part of the record, which is a mapping then.

    Returns:
      The record; what was made just now while records are renewed.

    Raises:
      RecordError: there is no record; it has no answer to a question of the part; or the compiler
        gives another one.
      OSError: while records are renewed, theirs cannot be written.
    """
    record = RECORDS / f"{name}.json"
    here = not compiler.why_unavailable()
    if here and os.environ.get(RENEW) == "1":
        versions = compiler.installed_versions()
        value = _asked(name, make)
        _write(record, value, versions)
        return Known(value, versions)
    known = _recorded(name, record)
    if again is not None and here and compiler.installed_versions() == known.versions:
        for key, says in _asked(f"{name}-again", again).items():
            if key not in known.value:
                raise RecordError(f"the record {name!r} has nothing of {key!r}; {_how(record)}")
            if known.value[key] != says:
                raise RecordError(
                    f"the record {name!r} of {known.made} says {known.value[key]} of {key!r}, and "
                    f"the compiler says {says} now; {_how(record)}"
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
