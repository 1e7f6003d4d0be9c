"""A file that misbehaves gets a verdict, on the rung where it does, and the other rungs go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_rungs.compilers import libtpu
from pallas_rungs.ladder.files import climb_file
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.status import Rung, Status

pytestmark = pytest.mark.usefixtures("nothing_left")

MATRIX = "f32[16,256]"


def climb(
    folder: Path,
    symbol: str,
    rungs: str = "trace interpret",
    *,
    file: str = "kernels.py",
    args: str | None = MATRIX,
    reference: str | None = "good_reference",
    limit: float = 60.0,
) -> Report:
    result = climb_file(
        folder / file,
        symbol,
        args=args,
        reference=reference,
        rungs=[Rung(rung) for rung in rungs.split()],
        time_limit=limit,
        cache=False,
    )
    (report,) = result.reports
    return report


def test_a_healthy_kernel_passes_every_rung(folder: Path) -> None:
    report = climb(folder, "good", "trace interpret simulate lower compile")
    compiled = Status.PASSED if libtpu.libtpu_version() else Status.UNAVAILABLE
    assert [v.status for v in report.verdicts if v.rung is not Rung.COMPILE] == [Status.PASSED] * 5
    assert report.status("compile", "v5e") is compiled


def test_a_wrong_result_is_wrong_and_only_where_numbers_are(folder: Path) -> None:
    report = climb(folder, "good", "trace interpret lower", reference="wrong_reference")
    assert report.status("trace") is Status.PASSED
    assert report.status("interpret") is Status.WRONG
    assert report.status("lower") is Status.PASSED


def test_without_a_reference_numbers_are_unchecked(folder: Path) -> None:
    report = climb(folder, "counts", "interpret", reference=None)
    assert report.status("interpret") is Status.UNCHECKED


def test_a_kernel_that_returns_a_value_is_refused(folder: Path) -> None:
    verdict = climb(folder, "returns_value", "trace").of("trace")
    assert verdict.status is Status.REFUSED
    assert verdict.error is not None
    assert "should return None" in verdict.error.message


def test_leaving_is_an_error_like_others(folder: Path) -> None:
    report = climb(folder, "leaves")
    assert {v.status for v in report.verdicts} == {Status.REFUSED}
    assert report.verdicts[0].error is not None
    assert report.verdicts[0].error.type == "SystemExit"


def test_os_exit_while_tracing_is_a_crash_and_is_not_tried_again(folder: Path) -> None:
    report = climb(folder, "exits")
    first, second = report.verdicts
    assert first.status is second.status is Status.CRASHED
    assert "exit code 3" in first.summary
    assert second.details == {"not_tried": True}


def test_os_exit_while_running_spares_the_other_rungs(folder: Path) -> None:
    report = climb(folder, "exits_while_running", "trace interpret lower")
    assert report.status("trace") is Status.PASSED
    assert report.status("interpret") is Status.CRASHED
    assert "exit code 0" in report.of("interpret").summary
    assert report.status("lower") is not Status.CRASHED


def test_a_segmentation_fault_names_the_line(folder: Path) -> None:
    verdict = climb(folder, "segfaults", "trace").of("trace")
    assert verdict.status is Status.CRASHED
    assert verdict.error is not None
    assert verdict.error.type == "SIGSEGV"
    assert verdict.error.frame is not None
    assert verdict.error.frame.source == "ctypes.string_at(0)"


def test_an_endless_loop_while_tracing_is_timed_out_with_its_line(folder: Path) -> None:
    verdict = climb(folder, "loops", "trace", limit=4).of("trace")
    assert verdict.status is Status.TIMED_OUT
    assert verdict.error is not None
    assert verdict.error.frame is not None
    assert verdict.error.frame.function == "loops"


def test_an_endless_loop_in_the_kernel_is_timed_out_and_lower_goes_on(folder: Path) -> None:
    report = climb(folder, "loops_in_kernel", "trace interpret lower", limit=5)
    assert report.status("trace") is Status.PASSED
    assert report.status("interpret") is Status.TIMED_OUT
    assert report.status("lower") is Status.PASSED


def test_a_wait_for_nothing_is_a_deadlock(folder: Path) -> None:
    assert climb(folder, "waits", "trace", limit=4).status("trace") is Status.DEADLOCKED


def test_a_semaphore_that_nobody_signals_is_a_deadlock_of_the_simulator(folder: Path) -> None:
    report = climb(folder, "semaphore_never", "simulate lower", limit=12)
    assert report.status("simulate", "default") is Status.DEADLOCKED
    assert report.status("lower") is Status.PASSED


@pytest.mark.skipif(
    libtpu.libtpu_version() != "0.0.50.1", reason="libtpu 0.0.50.1 is the one that aborts here"
)
def test_a_compiler_that_aborts_is_a_crash_with_its_last_word(folder: Path) -> None:
    report = climb(
        folder, "aborts_compiler", "lower compile", args="f32[16,256], f32[1,256]", reference=None
    )
    assert report.status("lower") is Status.PASSED
    verdict = report.of("compile")
    assert verdict.status is Status.CRASHED
    assert "Check failed: llo::CouldLtS32" in verdict.summary


def test_what_the_file_prints_is_kept_apart(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = climb_file(
        folder / "kernels.py",
        "prints",
        args=MATRIX,
        reference="good_reference",
        rungs=[Rung.TRACE, Rung.INTERPRET],
    )
    assert result.passed
    assert result.printed_lines >= 60_000
    assert "spam 29999" in result.last_lines
    assert capfd.readouterr() == ("", "")


def test_standard_input_is_empty(folder: Path) -> None:
    verdict = climb(folder, "reads_stdin", "trace").of("trace")
    assert verdict.status is Status.REFUSED
    assert verdict.error is not None
    assert verdict.error.type == "EOFError"


def test_a_file_that_closes_every_pipe_does_not_hang_the_climb(folder: Path) -> None:
    assert climb(folder, "closes_pipes", "trace").status("trace") is Status.CRASHED


def test_several_devices_run_and_compile(folder: Path) -> None:
    report = climb(
        folder,
        "shifts",
        "trace simulate compile",
        args="f32[32,128]",
        reference="shifts_reference",
    )
    assert report.status("trace") is Status.PASSED
    assert report.status("simulate", "default") is Status.PASSED
    if libtpu.libtpu_version():
        assert report.status("compile") is Status.PASSED
        assert report.of("compile").details["analysis"]["devices"] == 4


def test_a_fall_back_is_tried_again_as_on_a_chip(folder: Path) -> None:
    report = climb(folder, "pretend_falls_back", "trace lower")
    assert {v.status for v in report.verdicts} == {Status.PASSED}


def test_an_import_that_wants_a_tpu_is_given_a_pretended_one(folder: Path) -> None:
    report = climb(folder, "good", "trace interpret", file="needs_tpu.py")
    assert {v.status for v in report.verdicts} == {Status.PASSED}
    told = report.verdicts[0].details["pretend_before_import"]
    assert told["level"] >= 2
    assert "TPU required" in told["why"]
    assert "named before the import" in report.verdicts[0].summary


def test_one_process_serves_all_rungs_of_a_healthy_file(folder: Path) -> None:
    result = climb_file(
        folder / "kernels.py", "counts", args=MATRIX, rungs=[Rung.TRACE, Rung.LOWER]
    )
    tried = [line for line in result.last_lines if line.startswith("tried")]
    numbers = [int(line.split()[1]) for line in tried]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 2


@pytest.mark.parametrize("file", ["status.py", "random.py", "outer/inner/relative.py"])
def test_names_that_clash_and_relative_imports(folder: Path, file: str) -> None:
    report = climb(folder, "good", "trace interpret", file=file)
    assert {v.status for v in report.verdicts} == {Status.PASSED}


@pytest.mark.parametrize(
    ("symbol", "says"),
    [
        ("returns_text", "TypeError: "),
        ("raises_no_exception", "BaseException: mine"),
        ("interrupts_itself", "KeyboardInterrupt"),
        ("raises_what_cannot_speak", "Mute: "),
        ("raises_odd_text", "ValueError: bad \ud800 \x00"),
        ("recurses", "RecursionError"),
    ],
)
def test_whatever_it_raises_is_a_refusal_and_the_process_goes_on(
    folder: Path, symbol: str, says: str
) -> None:
    report = climb(folder, symbol, "trace lower")
    assert {v.status for v in report.verdicts} == {Status.REFUSED}
    assert all(v.summary.startswith(says) for v in report.verdicts)
    assert all(len(v.summary) < 1200 for v in report.verdicts)


@pytest.mark.parametrize("symbol", ["forks_and_both_go_on", "leaves_a_daemon", "prints_binary"])
def test_what_it_leaves_behind_changes_no_verdict(folder: Path, symbol: str) -> None:
    report = climb(folder, symbol, "trace interpret lower")
    assert [str(v.rung) for v in report.verdicts] == ["trace", "interpret", "lower"]
    assert {v.status for v in report.verdicts} == {Status.PASSED}


def test_its_folder_removed_or_its_tools_broken_is_a_verdict(folder: Path) -> None:
    assert climb(folder, "removes_its_folder", "trace").status("trace") is Status.PASSED
    assert climb(folder, "breaks_json", "trace").status("trace") is Status.CRASHED


def test_memory_that_is_not_there_is_no_fault_of_the_kernel(folder: Path) -> None:
    report = climb(folder, "takes_all_memory", "interpret lower")
    verdict = report.of("interpret")
    assert verdict.status is Status.TOOL_CANNOT, report
    assert "too little memory" in verdict.summary
    assert report.status("lower") is Status.PASSED


def test_a_fault_of_the_ladders_own_is_laid_at_its_door() -> None:
    from pallas_rungs.ladder import worker_main

    try:
        raise RuntimeError("our mistake")
    except RuntimeError as error:
        verdict = worker_main._escaped(error, Rung.LOWER, "v5e")
    assert verdict.status is Status.TOOL_CANNOT
    assert "the ladder itself failed" in verdict.summary
    assert "our mistake" in verdict.details["traceback"]
