"""Budgets against libtpu's own account, with no chip attached: nothing here runs on a TPU."""

import jax
import jax.export
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.dumps import Dumper
from pallas_rungs.ir.vmem_report import read_vmem_report
from pallas_rungs.kernels.layer_norm import layer_norm
from pallas_rungs.kernels.matmul_scratch import matmul_scratch
from pallas_rungs.performance.chip_table import as_device, chip_facts
from pallas_rungs.performance.vmem_budget import vmem_budget

pytestmark = pytest.mark.skipif(
    bool(libtpu.why_unavailable()), reason=libtpu.why_unavailable() or "libtpu is here"
)


def of(shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


def copied(block, shape, dtype="float32", *, at=None, grid=None):
    """A copy by blocks of an array that is too large for VMEM, and that array."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    spec = pl.BlockSpec(block, at or (lambda *ids: ids))
    grid = grid or tuple(n // b for n, b in zip(shape, block, strict=True))

    def call(x):
        return pl.pallas_call(
            kernel, grid=grid, in_specs=[spec], out_specs=spec, out_shape=of(shape, dtype)
        )(x)

    return call, of(shape, dtype)


ROWS, WIDE = of((8192, 4096)), of((4096,))
CASES = {
    "product": (matmul_scratch, of((4096, 4096), "bfloat16"), of((4096, 4096), "bfloat16")),
    "weights that stay": (layer_norm, ROWS, WIDE, WIDE),
    "rows in part of a tile": copied((3, 256), (3, 1 << 20)),
    "rows beyond a tile": copied((17, 256), (17, 1 << 19), "bfloat16"),
    "a narrow dtype": copied((512, 256), (1 << 17, 1024), "int8"),
    "a block for two programs": copied(
        (512, 512), (8192, 8192), at=lambda i, j: (i // 2, j), grid=(16, 16)
    ),
    "a block that never changes": copied((512, 512), (8192, 8192), at=lambda i: (1, 2), grid=(3,)),
}


@pytest.fixture(scope="module")
def dumper():
    with Dumper(("vmem report",)) as one:
        yield one


@pytest.mark.parametrize("chip", ["v4", "v5e"])
@pytest.mark.parametrize("name", CASES)
def test_each_piece_has_the_bytes_that_the_compiler_reports(dumper, name, chip):
    call, *args = CASES[name]
    with as_device(chip_facts(chip).device_kind):
        exported = jax.export.export(jax.jit(call), platforms=["tpu"])(*args)
    dumps = dumper.compile(exported.serialize(), chip)
    assert dumps.outcome.kind == "compiled", dumps.outcome.message
    report = read_vmem_report(dumps.text("vmem report", "TLP"), name)
    (pieces,) = [
        found
        for found in report.allocations.values()
        if any("window" in piece.what for piece in found)
    ]
    budget = vmem_budget(call, *args, chip=chip)
    ours = sorted((it.report_name, it.size) for it in budget.allocations)
    named = {it.report_name for it in budget.allocations}
    assert sorted((it.what, it.size) for it in pieces if it.what in named) == ours
