"""Readers of what libtpu dumps, on samples that libtpu makes here and on broken ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.sharding import AbstractDevice, AbstractMesh

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.dumps import MOSAIC, Dumper, Dumps
from pallas_rungs.ir.bundles import MemoryCopy, read_listing
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.mosaic_passes import Pass, layouts, operations, read_passes, shortened
from pallas_rungs.ir.static_profile import read_static_profile
from pallas_rungs.ir.utilization import read_utilization
from pallas_rungs.ir.vmem_report import SPILL, read_vmem_report
from pallas_rungs.kernels.matmul_scratch import matmul_scratch

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)


@pytest.fixture(scope="module")
def dumps() -> Dumps:
    """A matmul of blocks that spill, compiled for v5e, with all that is read of it."""

    def matmul(x: jax.Array, y: jax.Array) -> Any:
        return matmul_scratch(x, y, block=(256, 512, 256))

    device = AbstractDevice(device_kind="TPU v5 lite", num_cores=1, platform="tpu")
    matrix = jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16)
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        program = export.export(jax.jit(matmul), platforms=["tpu"])(matrix, matrix).serialize()
    kinds = ("packed bundles", "final bundles", "utilization", "static profile", "vmem report")
    with Dumper((*kinds, MOSAIC)) as dumper:
        return dumper.compile(bytes(program), "v5e")


@needs_libtpu
def test_listing_and_utilization_table_count_the_same(dumps: Dumps) -> None:
    listing = read_listing(dumps.text("packed bundles", "matmul"), "matmul")
    table = read_utilization(dumps.text("utilization", "matmul"), "matmul")
    assert len(listing) == len(table.rows)
    stems = listing.stems()
    assert stems["vst"] == table.busy("VSTORE")
    assert stems["vpop"] == table.busy("VPOP")
    assert listing.spills == table.busy("VSTORE:SPILL") > 0
    assert listing.fills == table.busy("VLOAD:FILL") > 0
    assert {i.unit for i in listing.instructions() if i.stem == "vmatmul"} == {
        "mxu0",
        "mxu1",
        "mxu2",
        "mxu3",
    }
    busy_each = table.busy("MXU") / stems["vmatmul"]
    assert busy_each == 16  # a packed product of bfloat16 holds its unit for 16 bundles on v5e


@needs_libtpu
def test_one_loop_holds_the_products_and_its_branch_goes_back(dumps: Dumps) -> None:
    listing = read_listing(dumps.text("packed bundles", "matmul"), "matmul")
    ((first, last),) = listing.loops()
    body = listing.between(first, last + 1)
    assert body.bundles[0].address == first
    assert body.bundles[0].marks == ("LB",)
    assert body.stems()["vmatmul"] == listing.stems()["vmatmul"]
    assert body.stems()["inlined_call_operand"] == 0 < listing.stems()["inlined_call_operand"]
    back = [branch for branch in listing.branches() if branch.back]
    assert [(branch.target, branch.source) for branch in back] == [(first, last)]
    assert {bundle.depth for bundle in listing.bundles} == {0, 1}


@needs_libtpu
def test_final_listing_is_shorter_by_delays_alone(dumps: Dumps) -> None:
    packed = read_listing(dumps.text("packed bundles", "matmul"), "matmul")
    final = read_listing(dumps.text("final bundles", "matmul"), "matmul")
    assert packed.empty > final.empty
    assert final.stems()["vmatmul"] == packed.stems()["vmatmul"]


@needs_libtpu
def test_static_profile_counts_the_listing_once(dumps: Dumps) -> None:
    listing = read_listing(dumps.text("packed bundles", "matmul"), "matmul")
    uses = read_static_profile(dumps.text("static profile", "TLP"), "profile")["matmul.1"]
    products = sum(uses[f"MXU_{n} matmul_packed"].used for n in range(4))
    assert products == listing.stems()["vmatmul"]
    assert uses["VMEM_SPILL_COUNT"].used == listing.spills
    assert uses["VECTOR_STORE"].capacity in {len(listing), len(listing) - 1}


@needs_libtpu
def test_vmem_report_holds_windows_scratch_and_spills(dumps: Dumps) -> None:
    report = read_vmem_report(dumps.text("vmem report", "TLP"), "report")
    pieces = {piece.what: piece for piece in report.allocations["matmul.1"]}
    assert pieces["scratch operand"].size == 256 * 256 * 4
    assert pieces["input window allocation for operator input 0"].size == 2 * 256 * 512 * 2
    listing = read_listing(dumps.text("packed bundles", "matmul"), "matmul")
    assert pieces[SPILL].size == listing.spills * 8 * 128 * 4
    assert report.capacity == 128 * 2**20


@needs_libtpu
def test_passes_are_paired_and_their_operations_counted(dumps: Dumps) -> None:
    passes = {p.name: p for p in read_passes(dumps.mosaic_passes("matmul"), "matmul")}
    assert not passes["specialize-any-memory-space"].changed
    before, after = passes["relayout-insertion"].operations()
    new = after - before
    assert new["mosaic_tc.relayout"] == sum(new.values()) > 0
    diff = passes["relayout-insertion"].diff()
    assert any(mark == "+" and "mosaic_tc.relayout" in line for mark, line in diff.lines)
    assert "mosaic_tc.relayout" in str(diff)
    assert 'class="pr-new"' in diff._repr_html_()
    assert 'aria-label="What relayout-insertion changed"' in diff._repr_html_()


BUNDLES = """     0   :  { %1 = vsyncpa [#a], 0 }
   0x1 LB: > { %s2_s0 = sadd.s32 1, %s1_s0 /* a; b ;; c */  ;;  %v3_v1 = vld [vmem:[#a_spill]] }
   0x2   : > {}
   0x3   : > { %16 = sbr.rel (!%p14_p9) target bundleno = 1 (0x1), region = 2 } /* End } */
"""


def test_small_listing_is_read_slot_by_slot() -> None:
    listing = read_listing(BUNDLES, "small")
    first = listing.bundles[1].instructions[0]
    assert (first.results, first.opcode, first.comment) == (("%s2_s0",), "sadd.s32", "a; b ;; c")
    assert [bundle.line for bundle in listing.bundles] == [1, 2, 3, 4]
    assert (listing.empty, listing.fills, listing.spills) == (1, 1, 0)
    assert listing.loops() == ((1, 3),)
    assert listing.branches()[0].predicate == "!%p14_p9"
    assert str(listing.bundles[0]).startswith("   0x0")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0x2 ", "0x5 ", r"small, line 3: expected the bundle 0x2, found 0x5"),
        ("0 }", "0", r"small, line 1: expected a bundle that ends with `}`"),
        ("%1 = vsyncpa", "%1 = 77", r"small, line 1: expected an instruction"),
    ],
)
def test_listing_of_another_form_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(IRError, match=message):
        read_listing(BUNDLES.replace(old, new), "small")


COPIES = """   0   : { %2 = dma.hbm_to_vmem [thread:$0]%s8_s1,128,%s2_s3,[#allocation4] /* hbm= */ }
   0x1 LB: > { %3 = dma.hbm_to_vmem [thread:$0]  (!%p8_p2),%s1_s9,64,%s1_s1,%s7_s7,%s5_s2 }
   0x2   : > { %4 = dma.done.wait (%p5_p3), %s2_s4, 64 /* pipeline-emitter-dma-wait */ }
   0x3   : > { %16 = sbr.rel (!%p14_p9) target bundleno = 1 (0x1), region = 2 }
   0x4   : { %5 = dma.done.wait [#allocation4], 128 }
"""


def test_copies_are_told_by_place_and_size() -> None:
    assert read_listing(COPIES, "small").copies() == (
        MemoryCopy("before", "dma.hbm_to_vmem", 128, "", "hbm="),
        MemoryCopy("in", "dma.hbm_to_vmem", 64, "!%p8_p2", ""),
        MemoryCopy("in", "dma.done.wait", 64, "%p5_p3", "pipeline-emitter-dma-wait"),
        MemoryCopy("after", "dma.done.wait", 128, "", ""),
    )
    assert read_listing(BUNDLES, "small").copies() == ()


def test_copies_of_a_program_without_a_loop_are_before_it() -> None:
    straight = COPIES.replace("target bundleno = 1 (0x1)", "target bundleno = 9 (0x9)")
    assert {it.place for it in read_listing(straight, "small").copies()} == {"before"}


def test_a_copy_of_unknown_size_is_refused_with_its_line() -> None:
    with pytest.raises(IRError, match=r"line 5: expected a number of granules"):
        read_listing(COPIES.replace(", 128 }", ", %s3 }"), "small").copies()


UTILIZATION = "== CAPACITY:\nMATMUL, XLU\n    4     2\n== UTILIZATION:\n1 0\n3 2\n"


def test_columns_are_found_by_the_headers_names() -> None:
    table = read_utilization(UTILIZATION, "table")
    assert (table.busy("MATMUL"), table.busy("XLU", 1), table.share("MATMUL")) == (4, 2, 0.5)
    assert table.share("MATMUL", 2) == 0.0
    with pytest.raises(KeyError, match="no column 'MXU'; the columns are MATMUL, XLU"):
        table.busy("MXU")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("== UTIL", "UTIL", r"table, line 4: expected a heading that begins with '== UTIL'"),
        ("3 2", "3 2 1", r"table, line 6: expected 2 numbers, found '3 2 1'"),
        ("MATMUL, XLU", "4, 2", r"table, line 2: expected names of units"),
    ],
)
def test_table_of_another_form_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(IRError, match=message):
        read_utilization(UTILIZATION.replace(old, new), "table")


def test_profile_of_another_form_is_refused_with_its_line() -> None:
    good = "HLO: %f.1 = f32[8]{0} fusion()\n - EUP: (1/4) - 0.25\n"
    assert read_static_profile(good, "profile")["f.1"]["EUP"].share == 0.25
    with pytest.raises(IRError, match=r"profile, line 2: expected `HLO"):
        read_static_profile(good.replace("(1/4)", "1 of 4"), "profile")
    with pytest.raises(IRError, match=r"profile: expected a line `HLO"):
        read_static_profile("HLO: <no-hlo-instruction>\n", "profile")


def test_report_of_another_form_is_refused_with_its_line() -> None:
    with pytest.raises(IRError, match=r"report: expected a line with `const DATA =`"):
        read_vmem_report("<html>", "report")
    with pytest.raises(IRError, match=r"report, line 2: expected JSON with .*KeyError"):
        read_vmem_report('<html>\nconst DATA ={"global_info": {}}', "report")


def test_passes_of_another_form_are_refused() -> None:
    module = "module @m {\n}\n"
    with pytest.raises(IRError, match=r"k, original: expected a line that begins with `module`"):
        read_passes([("original", "nothing")], "k")
    with pytest.raises(IRError, match=r"k: expected the module `original` and one after it"):
        read_passes([("original", module)], "k")
    with pytest.raises(IRError, match=r"k: expected a label that begins with `post-`"):
        read_passes([("original", module), ("late", module)], "k")


LAID_OUT = """module @m {
  %a_1 = tpu.load %x {in_layout = [#mosaic_tc.vpad<"none">], out_layout = [#mosaic_tc.vpad<"32">]}
  "tpu.store"(%a_1) {in_layout = [#mosaic_tc.vpad<"32">], strides = array<i32>} : ()
}
"""


def test_layouts_of_results_are_listed_and_operations_counted() -> None:
    assert layouts(LAID_OUT) == (("tpu.load", ("32",)),)
    assert operations(LAID_OUT) == {"tpu.load": 1, "tpu.store": 1}
    assert "out_layout = [32]" in shortened(LAID_OUT)


def test_another_number_in_a_name_is_no_change_of_the_text_shown() -> None:
    renamed = LAID_OUT.replace("%a_1", "%a_2")
    assert Pass("rename", LAID_OUT, renamed).changed
    assert Pass("rename", LAID_OUT, renamed).diff().lines == ()
    lines = Pass("other", LAID_OUT, renamed.replace("tpu.load", "tpu.other")).diff().lines
    assert [mark for mark, _ in lines] == ["-", "+"]
