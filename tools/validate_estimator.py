"""Holds estimates against tokamax's measured medians, and adds each point to the record.

Usage: validate_estimator.py [--sample N] [--chip CHIP] [--op OPERATION] [--limit SECONDS]
                             [--minutes M] [--part I/N] [--again] [--points NAME...]
                             [--neighbours NAME...] [--config JSON] [--dumps FOLDER] [--fit]
                             [--renew] [--jobs N]

Points that the record has are not done again, unless --again, so it can be run in pieces; --part
shares the rest among processes. Needs libtpu and `make tokamax`. The next points are those that
spread best over the sizes of each chip and operation. One that takes longer than the limit is
recorded as failed, with the reason. With --neighbours it takes points that the record has, and
estimates the configurations that the library's tuner has next to theirs. With --config it estimates
the points that are named with another configuration, to see why they are missed.

With --dumps it keeps what the compiler wrote of each point in a folder of yours, and compiles not
what it has there. After a change of the estimator or of a chip's constants, --renew estimates anew
whatever the record holds, of --chip or of all, and replaces it at the end: with dumps, in a quarter
of an hour. At the end, and with --fit at once, it fits the chips' constants on one half of the
shapes, and tells the errors of both halves.
"""

import argparse
import fcntl
import gzip
import hashlib
import json
import multiprocessing
import pickle
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.dumps import FOR_ESTIMATES, Dumper
from pallas_rungs.performance.clock import Clock, clock_of
from pallas_rungs.performance.estimate import METHOD, EstimateError, prepare
from pallas_rungs.performance.fitting import LATENCIES, RATES, fits, judged
from pallas_rungs.performance.measured_calls import call, neighbours
from pallas_rungs.performance.medians import (
    DEVICES,
    OPERATIONS,
    Point,
    all_medians,
    version,
    why_unavailable,
    work,
)
from pallas_rungs.performance.module import Module
from pallas_rungs.performance.validation import (
    RECORD,
    Compared,
    Comparison,
    Neighbour,
    added,
    read_record,
    write_record,
)

ROOT = Path(__file__).resolve().parent.parent
NOT_REACHED = "not reached: the record is added to piece by piece"
LIMIT = 120

_dumper = Dumper(FOR_ESTIMATES)
_stored: dict[str, dict[str, Any]] = {}
"""The configuration that is stored of each point."""


class OverLimitError(Exception):
    """A point is over its limit."""


def main() -> int:
    """Adds points; 1 where what it needs is not here."""
    options = _options()
    why = libtpu.why_unavailable() or why_unavailable()
    if why:
        print(f"error: {why}", file=sys.stderr)
        return 1
    if options.fit:
        _tell_fits()
        return 0
    points = list(all_medians())
    _stored.update((point.name, point.config) for point in points)
    versions = {**libtpu.installed_versions(), "tokamax": version()}
    if options.renew:
        _renew(points, versions, options)
        _tell_fits()
        return 0
    if options.neighbours:
        for point in points:
            if point.name in options.neighbours:
                _judge_choice(point, options, points, versions)
        return 0
    if options.config:
        for point in points:
            if point.name in options.points:
                _try(point, options, points, versions)
        return 0
    part, parts = map(int, options.part.split("/"))
    wanted = [
        point
        for place, point in enumerate(_spread(points))
        if place % parts == part - 1
        and options.chip in ("", point.chip)
        and options.op in ("", point.operation)
        and (not options.points or point.name in options.points)
    ]
    if not options.again:
        there = {point.name for point in _kept(versions).points}
        wanted = [point for point in wanted if point.name not in there]
    end = time.monotonic() + options.minutes * 60
    for number, point in enumerate(wanted[: options.sample], start=1):
        if time.monotonic() > end:
            break
        began = time.monotonic()
        found = _compared(point, options.limit, options.dumps)
        _change(points, versions, partial(added, point=found, day=_today()))
        told = found.failed or f"estimate / measurement {found.ratio:.3f}"
        print(f"{number} {found.name}: {told} ({time.monotonic() - began:.0f} s)", flush=True)
    _change(points, versions, judged)
    _tell_fits()
    return 0


