"""GPU kernels with one fault each, and their healthy siblings; each is small enough to simulate."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import triton as pltriton

X = np.arange(64 * 128, dtype=np.float32).reshape(64, 128) / 64
HALVES = (np.arange(128 * 128).reshape(128, 128) % 7).astype(np.float16)
TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
BUFFER = plgpu.SMEM((64, 128), jnp.float32)


def doubled(x):
    return x * 2


def kernel(body, out, scratch, **options):
    """A Mosaic GPU kernel whose output looks like `out`."""
    shape = jax.ShapeDtypeStruct(out.shape, out.dtype)
    return plgpu.kernel(body, out_type=shape, scratch_types=scratch, **options)


def through_shared_memory(x, *, load_wait=True, commit=True, store_wait=True):
    """Double x by way of shared memory, with TMA copies in and out."""

    def body(x_gmem, o_gmem, in_smem, out_smem, loaded):
        plgpu.copy_gmem_to_smem(x_gmem, in_smem, loaded)
        if load_wait:
            plgpu.barrier_wait(loaded)
        out_smem[...] = in_smem[...] * 2
        if commit:
            plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(out_smem, o_gmem)
        if store_wait:
            plgpu.wait_smem_to_gmem(0)

    return kernel(body, x, [BUFFER, BUFFER, plgpu.Barrier(num_arrivals=1)])(x)


def doubles(x):
    return through_shared_memory(x)


def forgets_to_wait_for_the_load(x):
    return through_shared_memory(x, load_wait=False)


def forgets_to_commit(x):
    return through_shared_memory(x, commit=False)


def forgets_to_wait_for_the_store(x):
    return through_shared_memory(x, store_wait=False)


def waits_for_two_arrivals_of_one(x):
    def body(x_gmem, o_gmem, smem, loaded):
        plgpu.copy_gmem_to_smem(x_gmem, smem, loaded)
        plgpu.barrier_wait(loaded)
        o_gmem[...] = smem[...] * 2

    return kernel(body, x, [BUFFER, plgpu.Barrier(num_arrivals=2)])(x)


def hands_over(x, *, signals):
    """One warpgroup writes shared memory, the other reads it."""

    def body(x_gmem, o_gmem, smem, written):
        warpgroup = lax.axis_index("wg")

        @pl.when(warpgroup == 0)
        def _():
            smem[...] = x_gmem[...] * 2
            if signals:
                plgpu.barrier_arrive(written)

        @pl.when(warpgroup == 1)
        def _():
            if signals is not None:
                plgpu.barrier_wait(written)
            o_gmem[...] = smem[...]

    scratch = [BUFFER, plgpu.Barrier(num_arrivals=1)]
    return kernel(body, x, scratch, num_threads=2, thread_name="wg")(x)


def hands_over_at_a_barrier(x):
    return hands_over(x, signals=True)


def hands_over_without_a_barrier(x):
    return hands_over(x, signals=None)


def never_signals_the_other(x):
    return hands_over(x, signals=False)


def two_warpgroups_write_one_place(x):
    def body(x_gmem, o_gmem):
        o_gmem[...] = x_gmem[...] * 2

    return kernel(body, x, [], num_threads=2, thread_name="wg")(x)


def skips_a_phase(x):
    def body(x_gmem, o_gmem, smem, loaded):
        for _ in range(3):
            plgpu.copy_gmem_to_smem(x_gmem, smem, loaded)
        plgpu.barrier_wait(loaded)
        o_gmem[...] = smem[...] * 2

    return kernel(body, x, [BUFFER, plgpu.Barrier(num_arrivals=1)])(x)


def reads_fresh_shared_memory(x):
    def body(x_gmem, o_gmem, smem):
        o_gmem[...] = x_gmem[...] + smem[...]

    return kernel(body, x, [BUFFER])(x)


def reads_past_the_end(x):
    def body(x_gmem, o_gmem):
        first = lax.axis_index("i") * 32 + 16
        o_gmem[pl.ds(lax.axis_index("i") * 32, 32)] = x_gmem[pl.ds(first, 32)]

    return kernel(body, x, [], grid=(2,), grid_names=("i",))(x)


def blocks_add_to_one_place(x):
    """Every block of the grid adds to the same output: right numbers, one after another."""

    def body(x_gmem, o_gmem):
        @pl.when(lax.axis_index("i") == 0)
        def _():
            o_gmem[...] = jnp.zeros((64, 128), jnp.float32)

        o_gmem[...] += x_gmem[...]

    return kernel(body, x, [], grid=(2,), grid_names=("i",))(x)


def more_shared_memory_than_there_is(x):
    def body(x_gmem, o_gmem, smem):
        smem[0] = x_gmem[...]
        o_gmem[...] = smem[0]

    return kernel(body, x, [plgpu.SMEM((10, 64, 128), jnp.float32)])(x)


def sums_up_as_it_goes(x):
    def body(x_gmem, o_gmem):
        o_gmem[...] = jnp.cumsum(x_gmem[...], axis=1)

    return kernel(body, x, [])(x)


def copies_rows_of_four_bytes_too_many(x):
    """TMA wants rows whose distance is a multiple of 16 bytes."""

    def body(x_gmem, o_gmem, smem, loaded):
        plgpu.copy_gmem_to_smem(x_gmem, smem, loaded)
        plgpu.barrier_wait(loaded)
        o_gmem[...] = smem[...]

    narrow = x[:, :63]
    scratch = [plgpu.SMEM((64, 63), jnp.float32), plgpu.Barrier(num_arrivals=1)]
    return jnp.pad(kernel(body, narrow, scratch)(narrow), ((0, 0), (0, 65)))


def product(a, b, *, a_waits=True, transforms=TILES):
    """Multiply on Hopper's tensor cores."""

    def body(a_gmem, b_gmem, o_gmem, a_smem, b_smem, o_smem, a_loaded, b_loaded):
        plgpu.copy_gmem_to_smem(a_gmem, a_smem, a_loaded)
        plgpu.copy_gmem_to_smem(b_gmem, b_smem, b_loaded)
        if a_waits:
            plgpu.barrier_wait(a_loaded)
        plgpu.barrier_wait(b_loaded)

        def multiply(acc):
            plgpu.wgmma(acc, a_smem, b_smem)
            return acc[...]

        acc = pl.run_scoped(multiply, plgpu.ACC((64, 128), jnp.float32))
        o_smem[...] = acc.astype(jnp.float16)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(o_smem, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    scratch = [
        plgpu.SMEM((64, 128), jnp.float16, transforms=transforms),
        plgpu.SMEM((128, 128), jnp.float16, transforms=transforms),
        plgpu.SMEM((64, 128), jnp.float16, transforms=TILES),
        plgpu.Barrier(num_arrivals=1),
        plgpu.Barrier(num_arrivals=1),
    ]
    return kernel(body, jax.ShapeDtypeStruct((64, 128), jnp.float16), scratch)(a, b)


def multiplies(a, b):
    return product(a[:64], b)


def multiplies_before_it_is_loaded(a, b):
    return product(a[:64], b, a_waits=False)


def multiplies_with_a_swizzle_too_small(a, b):
    other = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(64))
    return product(a[:64], b, transforms=other)


