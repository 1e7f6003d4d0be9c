"""Rung 3 for TPUs: the simulator proves revisits, fresh memory, copies, semaphores and races."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np

from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.rungs.running import run_and_compare
from pallas_rungs.ladder.rungs.simulating import (
    deadlocked,
    forget_failed_effects,
    refused_in_passing,
    unlogged_callbacks,
)
from pallas_rungs.ladder.rungs.standstill_tpu import ended_at_a_standstill
from pallas_rungs.ladder.rungs.tracing import features_of, in_kernel
from pallas_rungs.ladder.source_frames import line_of
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Frame, Verdict

_RACES: dict[str, Any] = {"detect_races": True, "vector_clock_size": 256}
"""By default all copies share one counter of the clocks, and races between copies go unseen."""

ALWAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "races": _RACES,
}
"""The settings that every kernel is tried with. Fresh memory holds NaN in all of them."""

TWO_CORES: dict[str, Any] = {"num_cores_or_threads": 2, **_RACES}
EAGER_COPIES: dict[str, Any] = {"dma_execution_mode": "eager"}


_READ_WHILE_RUNNING: dict[str, Any] = {
    "detect_races": False,
    "dma_execution_mode": "on_wait",
    "vector_clock_size": None,
}
"""Settings that the simulator reads only when a kernel starts, with their defaults.

Runs that differ in these alone share one compiled program, see `_in_force`.
"""


def settings(problem: Problem) -> dict[str, dict[str, Any]]:
    """Return the settings to try, name → keyword arguments of `pltpu.InterpretParams`.

    A kernel with a parallel grid axis is also tried on two cores, one with asynchronous copies also
    with copies done when they start, not when they are waited for: only then does a copy that
    nobody waits for leave its semaphore above zero. The problem's own settings come last.
    """
    to_try = dict(ALWAYS)
    features = features_of(problem)  # None: every setting will report the same refusal
    if features is not None and features.parallel_axes:
        to_try["two cores"] = TWO_CORES
    if features is not None and features.copies:
        to_try["eager"] = EAGER_COPIES
    own = {name: dict(values) for name, values in problem.simulations.items()}
    return to_try | own


def attempt(problem: Problem, target: str, pretend: Pretend) -> Verdict:
    """Run the program in the simulator with the setting `target` and compare its numbers.

    Raises:
      ValueError: the setting is unknown.
      Exception: what the program raises while it is traced.
    """
    from jax.experimental.pallas import tpu as pltpu

    known = ALWAYS | {"two cores": TWO_CORES, "eager": EAGER_COPIES} | dict(problem.simulations)
    if target not in known:
        names = ", ".join(known)
        raise ValueError(f"no simulator setting {target!r}; there are {names}")
    wanted = pltpu.InterpretParams(**known[target])
    compiled_with = dataclasses.replace(wanted, **_READ_WHILE_RUNNING)
    reset_simulator()
    try:
        with (
            unlogged_callbacks(),
            _same_draws(),
            _in_force(wanted) as launched,
            _semaphores_left_over() as left_over,
            ended_at_a_standstill() as standstill,
        ):
            verdict = run_and_compare(
                problem, Rung.SIMULATE, target, compiled_with, pretend, optimise=False
            )
        raced = races_found()
    finally:
        reset_simulator()
    if verdict.status is Status.REFUSED and not verdict.details.get("kernel"):
        verdict = in_kernel(verdict, _running_when_it_failed(verdict, launched))
    if standstill and not raced:
        return deadlocked(verdict, standstill)
    if raced and verdict.error is None:
        return refused_in_passing(verdict, "RACE DETECTED")
    if left_over and verdict.status in (Status.PASSED, Status.UNCHECKED):
        return refused_in_passing(verdict, left_over[0].message, left_over[0].lines)
    return verdict


_in_force_now: list[tuple[Any, list[int]]] = []
"""Settings, innermost last, and on which device kernels have started meanwhile."""


@contextlib.contextmanager
def _in_force(settings: Any) -> Iterator[list[int]]:
    """Give `settings` to kernels that start meanwhile, whatever they were compiled with.

    Yields a list that gets the device's number whenever a kernel starts on it.

    The simulator hands its settings to a callback that sets up memory and semaphores; a program
    compiled in here calls ours, which looks for the settings in force. The others stay as the
    callback got them: a kernel on a mesh of cores brings its own number of cores.
    """
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call

    set_up: Any = interpret_pallas_call._initialize_shared_memory

    def set_up_as_in_force(*args: Any, interpret_params: Any) -> Any:
        in_force, launched = _in_force_now[-1]
        launched.append(int(args[1]))
        asked = {name: getattr(in_force, name) for name in _READ_WHILE_RUNNING}
        return set_up(*args, interpret_params=dataclasses.replace(interpret_params, **asked))

    with mock.patch.object(interpret_pallas_call, set_up.__name__, set_up_as_in_force):
        launched: list[int] = []
        _in_force_now.append((settings, launched))
        try:
            yield launched
        finally:
            _in_force_now.pop()


@contextlib.contextmanager
def _same_draws() -> Iterator[None]:
    """Have each run draw the same counters for its copies, from NumPy's own generator."""
    before = np.random.get_state()
    np.random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(before)


