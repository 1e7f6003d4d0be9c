"""An update in place that writes the blocks to be changed and trusts the alias for the others."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "wrong on the chip only"
SYMPTOM = "the blocks that the kernel leaves alone come back as something else"
RULE = (
    "An output block goes through a buffer that is written back whole: also with an alias, fill it."
)
FIRST_CAUGHT = "simulate"
EXPECTED = {
    "trace": "passed",
    "interpret": "passed",
    "simulate": "wrong",
    "lower": "passed",
    "compile": "passed",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Double the first block; the others are there already."""

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = 2 * x_ref[...]


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Double the first block, and copy the others."""
    o_ref[...] = x_ref[...]

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = 2 * x_ref[...]


def in_place(kernel: Callable[..., None], x: jax.Array) -> jax.Array:
    """Call one of the kernels on the four blocks of x, in its memory."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        input_output_aliases={0: 0},
    )(x)


def broken(x: jax.Array) -> jax.Array:
    """Double the first eight rows of x, (32, 128) float32."""
    return in_place(broken_kernel, x)


def fixed(x: jax.Array) -> jax.Array:
    """Double the first eight rows of x, (32, 128) float32."""
    return in_place(fixed_kernel, x)


def reference(x: jax.Array) -> np.ndarray:
    """Return x in float64 with its first eight rows doubled."""
    doubled = np.array(x, np.float64)
    doubled[:8] *= 2
    return doubled


def cases() -> tuple[Case, ...]:
    """Return a matrix without zeros."""
    return (Case("four blocks", (1 + np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
