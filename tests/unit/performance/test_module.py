"""The estimate of a module, on HLO and listings written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.launches import read_launches
from pallas_rungs.performance.clock import clock_of
from pallas_rungs.performance.kernel import KernelProgram, TooLongError
from pallas_rungs.performance.module import Module, ModuleEstimate, estimate_module
from pallas_rungs.performance.operands import KernelOperands
from unit.performance.listings import branch, listing

HLO = """\
HloModule jit_call, is_scheduled=true

%body (a: (s32[], f32[8,128])) -> (s32[], f32[8,128]) {
  %a = (s32[], f32[8,128]{1,0}) parameter(0)
  %x = f32[8,128]{1,0} get-tuple-element(%a), index=1
  %fusion.2 = f32[8,128]{1,0} fusion(%x), kind=kLoop, calls=%fused, metadata={op_name="two"}
  ROOT %tuple.1 = (s32[], f32[8,128]{1,0}) tuple(%n, %fusion.2)
}

%cond (b: (s32[], f32[8,128])) -> pred[] {
  %b = (s32[], f32[8,128]{1,0}) parameter(0)
}

%fused (p: f32[8,128]) -> f32[8,128] {
  %p = f32[8,128]{1,0} parameter(0)
  ROOT %tanh.1 = f32[8,128]{1,0} tanh(%p)
}

ENTRY %main.2 (x_ref: f32[8,128]) -> f32[8,128] {
  %x_ref = f32[8,128]{1,0} parameter(0)
  %fusion.1 = f32[8,128]{1,0} fusion(%x_ref), kind=kLoop, calls=%fused
  %softmax.1 = f32[8,128]{1,0} custom-call(%fusion.1), custom_call_target="tpu_custom_call", \
backend_config={"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"4096"}]}
  %while.1 = (s32[], f32[8,128]{1,0}) while(%softmax.1), condition=%cond, body=%body, \
backend_config={"known_trip_count":{"n":"7"}}
  ROOT %y = f32[8,128]{1,0} get-tuple-element(%while.1), index=1
}
"""
CALL = "%{0} = inlined_call /* %{1} = something(%x) */"
KERNELS = {"fusion.1": listing(*[""] * 10), "softmax.1": listing(*[""] * 100)}
TOP = [
    "%1 = inlined_call /* <late-initialization> */",
    CALL.format(2, "fusion.1"),
    CALL.format(3, "softmax.1"),
    "%s1_s0 = smov 0",
    "%s2_s0 = sphi %s1_s0, %s3_s0",
    CALL.format(4, "fusion.2"),
    "%s3_s0 = sadd.s32 1, %s2_s0",
    "%p4_p0 = scmp.ge.s32.totalorder %s3_s0, 7",
    branch(4, "(!%p4_p0)"),
    *[""] * 4,
]
TOP_CYCLES = 4 + 7 * 9 + 10 + 100 + 7 * 10


def estimated(
    listings: dict[str, str] | None = None, hlo: str = HLO, chip: str = "v5e"
) -> ModuleEstimate:
    given = {"TLP": listing(*TOP), **KERNELS} if listings is None else listings
    return estimate_module(given, {}, hlo, clock_of(chip))


def test_launches_are_counted_through_loops() -> None:
    launches = read_launches(HLO)
    assert {name: launches[name].times for name in ("fusion.1", "softmax.1", "fusion.2")} == {
        "fusion.1": 1,
        "softmax.1": 1,
        "fusion.2": 7,
    }
    assert launches["softmax.1"].pallas
    assert launches["softmax.1"].vmem_bytes == 4096
    assert launches["fusion.1"].alike == launches["fusion.2"].alike
    assert launches.undecided == ()
    assert launches["softmax.1"].operands == ("f32[8,128]",)
    assert launches["softmax.1"].constants == {}


def test_integer_constants_are_known_operands() -> None:
    constants = (
        "  %constant.7 = s32[]{:T(128)} constant(-9), metadata={}\n"
        "  %constant.8 = f32[] constant(2)\n"
        "  %softmax.1 = f32[8,128]{1,0} custom-call(%fusion.1, %constant.7, %constant.8),"
    )
    hlo = HLO.replace("  %softmax.1 = f32[8,128]{1,0} custom-call(%fusion.1),", constants)
    assert read_launches(hlo)["softmax.1"].constants == {1: -9}
    text = "%s1_s1 = inlined_call_operand.<no memory space> [shape: s32[], index: 1, kind: input]"
    skips = [text, "%p1_p0 = scmp.lt.s32.totalorder %s1_s1, 0", branch(10, "(%p1_p0)")]
    kernel = listing(*skips, *[""] * 9)
    found = estimate_module(
        {"TLP": listing(*TOP), **KERNELS, "softmax.1": kernel}, {}, hlo, clock_of("v5e")
    )
    assert found.kernels[1].cycles == 9
    assert found.unresolved == ()


def test_a_statement_may_go_over_several_lines() -> None:
    broken = HLO.replace(', backend_config={"used', ', frontend={a={\n"b":"c"\n}}, config={"used')
    launches = read_launches(broken)
    assert launches["softmax.1"].vmem_bytes == 4096
    assert launches["softmax.1"].times == launches["fusion.1"].times == 1


COPIES = """\
  %copy-start = (f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0}, u32[]{:S(2)}) copy-start(%x_ref)
  %copy-start.1 = (f32[8,128]{1,0}, f32[8,128]{1,0:S(1)}, u32[]{:S(2)}) copy-start(%copy-done)
  %copy-start.2 = (f32[8,128]{1,0}, f32[8,128]{1,0}, u32[]{:S(2)}) copy-start(%x_ref)
  %slice-start = ((f32[8,128]{1,0}), f32[2,128]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%x_ref)
  %copy-start.3 = (f32[8,128]{1,0:S(1)}, f32[8,128]{1,0}, u32[]{:S(2)}) copy-start(%x_ref), \
