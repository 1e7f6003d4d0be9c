"""Several functions of readers' files in one call: two files at a time, a file's own in turn."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from pallas_rungs.compilers import dumps, libtpu
from pallas_rungs.compilers.process import interrupt_all
from pallas_rungs.ladder.files import FileClimb, Shelf, climb_file
from pallas_rungs.ladder.loading import Target
from pallas_rungs.ladder.status import EVERY_RUNG_HERE, Rung
from pallas_rungs.ladder.verdict import Verdict

AT_A_TIME = 2
"""How many climbs run side by side: each keeps about one core busy."""

OnVerdict = Callable[[str, Verdict], None]


class _StoppedError(Exception):
    """The climb was told to end."""


def climb_several(
    targets: Sequence[Target], *, on_verdict: OnVerdict | None = None, **options: Any
) -> list[FileClimb]:
    """Climb every target and return what came of each, in the order given.

    A target that cannot be tried has its reason in `FileClimb.error`; the others go on.

    Args:
      targets: files and symbols.
      on_verdict: called with the problem's name and each verdict as it comes, from any thread but
        never twice at once.
      **options: of `climb_file`, the same for all.

    Raises:
      KeyboardInterrupt: as always, with every worker ended.
    """
    chunks = _chunks(targets, min(AT_A_TIME, os.cpu_count() or 1))
    climbs: dict[int, FileClimb] = {}
    stop, lock = threading.Event(), threading.Lock()

    def note(name: str, verdict: Verdict) -> None:
        if stop.is_set():
            raise _StoppedError
        if on_verdict is not None:
            with lock:
                on_verdict(name, verdict)

    def run(chunk: Sequence[int]) -> None:
        with Shelf() as shelf:
            for index in chunk:
                if stop.is_set():
                    return
                climbs[index] = _climb(targets[index], shelf, note, options)

    if len(chunks) == 1:
        run(chunks[0])
    else:
        with (
            _compilers(options) as options["compilers"],
            ThreadPoolExecutor(AT_A_TIME, "climb") as pool,
        ):
            futures: list[Future[None]] = [pool.submit(run, chunk) for chunk in chunks]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                stop.set()
                while not all(future.done() or future.cancel() for future in futures):
                    interrupt_all()
                    wait(futures, timeout=0.2)
                raise
    return [climbs[index] for index in range(len(targets))]


@contextlib.contextmanager
def _compilers(options: Mapping[str, Any]) -> Iterator[str]:
    """Start compilers for all the climbs, where they are needed, and give their address."""
    if Rung.COMPILE not in options.get("rungs", EVERY_RUNG_HERE) or libtpu.why_unavailable():
        yield ""
        return
    made = dumps.service if options.get("estimates") else libtpu.service
    with made(AT_A_TIME) as service:
        yield service.address


def _climb(target: Target, shelf: Shelf, note: OnVerdict, options: dict[str, Any]) -> FileClimb:
    try:
        return climb_file(target.path, target.symbol, on_verdict=note, shelf=shelf, **options)
    except ValueError as error:  # LoadError, ArgumentError
        return FileClimb(str(target), (), files=(str(target.path),), error=str(error))


def _chunks(targets: Sequence[Target], at_a_time: int) -> list[list[int]]:
    """Share the targets' numbers out: a file's own stay together unless cores would idle."""
    most = -(-len(targets) // at_a_time)
    by_file: dict[str, list[int]] = {}
    for index, target in enumerate(targets):
        by_file.setdefault(str(target.path), []).append(index)
    return [
        indices[start : start + most]
        for indices in by_file.values()
        for start in range(0, len(indices), most)
    ]
