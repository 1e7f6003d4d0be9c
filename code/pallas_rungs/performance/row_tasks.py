"""Tasks that go over rows: kernel, rival, the rows of a block for each chip, and the goal.

The size of a block was found by estimating the three kernels with 8 to 512 rows at the shapes
below, bfloat16, with jax 0.12.0.1 and libtpu 0.0.50.1; the page "Fusion that pays" shows what
smaller ones cost. Kept is a rule and not a number for each shape: an eighth of the VMEM that a
kernel is given. Two arrays in two buffers each are four blocks, and two float32 copies of a
bfloat16 block, which the compiler keeps for the passes over it, are as much again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp

from pallas_rungs.kernels.layer_norm import layer_norm
from pallas_rungs.kernels.rms_norm import rms_norm
from pallas_rungs.kernels.softmax import softmax
from pallas_rungs.performance import rivals
from pallas_rungs.performance.vmem_budget import SCOPED_LIMITS

BLOCK_BYTES: Final = {chip: SCOPED_LIMITS[chip] // 8 for chip in ("v5e", "v6e")}
"""Bytes of a block of rows, by chip: 2 MiB on v5e and 4 MiB on v6e."""

LEAST_ROWS: Final = 8
"""Rows of the smallest block of part of the rows."""


@dataclass(frozen=True)
class RowTask:
    """A task that reads whole rows and writes as many.

    Attributes:
      name: of the task, `softmax`.
      kernel: the book's kernel; takes `bm`, the rows of a block.
      rival: the same for XLA.
      weights: how many arrays of one number for each column it takes beside the rows.
      shape: (M, N) of the goal.
      goal: the kernel's time over XLA's is to be no more, by estimates of both.
    """

    name: str
    kernel: Callable[..., jax.Array]
    rival: Callable[..., jax.Array]
    weights: int
    shape: tuple[int, int]
    goal: float

    def arguments(
        self, shape: tuple[int, int] | None = None, dtype: Any = jnp.bfloat16
    ) -> tuple[jax.ShapeDtypeStruct, ...]:
        """Return shapes and dtypes of what kernel and rival take.

        Args:
          shape: (M, N); the goal's where it is None.
          dtype: of the rows and of the weights.
        """
        M, N = shape or self.shape
        rows = jax.ShapeDtypeStruct((M, N), dtype)
        return rows, *[jax.ShapeDtypeStruct((N,), dtype)] * self.weights

    def once(self, shape: tuple[int, int] | None = None, dtype: Any = jnp.bfloat16) -> int:
        """Return the bytes of all arguments read once and of the result written once."""
        given = self.arguments(shape, dtype)
        return sum(one.size * one.dtype.itemsize for one in (*given, given[0]))

    def ours(
        self, chip: str, shape: tuple[int, int] | None = None, dtype: Any = jnp.bfloat16
    ) -> partial[jax.Array]:
        """Return the kernel with the block for a chip and for the length of the rows.

        Raises:
          ValueError: no blocks were looked for on that chip.
        """
        columns = (shape or self.shape)[1]
        made = partial(self.kernel, bm=rows_for(chip, columns, jnp.dtype(dtype).itemsize))
        made.__name__ = self.name  # type: ignore[attr-defined] # the compiler's name for it
        return made


TASKS: Final = {
    task.name: task
    for task in (
        RowTask("softmax", softmax, rivals.softmax, 0, (2048, 32768), 0.55),
        RowTask("layer_norm", layer_norm, rivals.layer_norm, 2, (8192, 4096), 0.62),
        RowTask("rms_norm", rms_norm, rivals.rms_norm, 1, (8192, 4096), 0.68),
    )
}
"""The tasks that have a goal, by name."""


def rows_for(chip: str, columns: int, itemsize: int = 2) -> int:
    """Return the rows of a block: a power of two, of at most `BLOCK_BYTES`, and at least 8.

    Args:
      chip: one of `BLOCK_BYTES`.
      columns: elements of a row.
      itemsize: bytes of an element.

    Raises:
      ValueError: no blocks were looked for on that chip, or a size is not positive.
    """
    if chip not in BLOCK_BYTES:
        raise ValueError(
            f"no blocks of rows are known for {chip!r}: they were looked for on "
            f"{', '.join(BLOCK_BYTES)}; pass a bm of your own to the kernel"
        )
    if columns < 1 or itemsize < 1:
        raise ValueError(
            f"a row of {columns} elements of {itemsize} bytes has no block; give what it has"
        )
    fit = BLOCK_BYTES[chip] // (columns * itemsize)
    return int(max(LEAST_ROWS, 1 << max(fit, 1).bit_length() - 1))
