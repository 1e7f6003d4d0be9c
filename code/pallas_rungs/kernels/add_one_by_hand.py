"""The smallest kernel that moves its own data: one copy in, one addition, one copy out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import BFLOAT16_RTOL, Case
from pallas_rungs.kernels.checks import check_matrix

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def add_one_by_hand_kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
    """Copy x, (M, N) in HBM, to VMEM, add one there, and copy the sum to o, (M, N) in HBM."""

    def body(buffer: jax.Ref, done: jax.Ref) -> None:
        fetch = pltpu.make_async_copy(x_ref, buffer, done)
        fetch.start()
        fetch.wait()
        buffer[...] = buffer[...] + 1
        send = pltpu.make_async_copy(buffer, o_ref, done)
        send.start()
        send.wait()

    pl.run_scoped(body, pltpu.VMEM(x_ref.shape, x_ref.dtype), pltpu.SemaphoreType.DMA)


def add_one_by_hand(x: jax.Array, *, interpret: Any = False) -> jax.Array:
    """Add one to every element, with x and the result left in HBM.

    The whole array passes through one buffer in VMEM, so it has to fit there.

    Args:
        x: (M, N), float32 or bfloat16.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        x + 1, (M, N), of the dtype of x.

    Raises:
        ValueError: x is no matrix of those dtypes, or empty.
    """
    check_matrix("x", x, ("float32", "bfloat16"))
    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    return pl.pallas_call(
        add_one_by_hand_kernel,
        in_specs=[in_hbm],
        out_specs=in_hbm,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x)


def add_one_by_hand_reference(x: jax.Array) -> np.ndarray:
    """Return x + 1 in float64."""
    return np.asarray(x, np.float64) + 1


def cases() -> tuple[Case, ...]:
    """Return inputs: whole tiles and odd shapes, infinities, each dtype."""
    rng = np.random.default_rng(0)
    infinite = np.full((8, 128), np.inf, np.float32)
    infinite[::2] = -np.inf
    return (
        Case("whole tiles", (rng.standard_normal((16, 256)).astype(np.float32),)),
        Case("odd shape", (rng.standard_normal((5, 300)).astype(np.float32),)),
        Case("one element", (np.ones((1, 1), np.float32),)),
        Case("infinities", (infinite,), note="inf + 1 is inf"),
        Case(
            "bfloat16",
            (rng.standard_normal((16, 128)).astype(jnp.bfloat16),),
            rtol=BFLOAT16_RTOL,
            atol=0,
        ),
    )
