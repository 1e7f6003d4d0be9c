"""The windows that libtpu remarks beside the copies of XLA's programs."""

import pytest

from pallas_rungs.ir.bundles import read_listing
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.window_copies import WindowCopy, window_copies

REMARK = """/*
base_bounds: (2, 1024, 64)
dynamic_base_bounds: (2, 1024, 60)
window_bounds: (1, 1024, 1)
iteration_bounds: (64, 64, 2, 1, 1)
strides: (1, 1024, 1)
element_size_in_bytes: 4096
second_minor_factor: 1 */"""

SMALL = REMARK.replace("1024, 1)", "16, 1)")

LISTING = f"""
     0   :  {{ %s1_s0 = smov 0 }}
   0x1 LB: > {{ %p4_p1 = scmp.lt.s32.totalorder %s2_s1, 8192  ;;  %s3_s2 = sadd.s32 1, %s1_s0 }}
   0x2   : > {{ %5 = dma.hbm_to_vmem [thread:$0]  (%p4_p1), %s7_s3, 131072, %s8_s4 {REMARK} }}
   0x3   : > {{ %6 = dma.vmem_to_hbm [thread:$0]  %s9_s5, 2048 {SMALL} }}
   0x4   : > {{ %7 = dma.done.wait %s9_s5, 2048 }}
"""


def copies(text: str) -> tuple[WindowCopy, ...]:
    return window_copies(read_listing(text, "program"), "program")


def test_a_copy_has_its_array_window_grid_and_condition() -> None:
    read, written = copies(LISTING)
    assert read == WindowCopy(
        "dma.hbm_to_vmem",
        (2, 1024, 64),
        (1, 1024, 1),
        (64, 64, 2, 1, 1),
        4096,
        "scmp.lt.s32.totalorder %s2_s1, 8192",
    )
    assert read.window_bytes == 4 << 20
    assert read.moved_bytes == 8192 * (4 << 20)
    assert read.at_each_step
    assert written.window == (1, 16, 1)
    assert (written.condition, written.at_each_step) == ("", True)


def test_a_condition_that_is_not_the_end_of_the_grid_is_told() -> None:
    (sooner, _) = copies(LISTING.replace("%s2_s1, 8192", "%s2_s1, 8191"))
    assert not sooner.at_each_step
    (changed, _) = copies(LISTING.replace("scmp.lt.s32.totalorder %s2_s1", "scmp.ne.s32 %s2_s1"))
    assert not changed.at_each_step


def test_a_condition_that_no_single_instruction_makes_is_only_named() -> None:
    (read, _) = copies(LISTING.replace("%s3_s2 = sadd.s32 1, %s1_s0", "%p4_p1 = pmov 1"))
    assert (read.condition, read.at_each_step) == ("%p: %p4_p1", False)
    (read, _) = copies(LISTING.replace("(%p4_p1)", "(!%p4_p1)"))
    assert (read.condition, read.at_each_step) == ("%p: !%p4_p1", False)


def test_copies_without_a_window_are_left_out() -> None:
    assert copies(LISTING.replace("\nwindow_bounds", "\nother_bounds")) == ()


@pytest.mark.parametrize("key", ["base_bounds", "iteration_bounds", "element_size_in_bytes"])
def test_half_a_remark_is_refused_with_its_line(key: str) -> None:
    with pytest.raises(IRError, match=rf"program, line 4: expected {key} in the remark on dma"):
        copies(LISTING.replace(f"\n{key}", "\nnothing"))
