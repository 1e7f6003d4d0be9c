"""The estimate beside rung 5: in every form, of a cached verdict too, never in a verdict's way."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from pallas_rungs import cli
from pallas_rungs.compilers import dumps, libtpu
from pallas_rungs.kernels.add import add
from pallas_rungs.ladder import climb
from pallas_rungs.ladder.batch import climb_several
from pallas_rungs.ladder.estimate_beside import in_words
from pallas_rungs.ladder.files import climb_file
from pallas_rungs.ladder.loading import parse_target
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.report_markdown import report_markdown
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict
from pallas_rungs.performance import estimate

pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(
        libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
    ),
]


@pytest.fixture(autouse=True)
def _own_compilers_end(nothing_left: Path) -> Iterator[None]:
    """End the compilers of this very process, which stay warm, before it is seen what is left."""
    yield
    libtpu.close()
    dumps.close()


GIVEN: dict[str, Any] = {"args": "f32[64,256]", "rungs": [Rung.COMPILE]}


def compiled(folder: Path, symbol: str = "good", **more: Any) -> Verdict:
    found = climb_file(folder / "kernels.py", symbol, **{**GIVEN, "estimates": True, **more})
    return found.reports[0].of("compile")


def without(verdict: Verdict) -> Verdict:
    """The verdict without what differs from run to run, and without its estimate."""
    varying = ("compile seconds", "cpu seconds", "peak memory bytes", "estimate")
    details = {name: value for name, value in verdict.details.items() if name not in varying}
    return dataclasses.replace(verdict, details=details, seconds=0, cached=False)


def test_it_is_the_estimate_of_the_command_and_a_verdict_from_the_cache_has_it_too(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALLAS_RUNGS_CACHE", str(tmp_path))
    monkeypatch.delenv("PALLAS_RUNGS_NO_CACHE", raising=False)
    first, second = compiled(folder), compiled(folder)
    assert (first.cached, second.cached) == (False, True)
    assert first.details["estimate"] == second.details["estimate"]
    assert first.said.startswith("compiles for v5e; estimate ")
    assert first.said.endswith(", not a measurement")
    plain = compiled(folder, estimates=False)
    assert "estimate" not in plain.details
    assert plain.said == plain.summary == first.summary
    assert without(plain) == without(first)


def test_a_climb_in_this_process_has_it_where_it_is_asked_for() -> None:
    x = np.zeros((64, 256), np.float32)
    asked = climb(add, x, x, rungs=["compile"], chips=["v5e", "v3"], estimates=True)
    found = asked.of("compile", "v5e").details["estimate"]
    alone = estimate(add, x, x)
    assert found["seconds"] == alone.seconds
    assert (found["low"], found["high"]) == (alone.low, alone.high)
    v3 = asked.of("compile", "v3")
    assert v3.passed
    assert v3.said == v3.summary
    assert "no constants are known" in v3.details["estimate"]["none"]
    assert "estimate" not in climb(add, x, x, rungs=["compile"]).of("compile").details


def test_every_form_shows_it(folder: Path) -> None:
    verdict = compiled(folder)
    text = verdict.estimate
    report = Report("good", (verdict,))
    rich = jax.tree.leaves(report.rich().renderables)[0].columns[4]._cells[0].plain
    forms = (str(report), report._repr_html_(), report_markdown(report), rich)
    assert all(text in form for form in forms)
    again = Report.from_json(json.loads(json.dumps(report.to_json())))
    assert again.of("compile").details["estimate"]["text"] == text
    assert again.of("compile").details["estimate"]["versions"] == libtpu.installed_versions()


def test_several_climbs_share_compilers_that_dump(folder: Path) -> None:
    targets = [parse_target(f"{folder}/{name}") for name in ("kernels.py:good", "random.py:exits")]
    good, _ = climb_several([targets[0], targets[1]], **GIVEN, estimates=True)
    assert good.reports[0].of("compile").estimate


def test_what_the_compiler_refuses_is_refused_as_ever(folder: Path) -> None:
    large: dict[str, Any] = {"args": "f32[8192,8192]"}
    with_it, plain = (compiled(folder, **large, estimates=asked) for asked in (True, False))
    assert with_it.status is Status.REFUSED
    assert without(with_it) == without(plain)


@pytest.mark.parametrize("fault", ["raises", "leaves", "hangs"])
def test_whatever_becomes_of_the_estimate_the_verdict_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The planted faults: the estimator itself raises, ends its process, or does not come back."""
    body = {"raises": "raise KeyError('fault')", "leaves": "os._exit(9)", "hangs": "time.sleep(99)"}
    (folder / "sick.py").write_text(
        "import os, time\nfrom kernels import good\nimport pallas_rungs.performance.operands as o\n"
        f"def fault(*_):\n    {body[fault]}\no.known_operands = fault\n"
    )
    monkeypatch.setattr("pallas_rungs.ladder.workers.ESTIMATE_LIMIT", 3.0)
    found = climb_file(
        folder / "sick.py", "good", **{**GIVEN, "rungs": [Rung.COMPILE]}, estimates=True
    )
    verdict = found.reports[0].of("compile")
    assert verdict.status is Status.PASSED
    assert verdict.said == verdict.summary == "compiles for v5e"
    said = {"raises": "KeyError", "leaves": "exit code 9", "hangs": "longer than 3 s"}
    assert said[fault] in verdict.details["estimate"]["none"]


