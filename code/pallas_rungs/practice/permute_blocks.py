"""Exercise: a scatter of blocks, by a table that the output's index map reads."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report
from pallas_rungs.practice.judging import Hint, agree, climbs, close_to, run

Permute = Callable[[Any, Any], Any]

BLOCK_ROWS = 8

RUNGS = ("simulate", "lower", "compile")  # the first two have been climbed by then


def copy_kernel(table_ref: Any, x_ref: Any, o_ref: Any) -> None:
    """Copy one block."""
    o_ref[...] = x_ref[...]


def starter(table: jax.Array, x: jax.Array) -> Any:
    """Copies every block to where it was: the table is handed in, and nobody reads it."""
    return pl.pallas_call(
        copy_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(x.shape[0] // BLOCK_ROWS,),
            in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (t, 0))],
            out_specs=pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (t, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(table, x)


def solution(table: jax.Array, x: jax.Array) -> Any:
    """Block t of x is read in order, and written where the table says."""
    return pl.pallas_call(
        copy_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(x.shape[0] // BLOCK_ROWS,),
            in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (t, 0))],
            out_specs=pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (table[t], 0)),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(table, x)


def gathered(table: jax.Array, x: jax.Array) -> Any:
    """Wrong: reads where the table says, and writes in order."""
    return pl.pallas_call(
        copy_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(x.shape[0] // BLOCK_ROWS,),
            in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (table[t], 0))],
            out_specs=pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (t, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(table, x)


def by_offset(table: jax.Array, x: jax.Array) -> Any:
    """Wrong: the index map returns where the block starts."""
    return pl.pallas_call(
        copy_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(x.shape[0] // BLOCK_ROWS,),
            in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (t, 0))],
            out_specs=pl.BlockSpec((BLOCK_ROWS, 128), lambda t, table: (table[t] * 8, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(table, x)


def scalars_first(table: jax.Array, x: jax.Array) -> Any:
    """Wrong: the index map takes its arguments in the order of the kernel's."""
    return pl.pallas_call(
        copy_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(x.shape[0] // BLOCK_ROWS,),
            in_specs=[pl.BlockSpec((BLOCK_ROWS, 128), lambda table, t: (t, 0))],
            out_specs=pl.BlockSpec((BLOCK_ROWS, 128), lambda table, t: (table[t], 0)),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(table, x)


WRONG: tuple[tuple[Permute, str], ...] = (
    (starter, "as it was: no index map reads the table"),
    (gathered, "a gather"),
    (by_offset, "block indices"),
    (scalars_first, "program ids first"),
)


def reference(table: Any, x: Any) -> np.ndarray:
    """Put block t of x to place table[t]."""
    want: np.ndarray = np.empty_like(x)
    for t, place in enumerate(table):
        want[BLOCK_ROWS * place :][:BLOCK_ROWS] = x[BLOCK_ROWS * t :][:BLOCK_ROWS]
    return want


def check(permute: Permute) -> Report:
    """Run ``permute`` on a permutation that is not its own inverse, then climb.

    Args:
        permute: takes a table (T,), int32, a permutation of 0 … T - 1, and x (8 T, 128); returns
            an array like x whose block table[t], of eight rows, is block t of x.

    Returns:
        The report of the simulator, lowering and the compiler, when each of them passed.

    Raises:
        AssertionError: what was found, where, and a hint if the mistake is a known one.
    """
    table = np.array([2, 0, 3, 1], np.int32)
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    call = "permute_blocks([2, 0, 3, 1], x)"
    gather = x.reshape(4, BLOCK_ROWS, 128)[table].reshape(x.shape)
    try:
        got = run(permute, table, x, call=call)
    except AssertionError as error:
        if "Ref" in str(error) or "int32[]" in str(error) or "index" in str(error):
            raise AssertionError(
                f"{error}\nHint: an index map takes the program ids first, then the prefetched "
                "tables; the kernel takes the tables first."
            ) from error
        raise
    hints = (
        Hint("x came out as it was: no index map reads the table.", close_to(x)),
        Hint(
            "This is a gather: block table[t] went to place t. Which of the two index maps says "
            "where a block is written?",
            close_to(gather),
        ),
        Hint(
            "Some places were never written, or written twice. An index map returns block "
            "indices; Pallas multiplies by the block size.",
            lambda got, want: True,
        ),
    )
    agree(got, reference(table, x), call=call, rtol=0, atol=0, hints=hints)
    return climbs(permute, table, x, reference=reference, rungs=RUNGS, name="permute_blocks")
