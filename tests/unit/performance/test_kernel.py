"""The estimate of one program, on listings written by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pallas_rungs.ir.errors import IRError
from pallas_rungs.performance.clock import CLOCKS, clock_of
from pallas_rungs.performance.kernel import KernelEstimate, KernelProgram, TooLongError
from pallas_rungs.performance.timeline import timeline
from unit.performance.listings import branch, listing, loop

HEADER = "MXU, XLU, VALU, VLOAD, VLOAD:FILL, VSTORE, VSTORE:SPILL, SALU"
CAPACITY = "4 3 4 3 3 1 1 2"
SPILL = "%8 = vst [vmem:[#allocation36_spill] sm:$0xff] /*vst_source=*/%v2_v2"
FILL = (
    "%v3_v3 = vld [vmem:[#allocation36_spill] sm:$0xff] ;; "
    "%v4_v4 = vld [vmem:[#allocation36_spill] sm:$0xff]"
)
MATMUL = "%9 = vmatmul.bf16.gmra.mxu0 %v1_v1"


def table(
    rows: dict[int, str], bundles: int, header: str = HEADER, capacity: str = CAPACITY
) -> str:
    empty = " ".join("0" for _ in header.split(","))
    lines = ["== CAPACTIY:", header, capacity, "== UTILIZATION:"]
    return "\n".join([*lines, *(rows.get(number, empty) for number in range(bundles))]) + "\n"


def estimated(bundles: list[str], rows: dict[int, str], chip: str = "v5e") -> KernelEstimate:
    text = listing(*bundles)
    program = KernelProgram("sample", text, clock_of(chip), table(rows, len(bundles)))
    return program.estimate(pallas=True, vmem_bytes=4096)


def test_a_loop_of_products_is_bound_by_the_matrix_unit() -> None:
    found = estimated([*loop(10, f"{MATMUL} ;; {SPILL}", FILL), ""], {2: "36 0 0 2 1 1 1 0"})
    assert (found.steps, found.cycles_per_step, found.outside_cycles) == (10, 10, 2)
    assert (found.cycles, found.issue_cycles, found.stall_cycles) == (102, 102, 0)
    assert found.occupancy["MXU"] == 360 / (4 * 102)
    assert (found.spills, found.fills) == (10, 20)
    assert found.bound == "MXU (88% of its capacity)"
    assert (found.bundles, found.vmem_bytes, found.times) == (12, 4096, 1)
    assert [(it.first, it.end, it.depth, it.trips) for it in found.loops] == [(1, 11, 0, 10)]
    json.dumps(found.to_json())


def test_an_idle_loop_is_bound_by_its_schedule() -> None:
    found = estimated([*loop(10, "", ""), ""], {2: "0 0 1 0 0 0 0 2"})
    assert found.bound == "the schedule: dependences and latencies (busiest: VALU, 2%)"


READ = (
    "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s1, /*size_in_granules=*/{}, "
    "/*vmem=*/%s2_s2, /*dst_syncflagno=*/[#allocation5]"
)


def waits(granules: int) -> list[str]:
    start = READ.format(granules)
    wait = f"%4 = dma.done.wait [#allocation5], {granules}"
    lower = f"%5 = vsyncadd [#allocation5], {(1 << 32) - granules}"
    return [*loop(10, start, wait, lower), ""]


def test_large_transfers_are_bound_by_hbm_and_small_ones_by_waiting() -> None:
    assert estimated(waits(1 << 16), {}).bound.startswith("HBM (7")
    small = estimated(waits(16), {})
    assert small.bound.startswith("waiting for DMAs (9")
    assert small.hbm_read_bytes == 10 * 16 * 32
    assert small.dmas == 10
    assert small.cycles == small.issue_cycles + small.stall_cycles
    assert small.cycles_per_step * 10 == pytest.approx(small.cycles - small.outside_cycles)
    assert small.outside_cycles == pytest.approx(2)


@pytest.mark.parametrize("chip", CLOCKS)
def test_bytes_are_those_of_all_cores(chip: str) -> None:
    clock = clock_of(chip)
    found = KernelProgram("sample", listing(READ.format(16)), clock).estimate()
    assert found.hbm_read_bytes == 16 * clock.granule.value * clock.cores.value


CORE = "%s9_s9 = sld [smem:[#allocation0]] /* megacore core id :: core id */"


@pytest.mark.parametrize("other", [0, 1])
def test_a_core_without_work_moves_nothing_and_the_other_one_is_told(other: int) -> None:
    skips = [f"%p1_p0 = scmp.eq.s32.totalorder %s9_s9, {other}", branch(10, "(%p1_p0)")]
    text = listing(CORE, *skips, *[""] * 4, READ.format(16), "", "", "")
    program = KernelProgram("sample", text, clock_of("v5p"))
    found = program.estimate()
    assert found.hbm_read_bytes == 16 * 32
    assert (found.cycles, found.dmas) == (11, 1)
    assert program.alone.core == 1 - other
    assert len(timeline(program).transfers) == 1
    with_rate = program.with_clock(replace(program.clock, cores=replace(program.clock.cores)))
    assert [core.time for core in with_rate.cores] == [core.time for core in program.cores]


def test_a_guess_that_one_core_alone_makes_is_told() -> None:
    there = ["%p2_p2 = scmp.eq.s32.totalorder %s9_s9, 0", branch(15, "(%p2_p2)"), *[""] * 4]
    skips = [*LOADED, branch(15, "(%p1_p0)"), *[""] * 4, ""]
    text = listing(CORE, *there, *skips, "", "")
    assert KernelProgram("sample", text, clock_of("v5e")).estimate().unresolved == {}
    (name,) = KernelProgram("sample", text, clock_of("v5p")).estimate().unresolved
    assert "#allocation3" in name


def test_nested_loops_are_told_with_their_depth() -> None:
    inner = [
        "%s11_s5 = smov 0",
        "%s12_s5 = sphi %s11_s5, %s13_s5",
        "%s13_s5 = sadd.s32 1, %s12_s5",
        "%p14_p5 = scmp.ge.s32.totalorder %s13_s5, 3",
        branch(3, "(!%p14_p5)"),
        *[""] * 4,
    ]
    found = estimated([*loop(10, *inner), ""], {})
    assert [(it.depth, it.trips) for it in found.loops] == [(0, 10), (1, 30)]
    assert found.steps == 10
    assert found.loops[1].cycles == 30 * 8
    assert found.loops[0].cycles == 10 * (1 + 1 + 3 * 8 + 3 + 4)


LOADED = ["%s1_s1 = sld [smem:[#allocation3]]", "%p1_p0 = scmp.ge.s32.totalorder %s1_s1, 1"]


def test_a_guess_that_changes_the_course_is_told_and_one_that_does_not_is_not() -> None:
    skips = [*LOADED, branch(8, "(%p1_p0)"), *[""] * 4, ""]
    (name,) = estimated([*skips, ""], {}).unresolved
    assert "#allocation3" in name
    idle = [*LOADED, "%5 = sst [smem:[#allocation4]] %s1_s1", "%s4_s4 = sld [smem:[#allocation4]]"]
    assert estimated(idle, {}).unresolved == {}


def guessed(*tests: str) -> list[str]:
    """A loop that reads two unknown words and starts a transfer where a test of them holds."""
    first, second = (
        f"%s{each}_s{each} = sld [smem:[#allocation{each} + %s2_s0]]" for each in (6, 7)
    )
    start = READ.format(8).replace("[thread:$0]", "(%p8_p8)")
    ends = "%s1_s1 = smov 0 ;; %s2_s2 = smov 0"
    text = [*loop(12, first, second, *tests, ends, start), ""]
    return list(estimated(text, {}).unresolved)


@pytest.mark.parametrize(
    "tests",
    [
        (
            "%p3_p3 = scmp.ne.s32.totalorder %s6_s6, 0",
            "%p4_p4 = scmp.ne.s32.totalorder %s7_s7, 0",
            "%p8_p8 = pxor %p3_p3, %p4_p4",
        ),
        (
            "%s6_s6 = sshrl.u32 %s6_s6, 16",
            "%s7_s7 = sshrl.u32 %s7_s7, 16",
            "%p8_p8 = scmp.ne.s32.totalorder %s6_s6, %s7_s7",
        ),
        ("%p8_p8 = scmp.ne.s32.totalorder %s6_s6, %s7_s7",),
        ("%p8_p8 = scmp.eq.s32.totalorder %s6_s6, 41",),
        ("%p8_p8 = scmp.eq.s32.totalorder %s6_s6, 1",),
    ],
    ids=["truth values", "halves of words", "two names", "a number", "one"],
)
def test_a_guess_is_told_whatever_it_is_tested_for(tests: tuple[str, ...]) -> None:
    told = guessed(*tests)
    assert told
    assert all(name.startswith("SMEM") for name in told)


def test_of_two_guesses_the_one_that_matters_is_told() -> None:
    harmless = "%s3_s3 = sld [smem:[#allocation7]] ;; %p3_p3 = scmp.ge.s32.totalorder %s3_s3, 1"
    skips = [harmless, *LOADED, "%p4_p4 = por %p1_p0, %p3_p3", branch(10, "(%p1_p0)"), *[""] * 4]
    both = "%5 = sst [smem:[#allocation8]] (%p4_p4), %s3_s3 ;; %s6_s6 = sld [smem:[#allocation8]]"
    (name,) = estimated([*skips, both, ""], {}).unresolved
    assert "#allocation3" in name


def test_an_unknown_instruction_is_told() -> None:
    found = estimated(["%1 = sdance 1", ""], {})
    assert found.unresolved == {"the instruction sdance at bundle 0x0": 1}


def test_a_program_without_an_end_is_counted_once_and_says_so() -> None:
    bundles = [*LOADED, branch(0, "(!%p1_p0)"), *[""] * 4, ""]
    found = estimated(bundles, {})
    assert found.given_up.startswith("its end hangs on values that are not known")
    assert found.cycles == len(bundles)
    assert found.unresolved


@pytest.mark.parametrize("guesses", [[], [*LOADED, "%5 = sst [smem:[#allocation4]] %s1_s1"]])
def test_a_program_whose_end_is_not_reached_has_no_time(
    guesses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pallas_rungs.performance.machine.MOST_BLOCKS_AFTER_A_GUESS", 30_000)
    start = len(guesses)
    bundles = [*guesses, "", branch(start), *[""] * 4, ""]
    program = KernelProgram("sample", listing(*bundles), clock_of("v5e"))
    program.cores = (program.executed(most_blocks=30_000),)
    first, last = (f"{number:#x}" for number in (start, start + 5))
    said = rf"^sample was executed for 30,000 blocks.* at bundles {first} to {last},"
    with pytest.raises(TooLongError, match=said) as error:
        program.estimate()
    assert "not known: estimate it with two smaller numbers of rounds" in error.value.why
    assert error.value.name == "sample"


@pytest.mark.parametrize("end", [1, 41])
def test_an_end_that_a_value_of_a_guess_brings_about_hangs_on_it(
    end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pallas_rungs.performance.machine.MOST_BLOCKS_AFTER_A_GUESS", 30_000)
    test = f"%p1_p0 = scmp.eq.s32.totalorder %s1_s1, {end}"
    found = estimated([LOADED[0], test, branch(0, "(!%p1_p0)"), *[""] * 4, ""], {})
    assert found.given_up.startswith("its end hangs on values that are not known")
    assert found.unresolved


@pytest.mark.parametrize("name", ["MXU", "MATMUL"])
def test_columns_are_read_by_the_tables_own_header(name: str) -> None:
    bundles = [*loop(10, MATMUL), ""]
    other = table({2: "1 36"}, len(bundles), f"SALU, {name}", "2 4")
    found = KernelProgram("sample", listing(*bundles), clock_of("v5e"), other).estimate()
    assert found.occupancy["MXU"] == 360 / (4 * found.cycles)


def test_without_a_table_the_bound_is_not_known() -> None:
    found = KernelProgram("sample", listing(*loop(2), ""), clock_of("v5e")).estimate()
    assert found.occupancy == {"HBM": 0}
    assert found.bound.startswith("unknown")


def test_a_table_of_another_length_is_refused() -> None:
    with pytest.raises(IRError, match="sample, utilization: expected a row for each of the 2"):
        KernelProgram("sample", listing("", ""), clock_of("v5e"), table({}, 3))


def test_a_listing_of_another_form_is_refused_with_its_line() -> None:
    with pytest.raises(IRError, match="sample, packed bundles, line 2: expected the bundle 0x1"):
        KernelProgram("sample", listing("", "").replace("0x1", "0x7"), clock_of("v5e"))


@pytest.mark.parametrize("chip", CLOCKS)
def test_every_constant_has_a_source(chip: str) -> None:
    constants = clock_of(chip).constants()
    assert len(constants) == 9
    for constant in constants.values():
        assert any(it in constant.source for it in ("data sheet", "compiler", "fitted", "assumed"))
        assert str(constant).startswith(f"{constant.value:g} {constant.unit} (")


def test_a_chip_without_constants_is_refused_with_those_that_have_some() -> None:
    with pytest.raises(ValueError, match="on v2; the chips that can be estimated are v5e, v6e"):
        clock_of("v2")
    with pytest.raises(ValueError, match="unknown chip 'v9'; the chips that can be estimated are"):
        clock_of("v9")
