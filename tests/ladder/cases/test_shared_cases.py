"""Every public trouble in a folder beside the checkout gets the verdict that was measured for it.

The folder holds small kernels, `buggy` and mostly `fixed`, and `expected.json`: what every rung
said. It is no part of the checkout; a clone without it skips these tests.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ladder.cases import climb_cases
from pallas_rungs.compilers import cuda
from pallas_rungs.ladder import Status, Verdict

ROOT = Path(__file__).resolve().parents[3]
_BESIDE = (parent / "shared" / "cases" for parent in ROOT.parents)
FOLDER = next((folder for folder in _BESIDE if folder.is_dir()), None)
if FOLDER is None:
    pytest.skip(
        "no folder shared/cases beside this checkout: its public troubles are not climbed",
        allow_module_level=True,
    )
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
COMPILES = importlib.util.find_spec("libtpu") is not None
LIMIT = 3600  # seconds; only so that a hang ends

FOR_GPU = tuple(name for name in EXPECTED if name[:2] in climb_cases.FOR_GPU)
"""Measured for a GPU: they are climbed for one."""
FOR_TRITON = tuple(name for name in FOR_GPU if name[:2] in ("64", "65", "70"))

VARIANTS = [(name, variant) for name in EXPECTED for variant in EXPECTED[name]]


@pytest.fixture(scope="session")
def verdicts() -> dict[tuple[str, str], list[Verdict]]:
    """What the ladder says about all cases, climbed in one process with one compiler."""
    env = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": "2",
        "NPROC": "8",
        "PALLAS_RUNGS_NO_CACHE": "1",
        "PYTHONPATH": str(ROOT / "tests"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "ladder.cases.climb_cases", str(FOLDER)],
        env=env, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-2000:]
    assert lines[-1] == {"all": True}, f"ended after {lines[-1]}: {done.stderr[-2000:]}"
    told: dict[tuple[str, str], list[Verdict]] = {variant: [] for variant in VARIANTS}
    for line in lines[:-1]:
        verdict = Verdict.from_json(line["verdict"])
        told[line["case"], line["variant"]].append(verdict)
    return told


def expected_of(name: str, variant: str, verdict: Verdict) -> str | None:
    """The measured word for a verdict's rung and target; None where nothing was measured."""
    rung = EXPECTED[name][variant].get(str(verdict.rung), {})
    target = "v7x" if verdict.target == "tpu7x" else verdict.target
    word = rung.get("verdict") or rung.get(target, {}).get("verdict")
    return None if word == "not tried" else word


def compared(name: str, variant: str, found: list[Verdict]) -> Iterator[tuple[str, str, str]]:
    """Yield label, measured word and what the ladder saw, where both exist."""
    for verdict in found:
        if verdict.rung == "compile" and not COMPILES:
            continue
        if (word := expected_of(name, variant, verdict)) is not None:
            yield verdict.label, word, str(verdict.observed)


def test_the_cases_are_all_there():
    assert len(EXPECTED) >= 57
    assert all((FOLDER / f"{name}.py").is_file() for name in EXPECTED)


@pytest.mark.parametrize(
    ("name", "variant"), [case for case in VARIANTS if case[0] not in FOR_GPU], ids="-".join
)
def test_each_rung_says_what_was_measured(name, variant, verdicts):
    pairs = list(compared(name, variant, verdicts[name, variant]))
    assert len(pairs) >= 5
    wrong = [f"{label}: measured {word}, found {saw}" for label, word, saw in pairs if word != saw]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "variant"), [case for case in VARIANTS if case[0] in FOR_GPU], ids="-".join
)
def test_a_gpu_kernel_gets_what_was_measured_and_the_cuda_compiler_agrees(name, variant, verdicts):
    found = verdicts[name, variant]
    pairs = list(compared(name, variant, found))
    assert len(pairs) >= (1 if name[:2] == "69" else 2)  # 69 was measured on one rung only
    wrong = [f"{label}: measured {word}, found {saw}" for label, word, saw in pairs if word != saw]
    assert wrong == []
    lowered = next(v for v in found if v.rung == "lower")
    for verdict in found:
        if verdict.rung == "simulate" and name in FOR_TRITON:
            assert verdict.status is Status.TOOL_CANNOT
        if verdict.rung == "compile" and lowered.status is Status.REFUSED:
            assert verdict.status is Status.REFUSED
        elif verdict.rung == "compile":
            missing = bool(cuda.why_unavailable())
            assert verdict.status is (Status.UNAVAILABLE if missing else Status.PASSED)


@pytest.mark.parametrize(("name", "variant"), VARIANTS, ids="-".join)
def test_each_refusal_names_a_line_of_the_case_and_what_to_do(name, variant, verdicts):
    for verdict in verdicts[name, variant]:
        if verdict.status is Status.REFUSED:
            assert verdict.error is not None
            assert verdict.error.frame is not None, verdict.label
            assert Path(verdict.error.frame.file).name == f"{name}.py", verdict.label
            assert verdict.error.frame.source, verdict.label
            assert verdict.error.advice, f"{verdict.label}: {verdict.summary}"


def test_a_gap_of_a_tool_is_named(verdicts):
    named = {
        (name[:2], verdict.label): verdict.details["gap"]
        for (name, _), found in verdicts.items()
        for verdict in found
        if verdict.status is Status.TOOL_CANNOT
    }
    assert "barrier semaphores" in named["62", "interpret"]
    assert "prng_seed" in named["61", "interpret"]
    assert "stub" in named["61", "simulate default"]
    assert "padding" in named["73", "simulate default"]
