"""The schedule of a pipeline inside a kernel: who copies which block into which slot, and when.

Nothing is decided here. The library's own `emit_pipeline` is run in Python, with numbers where a
trace would have tracers: its allocations, its scheduler, its loop. Only the copies are replaced, by
notes of what would be copied, from where, into which slot.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.pallas.mosaic import helpers, primitives
from jax._src.pallas.mosaic import pipeline as library
from jax._src.pallas.mosaic.interpret.utils import to_range

from pallas_rungs.figures.copy_record import Place, Record
from pallas_rungs.figures.tables import Table, table

MOST_STEPS = 256
"""A schedule of more steps says nothing that one of a few does not; it is refused."""

PROLOGUE = -1
"""The step of what is done before the loop."""

type Block = tuple[int, ...]


@dataclass(frozen=True)
class Buffers:
    """What VMEM holds of an operand.

    Attributes:
        name: of the operand.
        inwards: true for an input.
        block: elements of a block along each dimension of the array, 1 where one is squeezed.
        slots: how many blocks VMEM holds at a time.
        whole: true if the block is the whole array and never another, so that it is copied once,
            before or after the loop.
        shape: of the window buffer.
        semaphores: how many there are.
    """

    name: str
    inwards: bool
    block: tuple[int, ...]
    slots: int
    whole: bool
    shape: tuple[int, ...]
    semaphores: int


@dataclass(frozen=True)
class Move:
    """One copy that was started or waited for, or one run of the body.

    Attributes:
        what: ``start``, ``wait`` or ``body``.
        operand: whose block; empty for the body.
        block: index of the block along each dimension of the array.
        slot: where in VMEM it is, or shall be.
    """

    what: str
    operand: str = ""
    block: Block = ()
    slot: int = 0

    def __str__(self) -> str:
        if self.what == "body":
            return "body"
        block = ",".join(map(str, self.block))
        return f"{self.what} {self.operand}[{block}] slot {self.slot}"


@dataclass(frozen=True)
class Transfer:
    """One copy, from its start to the wait for it.

    Attributes:
        operand: whose block.
        block: index of the block along each dimension.
        slot: where in VMEM.
        inwards: true if it leads into VMEM.
        start: position of its start among the schedule's moves.
        end: position of the wait for it.
        bodies: how many times the body runs in between.
    """

    operand: str
    block: Block
    slot: int
    inwards: bool
    start: int
    end: int
    bodies: int


@dataclass(frozen=True)
class Decision:
    """What the scheduler's predicates say of one operand at one step.

    Attributes:
        step: number of the step.
        operand: name of the operand.
        block: the block of this step.
        has_changed: it differs from the block of the step before.
        will_change_current: it differs from that of the step after.
        will_change_fetch: the block furthest ahead differs from the one before it; None for an
            output, which is not fetched.
        out_of_fetch: there is no step so far ahead; None for an output.
    """

    step: int
    operand: str
    block: Block
    has_changed: bool
    will_change_current: bool
    will_change_fetch: bool | None
    out_of_fetch: bool | None


@dataclass(frozen=True)
class PipelineSchedule:
    """All copies and waits of a pipeline in order, between the runs of its body.

    Attributes:
        grid: steps along each axis.
        buffers: of each operand, inputs first.
        moves: in order.
        steps: the step of each move: `PROLOGUE`, 0, 1, …, and the number of steps for what is done
            after the loop.
        decisions: of the predicates, step by step.
    """

    grid: tuple[int, ...]
    buffers: tuple[Buffers, ...]
    moves: tuple[Move, ...]
    steps: tuple[int, ...]
    decisions: tuple[Decision, ...]

    def of(self, operand: str) -> Buffers:
        """The buffers of an operand.

        Raises:
            KeyError: there is no such operand; the message lists them.
        """
        for buffers in self.buffers:
            if buffers.name == operand:
                return buffers
        names = ", ".join(b.name for b in self.buffers)
        raise KeyError(f"no operand {operand!r}; there are {names}")

    def at(self, *steps: int) -> tuple[Move, ...]:
        """The moves of some steps, in order; `PROLOGUE` and the number of steps are steps too."""
        pairs = zip(self.moves, self.steps, strict=True)
        return tuple(move for move, step in pairs if step in steps)

    def transfers(self, operand: str | None = None) -> tuple[Transfer, ...]:
        """The copies in the order of their starts, each with the wait for it.

        Args:
            operand: only this one's; all if None.

        Raises:
            KeyError: there is no such operand.
            ValueError: a copy is never waited for.
        """
        wanted = None if operand is None else self.of(operand).name
        found = []
        for start, move in enumerate(self.moves):
            if move.what != "start" or wanted not in (None, move.operand):
                continue
            waits = (
                at
                for at in range(start + 1, len(self.moves))
                if self.moves[at] == dataclasses.replace(move, what="wait")
            )
            end = next(waits, None)
            if end is None:
                raise ValueError(f"the copy '{move}' is never waited for")
            bodies = sum(m.what == "body" for m in self.moves[start:end])
            inwards = self.of(move.operand).inwards
            found.append(Transfer(move.operand, move.block, move.slot, inwards, start, end, bodies))
        return tuple(found)

    def most_under_way(self, operand: str) -> int:
        """The largest number of an operand's copies that are under way at one time."""
        spans = [(t.start, t.end) for t in self.transfers(operand)]
        return max((sum(a <= at < b for a, b in spans) for at, _ in spans), default=0)

    def __str__(self) -> str:
        return "\n".join(
            f"{self._called(step):>9}: " + ", ".join(str(self.moves[at]) for at in positions)
            for step, positions in self._by_step()
        )

    def __repr__(self) -> str:
        return str(self)

    def table(self) -> Table:
        """A row for each step: program, and what is done for each operand."""
        rows = []
        for step, positions in self._by_step():
            moves = [self.moves[at] for at in positions]
            program = (
                str(tuple(map(int, np.unravel_index(step, self.grid))))
                if 0 <= step < math.prod(self.grid)
                else ""
            )
            rows.append(
                (
                    self._called(step),
                    program,
                    *(
                        self._told(b, [m for m in moves if m.operand == b.name])
                        for b in self.buffers
                    ),
                )
            )
        return table(["step", "program", *(f"`{b.name}`" for b in self.buffers)], rows)

    def predicates(self) -> Table:
        """A row for each step: the block of each operand, and what the scheduler answers about it.

        Inputs are asked about what is fetched, outputs about what is sent. ``·`` is no.
        """
        asked = [
            *(("has_changed", b.name) for b in self.buffers if b.inwards),
            *(("will_change_fetch", b.name) for b in self.buffers if b.inwards),
            *(("out_of_fetch", b.name) for b in self.buffers if b.inwards),
            *(("will_change_current", b.name) for b in self.buffers if not b.inwards),
        ]
        rows = []
        for step in range(math.prod(self.grid)):
            at = {d.operand: d for d in self.decisions if d.step == step}
            answers = ("yes" if getattr(at[name], what) else "·" for what, name in asked)
            rows.append((step, *(str(at[b.name].block) for b in self.buffers), *answers))
        heads = (f"`{what}` `{name}`" for what, name in asked)
        return table(["step", *(f"block of `{b.name}`" for b in self.buffers), *heads], rows)

    def _told(self, buffers: Buffers, moves: Sequence[Move]) -> str:
        words = {
            ("start", True): "fetch {} → slot {}",
            ("wait", True): "wait for {} in slot {}",
            ("start", False): "send {} from slot {}",
            ("wait", False): "wait: {} has left slot {}",
        }
        return "; ".join(
            words[m.what, buffers.inwards].format("(" + ",".join(map(str, m.block)) + ")", m.slot)
            for m in moves
        )

    def _by_step(self) -> Iterator[tuple[int, list[int]]]:
        for step, positions in itertools.groupby(range(len(self.moves)), self.steps.__getitem__):
            yield step, list(positions)

    def _called(self, step: int) -> str:
        if step == PROLOGUE:
            return "prologue"
        return "epilogue" if step == math.prod(self.grid) else str(step)


