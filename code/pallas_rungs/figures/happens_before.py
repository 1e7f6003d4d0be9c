"""The events of a run with their vector clocks: what is ordered before what, and what by nothing.

Every event has a row, in the order of the run, and every core and copy a line down the rows.
Arrows lead from the start of a copy to what it does, and from its signal to the wait for it. A
dashed arc joins two accesses that no path of lines and arrows orders.
"""

from __future__ import annotations

from collections.abc import Mapping

from pallas_rungs.figures.clock_record import ClockRecord, Event, Thread
from pallas_rungs.figures.svg import SVG, Element, Figure, el, mark, number, text
from pallas_rungs.figures.theme import HIGHLIGHTS, colour

_ROW = 30.0
_TOP = 30.0
_LANE = 34.0
_FIRST_COPY = 100


def happens_before(record: ClockRecord, *, names: Mapping[int, str], alt: str) -> Figure:
    """Draw a record of clocks.

    Args:
        record: what `record_clocks` returned.
        names: what each buffer that is read or written is called, by the simulator's number.
        alt: what the figure shows, for readers who cannot see it.

    Raises:
        ValueError: the record has no events or too many threads, or a buffer has no name.
    """
    if not record.events:
        raise ValueError(
            "the record has no events: the kernel's body starts, reads, writes nothing"
        )
    threads = tuple(sorted({e.thread for e in record.events}))  # cores first, then copies
    if len(threads) > HIGHLIGHTS:
        raise ValueError(f"the record has {len(threads)} threads; the figure shows {HIGHLIGHTS}")
    unnamed = {e.buffer for e in record.events} - set(names) - {None}
    if unnamed:
        raise ValueError(f"names has no entry for buffer {min(unnamed)}")  # type: ignore[type-var]
    called = _threads_called(threads)
    rows = [_told(event, names, called) for event in record.events]
    panels = tuple(
        _drawn(record, threads, rows, called, width, show)
        for width, show in ((520.0, "wide"), (324.0, "narrow"))
    )
    arrow = el("path", d="M1 8L14 8M10 4L14 8L10 12", fill="none", stroke=colour("text"))
    keys = [(mark(arrow), "before, by a start, a signal or the order of the program")]
    if record.races():
        dashes = el("path", d="M1 8L15 8", stroke=colour("bad"), stroke_width=2,
                    stroke_dasharray="4 3")  # fmt: skip
        keys.append((mark(dashes), "a race: neither is before the other"))
    return Figure(alt=alt, panels=panels, key=tuple(keys))


def _threads_called(threads: tuple[Thread, ...]) -> dict[Thread, str]:
    copies = [thread for thread in threads if thread[0] >= _FIRST_COPY]
    return {
        thread: (
            f"copy {copies.index(thread) + 1}"
            if thread in copies
            else f"core {thread[1]}" + (f" of device {thread[0]}" if thread[0] else "")
        )
        for thread in threads
    }


def _told(event: Event, names: Mapping[int, str], called: Mapping[Thread, str]) -> str:
    """What an event is, without who did it."""
    match event:
        case Event(what="start", begins=begins) if begins is not None:
            return f"starts {called.get(begins, 'a copy')}"
        case Event(what="signal"):
            return "signals: done"
        case Event(what="wait"):
            return "has waited"
        case _:
            assert event.buffer is not None
            return f"{event.what}s {names[event.buffer]}"


def _edges(events: tuple[Event, ...]) -> list[tuple[int, int]]:
    """Rows joined by an arrow: a start and its copy's first event, a signal and a later wait."""
    found = []
    for i, event in enumerate(events):
        later = range(i + 1, len(events))
        if event.begins is not None:
            found += [(i, j) for j in later if events[j].thread == event.begins][:1]
        if event.what == "signal":
            found += [
                (i, j)
                for j in later
                if events[j].what == "wait" and events[j].semaphore == event.semaphore
            ][:1]
    return found


