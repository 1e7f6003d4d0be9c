"""The schedule of a pipeline: the library's own, the same as the simulator's, and its picture."""

import itertools
from collections.abc import Iterator
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.pallas.mosaic import pipeline as library
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures import pipeline_frames, pipeline_schedule, record_of
from pallas_rungs.figures.pipeline_frames import Bar, frame_bars
from pallas_rungs.figures.pipeline_schedule import Move, PipelineSchedule, moves_of
from unit.figures.read_back import parsed, words


@pytest.fixture(autouse=True)
def _on_v5e() -> Iterator[None]:
    chip = jax.sharding.AbstractDevice("TPU v5 lite", num_cores=1, platform="tpu")
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=chip)
    with jax.sharding.use_abstract_mesh(mesh):
        yield


def shaped(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def product(mode=None):
    """The operands and the plan of a product in two blocks along each axis."""
    specs = [
        pl.BlockSpec((8, 128), lambda i, j, k: (i, k), pipeline_mode=mode),
        pl.BlockSpec((128, 128), lambda i, j, k: (k, j), pipeline_mode=mode),
        pl.BlockSpec((8, 128), lambda i, j, k: (i, j), pipeline_mode=mode),
    ]
    operands = shaped(16, 256), shaped(256, 256), shaped(16, 256)
    return operands, {"grid": (2, 2, 2), "in_specs": specs[:2], "out_specs": specs[2:]}


def run(kernel, operands, plan):
    """What the simulator does when it runs a kernel by this plan."""
    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)
    inputs = len(plan["in_specs"])

    def call(*args):
        return pl.pallas_call(
            lambda *refs: pltpu.emit_pipeline(kernel, **plan)(*refs),
            in_specs=[in_hbm] * inputs,
            out_specs=[in_hbm] * (len(operands) - inputs),
            out_shape=operands[inputs:],
        )(*args)

    return record_of(call, *(np.ones(o.shape, o.dtype) for o in operands[:inputs]))


def multiply(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...])


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def of(blocks, mode=None) -> PipelineSchedule:
    """The schedule of one input that needs these blocks."""
    at = jnp.asarray(blocks)
    spec = pl.BlockSpec((8, 128), lambda i: (at[i], 0), pipeline_mode=mode)
    return pipeline_schedule(shaped(64, 128), grid=(len(blocks),), in_specs=[spec])


@pytest.mark.parametrize("slots", [None, 1, 3])
def test_the_simulator_does_what_the_schedule_says(slots) -> None:
    operands, plan = product(None if slots is None else pl.Buffered(slots))
    schedule = pipeline_schedule(*operands, **plan)
    assert [b.slots for b in schedule.buffers] == [slots or 2] * 3
    assert moves_of(run(multiply, operands, plan), schedule) == schedule.moves


def test_another_number_of_slots_is_another_schedule() -> None:
    operands, plan = product()
    record = run(multiply, operands, plan)
    other = pipeline_schedule(*operands, **product(pl.Buffered(3))[1])
    assert moves_of(record, other) != other.moves


def test_the_predicates_are_the_librarys() -> None:
    operands, plan = product()
    with mock.patch.object(library.Scheduler, "has_changed", return_value=True):
        changed = pipeline_schedule(*operands, **plan)
    assert changed.decisions != pipeline_schedule(*operands, **plan).decisions
    assert all(d.has_changed for d in changed.decisions)


