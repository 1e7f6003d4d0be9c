"""Operations are counted from the jaxpr, and bounds follow from two rates."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl

from pallas_rungs.figures import bytes_moved
from pallas_rungs.kernels.matmul_scratch import matmul_scratch
from pallas_rungs.kernels.softmax import softmax
from pallas_rungs.performance.chip_table import chip_facts
from pallas_rungs.performance.roofline import Operations, bound, count_operations, tile_intensity

TILE = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def called(body, grid=(), shape=(8, 128)):
    """A call of a kernel on one array, the same block for every program."""

    def kernel(x_ref, o_ref):
        o_ref[...] = body(x_ref[...])

    def call(x):
        spec = pl.BlockSpec(shape, lambda *_: (0, 0))
        return pl.pallas_call(kernel, grid=grid, in_specs=[spec], out_specs=spec, out_shape=TILE)(x)

    return call


@pytest.mark.parametrize(
    ("body", "each"),
    [
        (lambda x: x, 0),
        (lambda x: x * 2 + x, 2 * 1024),
        (lambda x: jnp.exp(-x), 2 * 1024),
        (lambda x: x - jnp.max(x, axis=1, keepdims=True), 2 * 1024),
        (lambda x: jnp.broadcast_to(jnp.sum(x, axis=0), x.shape), 1024),
        (lambda x: lax.fori_loop(0, 5, lambda i, y: y + y, x), 5 * 1024),
    ],
    ids=["copy", "two", "exponential", "reduction", "sum", "loop"],
)
@pytest.mark.parametrize("grid", [(), (3,), (2, 3)])
def test_arithmetic_on_elements_is_counted_for_every_program(body, each, grid):
    programs = {(): 1, (3,): 3, (2, 3): 6}[grid]
    assert count_operations(called(body, grid), TILE) == Operations(0, programs * each, 0)


def test_a_product_counts_two_for_each_term():
    x, y = (jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in ((256, 512), (512, 384)))
    found = count_operations(lambda x, y: matmul_scratch(x, y, block=(128, 256, 128)), x, y)
    assert found.matrix == 2 * 256 * 512 * 384
    assert found.vector == 256 * 384 * 2  # a sum into scratch, for two blocks of K
    assert found.in_branches == 0


def test_the_transposed_operand_of_a_product_is_no_matter():
    found = count_operations(
        called(lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ())))[:8, :]), TILE
    )
    assert found == Operations(matrix=2 * 8 * 128 * 128)


def test_a_branch_is_counted_whole_and_said_to_be_one():
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = x_ref[...] + 1

    def call(x):
        spec = pl.BlockSpec((8, 128), lambda i: (0, 0))
        return pl.pallas_call(kernel, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=TILE)(x)

    assert count_operations(call, TILE) == Operations(0, 4 * 1024, 4 * 1024)


def test_two_kernels_are_counted_together():
    double = called(lambda x: x + x)
    assert count_operations(lambda x: double(double(x)), TILE).vector == 2 * 1024


def test_what_has_no_count_is_named():
    with pytest.raises(LookupError, match="'while' has no count: add it"):
        count_operations(
            called(lambda x: lax.while_loop(lambda y: jnp.sum(y) < 9.0, lambda y: y + 1, x)), TILE
        )
    with pytest.raises(LookupError, match="'sort' has no count"):
        count_operations(called(jnp.sort), TILE)
    with pytest.raises(LookupError, match="no kernel to count"):
        count_operations(jnp.sin, TILE)


def test_a_grid_of_unknown_length_is_named():
    def call(n, x):
        spec = pl.BlockSpec((8, 128), lambda i: (0, 0))
        return pl.pallas_call(
            lambda x_ref, o_ref: None, grid=(n,), in_specs=[spec], out_specs=spec, out_shape=TILE
        )(x)

    with pytest.raises(LookupError, match="known at run time only"):
        count_operations(call, jax.ShapeDtypeStruct((), jnp.int32), TILE)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("block", [(128, 128, 128), (256, 512, 128), (512, 256, 256)])
def test_the_intensity_of_a_tile_is_that_of_the_traced_call(block, dtype):
    x = jax.ShapeDtypeStruct((512, 1024), dtype)
    y = jax.ShapeDtypeStruct((1024, 512), dtype)

    def product(x, y):
        return matmul_scratch(x, y, block=block)

    moved = bytes_moved(product, x, y)
    counted = count_operations(product, x, y).matrix / (moved["x"] + moved["y"])
    assert counted == tile_intensity(block[0], block[2], jnp.dtype(dtype).itemsize)


def test_tile_intensity_of_bfloat16_is_bm_bn_over_their_sum():
    assert tile_intensity(256, 128) == 256 * 128 / (256 + 128)


def test_the_lower_of_two_limits_bounds():
    chip = dataclasses.replace(chip_facts("v5e"), bandwidth=10, rates={"bfloat16": 2400})
    low, ridge, high = (bound(chip, intensity) for intensity in (60.0, 240.0, 1000.0))
    assert (low.rate, low.by, low.share) == (600, "bandwidth", 0.25)
    assert (ridge.rate, ridge.by, ridge.share) == (2400, "matrix units", 1)
    assert high == ridge


def test_a_softmax_has_no_product():
    assert count_operations(softmax, jax.ShapeDtypeStruct((64, 256), jnp.float32)).matrix == 0
