"""The scalar interpreter: counts of blocks, 32 bits, predicates, and guesses with a name."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pallas_rungs.performance.interpreter import wrapped
from pallas_rungs.performance.machine import MOST_BLOCKS_AFTER_A_GUESS
from unit.performance.listings import (
    READ,
    SLOTS,
    branch,
    computed,
    loop,
    program,
    ran,
    stored,
)


@pytest.mark.parametrize("chip", SLOTS)
@pytest.mark.parametrize("limit", [1, 2, 514])
def test_a_loop_is_counted_and_its_bundles_are_cycles(chip: str, limit: int) -> None:
    slots = SLOTS[chip]
    machine = ran(*loop(limit, slots=slots), "", chip=chip)
    assert machine.counts == [1, limit, 1]
    assert machine.time == 1 + limit * (4 + slots) + 1


def test_delay_slots_are_executed_whether_the_branch_is_taken_or_not() -> None:
    for taken in (0, 1):
        machine = ran(
            f"%p1_p0 = pmov {taken} ;; %s1_s1 = smov 5",
            branch(7, "(%p1_p0)"),
            "%s2_s1 = sadd.s32 1, %s1_s1",
            "",
            "",
            "",
            "%s3_s1 = sadd.s32 10, %s2_s1",
            "%5 = sst [smem:[#allocation1]] %s3_s1",
            READ,
        )
        assert stored(machine) == (6 if taken else 16)
        assert machine.time == (8 if taken else 9)


def test_a_predicated_region_is_skipped_where_its_branch_is_taken() -> None:
    # Every third trip passes through the region: trips 0, 3, 6, 9.
    region = [
        "%s10_s4 = smul.u32 3, %s11_s5",
        "%p10_p1 = scmp.ne.s32.totalorder %s10_s4, %s2_s0",
        branch(10, "(%p10_p1)"),
        *[""] * 4,
        "%s11_s5 = sadd.s32 1, %s11_s5",
    ]
    machine = ran(*loop(10, *region), "")
    assert machine.counts == [1, 10, 4, 10, 1]


def test_everything_in_a_bundle_reads_before_anything_writes() -> None:
    machine = ran(
        "%s1_s1 = smov 1 ;; %s2_s2 = smov 2",
        "%s3_s1 = smov %s2_s2 ;; %s4_s2 = smov %s1_s1 ;; %6 = sst [smem:[#allocation1]] %s1_s1",
        "%7 = sst [smem:[#allocation1 + $0x1]] %s3_s1 ;; %8 = sst [smem:[#allocation1 + $0x2]] "
        "%s4_s2",
        READ,
    )
    assert [stored(machine, offset=offset) for offset in range(3)] == [1, 2, 1]


def test_a_load_beside_a_store_reads_what_was_there() -> None:
    machine = ran(
        "%s1_s1 = smov 1 ;; %s2_s2 = smov 2",
        "%3 = sst [smem:[#allocation1]] %s1_s1",
        "%4 = sst [smem:[#allocation1]] %s2_s2 ;; %s5_s5 = sld [smem:[#allocation1]]",
        "%6 = sst [smem:[#allocation2]] %s5_s5",
        "%s7_s7 = sld [smem:[#allocation2]]",
    )
    assert (stored(machine, 1), stored(machine, 2)) == (2, 1)


def test_a_predicated_write_keeps_the_register() -> None:
    for held, want in ((0, 3), (1, 7)):
        machine = ran(
            f"%s1_s1 = smov 3 ;; %p1_p0 = pmov {held}",
            "%s2_s1 = smov (%p1_p0, %s1_s1), 7",
            "%5 = sst [smem:[#allocation1]] %s2_s1",
            READ,
        )
        assert stored(machine) == want


LARGEST, SMALLEST = 0x7FFFFFFF, -0x80000000


@pytest.mark.parametrize(
    ("instruction", "values", "want"),
    [
        ("sadd.s32 %a, %b", (LARGEST, 1), SMALLEST),
        ("sadd.s32 4294967295, %a", (10,), 9),
        ("ssub.s32 %a, %b", (SMALLEST, 1), LARGEST),
        ("smul.u32 %a, %b", (0x10001, 0x10001), 0x20001),
        ("smulhi.u32 %a, %b", (-1, 2), 1),
        ("sshll.u32 %a, 31", (3,), SMALLEST),
        ("sshll.u32 %a, %b", (3, 40), 0),
        ("sshrl.u32 %a, 28", (-1,), 15),
        ("sshra.s32 %a, 28", (-1,), -1),
        ("sand.u32 1, %a", (-1,), 1),
        ("sor.u32 %a, %b", (SMALLEST, 1), SMALLEST + 1),
        ("sxor.u32 %a, %b", (-1, 1), -2),
        ("smin.s32 %a, %b", (-1, 1), -1),
        ("smin.u32 %a, %b", (-1, 1), 1),
        ("smax.u32 %a, %b", (-1, 1), -1),
        ("scalar_lea.vmem %a, 3", (LARGEST,), SMALLEST + 2),
        ("scalar_lea.sflag %a, %b", (5, 6), 11),
    ],
)
def test_arithmetic_is_that_of_32_bits(
    instruction: str, values: tuple[int, ...], want: int
) -> None:
    assert computed(instruction, *values) == want == wrapped(want)


@pytest.mark.parametrize(
    ("comparison", "values", "want"),
    [
        ("lt.s32", (-1, 1), True),
        ("lt.u32", (-1, 1), False),
        ("ge.u32", (-1, 1), True),
        ("le.s32", (1, 1), True),
        ("gt.s32", (1, 1), False),
        ("eq.s32", (-1, 4294967295), True),
        ("ne.s32", (1, 2), True),
    ],
)
def test_comparisons_are_signed_or_not(
    comparison: str, values: tuple[int, int], want: bool
) -> None:
    machine = ran(
        f"%s1_s1 = smov {values[0] & 0xFFFFFFFF} ;; %s2_s2 = smov {values[1]}",
        f"%p1_p0 = scmp.{comparison}.totalorder %s1_s1, %s2_s2",
        "%s3_s3 = scalar_select /*predicate=*/%p1_p0, /*on_true=*/1, /*on_false=*/0",
        "%5 = sst [smem:[#allocation1]] %s3_s3",
        READ,
    )
    assert stored(machine) == want


@pytest.mark.parametrize(
    ("logic", "table"),
    [
        ("pand", (0, 0, 0, 1)),
        ("por", (0, 1, 1, 1)),
        ("pnand", (1, 1, 1, 0)),
        ("pnor", (1, 0, 0, 0)),
        ("pxor", (0, 1, 1, 0)),
    ],
)
def test_predicates_are_combined(logic: str, table: tuple[int, ...]) -> None:
    for row, want in enumerate(table):
        machine = ran(
            f"%p1_p1 = pmov {row >> 1} ;; %p2_p2 = pmov {row & 1}",
            f"%p3_p3 = {logic} %p1_p1, %p2_p2",
            "%s3_s3 = scalar_select /*predicate=*/%p3_p3, /*on_true=*/1, /*on_false=*/0",
            "%5 = sst [smem:[#allocation1]] %s3_s3",
            READ,
        )
        assert stored(machine) == want


def test_quotient_and_remainder_are_popped_in_this_order() -> None:
    machine = ran(
        "%s1_s1 = smov 20",
        "%2 = sdivrem.u32 %s1_s1, 6 /* kDivAndRem */",
        "%s3_s3 = spop.drf %2",
        "%s4_s4 = spop.drf %2",
        "%5 = sst [smem:[#allocation1]] %s3_s3 ;; %6 = sst [smem:[#allocation1 + $0x1]] %s4_s4",
        READ,
    )
    assert (stored(machine), stored(machine, offset=1)) == (3, 2)


def test_a_remainder_is_popped_after_a_quotient_that_nothing_uses() -> None:
    machine = ran(
        "%s1_s1 = smov 20",
        "%2 = sdivrem.u32 %s1_s1, 6 /* kDivAndRem */",
        "%s3_s3 = spop.drf %2",
        "%s4_s4 = spop.drf %2",
        "%5 = sst [smem:[#allocation1]] %s4_s4",
        READ,
    )
    assert stored(machine) == 2


def bits(value: float) -> int:
    """The word of a float32."""
    (word,) = struct.unpack("<i", struct.pack("<f", value))
    return int(word)


@pytest.mark.parametrize(
    ("expression", "values", "want"),
    [
        ("sfloor.f32 %a", (-2.5,), bits(-3.0)),
        ("sceil.f32 %a", (-2.5,), bits(-2.0)),
        ("sceil.f32 %a", (float("inf"),), bits(float("inf"))),
        ("sadd.f32 -1.5, %a", (4.0,), bits(2.5)),
        ("ssub.f32 %a, %b", (4.0, 0.5), bits(3.5)),
        ("smul.f32 %a, %b", (0.1, 3.0), bits(float(np.float32(0.1) * np.float32(3.0)))),
        ("smul.f32 %a, 1e+38", (1e38,), bits(float("inf"))),
        ("sadd.f32 -1.1754944e-38, %a", (1.0,), bits(1.0)),
        ("scvt.f32.s32 %a", (-7.0,), -7),
    ],
)
def test_a_scalar_float_is_computed(expression: str, values: tuple[float, ...], want: int) -> None:
    assert computed(expression, *map(bits, values)) == want


@pytest.mark.parametrize("value", [2.5, 3e9, float("nan")])
def test_a_float_that_is_no_whole_number_is_a_guess_with_a_name(value: float) -> None:
    text = ["%s2_s2 = scvt.f32.s32 %s1_s1", "%5 = sst [smem:[#allocation1]] %s2_s2", READ]
    machine = ran(f"%s1_s1 = smov {bits(value) & 0xFFFFFFFF}", *text)
    assert list(+machine.unresolved) == ["how bundle 0x1 rounds a number to a whole one"]


def test_a_quotient_waits_in_its_queue_while_its_operands_are_overwritten() -> None:
    machine = ran(
        "%s1_s1 = smov 20",
        "%2 = sdivrem.u32 %s1_s1, 6 /* kDiv */",
        "%s3_s1 = smov 0",
        "%s4_s4 = spop.drf %2",
        "%5 = sst [smem:[#allocation1]] %s4_s4",
        READ,
    )
    assert stored(machine) == 3


def test_a_semaphore_is_read() -> None:
    transfer = (
        "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s1, /*size_in_granules=*/8, "
        "/*vmem=*/%s2_s2, /*dst_syncflagno=*/[#allocation4]"
    )
    for delay, want in ((0, 2), (3000, 10)):
        machine = ran(
            f"%6 = vsyncadd [#allocation4], 2 ;; {transfer}",
            *[""] * delay,
            "%87 = vsyncmov [#allocation4]",
            "%s88_s16 = vpop.sfrf %87",
            "%5 = sst [smem:[#allocation1]] %s88_s16",
            READ,
        )
        assert not +machine.unresolved
        assert stored(machine, 2) == want


def test_a_cast_is_another_name_and_a_cast_to_another_register_a_move() -> None:
    machine = ran(
        "%s1_s1 = smov 5",
        "%s2_s1 = int_to_ptr.hbm [resolvable:$true] %s1_s1",
        "%s3_s3 = int_to_ptr.hbm [resolvable:$true] %s2_s1",
        "%5 = sst [smem:[#allocation1]] %s3_s3",
        READ,
    )
    assert stored(machine) == 5
    assert not +machine.unresolved


@pytest.mark.parametrize(
    ("instruction", "named"),
    [
        ("%s1_s1 = sfrobnicate 1, 2", "sfrobnicate at bundle 0x0"),
        ("%s1_s1 = vpop.sfrf %77", "vpop.sfrf at bundle 0x0: a value that the vector unit"),
        ("%s1_s1 = vmystery %v1_v1", "vmystery at bundle 0x0: the operand '%v1_v1' is no scalar"),
        ("%s1_s1 = spop %77", "spop at bundle 0x0: a value that the vector unit computes"),
        ("%s1_s1 = sld [smem:[#allocation3]]", "SMEM [smem:[#allocation3]], which nothing wrote"),
        ("%s1_s1 = sdiv.f32 %s1_s1, 1.5", "sdiv.f32 at bundle 0x0: the operand '1.5'"),
        ("%s1_s1 = smov %v1_v1", "the operand '%v1_v1' is no scalar register"),
    ],
)
def test_what_is_not_understood_is_guessed_by_name(instruction: str, named: str) -> None:
    machine = ran(
        instruction,
        "%p1_p0 = scmp.eq.s32.totalorder %s1_s1, 0",
        branch(0, "(!%p1_p0)"),
        *[""] * 4,
    )
    (name,) = +machine.unresolved
    assert named in name
    assert machine.counts == [1]


def test_an_unknown_effect_is_named_and_lets_no_time_pass() -> None:
    moon = "%2 = dma.hbm_to_moon /*hbm=*/1, /*size_in_granules=*/4, /*dst_syncflagno=*/2"
    machine = ran("%1 = vwait.le [#allocation1], 4", moon)
    assert len(+machine.unresolved) == 2
    assert machine.time == 2


def test_an_endless_loop_is_given_up_soon_after_a_guess() -> None:
    machine = ran(
        "%s1_s1 = sld [smem:[#allocation3]]",
        "%p1_p0 = scmp.eq.s32.totalorder %s1_s1, 0",
        branch(0, "(%p1_p0)"),
        *[""] * 4,
    )
    assert machine.endless
    assert sum(machine.counts) == MOST_BLOCKS_AFTER_A_GUESS


def test_an_endless_loop_without_a_guess_is_given_up_too() -> None:
    machine = ran(branch(0), *[""] * 4, most_blocks=40_000)
    assert machine.endless
    assert machine.counts == [40_000]


def test_brackets_after_an_operand_are_a_remark_and_no_addend() -> None:
    machine = ran(
        "%s1_s1 = scalar_lea.smem [#allocation5], 3 ;; %s4_s4 = smov 7",
        "%s2_s2 = scalar_lea.smem %s1_s1, 1 [#allocation5]",
        "%5 = sst [smem:[%s2_s2]] %s4_s4",
        "%s3_s3 = sld [smem:[#allocation5 + $0x4]]",
        "%6 = sst [smem:[#allocation6]] %s3_s3 ;; %s7_s7 = sld [smem:[#allocation6]]",
    )
    assert stored(machine, 1, 4) == 7
    assert "#allocation5" not in str(machine.unresolved)


def test_an_operand_without_memory_is_its_value() -> None:
    text = "%s1_s1 = inlined_call_operand.<no memory space> [shape: s32[1], index: 2, kind: input]"
    store = ["%5 = sst [smem:[#allocation1]] %s1_s1", READ]
    assert stored(ran(text, *store, operands={2: [41]})) == 41
    machine = ran(text, *store)
    assert dict(+machine.unresolved) == {"values of operand 2": 1}


CORE = "%s1_s1 = sld [smem:[#allocation0]] /* megacore core id :: core id */"


@pytest.mark.parametrize("core", [0, 1])
def test_a_core_reads_which_one_it_is(core: int) -> None:
    machine = ran(CORE, "%5 = sst [smem:[#allocation1]] %s1_s1", READ, core=core)
    assert stored(machine) == core
    assert not +machine.unresolved


def test_a_core_reads_again_what_it_put_away_under_the_remark_of_its_number() -> None:
    machine = ran(
        CORE,
        "%2 = sst [smem:[#allocation2_spill]] %s1_s1",
        "%s3_s3 = sld [smem:[#allocation2_spill]] /* megacore core id :: core id */",
        "%4 = sst [smem:[#allocation1]] %s3_s3",
        READ,
        core=1,
    )
    assert stored(machine, allocation=2) == 1
    assert not +machine.unresolved


def test_a_call_runs_the_program_that_its_remark_names() -> None:
    called = []

    def call(_: object, name: str, now: float) -> float:
        called.append((name, now))
        return now + 100

    text = "%1 = inlined_call %s1_s1 /* %softmax.1 = custom-call(%x_ref.1) */"
    machine = ran("", text, "", call=call)
    assert called == [("softmax.1", 1.0)]
    assert machine.time == 103
    assert machine.called == {"softmax.1": 1}


def test_runs_of_one_program_are_the_same() -> None:
    bundles = [*loop(100), ""]
    assert ran(*bundles).counts == ran(*bundles).counts
    assert len(program(*bundles).blocks) == 3
