"""The orders of operands, of calls that have every kind of them, and as real runs have them."""

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.core import Jaxpr
from jax._src.state.discharge import discharge_state
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.operand_orders import HEADINGS, ROLES, operand_orders, orders_of

X = jnp.arange(16 * 128, dtype=jnp.float32).reshape(16, 128)
S = jnp.zeros(2, jnp.int32)


def everything(blocks, s, t, x, y, *, interpret=False, watch=None):
    """A dynamic bound, two tables, two inputs, two outputs, two buffers, a closed-over ref."""
    seen = jax.new_ref(jnp.zeros((8, 128)))

    def kernel(s_ref, t_ref, x_ref, y_ref, sum_ref, twice_ref, first, second):
        if watch is not None:
            watch.extend([s_ref, t_ref, x_ref, y_ref, sum_ref, twice_ref, first, second])
        seen[...] = jnp.ones((8, 128))
        first[...] = x_ref[...] + y_ref[...]
        second[...] = x_ref[...] * 2
        sum_ref[...] = first[...]
        twice_ref[...] = second[...]

    rows = pl.BlockSpec((8, 128), lambda i, j, s_ref, t_ref: (i + s_ref[0] + t_ref[0], 0))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=2,
            grid=(blocks, 1),
            in_specs=[rows, rows],
            out_specs=[rows, rows],
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.VMEM((8, 128), jnp.float32)],
        ),
        out_shape=[out, out],
        input_output_aliases={2: 1},
        interpret=interpret,
    )(s, t, x, y)


@pytest.fixture(scope="module")
def orders():
    (found,) = operand_orders(everything, jnp.int32(2), S, S, X, X)
    return found


def test_each_list_has_its_order(orders):
    assert orders.call == ("ref 0", "bound 0", "s_ref", "t_ref", "x_ref", "y_ref")
    assert orders.results == ("sum_ref", "twice_ref")
    assert orders.kernel == (
        "ref 0", "s_ref", "t_ref", "x_ref", "y_ref", "sum_ref", "twice_ref", "first", "second"
    )  # fmt: skip
    assert orders.index_map == ("program_id(0)", "program_id(1)", "s_ref", "t_ref")
    assert orders.alias_keys == ("s_ref", "t_ref", "x_ref", "y_ref")
    assert {operand.role for operand in orders.operands} == set(ROLES)


def test_an_operand_knows_its_places(orders):
    x = orders.of("x_ref")
    assert (x.call, x.kernel, x.index_map, x.alias, x.result) == (4, 3, None, 2, None)
    out = orders.of("twice_ref")
    assert (out.call, out.result, out.kernel, out.alias) == (None, 1, 6, 1)
    assert orders.aliases == ((2, 1),)
    with pytest.raises(KeyError, match=r"no operand 'z_ref'; there are: ref 0, bound 0"):
        orders.of("z_ref")


def test_types_are_those_of_the_call_and_of_the_kernel(orders):
    assert orders.of("x_ref").type == "float32[16,128]"
    assert orders.of("bound 0").type == "int32[]"
    assert orders.of("first").type == "Ref<vmem>{float32[8,128]}"
    assert "Ref" in orders.of("ref 0").type


def test_the_kernel_is_handed_refs_in_that_order():
    watched = []
    result = jax.jit(lambda *a: everything(*a, interpret=True, watch=watched))(
        jnp.int32(2), S, S, X, X + 1
    )
    shapes = [ref.shape for ref in watched]
    assert shapes == [(2,), (2,)] + [(8, 128)] * 6
    np.testing.assert_array_equal(result[0], 2 * X + 1)
    np.testing.assert_array_equal(result[1], 2 * X)


def test_a_plain_call_has_inputs_and_outputs_only():
    def double(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    (orders,) = operand_orders(double, X)
    assert (orders.call, orders.kernel, orders.index_map) == (("x_ref",), ("x_ref", "o_ref"), ())
    assert str(orders) == (
        "kernel\n  call:       x_ref\n  results:    o_ref\n  kernel:     x_ref, o_ref\n"
        "  index maps: none\n  alias keys: x_ref"
    )
    assert operand_orders(lambda x: double(double(x)), X)[1] == orders
    assert operand_orders(lambda x: x, X) == ()


def test_an_axis_of_vmap_is_seen_by_index_maps_and_by_no_kernel():
    def call(s, x):
        def kernel(s_ref, x_ref, o_ref):
            o_ref[...] = x_ref[...]

        rows = pl.BlockSpec((8, 128), lambda i, s_ref: (s_ref[i], 0))
        return pl.pallas_call(
            kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1, grid=(2,), in_specs=[rows], out_specs=rows
            ),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(s, x)

    (orders,) = operand_orders(jax.vmap(call, (None, 0)), S, jnp.stack([X, X]))
    assert orders.index_map == ("batch 0", "program_id(0)", "s_ref")
    assert orders.kernel == ("s_ref", "x_ref", "o_ref")
    assert orders.of("x_ref").type == "float32[2,16,128]"


def test_a_discharged_call_has_its_ref_among_inputs_and_outputs():
    def call(ref, s, x):
        def kernel(s_ref, x_ref, o_ref):
            ref[...] = x_ref[...]
            o_ref[...] = x_ref[...]

        rows = pl.BlockSpec((8, 128), lambda i, s_ref: (i, 0))
        return pl.pallas_call(
            kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1, grid=(1,), in_specs=[rows], out_specs=rows
            ),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            input_output_aliases={1: 0},
        )(s, x)

    traced = jax.make_jaxpr(call)(jax.new_ref(X[:8]), S, X[:8])
    (before,) = map(orders_of, traced.eqns)
    assert before.call == ("ref 0", "s_ref", "x_ref")
    (after,) = (
        orders_of(e) for e in discharge_state(traced).eqns if e.primitive.name == "pallas_call"
    )
    assert after.call == ("scalar 0", "input 0", "input 1")
    assert after.kernel == (*after.call, "output 0", "output 1")
    assert after.aliases == ((1, 0), (2, 1))


def test_rows_and_html_tell_the_places(orders):
    rows = {row[0]: row[1:] for row in orders.rows()}
    assert all(len(row) == len(HEADINGS) for row in orders.rows())
    assert rows["`x_ref`"] == ("input", "4", "3", "–", "key 2")
    assert rows["`t_ref`"] == ("prefetched scalar", "3", "2", "3", "key 1")
    assert rows["`twice_ref`"] == ("output", "result 1", "6", "–", "value 1")
    assert rows["`program_id(1)`"] == ("program id", "–", "–", "1", "–")
    root = ET.fromstring(orders._repr_html_())
    cells = ["".join(row.itertext()) for row in root.find("tbody")]
    assert cells == ["".join(c.strip("`") for c in row) for row in orders.rows()]
    assert "  aliases:    {2: 1}" in str(orders)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"invars": 5}, r"expected 6 operands, found 5"),
        ({"outvars": 1}, r"expected 2 results, found 1"),
    ],
)
def test_a_call_that_does_not_fit_its_grid_mapping_is_refused(change, said):
    jaxpr: Jaxpr = jax.make_jaxpr(everything)(jnp.int32(2), S, S, X, X).jaxpr
    (call,) = [e for e in jaxpr.eqns if e.primitive.name == "pallas_call"]
    whole = {name: getattr(call, name) for name in ("invars", "outvars", "params")}
    cut = {name: whole[name][:count] for name, count in change.items()}
    with pytest.raises(IRError, match=said):
        orders_of(SimpleNamespace(**(whole | cut)))