cross_program_prefetch_index=0
  %copy-start.4 = (s32[]{:S(6)}, s32[], u32[]{:S(2)}) copy-start(%n)
"""
WITH_COPIES = HLO.replace("  %fusion.1 =", f"{COPIES}  %fusion.1 =").replace(
    "  %fusion.2 =",
    f"{COPIES.splitlines()[0]}\n  %fusion.2 =".replace("copy-start ", "copy-start.5 "),
)


def test_an_asynchronous_copy_moves_what_it_fills_from_and_to_hbm() -> None:
    launches = read_launches(WITH_COPIES)
    size = 8 * 128 * 4
    assert {it.name: it.copied for it in launches.all if any(it.copied)} == {
        "copy-start": (size, 0),
        "copy-start.1": (0, size),
        "copy-start.2": (size, size),
        "slice-start": (size // 4, 0),
        "copy-start.5": (size, 0),
    }
    assert launches["copy-start.5"].times == 7


def test_copies_at_top_level_are_counted_and_their_time_is_named_where_it_is_not_executed() -> None:
    size = 8 * 128 * 4
    found = estimated(dict(KERNELS), WITH_COPIES)
    assert (found.hbm_read_bytes, found.hbm_written_bytes) == (
        2 * size + size // 4 + 7 * size,
        2 * size,
    )
    assert found.cycles == 10 + 100 + 7 * 10
    assert found.unresolved == (
        "the top-level program, which was not dumped",
        "the time of the copies at top level (copy-start, copy-start.1, copy-start.2 and 2 more): "
        "their bytes are counted, and no time, as if other work hid it",
    )
    executed = estimated(hlo=WITH_COPIES)
    assert executed.top_level
    assert (executed.hbm_read_bytes, executed.unresolved) == (0, ())  # its listing starts none


@pytest.mark.parametrize(
    "guess", ["", "%5 = sst [smem:[#allocation6]] %s9_s9 ;; %s9_s9 = spop %77"]
)
def test_a_course_too_long_to_be_followed_is_refused_where_the_hlo_counts_no_trips(
    guess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pallas_rungs.performance.module.MOST_BLOCKS", 40_000)
    monkeypatch.setattr("pallas_rungs.performance.machine.MOST_BLOCKS_AFTER_A_GUESS", 40_000)
    top = [line.replace("%s3_s0, 7", "%s3_s0, 90000") for line in TOP]
    top[9] = guess
    said = r"^the top-level program was executed for 40,000 blocks.* at bundles 0x4 to 0xc,"
    with pytest.raises(TooLongError, match=said):
        estimated({"TLP": listing(*top), **KERNELS}, HLO.replace("known_trip_count", "unheard_of"))
    counted = estimated({"TLP": listing(*top), **KERNELS}, HLO.replace('"7"', '"90000"'))
    assert not counted.top_level
    assert counted.cycles == 10 + 100 + 90_000 * 10
    assert "the end of the top-level program" in counted.unresolved


def test_a_loop_without_a_trip_count_is_named() -> None:
    launches = read_launches(HLO.replace("known_trip_count", "unheard_of"))
    assert launches.undecided == ("trips of the loop while.1, taken as 1",)


def test_fusions_that_compute_otherwise_are_not_alike() -> None:
    other = HLO.replace(
        "fusion(%x), kind=kLoop, calls=%fused", "fusion(%x), kind=kLoop, calls=%cosine"
    ).replace(
        "ENTRY",
        "%cosine (q: f32[8,128]) -> f32[8,128] {\n  %q = f32[8,128]{1,0} parameter(0)\n"
        "  ROOT %cosine.1 = f32[8,128]{1,0} cosine(%q)\n}\n\nENTRY",
    )
    launches = read_launches(other)
    assert launches["fusion.1"].alike != launches["fusion.2"].alike


def prefetching(copied: str, made: str = "{0}{{1,0:T(8,128)S(1)}}") -> str:
    """HLO in which an argument of this type is on the chip before the program starts."""
    copy = (
        f"  %p = {copied}{{1,0:T(8,128)}} parameter(1)\n"
        f"  %copy-start = ({made.format(copied)}, {copied}{{1,0:T(8,128)}}, u32[]{{:S(2)}}) "
        "copy-start(%p), cross_program_prefetch_index=0, backend_config={}\n"
    )
    return HLO.replace("  %softmax.1 =", f"{copy}  %softmax.1 =")


@pytest.mark.parametrize(
    ("copied", "size"),
    [
        ("f32[2048,2048]", 4 * 2048 * 2048),
        ("bf16[1001,1003]", 2 * 1001 * 1003),  # its elements; tiles of (8, 128) pad it
        ("s8[1024,1000]", 1024 * 1000),
        ("s4[1024,1024]", 1024 * 1024 // 2),
        ("pred[8,128]", 8 * 128),
        ("f8e4m3fn[8,128]", 8 * 128),
        ("c64[8,128]", 8 * 8 * 128),
        ("f32[17,33,200]", 4 * 17 * 33 * 200),
        ("f32[]", 4),
    ],
)
def test_what_is_on_the_chip_before_the_start_is_counted_by_its_elements(
    copied: str, size: int
) -> None:
    assert read_launches(prefetching(copied)).prefetched_bytes == size
    found = estimated(hlo=prefetching(copied))
    assert found.prefetched_bytes == size
    plain = estimated()
    assert plain.prefetched_bytes == 0
    assert replace(found, prefetched_bytes=0) == plain  # it changes no other figure


def test_several_arguments_on_the_chip_are_added_and_one_of_a_tuple_counts_alone() -> None:
    both = prefetching("f32[8,128]").replace(
        "  %softmax.1 =",
        "  %t = (f32[64,64]{1,0:T(8,128)}, bf16[16,128]{1,0:T(8,128)(2,1)}) parameter(2)\n"
        "  %q = bf16[16,128]{1,0:T(8,128)(2,1)} get-tuple-element(%t), index=1\n"
        "  %copy-start.1 = (bf16[16,128]{1,0:T(8,128)(2,1)S(3)}, bf16[16,128]{1,0:T(8,128)(2,1)}, "
        "u32[]{:S(2)}) copy-start(%q), cross_program_prefetch_index=1\n"
        "  %softmax.1 =",
    )
    assert read_launches(both).prefetched_bytes == 4 * 8 * 128 + 2 * 16 * 128


def test_a_copy_within_the_program_is_not_counted_as_on_the_chip_before() -> None:
    within = prefetching("f32[8,128]").replace(", cross_program_prefetch_index=0", "")
    assert read_launches(within).prefetched_bytes == 0


@pytest.mark.parametrize(
    "other",
    [
        prefetching("f32[8,128]").replace(" copy-start(", " slice-start("),
        prefetching("f32[8,128]", made="{0}{{1,0:T(8,128)}}"),
        prefetching("f32[8,128]").replace(", u32[]{:S(2)}", ""),
        prefetching("f32[8,128]", made="({0}{{1,0:T(8,128)S(1)}}, {0}{{1,0:T(8,128)S(1)}})"),
    ],
)
def test_a_prefetch_that_is_not_understood_is_refused(other: str) -> None:
    with pytest.raises(IRError, match="expected a cross-program prefetch that copies an array"):
        read_launches(other)


def test_hlo_without_an_entry_is_refused() -> None:
    with pytest.raises(IRError, match="the optimised HLO: expected a line that begins with ENTRY"):
        read_launches("HloModule nothing")
    with pytest.raises(IRError, match="expected a computation %body, found none"):
        read_launches(HLO.replace("%body (", "%other ("))


def test_the_top_level_program_is_executed_with_what_it_calls() -> None:
    found = estimated()
    assert found.top_level
    assert found.cycles == TOP_CYCLES
    assert {kernel.name: kernel.times for kernel in found.kernels} == {
        "fusion.1": 1,
        "softmax.1": 1,
        "fusion.2": 7,  # it has no program of its own: that of fusion.1, which is alike
    }
    assert [kernel.pallas for kernel in found.kernels] == [False, True, False]
    assert found.unresolved == ()


def test_without_the_top_level_program_times_are_added_and_it_is_said() -> None:
    found = estimated(dict(KERNELS))
    assert not found.top_level
    assert found.cycles == 10 + 100 + 7 * 10
    assert found.unresolved == ("the top-level program, which was not dumped",)


def test_a_loop_that_hangs_on_data_is_named_and_counted_by_the_hlo() -> None:
    top = [line.replace("%s3_s0, 7", "%s3_s0, %s9_s9") for line in TOP]
    top[3] = "%s1_s0 = smov 0 ;; %s9_s9 = spop %77"
    found = estimated({"TLP": listing(*top), **KERNELS})
    assert not found.top_level
    assert found.cycles == 10 + 100 + 7 * 10
    assert found.unresolved == (
        "spop at bundle 0x3: a value that the vector unit computes, in the top-level program",
    )


def courses_of(top: list[str], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Estimate a module whose course hangs on a guess; return how far its course was followed."""
    blocks: list[int] = []
    execute = KernelProgram.executed

    def noted(program: KernelProgram, **options: Any) -> Any:
        machine = execute(program, **options)
        if program.name == "TLP":
            blocks.append(sum(machine.counts))
        return machine

    def never(*_: Any) -> float:
        raise AssertionError("what it calls was executed")

    monkeypatch.setattr(KernelProgram, "executed", noted)
    monkeypatch.setattr(Module, "_called", never)
    found = estimated({"TLP": listing(*top), **KERNELS})
    assert not found.top_level
    assert found.cycles == 10 + 100 + 7 * 10
    assert found.unresolved == (
        "spop at bundle 0x7: a value that the vector unit computes, in the top-level program",
    )
    return blocks