@dataclasses.dataclass(frozen=True)
class _LeftOver:
    """A semaphore that is not zero at a kernel's end.

    Attributes:
      message: what the simulator prints about it.
      lines: the lines that signalled it last, as many as account for the count.
    """

    message: str
    lines: tuple[Frame, ...]


_NON_ZERO = re.compile(r"Semaphore (\d+) has non-zero count for \d+ \(global core (\d+)\).*: (\d+)")


@contextlib.contextmanager
def _semaphores_left_over() -> Iterator[list[_LeftOver]]:
    """Collect what the simulator prints about semaphores that are not zero at a kernel's end.

    It goes on all the same; on a chip the next kernel would find them so.
    """
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call
    from jax._src.pallas.mosaic.interpret.shared_memory import Semaphore

    found: list[_LeftOver] = []
    signals: dict[tuple[int, int], list[tuple[int, Any]]] = {}
    signal = Semaphore.signal

    def noted(semaphore: Any, inc: Any, core: Any, clock: Any, logging_info: Any = None) -> None:
        source = getattr(logging_info, "source_info", None)
        signals.setdefault((int(semaphore.id), int(core)), []).append((int(inc), source))
        signal(semaphore, inc, core, clock, logging_info)

    def note(*words: Any, **options: Any) -> None:
        text = " ".join(map(str, words))
        if "has non-zero count" in text:
            found.append(_LeftOver(text, _last_signals(text, signals)))
        else:
            print(*words, **options)

    with (
        mock.patch.object(Semaphore, "signal", noted),
        mock.patch.object(interpret_pallas_call, "print", note, create=True),
    ):
        yield found


def _last_signals(
    text: str, signals: Mapping[tuple[int, int], list[tuple[int, Any]]]
) -> tuple[Frame, ...]:
    """Return the lines of the last signals that add up to the count that `text` tells."""
    if (match := _NON_ZERO.search(text)) is None:
        return ()
    semaphore, core, count = map(int, match.groups())
    lines: list[Frame] = []
    for inc, source in reversed(signals.get((semaphore, core), [])):
        if count <= 0:
            break
        count -= inc
        if source is not None and (line := line_of(source, "signalled")) and line not in lines:
            lines.append(line)
    return tuple(reversed(lines))


def _running_when_it_failed(verdict: Verdict, launched: list[int]) -> str:
    """Return the name of the kernel, of several, that was started last; empty if unknown.

    Kernels start in the order in which they stand in the program, unless it loops over one.
    """
    names = verdict.details.get("kernel names", [])
    started = launched.count(0)
    alone = len(set(launched)) == 1
    return names[started - 1] if len(names) > 1 and alone and started <= len(names) else ""


def races_found() -> bool:
    """True when the simulator's last run noted a race."""
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call

    return bool(getattr(interpret_pallas_call.races, "races_found", False))


def reset_simulator() -> None:
    """Forget earlier runs: a failed one leaves memory, semaphores, races and its error behind."""
    from jax.experimental.pallas import tpu as pltpu

    forget_failed_effects()
    pltpu.reset_tpu_interpret_mode_state()
