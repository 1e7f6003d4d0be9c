"""A Python ``if`` on the program id, which is a traced value."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.kernels.case import Case

GROUP = "error while tracing"
SYMPTOM = "TracerBoolConversionError while tracing"
RULE = "The body is traced once for all programs: what differs between programs goes in pl.when."
FIRST_CAUGHT = "trace"
EXPECTED = {
    "trace": "refused",
    "interpret": "refused",
    "simulate": "refused",
    "lower": "refused",
    "compile": "refused",
}


def broken_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear the first block of rows and copy the others, with a Python branch."""
    if pl.program_id(0) == 0:
        o_ref[...] = jnp.zeros_like(o_ref)
    else:
        o_ref[...] = x_ref[...]


def fixed_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Clear the first block of rows and copy the others, with a branch in the program."""
    o_ref[...] = x_ref[...]

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)


def broken(x: jax.Array) -> jax.Array:
    """Clear the first eight rows of x, (32, 128) float32."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        broken_kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
    )(x)


def fixed(x: jax.Array) -> jax.Array:
    """Clear the first eight rows of x, (32, 128) float32."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        fixed_kernel,
        grid=(4,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
    )(x)


def reference(x: jax.Array) -> np.ndarray:
    """Return x in float64 with its first eight rows cleared."""
    cleared = np.array(x, np.float64)
    cleared[:8] = 0.0
    return cleared


def cases() -> tuple[Case, ...]:
    """Return one matrix without zeros."""
    return (Case("four blocks", (1 + np.arange(32 * 128, dtype=np.float32).reshape(32, 128),)),)