def test_a_loop_that_data_end_is_not_followed_far_nor_into_what_it_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    top = [*TOP]
    top[7:9] = ["%p4_p0 = spop %77", branch(4, "(%p4_p0)")]
    most, other = courses_of(top, monkeypatch)
    assert most == 20_000
    assert other < 10


def test_a_loop_that_a_guess_ended_is_held_against_others_no_longer_than_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    top = [*TOP]
    top[7:9] = ["%p4_p0 = spop %77", branch(4, "(!%p4_p0)")]
    first, *others = courses_of(top, monkeypatch)
    assert first < 10
    assert others
    assert max(others) <= first + 1


def test_what_the_top_level_reads_before_its_first_call_is_the_run_times() -> None:
    guarded = [
        "%s5_s5 = sld [smem:[#allocation2]]",
        "%p5_p5 = scmp.ne.s32.totalorder %s5_s5, 1",
        branch(99, "(%p5_p5)"),
        *[""] * 4,
        CALL.format(2, "fusion.1"),
        CALL.format(3, "softmax.1"),
        *[CALL.format(4, "fusion.2")] * 7,
    ]
    found = estimated({"TLP": listing(*guarded), **KERNELS})
    assert found.top_level
    assert found.unresolved == ()


def test_a_program_that_the_top_level_skips_is_counted_and_named() -> None:
    top = [line for line in TOP if "softmax.1" not in line]
    top[2] = "%s1_s0 = smov 0"
    top = [line.replace("bundleno = 4", "bundleno = 3") for line in top]
    found = estimated({"TLP": listing(*top), **KERNELS})
    assert not found.top_level
    assert found.cycles == 10 + 100 + 7 * 10
    assert found.unresolved == ("when softmax.1 runs, which the top-level program skips",)