def pipeline_schedule(
    *operands: Any,
    grid: tuple[int, ...],
    in_specs: Sequence[Any],
    out_specs: Sequence[Any] = (),
    names: Sequence[str] | None = None,
) -> PipelineSchedule:
    """Run the library's `emit_pipeline` on a grid, and note what it copies when.

    The chip has to be named in the mesh context, as for `emit_pipeline` itself.

    Args:
        *operands: arrays or `jax.ShapeDtypeStruct`, inputs first; of two or more dimensions, in
            HBM. Their values do not matter.
        grid: steps along each axis, known numbers.
        in_specs: a `BlockSpec` for each input, with a block shape of numbers or None.
        out_specs: a `BlockSpec` for each output.
        names: of the operands; ``x``, ``y``, ``z`` for inputs and ``o``, ``p``, ``q`` for outputs
            if None.

    Raises:
        ValueError: too many steps; operands, specs and names do not fit; or what the library
            refuses.
    """
    specs = [*in_specs, *out_specs]
    names = [*"xyz"[: len(in_specs)], *"opq"[: len(out_specs)]] if names is None else [*names]
    if not len(operands) == len(specs) == len(names):
        raise ValueError(
            f"{len(operands)} operands, {len(specs)} specs and {len(names)} names: "
            "give one of each for every input and output"
        )
    if math.prod(grid) > MOST_STEPS:
        raise ValueError(
            f"the grid {grid} has {math.prod(grid)} steps; at most {MOST_STEPS} are scheduled. "
            "Take a smaller one of the same form."
        )
    refs = [jax.new_ref(jnp.zeros(o.shape, o.dtype)) for o in operands]
    described = library._make_pipeline_allocations(
        *refs, in_specs=tuple(in_specs), out_specs=tuple(out_specs), grid=grid
    )
    allocated = [_with_memory(*pair) for pair in zip(names, described, strict=True)]
    buffers = tuple(
        _buffers(name, i < len(in_specs), ref.shape, bref)
        for i, (name, ref, bref) in enumerate(zip(names, refs, allocated, strict=True))
    )
    notes = _Notes({id(ref): b for ref, b in zip(refs, buffers, strict=True)}, math.prod(grid))
    with _noting(notes):
        run = library.emit_pipeline(
            notes.body, grid=grid, in_specs=tuple(in_specs), out_specs=tuple(out_specs)
        )
        run(*refs, allocations=tuple(allocated))
        decisions = tuple(_decisions(grid, allocated, buffers))
    return PipelineSchedule(tuple(grid), buffers, tuple(notes.moves), tuple(notes.steps), decisions)


