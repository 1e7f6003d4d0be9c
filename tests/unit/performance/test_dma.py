"""The DMA model, by cases computed by hand on a chip of round numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pallas_rungs.performance.clock import Clock, Constant, clock_of
from pallas_rungs.performance.dma import DmaEngine, Semaphores
from pallas_rungs.performance.machine import BROUGHT
from unit.performance.listings import READ, ran, stored


@pytest.fixture
def clock() -> Clock:
    """64 bytes a cycle; 1000 cycles from the end of a read to its semaphore, 500 of a write."""

    def of(value: float) -> Constant:
        return Constant(value, "", "assumed: round")

    return replace(
        clock_of("v5e"),
        frequency=of(1e9),
        hbm_rate=of(64e9),
        read_latency=of(1000),
        write_latency=of(500),
        on_chip_latency=of(100),
        granule=of(32),
    )


def test_a_read_takes_its_bytes_and_the_latency(clock: Clock) -> None:
    engine = DmaEngine(clock)
    assert engine.start(10, "hbm", "vmem", 200) == 10 + 200 * 32 / 64 + 1000
    assert (engine.read_bytes, engine.written_bytes) == (6400, 0)


def test_transfers_queue_for_hbm_and_their_latencies_overlap(clock: Clock) -> None:
    engine = DmaEngine(clock)
    assert engine.start(0, "hbm", "vmem", 200) == 100 + 1000
    assert engine.start(0, "hbm", "vmem", 200) == 200 + 1000
    assert engine.start(0, "vmem", "hbm", 200) == 300 + 500
    assert engine.start(1000, "vmem", "hbm", 2) == 1001 + 500  # the queue is empty by then
    assert (engine.read_bytes, engine.written_bytes, engine.started) == (12800, 6464, 4)


def test_a_copy_within_hbm_passes_through_it_twice(clock: Clock) -> None:
    engine = DmaEngine(clock)
    assert engine.start(0, "hbm", "hbm", 200) == 200 + 1000
    assert (engine.read_bytes, engine.written_bytes) == (6400, 6400)


def test_a_copy_on_the_chip_leaves_hbm_alone(clock: Clock) -> None:
    engine = DmaEngine(clock)
    assert engine.start(0, "vmem", "smem", 8) == 100 + 1
    assert (engine.free_at, engine.read_bytes) == (0, 0)


def test_a_wait_ends_when_enough_granules_have_landed() -> None:
    flags = Semaphores()
    for done, granules in ((300.0, 8), (100.0, 8), (200.0, 8)):
        flags.will_rise(5, done, granules)
    assert flags.reached(50, 5, 16) == (200, True)
    assert flags.reached(250, 5, 16) == (250, True)
    flags.add(5, -16)
    assert flags.reached(250, 5, 8) == (300, True)
    assert flags.reached(400, 5, 16) == (400, False)
    flags.set(5, 16)
    assert flags.reached(400, 5, 16) == (400, True)


TRANSFER = (
    "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s1, /*size_in_granules=*/8192, "
    "/*vmem=*/%s2_s2, /*dst_syncflagno=*/[#allocation5]"
)
WAIT = "%4 = dma.done.wait [#allocation5], 8192 /* pipeline-emitter-dma-wait */"
LOWER = "%5 = vsyncadd [#allocation5], 4294959104"


def test_a_program_stalls_where_it_waits() -> None:
    machine = ran("", TRANSFER, WAIT, LOWER, TRANSFER, WAIT, LOWER)
    clock = clock_of("v5e")
    each = 8192 * 32 / clock.hbm_bytes_per_cycle + clock.read_latency.value
    assert machine.stalls == {2: pytest.approx(each - 1), 5: pytest.approx(each - 1)}
    assert machine.time == pytest.approx(7 + 2 * (each - 1))
    assert machine.stalled == pytest.approx(2 * (each - 1))
    assert machine.engine.read_bytes == 2 * 8192 * 32
    assert not +machine.unresolved


def test_work_between_start_and_wait_hides_the_transfer() -> None:
    hidden = ran(TRANSFER, *[""] * 2000, WAIT)
    assert hidden.time == 2002
    assert not hidden.stalls


def test_a_transfer_under_a_false_predicate_does_not_start() -> None:
    predicated = TRANSFER.replace("[thread:$0]  ", "[thread:$0]  (!%p1_p0), ")
    machine = ran("%p1_p0 = pmov 1", predicated)
    assert machine.engine.started == 0


def test_a_wait_that_nothing_satisfies_is_named() -> None:
    machine = ran(WAIT)
    assert list(+machine.unresolved) == ["the wait at bundle 0x0, which no transfer satisfies"]


def test_a_transfer_without_size_is_named() -> None:
    machine = ran(TRANSFER.replace("size_in_granules", "size"))
    (name,) = +machine.unresolved
    assert "a transfer without size_in_granules" in name


def test_a_described_transfer_has_its_memories_from_its_pointers() -> None:
    general = (
        "%3 = dma.general /*src=*/%s1_s1, /*size_in_granules=*/8, /*dst=*/%s2_s2, "
        "/*dst_syncflagno=*/[#allocation5], /*src_syncflagno=*/0"
    )
    machine = ran(
        "%s1_s1 = scalar_lea.vmem [#allocation2], 0 ;; %s2_s2 = scalar_lea.hbm [#allocation3], 0",
        general,
    )
    assert (machine.engine.read_bytes, machine.engine.written_bytes) == (0, 256)
    assert not +machine.unresolved
    (name,) = +ran(general).unresolved
    assert "a transfer between memories that are not known" in name


OPERAND = (
    "%s1_s1 = inlined_call_operand.hbm [shape: s32[3], index: 1, kind: input, shape index: {}]"
)
TO_SMEM = (
    "%3 = dma.hbm_to_smem /*hbm=*/{}, /*size_in_granules=*/16, /*smem=*/%s2_s2, "
    "/*dst_syncflagno=*/[#allocation9]"
)


@pytest.mark.parametrize("shift", [0, 4])
def test_a_table_of_integers_reaches_smem(shift: int) -> None:
    bundles = [
        f"{OPERAND} ;; %s2_s2 = smov [#allocation2]",
        f"%s3_s3 = sshll.u32 %s1_s1, {shift}",
        TO_SMEM.format("%s3_s3"),
        "%s4_s4 = sld [smem:[#allocation2 + $0x2]]",
        "%5 = sst [smem:[#allocation1]] %s4_s4",
        READ,
    ]
    machine = ran(*bundles, operands={1: [7, 8, 9]})
    assert stored(machine, 3) == 9
    assert not +machine.unresolved
    assert dict(+ran(*bundles).unresolved) == {"values of operand 1": 1}
    assert dict(+ran(*bundles, operands={0: [7, 8, 9]}).unresolved) == {"values of operand 1": 1}


@pytest.mark.parametrize(("place", "want"), [(127, 127), (128, None)])
def test_a_transfer_brings_as_many_words_as_it_moves(place: int, want: int | None) -> None:
    machine = ran(
        f"{OPERAND} ;; %s2_s2 = smov [#allocation2]",
        TO_SMEM.format("%s1_s1"),
        f"%s4_s4 = sld [smem:[#allocation2 + $0x{place:x}]]",
        "%5 = sst [smem:[#allocation1]] %s4_s4",
        READ,
        operands={1: range(200)},
    )
    if want is None:
        assert sum(machine.unresolved.values()) == 1
    else:
        assert stored(machine, 3) == want


def test_what_a_second_transfer_brings_takes_the_place_of_what_was_there() -> None:
    machine = ran(
        f"{OPERAND} ;; %s2_s2 = smov [#allocation2]",
        TO_SMEM.format("%s1_s1"),
        "%s3_s3 = scalar_lea.hbm %s1_s1, 8",
        TO_SMEM.format("%s3_s3"),
        "%s4_s4 = sld [smem:[#allocation2 + $0x2]]",
        "%5 = sst [smem:[#allocation1]] %s4_s4",
        READ,
        operands={1: range(200)},
    )
    assert dict(+machine.unresolved) == {BROUGHT: 1}
