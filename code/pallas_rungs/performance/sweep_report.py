"""A sweep as text and as HTML; both say that it holds estimates, of what, and how it was made."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from pallas_rungs.performance.report import (
    in_bytes,
    in_columns,
    in_time,
    left_out,
    provenance,
    table_html,
)

if TYPE_CHECKING:
    from pallas_rungs.performance.sweep import Sweep, Trial


def headline(found: Sweep) -> str:
    """Say what was swept, for which chip, and what was best, in one line."""
    text = (
        f"{found.name}({', '.join(found.arguments)}): estimates for {found.chip}, not measurements"
    )
    if not found.estimated:
        return f"{text}: none of {len(found.trials)} configurations has one"
    best = found.best
    assert best.estimate is not None
    return f"{text}: best of {len(found.trials)} is {best.label}, {in_time(best.seconds)}"


def remarks(found: Sweep) -> Iterator[str]:
    """Say what the sweep does not tell, and what has no estimate."""
    if found.estimated:
        best = found.best.estimate
        assert best is not None
        others = len(found.not_told_apart()) - 1
        if best.low is None or best.high is None:
            yield f"no two configurations are told apart: {best.error}"
        elif others:
            yield (
                f"{others} other configuration{'s' if others > 1 else ''} "
                f"within the error of such estimates ({best.error}): not told apart from the best"
            )
        else:
            yield f"the best one's range is apart from all others ({best.error})"
    yield from _guesses(found)
    for trial in (*found.trials, *filter(None, (found.against,))):
        if trial.estimate is not None and (said := left_out(trial.estimate.prefetched_bytes)):
            yield f"{trial.label}: {said}"
    if found.refused:
        kinds: dict[str, int] = {}
        for trial in found.refused:
            kinds[trial.kind] = kinds.get(trial.kind, 0) + 1
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        yield f"without an estimate: {told}"
    if (held := found.against) is not None and held.estimate is None:
        yield f"nothing to hold them against: {held.label}: {held.why}"


def _guesses(found: Sweep) -> Iterator[str]:
    """Say what was guessed, and for which configurations: their ranges do not hold that."""
    labels: dict[str, list[str]] = {}
    for trial in (*found.trials, *filter(None, (found.against,))):
        for guess in trial.estimate.unresolved if trial.estimate is not None else ():
            labels.setdefault(guess, []).append(
                f"({trial.label})" if trial is found.against else trial.label
            )
    for guess, those in labels.items():
        more = f" and {len(those) - 4} more" if len(those) > 5 else ""
        named = "; ".join(those[: 4 if more else 5])
        yield f"guessed for {named}{more}, beyond what the ranges hold: {guess}"


def made_with(found: Sweep) -> str:
    """Say how and with what the sweep was made."""
    for trial in (*found.estimated, *filter(None, (found.against,))):
        if trial.estimate is not None:
            return provenance(trial.estimate)
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return f"estimate by: {found.method}; {versions}"


def sweep_text(found: Sweep) -> str:
    """Return the sweep as plain text."""
    lines = [headline(found), *in_columns([_headings(found), *_rows(found)])]
    return "\n".join([*lines, *remarks(found), made_with(found)])


def sweep_html(found: Sweep) -> str:
    """Return the sweep as one HTML element of class `pr-sweep`."""
    told = "".join(f"<li>{escape(remark)}</li>" for remark in remarks(found))
    return (
        f'<div class="pr-sweep" data-chip="{escape(found.chip)}">'
        f"{table_html(headline(found), _headings(found), _rows(found))}"
        f"<ul>{told}</ul><p><small>{escape(made_with(found))}</small></p></div>"
    )


def _headings(found: Sweep) -> tuple[str, ...]:
    beside = f"× {found.against.label}" if found.against is not None else "× best"
    return ("configuration", "estimate", beside, "waiting", "HBM", "VMEM", "bound by, or why none")


def _rows(found: Sweep) -> Iterator[tuple[str, ...]]:
    best = found.best if found.estimated else None
    for trial in found.trials:
        yield _row(found, trial, best, trial.label)
    if found.against is not None:
        yield _row(found, found.against, best, f"({found.against.label})")


def _row(found: Sweep, trial: Trial, best: Trial | None, label: str) -> tuple[str, ...]:
    if trial.estimate is None:
        return (label, "", "", "", "", "", trial.why)
    part = found.ratio(trial)
    if found.against is None and best is not None and best.seconds:
        part = trial.seconds / best.seconds
    waiting = vmem = bound = ""
    if trial.estimate.kernels:
        main = trial.estimate.main
        waiting = f"{main.stall_cycles / main.cycles:.0%}" if main.cycles else "0%"
        vmem = in_bytes(main.vmem_bytes) if main.vmem_bytes else ""
        bound = main.given_up or main.bound
    return (
        label,
        in_time(trial.seconds) + (" (best)" if trial is best else ""),
        "" if part is None else f"{part:.3f}",
        waiting,
        in_bytes(trial.estimate.hbm_bytes),
        vmem,
        bound,
    )
