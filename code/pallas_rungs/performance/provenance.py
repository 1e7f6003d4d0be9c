"""Where a figure comes from: no time or rate is shown without it.

A figure is an *estimate*, made from what a compiler said, or a *measurement*, made on a chip. Both
carry the chip, the arguments, the method and the versions. What was measured carries its date and
the hash of the code as well, unless it was measured by the build that shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date as Date  # noqa: N812 - the field has the name
from typing import TYPE_CHECKING, Any, Final, Self

import jax

from pallas_rungs.performance.units import SECONDS, UNITS, in_words

if TYPE_CHECKING:
    from pallas_rungs.performance.estimate import Estimate

ESTIMATE: Final = "estimate"
MEASUREMENT: Final = "measurement"
UNKNOWN: Final = "unknown"
"""The date of what somebody else measured and did not date."""
MIME: Final = "application/vnd.pallas-rungs.provenance+json"
"""The MIME type by which an output carries the provenance of its figures: a list of JSON forms."""

_CAPTION: Final = re.compile(r"\b(?:estimate|measurement)s?\b[^\n]*;[^\n]*\bjax(?:lib)? \d")
_FEW: Final = 4
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def argument(array: Any) -> str:
    """Name an argument as a provenance does, by dtype and shape: `bf16[4096,4096]`.

    Args:
      array: an array, or anything with its shape and dtype.
    """
    return str(jax.core.ShapedArray(array.shape, array.dtype).str_short(short_dtypes=True))


class ProvenanceError(ValueError):
    """A figure without its provenance, or one in the wrong place; the message names what lacks."""


@dataclass(frozen=True)
class Provenance:
    """Where a figure comes from.

    Attributes:
      kind: "estimate" or "measurement".
      chip: what it is of: `v5e`, or the device's own name, `NVIDIA H200`.
      arguments: dtypes and shapes of what the program was given, `bf16[4096,4096]`.
      method: how it was made, in words.
      versions: of the packages that made it.
      date: the day on which it was made, `2026-11-30`; None for what this build made; `UNKNOWN`
        where nobody says.
      code: hash of the sources that it was made from, or the release that holds them; None for an
        estimate, where nobody took it.

    Raises:
      ProvenanceError: something is missing; the message names the field.
    """

    kind: str
    chip: str
    arguments: tuple[str, ...]
    method: str
    versions: Mapping[str, str]
    date: str | None = None
    code: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in (ESTIMATE, MEASUREMENT):
            raise _lacks("kind", f"{self.kind!r} is neither {ESTIMATE!r} nor {MEASUREMENT!r}")
        for name in ("chip", "method"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise _lacks(name)
        if isinstance(self.arguments, str):
            raise _lacks("arguments", f"{self.arguments!r} is one text; give one for each argument")
        object.__setattr__(self, "arguments", tuple(self.arguments or ()))
        if not self.arguments or not all(isinstance(it, str) and it for it in self.arguments):
            raise _lacks("arguments", "dtype and shape of each: 'bf16[4096,4096]'")
        if not self.versions or not all(self.versions.values()):
            raise _lacks("versions", "those of jax and of what compiled or ran it")
        object.__setattr__(self, "versions", dict(self.versions))
        if self.date is not None and self.date != UNKNOWN:
            _see_that_it_is_a_day(self.date)
        if self.code is None and self.kind == MEASUREMENT:
            raise _lacks("code", "the hash of the measured sources (`sources.code_hash`)")
        if self.code is not None and not self.code:
            raise _lacks("code", "it is empty")

    @classmethod
    def of(
        cls,
        estimate: Estimate | Mapping[str, Any],
        *,
        date: str | None = None,
        code: str | None = None,
    ) -> Self:
        """Return the provenance of an estimate, or of its JSON form.

        Args:
          estimate: an `Estimate`, or what its `to_json` gave.
          date: the day of the record that it was read from; "" and None where it was made live.
          code: hash of the sources of the estimated function.

        Raises:
          ProvenanceError: it does not say what it must; the message names the field.
        """
        data = estimate if isinstance(estimate, Mapping) else _fields_of(estimate)
        return cls.from_json(
            {**{name: data.get(name) for name in _NEEDED}, "date": date or None, "code": code}
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**found, "arguments": list(self.arguments), "versions": dict(self.versions)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave.

        Raises:
          ProvenanceError: something is missing; the message names the field.
        """
        given: dict[str, Any] = {field.name: data.get(field.name) for field in fields(cls)}
        return cls(**given)

    def caption(self) -> str:
        """Say it in one line."""
        return captions([self])[0]

    def __str__(self) -> str:
        return self.caption()


_NEEDED: Final = ("kind", "chip", "arguments", "method", "versions")


def captions(found: Iterable[Provenance]) -> list[str]:
    """Say where figures come from: one line for each kind, method, day and versions.

    Args:
      found: of each figure; those that differ in chip and arguments only share a line.
    """
    shared: dict[str, list[Provenance]] = {}
    for one in found:
        key = json.dumps([one.kind, one.method, dict(one.versions), one.date])
        shared.setdefault(key, []).append(one)
    return [_caption(several) for several in shared.values()]


