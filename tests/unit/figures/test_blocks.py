"""Block ownership: what is drawn is what the library says about the call."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures import block_ownership, clamped_blocks
from pallas_rungs.figures.calls import read_call
from pallas_rungs.figures.clamped import read_starts
from pallas_rungs.figures.programs import program_pattern, runs
from unit.figures.read_back import fills, words

X = jax.ShapeDtypeStruct((256, 384), jnp.float32)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def call(in_spec, out_spec, out_shape, grid, kernel=copy):
    def run(*args):
        return pl.pallas_call(
            kernel,
            grid=grid,
            in_specs=[in_spec] * len(args),
            out_specs=out_spec,
            out_shape=jax.ShapeDtypeStruct(out_shape, jnp.float32),
        )(*args)

    return run


def transpose(x):
    return call(
        pl.BlockSpec((128, 128), lambda i, j: (i, j)),
        pl.BlockSpec((128, 128), lambda i, j: (j, i)),
        (384, 256),
        (2, 3),
    )(x)


def matmul(a, b):
    def kernel(a_ref, b_ref, o_ref):
        o_ref[...] = a_ref[...] @ b_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(2, 3),
        in_specs=[
            pl.BlockSpec((128, 256), lambda i, j: (i, 0)),
            pl.BlockSpec((256, 128), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((256, 384), jnp.float32),
    )(a, b)


def mapping_of(function, *args):
    (equation,) = jax.make_jaxpr(function)(*args).eqns
    return equation.params["grid_mapping"]


def test_starts_are_the_library_s_own_for_every_program():
    read = read_call(transpose, X)
    mapping = mapping_of(transpose, X)
    assert read.grid == mapping.grid == (2, 3)
    for operand, block_mapping in zip(read.operands, mapping.block_mappings, strict=True):
        for program, start in zip(read.programs, operand.starts, strict=True):
            assert tuple(start) == tuple(block_mapping.compute_start_indices_interpret(program))


def test_programs_come_in_the_order_of_the_interpreters():
    seen = []
    recorder = pltpu.InterpretParams(
        grid_point_recorder=lambda token, point, core: (seen.append(tuple(map(int, point))), token)[
            1
        ]
    )

    def run(x):
        spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        return pl.pallas_call(
            copy, grid=(2, 3), in_specs=[spec], out_specs=spec, interpret=recorder,
            out_shape=jax.ShapeDtypeStruct((16, 384), jnp.float32),
        )(x)  # fmt: skip

    x = jnp.zeros((16, 384))
    jax.block_until_ready(run(x))
    assert tuple(seen) == read_call(run, x).programs


def test_blocks_are_labelled_by_their_programs():
    figure = block_ownership(transpose, X, alt="a")
    x, out = figure.panels
    inside = [w for w in words(x) if w.startswith("(")]
    assert inside.count("(0, 0)") == 1
    assert set(inside) == {f"({i}, {j})" for i in range(2) for j in range(3)}
    assert words(x)[:3] == ["x", "float32[256, 384]", "input, blocks of 128 × 128"]
    assert words(out)[:3] == ["o", "float32[384, 256]", "output, blocks of 128 × 128"]


def test_a_shared_block_is_labelled_by_all_its_programs_and_in_their_colours():
    square = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    figure = block_ownership(
        matmul, square, X, alt="a", highlight=[(0, 0), (0, 1)], names=("a", "b", "out")
    )
    a, b, out = figure.panels
    assert {w for w in words(a) if w.startswith("(")} == {"(0, *)", "(1, *)"}
    assert {w for w in words(b) if w.startswith("(")} == {"(*, 0)", "(*, 1)", "(*, 2)"}
    for panel in (a, b, out):
        coloured = [f for f in fills(panel) if "fill" in f]
        assert sorted(coloured) == ["var(--f-fill-1)", "var(--f-fill-2)"], panel.title


def test_the_description_says_which_elements_a_program_is_given():
    x, out = block_ownership(transpose, X, alt="a", highlight=[(0, 1)]).panels
    assert "Program (0, 1) is given elements [0 to 127, 128 to 255]." in x.desc
    assert "Program (0, 1) is given elements [128 to 255, 0 to 127]." in out.desc


def test_steps_are_those_of_the_loop_nest():
    _, out = block_ownership(transpose, X, alt="a", steps=True).panels
    after = dict(itertools.pairwise(words(out)))
    for step, program in enumerate(itertools.product(range(2), range(3))):
        assert after[str(program)] == f"step {step}"


def ragged(x):
    spec = pl.BlockSpec((128, 128), lambda i, j: (i, j))
    return call(spec, spec, (300, 300), (3, 3))(x)


def hatched(figure):
    return any("past the edge" in words for _, words in figure.key)


def test_what_hangs_over_the_edge_is_hatched_and_nothing_else():
    assert hatched(block_ownership(ragged, jax.ShapeDtypeStruct((300, 300), jnp.float32), alt="a"))
    assert not hatched(block_ownership(transpose, X, alt="a"))


def test_squeezed_dimensions_whole_arrays_and_arrays_left_in_place():
    def run(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = jnp.zeros_like(o_ref)

        return call(
            pl.BlockSpec(memory_space=pl.ANY),
            pl.BlockSpec((None, 8, 128), lambda b: (b, 0, 0)),
            (3, 8, 128),
            (3,),
            kernel,
        )(x)

    x, out = block_ownership(run, jax.ShapeDtypeStruct((16, 128), jnp.float32), alt="a").panels
    assert "input, left where it is" in words(x)
    assert "output, blocks of None × 8 × 128" in words(out)
    assert [w for w in words(out) if w.startswith("[")] == ["[0, :, :]", "[1, :, :]", "[2, :, :]"]


def test_prefetched_scalars_move_the_blocks():
    def kernel(order_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def run(order, x):
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, order: (order[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, order: (i, 0)),
        )
        return pl.pallas_call(kernel, grid_spec=spec, out_shape=x)(order, x)

    order, x = jnp.array([3, 1, 2, 0], jnp.int32), jnp.zeros((32, 128))
    with pytest.raises(ValueError, match="prefetches 1 scalar operands and scalars= holds 0"):
        read_call(run, order, x)
    read = read_call(run, order, x, scalars=(order,))
    assert [o.name for o in read.operands] == ["x", "o"]
    np.testing.assert_array_equal(read.operands[0].starts[:, 0], [24, 8, 16, 0])


def test_a_call_without_a_grid():
    def run(x):
        return pl.pallas_call(copy, out_shape=x)(x)

    figure = block_ownership(run, jax.ShapeDtypeStruct((8,), jnp.float32), alt="a")
    assert figure.key[0][1] == "the one program"
    assert words(figure.panels[0])[2] == "input, whole"


def test_a_call_inside_jit_is_found_and_several_must_be_told_apart():
    assert read_call(jax.jit(transpose), X).grid == (2, 3)

    def two(x):
        return transpose(transpose(x).T)

    with pytest.raises(ValueError, match="calls pallas_call 2 times"):
        read_call(two, X)
    assert read_call(two, X, index=1).grid == (2, 3)
    with pytest.raises(ValueError, match="index is 2, but there are 2"):
        read_call(two, X, index=2)


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="calls no pallas_call"):
        read_call(jnp.sin, X)
    with pytest.raises(ValueError, match="names holds 1 names, but the call has 2"):
        read_call(transpose, X, names=("x",))
    with pytest.raises(ValueError, match=r"program \(2, 0\) is not in the grid \(2, 3\)"):
        block_ownership(transpose, X, alt="a", highlight=[(2, 0)])
    with pytest.raises(ValueError, match="7 programs to highlight"):
        block_ownership(transpose, X, alt="a", highlight=[(0, 0)] * 7)
    with pytest.raises(ValueError, match="alt is empty"):
        block_ownership(transpose, X, alt="")


def by_offsets(x):
    return call(
        pl.BlockSpec((8, 128), lambda i: (i * 8, 0)),
        pl.BlockSpec((8, 128), lambda i: (i, 0)),
        (32, 128),
        (4,),
    )(x)


def test_clamped_starts_are_what_interpret_mode_reads():
    x = jnp.broadcast_to(jnp.arange(32.0)[:, None], (32, 128))

    def run(x):
        return pl.pallas_call(
            copy,
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            out_shape=x,
            interpret=True,
        )(x)

    read = read_starts(read_call(run, x).operands[0])
    np.testing.assert_array_equal(read[:, 0], np.asarray(run(x))[::8, 0])
    np.testing.assert_array_equal(read[:, 0], [0, 24, 24, 24])


def test_a_last_block_over_the_edge_is_not_clamped():
    x = jax.ShapeDtypeStruct((300, 300), jnp.float32)
    operand = read_call(ragged, x).operands[0]
    np.testing.assert_array_equal(read_starts(operand), operand.starts)


def test_the_clamp_is_drawn_and_told():
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    figure = clamped_blocks(by_offsets, x, alt="a")
    assert [words for _, words in figure.key] == [
        "program 0",
        "program 1: reads 24, not 64",
        "program 2: reads 24, not 128",
        "program 3: reads 24, not 192",
    ]
    wide, narrow = figure.panels
    assert "Program 3 asks for the block that starts at 192 and gets the one at 24." in wide.desc
    assert "Program 0 asks for the block that starts at 0 and gets it." in narrow.desc
    assert "192" in words(wide)
    with pytest.raises(ValueError, match="no operand 'y'; there are: x, o"):
        clamped_blocks(by_offsets, x, alt="a", operand="y")


@pytest.mark.parametrize(
    ("programs", "grid", "name"),
    [
        ([(0, 1)], (2, 3), "(0, 1)"),
        ([(4,)], (8,), "4"),
        ([(i,) for i in range(8)], (8,), "all"),
        ([(i,) for i in range(3)], (8,), "0–2"),
        ([(0, 0), (0, 1)], (2, 2), "(0, *)"),
        ([(0, 0), (1, 1)], (2, 2), "2 programs"),
        ([(0, 0), (0, 2)], (2, 3), "2 programs"),
    ],
)
def test_sets_of_programs_have_short_names(programs, grid, name):
    assert program_pattern(programs, grid) == name


def test_runs_of_steps_are_short():
    assert [runs(n) for n in ([0], [2, 0, 1], [0, 4], [0, 4, 8, 12])] == [
        "0",
        "0–2",
        "0, 4",
        "0, 4, … 12",
    ]
