"""The CUDA compiler in its worker: what it reports, what it lacks, what it is told of a chip."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from pallas_rungs.compilers import cuda
from pallas_rungs.compilers.chips import GPU_CHIPS, chip_named
from pallas_rungs.compilers.cuda_report import Reports, instructions, nvdisasm
from pallas_rungs.compilers.cuda_target import LIMITS, target_config

PTXAS = """ptxas info    : Compiling entry function 'k_mosaic_gpu_kernel' for 'sm_90a'
    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 110 registers, used 2 barriers, 1 bytes smem
"""
SASS = """
   -:-:-:Y:01        /*0000*/                   LDC R1, c[0x0][0x28]
   -:-:1:Y:07        /*0010*/                   @!P0 UTMALDG.2D [UR8], [UR4]
        /*0020*/                   UTMALDG.2D [UR8], [UR4] ;
"""


def _exported(function: Any, *shapes: tuple[int, ...]) -> bytes:
    checks = [export.DisabledSafetyCheck.custom_call("mosaic_gpu_v2")]
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    made = export.export(jax.jit(function), platforms=["cuda"], disabled_checks=checks)(*args)
    return bytes(made.serialize())


def _adds_one(x: Any) -> Any:
    def one_more(x_ref: Any, o_ref: Any, smem: Any) -> None:
        smem[...] = x_ref[...]
        o_ref[...] = smem[...] + 1

    scratch = [plgpu.SMEM(x.shape, x.dtype)]
    return plgpu.kernel(
        one_more, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_types=scratch
    )(x)


def test_every_gpu_is_described() -> None:
    assert set(LIMITS) == {chip.name for chip in GPU_CHIPS}
    for chip in GPU_CHIPS:
        told = target_config(chip)
        major, minor = chip.compute_capability.split(".")
        assert f"major: {major} minor: {minor}" in told
        assert f'device_description_str: "{chip.device_kind}"' in told
    assert LIMITS["a100"].shared_memory_per_block == 166912
    assert LIMITS["h100"].shared_memory_per_block == 232448


@pytest.mark.cuda
@pytest.mark.parametrize("chip", GPU_CHIPS, ids=lambda chip: chip.name)
def test_a_description_says_what_the_plugin_itself_knows_of_the_gpu(chip: Any) -> None:
    import jax_plugins.xla_cuda13 as plugin

    data = (Path(plugin.__file__).parent / "xla_cuda_plugin.so").read_bytes()
    named = data.index(f'device_description_str: "{chip.device_kind}"'.encode())
    known = data[data.rfind(b"\0", 0, named) + 1 : data.find(b"\0", named)].decode()
    ours = target_config(chip)
    fields = re.findall(r"([a-z_0-9]+): ([\w.\"]+)", ours.split("cuda_compute_capability")[0])
    for name, value in fields:
        assert re.search(rf"\b{name}: {re.escape(value)}\b", known), f"{name}: {value}"
    major = chip.compute_capability.split(".")[0]
    assert re.search(rf"cuda_compute_capability {{\s+major: {major}\b", known)
    features = "ACCELERATED_FEATURES" if LIMITS[chip.name].accelerated else "NONE"
    assert f"feature_extension: {features}" in known


@pytest.mark.cuda
def test_a_kernel_compiles_and_its_needs_are_told_again_and_again() -> None:
    program = _exported(_adds_one, (64, 128))
    first = cuda.compile_exported(program, "h100", listings=True)
    assert first.kind == "compiled", first.message
    assert first.analysis["device_kind"] == "NVIDIA H100 80GB HBM3"
    (kernel,) = first.analysis["kernels"]
    assert kernel["name"] == "one_more"
    assert kernel["compiler"] == "Mosaic GPU"
    assert 0 <= kernel["shared_bytes"] - 64 * 128 * 4 < 64
    assert kernel["spill_store_bytes"] == 0
    assert ".target sm_90a" in kernel["ptx"]
    if nvdisasm() is not None:
        assert kernel["instructions"]["STG"] >= 1
        assert "EXIT" in kernel["sass"]
    # Mosaic GPU compiles nothing twice, and says nothing the second time.
    again = cuda.compile_exported(program, "h100", listings=True)
    assert again.analysis == first.analysis
    other = cuda.compile_exported(_exported(_adds_one, (128, 128)), "h100")
    assert 0 <= other.analysis["kernels"][0]["shared_bytes"] - 128 * 128 * 4 < 64
    assert "ptx" not in other.analysis["kernels"][0]


@pytest.mark.cuda
def test_an_abort_of_llvm_is_an_outcome_and_a_time_limit_ends_a_compilation() -> None:
    program = _exported(_adds_one, (64, 128))
    late = cuda.compile_exported(program, "h100", time_limit=0.001)
    assert late.kind in ("timed out", "deadlocked")
    assert cuda.compile_exported(program, "h100").kind == "compiled"
    aborted = cuda.compile_exported(_exported(_multiplies_on_hopper, (64, 64), (64, 64)), "a100")
    assert aborted.kind in ("crashed", "refused")
    assert cuda.compile_exported(program, "h100").kind == "compiled"


def _multiplies_on_hopper(a: Any, b: Any) -> Any:
    tiles = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))

    def body(a_gmem: Any, b_gmem: Any, o_gmem: Any, a_smem: Any, b_smem: Any, loaded: Any) -> None:
        plgpu.copy_gmem_to_smem(a_gmem, a_smem, loaded)
        plgpu.copy_gmem_to_smem(b_gmem, b_smem, loaded)
        plgpu.barrier_wait(loaded)

        def multiply(acc: Any) -> Any:
            plgpu.wgmma(acc, a_smem, b_smem)
            return acc[...]

        o_gmem[...] = pl.run_scoped(multiply, plgpu.ACC((64, 64), jnp.float32))

    buffer = plgpu.SMEM((64, 64), jnp.float16, transforms=tiles)
    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        scratch_types=[buffer, buffer, plgpu.Barrier(num_arrivals=2)],
    )(a.astype(jnp.float16), b.astype(jnp.float16))


@pytest.mark.cuda
def test_a_newer_chip_after_an_older_one() -> None:
    # One process that had compiled for h100 would have ptxas refuse sm_100a.
    program = _exported(_adds_one, (64, 128))
    for chip, target in (("h100", "sm_90a"), ("b200", "sm_100a"), ("h100", "sm_90a")):
        outcome = cuda.compile_exported(program, chip)
        assert outcome.kind == "compiled", outcome.message
        assert outcome.analysis["kernels"][0]["target"] == target


@pytest.mark.cuda
def test_cached_outcomes_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALLAS_RUNGS_CACHE", str(tmp_path))
    monkeypatch.delenv("PALLAS_RUNGS_NO_CACHE", raising=False)
    program = _exported(_adds_one, (64, 128))
    first = cuda.compile_exported(program, "h100", cache=True)
    second = cuda.compile_exported(program, "h100", cache=True)
    assert (first.cached, second.cached) == (False, True)
    assert second.analysis == first.analysis
    assert not cuda.compile_exported(program, "b200", cache=True).cached


def test_without_the_plugin_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "plugin_version", lambda: None)
    monkeypatch.setattr("sys.platform", "linux")
    outcome = cuda.compile_exported(b"", "h100")
    assert outcome.kind == "unavailable"
    assert f'pip install "jax-cuda13-plugin=={jax.__version__}"' in outcome.message
    monkeypatch.setattr("sys.platform", "darwin")
    assert "Linux only" in cuda.why_unavailable()


def test_a_chip_that_is_no_gpu_is_the_callers_error() -> None:
    with pytest.raises(ValueError, match="compiles for GPUs, and v5e is a TPU"):
        cuda.compile_exported(b"", "v5e")
    assert chip_named("h100").compute_capability == "9.0"


def test_what_mosaic_gpu_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / "k_10.ptxas").write_text(PTXAS)
    (tmp_path / "k_10.ptx").write_text(".version 8.7\n.target sm_90a\n")
    (tmp_path / "k_10.sass_ctrl").write_text(SASS)
    (tmp_path / "k_10.mlir-passes.log").write_text("dynamic_shared_memory_size %c4096_i32 args")
    (tmp_path / "j_9.ptxas").write_text(PTXAS.replace("110", "12"))
    module = r'{kernel_hash = "\0A\22one", module = "x"} {kernel_hash = "two"}'
    seen = Reports()
    nine, ten = seen.of(tmp_path, b"", module)
    assert (nine.name, nine.registers, nine.shared_bytes) == ("j", 12, None)
    assert (ten.name, ten.registers, ten.target) == ("k", 110, "sm_90a")
    assert (ten.stack_bytes, ten.spill_store_bytes, ten.spill_load_bytes) == (24, 16, 8)
    assert ten.shared_bytes == 4097
    assert ten.instructions == {"UTMALDG": 2, "LDC": 1}
    for file in tmp_path.iterdir():
        file.unlink()
    assert seen.of(tmp_path, b"", 'kernel_hash = "two"') == [ten]
    assert seen.of(tmp_path, b"", 'kernel_hash = "three"') == []


def test_instructions_are_counted_without_their_variants() -> None:
    assert instructions(SASS) == {"UTMALDG": 2, "LDC": 1}