def _caption(several: list[Provenance]) -> str:
    first = several[0]
    chips: dict[tuple[str, ...], list[str]] = {}
    for one in several:
        named = chips.setdefault(one.arguments, [])
        if one.chip not in named:
            named.append(one.chip)
    where = "for" if first.kind == ESTIMATE else "on"
    of = " and ".join(
        f"{where} {', '.join(names)}: {', '.join(arguments)}" for arguments, names in chips.items()
    )
    plural = "s" if len({(one.chip, one.arguments, one.code) for one in several}) > 1 else ""
    kind = f"{first.kind}{plural}"
    if first.kind == ESTIMATE:
        kind += ", not measurements" if plural else ", not a measurement"
    parts = [f"{kind}, {of}", first.method]
    parts.append(", ".join(f"{name} {version}" for name, version in first.versions.items()))
    known = f"of {first.date}" if first.date else "made in this build"
    parts.append("on a day that is not known" if first.date == UNKNOWN else known)
    codes = sorted({one.code for one in several if one.code})
    if len(codes) > _FEW:
        parts.append(f"hashes of {len(codes)} codes in the record")
    elif codes:
        parts.append("code " + ", ".join(map(_abridged, codes)))
    return "; ".join(parts)


def _abridged(code: str) -> str:
    return code[:12] if re.fullmatch(r"[0-9a-f]{16,}", code) else code


def stands_in(text: str) -> bool:
    """Whether a text says where its figures come from, in the words of a caption or an estimate."""
    return _CAPTION.search(text) is not None


@dataclass(frozen=True)
class Quantity:
    """A figure that knows where it comes from.

    Attributes:
      value: the figure, in `unit`.
      unit: "s", "B/s", "op/s" or "cycles".
      provenance: where it comes from.
      low: the lower end of its range: of an estimate's error, of a measurement's spread; None where
        there is none.
      high: the upper end.
    """

    value: float
    unit: str
    provenance: Provenance
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"{self.unit!r} is none of the units {', '.join(UNITS)}")
        if not isinstance(self.provenance, Provenance):
            raise ProvenanceError(f"a figure without provenance: {in_words(self.value, self.unit)}")

    @property
    def kind(self) -> str:
        """Estimate or measurement."""
        return self.provenance.kind

    @property
    def range(self) -> str:
        """Its range in words; empty where it has none."""
        if self.low is None or self.high is None:
            return ""
        return f"{in_words(self.low, self.unit)} to {in_words(self.high, self.unit)}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, with the provenance."""
        found = {name: getattr(self, name) for name in ("value", "unit", "low", "high")}
        return {**found, "provenance": self.provenance.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave.

        Raises:
          ProvenanceError: it has no provenance, or one that lacks something.
        """
        if not data.get("provenance"):
            raise ProvenanceError(f"a figure without provenance: {data.get('value')!r}")
        given: dict[str, Any] = {name: data.get(name) for name in ("value", "unit", "low", "high")}
        return cls(**given, provenance=Provenance.from_json(data["provenance"]))

    def __str__(self) -> str:
        return in_words(self.value, self.unit)


def quantity(source: Any, *, date: str | None = None, code: str | None = None) -> Quantity:
    """Return the time of something that has one, with its provenance.

    Args:
      source: an `Estimate`, the JSON form of one, a `Quantity` or its JSON form, or whatever has a
        `quantity`, as a measurement of `bench` does.
      date: of the record that an estimate's JSON form was read from.
      code: hash of the sources of an estimated function.

    Raises:
      ProvenanceError: it does not say where it comes from, as no bare number does.
    """
    if isinstance(source, Quantity):
        return source
    if isinstance(getattr(source, "quantity", None), Quantity):
        return source.quantity  # type: ignore[no-any-return]
    if isinstance(source, Mapping):
        data: Mapping[str, Any] = source
        if "provenance" in data:
            return Quantity.from_json(data)
    elif hasattr(source, "seconds") and hasattr(source, "versions"):
        data = _fields_of(source)
    else:
        raise ProvenanceError(
            f"a figure without provenance: {source!r}; give the estimate or the measurement "
            "itself, or a Quantity"
        )
    given = Provenance.of(data, date=date, code=code)
    return Quantity(data["seconds"], SECONDS, given, data.get("low"), data.get("high"))


@dataclass(frozen=True)
class Ratio:
    """One figure as a part of another, with the provenance of both.

    Attributes:
      value: the quotient.
      of: both figures' provenance.
    """

    value: float
    of: tuple[Provenance, Provenance]

    def __str__(self) -> str:
        kinds = [one.kind for one in self.of]
        mixed = "" if kinds[0] == kinds[1] else f" ({kinds[0]} / {kinds[1]})"
        return f"{self.value:{'.3f' if self.value < 10 else '.1f'}} ×{mixed}"


def ratio(one: Any, other: Any) -> Ratio:
    """Return one figure divided by another.

    Args:
      one: what `quantity` takes.
      other: the same, in the same unit, and not 0.

    Raises:
      ProvenanceError: either is a bare number.
      ValueError: their units differ, or the second is not positive.
    """
    first, second = quantity(one), quantity(other)
    if first.unit != second.unit:
        raise ValueError(f"a ratio of {first.unit} to {second.unit} means nothing")
    if not second.value > 0:
        raise ValueError(f"a ratio to {second.value} means nothing")
    return Ratio(first.value / second.value, (first.provenance, second.provenance))


def _fields_of(estimate: Any) -> dict[str, Any]:
    found = {name: getattr(estimate, name) for name in (*_NEEDED[1:], "seconds", "low", "high")}
    return {"kind": ESTIMATE, **found}


def _lacks(name: str, why: str = "") -> ProvenanceError:
    return ProvenanceError(
        f"a figure without provenance: `{name}` is missing{f' ({why})' if why else ''}"
    )


def _see_that_it_is_a_day(day: str) -> None:
    try:
        good = bool(_DAY.fullmatch(day)) and bool(Date.fromisoformat(day))
    except ValueError:
        good = False
    if not good:
        raise _lacks("date", f"{day!r} is no day such as '2026-11-30'")
