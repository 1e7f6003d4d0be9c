"""The sandbox's VMEM estimate and budget against the TPU compiler, with no chip attached.

Nothing here runs on a TPU: programs are compiled, and the compiler's refusals are read.
"""

from __future__ import annotations

import jax
import jax.export
import pytest
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.chips import CURRENT_CHIPS
from pallas_rungs.exhibits import vmem
from pallas_rungs.exhibits.blockspec import Dimension, Setting, derive
from pallas_rungs.ir.memory_overflow import memory_overflow
from pallas_rungs.performance import vmem_budget

pytestmark = pytest.mark.skipif(
    bool(libtpu.why_unavailable()), reason=libtpu.why_unavailable() or "libtpu is here"
)


def compiled(one, vmem_limit_bytes=None):
    """Compile the setting's copy for its chip and return the outcome."""
    options = {}
    if vmem_limit_bytes is not None:
        options["compiler_params"] = pltpu.CompilerParams(vmem_limit_bytes=vmem_limit_bytes)
    shape = jax.ShapeDtypeStruct(one.array_shape, one.dtype)
    with vmem.pretend(one.chip):
        exported = jax.export.export(jax.jit(one.program(**options)), platforms=["tpu"])(shape)
    return libtpu.compile_exported(exported.serialize(), one.chip)


def setting(*dims, dtype="float32", chip="v5e"):
    return Setting(tuple(Dimension(*dim) for dim in dims), dtype, chip)


SIZED = {
    "two buffers": ((8192, 64, "blocked", "program"), (8192, 256, "blocked", "program")),
    "rows in part of a tile": ((3, 3, "blocked", "zero"), (1 << 20, 128, "blocked", "program")),
    "rows beyond a tile": ((17, 17, "blocked", "zero"), (1 << 20, 128, "blocked", "program")),
    "columns beyond a tile": ((1 << 20, 64, "blocked", "program"), (200, 200, "blocked", "zero")),
    "squeezed": (
        (64, 1, "squeezed", "program"),
        (1024, 64, "blocked", "program"),
        (8192, 256, "blocked", "zero"),
    ),
    "element": ((8192, 64, "element", "scaled"), (8192, 256, "element", "scaled")),
    "a constant index takes one buffer": (
        (8192, 64, "blocked", "zero"),
        (8192, 256, "blocked", "zero"),
    ),
    "one dimension": ((1 << 24, 3072, "blocked", "program"),),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("chip", ["v4", "v5e"])
def test_windows_take_what_the_estimate_says(name, dtype, chip):
    """With next to no VMEM allowed, the compiler's refusal says what the windows take."""
    one = setting(*SIZED[name], dtype=dtype, chip=chip)
    outcome = compiled(one, vmem_limit_bytes=256)
    assert outcome.kind == "refused", outcome
    overflow = memory_overflow(outcome.message)
    assert overflow, outcome.message[:500]
    assert overflow["used"] == pytest.approx(derive(one)["inFlight"], rel=0.01)


@pytest.mark.parametrize("chip", CURRENT_CHIPS)
def test_budget_is_the_compilers_default_limit(chip):
    """Exactly the limit is accepted; eight rows more are refused, and the refusal names it."""
    rows = 1024 * vmem_budget.scoped_limit(chip) // 2**24
    dims = [(8192, rows, "blocked", "program"), (8192, 1024, "blocked", "program")]
    fits = setting(*dims, chip=chip)
    assert (derive(fits)["inFlight"], derive(fits)["budget"]) == (
        vmem_budget.scoped_limit(chip),
        "fits",
    )
    assert compiled(fits).kind == "compiled"

    over = setting((8192, rows + 8, "blocked", "program"), dims[1], chip=chip)
    assert derive(over)["budget"] == "over"
    outcome = compiled(over)
    assert outcome.kind == "refused", outcome
    overflow = memory_overflow(outcome.message)
    assert overflow, outcome.message[:500]
    assert overflow["limit"] == vmem_budget.scoped_limit(chip)


def test_small_arrays_may_be_kept_whole_so_the_truth_says_depends():
    """Over the limit, yet compiled: XLA places both arrays in VMEM and allocates fewer windows."""
    dims = ((2048, 1024, "blocked", "program"), (2400, 2400, "blocked", "program"))
    accepted = setting(*dims, chip="v5e")
    assert derive(accepted)["budget"] == "depends"
    assert compiled(accepted).kind == "compiled"
    v4 = setting(*dims, chip="v4")
    assert derive(v4)["budget"] == "over"
    assert compiled(v4).kind == "refused"


@pytest.mark.parametrize(
    ("dims", "dtype"),
    [
        (((1024, 64, "element", "program"), (8192, 256, "element", "scaled")), "float32"),
        (((1024, 64, "element", "scaled"), (8192, 256, "element", "program")), "float32"),
        (((60, 60, "element", "scaled"), (8192, 256, "element", "scaled")), "bfloat16"),
        (((64, 64, "element", "scaled"), (1, 1, "squeezed", "program")), "int8"),
        (((1 << 20, 1024, "element", "program"),), "float32"),
        (((1 << 20, 1024, "element", "program"),), "bfloat16"),
    ],
)
def test_unaligned_element_is_refused_by_the_compiler(dims, dtype):
    one = setting(*dims, dtype=dtype)
    (refusal,) = derive(one)["refusals"]
    assert refusal["kind"] == "aligned"
    tile, dimension = (part.strip() for part in refusal["words"].split(","))
    outcome = compiled(one)
    assert outcome.kind == "refused", outcome
    assert f"prove that {tile} divides index" in outcome.message
    assert f"on {dimension}" in outcome.message


@pytest.mark.parametrize(
    "dims",
    [
        ((1024, 64, "element", "scaled"), (8192, 256, "element", "scaled")),
        (
            (16, 4, "element", "program"),
            (64, 64, "element", "scaled"),
            (512, 256, "element", "scaled"),
        ),
        (
            (16, 1, "squeezed", "program"),
            (64, 64, "element", "zero"),
            (512, 256, "element", "scaled"),
        ),
    ],
)
def test_aligned_element_compiles(dims):
    one = setting(*dims)
    assert derive(one)["refusals"] == []
    assert compiled(one).kind == "compiled"


def test_what_strays_compiles_all_the_same():
    one = setting((1024, 256, "blocked", "scaled"), (512, 128, "blocked", "program"))
    assert derive(one)["strays"]
    assert compiled(one).kind == "compiled"
