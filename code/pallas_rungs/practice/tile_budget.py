"""Exercise: the bytes of VMEM that a product with a scale for each row takes, before a compiler."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.performance.vmem_budget import vmem_budget

Bytes = Callable[[int, int, int, int], int]

BLOCKS = ((256, 512, 256), (512, 512, 512), (1024, 256, 512), (64, 256, 384))


def scaled_product(
    x: jax.Array, y: jax.Array, scale: jax.Array, block: tuple[int, int, int]
) -> jax.Array:
    """Return (x @ y) with each row multiplied by its scale.

    Args:
        x: (M, K), bfloat16 or float32.
        y: (K, N), the same dtype.
        scale: (M, 1), float32.
        block: (bm, bk, bn), which divide M, K and N.
    """
    (M, K), N = x.shape, y.shape[1]
    bm, bk, bn = block

    def kernel(x_ref: Any, y_ref: Any, scale_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(k == pl.num_programs(2) - 1)
        def _() -> None:
            o_ref[...] = (sum_ref[...] * scale_ref[...]).astype(o_ref.dtype)

    out: jax.Array = pl.pallas_call(
        kernel,
        grid=(M // bm, N // bn, K // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
            pl.BlockSpec((bm, 1), lambda i, j, k: (i, 0)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
    )(x, y, scale)
    return out


def starter(bm: int, bk: int, bn: int, itemsize: int) -> int:
    """Where to begin: every block once."""
    return itemsize * (bm * bk + bk * bn + bm * bn) + 4 * bm


def solution(bm: int, bk: int, bn: int, itemsize: int) -> int:
    """Windows twice, the scratch once, and a column of scales in tiles of 128 lanes."""
    windows = itemsize * (bm * bk + bk * bn + bm * bn) + 4 * bm * 128
    return 2 * windows + 4 * bm * bn


def single_windows(bm: int, bk: int, bn: int, itemsize: int) -> int:
    """Wrong: one buffer for each window."""
    return solution(bm, bk, bn, itemsize) // 2 + 2 * bm * bn


def no_scratch(bm: int, bk: int, bn: int, itemsize: int) -> int:
    """Wrong: forgets the scratch."""
    return solution(bm, bk, bn, itemsize) - 4 * bm * bn


def scratch_twice(bm: int, bk: int, bn: int, itemsize: int) -> int:
    """Wrong: doubles the scratch as well."""
    return solution(bm, bk, bn, itemsize) + 4 * bm * bn


def thin_column(bm: int, bk: int, bn: int, itemsize: int) -> int:
    """Wrong: a column of one lane."""
    return solution(bm, bk, bn, itemsize) - 2 * 4 * bm * 127


WRONG: tuple[tuple[Bytes, str], ...] = (
    (single_windows, "two buffers"),
    (no_scratch, "scratch"),
    (scratch_twice, "one buffer, for all programs"),
    (thin_column, "128 lanes"),
)


def check(count: Bytes) -> None:
    """Compare a formula with the windows and scratch of the traced call.

    Args:
        count: called with bm, bk, bn and the bytes of an element of x and y; returns the bytes of
            VMEM of all windows and the scratch of `scaled_product`.

    Raises:
        AssertionError: the formula is off for some blocks; says for which, and a hint.
    """
    for block in BLOCKS:
        for dtype in ("bfloat16", "float32"):
            sizes = (*block, jnp.dtype(dtype).itemsize)
            got, want = count(*sizes), _budget(block, dtype)
            if got != want:
                raise AssertionError(
                    f"blocks of {block}, {dtype}: {got} bytes, and the call takes {want}"
                    f"{_hint(got, sizes)}"
                )


def _hint(got: int, sizes: tuple[int, int, int, int]) -> str:
    hints = {
        starter(*sizes): "while one block is worked on the next is under way",
        single_windows(*sizes): "a window has two buffers",
        no_scratch(*sizes): "the kernel has scratch as well",
        scratch_twice(*sizes): "scratch is one buffer, for all programs",
        thin_column(*sizes): "a column is stored in whole tiles, of 128 lanes",
    }
    return f"\nHint: {hints[got]}" if got in hints else ""


def _budget(block: tuple[int, int, int], dtype: str) -> int:
    bm, bk, bn = block
    x = jax.ShapeDtypeStruct((2 * bm, 2 * bk), jnp.dtype(dtype))
    y = jax.ShapeDtypeStruct((2 * bk, 2 * bn), jnp.dtype(dtype))
    scale = jax.ShapeDtypeStruct((2 * bm, 1), jnp.float32)
    return vmem_budget(lambda x, y, scale: scaled_product(x, y, scale, block), x, y, scale).total
