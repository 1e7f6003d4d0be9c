"""Records of copies: what the simulator was asked to do, and the picture of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.figures import copy_schedule, record_of
from pallas_rungs.figures.copy_record import Access, Copy, EndlessWaitError, Place, Record
from pallas_rungs.figures.copy_schedule import Bar, bars
from unit.figures.read_back import parsed, words

X = np.arange(24 * 128, dtype=np.float32).reshape(24, 128)


def copies(kernel, x):
    """Call a kernel with x in HBM, two slots of eight rows in VMEM and two semaphores."""
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        grid=(1,),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def fetch(x_ref, slots, arrived, i, slot):
    rows = x_ref.at[pl.ds(i * 8, 8)]
    return pltpu.make_async_copy(rows, slots.at[slot], arrived.at[slot])


def overlapping(x_ref, o_ref, slots, arrived):
    fetch(x_ref, slots, arrived, 0, 0).start()
    fetch(x_ref, slots, arrived, 2, 1).start()
    fetch(x_ref, slots, arrived, 2, 1).wait()
    o_ref[...] = slots[1]
    fetch(x_ref, slots, arrived, 0, 0).wait()


def test_copies_waits_and_accesses_are_numbered_in_order() -> None:
    record = record_of(lambda x: copies(overlapping, x), X)
    first, second = record.copies
    assert (first.start, first.end) == (0, 5)
    assert (second.start, second.end) == (1, 2)
    assert first.source == Place("hbm", first.source.buffer, (0, 0))
    assert second.source.starts == (16, 0)
    assert [c.target.starts for c in record.copies] == [(0, 0, 0), (1, 0, 0)]
    assert {c.target.space for c in record.copies} == {"vmem"}
    assert first.semaphore != second.semaphore
    assert first.inwards
    assert second.inwards
    read, write = record.accesses
    assert (read.at, read.writes, read.place.starts[0]) == (3, False, 1)
    assert (write.at, write.writes) == (4, True)
    assert record.events == 6
    assert record.in_flight() == record.in_flight(inwards=True) == 2
    assert record.in_flight(inwards=False) == 0


def test_a_copy_that_nobody_waits_for_has_no_end() -> None:
    def forgetful(x_ref, o_ref, slots, arrived):
        fetch(x_ref, slots, arrived, 0, 0).start()
        o_ref[...] = jnp.zeros_like(o_ref)

    record = record_of(lambda x: copies(forgetful, x), X)
    assert [c.end for c in record.copies] == [None]
    assert record.in_flight() == 1


def test_a_wait_for_nothing_is_told_and_leaves_the_simulator_usable() -> None:
    def stuck(x_ref, o_ref, slots, arrived):
        fetch(x_ref, slots, arrived, 0, 0).start()
        fetch(x_ref, slots, arrived, 0, 1).wait()
        o_ref[...] = slots[0]

    with pytest.raises(EndlessWaitError, match="event 1 waits for a copy that nobody has started"):
        record_of(lambda x: copies(stuck, x), X)
    assert len(record_of(lambda x: copies(overlapping, x), X).copies) == 2


def test_an_error_of_the_kernel_is_passed_on() -> None:
    def too_far(x_ref, o_ref, slots, arrived):
        last = pl.program_id(0) + 3  # known when the kernel runs, not when it is traced
        fetch(x_ref, slots, arrived, last, 0).start()
        fetch(x_ref, slots, arrived, last, 0).wait()
        o_ref[...] = slots[0]

    with pytest.raises(Exception, match=r"[Oo]ut-of-bounds"):
        record_of(lambda x: copies(too_far, x), X)
    assert len(record_of(lambda x: copies(overlapping, x), X).copies) == 2


def test_copies_out_of_vmem_are_not_inwards() -> None:
    def back(x_ref, o_ref, done):
        def body(buffer):
            pltpu.async_copy(x_ref, buffer, done).wait()
            pltpu.async_copy(buffer, o_ref, done).wait()

        pl.run_scoped(body, pltpu.VMEM(X.shape, jnp.float32))

    in_hbm = pl.BlockSpec(memory_space=pl.ANY)
    record = record_of(
        lambda x: pl.pallas_call(
            back,
            in_specs=[in_hbm],
            out_specs=in_hbm,
            out_shape=jax.ShapeDtypeStruct(X.shape, jnp.float32),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        )(x),
        X,
    )
    assert [c.inwards for c in record.copies] == [True, False]
    assert record.in_flight() == 1
    assert record.accesses == ()


def place(buffer: int, *starts: int, space: str = "vmem") -> Place:
    return Place(space, buffer, starts)


HBM = place(1, 0, space="hbm")
MADE_UP = Record(
    copies=(
        Copy(HBM, place(2, 0), semaphore=7, core=0, start=0, end=2),
        Copy(HBM, place(2, 1), semaphore=8, core=0, start=1, end=5),
        Copy(place(3, 0), HBM, semaphore=9, core=0, start=4),
        Copy(HBM, place(2, 0), semaphore=7, core=1, start=5, end=6),
    ),
    accesses=(
        Access(place(2, 0), writes=False, core=0, at=2),
        Access(place(3, 0), writes=True, core=0, at=3),
        Access(place(2, 1), writes=False, core=0, at=6),
    ),
    events=8,
)


def test_bars_are_copies_in_then_computation_then_copies_out() -> None:
    assert bars(MADE_UP) == (
        Bar("into slot 0", "0", 0, 2, 1),
        Bar("into slot 1", "1", 1, 5, 1),
        Bar("compute", "0", 2, 4, 3),
        Bar("compute", "1", 6, 7, 3),
        Bar("out of slot 0", "0", 4, 8, 2, awaited=False),
    )
    assert bars(MADE_UP, core=1) == (Bar("into slot 0", "0", 5, 6, 1),)


def test_two_operands_get_a_letter_each_and_a_whole_buffer_its_memory() -> None:
    record = Record(
        (
            Copy(HBM, place(2), semaphore=7, core=0, start=0, end=2),
            Copy(HBM, place(5, 1), semaphore=8, core=0, start=1, end=3),
        ),
        (),
        4,
    )
    assert [bar.lane for bar in bars(record)] == ["into a, VMEM", "into b, slot 1"]
    assert [bar.words for bar in bars(record)] == ["0", "0"]


def test_the_picture_has_a_lane_for_each_slot_and_a_bar_for_each_copy() -> None:
    figure = copy_schedule(MADE_UP, alt="two slots")
    assert [panel.show for panel in figure.panels] == ["wide", "narrow"]
    for panel in figure.panels:
        lanes = ["into slot 0", "into slot 1", "compute", "out of slot 0"]
        said = words(panel)
        assert said[:4] == lanes
        assert said[4:] == ["0", "1", "0", "1", "0", "order of events, not time"]
        drawn = [e for e in parsed(panel).iter("rect") if e.get("stroke")]
        starts = [float(e.get("x", "nan")) for e in drawn]
        ends = [x + float(e.get("width", "nan")) for x, e in zip(starts, drawn, strict=True)]
        assert starts[0] < starts[1] < starts[2] < starts[4]
        assert ends[0] == pytest.approx(starts[2] - 1, abs=0.3)
        assert [e.get("stroke-dasharray") for e in drawn] == [None] * 4 + ["4 3"]
        assert max(ends) <= panel.width
        assert "block 0 from event 4 and never awaited" in panel.desc
        assert "Lane into slot 1: block 1 from event 1 to 5." in panel.desc


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(ValueError, match="core 4 started no copies"):
        copy_schedule(MADE_UP, alt="nothing", core=4)
    with pytest.raises(ValueError, match="100 events; a figure of more than 96"):
        copy_schedule(Record(MADE_UP.copies, (), 100), alt="too much")
