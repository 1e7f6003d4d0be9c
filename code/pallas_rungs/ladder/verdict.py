"""What one rung said about one program, in a form that crosses process boundaries as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pallas_rungs.ladder.status import Rung, Status


@dataclass(frozen=True)
class Frame:
    """A line of the user's own code.

    Attributes:
      file: path of the source file as Python knows it.
      line: line number, from 1.
      function: name of the enclosing function.
      source: text of the line, stripped; empty when the file cannot be read.
      role: what the line did, e.g. `"read"`, where an error has several lines.
    """

    file: str
    line: int
    function: str = ""
    source: str = ""
    role: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a frame from what `to_json` gave."""
        return cls(**data)


@dataclass(frozen=True)
class KernelError:
    """The innermost error that a rung met.

    Attributes:
      type: name of the exception type, e.g. `"ValueError"`.
      message: first line of the message.
      full: the whole message.
      frame: the innermost line of the user's own code, if one is on the stack.
      advice: what to do about it; empty when the ladder knows nothing to say.
      lines: all the lines that it is about, each with its role, where it is about several or about
        what a line did; `frame` is one of them. The file of one that is not the user's is empty.
    """

    type: str
    message: str
    full: str = ""
    frame: Frame | None = None
    advice: str = ""
    lines: tuple[Frame, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**dataclasses.asdict(self), "lines": [line.to_json() for line in self.lines]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build an error from what `to_json` gave."""
        frame = data.get("frame")
        return cls(
            type=data["type"],
            message=data["message"],
            full=data.get("full", ""),
            frame=None if frame is None else Frame.from_json(frame),
            advice=data.get("advice", ""),
            lines=tuple(map(Frame.from_json, data.get("lines", ()))),
        )


@dataclass(frozen=True)
class Difference:
    """How a result differs from its reference.

    Attributes:
      count: elements outside the tolerance.
      total: elements compared.
      nan: how many of the `count` are NaN in the result.
      max_abs_error: largest absolute error over finite pairs.
      max_rel_error: largest error relative to the reference over finite pairs with a nonzero
        reference.
      first_index: index of the first element that differs, in row-major order.
      got: that element of the result, as text.
      want: that element of the reference, as text.
      rtol: relative tolerance used.
      atol: absolute tolerance used.
      output: path of the output leaf in the result's pytree; empty for a single array.
      mismatch: says what is wrong when shapes or structures differ; then no numbers were compared.
      patterns: what is regular about the places of the elements that differ; see `patterns`.
      place: the block that the first of them is in, and who writes it; empty where unknown.
    """

    count: int
    total: int
    nan: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    first_index: tuple[int, ...] = ()
    got: str = ""
    want: str = ""
    rtol: float = 0.0
    atol: float = 0.0
    output: str = ""
    mismatch: str = ""
    patterns: tuple[str, ...] = ()
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            **dataclasses.asdict(self),
            "first_index": list(self.first_index),
            "patterns": list(self.patterns),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a difference from what `to_json` gave."""
        tuples = {
            "first_index": tuple(data["first_index"]),
            "patterns": tuple(data.get("patterns", ())),
        }
        return cls(**{**data, **tuples})

    def __str__(self) -> str:
        where = f"output {self.output}: " if self.output else ""
        if self.mismatch:
            return f"{where}{self.mismatch}"
        index = "(" + ", ".join(map(str, self.first_index)) + ")"
        nan = f", {self.nan} of them NaN" if self.nan else ""
        size = (
            ""
            if self.count == self.nan
            else f"; largest error {self.max_abs_error:.3g} (relative {self.max_rel_error:.3g})"
        )
        return (
            f"{where}{self.count} of {self.total} values differ{nan}; "
            f"first at {index}: got {self.got}, want {self.want}{size}"
        )


@dataclass(frozen=True)
class Verdict:
    """What one rung said.

    Attributes:
      rung: which rung.
      status: the verdict word, after attribution.
      target: the chip for lower and compile, the setting for simulate, else empty.
      summary: one line that says what happened.
      observed: what happened before the ladder attributed it. It differs from `status` only for
        `tool cannot`, where it is the raw outcome.
      error: the innermost error, if there was one.
      difference: how the numbers differ, if they were compared and do.
      details: further JSON-able facts (kernels counted, pretend level, VMEM, …).
      seconds: wall time.
      cached: the verdict was read from the disk cache.
    """

    rung: Rung
    status: Status
    target: str = ""
    summary: str = ""
    observed: Status = Status.PASSED
    error: KernelError | None = None
    difference: Difference | None = None
    details: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    cached: bool = False

    @classmethod
    def of(
        cls, rung: Rung, status: Status, target: str = "", summary: str = "", **fields: Any
    ) -> Self:
        """Build a verdict whose `observed` is its `status`."""
        fields.setdefault("observed", status)
        return cls(rung=rung, status=status, target=target, summary=summary, **fields)

    @property
    def passed(self) -> bool:
        """True for `passed` alone: `unchecked` and `no kernel` prove nothing."""
        return self.status is Status.PASSED

    @property
    def label(self) -> str:
        """The rung and its target, e.g. `"compile v5e"`."""
        return f"{self.rung} {self.target}".rstrip()

    @property
    def estimate(self) -> str:
        """The estimate beside a compiled program, in one clause; empty where there is none."""
        return str(self.details.get("estimate", {}).get("text", ""))

    @property
    def said(self) -> str:
        """What happened in one line, with the estimate where there is one."""
        return "; ".join(filter(None, (self.summary, self.estimate)))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data that `from_json` reads back to an equal verdict."""
        return {
            "rung": str(self.rung),
            "status": str(self.status),
            "target": self.target,
            "summary": self.summary,
            "observed": str(self.observed),
            "error": None if self.error is None else self.error.to_json(),
            "difference": None if self.difference is None else self.difference.to_json(),
            "details": self.details,
            "seconds": self.seconds,
            "cached": self.cached,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a verdict from what `to_json` gave.

        Raises:
          ValueError: a rung or status is not in the closed sets.
        """
        error, difference = data.get("error"), data.get("difference")
        status = Status(data["status"])
        return cls(
            rung=Rung(data["rung"]),
            status=status,
            target=data.get("target", ""),
            summary=data.get("summary", ""),
            observed=Status(data.get("observed", status)),
            error=None if error is None else KernelError.from_json(error),
            difference=None if difference is None else Difference.from_json(difference),
            details=dict(data.get("details", {})),
            seconds=float(data.get("seconds", 0.0)),
            cached=bool(data.get("cached", False)),
        )
