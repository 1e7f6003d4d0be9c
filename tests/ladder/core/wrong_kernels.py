"""Kernels whose numbers are wrong, each for a reason of its own, and what they should be."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = np.random.default_rng(0).standard_normal((32, 512)).astype(np.float32)
SHORT = X[:20, :128]
SHAPE = jax.ShapeDtypeStruct(X.shape, jnp.float32)
IJ = pl.BlockSpec((8, 128), lambda i, j: (i, j))
JI = pl.BlockSpec((8, 128), lambda i, j: (j, i))
ROWS = pl.BlockSpec((8, 512), lambda i: (i, 0))
HBM = pl.BlockSpec(memory_space=pltpu.HBM)


def twice(x):
    return 2 * x


def double_kernel(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]


def by_blocks(kernel, *arrays, in_specs=(IJ,), out_specs=IJ, **options):
    return pl.pallas_call(
        kernel,
        grid=(4, 4),
        in_specs=list(in_specs),
        out_specs=out_specs,
        out_shape=SHAPE,
        **options,
    )(*arrays)


def by_rows(kernel, x, in_specs=ROWS, out_specs=ROWS, scratch_shapes=()):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[in_specs],
        out_specs=out_specs,
        out_shape=SHAPE,
        scratch_shapes=list(scratch_shapes),
    )(x)


def swapped(x):
    """Reads block (j, i) and writes block (i, j)."""
    return by_blocks(double_kernel, x, in_specs=[JI])


def swapped_output(x):
    """Reads block (i, j) and writes block (j, i)."""
    return by_blocks(double_kernel, x, out_specs=JI)


def one_swapped_of_two(x):
    """Adds block (j, i) of one operand to block (i, j) of the other."""

    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    return by_blocks(kernel, x, x, in_specs=[JI, IJ])


def swapped_on_a_rectangle(x):
    """Reads block (j, i) where there is none."""
    return pl.pallas_call(
        double_kernel, grid=(2, 4), in_specs=[JI], out_specs=IJ, out_shape=jnp.zeros((16, 512))
    )(x[:16])


def without_last_axis(x):
    """Writes block (i, 0) in each of four programs."""
    return by_blocks(double_kernel, x, out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)))


def without_first_axis(x):
    """Writes block (0, j) in each of four programs, which are not one after another."""
    return by_blocks(double_kernel, x, out_specs=pl.BlockSpec((8, 128), lambda i, j: (0, j)))


def triple(x):
    """Three times, where twice was meant."""

    def kernel(x_ref, o_ref):
        o_ref[...] = 3 * x_ref[...]

    return by_blocks(kernel, x)


def triple_on_parallel_axes(x):
    """The same on axes that are independent, and said to be."""

    def kernel(x_ref, o_ref):
        o_ref[...] = 3 * x_ref[...]

    parallel = pltpu.CompilerParams(dimension_semantics=("parallel", "parallel"))
    return by_blocks(kernel, x, compiler_params=parallel)


def tripled_sums_of_parallel_rows(x):
    """Sums along the second axis, three times what was meant; the first axis is parallel."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += 3 * x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(4, 4),
        in_specs=[IJ],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x)


def transposed_and_tripled(x):
    """A transpose, whose maps are meant to be each other's mirror, of a wrong product."""

    def kernel(x_ref, o_ref):
        o_ref[...] = 3 * x_ref[...].T

    shape = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    return pl.pallas_call(
        kernel,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (j, i))],
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
        out_shape=shape,
    )(x.reshape(64, 256).repeat(4, 0))


def plus_the_other_program_id(x):
    """Adds the place along the wrong axis."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(1).astype(jnp.float32)

    return by_blocks(kernel, x)


def product_over_a_short_grid(x):
    """A plain product over 20 rows in two blocks of eight."""
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        double_kernel, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=jnp.zeros((20, 128))
    )(x[:20, :128])


def root_in_partial_blocks(x):
    """NaN by arithmetic, in blocks that reach past the end and are not reduced."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sqrt(x_ref[...])

    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(3,), in_specs=[spec], out_specs=spec, out_shape=jnp.zeros((20, 128))
    )(x[:20, :128])


