"""The book executes its chapters: those whose key is not in the store, several at once."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from nbformat import NotebookNode, from_dict
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from pallas_rungs.book.absent import absent_extra, outputs_without
from pallas_rungs.book.dependencies import Lookups, chapter_key, import_roots, versions
from pallas_rungs.book.faults import ChapterFaults, fault_log
from pallas_rungs.book.findings import failure_fault, stderr_faults
from pallas_rungs.book.forked_kernels import ForkServer
from pallas_rungs.book.lasting import LastingNames
from pallas_rungs.book.notebooks import Chapter, read_chapter
from pallas_rungs.book.session import Failure, Session
from pallas_rungs.book.store import Execution, Store
from pallas_rungs.claims import MIME
from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.once import FOLDER
from pallas_rungs.compilers.service import ADDRESS_VARIABLE
from pallas_rungs.performance.provenance import MIME as PROVENANCE

_log = logging.getLogger(__name__)


@dataclass
class Book:
    """The chapters of one build.

    Attributes:
        chapters: The pages with code cells, by docname.
        keys: Their content keys.
        executions: Their executions, as far as there are any yet.
        store: Where executions are kept.
        environment: The variables that kernels see.
        fresh: Whether everything is executed anew, whatever the store holds.
    """

    chapters: dict[str, Chapter]
    keys: dict[str, str]
    store: Store
    environment: dict[str, str]
    fresh: bool
    executions: dict[str, Execution] = field(default_factory=dict)


_books: WeakKeyDictionary[Sphinx, Book] = WeakKeyDictionary()
_current: list[Book] = []


def book_of(app: Sphinx) -> Book:
    """Return the chapters of this build; they are known from ``env-get-outdated`` on."""
    return _books[app]


def executed_notebook(app: Sphinx, docname: str) -> NotebookNode:
    """Return a chapter as a notebook, drawn cells expanded, with the outputs of its execution.

    The front matter is its metadata, with ``source_map`` (the line, from 0, on which each cell
    starts) and ``pallas_rungs`` (``key``, ``date``, ``seconds``, ``versions``).

    Args:
        app: The Sphinx application.
        docname: The chapter's docname.

    Raises:
        KeyError: The page has no code cells, or was not executed in this build.
    """
    return _filled(book_of(app), docname)


def chapter_docnames(app: Sphinx) -> list[str]:
    """Return the docnames of all executed chapters, sorted."""
    return sorted(book_of(app).executions)


def _node(value: dict[str, Any]) -> NotebookNode:
    return from_dict(value)  # type: ignore[no-untyped-call,no-any-return]


def _filled(book: Book, docname: str) -> NotebookNode:
    chapter, execution = book.chapters[docname], book.executions[docname]
    notebook = copy.deepcopy(chapter.notebook)
    for cell, outputs in zip(chapter.cells, execution.outputs, strict=True):
        node = notebook.cells[cell.index]
        node.execution_count = cell.number
        node.outputs = [_node(output) for output in outputs]
    notebook.metadata["language_info"] = _node(
        {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"}
    )
    notebook.metadata["pallas_rungs"] = _node(
        {
            "key": execution.key,
            "date": execution.date,
            "seconds": execution.seconds,
            "versions": execution.versions,
        }
    )
    return notebook


def kernel_environment(code: Path, fresh: bool) -> dict[str, str]:
    """Return the variables of a chapter's kernel: ours, with what makes outputs differ fixed.

    Args:
        code: The book's ``code/`` folder; chapters import from it.
        fresh: Whether this is the gate, where no cache may answer.
    """
    paths = [str(code), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    if fresh:
        environment["PALLAS_RUNGS_NO_CACHE"] = "1"
    return environment


def _read_book(app: Sphinx, env: BuildEnvironment) -> Book:
    root = Path(app.srcdir)
    code = root / app.config.pallas_rungs_code
    fresh = os.environ.get("PALLAS_RUNGS_FRESH", "") not in ("", "0")
    environment = kernel_environment(code, fresh)
    chapters: dict[str, Chapter] = {}
    for docname in sorted(env.found_docs):
        path = Path(env.doc2path(docname))
        if path.suffix != ".md":
            continue
        shown = os.path.relpath(path, root)
        sources = root / app.config.pallas_rungs_sources
        chapter = read_chapter(docname, path, shown, sources, code)
        if chapter is not None:
            chapters[docname] = chapter
    roots = import_roots(code)
    lookups = Lookups(roots)
    keys = {
        docname: chapter_key(chapter, roots, environment, lookups)
        for docname, chapter in chapters.items()
        if not chapter.faults
    }
    store = Store(Path(app.outdir).parent / "executed")
    return Book(chapters, keys, store, environment, fresh)


def _outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Name the chapters to read again: their key changed, or the store lacks their outputs."""
    book = _books[app] = _read_book(app, env)
    _current[:] = [book]
    if not book.fresh:
        for docname, key in book.keys.items():
            execution = book.store.get(docname, key)
            if execution is not None:
                book.executions[docname] = execution
    read_with: dict[str, str] = getattr(env, "pallas_rungs_keys", {})
    return [
        docname
        for docname in book.chapters
        if docname not in book.executions or read_with.get(docname) != book.keys.get(docname)
    ]