def pipelines(x):
    """A pipeline whose output block moves: the simulator lacks its predicated stores."""

    def body(x_gmem, o_gmem):
        def step(_, x_smem, o_smem):
            o_smem[...] = x_smem[...] * 2

        spec = plgpu.BlockSpec((16, 128), lambda i: (i, 0))
        plgpu.emit_pipeline(step, grid=(4,), in_specs=[spec], out_specs=[spec])(x_gmem, o_gmem)

    return kernel(body, x, [])(x)


def triton(body, out, *, block=None, grid=(), stages=1):
    """A kernel for Triton whose input and output blocks are alike."""
    spec = pl.BlockSpec(block, lambda *at: at + (0,) * (len(block) - len(at))) if block else None
    specs = {} if spec is None else {"in_specs": [spec], "out_specs": spec}
    return pl.pallas_call(
        body,
        grid=grid,
        out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype),
        compiler_params=pltriton.CompilerParams(num_warps=4, num_stages=stages),
        **specs,
    )


def doubling(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def doubles_in_triton(x):
    return triton(doubling, x, block=(16, 128), grid=(4,))(x)


def doubles_24_rows_at_a_time(x):
    padded = jnp.pad(x, ((0, 8), (0, 0)))
    return triton(doubling, padded, block=(24, 128), grid=(3,))(padded)[:64]


def sorts_in_triton(x):
    def body(x_ref, o_ref):
        o_ref[...] = jnp.sort(x_ref[...], axis=1)

    return triton(body, x, block=(16, 128), grid=(4,))(x)


def multiplies_tiles_too_large(a, b):
    """Operands of 128 KiB each go to shared memory in the Triton compiler, not before."""

    def body(a_ref, b_ref, o_ref):
        o_ref[...] = pltriton.dot(a_ref[...], b_ref[...]).astype(o_ref.dtype)

    a, b = jnp.tile(a, (1, 4)), jnp.tile(b, (4, 1))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        compiler_params=pltriton.CompilerParams(num_warps=4, num_stages=1),
    )(a, b)


def plain_doubles(x):
    """A kernel that names no machine."""
    return pl.pallas_call(doubling, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def for_a_tpu(x):
    from jax.experimental.pallas import tpu as pltpu

    def body(x_ref, o_ref, buffer):
        buffer[...] = x_ref[...] * 2
        o_ref[...] = buffer[...]

    scratch = [pltpu.VMEM(x.shape, x.dtype)]
    return pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_shapes=scratch
    )(x)


def chooses_by_its_machine(x):
    if jax.default_backend() != "gpu":
        return x * 2
    assert jax.devices()[0].compute_capability == "10.0"
    return doubles(x)
