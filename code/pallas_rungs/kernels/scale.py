"""A matrix times a number, its blocks moved by a grid or by a pipeline inside the kernel."""

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

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def scale_kernel(factor: float, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Write factor times a (bm, N) block, multiplied in float32."""
    o_ref[...] = (x_ref[...].astype(jnp.float32) * factor).astype(o_ref.dtype)


def scale(x: jax.Array, factor: float, *, bm: int = 256, interpret: Any = False) -> jax.Array:
    """Multiply x by a number, bm rows per program of a grid.

    Args:
        x: (M, N), float32 or bfloat16.
        factor: A Python number, fixed when the call is traced.
        bm: Rows of a block. A block that is longer than the array is cut down to it; the last
            block may be partial, because no row looks at another.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        factor * x, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, or bm is neither all rows nor a multiple of 8.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    bm = block_size("bm", bm, M, SUBLANES)

    rows = pl.BlockSpec((bm, N), lambda i: (i, 0))
    return pl.pallas_call(
        functools.partial(scale_kernel, factor),
        grid=(pl.cdiv(M, bm),),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
    )(x)


def scale_pipelined(
    x: jax.Array, factor: float, *, bm: int = 256, buffers: int = 2, interpret: Any = False
) -> jax.Array:
    """Multiply x by a number, in one program that pipelines its own blocks from HBM.

    Args:
        x: (M, N), float32 or bfloat16.
        factor: A Python number, fixed when the call is traced.
        bm: Rows of a block, which must divide M. A pipeline cuts a partial last block down to
            whole tiles, which a chip takes and interpreters do not.
        buffers: How many blocks of x, and how many of the result, VMEM holds at a time; 1 or more.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        factor * x, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, bm is neither all rows nor a multiple of 8,
            bm does not divide M, or buffers is less than 1.
    """
    M, N = check_matrix("x", x, ("float32", "bfloat16"))
    bm = block_size("bm", bm, M, SUBLANES)
    check_blocks_divide(
        "bm", bm, "M", M, multiple=SUBLANES, because="the kernel copies whole blocks"
    )
    if buffers < 1:
        raise refusal("buffers", buffers, "a block has to be somewhere", "pass 1 or more")

    rows = pl.BlockSpec((bm, N), lambda i: (i, 0), pipeline_mode=pl.Buffered(buffers))

    def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        pltpu.emit_pipeline(
            functools.partial(scale_kernel, factor),
            grid=(M // bm,),
            in_specs=[rows],
            out_specs=[rows],
        )(x_ref, o_ref)

    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    return pl.pallas_call(
        kernel,
        in_specs=[in_hbm],
        out_specs=in_hbm,
        out_shape=jax.ShapeDtypeStruct((M, N), x.dtype),
        interpret=interpret,
    )(x)


def scale_reference(x: jax.Array, factor: float) -> np.ndarray:
    """Return factor * x in float64."""
    return np.asarray(factor * np.asarray(x, np.float64))


def cases() -> tuple[Case, ...]:
    """Return inputs: one block and several, odd widths, infinities, each dtype."""
    rng = np.random.default_rng(0)

    def matrix(M: int, N: int, dtype: Any = np.float32) -> np.ndarray:
        return rng.standard_normal((M, N)).astype(dtype)

    infinite = matrix(8, 128)
    infinite[:, ::3] = np.inf
    # The factor and the product are rounded to float32 once each.
    rtol = 2 * 2.0**-24
    return (
        Case("two blocks", (matrix(512, 128), -1.5), rtol=rtol, atol=0),
        Case("odd width", (matrix(512, 100), 0.1), rtol=rtol, atol=0),
        Case("one block, odd", (matrix(5, 300), 3.0), rtol=rtol, atol=0),
        Case("one element", (matrix(1, 1), 2.0), rtol=rtol, atol=0),
        Case("infinities", (infinite, -2.0), rtol=rtol, atol=0),
        Case("bfloat16", (matrix(512, 128, jnp.bfloat16), 0.1), rtol=BFLOAT16_RTOL, atol=0),
    )
