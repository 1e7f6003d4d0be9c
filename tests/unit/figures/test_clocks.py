"""Vector clocks of simulated runs, and the picture of what they order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.bugs import dma_without_wait
from pallas_rungs.figures import happens_before, record_clocks
from pallas_rungs.figures.clock_record import ClockRecord, Event
from unit.figures.read_back import parsed, words

NAMES = {100: "x_ref", 102: "o_ref", 103: "buffer"}


@pytest.fixture(scope="module")
def broken():
    return record_clocks(dma_without_wait.broken, *dma_without_wait.cases()[0].args)


@pytest.fixture(scope="module")
def fixed():
    return record_clocks(dma_without_wait.fixed, *dma_without_wait.cases()[0].args)


def two_copies_at_once(x):
    def kernel(x_ref, o_ref, buffer, arrived):
        copies = [pltpu.make_async_copy(x_ref.at[i], buffer, arrived.at[i]) for i in (0, 1)]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()
        o_ref[...] = buffer[...]

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def test_a_wait_that_comes_too_late_is_a_race_of_the_read_and_the_copy(broken):
    assert [e.what for e in broken.events] == [
        "start", "read", "write", "read", "write", "signal", "wait",
    ]  # fmt: skip
    ((early, copied),) = broken.races()
    assert (early.what, early.thread) == ("read", (0, 0))
    assert (copied.what, copied.thread) == ("write", (100, 0))
    assert early.buffer == copied.buffer == 103
    assert broken.events[0].begins == (100, 0)
    assert len(broken.reports) == 1
    assert "RACE DETECTED" in broken.reports[0]


def test_a_wait_in_time_orders_the_copy_before_the_read(fixed):
    assert fixed.races() == ()
    assert fixed.reports == ()
    written = next(e for e in fixed.events if e.what == "write" and e.buffer == 103)
    read = next(e for e in fixed.events if e.what == "read" and e.buffer == 103)
    assert written.before(read)
    assert not read.before(written)


def test_our_races_are_those_of_the_detector_with_room_for_both_copies():
    x = np.zeros((2, 8, 128), np.float32)
    np.random.seed(0)  # the simulator draws a copy's place in the clock from it
    roomy = record_clocks(two_copies_at_once, x, vector_clock_size=16)
    tight = record_clocks(two_copies_at_once, x)
    assert len(roomy.races()) == len(roomy.reports) == 1
    assert len(tight.races()) == len(tight.reports) == 0


def test_reads_of_the_same_elements_are_no_race_and_neither_are_writes_of_others():
    def event(what, thread, clock, region=(slice(0, 8),)):
        return Event(what, (thread, 0), clock, 7, region)

    def races(*events):
        return ClockRecord(events, ()).races()

    assert races(event("read", 0, (1, 0)), event("read", 100, (0, 1))) == ()
    assert len(races(event("read", 0, (1, 0)), event("write", 100, (0, 1)))) == 1
    assert races(event("read", 0, (1, 0)), event("write", 100, (1, 1))) == ()
    apart = event("write", 100, (0, 1), (slice(8, 16),))
    assert races(event("write", 0, (1, 0)), apart) == ()


def test_every_event_has_a_row_with_its_clock(broken):
    for svg in happens_before(broken, names=NAMES, alt="a").panels:
        told = words(svg)
        assert "core 0 reads buffer" in told
        assert "copy 1 writes buffer" in told
        assert "[1, 3]" in told
        assert len(list(parsed(svg).iter("circle"))) == len(broken.events)
        assert "Rows 1 and 4 race" in svg.desc


def dashed(svg):
    return [p for p in parsed(svg).iter("path") if p.get("stroke-dasharray")]


def test_only_a_race_is_dashed_and_explained(broken, fixed):
    racy = happens_before(broken, names=NAMES, alt="a")
    sound = happens_before(fixed, names=NAMES, alt="a")
    assert [len(dashed(svg)) for svg in racy.panels] == [1, 1]
    assert [len(dashed(svg)) for svg in sound.panels] == [0, 0]
    assert [len(figure.key) for figure in (racy, sound)] == [2, 1]


def test_arrows_lead_from_the_start_and_to_the_wait(fixed):
    wide, _ = happens_before(fixed, names=NAMES, alt="a").panels
    arrows = [p for p in parsed(wide).iter("path") if p.get("stroke-width") == "1.4"]
    assert len(arrows) == 2


def test_copies_are_numbered_as_they_were_started():
    copies = record_clocks(two_copies_at_once, np.zeros((2, 8, 128), np.float32))
    names = {100: "x_ref", 102: "o_ref", 103: "buffer"}
    told = words(happens_before(copies, names=names, alt="a").panels[0])
    starts = [word for word in told if "starts" in word]
    assert starts == ["core 0 starts copy 1", "core 0 starts copy 2"]


def test_text_is_large_enough_on_a_phone(broken):
    for svg in happens_before(broken, names=NAMES, alt="a").panels:
        assert min(float(e.get("font-size")) for e in parsed(svg).iter("text")) >= 11


def test_no_picture_of_nothing_or_without_names(broken):
    with pytest.raises(ValueError, match="no events"):
        happens_before(ClockRecord((), ()), names={}, alt="a")
    with pytest.raises(ValueError, match="no entry for buffer 100"):
        happens_before(broken, names={102: "o_ref", 103: "buffer"}, alt="a")
