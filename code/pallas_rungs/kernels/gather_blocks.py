"""Rows picked block by block: a table in scalar memory says which block each program reads."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import SUBLANES, block_size, check_matrix, check_table, refusal

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def gather_blocks_kernel(table_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Copy one (bm, N) block; which one it is has been decided by the index map of x."""
    o_ref[...] = x_ref[...]


def gather_blocks(table: jax.Array, x: jax.Array, *, bm: int = 8, interpret: Any = False) -> Any:
    """Stack the blocks of bm rows of x that a table names, in the order of the table.

    The table is read by the index map of x, before the body of the program runs. An entry may
    occur any number of times. Its value is known only when the program runs, so nothing here can
    check it: an entry must be in 0 … M / bm - 1.

    Args:
        table: (T,), int32: a block of x for each block of the result.
        x: (M, N), float32, bfloat16 or int32.
        bm: Rows of a block; it must divide M, since what lies past the end of a partial block
            would end up in the middle of the result.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        (T * bm, N), of the dtype of x: rows bm * t … bm * t + bm - 1 are block table[t] of x.

    Raises:
        ValueError: The table is no vector of int32 or is empty, x is no matrix of those dtypes,
            bm is neither all rows nor a multiple of 8 that divides M, or several blocks of a
            number of rows that is no multiple of 8 would be stacked.
    """
    T = check_table("table", table)
    M, N = check_matrix("x", x, ("float32", "bfloat16", "int32"))
    bm = block_size("bm", bm, M, SUBLANES)
    if M % bm:
        raise refusal(
            "bm",
            bm,
            f"the last of the blocks that fill M = {M} rows would be partial",
            f"pad x with {-M % bm} rows or pass a divisor of M",
        )
    if bm % SUBLANES and T > 1:
        raise refusal(
            "the number of rows of x",
            M,
            f"the result stacks {T} blocks, and those take a multiple of {SUBLANES} rows",
            f"pad x with {-M % SUBLANES} rows",
        )

    return pl.pallas_call(
        gather_blocks_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,  # the first operand goes to SMEM and to every index map
            grid=(T,),
            in_specs=[pl.BlockSpec((bm, N), lambda t, table: (table[t], 0))],
            out_specs=pl.BlockSpec((bm, N), lambda t, table: (t, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((T * bm, N), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(table, x)


def gather_blocks_reference(table: jax.Array, x: jax.Array, *, bm: int = 8) -> np.ndarray:
    """Return the picked blocks in float64, one below the other."""
    x64 = np.asarray(x).astype(np.float64)
    blocks = x64.reshape(-1, min(bm, x64.shape[0]), x64.shape[1])
    return np.asarray(blocks[np.asarray(table)]).reshape(-1, x64.shape[1])


def cases() -> tuple[Case, ...]:
    """Return inputs: tables that permute, repeat, and take one block; each dtype."""
    rng = np.random.default_rng(0)

    def inputs(table: list[int], M: int, N: int, dtype: Any = np.float32) -> tuple[Any, ...]:
        x = 1e4 * rng.standard_normal((M, N))
        return np.array(table, np.int32), x.astype(dtype)

    infinite = inputs([1, 0], 16, 128)
    infinite[1][3::5], infinite[1][4::5] = np.inf, -np.inf
    # A copy has no error at all.
    return tuple(
        Case(name, args, rtol=0.0, atol=0.0, note=note)
        for name, args, note in (
            ("a permutation", inputs([2, 0, 3, 1], 32, 128), ""),
            ("blocks repeated and left out", inputs([1, 1, 1, 4, 0, 4], 40, 200), "N is no 128"),
            ("one block of many", inputs([3], 40, 128), ""),
            ("x is one row", inputs([0], 1, 256), "bm is cut down to 1"),
            ("one element", inputs([0], 1, 1), ""),
            ("infinities", infinite, ""),
            ("int32", inputs([2, 2, 0], 24, 128, np.int32), ""),
            ("bfloat16", inputs([1, 2, 0], 24, 256, jnp.bfloat16), ""),
        )
    )
