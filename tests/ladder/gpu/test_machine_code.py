"""What is told of a kernel's machine code: the same each time, and nothing of files."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pallas_rungs.compilers import cuda
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.kernels.gpu.matmul import matmul_by_wgmma
from pallas_rungs.kernels.gpu.softmax import softmax_by_triton
from pallas_rungs.ladder import machine_code


def test_it_is_there_with_the_compiler_and_the_disassembler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "why_unavailable", lambda: "no plugin")
    assert machine_code.why_unavailable() == "no plugin"
    monkeypatch.setattr(cuda, "why_unavailable", lambda: "")
    monkeypatch.setattr(machine_code, "nvdisasm", lambda: None)
    assert "nvidia-cuda-nvdisasm: install it" in machine_code.why_unavailable()
    monkeypatch.setattr(machine_code, "nvdisasm", lambda: "here")
    assert machine_code.why_unavailable() == ""
    assert "nvidia-cuda-nvdisasm" in machine_code.installed_versions()


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            "INTERNAL: ptxas /tmp/a/b-1, line 180; error   : Instruction 'x' not supported\nmore",
            "ptxas: Instruction 'x' not supported",
        ),
        ("the process was ended by SIGABRT: LLVM ERROR: Cannot", "LLVM ERROR: Cannot"),
        ("no room in /tmp/a/b", "no room in a file"),
    ],
)
def test_a_refusal_is_kept_without_what_differs_from_run_to_run(message: str, kept: str) -> None:
    outcome = CompilerOutcome("refused", "", message)
    assert machine_code.refusal(outcome) == {"kind": "refused", "message": kept}


@pytest.mark.cuda
def test_a_kernel_whose_program_is_large_is_told_of_and_a_wrong_gpu_is_an_end() -> None:
    rows: Any = jax.ShapeDtypeStruct((64, 512), jnp.float32)
    told = machine_code.compiled(softmax_by_triton, rows, chip="h100")
    # Its image is cut into frames in the executable, and was once not found.
    assert (told["kind"], told["target"], told["registers"]) == ("compiled", "sm_90a", 255)
    assert told["sass_kinds"]["stack"] > 0
    assert told["ptx"]["ld.global.v4.b32"] == 64
    halves = [jax.ShapeDtypeStruct(shape, jnp.float16) for shape in ((64, 128), (128, 128))]
    wrong = machine_code.compiled(matmul_by_wgmma, *halves, chip="b200", lowered_for="h100")
    assert wrong["kind"] == "refused"
    assert wrong["message"].startswith("ptxas: Instruction 'wgmma.fence'")
