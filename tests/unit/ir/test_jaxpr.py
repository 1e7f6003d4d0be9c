"""Summaries of kernels' jaxprs, of kernels whose refs and statements are known."""

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.jaxpr import HEADINGS, Ref, _refs, kernel_jaxprs
from pallas_rungs.kernels.softmax import softmax


def everywhere(x: jax.Array, table: jax.Array) -> jax.Array:
    """A kernel with a ref in each memory space, a loop, a branch, and four stores."""

    def body(
        table_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref, acc: jax.Ref, sem: jax.Ref
    ) -> None:
        del sem
        acc[...] = jnp.zeros_like(acc)

        @pl.loop(0, 2)
        def _(step: jax.Array) -> None:
            acc[...] += jnp.full(acc.shape, step, acc.dtype)

        @pl.when(table_ref[0] > 0)
        def _() -> None:
            o_ref[...] = acc[...]

    result: jax.Array = pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(2, 3),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i, j, _: (i, j)),
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(table, x)
    return result


X = jax.ShapeDtypeStruct((16, 384), jnp.float32)
TABLE = jax.ShapeDtypeStruct((4,), jnp.int32)


def test_refs_are_told_by_name_shape_dtype_and_space() -> None:
    (kernel,) = kernel_jaxprs(everywhere, X, TABLE)
    assert kernel.grid == (2, 3)
    assert kernel.refs[:4] == (
        Ref("table_ref", (4,), "int32", "smem"),
        Ref("x_ref", (16, 384), "float32", "any"),
        Ref("o_ref", (8, 128), "float32", "default"),
        Ref("acc", (8, 128), "float32", "vmem"),
    )
    assert kernel.spaces[4] == "semaphore_mem"


def test_the_space_is_the_word_that_the_jaxpr_prints() -> None:
    (kernel,) = kernel_jaxprs(everywhere, X, TABLE)
    head, _, _ = kernel.text.partition(". let")
    assert [part.partition(">")[0] for part in head.split("Ref<")[1:]] == list(kernel.spaces)


def test_loads_and_stores_are_counted_in_loops_and_branches_too() -> None:
    (kernel,) = kernel_jaxprs(everywhere, X, TABLE)
    assert (kernel.loads, kernel.stores) == (3, 3)
    assert dict(kernel.primitives)["cond"] == 1
    assert dict(kernel.primitives)["add"] == 3  # the loop counts its own steps, and starts at zero


def test_every_kernel_of_a_program_is_found_and_named() -> None:
    twice = kernel_jaxprs(jax.jit(lambda x: softmax(softmax(x, bm=8), bm=16)), X)
    assert [kernel.name for kernel in twice] == ["softmax_kernel"] * 2
    assert [kernel.grid for kernel in twice] == [(2,), (1,)]
    assert not kernel_jaxprs(jnp.exp, X)


def test_the_plain_form_and_the_rows_name_every_ref() -> None:
    (kernel,) = kernel_jaxprs(everywhere, X, TABLE)
    assert "  acc: Ref<vmem>{float32[8, 128]}\n" in str(kernel)
    assert "3 loads, 3 stores" in str(kernel)
    rows = kernel.rows()
    assert {len(row) for row in rows} == {len(HEADINGS)}
    assert rows[0] == ("`table_ref`", "(4,)", "`int32`", "`smem`")


def test_what_is_no_ref_is_refused_with_its_kernel_and_name() -> None:
    values = jax.make_jaxpr(jnp.exp)(1.0).jaxpr.invars
    with pytest.raises(
        IRError, match=r"jaxpr of k: expected a ref as argument x_ref, found ~float32"
    ):
        _refs("k", values, ["x_ref"])