def test_an_unknown_instruction_of_the_top_level_is_named() -> None:
    found = estimated({"TLP": listing(*TOP, "%1 = sdance 1"), **KERNELS})
    assert found.unresolved == ("the instruction sdance at bundle 0xd, in the top-level program",)


def test_a_called_program_that_was_not_dumped_is_named() -> None:
    top = [*TOP, CALL.format(9, "mystery.3")]
    found = estimated({"TLP": listing(*top), **KERNELS})
    assert found.unresolved == ("the program mystery.3, which was not dumped",)


def test_a_dumped_program_that_the_hlo_does_not_name_is_named() -> None:
    found = estimated({"TLP": listing(*TOP), **KERNELS, "stranger": listing("")})
    assert found.unresolved == ("the program stranger, which no instruction of the HLO names",)


READ = (
    "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s1, /*size_in_granules=*/8192, "
    "/*vmem=*/%s2_s2, /*dst_syncflagno=*/[#allocation5]"
)
WAIT = "%4 = dma.done.wait [#allocation5], 8192"


def test_a_copy_at_top_level_shares_hbm_with_the_kernel_that_is_called() -> None:
    kernel = {"fusion.1": listing(READ, WAIT), "softmax.1": listing("")}
    hlo = HLO.replace("while(%softmax.1)", "tuple(%softmax.1)").replace("condition=%cond, ", "")
    alone = [CALL.format(2, "fusion.1"), CALL.format(3, "softmax.1")]
    clock = clock_of("v5e")
    transfer = 8192 * 32 / clock.hbm_bytes_per_cycle
    quiet = estimated({"TLP": listing(*alone), **kernel}, hlo)
    busy = estimated({"TLP": listing(READ, *alone), **kernel}, hlo)
    assert busy.cycles - quiet.cycles == pytest.approx(transfer)
    assert (quiet.hbm_read_bytes, busy.hbm_read_bytes) == (8192 * 32, 2 * 8192 * 32)


