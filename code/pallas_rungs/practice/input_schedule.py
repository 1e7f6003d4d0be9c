"""Exercise: say which copies a pipeline starts and awaits for one input, and in which slots."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from pallas_rungs.compilers.abstract import abstract_mesh
from pallas_rungs.figures.pipeline_schedule import PROLOGUE, pipeline_schedule


class Act(NamedTuple):
    """A copy of one block that is started or awaited.

    Attributes:
        step: of the grid; -1 for what is done before the first one.
        what: ``start`` or ``wait``.
        block: index of the block.
        slot: where in VMEM it is put.
    """

    step: int
    what: str
    block: int
    slot: int


Plan = Callable[[Sequence[int], int], list[Act]]


def starter(blocks: Sequence[int], slots: int) -> list[Act]:
    """At every step, copy the block that it needs, and wait for it."""
    acts = []
    for step, block in enumerate(blocks):
        acts.append(Act(step, "start", block, 0))
        acts.append(Act(step, "wait", block, 0))
    return acts


def solution(blocks: Sequence[int], slots: int) -> list[Act]:
    """Start copies slots - 1 steps ahead, where the block changes; count slots by copies."""

    def changes(step: int) -> bool:
        return step == 0 or blocks[step] != blocks[step - 1]

    acts: list[Act] = []
    started = waited = 0
    ahead = slots - 1
    for step in range(-ahead, len(blocks)):
        later = step + ahead
        if later < len(blocks) and changes(later):
            acts.append(Act(max(step, PROLOGUE), "start", blocks[later], started % slots))
            started += 1
        if step >= 0 and changes(step):
            acts.append(Act(step, "wait", blocks[step], waited % slots))
            waited += 1
    return acts


def without_skips(blocks: Sequence[int], slots: int) -> list[Act]:
    """Wrong: copies a block again that is still there from the step before."""
    acts = solution(range(len(blocks)), slots)
    return [act._replace(block=blocks[act.block]) for act in acts]


def slots_by_step(blocks: Sequence[int], slots: int) -> list[Act]:
    """Wrong: takes the slot from the number of the step."""
    acts, started, waited = [], _changing(blocks), _changing(blocks)
    for act in solution(blocks, slots):
        step = next(started if act.what == "start" else waited)
        acts.append(act._replace(slot=step % slots))
    return acts


def _changing(blocks: Sequence[int]) -> Iterator[int]:
    return (s for s in range(len(blocks)) if s == 0 or blocks[s] != blocks[s - 1])


def past_the_end(blocks: Sequence[int], slots: int) -> list[Act]:
    """Wrong: fetches ahead where no step follows; nobody waits for those copies."""
    longer = [*blocks, *range(-1, -slots, -1)]
    return [
        act._replace(block=max(act.block, 0))
        for act in solution(longer, slots)
        if act.step < len(blocks)
    ]


def as_a_cache(blocks: Sequence[int], slots: int) -> list[Act]:
    """Wrong: takes a block that another slot still holds."""
    held: list[int] = []
    kept = []
    for act in solution(blocks, slots):
        if act.what == "start":
            if act.block in held:
                continue
            held = [*held, act.block][-slots:]
            kept.append(act)
        elif act._replace(what="start") in [k._replace(step=act.step) for k in kept]:
            kept.append(act)
    return kept


def nothing_ahead(blocks: Sequence[int], slots: int) -> list[Act]:
    """Wrong: rotates through the slots and starts every copy where it is needed."""
    acts = []
    for count, act in enumerate(solution(blocks, 1)):
        acts.append(act._replace(slot=count // 2 % slots))
    return acts


WRONG: tuple[tuple[Plan, str], ...] = (
    (without_skips, "the block is that of the step before"),
    (slots_by_step, "counts the copies, not the steps"),
    (past_the_end, "no step left for it"),
    (as_a_cache, "is not looked for in the other slots"),
    (nothing_ahead, "slots - 1 steps before it is needed"),
)

CASES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((0, 1, 2, 3), 2),
    ((0, 1, 2, 3), 1),
    ((0, 0, 1, 1, 2), 2),
    ((0, 1, 0, 1), 2),
    ((0, 1, 1, 2, 0, 0), 3),
    ((2,), 3),
)


@functools.cache
def by_the_library(blocks: tuple[int, ...], slots: int) -> tuple[Act, ...]:
    """What `emit_pipeline` of the installed jax does for an input with these blocks.

    Args:
        blocks: index of the block of each step.
        slots: as in ``pl.Buffered(slots)``.
    """
    at = jnp.asarray(blocks)
    spec = pl.BlockSpec((8, 128), lambda i: (at[i], 0), pipeline_mode=pl.Buffered(slots))
    x = jax.ShapeDtypeStruct((8 * (max(blocks) + 2), 128), jnp.float32)
    with jax.sharding.use_abstract_mesh(abstract_mesh("v5e")):
        schedule = pipeline_schedule(x, grid=(len(blocks),), in_specs=[spec])
    return tuple(
        Act(step, move.what, move.block[0], move.slot)
        for step, move in zip(schedule.steps, schedule.moves, strict=True)
        if move.what != "body"
    )


def check(plan: Plan) -> None:
    """Compare a plan with what the installed library's pipeline does.

    Args:
        plan: takes the index of the block of each step, and the number of slots, 1 or more; returns
            what is done in order, as `Act`. Within a step copies are started before one is awaited.

    Raises:
        AssertionError: the plan differs; says for which blocks, where first, and a hint if the
            mistake is a known one.
    """
    for blocks, slots in CASES:
        want = list(by_the_library(blocks, slots))
        got = [Act(*act) for act in plan(blocks, slots)]
        if got == want:
            continue
        at = next(
            (n for n, pair in enumerate(zip(got, want, strict=False)) if pair[0] != pair[1]),
            min(len(got), len(want)),
        )
        raise AssertionError(
            f"blocks {blocks} in {slots} slot{'s' * (slots > 1)}: as act {at} you have "
            f"{_told(got, at)}, the library {_told(want, at)}{_hint(got, blocks, slots)}"
        )


def _told(acts: Sequence[Act], at: int) -> str:
    if at >= len(acts):
        return "nothing"
    step, what, block, slot = acts[at]
    when = "before the loop" if step == PROLOGUE else f"at step {step}"
    return f"'{what} block {block} slot {slot}' {when}"


def _hint(got: list[Act], blocks: Sequence[int], slots: int) -> str:
    """Tell the mistake by the plan that makes the same."""
    known = {
        without_skips: "where the block is that of the step before, nothing is copied and "
        "nothing awaited.",
        slots_by_step: "the next slot counts the copies, not the steps.",
        past_the_end: "there is no step left for it, so nobody would wait for that copy.",
        as_a_cache: "a block is compared with that of the step before; it is not looked for in the "
        "other slots.",
        nothing_ahead: "a copy is started slots - 1 steps before it is needed, the first ones "
        "before the loop.",
        starter: "start the copy slots - 1 steps before it is needed, in the next slot.",
    }
    for mistake, words in known.items():
        if got == mistake(blocks, slots):
            return f"\nHint: {words}"
    return ""
