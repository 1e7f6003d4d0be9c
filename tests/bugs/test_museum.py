"""The museum on the ladder: every bug, sick and cured, gets the verdicts that its module states."""

from types import ModuleType

import pytest

from pallas_rungs.bugs import MUSEUM
from pallas_rungs.ladder import Report, Rung, Status, climb
from pallas_rungs.ladder.rules import NO_SIGN, suggestions
from pallas_rungs.museum import changes, climb_bug, climb_bugs, matrix_text, recorded, verdicts

each_bug = pytest.mark.parametrize("bug", MUSEUM, ids=lambda bug: bug.__name__.rpartition(".")[2])


def climbed(bug: ModuleType, variant: str, **options: object) -> list[Report]:
    return [
        climb(
            getattr(bug, variant),
            *case.args,
            reference=bug.reference,
            rtol=case.rtol,
            atol=case.atol,
            name=f"{bug.__name__}: {variant}: {case.name}",
            **options,
        )
        for case in bug.cases()
    ]


@each_bug
def test_the_sick_kernel_gets_the_expected_verdicts(bug: ModuleType) -> None:
    report = climb_bug(bug)
    assert verdicts(report) == bug.EXPECTED, report
    assert str(report.first_caught() or "none") == bug.FIRST_CAUGHT, report
    assert len(bug.cases()) == 1, "climb_bug tries the first case only"
    pointed_to = {each.rule.name for v in report.verdicts for each in suggestions(v)}
    assert bug.__name__.rpartition(".")[2] in pointed_to | set(NO_SIGN), report


@each_bug
def test_the_cured_kernel_passes_every_rung_that_can_try_it(bug: ModuleType) -> None:
    cannot = {rung: said for rung, said in bug.EXPECTED.items() if said == "tool cannot"}
    for report in climbed(bug, "fixed"):
        assert verdicts(report) == {**dict.fromkeys(bug.EXPECTED, "passed"), **cannot}, report


def test_the_matrix_is_the_recorded_one() -> None:
    found = {name: verdicts(report) for name, report in climb_bugs().items()}
    if differs := changes(recorded(), found):
        pytest.fail("\n".join([*differs, "", matrix_text(found)]), pytrace=False)


def test_a_block_too_large_for_one_chip_fits_another() -> None:
    bug = next(bug for bug in MUSEUM if bug.__name__.endswith("all_of_k_in_a_block"))
    (report,) = climbed(bug, "broken", rungs=[Rung.COMPILE], chips=["v5e", "v6e", "tpu7x"])
    assert report.status(Rung.COMPILE, "v5e") == Status.REFUSED, report
    assert report.status(Rung.COMPILE, "v6e") == Status.PASSED, report
    assert report.status(Rung.COMPILE, "tpu7x") == Status.PASSED, report


def test_a_parallel_reduction_shows_on_two_cores_only() -> None:
    bug = next(bug for bug in MUSEUM if bug.__name__.endswith("parallel_reduction"))
    (report,) = climbed(bug, "broken", rungs=[Rung.SIMULATE])
    assert report.status(Rung.SIMULATE, "default") == Status.PASSED, report
    assert report.status(Rung.SIMULATE, "races") == Status.PASSED, report
    assert report.status(Rung.SIMULATE, "two cores") == Status.REFUSED, report


def test_a_copy_not_waited_for_shows_in_both_ways() -> None:
    bug = next(bug for bug in MUSEUM if bug.__name__.endswith("dma_without_wait"))
    (report,) = climbed(bug, "broken", rungs=[Rung.SIMULATE])
    assert report.status(Rung.SIMULATE, "default") == Status.WRONG, report
    assert report.status(Rung.SIMULATE, "races") == Status.REFUSED, report