CORE = "%s9_s9 = sld [smem:[#allocation0]] /* megacore core id :: core id */"
SKIPS = ["%p1_p0 = scmp.eq.s32.totalorder %s9_s9, {}", branch(11, "(%p1_p0)"), *[""] * 4]


def of_core(core: int, *bundles: str) -> str:
    """A program of eleven bundles in which the other core does nothing."""
    skips = [line.format(1 - core) for line in SKIPS]
    return listing(CORE, *skips, *bundles, *[""] * (4 - len(bundles)))


@pytest.mark.parametrize("core", [0, 1])
def test_bytes_are_those_that_each_core_moves_and_both_wait_for_the_last(core: int) -> None:
    kernel = {"fusion.1": of_core(core, READ), "softmax.1": listing(READ, "")}
    hlo = HLO.replace("while(%softmax.1)", "tuple(%softmax.1)").replace("condition=%cond, ", "")
    calls = [CALL.format(2, "fusion.1"), CALL.format(3, "softmax.1")]
    found = estimated({"TLP": listing(*calls), **kernel}, hlo, chip="v5p")
    assert [it.hbm_read_bytes for it in found.kernels] == [8192 * 32, 2 * 8192 * 32]
    assert found.hbm_read_bytes == 3 * 8192 * 32
    assert found.cycles == 2 + 11 + 2
    first = [CORE, "%p2_p2 = scmp.eq.s32.totalorder %s9_s9, 0"]
    copy = READ.replace("[thread:$0]", "(%p2_p2)")
    copied = estimated({"TLP": listing(*first, copy, *calls), **kernel}, hlo, chip="v5p")
    assert copied.hbm_read_bytes == 4 * 8192 * 32
    assert copied.top_level