def moves_of(record: Record, schedule: PipelineSchedule, *, core: int = 0) -> tuple[Move, ...]:
    """Bring what the simulator did into the form of a schedule's moves.

    Args:
        record: of a kernel that runs one pipeline on operands in HBM; reads and writes in a row
            are one body.
        schedule: whose operands the kernel has, in the same order.
        core: whose events to take.

    Raises:
        ValueError: the kernel copies from and to another number of arrays than `schedule` has.
    """
    copies = [c for c in record.copies if c.core == core]
    arrays = sorted({_outside(c.source, c.target).buffer for c in copies})
    if len(arrays) != len(schedule.buffers):
        raise ValueError(
            f"the record has copies of {len(arrays)} arrays, the schedule of "
            f"{len(schedule.buffers)}: they are not of the same pipeline"
        )
    operand: Mapping[int, Buffers] = dict(zip(arrays, schedule.buffers, strict=True))
    noted: dict[int, Move] = {a.at: Move("body") for a in record.accesses if a.core == core}
    for copy in copies:
        outside = _outside(copy.source, copy.target)
        window = copy.target if outside is copy.source else copy.source
        buffers = operand[outside.buffer]
        move = Move("start", buffers.name, _block(buffers, outside.starts), _slot(window.starts))
        noted[copy.start] = move
        if copy.end is not None:
            noted[copy.end] = dataclasses.replace(move, what="wait")
    in_order = [noted[at] for at in sorted(noted)]
    return tuple(
        move
        for move, before in zip(in_order, [None, *in_order], strict=False)
        if move.what != "body" or before != move
    )


def _outside(source: Place, target: Place) -> Place:
    return source if source.space == "hbm" else target


class _Notes:
    """What a pipeline does, and in which step.

    It makes a scheduler before the loop, one for each step, and one after the loop.
    """

    def __init__(self, owners: Mapping[int, Buffers], last: int) -> None:
        self.owners = owners
        self.last = last
        self.step = PROLOGUE - 1
        self.moves: list[Move] = []
        self.steps: list[int] = []

    def next_step(self) -> None:
        self.step = min(self.step + 1, self.last)

    def body(self, *_: Any) -> None:
        self._add(Move("body"))

    def copy(self, what: str, source: Any, target: Any) -> None:
        inwards = id(_base(source)) in self.owners
        outside, window = (source, target) if inwards else (target, source)
        buffers = self.owners[id(_base(outside))]
        block = _block(buffers, _starts(outside))
        self._add(Move(what, buffers.name, block, _slot(_starts(window))))

    def _add(self, move: Move) -> None:
        self.moves.append(move)
        self.steps.append(self.step)