def test_squeezed_axes_and_several_outputs_are_scheduled_as_simulated() -> None:
    def both(x_ref, o_ref, p_ref):
        o_ref[...] = x_ref[...]
        p_ref[...] = x_ref[...]

    item = pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
    rows = pl.BlockSpec((8, 128), lambda i: (i // 2, 0))
    operands = shaped(4, 8, 128), shaped(4, 8, 128), shaped(16, 128)
    plan = {"grid": (4,), "in_specs": [item], "out_specs": [item, rows]}
    schedule = pipeline_schedule(*operands, **plan)
    assert moves_of(run(both, operands, plan), schedule) == schedule.moves
    assert [t.block for t in schedule.transfers("x")] == [(n, 0, 0) for n in range(4)]
    assert [t.block for t in schedule.transfers("p")] == [(0, 0), (1, 0)]


def test_a_block_that_stays_is_copied_once_and_one_that_comes_back_again() -> None:
    assert [t.block[0] for t in of([0, 0, 1, 1, 1]).transfers()] == [0, 1]
    assert [t.block[0] for t in of([0, 1, 0, 1]).transfers()] == [0, 1, 0, 1]


def test_lookahead_starts_as_soon_as_there_is_a_slot() -> None:
    later = of([0, 0, 0, 1]).transfers()[1]
    ahead = of([0, 0, 0, 1], pl.Buffered(2, use_lookahead=True)).transfers()[1]
    assert (later.bodies, ahead.bodies) == (1, 3)


def test_a_whole_array_is_copied_before_the_loop_and_sent_after_it() -> None:
    whole = pl.BlockSpec((8, 128), lambda i: (0, 0))
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    operands = shaped(8, 128), shaped(24, 128)
    plan = {"grid": (3,), "in_specs": [whole], "out_specs": [rows]}
    schedule = pipeline_schedule(*operands, **plan)
    assert schedule.of("x").whole
    assert schedule.of("x").semaphores == 0
    assert schedule.at(-1) == (Move("start", "x", (0, 0)), Move("wait", "x", (0, 0)))
    assert moves_of(run(copy, operands, plan), schedule) == schedule.moves
    backwards = pipeline_schedule(*operands[::-1], grid=(3,), in_specs=[rows], out_specs=[whole])
    assert backwards.at(3) == (Move("start", "o", (0, 0)), Move("wait", "o", (0, 0)))


def test_copies_bodies_and_text_of_a_small_schedule() -> None:
    schedule = of([0, 1, 1])
    first, second = schedule.transfers("x")
    assert (first.slot, first.bodies, first.inwards) == (0, 0, True)
    assert (second.slot, second.bodies) == (1, 1)
    assert schedule.most_under_way("x") == 2
    assert str(schedule).split("\n") == [
        " prologue: start x[0,0] slot 0",
        "        0: start x[1,0] slot 1, wait x[0,0] slot 0, body",
        "        1: wait x[1,0] slot 1, body",
        "        2: body",
    ]
    assert repr(schedule) == str(schedule)
    rows = schedule.table().plain.split("\n")
    assert rows[1].split("  ")[0] == "prologue"
    assert "fetch (1,0) → slot 1; wait for (0,0) in slot 0" in rows[2]
    answers = [row.split() for row in schedule.predicates().plain.split("\n")[1:]]
    assert [row[3:] for row in answers] == [
        ["yes", "yes", "·"],  # at step 0 the step before is the last one, by wrapping round
        ["yes", "·", "·"],
        ["·", "yes", "yes"],
    ]


def test_sent_results_are_told_in_the_table() -> None:
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    schedule = pipeline_schedule(
        shaped(16, 128), shaped(16, 128), grid=(2,), in_specs=[rows], out_specs=[rows]
    )
    told = schedule.table().plain
    assert "send (0,0) from slot 0" in told
    assert "wait: (1,0) has left slot 1" in told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["x", "y"]}, "3 operands, 3 specs and 2 names"),
        ({"grid": (9, 9, 9)}, "729 steps; at most 256"),
        ({"grid": (0, 1, 1)}, "strictly positive"),
    ],
)
def test_what_cannot_be_scheduled_is_said(change, message) -> None:
    operands, plan = product()
    with pytest.raises(ValueError, match=message):
        pipeline_schedule(*operands, **(plan | change))