def test_a_core_with_less_to_do_waits_for_the_other_before_the_next_kernel() -> None:
    kernel = {"fusion.1": of_core(0), "softmax.1": of_core(1)}
    hlo = HLO.replace("while(%softmax.1)", "tuple(%softmax.1)").replace("condition=%cond, ", "")
    calls = [CALL.format(2, "fusion.1"), CALL.format(3, "softmax.1")]
    assert estimated({"TLP": listing(*calls), **kernel}, hlo, chip="v5p").cycles == 2 + 11 + 11


def test_a_guess_of_a_table_that_is_given_says_that_its_layout_is_not_known() -> None:
    table = "%s1_s1 = inlined_call_operand.<no memory space> [shape: s4[1], index: 0, kind: input]"
    skips = [table, "%p1_p0 = scmp.lt.s32.totalorder %s1_s1, 5", branch(10, "(%p1_p0)"), *[""] * 9]
    listings = {"TLP": listing(*TOP), "fusion.1": listing(""), "softmax.1": listing(*skips)}
    known = (KernelOperands("", ("f32[8,128]",), {}, (0,)),)
    found = estimate_module(listings, {}, HLO, clock_of("v5e"), known)
    assert found.unresolved == (
        "values of operand 0, in softmax.1 "
        "(they are given, but how f32[8,128] lies in SMEM is not known here)",
    )


def test_operands_are_given_to_the_kernel_of_that_name() -> None:
    table = (
        "%s1_s1 = inlined_call_operand.<no memory space> [shape: s32[1], index: 0, kind: input] ;; "
        "%p9_p9 = pmov 0"
    )
    skips = [table, "%p1_p0 = scmp.lt.s32.totalorder %s1_s1, 5", branch(10, "(%p1_p0)"), *[""] * 9]
    listings = {"TLP": listing(*TOP), "fusion.1": listing(""), "softmax.1": listing(*skips)}
    cycles = {}
    for value in (1, 9):
        known = (KernelOperands("", ("f32[8,128]",), {0: (value,)}),)
        found = estimate_module(listings, {}, HLO, clock_of("v5e"), known)
        assert found.unresolved == ()
        cycles[value] = found.kernels[1].cycles
    assert cycles == {1: 9, 9: 12}
    guessed = estimate_module(listings, {}, HLO, clock_of("v5e"))
    assert guessed.unresolved == (
        "values of operand 0, in softmax.1 "
        "(give the argument that they come from as a concrete array)",
    )


DMA = (
    "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s1, /*size_in_granules=*/65536, "
    "/*vmem=*/%s2_s2, /*dst_syncflagno=*/[#allocation5]"
)


@pytest.mark.parametrize("top_level", [True, False])
def test_cycles_with_other_constants_are_those_of_an_estimate_with_them(top_level: bool) -> None:
    waits = listing(
        "%s1_s1 = smov 0", "%s2_s2 = smov 0", DMA, "%4 = dma.done.wait [#allocation5], 65536", ""
    )
    listings = {"TLP": listing(*TOP), **KERNELS, "softmax.1": waits}
    if not top_level:
        del listings["TLP"]
    module = Module(listings, {}, HLO, clock_of("v5e"))
    found = module.estimate()
    assert found.top_level is top_level
    assert module.cycles(found, clock_of("v5e")) == found.cycles
    clock = clock_of("v5e")
    slow = replace(clock, hbm_rate=replace(clock.hbm_rate, value=clock.hbm_rate.value / 2))
    anew = estimate_module(listings, {}, HLO, slow)
    assert module.cycles(found, slow) == anew.cycles
    moved = 65536 * clock.granule.value / clock.hbm_bytes_per_cycle
    assert anew.cycles - found.cycles == pytest.approx(moved)
    assert module.estimate().cycles == found.cycles  # nothing was changed by it
