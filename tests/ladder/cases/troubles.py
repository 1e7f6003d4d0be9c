"""Kernels with one trouble each, of the kinds that people meet: written to be told apart."""

import dataclasses
import typing

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128) / 64
WIDE = np.arange(16 * 512, dtype=np.float32).reshape(16, 512) / 64
BF16 = X.astype(jnp.bfloat16)
INT8 = (np.arange(64 * 128) % 100).astype(np.int8).reshape(64, 128)
THREE = np.array([3], np.int32)
ONES = np.ones((128, 128), np.float32)

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
FIRST = pl.BlockSpec((8, 128), lambda i: (0, 0))
HBM = pl.BlockSpec(memory_space=pltpu.HBM)
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)
BUFFER = pltpu.VMEM((8, 128), jnp.float32)


def call(kernel, x, *, dtype=None, shape=None, **more):
    out_shape = jax.ShapeDtypeStruct(shape or x.shape, dtype or x.dtype)
    return pl.pallas_call(kernel, out_shape=out_shape, **more)


def doubling(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def twice(x):
    return call(doubling, x, grid=(4,), in_specs=[ROWS], out_specs=ROWS)(x)


# Operations that the lowering lacks.


def sorts(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sort(x_ref[...], axis=1)

    return call(kernel, x)(x)


def maps_over_rows(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = lax.map(lambda row: row * 2, x_ref[...])

    return call(kernel, x)(x)


def strides_over_a_value(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...][::2]

    return call(kernel, x, shape=(16, 128))(x)


def counts_in_float(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.broadcast_to(jnp.arange(128, dtype=jnp.float32), (8, 128))

    return call(kernel, x, shape=(8, 128))(x)


def unsigned_product(x):
    def kernel(x_ref, o_ref):
        a = x_ref[...].astype(jnp.uint8)
        o_ref[...] = jnp.dot(a, a, preferred_element_type=jnp.int32)

    return call(kernel, x, dtype=jnp.int32)(x)


def int8_maximum(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.max(x_ref[...], axis=0, keepdims=True)

    return call(kernel, x, shape=(1, 128))(x)


# What a kernel may not hold or be.

NUMPY_WEIGHTS = np.arange(128, dtype=np.float32)


def captures_numpy(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * NUMPY_WEIGHTS

    return call(kernel, x)(x)


def captures_a_tracer(x):
    mean = jnp.mean(x)

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * mean

    return call(kernel, x)(x)


def captures_in_the_index_map(x):
    table = jnp.arange(4)
    spec = pl.BlockSpec((8, 128), lambda i: (table[i], 0))
    return call(doubling, x, grid=(4,), in_specs=[spec], out_specs=ROWS)(x)


def closes_over_outside_the_kernel(x):
    weights = jnp.arange(128, dtype=jnp.float32)
    return twice(x) * weights


def returns_a_value(x):
    def kernel(x_ref, o_ref):
        return x_ref[...]

    return call(kernel, x)(x)


def forgets_the_brackets(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref * 2

    return call(kernel, x)(x)


def rebinds_the_output(x):
    def kernel(x_ref, o_ref):
        o_ref = x_ref[...] * 2  # noqa: F841

    return call(kernel, x)(x)


def body_lacks_the_table(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,), in_specs=[rows], out_specs=rows
    )
    return call(kernel, x, grid_spec=grid_spec)(jnp.arange(4), x)


def while_in_python(x):
    def kernel(x_ref, o_ref):
        i = pl.program_id(0)
        while i < 3:
            i = i + 1
        o_ref[...] = x_ref[...] + i

    return call(kernel, x, grid=(1,))(x)


def range_of_a_tracer(x):
    def kernel(x_ref, o_ref):
        for i in range(pl.program_id(0)):
            o_ref[i] = x_ref[i]

    return call(kernel, x, grid=(1,))(x)


def shape_of_a_tracer(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + jnp.zeros((pl.program_id(0) + 32, 128))

    return call(kernel, x, grid=(1,))(x)


# Index maps and blocks.


def swaps_the_axes(x):
    def at(i, j):
        return j, i

    spec = pl.BlockSpec((8, 128), at)
    out = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return call(doubling, x, grid=(2, 4), in_specs=[spec], out_specs=out)(x)


def one_index_for_two_axes(x):
    spec = pl.BlockSpec((8, 128), lambda i: i)
    return call(doubling, x, grid=(4,), in_specs=[spec], out_specs=ROWS)(x)


def index_in_float(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i / 1, 0))
    return call(doubling, x, grid=(4,), in_specs=[spec], out_specs=ROWS)(x)


def map_of_two_axes(x):
    spec = pl.BlockSpec((8, 128), lambda i, j: (i, 0))
    return call(doubling, x, grid=(4,), in_specs=[spec], out_specs=ROWS)(x)


def output_one_block_too_far(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i + 1, 0))
    return call(doubling, x, grid=(4,), in_specs=[ROWS], out_specs=spec)(x)


def one_step_too_many(x):
    return call(doubling, x, grid=(5,), in_specs=[ROWS], out_specs=ROWS)(x)


def one_step_too_few(x):
    return call(doubling, x, grid=(3,), in_specs=[ROWS], out_specs=ROWS)(x)


def table_one_too_far(x):
    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))
    out = pl.BlockSpec((8, 128), lambda i, table: (i, 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,), in_specs=[rows], out_specs=out
    )
    return call(kernel, x, grid_spec=grid_spec)(jnp.arange(4) + 1, x)


def stores_past_the_end(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        o_ref[pl.program_id(0) + 32, :] = jnp.zeros((128,))

    return call(kernel, x, grid=(1,))(x)


def half_a_row_of_lanes(x):
    spec = pl.BlockSpec((32, 64), lambda i: (0, i))
    return call(doubling, x, grid=(2,), in_specs=[spec], out_specs=spec)(x)


def reads_hbm(x):
    return call(doubling, x, in_specs=[HBM])(x)


# Memory that nobody wrote, aliases, orders.


def adds_to_fresh_integers(x):
    def kernel(x_ref, o_ref, count):
        count[...] += jnp.ones((8, 128), jnp.int32)
        o_ref[...] = count[...]

    scratch = [pltpu.VMEM((8, 128), jnp.int32)]
    return call(
        kernel, x, dtype=jnp.int32, shape=(8, 128), grid=(4,), in_specs=[ROWS], out_specs=FIRST,
        scratch_shapes=scratch,
    )(x)  # fmt: skip


def adds_in_run_scoped(x):
    def kernel(x_ref, o_ref):
        def body(total):
            total[...] += x_ref[...]
            o_ref[...] = total[...]

        pl.run_scoped(body, pltpu.VMEM((32, 128), jnp.float32))

    return call(kernel, x)(x)


def keeps_most_of_an_alias(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = x_ref[...] * 2

    return call(kernel, x, grid=(4,), in_specs=[ROWS], out_specs=ROWS, input_output_aliases={0: 0})(
        x
    )


def reads_what_it_overwrote(x):
    before = pl.BlockSpec((8, 128), lambda i: ((i + 3) % 4, 0))

    def kernel(x_ref, before_ref, o_ref):
        o_ref[...] = x_ref[...] + before_ref[...]

    return call(
        kernel, x, grid=(4,), in_specs=[ROWS, before], out_specs=ROWS, input_output_aliases={1: 0}
    )(x, x)


def alias_of_another_type(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(jnp.bfloat16)

    return call(kernel, x, dtype=jnp.bfloat16, input_output_aliases={0: 0})(x)


def carries_over_a_parallel_axis(x):
    def kernel(x_ref, o_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += x_ref[...]

        @pl.when(pl.program_id(0) == 3)
        def _():
            o_ref[...] = total[...]

    return call(
        kernel, x, shape=(8, 128), grid=(4,), in_specs=[ROWS], out_specs=FIRST,
        scratch_shapes=[BUFFER],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)  # fmt: skip


# Copies and semaphores.


def overwrites_the_source(x):
    def kernel(x_ref, o_hbm, buffer, done):
        buffer[...] = x_ref[:8]
        copy = pltpu.make_async_copy(buffer, o_hbm, done)
        copy.start()
        buffer[...] = jnp.zeros((8, 128))
        copy.wait()

    scratch = [BUFFER, pltpu.SemaphoreType.DMA]
    return call(kernel, x, shape=(8, 128), out_specs=HBM, scratch_shapes=scratch)(x)


def starts_and_forgets(x):
    def kernel(x_ref, x_hbm, o_ref, buffer, done):
        pltpu.make_async_copy(x_hbm.at[pl.ds(0, 8)], buffer, done).start()
        o_ref[...] = x_ref[:8]

    scratch = [BUFFER, pltpu.SemaphoreType.DMA]
    return call(kernel, x, shape=(8, 128), in_specs=[VMEM, HBM], scratch_shapes=scratch)(x, x)


def signals_too_often(x):
    def kernel(x_ref, o_ref, done):
        pl.semaphore_signal(done, 2)
        pl.semaphore_wait(done, 1)
        o_ref[...] = x_ref[...]

    return call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.REGULAR])(x)


def signals_as_often_as_it_waits(x):
    def kernel(x_ref, o_ref, done):
        pl.semaphore_signal(done, 2)
        pl.semaphore_wait(done, 2)
        o_ref[...] = x_ref[...]

    return call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.REGULAR])(x)


def pipeline(x, index_map):
    def kernel(x_hbm, o_hbm):
        spec = pl.BlockSpec((8, 128), index_map)
        pltpu.emit_pipeline(doubling, grid=(4,), in_specs=[spec], out_specs=[ROWS])(x_hbm, o_hbm)

    return call(kernel, x, in_specs=[HBM], out_specs=HBM)(x)


def pipelines(x):
    return pipeline(x, lambda i: (i, 0))


def pipelines_by_offsets(x):
    return pipeline(x, lambda i: (i * 8, 0))


def kernel_on_a_core(x):
    def body(x_ref, o_ref):
        def inner(buffer):
            pltpu.sync_copy(x_ref, buffer)
            buffer[...] = buffer[...] * 2
            pltpu.sync_copy(buffer, o_ref)

        pl.run_scoped(inner, pltpu.VMEM((32, 128), jnp.float32))

    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.kernel(body, out_type=out, mesh=pltpu.TensorCoreMesh(axis_name="core"))(x)


# Types, alignment, sizes: the compiler's to say.


def rows_from_three(x, start):
    rows = 8 if x.dtype == jnp.bfloat16 else 32

    def kernel(x_ref, start_ref, o_ref):
        first = start_ref[0]
        o_ref[...] = x_ref[pl.ds(first, rows), :]

    return call(kernel, x, shape=(rows, 128), in_specs=[VMEM, SMEM])(x, start)


def lane_three(x, start):
    def kernel(x_ref, start_ref, o_ref):
        first = start_ref[0]
        column = x_ref[:8, pl.ds(first, 1)]
        o_ref[...] = jnp.broadcast_to(column, (8, 128))

    return call(kernel, x, shape=(8, 128), in_specs=[VMEM, SMEM])(x, start)


def product(a, b, dtype, out_dtype):
    def kernel(a_ref, b_ref, o_ref):
        o_ref[...] = jnp.dot(a_ref[...], b_ref[...], preferred_element_type=out_dtype)

    return call(kernel, a, dtype=out_dtype)(a.astype(dtype), b.astype(dtype))


def float8_product(a, b):
    return product(a, b, jnp.float8_e4m3fn, jnp.float32)


def int32_product(a, b):
    return product(a, b, jnp.int32, jnp.int32)


def half_precision(x):
    return call(doubling, x)(x)


def scratch_larger_than_vmem(x):
    def kernel(x_ref, o_ref, buffer):
        buffer[:32, :128] = x_ref[...]
        o_ref[...] = buffer[:32, :128]

    return call(kernel, x, scratch_shapes=[pltpu.VMEM((8192, 8192), jnp.float32)])(x)


def blocks_larger_than_vmem(x):
    spec = pl.BlockSpec((1024, 2048), lambda i: (i, 0))
    return call(doubling, x, grid=(2,), in_specs=[spec], out_specs=spec)(x)


def scratch_larger_than_smem(x):
    def kernel(x_ref, o_ref, table):
        table[0] = 1
        o_ref[...] = x_ref[...]

    return call(kernel, x, scratch_shapes=[pltpu.SMEM((1 << 20,), jnp.int32)])(x)


# What stands around a kernel.


def nothing_uses_the_kernel(x):
    twice(x)
    return x * 2


def nothing_uses_the_kernel_and_wrong(x):
    twice(x)
    return x * 3


def no_kernel_at_all(x):
    return x * 2


def falls_back(x):
    return twice(x) if jax.default_backend() == "tpu" else x * 2


def asserts_a_tpu(x):
    assert jax.devices()[0].platform == "tpu"
    return twice(x)


def looks_its_chip_up(x):
    rows = {"TPU v5 lite": 8, "TPU v6 lite": 16}[jax.devices()[0].device_kind]
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return call(doubling, x, grid=(32 // rows,), in_specs=[spec], out_specs=spec)(x)


def asserts_something_else(x):
    assert x.shape == (16, 128)
    return twice(x)


def bakes_the_interpreter_in(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sort(x_ref[...], axis=1)

    return call(kernel, x, interpret=True)(x)


class Pair(typing.NamedTuple):
    left: typing.Any
    right: typing.Any


@dataclasses.dataclass
class Settings:
    rows: int


def takes_objects(pair, settings, key):
    def kernel(left_ref, right_ref, o_ref):
        o_ref[...] = left_ref[...] + right_ref[...]

    rows = pl.BlockSpec((settings.rows, 128), lambda i: (i, 0))
    total = call(kernel, pair.left, grid=(4,), in_specs=[rows, rows], out_specs=rows)(*pair)
    return total + 0 * jax.random.uniform(key, (1,))


def gradient_of_a_kernel(x):
    return jax.grad(lambda y: twice(y).sum())(x)


def tangent_with_program_id(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(0)

    shifted = call(kernel, x, grid=(4,), in_specs=[ROWS], out_specs=ROWS)
    return jax.jvp(shifted, (x,), (x,))[1]


@jax.custom_vjp
def differentiable(x):
    return twice(x)


differentiable.defvjp(lambda x: (twice(x), None), lambda _, g: (twice(g),))


def gradient_of_its_own(x):
    return jax.grad(lambda y: differentiable(y).sum())(x)


def batch_of_kernels(x):
    return jax.vmap(twice)(jnp.stack([x, x + 1]))


def batch_in_hbm(x):
    def one(x):
        def kernel(x_hbm, o_ref, buffer, done):
            pltpu.async_copy(x_hbm, buffer, done).wait()
            o_ref[...] = buffer[...] * 2

        scratch = [pltpu.VMEM((32, 128), jnp.float32), pltpu.SemaphoreType.DMA]
        return call(kernel, x, in_specs=[HBM], scratch_shapes=scratch)(x)

    return jax.vmap(one)(jnp.stack([x, x + 1]))


def approximate_reciprocal(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = pltpu.reciprocal(x_ref[...] + 1, approx=True)

    return call(kernel, x)(x)


def rounds_at_random(x):
    def kernel(x_ref, o_ref):
        bits = pltpu.bitcast(x_ref[...], jnp.uint32)
        o_ref[...] = pltpu.stochastic_round(x_ref[...], bits, target_dtype=jnp.bfloat16)

    return call(kernel, x, dtype=jnp.bfloat16)(x)


def looks_at_random_bits(x):
    """Eager, and with a kernel that no interpreter runs."""

    def kernel(o_ref):
        pltpu.prng_seed(3)
        o_ref[...] = pltpu.bitcast(pltpu.prng_random_bits(o_ref.shape), jnp.int32)

    bits = np.asarray(call(kernel, x, dtype=jnp.int32)())
    return x * (len(np.unique(bits)) > 10)