def test_a_compiler_that_dies_of_dumping_is_asked_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: flags that the dumping compiler cannot start with."""
    monkeypatch.setattr(dumps, "dump_flags", lambda kinds: "--no_such_flag_of_libtpu=1")
    dumps.close()
    x = np.zeros((64, 256), np.float32)
    try:
        verdict = climb(add, x, x, rungs=["compile"], estimates=True).of("compile")
    finally:
        dumps.close()
    assert verdict.passed
    assert verdict.said == "compiles for v5e"


def test_the_command_shows_it_unless_told_not_to(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("climb", f"{folder}/kernels.py:good", "--args", "f32[64,256]", "--rung", "5")
    assert cli.main([*words, "--plain"]) == 0
    assert "not a measurement" in capsys.readouterr().out
    assert cli.main([*words, "--plain", "--no-estimate"]) == 0
    assert "estimate" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "low", "high", "guessed", "text"),
    [
        (7.5e-4, 7.4e-4, 7.6e-4, [], "estimate 750 µs (740 to 760 µs), not a measurement"),
        (1e-3, 9e-4, 1.1e-3, [], "estimate 1 ms (900 µs to 1.1 ms), not a measurement"),
        (2e-3, None, None, [], "estimate 2 ms (error not known), not a measurement"),
        (2e-3, 1e-3, 4e-3, ["n"], "estimate 2 ms (1 to 4 ms, partly guessed), not a measurement"),
    ],
)
def test_its_words(
    seconds: float, low: float | None, high: float | None, guessed: list[str], text: str
) -> None:
    found = {"seconds": seconds, "low": low, "high": high, "unresolved": guessed}
    assert in_words(found) == text


@pytest.mark.parametrize(
    ("low", "text"),
    [
        (None, "estimate 2 ms (error not known), not a measurement"),
        (1e-3, "estimate 2 ms (1 to 4 ms), not a measurement"),
    ],
)
def test_its_words_name_what_is_fetched_before_the_start(low: float | None, text: str) -> None:
    high = low and 4 * low
    found = {"seconds": 2e-3, "low": low, "high": high, "unresolved": []}
    assert in_words({**found, "prefetched_bytes": 0}) == text
    without = f"{text}, without 3 KiB that are fetched onto the chip before it starts"
    assert in_words({**found, "prefetched_bytes": 3072}) == without
