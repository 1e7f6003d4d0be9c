"""Reading PTX and SASS: heads, instructions, kinds, and what is told of a text that is neither."""

import pytest

from pallas_rungs.ir import ptx, sass
from pallas_rungs.ir.errors import IRError

PTX = """//
.version 9.0
.target sm_90a
.address_size 64

.visible .entry kernel(
    .param .u64 .ptr .global kernel_param_0 // bra nowhere;
)
.maxntid 64, 2, 1
{
    .reg .pred  %p<3>;
    .reg .b32   %r<12>;
    .shared .align 16 .b8 buffer[64];
$L__func_begin0:
    .loc    1 73 0
    ld.param::entry.b64     %rd1, [kernel_param_0];
    ld.global.v2.b32    {%r1, %r2}, [%rd1];
    ld.v2.b32   {%r3, %r4}, [%rd2];
    ld.shared.b32 %r5, [buffer];
    // begin inline asm
    { .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
      {%r1,%r2}, %rd3, %rd4, p, 1; }
    // end inline asm
    @%p1 cp.async.bulk.tensor.4d.shared::cta.global [%r5], [%rd1], [%r2];
    @!%p2 bra   $L__BB0_2;
{
    cp.async.cg.shared.global [ %r7 + 0 ], [ %rd5 + 0 ], 0x10, %p1;
    cp.async.commit_group;
}
$L__BB0_2:
    max.NaN.f32 %r1, %r1, %r2;
    ex2.approx.ftz.f32 %r1, %r1;
    ret;
}
.section .debug_info
{
    .b32 8
}
"""

SASS = """
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */
   -:-:1:Y:07        /*0010*/                   @!P0 UTMALDG.2D [UR8], [UR4]
        /*0020*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4].tnspB, R24 ;
        /*0030*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0040*/                   LD.E.64 R4, [R2] ;
        /*0050*/                   STL.64 [R1], R4 ;
        /*0060*/                   FADD R1, R2, R3 ;
        /*0070*/                   EXIT ;
"""


def test_the_head_of_a_ptx_module_is_read() -> None:
    found = ptx.parsed(PTX)
    assert (found.name, found.version, found.target) == ("kernel", "9.0", "sm_90a")
    assert found.threads == 128
    assert found.registers == {"pred": 3, "b32": 12}
    assert ptx.parsed(PTX.replace(".maxntid 64, 2, 1\n", "")).threads == 0


def test_ptx_instructions_are_counted_with_those_of_inline_assembly() -> None:
    found = ptx.parsed(PTX)
    assert found.instructions["wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"] == 1
    assert found.instructions["setp.ne.b32"] == 1
    assert found.instructions["bra"] == 1
    assert sum(found.instructions.values()) == 13
    assert found.kinds == {
        "arithmetic and moves": 3,
        "asynchronous copy": 1,
        "control": 2,
        "copy engine": 1,
        "global memory": 1,
        "memory of any kind": 1,
        "shared memory": 1,
        "special function": 1,
        "tensor core": 1,
        "wait or order": 1,
    }
    assert found.of_kind("special function") == {"ex2.approx.ftz.f32": 1}
    assert str(found).startswith("kernel: PTX 9.0 for sm_90a\n  instructions: arithmetic")


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tensor core"),
        ("wgmma.commit_group.sync.aligned", "wait or order"),
        ("tcgen05.mma.cta_group::1.kind::f16", "tensor core"),
        ("tcgen05.commit.cta_group::1.b64", "wait or order"),
        ("tcgen05.ld.sync.aligned.16x256b.x8.b32", "tensor memory"),
        ("ld.param.b64", "arithmetic and moves"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "shared memory"),
        ("barrier.sync", "wait or order"),
        ("mad.lo.s32", "arithmetic and moves"),
    ],
)
def test_the_longest_beginning_of_a_name_decides_its_kind(instruction: str, kind: str) -> None:
    assert ptx.kind_of(instruction) == kind


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (PTX.replace(".version 9.0", ""), r"line 1: expected a line \.version"),
        (PTX.replace(".target sm_90a", ""), r"expected a line \.target"),
        (PTX.replace(".visible .entry", ".visible .func"), r"expected a line \.entry"),
        (PTX + PTX, r"expected one kernel, found 2 lines with \.entry"),
        (PTX[: PTX.index("{")], "expected a body in braces"),
        (PTX[: PTX.index("max.NaN")], "expected a body in braces"),
        (PTX.replace("    ret;", "    0xBAD;"), "line 33: expected an instruction, found '0xBAD'"),
    ],
)
def test_a_text_that_is_no_ptx_is_told_where(text: str, complaint: str) -> None:
    with pytest.raises(IRError, match=complaint):
        ptx.parsed(text)


def test_machine_code_is_read_with_its_modifiers_and_predicates() -> None:
    found = sass.parsed(SASS)
    assert [it.address for it in found.instructions] == list(range(0, 0x80, 0x10))
    copy, product = found.instructions[1:3]
    assert (copy.predicate, copy.opcode, copy.operands) == ("@!P0", "UTMALDG.2D", "[UR8], [UR4]")
    assert (product.opcode, product.name) == ("HGMMA.64x128x16.F32", "HGMMA")
    assert str(copy) == "@!P0 UTMALDG.2D [UR8], [UR4]"
    assert found.kinds == {
        "arithmetic and moves": 2,
        "control": 1,
        "copy engine": 1,
        "global memory": 1,
        "memory of any kind": 1,
        "stack": 1,
        "tensor core": 1,
    }
    assert found.of_kind("tensor core") == (product,)
    assert "tensor core 1" in str(found)


def test_a_text_that_is_no_machine_code_is_told_where() -> None:
    with pytest.raises(IRError, match="machine code: expected lines of nvdisasm"):
        sass.parsed("nvdisasm fatal")
    with pytest.raises(IRError, match="line 11: expected an address above 0x70, found 0x0"):
        sass.parsed(SASS + SASS[SASS.index("        /*0000") :])


LOOPS = """
.text.kernel:
.L_x_1:
        /*0000*/                   MOV R1, R2 ;
.L_x_2:
.L_x_3:
        /*0010*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], R24 ;
        /*0020*/               @!P2 BRA `(.L_x_5) ;
.L_x_4:
   -:-:1:Y:07        /*0030*/                   @P0 BRA `(.L_x_3) ;
        /*0040*/               @P1 BRA `(.L_x_1) ;
        /*0050*/                   EXIT ;
.L_x_5:
        /*0060*/               @!P2 BRA `(.L_x_5) ;
        /*0070*/                   BRA `(.L_x_4) ;
.L_x_6:
        /*0080*/                   BRA `(.L_x_6) ;
"""


def test_loops_are_closed_by_a_conditional_branch_back() -> None:
    found = [[it.address for it in loop.instructions] for loop in sass.loops(LOOPS)]
    assert found == [[0, 0x10, 0x20, 0x30, 0x40], [0x10, 0x20, 0x30]]
    assert sass.loops(SASS) == ()


def test_a_branch_to_a_label_that_is_not_there_is_told() -> None:
    with pytest.raises(IRError, match=r"L_x_3"):
        sass.loops(LOOPS.replace(".L_x_3:\n", ""))
