"""What a body reads back, and whether it reduces what lies past the end of an array."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from ladder.core import wrong_kernels as wrong
from pallas_rungs.bugs import fully_masked_row, partial_block_sum
from pallas_rungs.ladder.program import trace

X = np.ones((20, 300), np.float32)
BLOCK = pl.BlockSpec((8, 128), lambda i, k: (i, k))


def traced(kernel, out_block, out_map, out_shape):
    def call(x):
        return pl.pallas_call(
            kernel,
            grid=(3, 3),
            in_specs=[BLOCK],
            out_specs=pl.BlockSpec(out_block, out_map),
            out_shape=jax.ShapeDtypeStruct(out_shape, jnp.float32),
        )(x)

    return trace(call, (X,)).features


def sums(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], 1, keepdims=True)


def sums_of_a_select(x_ref, o_ref):
    columns = 128 * pl.program_id(1) + jax.lax.broadcasted_iota(jnp.int32, (8, 128), 1)
    o_ref[...] = jnp.sum(jnp.where(columns < 300, x_ref[...], 0.0), 1, keepdims=True)


def accumulates(x_ref, o_ref):
    @pl.when(pl.program_id(1) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def products(x_ref, o_ref):
    o_ref[...] = x_ref[...] @ jnp.ones((128, 1), jnp.float32)


@pytest.mark.parametrize(
    ("kernel", "out_block", "out_map", "out_shape", "reduces"),
    [
        (sums, (8, 1), lambda i, k: (i, k), (20, 3), True),
        (products, (8, 1), lambda i, k: (i, k), (20, 3), True),
        (sums_of_a_select, (8, 1), lambda i, k: (i, k), (20, 3), False),
        (accumulates, (8, 128), lambda i, k: (i, 0), (20, 128), True),
        (accumulates, (8, 128), lambda i, k: (i, k), (20, 300), False),
        (wrong.double_kernel, (8, 128), lambda i, k: (i, k), (20, 300), False),
    ],
)
def test_a_reduction_over_the_overhang_is_told_from_others(
    kernel, out_block, out_map, out_shape, reduces
):
    features = traced(kernel, out_block, out_map, out_shape)
    assert features.partial_blocks
    assert features.reduces_overhang is reduces


def test_the_bug_reduces_the_overhang_and_its_cure_does_not():
    args = partial_block_sum.cases()[0].args
    assert trace(partial_block_sum.broken, args).features.reduces_overhang
    assert not trace(partial_block_sum.fixed, args).features.reduces_overhang


def test_a_mask_of_minus_infinity_is_told_from_a_finite_one():
    args = fully_masked_row.cases()[0].args
    assert trace(fully_masked_row.broken, args).features.masks_with_infinity
    assert not trace(fully_masked_row.fixed, args).features.masks_with_infinity


def test_a_buffer_that_only_copies_fill_is_no_accumulator():
    assert not trace(wrong.reads_before_the_copy_has_come, (wrong.X,)).features.accumulates
    summed = trace(wrong.sum_of_roots, (wrong.X,)).features
    assert summed.accumulates
    assert not summed.never_cleared
