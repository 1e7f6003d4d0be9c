"""A matrix times a number, with one program on each core of a chip.

The generic interpreter does not bind the axis of the cores, so no program of this kind can be tried
there: ``TOOL_CANNOT`` says so, and the simulator is the first rung with numbers.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import (
    SUBLANES,
    block_size,
    check_blocks_divide,
    check_matrix,
    refusal,
)
from pallas_rungs.kernels.scale import scale_kernel

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")
TOOL_CANNOT = ("interpret",)


def scale_on_every_core(
    x: jax.Array,
    factor: float,
    *,
    bm: int = 256,
    cores: int | None = None,
    interpret: Any = False,
) -> jax.Array:
    """Multiply x by a number, in one program per core; each pipelines its share of the blocks.

    Args:
        x: (M, N), float32 or bfloat16, left in HBM.
        factor: A Python number, fixed when the call is traced.
        bm: Rows of a block, which must divide M. The number of blocks need not be a multiple of
            the number of cores.
        cores: How many programs; as many as the device has cores if None.
        interpret: Passed on to ``pl.kernel``.

    Returns:
        factor * x, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, bm is neither all rows nor a multiple of 8,
            bm does not divide M, or cores is less than 1.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    bm = block_size("bm", bm, M, SUBLANES)
    check_blocks_divide(
        "bm", bm, "M", M, multiple=SUBLANES, because="the kernel copies whole blocks"
    )
    if cores is not None and cores < 1:
        raise refusal("cores", cores, "somebody has to do the work", "pass 1 or more")
    number = {} if cores is None else {"num_cores": cores}
    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))

    def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        pltpu.emit_pipeline(
            functools.partial(scale_kernel, factor),
            grid=(M // bm,),
            in_specs=[rows],
            out_specs=[rows],
            core_axis_name="core",
            dimension_semantics=(pltpu.PARALLEL,),
        )(x_ref, o_ref)

    return pl.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((M, N), x.dtype),
        mesh=pltpu.TensorCoreMesh(axis_name="core", **number),
        interpret=interpret,
    )(x)


def scale_on_every_core_reference(x: jax.Array, factor: float) -> np.ndarray:
    """Return factor * x in float64."""
    return np.asarray(factor * np.asarray(x, np.float64))


def cases() -> tuple[Case, ...]:
    """Return inputs: one block and several, odd widths, each dtype."""
    rng = np.random.default_rng(0)

    def matrix(M: int, N: int, dtype: Any = np.float32) -> np.ndarray:
        return rng.standard_normal((M, N)).astype(dtype)

    # The factor and the product are rounded to float32 once each.
    rtol = 2 * 2.0**-24
    return (
        Case("four blocks", (matrix(1024, 128), -1.5), rtol=rtol, atol=0),
        Case("three blocks, odd width", (matrix(768, 100), 0.1), rtol=rtol, atol=0),
        Case("one block, odd", (matrix(5, 300), 3.0), rtol=rtol, atol=0),
        Case("bfloat16", (matrix(512, 128, jnp.bfloat16), 0.1), rtol=BFLOAT16_RTOL, atol=0),
    )