def mean_along_the_other_axis(x):
    """NaN by arithmetic, in a sum along an axis that the blocks do divide."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.sum(x_ref[...], 1, keepdims=True) * jnp.nan

    return pl.pallas_call(
        kernel,
        grid=(3,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 1), lambda i: (i, 0)),
        out_shape=jnp.zeros((20, 1)),
    )(x[:20, :128])


def sum_of_roots(x):
    """NaN by arithmetic, in an accumulator that is cleared where it begins."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.sqrt(-1 - jnp.abs(x_ref[...]))

    return pl.pallas_call(
        kernel,
        grid=(4, 4),
        in_specs=[IJ],
        out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(x)


def first_block_only(x):
    """Writes one of its four blocks."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = 2 * x_ref[...]

    return by_rows(kernel, x)


def root_of_a_copy(x):
    """NaN by arithmetic, of what a copy brought that was waited for."""

    def kernel(x_ref, o_ref, buffer, semaphore):
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(8 * pl.program_id(0), 8)], buffer, semaphore)
        copy.start()
        copy.wait()
        o_ref[...] = jnp.sqrt(-1 - jnp.abs(buffer[...]))

    scratch = (pltpu.VMEM((8, 512), jnp.float32), pltpu.SemaphoreType.DMA)
    return by_rows(kernel, x, in_specs=HBM, scratch_shapes=scratch)


def reads_past_the_end(x):
    """Reads the rows after its own; the last program has none."""

    def kernel(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[pl.ds(8 * pl.program_id(0) + 8, 8), :]

    return by_rows(kernel, x, in_specs=pl.BlockSpec((32, 512), lambda i: (0, 0)))


def writes_past_the_end(x):
    """Writes the rows after its own; the last program has none."""

    def kernel(x_ref, o_ref):
        o_ref[pl.ds(8 * pl.program_id(0) + 8, 8), :] = 2 * x_ref[...]

    return by_rows(kernel, x, out_specs=pl.BlockSpec((32, 512), lambda i: (0, 0)))


def copies_past_the_end(x):
    """Copies the rows after its own; the last program has none."""

    def kernel(x_ref, o_ref, semaphore):
        rows = pl.ds(8 * pl.program_id(0) + 8, 8)
        pltpu.async_copy(x_ref.at[rows], o_ref, semaphore).wait()

    return by_rows(kernel, x, in_specs=HBM, scratch_shapes=(pltpu.SemaphoreType.DMA,))


def reads_before_the_copy_has_come(x):
    """Waits for its copy after it has read the buffer."""

    def kernel(x_ref, o_ref, buffer, semaphore):
        copy = pltpu.make_async_copy(x_ref, buffer, semaphore)
        copy.start()
        o_ref[...] = 2 * buffer[...]
        copy.wait()

    scratch = [pltpu.VMEM((32, 512), jnp.float32), pltpu.SemaphoreType.DMA]
    return pl.pallas_call(kernel, in_specs=[HBM], out_shape=SHAPE, scratch_shapes=scratch)(x)


def signals_twice(x):
    """Signals a semaphore once more than it waits for it."""

    def kernel(x_ref, o_ref, semaphore):
        pl.semaphore_signal(semaphore, 1)
        pl.semaphore_wait(semaphore, 1)
        pl.semaphore_signal(semaphore, 2)
        o_ref[...] = 2 * x_ref[...]

    scratch = [pltpu.SemaphoreType.REGULAR]
    return pl.pallas_call(kernel, out_shape=SHAPE, scratch_shapes=scratch)(x)


def starts_and_never_waits(x):
    """Starts a copy that nobody waits for."""

    def kernel(x_ref, o_ref, buffer, semaphore):
        pltpu.make_async_copy(x_ref, buffer, semaphore).start()
        o_ref[...] = 2 * x_ref[...]

    scratch = [pltpu.VMEM((32, 512), jnp.float32), pltpu.SemaphoreType.DMA]
    return pl.pallas_call(kernel, out_shape=SHAPE, scratch_shapes=scratch)(x)
