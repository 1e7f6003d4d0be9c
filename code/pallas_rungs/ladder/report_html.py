"""The HTML form of a ladder report: a table that reads well without any style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.report_text import at_line, versions_line
from pallas_rungs.ladder.rules import suggestions
from pallas_rungs.ladder.verdict import Frame, Verdict


def report_html(name: str, verdicts: Sequence[Verdict], versions: Mapping[str, str]) -> str:
    """Return the report as one HTML element of class `pr-ladder`.

    Each verdict is a row of class `pr-verdict` with `data-rung`, `data-target` and `data-status`;
    what is long (error, line, advice) is folded into a `<details>`.
    """
    rows = "".join(_row(verdict) for verdict in verdicts)
    return (
        '<div class="pr-ladder"><table class="pr-ladder-table">'
        f"<caption>{escape(name)}</caption>"
        '<thead><tr><th scope="col">Rung</th><th scope="col">Target</th>'
        '<th scope="col">Verdict</th><th scope="col">What happened</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f'<p class="pr-ladder-versions"><small>{escape(versions_line(versions))}</small></p></div>'
    )


def _row(verdict: Verdict) -> str:
    status = escape(str(verdict.status))
    return (
        f'<tr class="pr-verdict" data-rung="{verdict.rung}" '
        f'data-target="{escape(verdict.target)}" data-status="{status}">'
        f'<th scope="row">{verdict.rung.number}&nbsp;{verdict.rung}</th>'
        f"<td>{escape(verdict.target)}</td>"
        f'<td><strong class="pr-status" data-status="{status}">{status}</strong></td>'
        f"<td>{_what_happened(verdict)}</td></tr>"
    )


def _what_happened(verdict: Verdict) -> str:
    cached = " <small>(cached)</small>" if verdict.cached else ""
    summary = f'<span class="pr-summary">{escape(verdict.said)}</span>{cached}'
    more = _more(verdict)
    if not more:
        return summary
    return f'<details class="pr-details"><summary>{summary}</summary>{more}</details>'


def _line(frame: Frame) -> str:
    if not frame.file:
        return f'<p class="pr-frame">{escape(at_line(frame))}</p>'
    where = f"{frame.role} {frame.file.rpartition('/')[2]}, line {frame.line}".strip()
    source = f": <code>{escape(frame.source)}</code>" if frame.source else ""
    return f'<p class="pr-frame">{escape(where)}{source}</p>'


def _more(verdict: Verdict) -> str:
    parts = []
    if error := verdict.error:
        message = f"{error.type}: {error.full or error.message}"
        parts.append(f'<pre class="pr-error">{escape(message)}</pre>')
        parts += map(_line, error.lines or ((error.frame,) if error.frame else ()))
        if error.advice:
            parts.append(f'<p class="pr-advice">{escape(error.advice)}</p>')
    parts += [f'<p class="pr-note">{escape(note)}</p>' for note in notes(verdict)]
    parts += [
        f'<p class="pr-rule">{each.kind}: <a href="{escape(each.rule.link)}">'
        f"{escape(each.rule.text)}</a></p>"
        for each in suggestions(verdict)
    ]
    return "".join(parts)
