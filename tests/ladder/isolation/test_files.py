"""Files, symbols and cases that cannot be tried: one clear error each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pallas_rungs.ladder.arguments import ArgumentError
from pallas_rungs.ladder.files import climb_file
from pallas_rungs.ladder.loading import LoadError
from pallas_rungs.ladder.status import Rung

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize(
    ("file", "symbol", "options", "message"),
    [
        ("nowhere.py", "f", {}, "there is no file .*nowhere.py"),
        ("syntax.py", "f", {}, r"syntax\.py:1: SyntaxError: .*def f\(:"),
        ("exit_import.py", "f", {}, "exit code 5 while it was executed"),
        ("stdin_import.py", "f", {}, r"reads standard input.*\n.*stdin_import\.py:1: x = input"),
        ("loop_import.py", "f", {"time_limit": 3.0}, r"still busy after 3 s\n.*loop_import.py:"),
        ("kernels.py", "goood", {}, "no 'goood'; did you mean 'good'"),
        ("kernels.py", "good", {"args": None}, "neither inputs.. nor cases.."),
        ("kernels.py", "good", {"args": "f32[8,128], f32[8,128]"}, r"takes 1 \(x\), and 2 are"),
        ("kernels.py", "good", {"reference": "nope"}, "no 'nope'"),
        ("kernels.py", "good", {"reference": "nofile.py:f"}, "there is no file nofile.py"),
        ("broken_cases.py", "good", {"args": None}, "ZeroDivisionError.*\n.*return \\[1 / 0\\]"),
        ("cases_file.py", "good", {"args": None, "case": "six"}, "no case 'six'.*one, two"),
        (
            "slow_inputs.py",
            "good",
            {"time_limit": 3.0},
            "the arguments could not be made: that was .* after 3 s; give smaller shapes, or a",
        ),
        ("no_memory.py", "good", {}, "the arguments are too large to be made here: no room; give"),
        (
            "sick_ladder.py",
            "good",
            {},
            "sick_ladder.py: the ladder itself failed before it was tried; please report it: Key",
        ),
    ],
)
def test_says_what_is_wrong(
    folder: Path, file: str, symbol: str, options: dict[str, Any], message: str
) -> None:
    given = {"args": "f32[8,128]", "rungs": [Rung.TRACE], **options}
    with pytest.raises(LoadError, match=message):
        climb_file(folder / file, symbol, **given)


def test_arguments_are_parsed_before_anything_starts(folder: Path) -> None:
    with pytest.raises(ArgumentError, match="closing ]"):
        climb_file(folder / "loop_import.py", "f", args="f32[3")


def test_an_unknown_chip_is_found_before_anything_starts(folder: Path) -> None:
    with pytest.raises(ValueError, match="unknown chip 'v99'"):
        climb_file(folder / "loop_import.py", "f", chips=["v99"])


def test_the_cases_of_the_file_are_all_tried_or_the_one_asked_for(folder: Path) -> None:
    path = folder / "cases_file.py"
    both = climb_file(path, "good", rungs=[Rung.INTERPRET])
    assert [report.name for report in both.reports] == ["good one", "good two"]
    assert both.passed
    one = climb_file(path, "good", rungs=[Rung.TRACE], case="two")
    assert [report.name for report in one.reports] == ["good two"]
