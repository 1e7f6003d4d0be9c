"""A reader's file with GPU kernels: climbed for a GPU, with or without asking for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_rungs.ladder.files import climb_file
from pallas_rungs.ladder.status import Rung, Status

KERNELS = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def inputs():
    return (np.ones((64, 128), np.float32),)

def reference(x):
    return x * 2

def doubles(x, arrivals=1):
    def body(x_gmem, o_gmem, smem, loaded):
        plgpu.copy_gmem_to_smem(x_gmem, smem, loaded)
        plgpu.barrier_wait(loaded)
        o_gmem[...] = smem[...] * 2

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    scratch = [plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier(num_arrivals=arrivals)]
    return plgpu.kernel(body, out_type=shape, scratch_types=scratch)(x)

def hangs(x):
    return doubles(x, arrivals=2)
"""
NEEDS_A_GPU = """
import jax
if jax.default_backend() != "gpu":
    raise RuntimeError("this file requires a GPU")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_a_file_with_gpu_kernels_climbs_for_h100(file: Path) -> None:
    (report,) = climb_file(file, "doubles", rungs=[Rung.SIMULATE, Rung.LOWER]).reports
    assert report.passed
    assert report.verdicts[-1].target == "h100"


def test_a_deadlock_is_told_with_its_line_and_the_next_rung_is_tried(file: Path) -> None:
    (report,) = climb_file(file, "hangs", rungs=[Rung.SIMULATE, Rung.LOWER]).reports
    default, races, lowered = report.verdicts
    for verdict in (default, races):
        assert verdict.status is Status.DEADLOCKED
        assert verdict.error is not None
        assert verdict.error.frame is not None
        assert "barrier_wait" in verdict.error.frame.source
    assert lowered.status is Status.PASSED


def test_a_tpu_asked_for_says_that_these_are_gpu_kernels(file: Path) -> None:
    (report,) = climb_file(file, "doubles", rungs=[Rung.LOWER], chips=["v6e"]).reports
    assert report.of("lower", "v6e").status is Status.TOOL_CANNOT


def test_a_file_that_wants_a_gpu_at_its_import_gets_one(file: Path) -> None:
    file.write_text(NEEDS_A_GPU + KERNELS)
    (report,) = climb_file(file, "doubles", rungs=[Rung.LOWER]).reports
    verdict = report.of("lower", "h100")
    assert verdict.status is Status.PASSED
    assert verdict.details["pretend_before_import"]["chip"] == "h100"
