"""The program model: blocks, delay slots, what has to be executed, what is told by name."""

from __future__ import annotations

import pytest

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.scalar_program import split_operands
from unit.performance.listings import READ, SLOTS, branch, loop, program


@pytest.mark.parametrize("chip", SLOTS)
def test_blocks_end_after_the_delay_slots_of_the_chip(chip: str) -> None:
    found = program(*loop(7, slots=SLOTS[chip]), "", chip=chip)
    after = 1 + 4 + SLOTS[chip]  # phi, add, compare and branch, and the slots
    assert [(block.first, block.end) for block in found.blocks] == [
        (0, 1),
        (1, after),
        (after, after + 1),
    ]
    assert [block.target for block in found.blocks] == [None, 1, None]
    assert found.loops() == ((1, 2),)


def test_a_branch_past_the_last_bundle_leaves_the_program() -> None:
    found = program("%p1_p0 = pmov 1", branch(6, "(%p1_p0)"), "", "", "", "")
    assert found.blocks[0].target == 1 == len(found.blocks)


@pytest.mark.parametrize(
    ("bundles", "what"),
    [
        (["%7 = sbr.rel region = 1", "", "", "", "", ""], "target bundleno"),
        ([branch(0), branch(0), "", "", "", ""], "another branch at 0x1"),
        ([branch(2), "", "", "", "", ""], "a branch's target at 0x2"),
        (["", branch(0), "", ""], "the end of the program at 0x4"),
    ],
)
def test_a_branch_of_another_form_is_refused_with_its_line(bundles: list[str], what: str) -> None:
    with pytest.raises(IRError, match=r"sample, line \d+: expected .*") as error:
        program(*bundles)
    assert what in str(error.value)


def test_only_what_decides_the_course_is_kept() -> None:
    found = program(
        *loop(
            3,
            "%s8_s8 = sadd.s32 %s2_s0, 1 ;; %v1_v0 = vld [vmem:[%s8_s8] sm:$0xff]",
            "%p6_p6 = scmp.ne.s32.totalorder %s8_s8, 4 ;; %9 = shalt.err (!%p6_p6)",
            "%10 = sst [smem:[#allocation9_spill]] %s8_s8",
        )
    )
    kept = [operation.opcode for block in found.blocks for operation in block.operations]
    assert kept == ["smov", "sphi", "sadd.s32", "scmp.ge.s32.totalorder", "sbr.rel"]


def test_a_store_is_kept_where_something_may_read_it() -> None:
    store = "%10 = sst [smem:[#allocation1]] %s1_s0"
    for reader in (READ, "%s4_s4 = scalar_lea.smem [#allocation1], 1"):
        found = program("%s1_s0 = smov 3", store, reader)
        assert "sst" in [operation.opcode for operation in found.blocks[0].operations]


def test_an_instruction_that_nothing_knows_is_named_once_with_its_place() -> None:
    found = program("%1 = sdance 1", "%2 = sdance 2", "%3 = vwhatever %v1_v1", "%4 = sfence")
    assert found.unknown == ("sdance at bundle 0x0",)


def test_a_value_that_nothing_makes_is_named() -> None:
    found = program("%5 = sst [smem:[#allocation1]] %s3_s3", READ)
    assert found.unknown == ("that makes %s3_s3, if there is one",)


def test_operands_are_split_outside_of_brackets() -> None:
    text = " [thread:$0]  (!%p1_p9), %s2_s26, 8192, [#allocation5 + $0x1], 1 [#allocation5]"
    assert split_operands(text) == ["%s2_s26", "8192", "[#allocation5 + $0x1]", "1 [#allocation5]"]
    assert split_operands(" [smem:[#allocation3]] (!%p55_p0)") == ["[smem:[#allocation3]]"]
    assert split_operands(" (%p3426_p0, %s33_s26), 0") == ["0"]