def _tell_fits() -> None:
    """Prints each chip's constants, fitted on one half of the shapes, and both halves' errors."""
    for line in map(str, fits(read_record(RECORD))):
        print(line)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="hold estimates against measured medians")
    parser.add_argument("--sample", type=int, default=None, help="how many points at most")
    parser.add_argument("--chip", choices=list(DEVICES), default="")
    parser.add_argument("--op", choices=list(OPERATIONS), default="")
    parser.add_argument("--points", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds that a point may take")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after them")
    parser.add_argument("--part", default="1/1", help="which part of the points, as 1/2")
    parser.add_argument("--neighbours", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--config", type=json.loads, default=None, metavar="JSON")
    parser.add_argument("--dumps", type=Path, default=None, metavar="FOLDER")
    parser.add_argument("--fit", action="store_true", help="fit the constants, add no point")
    parser.add_argument("--renew", action="store_true", help="estimate anew all that is recorded")
    parser.add_argument("--jobs", type=int, default=2, help="processes that --renew takes")
    parser.add_argument("--again", action="store_true", help="also points that the record has")
    return parser.parse_args()


def _spread(points: list[Point]) -> Iterator[Point]:
    """Yield the compared points, each chip and operation in turn, each over its sizes."""
    groups: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        if not point.left_out:
            groups[point.chip, point.operation].append(point)
    orders = [
        [group[place] for place in _halving(len(group))]
        for group in (
            sorted(each, key=lambda point: (point.measured_ms, point.entry))
            for each in groups.values()
        )
    ]
    for turn in range(max(map(len, orders))):
        for order in orders:
            if turn < len(order):
                yield order[turn]


def _halving(count: int) -> list[int]:
    """Places 0 to count - 1: the ends, the middle, the quarters, and so on."""
    found: dict[int, None] = dict.fromkeys((0, count - 1))
    pieces = 2
    while len(found) < count:
        for piece in range(1, pieces, 2):
            found[(count - 1) * piece // pieces] = None
        pieces *= 2
        if pieces > 4 * count:
            found |= dict.fromkeys(range(count))
    return list(found)


def _compared(point: Point, limit: int, folder: Path | None) -> Compared:
    operations, moved = work(point)
    found = Compared(
        point.name,
        point.chip,
        point.operation,
        point.shapes,
        point.config,
        point.measured_ms,
        operations=operations,
        bytes=moved,
    )
    signal.signal(signal.SIGALRM, _over)
    signal.alarm(limit + 5)
    try:
        return _estimated(found, _module(point, limit, folder))
    except OverLimitError:
        _dumper.close()
        return replace(found, failed=f"took longer than {limit} s here")
    except Exception as error:  # whatever it is, the record names it
        if isinstance(error, EstimateError) and error.kind == "timed out":
            return replace(found, failed=f"took longer than {limit} s here")
        said = " ".join(str(error).split())[:300]
        return replace(found, failed=f"{type(error).__name__}: {said}")
    finally:
        signal.alarm(0)


def _module(point: Point, limit: int, folder: Path | None) -> Module:
    """Compiles a point's kernel, or takes what the compiler wrote before from the folder."""
    clock, file = clock_of(point.chip), _kept_in(folder, point)
    if file is not None and file.is_file():
        with gzip.open(file) as held:
            kept = pickle.load(held)
        if kept["versions"] == libtpu.installed_versions():
            return Module(kept["listings"], kept["tables"], kept["hlo"], clock, kept["operands"])
    function, arguments = call(point)
    program = prepare(function, *arguments, chip=point.chip)
    dumps = _dumper.compile(program.exported, program.chip, time_limit=float(limit), hlo=True)
    if dumps.outcome.kind != "compiled":
        said = f"{dumps.outcome.kind}: {dumps.outcome.error_type}: {dumps.outcome.message}"
        raise EstimateError(dumps.outcome.kind, f"libtpu made no program for {point.chip}: {said}")
    kept = {
        "versions": libtpu.installed_versions(),
        "listings": dumps.of("packed bundles"),
        "tables": dumps.of("utilization"),
        "hlo": dumps.outcome.hlo,
        "operands": program.operands,
    }
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(file, "wb", compresslevel=3) as held:
            pickle.dump(kept, held)
    return Module(kept["listings"], kept["tables"], kept["hlo"], clock, kept["operands"])


def _kept_in(folder: Path | None, point: Point) -> Path | None:
    """Says where a point's dump is kept: by its name, and by its configuration if not stored."""
    if folder is None:
        return None
    name = point.name.replace("/", "__").replace(" ", "_")
    if point.config != _stored[point.name]:
        text = json.dumps(point.config, sort_keys=True)
        name += f"__{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return folder / f"{name}.pkl.gz"


def _estimated(point: Compared, module: Module) -> Compared:
    """Estimates a module with the chip's constants; a kernel to fit on also with other ones."""
    clock, found = clock_of(point.chip), module.estimate()
    main = max(found.kernels, key=lambda kernel: kernel.cycles * kernel.times)
    parts = {
        kind: sum(k.cycles * k.times for k in found.kernels if k.pallas is kind)
        for kind in (True, False)
    }
    point = replace(
        point,
        estimated_ms=float(f"{found.cycles / clock.frequency.value * 1e3:.6g}"),
        hbm_bytes=found.hbm_read_bytes + found.hbm_written_bytes,
        stalled=round(main.stall_cycles / main.cycles, 4) if main.cycles else 0.0,
        bound=main.bound,
        unresolved=found.unresolved,
        programs=sum(kernel.times for kernel in found.kernels),
        in_xla=round(parts[False] / (sum(parts.values()) or 1), 4),
    )
    if not (point.pallas and point.stored):
        return point
    byte = [times / clock.hbm_bytes_per_cycle for times in RATES]
    late = [seconds * clock.frequency.value for seconds in LATENCIES]
    return replace(
        point,
        byte_cycles=_short(byte),
        cycles=_short([module.cycles(found, _with(clock, 1 / each)) for each in byte]),
        latencies=_short(late),
        late=tuple(
            _short([module.cycles(found, _with(clock, 1 / each, cycles)) for each in byte])
            for cycles in late
        ),
    )


def _short(values: list[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.8g}") for value in values)


def _with(clock: Clock, bytes_per_cycle: float, latency: float | None = None) -> Clock:
    """Returns a clock with another rate of HBM, and another latency of its transfers."""
    rate = replace(clock.hbm_rate, value=bytes_per_cycle * clock.frequency.value)
    if latency is None:
        return replace(clock, hbm_rate=rate)
    return replace(
        clock,
        hbm_rate=rate,
        read_latency=replace(clock.read_latency, value=latency),
        write_latency=replace(clock.write_latency, value=latency),
    )


def _renew(points: list[Point], versions: dict[str, str], options: argparse.Namespace) -> None:
    """Estimates anew what the record holds, of all chips or of one; until the end the old stays."""
    old, by_name = read_record(RECORD, same_constants=False), {each.name: each for each in points}

    def wanted(name: str) -> bool:
        return options.chip in ("", name.partition("/")[0])

    of_points = [by_name[each.name] for each in old.points if wanted(each.name)]
    near, tried = (
        [replace(by_name[each.of], config=each.config) for each in others if wanted(each.of)]
        for others in (old.neighbours, old.tried)
    )
    anew: dict[tuple[str, str], Compared] = {}
    every = [*of_points, *near, *tried]
    with multiprocessing.Pool(options.jobs) as pool:
        compared = pool.imap(partial(_compared, limit=options.limit, folder=options.dumps), every)
        for number, found in enumerate(compared, start=1):
            anew[found.name, json.dumps(found.config)] = found
            told = found.failed or f"{found.ratio:.3f}"
            print(f"{number} of {len(every)} {found.name}: {told}", flush=True)

    def renewed(each: Neighbour) -> Neighbour:
        found = anew.get((each.of, json.dumps(each.config)))
        return each if found is None else replace(each, **_outcome(found))

    new = replace(
        old,
        days=(old.days[0] if options.chip else _today(), _today()),
        versions=versions,
        method=METHOD,
        neighbours=tuple(map(renewed, old.neighbours)),
        tried=tuple(map(renewed, old.tried)),
    )
    for point in of_points:
        new = added(new, anew[point.name, json.dumps(point.config)], _today())
    write_record(RECORD, judged(replace(new, left_out=_left_out(new, points))))


def _outcome(found: Compared) -> dict[str, Any]:
    return {"estimated_ms": found.estimated_ms, "failed": found.failed}


def _judge_choice(
    point: Point, options: argparse.Namespace, points: list[Point], versions: dict[str, str]
) -> None:
    """Adds the neighbours of a point that the record does not have."""
    for config in neighbours(point):
        there = _kept(versions).neighbours
        if any(each.of == point.name and each.config == config for each in there):
            continue
        found = _compared(replace(point, config=config), options.limit, options.dumps)
        near = Neighbour(point.name, config, **_outcome(found))
        _change(points, versions, partial(_with_neighbour, near=near))
        print(f"{point.name} {config}: {near.failed or near.estimated_ms}", flush=True)


def _try(
    point: Point, options: argparse.Namespace, points: list[Point], versions: dict[str, str]
) -> None:
    """Adds an estimate of a point with another configuration than the stored one."""
    found = _compared(replace(point, config=options.config), options.limit, options.dumps)
    tried = Neighbour(point.name, options.config, **_outcome(found))

    def with_tried(kept: Comparison) -> Comparison:
        others = [it for it in kept.tried if (it.of, it.config) != (tried.of, tried.config)]
        return replace(kept, tried=(*others, tried))

    _change(points, versions, with_tried)
    print(f"{point.name} {options.config}: {tried.failed or tried.estimated_ms}", flush=True)


def _with_neighbour(kept: Comparison, near: Neighbour) -> Comparison:
    return replace(kept, neighbours=(*kept.neighbours, near))


def _over(*_: Any) -> None:
    raise OverLimitError


def _kept(versions: dict[str, str]) -> Comparison:
    if RECORD.is_file():
        kept = read_record(RECORD)
        if kept.versions != versions:
            sys.exit(f"error: {RECORD.name} was made with {kept.versions}; remove it to begin anew")
        return kept
    return Comparison((_today(), _today()), versions, METHOD, {}, (), {})


def _change(
    points: list[Point], versions: dict[str, str], how: Callable[[Comparison], Comparison]
) -> None:
    """Changes the record on disk, which other processes change as well."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    lock = ROOT / ".venv" / f"{RECORD.stem}.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        kept = how(_kept(versions))
        write_record(RECORD, replace(kept, left_out=_left_out(kept, points)))


def _left_out(kept: Comparison, points: list[Point]) -> dict[str, dict[str, int]]:
    """Says how many keys of each chip and operation the record leaves out, and why."""
    reached = {point.name for point in kept.points}
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for point in points:
        if point.name not in reached:
            name = f"{point.chip}/{point.operation}"
            reasons[name][point.left_out or NOT_REACHED] += 1
    return {name: dict(counted) for name, counted in reasons.items()}


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