@contextlib.contextmanager
def _noting(notes: _Notes) -> Iterator[None]:
    """Run the pipeline's Python on numbers, with notes in place of copies."""

    class Copy:
        def __init__(self, source: Any, target: Any, *_: Any, **__: Any) -> None:
            self.ends = source, target

        def start(self) -> None:
            notes.copy("start", *self.ends)

        def wait(self) -> None:
            notes.copy("wait", *self.ends)

    class Scheduler(library.Scheduler):
        def __init__(self, *args: Any, **named: Any) -> None:
            notes.next_step()
            super().__init__(*args, **named)

        def _compute_index(self, buffered_ref: Any, *indices: Any) -> Any:
            # The library remembers results by their indices, which have no hash as numbers.
            return buffered_ref.compute_index(*indices)

    def at_once(source: Any, target: Any) -> None:
        Copy(source, target).start()
        Copy(source, target).wait()

    with (
        jax.disable_jit(),
        mock.patch.object(library, "Scheduler", Scheduler),
        mock.patch.object(primitives, "make_async_copy", Copy),
        mock.patch.object(helpers, "sync_copy", at_once),
    ):
        yield


def _with_memory(name: str, bref: Any) -> Any:
    """An allocation with memory in it, as `run_scoped` would give it to a kernel."""
    if bref.window_ref is None:
        raise ValueError(
            f"the pipeline allocates no window for the operand {name}: somebody else has to bring "
            "one with fetched blocks, and does not here; leave prefetched_count out"
        )

    def made(described: Any, dtype: Any) -> Any:
        return None if described is None else jax.new_ref(jnp.zeros(described.shape, dtype))

    return dataclasses.replace(
        bref,
        window_ref=made(bref.window_ref, bref.window_ref.dtype),
        sem_recvs=made(bref.sem_recvs, jnp.int32),
        sem_sends=made(bref.sem_sends, jnp.int32),
    )


def _buffers(name: str, inwards: bool, shape: tuple[int, ...], bref: Any) -> Buffers:
    if len(shape) < 2:
        raise ValueError(f"the operand {name} has shape {shape}; two dimensions or more are needed")
    sizes = shape if bref.block_shape is None else bref.block_shape
    block = tuple(n if isinstance(n, int) else getattr(n, "block_size", 1) for n in sizes)
    semaphores = [s for s in (bref.sem_recvs, bref.sem_sends) if s is not None]
    return Buffers(
        name,
        inwards,
        block,
        bref.buffer_count,
        bref.is_trivial_windowing,
        tuple(bref.window_ref.shape),
        sum(s.shape[0] for s in semaphores),
    )


def _decisions(
    grid: tuple[int, ...], allocated: Sequence[Any], buffers: Sequence[Buffers]
) -> Iterator[Decision]:
    stages = max(2, *(max(b.in_buffer_count, b.out_buffer_count) for b in allocated))
    for step, program in enumerate(np.ndindex(*grid)):
        at = tuple(map(jnp.int32, program))
        scheduler = library.Scheduler(step, at, grid, (0,) * len(grid), num_stages=stages)
        for bref, described in zip(allocated, buffers, strict=True):
            fetched = described.inwards
            yield Decision(
                step,
                described.name,
                tuple(map(int, bref.compute_index(*at))),
                bool(scheduler.has_changed(bref)),
                bool(scheduler.will_change_current(bref)),
                bool(scheduler.will_change_fetch(bref)) if fetched else None,
                bool(scheduler.out_of_fetch(bref)) if fetched else None,
            )


def _base(ref: Any) -> Any:
    return getattr(ref, "ref", ref) if hasattr(ref, "transforms") else ref


def _starts(ref: Any) -> tuple[int, ...]:
    ranges = to_range(jax.tree.map(int, ref.transforms)) if hasattr(ref, "transforms") else ()
    return tuple(r if isinstance(r, int) else int(r.start) for r in ranges)


def _slot(starts: tuple[int, ...]) -> int:
    """The slot of a part of a window buffer; a window without slots is given whole."""
    return starts[0] if starts else 0


def _block(buffers: Buffers, starts: tuple[int, ...]) -> Block:
    """The index of the block that begins at these elements; no start is that of a whole array."""
    if not starts:
        return (0,) * len(buffers.block)
    return tuple(s // b for s, b in zip(starts, buffers.block, strict=True))
