"""An estimate as text and as HTML; both say that it is one, of what, and how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pallas_rungs.performance.estimate import Estimate
    from pallas_rungs.performance.kernel import KernelEstimate

_HEADINGS = ("program", "times", "estimate", "steps", "cycles a step", "waiting", "bound by")


def in_time(seconds: float) -> str:
    """Write a time with three figures: `1.01 ms`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def in_bytes(size: int) -> str:
    """Write a size with three figures: `512 MiB`."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{_three(size / scale)} {unit}"
    return f"{size} bytes"


def _three(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def left_out(size: int | None) -> str:
    """Say in a clause what a cross-program prefetch keeps out of an estimate; empty for none.

    Args:
      size: an estimate's `prefetched_bytes`.
    """
    if not size:
        return ""
    return (
        f"{in_bytes(size)} of arguments are fetched onto the chip before the program starts "
        "(a cross-program prefetch): neither those bytes nor their time are in the figures"
    )


def headline(found: Estimate) -> str:
    """Say the estimate, its chip and its range in one line."""
    text = f"estimate for {found.chip}, not a measurement: {in_time(found.seconds)}"
    if found.unresolved:  # the range is that of estimates for which nothing was guessed
        text += ", partly guessed"
    if found.low is None or found.high is None:
        return f"{text} (error not known: {found.error})"
    return f"{text} ({in_time(found.low)} to {in_time(found.high)}: {found.error})"


def facts(found: Estimate) -> Iterator[str]:
    """Say what the program moves and what of its main kernel stands out."""
    read, written = in_bytes(found.hbm_read_bytes), in_bytes(found.hbm_written_bytes)
    yield f"HBM: {read} read, {written} written"
    if said := left_out(found.prefetched_bytes):
        shadow = "in the shadow of the one before"
        yield f"{said}; the time is that of a program whose arguments were fetched {shadow}"
    if not found.kernels:
        return
    main = found.main
    units = sorted(main.occupancy.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{unit} {share:.0%}" for unit, share in units if share >= 0.005)
    yield f"{main.name}, occupancy: {shares or 'not known'}"
    spilled = f"{main.spills} spills and {main.fills} fills executed"
    vmem = in_bytes(main.vmem_bytes) if main.vmem_bytes else "not told"
    yield f"{main.name}: {main.dmas} DMAs, {spilled}; VMEM {vmem}"


def provenance(found: Estimate) -> str:
    """Say how and with what the estimate was made."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    frequency, rate = found.clock.frequency, found.clock.hbm_rate
    return (
        f"estimate by: {found.method}; {versions}; clock {frequency.value / 1e9:g} GHz "
        f"({frequency.source}), HBM {rate.value / 1e9:.0f} GB/s ({rate.source})"
    )


def _rows(found: Estimate) -> list[tuple[str, ...]]:
    return [_row(found, kernel) for kernel in found.kernels]


def _row(found: Estimate, kernel: KernelEstimate) -> tuple[str, ...]:
    waiting = kernel.stall_cycles / kernel.cycles if kernel.cycles else 0.0
    kind = "" if kernel.pallas else " (XLA)"
    return (
        f"{kernel.name}{kind}",
        str(kernel.times),
        in_time(found.seconds_of(kernel)),
        str(kernel.steps),
        f"{kernel.cycles_per_step:.0f}",
        f"{waiting:.0%}",
        kernel.given_up or kernel.bound,
    )


def in_columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Write rows as indented lines, the first of them headings; numbers stand to the right.

    The first column names the row and the last one says something: all between hold numbers.
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *numbers, said in rows:
        cells = [name.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append(f"  {'  '.join([*cells, said]).rstrip()}")
    return lines


def table_html(caption: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Write rows as an HTML table; the first cell of each names it."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def report_text(found: Estimate) -> str:
    """Return the estimate as plain text."""
    lines = [f"{found.name}({', '.join(found.arguments)})", headline(found)]
    lines += [f"  {fact}" for fact in facts(found)]
    if found.kernels:
        lines += in_columns([_HEADINGS, *_rows(found)])
    lines += [f"  guessed: {what}" for what in found.unresolved]
    return "\n".join([*lines, provenance(found)])


def report_html(found: Estimate) -> str:
    """Return the estimate as one HTML element of class `pr-estimate`."""
    caption = f"{found.name}({', '.join(found.arguments)})"
    guessed = "".join(f"<li>guessed: {escape(what)}</li>" for what in found.unresolved)
    told = "".join(f"<li>{escape(fact)}</li>" for fact in facts(found))
    return (
        f'<div class="pr-estimate" data-chip="{escape(found.chip)}">'
        f"<p><strong>{escape(headline(found))}</strong></p>"
        f"{table_html(caption, _HEADINGS, _rows(found))}"
        f"<ul>{told}{guessed}</ul>"
        f"<p><small>{escape(provenance(found))}</small></p></div>"
    )
