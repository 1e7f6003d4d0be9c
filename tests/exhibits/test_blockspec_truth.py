"""The sandbox's truth against the rungs themselves: interpreted, simulated and lowered programs."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.pallas import hlo_interpreter
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.exhibits import blockspec_legality, vmem
from pallas_rungs.exhibits.blockspec import (
    Dimension,
    Setting,
    block_mapping,
    derive,
    program_at,
)


def setting(*dims, dtype="float32", chip="v5e", step=0):
    return Setting(tuple(Dimension(*dim) for dim in dims), dtype, chip, step)


def named(settings):
    return [
        pytest.param(
            one, id="-".join(f"{d.array}by{d.block}{d.kind[0]}{d.index[0]}" for d in one.dims)
        )
        for one in settings
    ]


SMALL = named(
    [
        setting((7, 3, "blocked", "program")),
        setting((12, 3, "blocked", "scaled")),
        setting((8, 4, "blocked", "scaled")),
        setting((9, 4, "element", "program")),
        setting((9, 4, "element", "scaled")),
        setting((5, 9, "squeezed", "program")),
        setting((6, 4, "blocked", "zero")),
        setting((7, 3, "blocked", "program"), (10, 4, "blocked", "program")),
        setting((6, 2, "element", "scaled"), (10, 4, "squeezed", "program")),
        setting((4, 2, "blocked", "scaled"), (10, 4, "blocked", "program")),
        setting((4, 2, "blocked", "program"), (9, 3, "blocked", "scaled")),
        setting(
            (3, 1, "squeezed", "program"), (5, 2, "blocked", "program"), (4, 4, "blocked", "zero")
        ),
    ]
)


@pytest.mark.parametrize("one", SMALL)
def test_interpret_mode_reads_where_the_truth_says(one):
    """Each program notes the first element of its block; positions of an iota name themselves."""
    truth = derive(one)
    array = jnp.arange(np.prod(one.array_shape), dtype=jnp.int32).reshape(one.array_shape)

    def kernel(x_ref, o_ref):
        here = jnp.int32(0)
        for axis, extent in enumerate(one.grid):
            here = here * extent + pl.program_id(axis)
        o_ref[here] = x_ref[(0,) * len(x_ref.shape)]

    seen = pl.pallas_call(
        kernel,
        grid=one.grid,
        in_specs=[one.block_spec()],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        out_shape=jax.ShapeDtypeStruct((truth["programs"],), jnp.int32),
        interpret=True,
    )(array)
    reads = [
        derive(Setting(one.dims, one.dtype, one.chip, step))["read"]
        for step in range(truth["programs"])
    ]
    assert [list(np.unravel_index(int(at), one.array_shape)) for at in seen] == reads


@pytest.mark.parametrize("one", SMALL)
def test_interpret_mode_covers_what_the_truth_says(one):
    truth = derive(one)
    array = jnp.arange(1, 1 + np.prod(one.array_shape), dtype=jnp.float32).reshape(one.array_shape)
    copied = one.program(interpret=True)(array)
    assert bool((np.asarray(copied) == np.asarray(array)).all()) is truth["covers"]


@pytest.mark.parametrize("one", SMALL)
def test_simulator_refuses_what_strays(one):
    truth = derive(one)
    array = jnp.ones(one.array_shape, jnp.float32)
    simulated = one.program(interpret=pltpu.InterpretParams())
    if truth["strays"]:
        with pytest.raises(Exception, match="Out-of-bounds block index"):
            jax.block_until_ready(simulated(array))
    else:
        copied = np.asarray(simulated(array))
        assert bool((copied == 1).all()) is truth["covers"]


def test_programs_run_in_the_librarys_order():
    grid = (2, 3, 4)
    at = tuple(jnp.int32(0) for _ in grid)
    for step in range(24):
        assert program_at(grid, step) == tuple(int(i) for i in at)
        at = hlo_interpreter._get_next_indices(grid, at)


LOWERED = named(
    [
        setting((700, 256, "blocked", "program"), (1000, 256, "blocked", "program")),
        setting((700, 100, "blocked", "program"), (1000, 100, "blocked", "program")),
        setting((700, 700, "blocked", "program"), (1000, 1000, "blocked", "zero"), dtype="int8"),
        setting((64, 16, "element", "scaled"), (512, 128, "element", "scaled"), chip="v6e"),
        setting((64, 16, "element", "scaled"), (512, 128, "blocked", "program"), chip="v6e"),
        setting((64, 16, "squeezed", "program"), (512, 128, "blocked", "program"), chip="v4"),
        setting((1, 1, "squeezed", "program"), (512, 128, "blocked", "program")),
        setting((1, 1, "squeezed", "program"), (1, 1, "squeezed", "zero")),
        setting(
            (8, 1, "squeezed", "program"),
            (64, 16, "blocked", "program"),
            (256, 256, "blocked", "zero"),
        ),
        setting(
            (8, 1, "blocked", "program"),
            (64, 1, "squeezed", "program"),
            (256, 128, "blocked", "zero"),
        ),
        setting((5000, 1024, "blocked", "program"), dtype="bfloat16"),
        setting((5000, 128, "blocked", "program"), dtype="bfloat16"),
        setting((5000, 128, "blocked", "program"), dtype="float32", chip="tpu7x"),
        setting((5000, 3072, "blocked", "program"), dtype="int8", chip="v5p"),
        setting((5000, 1536, "blocked", "program"), dtype="int8", chip="v5p"),
    ]
)


@pytest.mark.parametrize("one", LOWERED)
def test_lowering_agrees_word_for_word(one):
    expected = [r["words"] for r in derive(one)["refusals"] if r["rung"] == "lower"]
    shape = jax.ShapeDtypeStruct(one.array_shape, one.dtype)
    with vmem.pretend(one.chip):
        traced = jax.jit(one.program()).trace(shape)
        try:
            traced.lower(lowering_platforms=("tpu",))
            said = []
        except Exception as error:
            text = re.sub(r"(in pallas_call copy_kernel) at \S+", r"\1", str(error))
            said = [blockspec_legality.shortened(text.split("\n")[0])]
    assert said == expected


@pytest.mark.parametrize("one", LOWERED[:4])
def test_block_mapping_is_what_a_pallas_call_makes(one):
    """The mapping that the truth asks is the one inside a traced pallas_call."""
    jaxpr = jax.make_jaxpr(one.program())(jax.ShapeDtypeStruct(one.array_shape, one.dtype))
    (equation,) = [e for e in jaxpr.eqns if e.primitive.name == "pallas_call"]
    traced = equation.params["grid_mapping"].block_mappings[0]
    ours = block_mapping(one)
    assert traced.block_shape == ours.block_shape
    assert traced.array_aval.shape == ours.array_aval.shape
    assert str(traced.index_map_jaxpr) == str(ours.index_map_jaxpr)
    assert equation.params["grid_mapping"].grid == one.grid


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("dtype", "float64", "unknown dtype 'float64'"),
        ("chip", "v1", "unknown chip 'v1'"),
        ("dims", [], "at least one dimension"),
    ],
)
def test_nonsense_is_named(field, value, message):
    good = setting((8, 8, "blocked", "program")).to_json()
    with pytest.raises(ValueError, match=re.escape(message)):
        Setting.from_json({**good, field: value})
