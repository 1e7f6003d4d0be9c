"""Exercise: a running maximum of integers that is right whatever memory holds at first."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, close_to, run

Kernel = Callable[[Any, Any], None]


def maximum_of_blocks(kernel: Kernel, x: jax.Array) -> jax.Array:
    """Call ``kernel`` on a grid of three programs, each given eight rows of x.

    Args:
        kernel: takes ``x_ref`` and ``o_ref``, both i32[8, 128]; ``o_ref`` is the same block in all
            programs.
        x: (24, 128), int32.

    Returns:
        (8, 128), int32: whatever the kernel has put there.
    """
    largest: jax.Array = pl.pallas_call(
        kernel,
        grid=(3,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32),
    )(x)
    return largest


def starter(x_ref: Any, o_ref: Any) -> None:
    """Take the larger of what is there and what comes, from the first program on."""
    o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])


def solution(x_ref: Any, o_ref: Any) -> None:
    """Start from the first block, and compare from the second on."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = x_ref[...]

    @pl.when(pl.program_id(0) > 0)
    def _() -> None:
        o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])


def from_zero(x_ref: Any, o_ref: Any) -> None:
    """Wrong: zero is no start for a maximum of negative numbers."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])


def in_every_program(x_ref: Any, o_ref: Any) -> None:
    """Wrong: each program starts anew, and the last one stays."""
    o_ref[...] = jnp.full_like(o_ref, np.iinfo(np.int32).min)
    o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])


WRONG: tuple[tuple[Kernel, str], ...] = (
    (from_zero, "negative numbers"),
    (in_every_program, "last block alone"),
)


def check(kernel: Kernel) -> None:
    """Compare with NumPy under ``interpret=True`` and in the simulator, which fill differently.

    Args:
        kernel: as `maximum_of_blocks` calls it.

    Raises:
        AssertionError: a maximum is wrong; says in which interpreter, where, and what to look at.
    """
    x = np.random.default_rng(0).integers(-100, 20, (24, 128)).astype(np.int32)
    want = x.reshape(3, 8, 128).max(axis=0)
    hints = (
        Hint(
            "The block was never written before it was compared with. Under interpret=True it "
            "happens to hold the smallest integer, in the simulator the largest.",
            close_to(np.full((8, 128), np.iinfo(np.int32).max)),
        ),
        Hint("A maximum of negative numbers came out as zero.", close_to(np.maximum(want, 0))),
        Hint("This is the last block alone: start in the first program only.", close_to(x[16:])),
    )
    for name, interpreter in (
        ("interpret=True", True),
        ("the simulator", pltpu.InterpretParams()),
    ):
        call = f"in {name}: maximum_of_blocks(kernel, x)"
        got = run(lambda x: maximum_of_blocks(kernel, x), x, call=call, interpret=interpreter)
        agree(got, want, call=call, rtol=0, atol=0, hints=hints)