def test_operands_that_have_no_window_are_named() -> None:
    with pytest.raises(ValueError, match="no window for the operand x"):
        of([0, 1], pl.Buffered(2, prefetched_count=1))
    with pytest.raises(ValueError, match=r"operand x has shape \(256,\)"):
        pipeline_schedule(shaped(256), grid=(2,), in_specs=[pl.BlockSpec((128,), lambda i: (i,))])


def test_a_record_of_other_arrays_and_an_unknown_operand_are_refused() -> None:
    operands, plan = product()
    record = run(multiply, operands, plan)
    with pytest.raises(ValueError, match="copies of 3 arrays, the schedule of 1"):
        moves_of(record, of([0, 1]))
    with pytest.raises(KeyError, match="no operand 'w'; there are x"):
        of([0, 1]).transfers("w")


def test_a_copy_that_nobody_awaits_is_refused() -> None:
    schedule = of([0, 1])
    cut = PipelineSchedule(schedule.grid, schedule.buffers, schedule.moves[:1], (-1,), ())
    with pytest.raises(ValueError, match=r"start x\[0,0\] slot 0' is never waited for"):
        cut.transfers()


def test_bars_are_copies_from_start_to_wait_and_blocks_in_use() -> None:
    rows = pl.BlockSpec((8, 128), lambda i: (i // 2, 0))
    schedule = pipeline_schedule(
        shaped(16, 128), shaped(16, 128), grid=(4,), in_specs=[rows], out_specs=[rows]
    )
    assert frame_bars(schedule) == (
        Bar("x", 0, (0, 0), -0.55, 0.3, 1),
        Bar("x", 1, (1, 0), 1.02, 2.3, 1),
        Bar("x", 0, (0, 0), 0.3, 1.75, 3),
        Bar("x", 1, (1, 0), 2.3, 3.75, 3),
        Bar("o", 0, (0, 0), 1.75, 2.98, 2),
        Bar("o", 1, (1, 0), 3.75, 4.55, 2),
        Bar("o", 0, (0, 0), 0.3, 1.75, 3),
        Bar("o", 1, (1, 0), 2.3, 3.75, 3),
    )


@pytest.mark.parametrize("mode", [None, pl.Buffered(1), pl.Buffered(3)])
def test_no_slot_is_moved_and_used_at_once(mode) -> None:
    operands, plan = product(mode)
    bars = frame_bars(pipeline_schedule(*operands, **plan))
    for lane in {(bar.operand, bar.slot) for bar in bars}:
        here = sorted((b.begin, b.end) for b in bars if (b.operand, b.slot) == lane)
        for (_, end), (begin, _) in itertools.pairwise(here):
            assert end <= begin + 1e-9


def test_the_picture_has_a_lane_for_each_slot_and_a_column_for_each_step() -> None:
    operands, plan = product()
    schedule = pipeline_schedule(*operands, **plan)
    figure = pipeline_frames(schedule, alt="two slots each")
    assert [panel.show for panel in figure.panels] == ["wide", "narrow"]
    wide, narrow = figure.panels
    assert words(wide)[:9] == ["step", *map(str, range(8))]
    lanes = [f"{name}, slot {slot}" for name in "xyo" for slot in (0, 1)]
    assert words(wide)[9:15] == lanes
    assert words(narrow)[9:15] == [lane.replace(", slot", "") for lane in lanes]
    for panel in figure.panels:
        drawn = [e for e in parsed(panel).iter("rect") if e.get("stroke")]
        assert len(drawn) == 2 * len(schedule.transfers())
        for e in drawn:
            right = float(e.get("x", "nan")) + float(e.get("width", "nan"))
            assert right <= panel.width
    assert "x, slot 0: block 0,0 on its way in from the prologue to step 0" in wide.desc
    assert "block 1,1 on its way out from step 7 to the epilogue" in wide.desc


def test_too_many_steps_for_a_picture_are_refused() -> None:
    with pytest.raises(ValueError, match="13 steps; a figure of more than 12"):
        pipeline_frames(of([0, 1] * 6 + [0]), alt="long")
