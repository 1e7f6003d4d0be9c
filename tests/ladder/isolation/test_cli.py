"""The command line: exit codes, one-line errors, JSON, interruption."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import psutil
import pytest

from ladder.isolation.running import started
from pallas_rungs import cli
from pallas_rungs.ladder import printing
from pallas_rungs.ladder.climb_help import CLIMB_HELP
from pallas_rungs.ladder.compare import default_tolerance
from pallas_rungs.ladder.estimate_beside import KEPT, in_words
from pallas_rungs.ladder.status import EVERY_RUNG_HERE, Rung, Status
from pallas_rungs.ladder.verdict import Verdict
from pallas_rungs.performance import Estimate

pytestmark = pytest.mark.usefixtures("nothing_left")


def run(
    *words: str, stdin: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pallas_rungs", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        input=stdin,
        timeout=120,
        check=False,
    )


def test_all_passed_is_0_and_piped_output_is_plain(folder: Path) -> None:
    done = run("climb", f"{folder}/kernels.py:good", "--args", "f32[8,128]", "--rung", "2,trace")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "good"
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["1", "trace", "passed"],
        ["2", "interpret", "passed"],
    ]
    assert "\x1b" not in done.stdout
    assert "jax " in lines[-1]


def test_json_is_alone_on_the_output_and_prints_are_not_in_it(folder: Path) -> None:
    done = run(
        *("climb", f"{folder}/print_import.py:good", "--args", "f32[8,128]"),
        *("--reference", f"{folder}/kernels.py:wrong_reference", "--rung", "interpret", "--json"),
    )
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert data["exit_code"] == 1
    assert not data["passed"]
    (climb,) = data["climbs"]
    assert climb["printed_lines"] == 1
    (verdict,) = climb["reports"][0]["verdicts"]
    assert (verdict["rung"], verdict["status"]) == ("interpret", "wrong")
    assert verdict["difference"]["total"] == 8 * 128


def test_a_file_that_ends_its_process_is_one_message(folder: Path) -> None:
    done = run("climb", f"{folder}/exit_import.py:f", "--args", "f32[8]", stdin="typed\n")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "pallas_rungs climb: exit_import.py could not be imported: "
        "the process left with exit code 5 while it was executed\n"
    )


def test_a_dtype_that_jax_has_switched_off_is_no_fault_of_the_file(folder: Path) -> None:
    done = run("climb", f"{folder}/kernels.py:good", "--args", "f64[8,128]")
    assert done.returncode == 2
    assert "at character 1: expected a dtype that jax has with 64-bit types off" in done.stderr
    assert "could not be imported" not in done.stderr


def test_a_report_names_files_below_the_current_folder_from_there(
    folder: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.py").write_bytes((folder / "kernels.py").read_bytes())
    words = ("climb", "mine.py:returns_value", "--args", "f32[8,128]", "--rung", "1")
    assert "      at mine.py:" in run(*words, cwd=here).stdout
    far = run("climb", f"{here}/{words[1]}", *words[2:], cwd=tmp_path / "tmp")
    assert f"      at {here}/mine.py:" in far.stdout
    exact = json.loads(run(*words, "--json", cwd=here).stdout)
    (climb,) = exact["climbs"]
    assert climb["reports"][0]["verdicts"][0]["error"]["frame"]["file"] == f"{here}/mine.py"


def test_what_python_prints_of_a_crash_is_not_said_to_be_the_files(folder: Path) -> None:
    done = run("climb", f"{folder}/kernels.py:segfaults", "--args", "f32[8]", "--rung", "1")
    assert done.returncode == 1
    assert "crashed" in done.stdout
    assert "kernels.py:" in done.stdout
    assert done.stderr == ""


def test_what_no_terminal_can_show_is_written_out(folder: Path) -> None:
    done = run("climb", f"{folder}/kernels.py:raises_odd_text", "--args", "f32[8]", "--rung", "1")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "ValueError: bad \\ud800 \\x00 \\x07 yyy" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("clim",), "invalid choice: 'clim'"),
        (("climb",), "required: FILE:SYMBOL"),
        (("climb",), "(see python -m pallas_rungs climb --help)"),
        (("climb", "kernels.py:good", "--args", "f32[9999999,9999999]"), "give smaller shapes"),
        (("climb", "kernels.py"), "has no symbol"),
        (("climb", "kernels.py:good", "--args", "f32[8"), "closing ]"),
        (("climb", "kernels.py:good", "--chip", "v99"), "unknown chip 'v99'"),
        (("climb", "kernels.py:good", "--rung", "6"), "nothing here runs on a chip"),
        (("climb", "kernels.py:good", "--rung", "up"), "there is no rung 'up'"),
        (("climb", "kernels.py:good", "--time-limit", "-3"), "number of seconds above 0"),
        (("climb", "kernels.py:good", "--rtol", "nan"), "not a tolerance"),
        (("climb", "kernels.py:good", "--seed", "-1"), "'-1' is not a seed"),
        (("estimate", "kernels.py:good", "--seed", "1.5"), "'1.5' is not a seed"),
        (("climb", "syntax.py:good"), "syntax.py:1: SyntaxError"),
        (("climb", "nowhere.py:good"), "there is no file nowhere.py"),
    ],
)
def test_usage_errors_are_2_and_short(
    folder: Path,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    try:
        code = cli.main(words)
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert message in said.err
    assert "Traceback" not in said.err
    assert said.err.count("\n") <= 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here (Linux only)")
@pytest.mark.parametrize("words", [("doctor",), ("climb", "--plain"), ("climb", "--json")])
def test_output_that_has_no_room_is_one_line(folder: Path, words: tuple[str, ...]) -> None:
    target = [f"{folder}/kernels.py:good", "--args", "f32[8,128]", "--rung", "1"]
    given = [*words, *(target if words[0] == "climb" else ())]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pallas_rungs", *given],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "the output could not be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_closed_streams_and_a_folder_that_is_gone_are_no_tracebacks(tmp_path: Path) -> None:
    words = f"{sys.executable} -m pallas_rungs"
    gone = tmp_path / "gone"
    gone.mkdir()
    for script, code in (
        (f"{words} doctor >&- 2>{tmp_path}/said", 0),
        (f"{words} doctor >/dev/null 2>&-; [ $? -ne 1 ]", 0),
        (f"cd {gone}; rmdir {gone}; {words} doctor 2>{tmp_path}/gone-said", 2),
    ):
        done = subprocess.run(["sh", "-c", script], timeout=120, check=False)
        assert done.returncode in (code, 3 if code == 0 else code), script
    assert "Traceback" not in (tmp_path / "said").read_text()
    said = (tmp_path / "gone-said").read_text()
    assert said.startswith("pallas_rungs: the folder that this was started in is no longer there")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((Status.PASSED, Status.PASSED), 0),
        ((Status.PASSED, Status.UNCHECKED), 3),
        ((Status.UNAVAILABLE, Status.TOOL_CANNOT), 3),
        ((Status.UNCHECKED, Status.WRONG), 1),
        *(((status,), 1) for status in Status if status.blames_kernel),
        ((Status.NO_KERNEL,), 1),
        ((Status.REFERENCE_FAILED,), 1),
    ],
)
def test_exit_codes(statuses: tuple[Status, ...], code: int) -> None:
    assert printing.exit_code_of(Verdict.of(Rung.TRACE, status) for status in statuses) == code


def test_rungs_and_chips_by_name_number_list_and_repetition() -> None:
    assert cli.rungs_named(None) == EVERY_RUNG_HERE
    assert cli.rungs_named(["5, trace", "trace"]) == (Rung.TRACE, Rung.COMPILE)
    assert cli.chips_named(None) is None
    assert cli.chips_named(["sm90a, b200"]) == ("h100", "b200")
    assert cli.chips_named(["v6e,v7x", "V6E"]) == ("v6e", "tpu7x")
    assert "v5p" in cli.chips_named(["all"])


def test_the_help_says_that_the_file_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["climb", "--help"])
    assert left.value.code == 0
    assert "executes the file" in capsys.readouterr().out


def test_the_command_line_starts_without_jax() -> None:
    code = (
        "import sys; from pallas_rungs import cli, doctor; import pallas_rungs.ladder.files;"
        "sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interruption_leaves_no_process_and_no_folder(
    folder: Path, nothing_left: Path, number: signal.Signals
) -> None:
    climb, below = started(f"{folder}/loop_import.py:f", processes=2)
    os.kill(climb.pid, number)
    _, said = climb.communicate(timeout=30)
    _, alive = psutil.wait_procs(below, timeout=5)
    assert alive == []
    if number == signal.SIGINT:
        assert climb.returncode == 130
        assert said.strip() == "interrupted"
    deadline = time.monotonic() + 5
    while list(nothing_left.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)


def test_doctor_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["doctor", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["exit_code"] == code
    names = {item["name"]: item for item in data["items"]}
    assert names["python"]["version"].startswith(f"{sys.version_info.major}.")
    assert names["jax"]["ok"]
    compilers = [rung["optional"] for rung in data["rungs"] if rung["rung"] == "compile"]
    assert compilers == [False, True]
    assert list(dict.fromkeys(rung["rung"] for rung in data["rungs"])) == list(map(str, Rung))
    assert data["rungs"][0]["available"]


def test_doctor_offers_the_cuda_compiler_and_asks_for_it_of_nobody(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pallas_rungs.compilers import cuda

    with_it = cli.main(["doctor"])
    monkeypatch.setattr(cuda, "plugin_version", lambda: None)
    monkeypatch.setattr("sys.platform", "linux")
    capsys.readouterr()
    assert cli.main(["doctor"]) == with_it
    said = capsys.readouterr().out
    assert '-m pip install "jax-cuda13-plugin==' in said
    assert "nvidia-cuda-nvdisasm" in said
    assert "optional extra" in said


def test_doctor_names_the_line_that_installs_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pallas_rungs.compilers import libtpu

    monkeypatch.setattr(libtpu, "libtpu_version", lambda: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.platform", "linux")
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert 'pip install "libtpu==0.0.50.*"' in said
    assert "sudo apt-get install nodejs" in said
    assert "sudo apt-get install chromium" in said
    assert any(line.startswith("no ") and "5 compile" in line for line in said.splitlines())


def test_doctor_says_that_another_jax_is_not_the_one_that_was_tested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0.1" if name == "jax" else installed(name)
    )
    cli.main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.split()[:3] == ["ok", "jax", "0.1"])
    assert "tested with jax==" in lines[at + 1]
    assert 'pip install "jax==' in lines[at + 2]


def test_a_reference_that_does_not_fit_is_a_usage_error(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tuned.py"
    more = "\ndef tuned(x, block=8):\n    return good(x)\n\ndef reference(x):\n    return x * 2\n"
    file.write_text((folder / "kernels.py").read_text() + more)
    words = ["climb", f"{file}:tuned", "--rung", "interpret", "--reference", "reference"]
    assert cli.main([*words, "--args", "f32[8,128], 8"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "give it by name (block=…)" in said.err
    assert cli.main([*words, "--args", "f32[8,128], block=8"]) == 0
    assert "block goes to the kernel alone" in capsys.readouterr().out


def test_json_has_the_one_shape_that_the_help_describes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, missing = f"{folder}/kernels.py:good", f"{folder}/missing_import.py:f"
    words = ["--args", "f32[8,128]", "--rung", "1", "--json"]
    for targets, code in (([good], 0), ([missing], 2), ([good, missing], 2)):
        assert cli.main(["climb", *targets, *words]) == code
        data = json.loads(capsys.readouterr().out)
        assert list(data) == ["climbs", "passed", "exit_code"]
        assert (data["exit_code"], data["passed"]) == (code, code == 0)
        assert [climb["target"].rpartition(":")[2] for climb in data["climbs"]] == [
            target.rpartition(":")[2] for target in targets
        ]
        for climb in data["climbs"]:
            assert ("error" in climb) == climb["target"].endswith("missing_import.py:f")
            assert set(climb) - {"error"} == {"target", "passed", "reports", "printed_lines"}
            for report in climb["reports"]:
                assert list(report) == described("report")
                assert [list(verdict) for verdict in report["verdicts"]] == [described("verdict")]


def described(name: str) -> list[str]:
    """The keys that the help names for a part of the JSON."""
    _, _, after = CLIMB_HELP.partition(f"\n  {name} ")
    lines = after.split("\n")
    text = lines[0]
    for line in lines[1:]:
        if not line.startswith("     "):
            break
        text += line
    return [word.strip() for word in text.split(",")]


def test_the_help_of_estimate_names_every_key_of_an_estimate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["estimate", "--help"])
    _, _, after = capsys.readouterr().out.partition("ESTIMATE  kind")
    named = set(re.findall(r"\w+", after.partition("where there is none")[0]))
    assert {*Estimate.__dataclass_fields__, "constants"} <= named


def test_the_help_names_what_stands_beside_a_compiled_program() -> None:
    assert described("details.estimate") == ["chip", "text", *KEPT]
    told = " ".join(CLIMB_HELP.split())
    found = {"seconds": 7.5e-4, "low": 7.4e-4, "high": 7.6e-4, "unresolved": []}
    assert in_words(found) in told
    for change, word in (
        ({"unresolved": ["x"]}, "partly guessed"),
        ({"low": None}, "error not known"),
    ):
        assert word in in_words(found | change)
        assert f"\n  {word} " in CLIMB_HELP
    assert "--no-estimate" in told


def test_the_help_names_the_default_tolerances() -> None:
    for name, dtype in (("float32", np.float32), ("bfloat16", jnp.bfloat16), ("float16", "f2")):
        rtol = default_tolerance(np.dtype(dtype), np.ones(1)).rtol
        assert f"{rtol:.1e}".replace("e-0", "e-") + f" for {name}" in " ".join(CLIMB_HELP.split())
