"""GPU kernels agree with their references in an interpreter, and lower for their chip."""

from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental.pallas import mosaic_gpu as plgpu

from pallas_rungs.kernels.flash_attention_forward import flash_attention_forward_reference
from pallas_rungs.kernels.gpu.flash_attention import flash_attention_by_triton
from pallas_rungs.kernels.gpu.layer_norm import layer_norm_by_triton
from pallas_rungs.kernels.gpu.matmul import (
    matmul_by_tcgen05,
    matmul_by_triton,
    matmul_by_wgmma,
    matmul_tiles_by_wgmma,
)
from pallas_rungs.kernels.gpu.softmax import softmax_by_mosaic_gpu, softmax_by_triton
from pallas_rungs.kernels.layer_norm import layer_norm_reference
from pallas_rungs.kernels.softmax import softmax_reference
from pallas_rungs.ladder import climb
from pallas_rungs.performance.gpu_tasks import TASKS, GpuTask

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


@pytest.mark.parametrize("block", [(64, 64), (128, 128), (64, 128)])
@pytest.mark.parametrize("K", [64, 128, 512])
def test_a_product_in_blocks_agrees_with_float64(block: tuple[int, int], K: int) -> None:
    x, y = halves(128, K), halves(K, 256)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    got = matmul_tiles_by_wgmma(x, y, block=block, interpret=SIMULATOR)
    np.testing.assert_allclose(np.asarray(got, np.float64), exact, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("bm", [1, 4])
def test_layer_norm_agrees_with_float64(bm: int) -> None:
    x = (rows(16, 256) + 5).astype(np.float16)
    gamma, beta = rows(2, 256)
    got = layer_norm_by_triton(x, gamma, beta, bm=bm, interpret=True)
    assert got.dtype == np.float16
    want = layer_norm_reference(x, gamma, beta)
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", [(64, 32), (32, 64), (128, 128)])
def test_flash_attention_agrees_with_float64(causal: bool, block: tuple[int, int]) -> None:
    q, k, v = (halves(2, 256, 32 + i)[..., :32] for i in range(3))
    got = flash_attention_by_triton(q, k, v, causal=causal, block=block, interpret=True)
    want, _ = flash_attention_forward_reference(q, k, v, causal=causal)
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=4e-3, atol=2e-3)


@pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
def test_what_is_to_be_measured_lowers_at_full_size(task: GpuTask) -> None:
    report = climb(task.call, *task.arguments, rungs=("lower",), chips=(task.chip,))
    assert report.status("lower", task.chip) == "passed", report


@pytest.mark.cuda
@pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
def test_what_is_to_be_measured_compiles_at_full_size(task: GpuTask) -> None:
    report = climb(task.call, *task.arguments, rungs=("compile",), chips=(task.chip,))
    assert report.status("compile", task.chip) == "passed", report
