"""All kernels of the book in one table, for whoever tries them one after the other."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from pallas_rungs.kernels import (
    add,
    add_by_offsets,
    matmul,
    matmul_rows_columns,
    softmax,
    transpose,
)
from pallas_rungs.kernels.case import Case


@dataclass(frozen=True)
class Kernel:
    """A kernel's call with what it takes to try it.

    Attributes:
        name: The name of the call.
        call: The call, on the arguments of a case; it also takes ``interpret``.
        reference: The float64 result for the same arguments.
        cases: Returns the inputs to try.
        chips: The chips whose compiler accepts it, on every case.
    """

    name: str
    call: Callable[..., jax.Array]
    reference: Callable[..., np.ndarray]
    cases: Callable[[], tuple[Case, ...]]
    chips: tuple[str, ...]


KERNELS = (
    Kernel("add_whole", add.add_whole, add.add_reference, add.cases, add.CHIPS),
    Kernel("add", add.add, add.add_reference, add.cases, add.CHIPS),
    Kernel(
        "add_by_offsets",
        add_by_offsets.add_by_offsets,
        add_by_offsets.add_by_offsets_reference,
        add_by_offsets.cases,
        add_by_offsets.CHIPS,
    ),
    Kernel(
        "transpose",
        transpose.transpose,
        transpose.transpose_reference,
        transpose.cases,
        transpose.CHIPS,
    ),
    Kernel(
        "matmul_rows_columns",
        matmul_rows_columns.matmul_rows_columns,
        matmul_rows_columns.matmul_rows_columns_reference,
        matmul_rows_columns.cases,
        matmul_rows_columns.CHIPS,
    ),
    Kernel("matmul", matmul.matmul, matmul.matmul_reference, matmul.cases, matmul.CHIPS),
    Kernel("softmax", softmax.softmax, softmax.softmax_reference, softmax.cases, softmax.CHIPS),
)
