"""Small kernels with one fault each, and healthy twins, for the ladder's tests."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
HBM = pl.BlockSpec(memory_space=pltpu.HBM)
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)


def add_one_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def add_one(x, interpret=False):
    return pl.pallas_call(
        add_one_kernel, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=x, interpret=interpret
    )(x)


def add_one_reference(x):
    return x + 1


def fresh_accumulator(x):
    """Adds to an output block that nobody set to zero."""

    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x)


def sum_of_blocks(x):
    return x.reshape(4, 8, 128).sum(0)


def one_block_too_far(x):
    """An index map that returns element offsets."""
    spec = pl.BlockSpec((8, 128), lambda i: (i * 8, 0))
    return pl.pallas_call(add_one_kernel, grid=(4,), in_specs=[spec], out_specs=ROWS, out_shape=x)(
        x
    )


def batch_that_declares_its_axes(x):
    """A healthy kernel under vmap, whose semantics name the axes that were written."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    def one(x):
        return pl.pallas_call(
            kernel,
            grid=(4,),
            in_specs=[ROWS],
            out_specs=ROWS,
            out_shape=x,
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        )(x)

    return jax.vmap(one)(jnp.stack([x, x]))


def chosen_rows(programs, order, x):
    """Adds one to the first chosen blocks; how many, is known at run time."""
    return pl.pallas_call(
        lambda order_ref, x_ref, o_ref: add_one_kernel(x_ref, o_ref),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(programs,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, order_ref: (order_ref[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, order_ref: (i, 0)),
        ),
        out_shape=x,
    )(order, x)


def lost_length(programs, orders, xs):
    """One length for all items, of which each has a table of its own."""
    return jax.vmap(chosen_rows, (None, 0, 0))(programs, orders, xs)


def length_for_each_item(programs, orders, xs):
    """The healthy twin: the length is batched, too."""
    return jax.vmap(chosen_rows)(jnp.full(len(orders), programs), orders, xs)


def derivative_by_one_input(x, y):
    """The derivative of a product by one of its factors."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * y_ref[...]

    def product(x):
        return pl.pallas_call(kernel, out_shape=x)(x, y)

    return jax.jvp(product, (x,), (x,))


def parallel_accumulator(x):
    """Calls an axis parallel that carries a sum."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def unwaited_copy(x):
    """Reads the buffer before the copy into it is waited for."""

    def kernel(x_hbm, o_ref, buffer, semaphore):
        copy = pltpu.make_async_copy(x_hbm, buffer, semaphore)
        copy.start()
        o_ref[...] = buffer[...] + 1
        copy.wait()

    return pl.pallas_call(
        kernel,
        in_specs=[HBM],
        scratch_shapes=[pltpu.VMEM(x.shape, jnp.float32), pltpu.SemaphoreType.DMA],
        out_shape=x,
    )(x)


def refilled_too_early(x):
    """Two copies on their way at once: the second fills the buffer that the first reads."""

    def kernel(x_ref, o_ref, buffer, done):
        pltpu.sync_copy(x_ref.at[pl.ds(0, 8)], buffer)
        send = pltpu.make_async_copy(buffer, o_ref.at[pl.ds(0, 8)], done.at[0])
        fetch = pltpu.make_async_copy(x_ref.at[pl.ds(8, 8)], buffer, done.at[1])
        send.start()
        fetch.start()
        send.wait()
        fetch.wait()
        pltpu.sync_copy(buffer, o_ref.at[pl.ds(8, 8)])

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def single_rows(x):
    """Blocks of one row, which no TPU register holds."""
    spec = pl.BlockSpec((1, 128), lambda i: (i, 0))
    return pl.pallas_call(add_one_kernel, grid=(32,), in_specs=[spec], out_specs=spec, out_shape=x)(
        x
    )


def python_if(x):
    """Branches in Python on a traced value."""

    def kernel(x_ref, o_ref):
        if pl.program_id(0) == 0:
            o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=x)(x)


def too_large(x):
    """Three whole blocks of 16 MiB."""
    return pl.pallas_call(add_one_kernel, grid=(1,), out_shape=x)(x)


def falls_back(x):
    """Uses its kernel on TPU only."""
    return add_one(x) if jax.default_backend() == "tpu" else x + 1


def asks_the_chip(x):
    """Takes its block's width from the chip."""
    spec = pl.BlockSpec((8, pltpu.get_tpu_info().num_lanes), lambda i: (i, 0))
    return pl.pallas_call(add_one_kernel, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=x)(
        x
    )


