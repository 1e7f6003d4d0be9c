"""The products at their gates, by estimates of both sides; what they move, to the byte."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.compilers import libtpu
from pallas_rungs.kernels.matmul_serpentine import (
    matmul_serpentine,
    matmul_serpentine_gelu,
    matmul_serpentine_reference,
)
from pallas_rungs.performance import estimate, rivals
from pallas_rungs.performance.product_tiles import TILES, product_for

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
SMALL, LARGE = (jax.ShapeDtypeStruct((n, n), jnp.bfloat16) for n in (1024, 4096))
MATRIX = 2 * 1024**2


@needs_libtpu
@pytest.mark.parametrize("call", [matmul_serpentine, matmul_serpentine_gelu])
def test_of_two_steps_at_most_one_operand_is_read_anew(call: Any) -> None:
    found = estimate(partial(call, block=(256, 256)), SMALL, SMALL, chip="v5e")
    # Four rows of blocks: x once; y four times, but for the three turns where its block stays.
    assert found.hbm_read_bytes == MATRIX + (4 * 4 - 3) * MATRIX // 4
    assert found.hbm_written_bytes == MATRIX
    assert found.unresolved == ()


@needs_libtpu
def test_rows_of_blocks_are_shared_by_the_cores_of_a_v5p() -> None:
    found = estimate(partial(matmul_serpentine, block=(256, 256)), SMALL, SMALL, chip="v5p")
    assert found.main.steps == 4 * 4 // 2 + 2


@needs_libtpu
def test_one_row_of_blocks_is_shared_as_well() -> None:
    row = jax.ShapeDtypeStruct((256, 1024), jnp.bfloat16)
    found = estimate(partial(matmul_serpentine, block=(256, 256)), row, SMALL, chip="v5p")
    assert found.main.steps == 4 // 2 + 2


@needs_libtpu
def test_the_product_meets_its_gate_on_a_v5e() -> None:
    xla = estimate(rivals.matmul, LARGE, LARGE, chip="v5e")
    ours = estimate(product_for("v5e"), LARGE, LARGE, chip="v5e")
    assert ours.main.pallas
    assert not xla.main.pallas
    assert ours.seconds <= 1.03 * xla.seconds
    matrix = 2 * 4096**2
    assert ours.hbm_read_bytes == matrix + (8 * 8 - 7) * matrix // 8
    assert ours.hbm_written_bytes == matrix


@pytest.mark.parametrize("gelu", [False, True])
def test_the_blocks_of_a_chip_are_those_of_the_table(gelu: bool) -> None:
    made = product_for("v6e", gelu=gelu)
    assert made.keywords == {
        "block": TILES["v6e"].block,
        "vmem_limit_bytes": TILES["v6e"].vmem_limit_bytes,
    }
    assert made.__name__ == ("matmul_serpentine_gelu" if gelu else "matmul_serpentine")


def test_arguments_of_the_call_may_be_others() -> None:
    x = np.random.default_rng(0).standard_normal((512, 256)).astype(np.float32)
    got = product_for("v5e", block=(256, 256), interpret=True)(x, x.T)
    np.testing.assert_allclose(got, matmul_serpentine_reference(x, x.T), rtol=1e-5, atol=1e-4)


def test_a_chip_without_blocks_is_named() -> None:
    with pytest.raises(ValueError, match=r"for 'v4': .* v5e, v5p, v6e, tpu7x; call matmul_serp"):
        product_for("v4")
