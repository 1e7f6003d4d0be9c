"""Reports that the pages of one build share: made once, read by all, never left half-written."""

import threading
from pathlib import Path

import pytest

from pallas_rungs.compilers.once import FOLDER
from pallas_rungs.ladder import Report, Rung, Status, Verdict
from pallas_rungs.ladder.sharing import make_if_free, shared_report


class Climbs:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Report:
        self.count += 1
        verdict = Verdict.of(Rung.TRACE, Status.PASSED, summary=f"climb {self.count}")
        return Report("bug", (verdict,))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path / "climbs"))
    return tmp_path / "climbs"


@pytest.mark.usefixtures("folder")
def test_a_report_is_made_once_and_read_back_as_it_was() -> None:
    climb = Climbs()
    first, again = shared_report("bug", climb), shared_report("bug", climb)
    assert climb.count == 1
    assert first == again == Report("bug", first.verdicts, first.versions)
    assert first.of("trace").summary == "climb 1"
    shared_report("another bug", climb)
    assert climb.count == 2


def test_without_a_folder_every_call_climbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    climb = Climbs()
    shared_report("bug", climb)
    shared_report("bug", climb)
    make_if_free("bug", climb)
    assert climb.count == 2


def test_who_comes_second_waits_for_the_first_or_leaves_it(folder: Path) -> None:
    climb, begun, go_on = Climbs(), threading.Event(), threading.Event()
    reports: list[Report] = []

    def slow() -> Report:
        begun.set()
        assert go_on.wait(60)
        return climb()

    first = threading.Thread(target=lambda: reports.append(shared_report("bug", slow)))
    second = threading.Thread(target=lambda: reports.append(shared_report("bug", climb)))
    first.start()
    assert begun.wait(60)
    make_if_free("bug", climb)  # somebody is at it
    assert climb.count == 0
    second.start()
    go_on.set()
    first.join(60)
    second.join(60)
    assert climb.count == 1
    assert reports[0] == reports[1]
    assert not list(folder.glob("*.draft"))


@pytest.mark.usefixtures("folder")
def test_a_climb_that_fails_leaves_nothing_behind() -> None:
    def failing() -> Report:
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError, match="no compiler"):
        shared_report("bug", failing)
    climb = Climbs()
    assert shared_report("bug", climb).passed
    assert climb.count == 1