def _drawn(
    record: ClockRecord,
    threads: tuple[Thread, ...],
    rows: list[str],
    called: Mapping[Thread, str],
    width: float,
    show: str,
) -> SVG:
    events = record.events
    words = 2 * _LANE / 2 + (len(threads) - 1) * _LANE + 26
    racing = {id(e) for pair in record.races() for e in pair}
    lane = {thread: 14 + i * _LANE for i, thread in enumerate(threads)}

    def place(row: int) -> tuple[float, float]:
        return lane[events[row].thread], _TOP + row * _ROW + _ROW / 2

    body: list[Element] = [
        text(width, 14, "clock", size=12, fill=colour("muted"), anchor="end"),
        text(words, 14, "event", size=12, fill=colour("muted")),
    ]
    for i, thread in enumerate(threads):
        at = [place(row)[1] for row, event in enumerate(events) if event.thread == thread]
        body.append(
            el("path", d=f"M{number(lane[thread])} {number(at[0])}V{number(at[-1])}",
               stroke=colour(str(i + 1)), stroke_width=2.5)
        )  # fmt: skip
    body.extend(_arrow(*place(i), *place(j)) for i, j in _edges(events))
    row_of = {id(event): row for row, event in enumerate(events)}
    for a, b in record.races():
        (x0, y0), (x1, y1) = place(row_of[id(a)]), place(row_of[id(b)])
        bend = max(x0, x1) + 26
        body.append(
            el("path", d=f"M{number(x0)} {number(y0)}C{number(bend)} {number(y0)} {number(bend)} "
               f"{number(y1)} {number(x1)} {number(y1)}", fill="none", stroke=colour("bad"),
               stroke_width=2, stroke_dasharray="4 3")
        )  # fmt: skip
    for row, event in enumerate(events):
        x, y = place(row)
        i = threads.index(event.thread) + 1
        hot = id(event) in racing
        body.append(
            el("circle", cx=x, cy=y, r=6.5 if hot else 5, fill=colour(f"fill-{i}"),
               stroke=colour("bad" if hot else str(i)), stroke_width=2.5 if hot else 1.5)
        )  # fmt: skip
        label = f"{called[event.thread]} {rows[row]}"
        body.append(
            text(words, y + 4, label, size=12.5, weight=700 if hot else None, fill=colour("text"))
        )
        ticks = "[" + ", ".join(map(str, event.clock)) + "]"
        body.append(
            text(width, y + 4, ticks, size=12, mono=True, weight=700 if hot else None,
                 fill=colour("text"), anchor="end")
        )  # fmt: skip
    height = _TOP + len(events) * _ROW
    title = f"{len(events)} events and their clocks"
    desc = _sentences(record, rows, called, row_of)
    return SVG(width, height, tuple(body), title, desc, show=show)


def _sentences(
    record: ClockRecord, rows: list[str], called: Mapping[Thread, str], row_of: Mapping[int, int]
) -> str:
    told = [
        f"Row {row}: {called[event.thread]} {words}, clock {list(event.clock)}."
        for row, (event, words) in enumerate(zip(record.events, rows, strict=True))
    ]
    told += [
        f"Rows {row_of[id(a)]} and {row_of[id(b)]} race: neither is before the other."
        for a, b in record.races()
    ]
    return " ".join(told)


def _arrow(x0: float, y0: float, x1: float, y1: float) -> Element:
    side = 1 if x1 > x0 else -1
    tip = x1 - side * 7
    wings = (
        f"M{number(tip - side * 5)} {number(y1 - 4)}L{number(tip)} {number(y1)}"
        f"L{number(tip - side * 5)} {number(y1 + 4)}"
    )
    path = (
        f"M{number(x0 + side * 6)} {number(y0 + 3)}"
        f"Q{number((x0 + x1) / 2)} {number(y1)} {number(tip)} {number(y1)}"
    )
    return el("path", d=path + wings, fill="none", stroke=colour("text"), stroke_width=1.4)