def refuses_a_cpu(x):
    """Raises on any machine whose device is no TPU."""
    if not jax.devices()[0].device_kind.startswith("TPU"):
        raise RuntimeError(f"unsupported backend: {jax.devices()[0].platform}")
    return add_one(x)


def by_platform(x):
    """Leaves the choice to lax.platform_dependent, with a wrong default."""
    return lax.platform_dependent(x, tpu=add_one, default=lambda x: x + 5)


def reshaped_ref(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref.reshape(16, 256)[...].reshape(32, 128) + 1

    return pl.pallas_call(kernel, out_shape=x)(x)


def copy_of_dynamic_size(n, x):
    def kernel(n_ref, x_ref, o_ref, semaphore):
        rows = pl.ds(0, pl.multiple_of(n_ref[0], 8))
        pltpu.async_copy(x_ref.at[rows], o_ref.at[rows], semaphore).wait()

    return pl.pallas_call(
        kernel,
        in_specs=[SMEM, HBM],
        out_specs=HBM,
        scratch_shapes=[pltpu.SemaphoreType.DMA],
        out_shape=x,
    )(n, x)


def random_bits(x):
    def kernel(o_ref):
        pltpu.prng_seed(7)
        o_ref[...] = lax.bitcast_convert_type(pltpu.prng_random_bits(o_ref.shape), jnp.int32)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.int32))()


def padded_below(x):
    """Right on the generic interpreter: reads eight rows before, masks those before the start."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.where(pl.program_id(0) > 0, x_ref[...], 0.0)

    spec = pl.BlockSpec((pl.Element(8, padding=(8, 0)), pl.Element(128)), lambda i: (i * 8, 0))
    return pl.pallas_call(kernel, grid=(4,), in_specs=[spec], out_specs=ROWS, out_shape=x)(x)


def shifted_down(x):
    return np.concatenate([np.zeros((8, 128)), x[:-8]])


def looks_between(x):
    """Runs eagerly only: looks at the kernel's numbers in Python."""
    y = np.asarray(add_one(x))
    return y * 2 if y.min() >= 0 else y


def four_bit_product(a, b):
    def kernel(a_ref, b_ref, o_ref):
        o_ref[...] = jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.int32)

    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((a.shape[0], b.shape[1]), jnp.int32)
    )(a, b)


def asks_for_its_core(x):
    """A core map that indexes by its core's number."""

    @jax.jit
    def run(x):
        source, target = jax.new_ref(x), jax.new_ref(jnp.empty_like(x))

        @pl.core_map(pltpu.create_tensorcore_mesh("core"))
        def _():
            rows = pl.ds(lax.axis_index("core") * 32, 32)
            pltpu.sync_copy(source.at[rows], target.at[rows])

        return target[...]

    return run(x)


def from_the_neighbour(x, mesh, *, wait=True):
    """Two devices swap halves; with `wait=False` the copy that comes in is not waited for."""

    def kernel(x_ref, o_ref, buffer, sent, received):
        neighbour = {"x": (lax.axis_index("x") + 1) % 2}
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id=neighbour)
        pl.semaphore_wait(barrier, 1)
        copy = pltpu.make_async_remote_copy(x_ref, buffer, sent, received, device_id=neighbour)
        copy.start()
        copy.wait_send()
        if wait:
            copy.wait_recv()
        o_ref[...] = buffer[...]
        if not wait:
            copy.wait_recv()

    half = jax.ShapeDtypeStruct((x.shape[0] // 2, 128), jnp.float32)
    call = pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        scratch_shapes=[
            pltpu.VMEM(half.shape, jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0),
        out_shape=half,
    )
    spec = jax.sharding.PartitionSpec("x")
    return jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)


def place_in_a_scope(x):
    def kernel(x_ref, o_ref):
        def body(buffer):
            buffer[...] = x_ref[...] + pl.program_id(0).astype(x.dtype)
            o_ref[...] = buffer[...]

        pl.run_scoped(body, pltpu.VMEM((8, 128), x.dtype))

    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // 8,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def add_place(x):
    return x + np.repeat(np.arange(x.shape[0] // 8), 8)[:, None]


def cleared_accumulator(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        @pl.when(pl.program_id(0) > 0)
        def _():
            o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
    )(x)


def part_of_a_block(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    rows = pl.BlockSpec((24, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
