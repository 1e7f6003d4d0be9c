"""Exercise: sums of picked blocks, steered by two tables."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, has_nan, run

Kernel = Callable[[Any, Any, Any, Any], None]

BAGS = 3

RUNGS = ("simulate", "lower", "compile")  # the first two have been climbed by then


def bag_sums(kernel: Kernel, picks: jax.Array, bags: jax.Array, x: jax.Array) -> Any:
    """Call ``kernel`` once for each pick, with the block that is picked and the sum it goes to.

    Args:
        kernel: takes ``picks_ref`` (T,), ``bags_ref`` (T,), ``x_ref`` (8, 128), ``o_ref`` (8, 128).
        picks: (T,), int32: the block of x that program t is given.
        bags: (T,), int32, never falling, each of 0, 1 and 2 at least once: the block of the output
            that program t is given.
        x: (V, 8, 128), float32.

    Returns:
        (3, 8, 128), float32: whatever the kernel has put there.
    """
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(picks.shape[0],),
            in_specs=[pl.BlockSpec((None, 8, 128), lambda t, picks, bags: (picks[t], 0, 0))],
            out_specs=pl.BlockSpec((None, 8, 128), lambda t, picks, bags: (bags[t], 0, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((BAGS, 8, 128), jnp.float32),
    )(picks, bags, x)


def starter(picks_ref: Any, bags_ref: Any, x_ref: Any, o_ref: Any) -> None:
    """Adds to whatever was in memory."""
    o_ref[...] += x_ref[...]


def solution(picks_ref: Any, bags_ref: Any, x_ref: Any, o_ref: Any) -> None:
    """Clear the sum when its bag begins; program 0 has no program before it."""
    t = pl.program_id(0)
    before = bags_ref[jnp.maximum(t - 1, 0)]

    @pl.when((t == 0) | (bags_ref[t] != before))
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def cleared_by_the_first_program(picks_ref: Any, bags_ref: Any, x_ref: Any, o_ref: Any) -> None:
    """Wrong: program 0 sees the sum of the first bag only."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def cleared_every_time(picks_ref: Any, bags_ref: Any, x_ref: Any, o_ref: Any) -> None:
    """Wrong: only the last pick of a bag is left."""
    o_ref[...] = x_ref[...]


def picks_compared(picks_ref: Any, bags_ref: Any, x_ref: Any, o_ref: Any) -> None:
    """Wrong: a new pick is not a new bag."""
    t = pl.program_id(0)

    @pl.when((t == 0) | (picks_ref[t] != picks_ref[jnp.maximum(t - 1, 0)]))
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


WRONG: tuple[tuple[Kernel, str], ...] = (
    (cleared_by_the_first_program, "first program of its bag"),
    (cleared_every_time, "last pick"),
    (picks_compared, "picks apart"),
)


def reference(picks: Any, bags: Any, x: Any) -> np.ndarray:
    """Sum the picked blocks of each bag."""
    sums = np.zeros((BAGS, *x.shape[1:]))
    np.add.at(sums, np.asarray(bags), x[np.asarray(picks)])
    return sums


def check(kernel: Kernel) -> Report:
    """Run ``kernel`` on six picks in three bags, some blocks picked twice in a row, then climb.

    Args:
        kernel: takes ``picks_ref`` (6,) and ``bags_ref`` (6,), int32 in scalar memory, ``x_ref``
            and ``o_ref``, f32[8, 128].

    Returns:
        The report of the simulator, lowering and the compiler, when each of them passed.

    Raises:
        AssertionError: what was found, where, and a hint if the mistake is a known one.
    """
    picks = np.array([4, 4, 1, 0, 3, 3], np.int32)
    bags = np.array([0, 0, 0, 1, 2, 2], np.int32)
    x = 1.0 + np.arange(5 * 8 * 128, dtype=np.float32).reshape(5, 8, 128)
    args = (picks, bags, x)

    def call(picks: Any, bags: Any, x: Any) -> Any:
        return bag_sums(kernel, picks, bags, x)

    last = x[[1, 0, 3]].astype(np.float64)
    hints = (
        Hint(
            "The output block of a bag starts out with whatever is in memory. Is it cleared by the "
            "first program of its bag, or only by the first program of all?",
            has_nan,
        ),
        Hint("Only the last pick of each bag is left.", close_to(last)),
        Hint(
            "It is a new bag, not a new pick, that clears the sum: keep bags and picks apart.",
            lambda got, want: bool(np.isclose(got[0], x[1]).all()),
        ),
    )
    said = "bag_sums(kernel, [4, 4, 1, 0, 3, 3], [0, 0, 0, 1, 2, 2], x)"
    got = run(call, *args, call=said)
    agree(got, reference(*args), call=said, rtol=0, atol=0, hints=hints)
    name = getattr(kernel, "__name__", "kernel")
    return climbs(call, *args, reference=reference, rungs=RUNGS, name=name)