def _execute(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Execute what is not in the store; stop the build when any chapter is at fault."""
    book = book_of(app)
    log = fault_log(app)
    for chapter in book.chapters.values():
        for fault in chapter.faults:
            log.add(fault)
    for docname in book.keys:
        chapter = book.chapters[docname]
        if docname not in book.executions and (extra := absent_extra(chapter)):
            outputs = outputs_without(chapter, extra)
            _keep(book, docname, outputs, 0.0)
            _log.info("chapters: not executed: %s needs %s", chapter.shown, extra)
    waiting = [docname for docname in book.keys if docname not in book.executions]
    if waiting:
        book.environment[FOLDER] = str(_emptied(Path(app.outdir).parent / "climbs"))
        jobs = _jobs(app)
        _log.info("chapters: %d to execute, %d at a time", len(waiting), jobs)
        asyncio.run(_execute_all(app, book, waiting, jobs))
    if log.failed:
        raise ChapterFaults("no page was read; what is to mend stands at the end of this output")
    env.pallas_rungs_keys = dict(book.keys)  # type: ignore[attr-defined]
    formats = {
        f"/{docname}.md": ("pallas_rungs.book.execute.read_executed", {"docname": docname}, False)
        for docname in book.chapters
    }
    env.mystnb_config = env.mystnb_config.copy(  # type: ignore[attr-defined]
        custom_formats=formats, execution_mode="off"
    )


def _emptied(folder: Path) -> Path:
    """Return a folder in which nothing is left of an earlier build."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def read_executed(text: str, *, docname: str) -> NotebookNode:
    """Read a chapter for MyST-NB: cells and outputs as executed, instead of the text given.

    Outputs in our own machine-readable form are left out; the page has their HTML.
    """
    notebook = _filled(_current[0], docname)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for own in (MIME, PROVENANCE):
                output.get("data", {}).pop(own, None)
    return notebook


def _cell_seconds(app: Sphinx) -> int:
    """Return the limit for one cell; a slow machine may ask for more in the environment."""
    return int(os.environ.get("PALLAS_RUNGS_CELL_SECONDS") or app.config.pallas_rungs_cell_seconds)


def _jobs(app: Sphinx) -> int:
    asked = os.environ.get("PALLAS_RUNGS_JOBS") or app.config.pallas_rungs_jobs
    if int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


async def _execute_all(app: Sphinx, book: Book, waiting: list[str], jobs: int) -> None:
    """Execute chapters, those that took longest first, so that no long one is left to the end."""
    gate = asyncio.Semaphore(jobs)
    left = len(waiting)

    async def one(docname: str, shared: _Shared) -> None:
        nonlocal left
        chapter = book.chapters[docname]
        async with gate:
            _log.info("chapters: executing %s", chapter.shown)
            notebook = copy.deepcopy(chapter.notebook)
            session = Session(
                notebook, shared.environment, _cell_seconds(app), server=shared.server
            )
            failure = await session.run()
        left -= 1
        healthy = _judge(app, book, chapter, notebook, session, failure)
        state = "executed" if healthy else "FAILED"
        _log.info("chapters: %s %s in %.1f s; %d left", state, chapter.shown, session.seconds, left)

    took = {docname: book.store.last_seconds(docname) for docname in waiting}
    order = sorted(waiting, key=lambda docname: -took[docname])
    with _shared(book.environment, jobs) as shared:
        await asyncio.gather(*(one(docname, shared) for docname in order))


@dataclass(frozen=True)
class _Shared:
    """What the kernels of a build have in common.

    Attributes:
        server: The process that they are forked from; none where kernels cannot be forked.
        environment: Their variables, which name the compilers that they share.
    """

    server: ForkServer | None
    environment: dict[str, str]


@contextlib.contextmanager
def _shared(environment: dict[str, str], jobs: int) -> Iterator[_Shared]:
    with contextlib.ExitStack() as stack:
        compilers = stack.enter_context(libtpu.service(jobs))
        server = None
        if ForkServer.available():
            server = stack.enter_context(ForkServer(environment))
        yield _Shared(server, environment | {ADDRESS_VARIABLE: compilers.address})


def _judge(
    app: Sphinx,
    book: Book,
    chapter: Chapter,
    notebook: NotebookNode,
    session: Session,
    failure: Failure | None,
) -> bool:
    """Keep a healthy execution; note the faults of another."""
    log = fault_log(app)
    faults = stderr_faults(chapter, notebook)
    if failure is not None:
        faults.append(failure_fault(chapter, failure, Path(app.srcdir)))
    for fault in faults:
        log.add(fault)
    if faults:
        return False
    names = LastingNames.of(chapter, Path(app.srcdir))
    outputs = [
        [names.applied(output) for output in notebook.cells[cell.index].outputs]
        for cell in chapter.cells
    ]
    _keep(book, chapter.docname, outputs, session.seconds)
    return True


def _keep(book: Book, docname: str, outputs: list[list[dict[str, Any]]], seconds: float) -> None:
    date = datetime.now(UTC).isoformat(timespec="seconds")
    ran_with = versions(book.chapters[docname].extras)
    execution = Execution(book.keys[docname], outputs, seconds, date, ran_with)
    book.store.put(docname, execution)
    book.executions[docname] = execution


def _note_drawn(app: Sphinx, docname: str, source: list[str]) -> None:
    """Tell Sphinx which files a chapter's cells are drawn from."""
    chapter = book_of(app).chapters.get(docname)
    for file in chapter.drawn_files if chapter is not None else ():
        app.env.note_dependency(str(file))


def setup(app: Sphinx) -> None:
    """Execute chapters before Sphinx reads them, and have MyST-NB read what was executed."""
    app.add_config_value("pallas_rungs_code", "code", "")
    app.add_config_value("pallas_rungs_sources", "code/pallas_rungs", "")
    app.add_config_value("pallas_rungs_cell_seconds", 120, "")
    app.add_config_value("pallas_rungs_jobs", 0, "")
    app.connect("env-get-outdated", _outdated)
    app.connect("env-before-read-docs", _execute, priority=100)
    app.connect("source-read", _note_drawn)
