"""Faults of GPU kernels: each is caught on the rung that can see it, at its line, with advice."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ladder.gpu import sick_gpu_kernels as sick
from pallas_rungs.ladder import Status, climb

WORDS = {
    "ok": "passed",
    "WRONG": "wrong",
    "NO": "refused",
    "tool": "tool cannot",
    "-": "deadlocked",
}


@dataclass(frozen=True)
class Trouble:
    """A GPU kernel and what the rungs say.

    Attributes:
      function: its name in `sick_gpu_kernels`.
      says: words for simulate default, simulate races, lower and compile, see `WORDS`; the word
        for races is left out where the kernel is for Triton. Two words with a bar between them:
        it depends on which thread is first.
      holds: what the summary of the first rung that finds fault holds.
      line: what the line that it names holds.
      advice: what its advice holds.
    """

    function: str
    says: str
    holds: str = ""
    line: str = ""
    advice: str = ""


TROUBLES = (
    # sound
    Trouble("doubles", "ok ok ok ok"),
    Trouble("hands_over_at_a_barrier", "ok ok ok ok"),
    Trouble("multiplies", "ok ok ok ok"),
    Trouble("doubles_in_triton", "tool ok ok"),
    Trouble("plain_doubles", "tool ok ok"),
    # the race detector alone
    Trouble(
        "forgets_to_wait_for_the_load", "ok NO ok ok", "RACE DETECTED", "in_smem[...] * 2",
        "at its barrier",
    ),
    Trouble(
        "forgets_to_commit", "ok NO ok ok", "RACE DETECTED", "copy_smem_to_gmem", "commit_smem"
    ),
    Trouble(
        "forgets_to_wait_for_the_store", "ok NO ok ok", "Not all copy_smem_to_gmem", "def body",
        "wait_smem_to_gmem",
    ),
    Trouble(
        "hands_over_without_a_barrier", "ok|WRONG NO ok ok", "RACE DETECTED", "smem[...]",
        "between warpgroups",
    ),
    Trouble(
        "two_warpgroups_write_one_place", "ok NO ok ok", "RACE DETECTED", "o_gmem[...]",
        "place of its own",
    ),
    Trouble("blocks_add_to_one_place", "ok NO ok ok", "RACE DETECTED", "o_gmem[...]"),
    # barriers, memory, bounds
    Trouble(
        "waits_for_two_arrivals_of_one", "- - ok ok", "1 of 2 arrivals", "barrier_wait",
        "num_arrivals",
    ),
    Trouble(
        "never_signals_the_other", "- - ok ok", "0 of 1 arrivals", "barrier_wait", "num_arrivals"
    ),
    Trouble(
        "skips_a_phase", "NO NO ok ok", "no threads observed phase 0", "def body",
        "Wait once for each phase",
    ),
    Trouble("reads_fresh_shared_memory", "WRONG WRONG ok ok", "NaN"),
    Trouble("reads_past_the_end", "NO NO ok ok", "Out-of-bounds read", "def body", "past the end"),
    # the lowering
    Trouble(
        "more_shared_memory_than_there_is", "ok ok NO NO", "327680 > max_smem_bytes=232448",
        "def body", "227 KiB",
    ),
    Trouble("sums_up_as_it_goes", "ok ok NO NO", "cumsum", "jnp.cumsum", "no rule"),
    Trouble(
        "copies_rows_of_four_bytes_too_many", "ok ok NO NO", "set of layouts", "def body",
        "16 bytes",
    ),
    Trouble("doubles_24_rows_at_a_time", "tool NO NO", "power of 2", "* 2", "mask"),
    Trouble("sorts_in_triton", "tool NO NO", "sort", "jnp.sort", "no rule"),
    # tracing: what the transforms ask of a shape
    Trouble(
        "multiplies_with_a_swizzle_too_small", "NO NO NO NO", "Swizzle 64", "kernel(",
        "find_swizzle",
    ),
    # the compiler alone
    Trouble(
        "multiplies_tiles_too_large", "tool ok NO", "Shared memory size limit exceeded",
        "def body", "227 KiB",
    ),
    # a gap of the simulator, and a fault that no rung sees: wgmma is not checked for races
    Trouble("pipelines", "tool tool ok ok"),
    Trouble("multiplies_before_it_is_loaded", "ok ok ok ok"),
)  # fmt: skip


def args_of(trouble: Trouble) -> tuple[Any, ...]:
    return (sick.HALVES, sick.HALVES) if "multiplies" in trouble.function else (sick.X,)


def reference_of(trouble: Trouble) -> Any:
    return {
        "more_shared_memory_than_there_is": lambda x: x,
        "sums_up_as_it_goes": lambda x: np.cumsum(x, axis=1),
        "sorts_in_triton": lambda x: np.sort(x, axis=1),
        "copies_rows_of_four_bytes_too_many": lambda x: np.pad(x[:, :63], ((0, 0), (0, 65))),
        "multiplies_tiles_too_large": lambda a, b: 4 * (a @ b),
        "blocks_add_to_one_place": doubled,
    }.get(
        trouble.function, (lambda a, b: a[:64] @ b) if "multiplies" in trouble.function else doubled
    )


def doubled(x):
    return x * 2


def climbed(trouble: Trouble, rungs: list[str]) -> Any:
    function = getattr(sick, trouble.function)
    return climb(
        function, *args_of(trouble), reference=reference_of(trouble), rungs=rungs, chips=["h100"]
    )


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda t: t.function)
def test_each_fault_is_caught_where_it_can_be_seen(trouble):
    *words, _ = trouble.says.split()
    report = climbed(trouble, ["simulate", "lower"])
    found = report.verdicts
    allowed = [[WORDS[word] for word in either.split("|")] for either in words]
    assert len(found) == len(allowed)
    assert all(v.status in may_be for v, may_be in zip(found, allowed, strict=True)), str(report)
    first = next((v for v in found if v.status.blames_kernel and v.error), None)
    if first is None:  # the numbers tell, or the compiler alone will
        assert trouble.says.endswith("NO") or any(trouble.holds in v.summary for v in found)
        return
    assert trouble.holds in first.summary
    assert first.error.frame is not None
    assert first.error.frame.file == sick.__file__
    assert trouble.line in first.error.frame.source
    assert first.error.advice
    assert trouble.advice in first.error.advice


@pytest.mark.cuda
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda t: t.function)
def test_the_cuda_compiler_refuses_only_what_does_not_fit(trouble):
    verdict = climbed(trouble, ["compile"]).of("compile", "h100")
    assert str(verdict.status) == WORDS[trouble.says.split()[-1]], verdict.summary
    if verdict.status is not Status.PASSED:
        assert trouble.holds in verdict.summary
        return
    (kernel,) = verdict.details["analysis"]["kernels"]
    assert kernel["target"] == "sm_90a"
    assert kernel["registers"] > 8
    assert "ptx" not in kernel


@pytest.mark.cuda
def test_a_chip_that_lacks_an_instruction_is_told_by_the_compiler_alone():
    # wgmma is Hopper's: it lowers for Blackwell, and ptxas refuses it.
    trouble = next(t for t in TROUBLES if t.function == "multiplies")
    report = climb(
        sick.multiplies, *args_of(trouble), rungs=["lower", "compile"], chips=["h100", "b200"]
    )
    assert report.of("lower", "b200").status is Status.PASSED
    assert report.of("compile", "h100").status is Status.PASSED
    refused = report.of("compile", "b200")
    assert refused.status is Status.REFUSED
    assert refused.summary.startswith("ptxas: ")
    assert "wgmma" in refused.summary
    assert "Hopper's alone" in refused.error.advice


def test_tma_is_refused_for_ampere_by_the_lowering():
    report = climb(sick.doubles, sick.X, rungs=["lower"], chips=["a100", "b200"])
    refused = report.of("lower", "a100")
    assert refused.status is Status.REFUSED
    assert "copy_gmem_to_smem" in refused.error.frame.source
    assert "Ampere" in refused.error.advice
    assert report.of("lower", "b200").status is Status.PASSED
