"""Exercise: run a kernel's loop in your head: bundles issued, transfers queued, waits."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pallas_rungs.performance.clock import CLOCKS, Clock
from pallas_rungs.performance.machine import Machine


@dataclass(frozen=True)
class Issue:
    """The core issues so many bundles."""

    bundles: int


@dataclass(frozen=True)
class Start:
    """The core starts a transfer of so many bytes from HBM into a buffer."""

    buffer: int
    size: int


@dataclass(frozen=True)
class Wait:
    """The core waits until the last transfer into a buffer is done."""

    buffer: int


Event = Issue | Start | Wait
Cycles = Callable[[Sequence[Event], float, float], float]


def starter(program: Sequence[Event], rate: float, latency: float) -> float:
    """Where to begin: the bundles alone, as though every byte were there in time."""
    return sum(event.bundles for event in program if isinstance(event, Issue))


def solution(program: Sequence[Event], rate: float, latency: float) -> float:
    """One clock for the core, one for the queue, and for each buffer when it is ready."""
    now = free = 0.0
    ready: dict[int, float] = {}
    for event in program:
        match event:
            case Issue(bundles):
                now += bundles
            case Start(buffer, size):
                free = max(now, free) + size / rate
                ready[buffer] = free + latency
            case Wait(buffer):
                now = max(now, ready[buffer])
    return now


def nothing_overlaps(program: Sequence[Event], rate: float, latency: float) -> float:
    """Wrong: adds up bundles and transfers."""
    issued = starter(program, rate, latency)
    return issued + sum(it.size / rate + latency for it in program if isinstance(it, Start))


def a_queue_for_each(program: Sequence[Event], rate: float, latency: float) -> float:
    """Wrong: every transfer has all of HBM to itself."""
    now = 0.0
    ready: dict[int, float] = {}
    for event in program:
        if isinstance(event, Issue):
            now += event.bundles
        elif isinstance(event, Start):
            ready[event.buffer] = now + event.size / rate + latency
        else:
            now = max(now, ready[event.buffer])
    return now


def latency_in_the_queue(program: Sequence[Event], rate: float, latency: float) -> float:
    """Wrong: the next transfer begins only when the last one's semaphore is raised."""
    now = free = 0.0
    ready: dict[int, float] = {}
    for event in program:
        if isinstance(event, Issue):
            now += event.bundles
        elif isinstance(event, Start):
            free = max(now, free) + event.size / rate + latency
            ready[event.buffer] = free
        else:
            now = max(now, ready[event.buffer])
    return now


def idle_time_saved(program: Sequence[Event], rate: float, latency: float) -> float:
    """Wrong: a queue that stood idle catches up with a transfer that was not started yet."""
    now = free = 0.0
    ready: dict[int, float] = {}
    for event in program:
        if isinstance(event, Issue):
            now += event.bundles
        elif isinstance(event, Start):
            free += event.size / rate
            ready[event.buffer] = free + latency
        else:
            now = max(now, ready[event.buffer])
    return now


WRONG: tuple[tuple[Cycles, str], ...] = (
    (nothing_overlaps, "goes on issuing"),
    (a_queue_for_each, "one after the other"),
    (latency_in_the_queue, "leaves the queue"),
    (idle_time_saved, "not before it is started"),
)

_TELLING: tuple[tuple[str, tuple[Event, ...]], ...] = (
    ("a wait ends only when the transfer is done", (Start(0, 48_000), Wait(0))),
    (
        "the core goes on issuing while a transfer is under way",
        (Start(0, 48_000), Issue(5000), Wait(0)),
    ),
    (
        "a transfer begins when the queue comes to it, and not before it is started",
        (Issue(9000), Start(0, 480_000), Wait(0)),
    ),
    (
        "a transfer leaves the queue when its last byte is through; the latency holds up its own "
        "semaphore, and not the next transfer",
        (Start(0, 48_000), Issue(500), Start(1, 48_000), Wait(1)),
    ),
    (
        "transfers go through HBM one after the other",
        (Start(0, 480_000), Start(1, 480_000), Wait(1)),
    ),
)
"""Small programs, each with what it tells."""


def by_the_library(program: Sequence[Event], clock: Clock) -> float:
    """Run the events on the machine that makes the estimates; return its cycles."""
    granule = int(clock.granule.value)
    machine, now = Machine(clock, blocks=0), 0.0
    sizes: dict[int, int] = {}
    for event in program:
        match event:
            case Issue(bundles):
                now += bundles
            case Start(buffer, size):
                sizes[buffer] = size // granule
                machine.start(now, ("hbm", "vmem"), size // granule, (0, 0), buffer)
            case Wait(buffer):
                now = machine.wait(now, buffer, sizes[buffer], bundle=0)
                machine.add(buffer, -sizes[buffer])
    return now


def random_program(rng: random.Random) -> list[Event]:
    """Make a loop of a pipeline: the next blocks are started, this one is waited for and worked."""
    inputs, steps = rng.randint(1, 3), rng.randint(1, 12)
    sizes = [32 * 16 * rng.randint(1, 2000) for _ in range(inputs)]
    program: list[Event] = [Issue(rng.randint(0, 40))]
    program += [Start(2 * which, size) for which, size in enumerate(sizes)]
    for step in range(steps):
        for which, size in enumerate(sizes):
            if step + 1 < steps:
                program += [Issue(rng.randint(1, 60)), Start(2 * which + (step + 1) % 2, size)]
            program.append(Wait(2 * which + step % 2))
        program.append(Issue(rng.randint(1, 4000)))
    return program


def check(cycles: Cycles) -> None:
    """Compare cycles with the library's machine: small programs that tell, then 200 random ones.

    Args:
        cycles: called with a list of events, bytes of HBM in a cycle, and the latency in cycles
            from the end of a transfer to its semaphore; returns the cycle of the program's end.

    Raises:
        AssertionError: the number is not the library's; holds both, the program and a hint.
    """
    for hint, program in _TELLING:
        _compare(cycles, list(program), CLOCKS["v5e"], hint)
    rng = random.Random(0)
    for number in range(200):
        clock = list(CLOCKS.values())[number % len(CLOCKS)]
        if clock.granule.value == 32:
            _compare(cycles, random_program(rng), clock, "go through the events one at a time")


def _compare(cycles: Cycles, program: list[Event], clock: Clock, hint: str) -> None:
    rate, latency = clock.hbm_bytes_per_cycle, clock.read_latency.value
    want = by_the_library(program, clock)
    got = cycles(program, rate, latency)
    if not isinstance(got, int | float):
        raise AssertionError(f"{program}: {got!r} is no number of cycles: return one")
    if abs(got - want) > 1e-6 * want:
        raise AssertionError(
            f"{program}, {rate:.1f} bytes a cycle, latency {latency:.0f}: {got:.1f} cycles, and "
            f"the library's machine says {want:.1f}.\nHint: {hint}"
        )
