"""A ladder report: every verdict on one program, as text, HTML, rich table or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pallas_rungs.ladder.report_html import report_html
from pallas_rungs.ladder.report_text import report_text
from pallas_rungs.ladder.rules import suggestions
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict
from pallas_rungs.ladder.versions import versions

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMAT = 1
"""Version of the JSON form."""


@dataclass(frozen=True)
class Report:
    """What the ladder says about one program.

    Attributes:
      name: the program.
      verdicts: one for each rung and target that was asked for, in order.
      versions: versions and date the verdicts were made with.
    """

    name: str
    verdicts: tuple[Verdict, ...]
    versions: dict[str, str] = field(default_factory=versions)

    def of(self, rung: Rung | str, target: str | None = None) -> Verdict:
        """Return the verdict of a rung.

        Args:
          rung: the rung.
          target: the chip or simulator setting. None: of several, the first that did not pass, else
            the first.

        Raises:
          KeyError: it was not asked for; the message lists what was.
        """
        found = [v for v in self.verdicts if v.rung == rung and target in (None, v.target)]
        if not found:
            asked = ", ".join(v.label for v in self.verdicts) or "nothing"
            raise KeyError(f"no verdict of {rung} {target or ''}: asked for were {asked}")
        return next((v for v in found if not v.passed), found[0])

    def status(self, rung: Rung | str, target: str | None = None) -> Status:
        """Return the status of a rung; see `of`."""
        return self.of(rung, target).status

    @property
    def passed(self) -> bool:
        """True when every rung asked for passed, and at least one was."""
        return bool(self.verdicts) and all(v.passed for v in self.verdicts)

    @property
    def exit_code(self) -> int:
        """0 when every rung asked for passed, else 1."""
        return 0 if self.passed else 1

    def first_caught(self) -> Rung | None:
        """Return the lowest rung that blames the kernel; None if none does."""
        return min(
            (v.rung for v in self.verdicts if v.status.blames_kernel),
            key=lambda rung: rung.number,
            default=None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data that `from_json` reads back to an equal report."""
        caught = self.first_caught()
        return {
            "format": FORMAT,
            "name": self.name,
            "passed": self.passed,
            "first_caught": None if caught is None else str(caught),
            "versions": dict(self.versions),
            "verdicts": [_with_rules(v) for v in self.verdicts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a report from what `to_json` gave.

        Raises:
          ValueError: the data is of another format.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"report format {data.get('format')!r}; this code reads {FORMAT}")
        verdicts = tuple(Verdict.from_json(v) for v in data["verdicts"])
        return cls(data["name"], verdicts, dict(data["versions"]))

    def __str__(self) -> str:
        return report_text(self.name, self.verdicts, self.versions)

    def _repr_html_(self) -> str:
        return report_html(self.name, self.verdicts, self.versions)

    def rich(self) -> RenderableType:
        """Return the report as a table for a rich console."""
        from pallas_rungs.ladder.report_rich import report_rich

        return report_rich(self.name, self.verdicts, self.versions)


def _with_rules(verdict: Verdict) -> dict[str, Any]:
    """The verdict's JSON with the rules it points to, which are read off it and not read back."""
    return {**verdict.to_json(), "rules": [each.to_json() for each in suggestions(verdict)]}
