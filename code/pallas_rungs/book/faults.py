"""What makes a build fail, and how it is printed: at the very end, chapter by chapter."""

from __future__ import annotations

import atexit
import logging
import sys
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util.logging import get_node_location, is_suppressed_warning


@dataclass(frozen=True)
class Fault:
    """One cause for which the build fails.

    Attributes:
        place: Where: ``book/start/x.md:34``, or a file, or empty when nothing narrower is known.
        cause: One line: what was wrong.
        cell: Which cell of the chapter, such as ``code cell 3``; empty outside cells.
        details: Further lines: the claim, the drawn symbol, values, advice.
    """

    place: str
    cause: str
    cell: str = ""
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = ": ".join(part for part in (self.place, self.cell, self.cause) if part)
        return "\n".join([head, *(f"    {line}" for line in self.details)])


class ChapterFaults(SphinxError):  # noqa: N818 - it stands for a list of faults
    """Chapters whose cells or drawings are at fault; the build stops before any page is read."""

    category = "Chapters at fault"


class FaultLog(logging.Handler):
    """Collects the faults of one build, Sphinx's warnings among them, and prints them last.

    Args:
        app: The Sphinx application; places are shown relative to its source folder.
    """

    def __init__(self, app: Sphinx) -> None:
        super().__init__(level=logging.WARNING)
        self.app = app
        self.root = Path(app.srcdir)
        self.faults: list[Fault] = []
        self.failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take one warning of Sphinx as a fault."""
        place = self.shorten(self._place(getattr(record, "location", None)))
        message = record.getMessage().strip().splitlines() or [""]
        self.faults.append(Fault(place, message[0], details=tuple(message[1:])))

    def _place(self, location: object) -> str:
        """Return a warning's location as text; Sphinx gives a node, a docname, or docname, line."""
        if isinstance(location, nodes.Node):
            return get_node_location(location) or ""
        docname, line = location if isinstance(location, tuple) else (location, None)
        if not docname:
            return ""
        place = str(docname)
        if place in self._docnames():
            place = str(self.app.env.doc2path(place))
        return f"{place}:{line}" if line else place

    def _docnames(self) -> set[str]:
        """Return the docnames of the book, or none before they are known."""
        return set(getattr(self.app.env, "found_docs", ()))

    def add(self, fault: Fault) -> None:
        """Note one fault that is no warning; the build fails even where warnings are forgiven."""
        self.faults.append(fault)
        self.failed = True

    def shorten(self, place: str) -> str:
        """Return a place relative to the book's folder, where it lies in it."""
        return place.replace(f"{self.root}/", "")

    def report(self) -> str:
        """Return all faults, each once, in the order in which they came."""
        seen = list(dict.fromkeys(str(fault) for fault in self.faults))
        count = "1 fault" if len(seen) == 1 else f"{len(seen)} faults"
        head = f"The book was not built: {count}." if self.failed else f"The book has {count}."
        return "\n".join(["", head, *seen])


class _SkipSuppressed(logging.Filter):
    """Drops warnings that ``suppress_warnings`` names."""

    def __init__(self, app: Sphinx) -> None:
        super().__init__()
        self.app = app

    def filter(self, record: logging.LogRecord) -> bool:
        kind = getattr(record, "type", "") or ""
        subtype = getattr(record, "subtype", "") or ""
        suppressed = self.app.config.suppress_warnings
        return not is_suppressed_warning(kind, subtype, suppressed)


_logs: dict[int, FaultLog] = {}


def fault_log(app: Sphinx) -> FaultLog:
    """Return the fault log of this build."""
    return _logs[id(app)]


def _print_at_exit(log: FaultLog) -> None:
    if log.faults:
        sys.stdout.flush()
        print(log.report(), file=sys.stderr, flush=True)


def _finish(app: Sphinx, exception: Exception | None) -> None:
    """Keep a red build red: forget the read pages, so that the next build warns again."""
    log = fault_log(app)
    if exception is not None and not isinstance(exception, ChapterFaults):
        log.add(Fault("", f"{type(exception).__name__}: {exception}"))
    strict = app.warningiserror or app.keep_going
    log.failed = log.failed or exception is not None or (strict and bool(log.faults))
    if log.failed:
        app.statuscode = 1
    if log.faults:
        (Path(app.doctreedir) / "environment.pickle").unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    """Collect the build's warnings and faults, and print them after everything else."""
    log = FaultLog(app)
    _logs[id(app)] = log
    log.addFilter(_SkipSuppressed(app))
    logging.getLogger("sphinx").addHandler(log)
    atexit.register(_print_at_exit, log)
    app.connect("build-finished", _finish, priority=1000)
