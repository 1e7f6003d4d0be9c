"""Kernels of rows at their goals, by estimates of both sides; what they move, to the byte."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.compilers import libtpu
from pallas_rungs.performance import Estimate, estimate
from pallas_rungs.performance.row_tasks import BLOCK_BYTES, TASKS, RowTask, rows_for

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
EACH = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@needs_libtpu
@EACH
@pytest.mark.parametrize("chip", BLOCK_BYTES)
def test_a_kernel_reads_once_writes_once_and_meets_its_goal(task: RowTask, chip: str) -> None:
    xla = estimate(task.rival, *task.arguments(), chip=chip)
    ours = estimate(task.ours(chip), *task.arguments(), chip=chip)
    assert ours.main.pallas
    assert not any(kernel.pallas for kernel in xla.kernels)
    assert ours.unresolved == xla.unresolved == ()
    assert ours.hbm_bytes == pytest.approx(task.once(), rel=0.01)
    rows = 2 * task.shape[0] * task.shape[1]
    assert ours.main.hbm_written_bytes == rows
    assert xla.hbm_bytes >= 1.5 * task.once() * 0.999
    assert ours.seconds <= task.goal * xla.seconds


def of_layer_norm(bm: int) -> Estimate:
    task = TASKS["layer_norm"]
    return estimate(partial(task.kernel, bm=bm), *task.arguments(), chip="v5e")


@needs_libtpu
def test_blocks_of_eight_rows_move_as_few_bytes_and_miss_the_goal() -> None:
    task = TASKS["layer_norm"]
    small, chosen = of_layer_norm(8), of_layer_norm(rows_for("v5e", 4096))
    assert small.hbm_bytes == chosen.hbm_bytes
    assert small.seconds > 3 * chosen.seconds
    assert small.seconds > task.goal * estimate(task.rival, *task.arguments(), chip="v5e").seconds


@needs_libtpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("chip", BLOCK_BYTES)
def test_the_chosen_rows_compile_at_long_rows(chip: str, dtype: str) -> None:
    task, shape = TASKS["layer_norm"], (64, 65536)
    found = estimate(task.ours(chip, shape, dtype), *task.arguments(shape, dtype), chip=chip)
    assert found.hbm_bytes == pytest.approx(task.once(shape, dtype), rel=0.01)


def test_a_block_is_a_power_of_two_of_rows_and_fills_no_more_than_its_bytes() -> None:
    for chip, most in BLOCK_BYTES.items():
        for columns in (1, 300, 4096, 5000, 32768):
            bm = rows_for(chip, columns)
            assert bm & (bm - 1) == 0
            assert bm * columns * 2 <= most < 2 * bm * columns * 2
    assert rows_for("v5e", 32768) == 32
    assert rows_for("v6e", 32768) == 64
    assert rows_for("v5e", 32768, itemsize=4) == 16
    assert rows_for("v5e", 10**7) == 8


def test_a_chip_without_blocks_and_a_row_without_elements_are_named() -> None:
    with pytest.raises(ValueError, match=r"for 'v4': .* v5e, v6e; pass a bm"):
        rows_for("v4", 4096)
    with pytest.raises(ValueError, match="a row of 0 elements of 2 bytes"):
        rows_for("v5e", 0)
    with pytest.raises(ValueError, match="a row of 4 elements of 0 bytes"):
        rows_for("v5e", 4, 0)


@EACH
def test_a_task_knows_its_arguments_and_their_bytes(task: RowTask) -> None:
    rows, *weights = task.arguments((64, 256), jnp.float32)
    assert (rows.shape, rows.dtype) == ((64, 256), jnp.float32)
    assert [one.shape for one in weights] == [(256,)] * task.weights
    assert task.once((64, 256), jnp.float32) == 4 * (2 * 64 * 256 + task.weights * 256)
    assert task.arguments()[0].shape == task.shape


@EACH
def test_kernel_and_rival_do_the_same(task: RowTask) -> None:
    rng = np.random.default_rng(0)
    given: list[Any] = [
        rng.standard_normal(one.shape).astype(np.float32)
        for one in task.arguments((24, 256), jnp.float32)
    ]
    made = task.ours("v5e", (24, 256), jnp.float32)
    assert made.__name__ == task.name
    assert made.keywords == {"bm": 2048}
    got = made(*given, interpret=True)
    np.testing.assert_allclose(got, task.rival(*given), rtol=1e-5, atol=1e-5)
