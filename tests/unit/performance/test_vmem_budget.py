"""Windows and scratch of a traced call, counted in tiles."""

import math

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.matmul_scratch import matmul_scratch
from pallas_rungs.performance.vmem_budget import (
    SCOPED_LIMITS,
    scoped_limit,
    stored_shape,
    tile,
    vmem_budget,
)


def copied(block, shape, dtype=jnp.float32, *, at=None, grid=None, **options):
    """A copy by blocks, and the array that it is called on."""

    def kernel(x_ref, o_ref, *scratch):
        o_ref[...] = x_ref[...]

    spec = pl.BlockSpec(block, at or (lambda *ids: ids), **options.pop("spec", {}))
    grid = grid or tuple(n // (b or 1) for n, b in zip(shape, block, strict=True))

    def call(x):
        return pl.pallas_call(
            kernel,
            grid=grid,
            in_specs=[spec],
            out_specs=spec,
            out_shape=jax.ShapeDtypeStruct(shape, dtype),
            **options,
        )(x)

    return call, jax.ShapeDtypeStruct(shape, dtype)


def test_a_product_has_three_windows_twice_and_its_scratch_once():
    square = jax.ShapeDtypeStruct((2048, 2048), jnp.bfloat16)
    budget = vmem_budget(
        lambda x, y: matmul_scratch(x, y, block=(256, 512, 128)), square, square, chip="v6e"
    )
    assert [(it.name, it.role, it.place, it.size) for it in budget.allocations] == [
        ("x", "input window", 0, 2 * 2 * 256 * 512),
        ("y", "input window", 1, 2 * 2 * 512 * 128),
        ("o", "output window", 0, 2 * 2 * 256 * 128),
        ("acc", "scratch", 0, 4 * 256 * 128),
    ]
    assert [it.report_name for it in budget.allocations] == [
        "input window allocation for operator input 0",
        "input window allocation for operator input 1",
        "output window allocation for operator output 0",
        "scratch operand",
    ]
    assert budget.total == sum(it.size for it in budget.allocations)
    assert budget.padding == 0
    assert budget.left == 32 * 2**20 - budget.total
    assert budget.verdict == "room"


@pytest.mark.parametrize(
    ("block", "shape", "dtype", "stored"),
    [
        ((512, 1), (4096, 1), "float32", (512, 128)),
        ((512, 1), (4096, 1), "bfloat16", (512, 128)),
        ((17, 256), (17, 4096), "float32", (24, 256)),
        ((3, 256), (3, 4096), "float32", (4, 256)),
        ((3, 256), (3, 4096), "int8", (4, 256)),
        ((512, 200), (4096, 200), "bfloat16", (512, 256)),
        ((None, 512, 128), (8, 4096, 128), "float32", (1, 512, 128)),
        ((3072,), (1 << 20,), "float32", (3072,)),
    ],
)
def test_blocks_are_stored_in_whole_tiles(block, shape, dtype, stored):
    call, x = copied(
        block, shape, jnp.dtype(dtype), grid=(4,), at=lambda i: (i,) + (0,) * (len(shape) - 1)
    )
    budget = vmem_budget(call, x)
    for it in budget.allocations:
        assert it.stored == stored
    (source, _) = budget.allocations
    assert source.shape == tuple(n or 1 for n in block)
    itemsize = jnp.dtype(dtype).itemsize
    assert source.unpadded == source.buffers * math.prod(source.shape) * itemsize
    assert source.size == source.buffers * math.prod(stored) * itemsize
    assert budget.total == 2 * source.size
    assert budget.padding == 2 * (source.size - source.unpadded)


@pytest.mark.parametrize(
    ("at", "grid", "buffers"),
    [
        (lambda i, j: (i, j), (8, 8), 2),
        (lambda i, j: (i // 8, j), (8, 1), 2),
        (lambda i, j: (0, j), (8, 1), 1),
        (lambda i, j: (1, 2), (8, 8), 1),
        (lambda i, j: (j + 1, 0), (8, 1), 1),
        (lambda i, j: (j + 1, i), (8, 1), 2),
    ],
)
def test_a_block_that_never_changes_has_one_buffer(at, grid, buffers):
    call, x = copied((128, 128), (1024, 1024), at=at, grid=grid)
    assert {it.buffers for it in vmem_budget(call, x).allocations} == {buffers}


def test_a_whole_array_and_a_single_buffer_are_there_once():
    whole, x = copied((1024, 1024), (1024, 1024), at=lambda i: (0, 0), grid=(4,))
    assert {it.buffers for it in vmem_budget(whole, x).allocations} == {1}
    single, x = copied((128, 128), (1024, 1024), spec={"pipeline_mode": pl.Buffered(1)})
    assert {it.buffers for it in vmem_budget(single, x).allocations} == {1}


def test_what_lies_elsewhere_takes_no_vmem():
    def kernel(x_ref, o_ref, vector, scalars, flag):
        del vector, scalars, flag

    def call(x):
        return pl.pallas_call(
            kernel,
            grid=(2,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
            scratch_shapes=[
                pltpu.VMEM((8, 128), jnp.float32),
                pltpu.SMEM((8,), jnp.int32),
                pltpu.SemaphoreType.DMA(()),
            ],
        )(x)

    budget = vmem_budget(call, jax.ShapeDtypeStruct((16, 128), jnp.float32))
    assert [(it.name, it.size) for it in budget.allocations] == [("o", 8192), ("vector", 4096)]


def test_the_calls_own_limit_counts():
    asked = {"compiler_params": pltpu.CompilerParams(vmem_limit_bytes=100_000)}
    call, x = copied((128, 128), (1024, 1024), **asked)
    budget = vmem_budget(call, x)
    assert budget.limit == 100_000
    assert budget.left == 100_000 - 4 * 65536
    assert budget.verdict == "over"


def test_a_budget_of_the_whole_limit_still_has_room():
    rows = SCOPED_LIMITS["v5e"] // (4 * 4 * 1024)
    assert vmem_budget(*copied((rows, 1024), (8 * rows, 1024))).left == 0
    assert vmem_budget(*copied((rows, 1024), (8 * rows, 1024))).verdict == "room"
    assert vmem_budget(*copied((rows + 8, 1024), (8 * rows + 64, 1024))).verdict == "over"


def test_what_cannot_be_budgeted_is_named():
    with pytest.raises(ValueError, match="unknown chip 'v9'; one of v4, v5e"):
        scoped_limit("v9")
    with pytest.raises(ValueError, match="pallas_call 0 times"):
        vmem_budget(jnp.sin, jax.ShapeDtypeStruct((8,), jnp.float32))
    with pytest.raises(ValueError, match="no grid"):
        vmem_budget(
            lambda x: pl.pallas_call(lambda x_ref, o_ref: None, x)(x),
            jax.ShapeDtypeStruct((8, 128), jnp.float32),
        )


def test_tiles_are_the_librarys():
    assert tile("v5e", "float32", (512, 1)) == (8, 128)
    assert tile("v5e", "bfloat16", (2, 128)) == (2, 128)
    assert stored_shape("v5e", "float32", (9, 129)) == (16, 256)
