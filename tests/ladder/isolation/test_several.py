"""Several targets in one call: all are tried, a file's own in one process, and all end together."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from ladder.isolation.running import started
from pallas_rungs import cli
from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.service import ADDRESS_VARIABLE, Service
from pallas_rungs.ladder.batch import _chunks, climb_several
from pallas_rungs.ladder.loading import Target, parse_target
from pallas_rungs.ladder.printing import exit_code, summary
from pallas_rungs.ladder.status import Rung, Status

pytestmark = pytest.mark.usefixtures("nothing_left")

GIVEN = {"args": "f32[16,256]", "rungs": [Rung.TRACE]}


def targets(folder: Path, *names: str) -> list[Target]:
    return [parse_target(f"{folder}/{name}") for name in names]


def test_all_are_tried_in_the_order_given_and_one_that_cannot_be_does_not_stop_them(
    folder: Path,
) -> None:
    climbs = climb_several(
        targets(folder, "kernels.py:good", "missing_import.py:f", "random.py:exits"), **GIVEN
    )
    assert [Path(climb.target).name for climb in climbs] == [
        "kernels.py:good",
        "missing_import.py:f",
        "random.py:exits",
    ]
    good, broken, exits = climbs
    assert good.reports[0].status("trace") is Status.PASSED
    assert "no_such_module" in broken.error
    assert not broken.passed
    assert exits.reports[0].status("trace") is Status.CRASHED
    assert [exit_code([climb]) for climb in climbs] == [0, 2, 1]
    assert exit_code([good, broken]) == 2
    assert exit_code(climbs) == 1
    assert summary(climbs).startswith("3 targets: 1 passed, 1 at fault (")


def test_functions_of_one_file_share_its_process(folder: Path) -> None:
    names = ("kernels.py:counts", "kernels.py:counts", "kernels.py:good", "kernels.py:good")
    first, second, *_ = climb_several(targets(folder, *names), **GIVEN)
    assert first.last_lines[0] == "tried 4"
    (tried,) = second.last_lines[:1]
    assert int(tried.split()[1]) > 4, "the file was loaded a second time"


def test_a_process_that_one_function_killed_is_not_given_to_the_next(folder: Path) -> None:
    names = ("kernels.py:exits", "kernels.py:good", "kernels.py:segfaults", "kernels.py:good")
    climbs = climb_several(targets(folder, *names), **GIVEN)
    statuses = [climb.reports[0].status("trace") for climb in climbs]
    assert statuses == [Status.CRASHED, Status.PASSED, Status.CRASHED, Status.PASSED]


@pytest.mark.skipif(not libtpu.libtpu_version(), reason="libtpu is not installed")
def test_files_share_the_compilers_and_those_end_with_the_climbs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    service = libtpu.service

    def noted(workers: int) -> Service:
        started.append(service(workers))
        return started[-1]

    monkeypatch.setattr(libtpu, "service", noted)
    given = {"args": "f32[16,256]", "rungs": [Rung.COMPILE], "cache": False}
    climbs = climb_several(targets(folder, "kernels.py:good", "status.py:good"), **given)
    assert [climb.passed for climb in climbs] == [True, True]
    assert len(started) == 1
    assert not Path(started[0].address).exists()
    assert os.environ.get(ADDRESS_VARIABLE) is None


def test_the_work_is_shared_out_by_file_and_evenly() -> None:
    a, b, c = (Path(name) for name in "abc")
    assert _chunks([Target(a, "f"), Target(b, "f"), Target(a, "g")], 2) == [[0, 2], [1]]
    assert _chunks([Target(a, "f"), Target(a, "g"), Target(a, "h")], 2) == [[0, 1], [2]]
    assert _chunks([Target(a, "f")], 2) == [[0]]
    shared = _chunks([Target(p, s) for p in (a, b, c) for s in "fgh"], 2)
    assert sorted(index for chunk in shared for index in chunk) == list(range(9))


def test_json_lists_several_climbs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{folder}/kernels.py:good", f"{folder}/missing_import.py:f"]
    code = cli.main(["climb", *names, "--args", "f32[8,128]", "--rung", "1", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert code == data["exit_code"] == 2
    assert [bool(climb["reports"]) for climb in data["climbs"]] == [True, False]
    assert "no_such_module" in data["climbs"][1]["error"]


def test_a_junit_report_is_written_whatever_else_is_printed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.xml"
    names = [f"{folder}/kernels.py:good", f"{folder}/kernels.py:returns_value"]
    words = ["--args", "f32[8,128]", "--rung", "1", "--markdown", "--junit", str(file)]
    assert cli.main(["climb", *names, *words]) == 1
    assert capsys.readouterr().out.startswith("### `")
    root = ElementTree.parse(file).getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")


@pytest.mark.parametrize(
    ("place", "message"),
    [("nowhere/report.xml", "there is no folder"), (".", "is a folder")],
)
def test_a_junit_file_that_cannot_be_is_told_before_the_climb(
    folder: Path, tmp_path: Path, place: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("climb", f"{folder}/kernels.py:good", "--junit", str(tmp_path / place))
    assert cli.main(words) == 2
    assert message in capsys.readouterr().err


def test_interruption_of_several_climbs_leaves_nothing(folder: Path, nothing_left: Path) -> None:
    names = [f"{folder}/loop_import.py:f", f"{folder}/kernels.py:loops"]
    climb, below = started(*names, "--args", "f32[8,128]", processes=4)
    os.kill(climb.pid, signal.SIGINT)
    _, said = climb.communicate(timeout=30)
    _, alive = psutil.wait_procs(below, timeout=5)
    assert alive == []
    assert climb.returncode == 130
    assert said.strip().endswith("interrupted")
    assert "Traceback" not in said
