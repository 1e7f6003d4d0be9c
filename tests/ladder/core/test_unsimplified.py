"""Numbers that only XLA's simplifier makes right do not pass the interpret rung."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from pallas_rungs.ladder import climb

INDETERMINATE = np.array([[np.nan] * 64 + [1.0] * 64] * 8, np.float32)


def masked(keep):
    def kernel(x_ref, o_ref):
        mask = jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1) >= 64
        o_ref[...] = keep(x_ref[...], mask)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))


def reference(x):
    return np.where(np.isnan(x), 0.0, x)


def test_a_product_with_a_mask_is_wrong_although_the_interpreter_repairs_it():
    product = masked(lambda x, mask: x * mask.astype(x.dtype))
    report = climb(product, INDETERMINATE, reference=reference, rungs=["interpret"])
    verdict = report.of("interpret")
    assert verdict.status == "wrong"
    assert verdict.difference.nan == 8 * 64
    assert "turns x * mask into a select" in verdict.summary


def test_a_select_passes():
    select = masked(lambda x, mask: jnp.where(mask, x, 0.0))
    assert climb(select, INDETERMINATE, reference=reference, rungs=["interpret"]).passed
