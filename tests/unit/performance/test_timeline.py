"""The single events of a run: its transfers and waits."""

from __future__ import annotations

from pallas_rungs.performance.clock import clock_of
from pallas_rungs.performance.kernel import KernelProgram
from pallas_rungs.performance.timeline import Timeline, timeline
from unit.performance.listings import listing, loop

READ = (
    "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s1, /*size_in_granules=*/1000, "
    "/*vmem=*/%s2_s2, /*dst_syncflagno=*/[#allocation5]"
)
WITHIN = READ.replace("hbm_to_vmem", "vmem_to_smem").replace("hbm=", "vmem=", 1)
WITHIN = WITHIN.replace("/*vmem=*/%s2_s2", "/*smem=*/%s2_s2").replace("allocation5", "allocation6")
WAIT = "%4 = dma.done.wait [#allocation5], 1000"
LOWER = f"%5 = vsyncadd [#allocation5], {(1 << 32) - 1000}"
CLOCK = clock_of("v5e")
THROUGH = 1000 * CLOCK.granule.value / CLOCK.hbm_bytes_per_cycle


def watched(*bundles: str) -> Timeline:
    return timeline(KernelProgram("sample", listing(*bundles), CLOCK))


def test_a_watched_run_takes_the_course_of_an_unwatched_one() -> None:
    text = listing(*loop(7, READ, "", READ, WAIT, LOWER, WAIT, LOWER), "")
    program = KernelProgram("sample", text, CLOCK)
    plain, seen = program.executed(), timeline(program)
    assert (seen.time, seen.counts, seen.stalls) == (plain.time, plain.counts, plain.stalls)
    assert len(seen.transfers) == plain.engine.started == 14
    assert sum(it.ends - it.begins for it in seen.waits) == plain.stalled


def test_a_transfer_waits_for_the_one_before_it_and_its_flag_for_the_latency() -> None:
    first, second = watched(READ, "", "", READ, "").transfers
    assert (first.source, first.target, first.size) == ("hbm", "vmem", 32_000)
    assert (first.started, first.begins, first.ends) == (0, 0, THROUGH)
    assert (second.started, second.begins, second.ends) == (3, THROUGH, 2 * THROUGH)
    for it in (first, second):
        assert it.done == it.ends + CLOCK.read_latency.value


def test_a_transfer_that_starts_late_begins_when_it_starts() -> None:
    _, second = watched(READ, *[""] * 200, READ).transfers
    assert second.started == second.begins == 201


def test_a_transfer_within_the_core_leaves_the_queue_alone() -> None:
    _, within = watched(READ, WITHIN).transfers
    assert (within.source, within.target) == ("vmem", "smem")
    assert within.started == within.begins == 1
    assert within.ends == within.done
    assert within.done == 1 + CLOCK.on_chip_latency.value + THROUGH / 4


def test_a_short_transfer_that_is_done_before_a_long_one_of_the_same_flag_has_its_own_end() -> None:
    short = WITHIN.replace("allocation6", "allocation5")
    long, within = watched(READ, short).transfers
    assert long.flag == within.flag
    assert within.done < long.done == THROUGH + CLOCK.read_latency.value


def test_only_waits_that_cost_cycles_are_kept() -> None:
    seen = watched(READ, "", WAIT, LOWER, READ, *[""] * 3000, WAIT, "")
    (wait,) = seen.waits
    assert (wait.bundle, wait.begins) == (2, 2)
    assert wait.ends == THROUGH + CLOCK.read_latency.value
    assert wait.flag == seen.transfers[0].flag


def test_events_become_plain_data_in_whole_cycles() -> None:
    told = watched(READ, WAIT, "").to_json()
    assert told["waits"] == [
        {
            "bundle": 1,
            "flag": told["transfers"][0]["flag"],
            "begins": 1,
            "ends": round(THROUGH + CLOCK.read_latency.value),
        }
    ]
    assert told["transfers"][0]["ends"] == round(THROUGH)
