"""The GitHub-flavoured Markdown form of ladder reports, for a pull request's comment.

What comes from the program (messages, names, lines of code) stands in code spans and fenced blocks:
there GitHub renders no markup, links no issue and calls nobody by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.report_text import at_line, versions_line
from pallas_rungs.ladder.rules import suggestions
from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Verdict

_LONGEST_ERROR = 3000
_MARK = {
    Status.PASSED: "✅",
    Status.UNCHECKED: "❔",
    Status.TOOL_CANNOT: "❔",
    Status.UNAVAILABLE: "➖",
}
_FAULT = "❌"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_PROSE = re.compile(r"[\w .,:;()/%'-]*\Z", re.ASCII)


def report_markdown(report: Report, title: str = "") -> str:
    """Return the report as a heading, a table and, folded, more on every verdict that needs it.

    Args:
      report: what the ladder says.
      title: what stands above it instead of the report's name.
    """
    sick = sum(_mark(v) == _FAULT for v in report.verdicts)
    said = "every rung asked for passed" if report.passed else f"{sick} of {len(report.verdicts)}"
    said += "" if report.passed else " verdicts found fault"
    lines = [
        f"### {code(title or report.name)}: {said}",
        "",
        "| rung | target | verdict | what happened |",
        "|---|---|---|---|",
        *(_row(v) for v in report.verdicts),
    ]
    for folded in _folded(report.verdicts):
        lines += ["", *folded]
    lines += ["", f"<sub>{versions_line(report.versions)}</sub>"]
    return "\n".join(lines)


def error_markdown(target: str, error: str) -> str:
    """Return what stands in a report's place when a target could not be tried."""
    return "\n".join([f"### {code(target)}: {_FAULT} could not be tried", "", *fenced(error)])


def _mark(verdict: Verdict) -> str:
    return _MARK.get(verdict.status, _FAULT)


def _row(verdict: Verdict) -> str:
    cached = " (cached)" if verdict.cached else ""
    cells = (
        f"{verdict.rung.number} {verdict.rung}",
        words(verdict.target),
        f"{_mark(verdict)} {verdict.status}",
        "; ".join(filter(None, (words(verdict.summary), verdict.estimate))) + cached,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _folded(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Return what is long about the verdicts, once where several say the same."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for verdict in verdicts:
        if more := tuple(_more(verdict)):
            labels.setdefault(more, []).append(verdict.label)
    return [
        [
            f"<details><summary>{words(', '.join(said), inside_html=True)}</summary>",
            "",
            *more,
            "",
            "</details>",
        ]
        for more, said in labels.items()
    ]


def _more(verdict: Verdict) -> list[str]:
    lines: list[str] = []
    if error := verdict.error:
        full = error.full or error.message
        lines += fenced(f"{error.type}: {full}" if error.type else full)
        if error.lines:
            lines += [each for line in error.lines for each in ("", code(at_line(line)))]
        elif frame := error.frame:
            lines += ["", code(f"{frame.file}:{frame.line}: {frame.source}".rstrip(": "))]
        if error.advice:
            lines += ["", f"→ {words(error.advice)}"]
    for note in notes(verdict):
        lines += ["", words(note)]
    for each in suggestions(verdict):
        lines += ["", f"{each.kind}: [{words(each.rule.text)}]({each.rule.link})"]
    return lines[1:] if lines[:1] == [""] else lines


def words(text: str, *, inside_html: bool = False) -> str:
    """Return prose as it is, and anything that Markdown could take for markup as code."""
    if _PROSE.match(text):
        return text
    if inside_html:
        return re.sub(r"[^\w .,-]", lambda m: f"&#{ord(m[0])};", _CONTROL.sub("\ufffd", text))
    return code(text)


def code(text: str) -> str:
    """Return a code span that holds any text, on one line."""
    line = _CONTROL.sub("\ufffd", " ".join(text.split()))
    if not line:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def fenced(text: str) -> list[str]:
    """Return the lines of a fenced block that holds any text, cut where it is very long."""
    clean = _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))
    if len(clean) > _LONGEST_ERROR:
        clean = clean[:_LONGEST_ERROR] + "\n… (cut)"
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *clean.splitlines(), fence]
