"""GPU kernels agree with their references in an interpreter, and lower for their chip."""

from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental.pallas import mosaic_gpu as plgpu

from pallas_rungs.kernels.gpu.matmul import matmul_by_tcgen05, matmul_by_triton, matmul_by_wgmma
from pallas_rungs.kernels.gpu.softmax import softmax_by_mosaic_gpu, softmax_by_triton
from pallas_rungs.kernels.softmax import softmax_reference
from pallas_rungs.ladder import climb

SIMULATOR = plgpu.InterpretGPUParams(detect_races=True)


def rows(M: int, N: int) -> np.ndarray:
    return (3 * np.random.default_rng(0).standard_normal((M, N))).astype(np.float32)


def halves(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize(
    "softmax",
    [
        lambda x: softmax_by_triton(x, bm=64, interpret=True),
        lambda x: softmax_by_mosaic_gpu(x, bm=64, interpret=SIMULATOR),
    ],
    ids=["Triton", "Mosaic GPU"],
)
def test_softmax_agrees_with_float64(softmax: Any) -> None:
    x = rows(128, 256)
    np.testing.assert_allclose(softmax(x), softmax_reference(x), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("product", "M"),
    [
        (lambda x, y: matmul_by_triton(x, y, interpret=True), 128),
        (lambda x, y: matmul_by_wgmma(x, y, interpret=SIMULATOR), 64),
        (lambda x, y: matmul_by_tcgen05(x, y, interpret=SIMULATOR), 128),
    ],
    ids=["Triton", "wgmma", "tcgen05"],
)
def test_a_product_agrees_with_float32(product: Any, M: int) -> None:
    x, y = halves(M, 64), halves(64, 128)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(np.asarray(product(x, y), np.float64), exact, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize(
    ("call", "shapes", "chip"),
    [
        (softmax_by_triton, [(200, 512)], "a100"),
        (softmax_by_mosaic_gpu, [(256, 512)], "a100"),
        (matmul_by_triton, [(128, 64), (64, 128)], "b200"),
        (matmul_by_wgmma, [(64, 128), (128, 128)], "h100"),
        (matmul_by_tcgen05, [(128, 128), (128, 128)], "b200"),
    ],
)
def test_it_lowers(call: Any, shapes: list[tuple[int, int]], chip: str) -> None:
    dtype = np.float32 if len(shapes) == 1 else np.float16
    args = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    report = climb(call, *args, rungs=("lower",), chips=(chip,))
    assert report.status("lower", chip) == "passed", report
