"""The command `sweep`: a reader's file in several workers, refusals kept, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from ladder.isolation.running import started
from pallas_rungs import cli
from pallas_rungs.compilers import libtpu
from pallas_rungs.ladder.arguments import ArgumentError, parse_over

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
pytestmark = pytest.mark.usefixtures("nothing_left")

KERNELS = """
import os
import time
import jax
from jax.experimental import pallas as pl

def body(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]

def double(x, *, block=(8, 128), interpret=False):
    if block == (24, 128):
        os._exit(3)
    if x.shape[0] % block[0]:
        raise ValueError(f"{block[0]} rows do not divide {x.shape[0]}")
    spec = pl.BlockSpec(block, lambda i, j: (i, j))
    return pl.pallas_call(
        body,
        grid=(x.shape[0] // block[0], x.shape[1] // block[1]),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        interpret=interpret,
    )(x)

def made(interpret):
    return lambda x, rows=8: double(x, block=(rows, 128), interpret=interpret)

def scaled(x, factor, rows):
    return factor * double(x, block=(rows, 128))

def hangs(x, rows):
    time.sleep(1000)

def plain(x):
    return 2 * x

def broken(x):
    raise RuntimeError("my own trouble")
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reader") / "mine.py"
    path.write_text(KERNELS)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.main(["sweep", *map(str, words)])
    told = capsys.readouterr()
    return code, told.out, told.err


@needs_libtpu
def test_refusals_and_a_crash_stand_among_the_estimates_in_order(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = "block=(8,128),(24,128),(100,128),(512,1024),(2048,2048)"
    words = ("--args", "f32[2048,2048]", "--over", blocks, "--against", "plain", "--json")
    code, out, err = run(capsys, f"{file}:double", *words)
    assert (code, err) == (0, "")
    (found,) = json.loads(out)["sweeps"]
    trials = found["trials"]
    assert [it["configuration"]["block"][0] for it in trials] == [8, 24, 100, 512, 2048]
    assert ["estimate" in it for it in trials] == [True, False, False, True, False]
    assert found["best"] == 3
    crashed, own, over = (trials[place] for place in (1, 2, 4))
    assert (crashed["kind"], crashed["message"]) == ("crashed", "the process left with exit code 3")
    assert (own["kind"], own["error_type"]) == ("refused", "ValueError")
    assert own["message"] == "100 rows do not divide 2048"
    assert over["memory"]["limit"] == 16 * 2**20
    assert found["against"]["configuration"] == "plain"
    assert trials[3]["ratio"] == (
        trials[3]["estimate"]["seconds"] / found["against"]["estimate"]["seconds"]
    )


@needs_libtpu
def test_every_chip_has_a_table_and_every_value_meets_every_other(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--args", "f32[256,256], 3", "--over", "rows=8,128", "--chip", "v5e,v6e")
    code, out, _ = run(capsys, f"{file}:scaled", *words)
    assert code == 0
    first, second = out.strip().split("\n\n")
    assert "estimates for v5e, not measurements: best of 2 is rows=128" in first
    assert "estimates for v6e, not measurements" in second
    for text in (first, second):
        assert [line.split()[0] for line in text.splitlines()[2:4]] == ["rows=8", "rows=128"]


@needs_libtpu
def test_a_factory_is_swept_over_the_arguments_of_what_it_makes(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(
        capsys, f"{file}:made", "--args", "f32[256,256]", "--over", "rows=256", "--workers", "1"
    )
    assert code == 0
    assert "best of 1 is rows=256" in out


@needs_libtpu
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{file}:double", "--over", "block=(24,128)"), "crashed"),
        (("{file}:double", "--over", "block=(8,128)", "--against", "broken"), "my own trouble"),
    ],
)
def test_without_a_best_or_a_rival_it_is_1(
    file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    given = [word.format(file=file) for word in words]
    code, out, _ = run(capsys, *given, "--args", "f32[256,256]")
    assert code == 1
    assert said in out


@needs_libtpu
def test_one_that_hangs_is_a_result_after_its_time(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pallas_rungs.ladder.workers.START_LIMIT", 1.0)
    words = ("--args", "f32[8,128]", "--over", "rows=8", "--time-limit", "6")
    code, out, _ = run(capsys, f"{file}:hangs", *words)
    assert code == 1
    assert "deadlocked: it stood still" in out


@needs_libtpu
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{file}:double", "--over", "rows=8"), "double has no parameter rows to sweep over"),
        (("{file}:double", "--over", "block=8,x"), "expected Python numbers, quoted words"),
        (("{file}:double", "--over", "block="), "expected a value, such as 128"),
        (("{file}:double", "--over", "8,16"), "expected a name and an equals sign"),
        (("{file}:double", "--over", "block=(8,128)", "--chip", "v3"), "can be estimated are v5e"),
        (("{file}:double", "--over", "block=(8,128)", "--chip", "v9"), "can be estimated are v5e"),
        (("{file}:nothing", "--over", "rows=8"), "mine.py has no 'nothing'"),
        (("nowhere.py:f", "--over", "rows=8"), "there is no file nowhere.py"),
        (("{file}:double", "--over", "block=(8,128)", "--case", "two"), "gives no case 'two'"),
        (("{file}:scaled", "--over", "x=8,16"), "scaled is given x twice, by position and by name"),
    ],
)
def test_what_cannot_be_tried_is_one_message_and_2(
    file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    given = [word.format(file=file) for word in words]
    code, out, err = run(capsys, *given, "--args", "f32[256,256]")
    assert (code, out) == (2, "")
    assert err.startswith("pallas_rungs sweep: ")
    assert said in err
    assert "Traceback" not in err


@needs_libtpu
def test_json_says_why_a_target_could_not_be_tried(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--over", "rows=8", "--args", "f32[256,256]", "--json")
    code, out, err = run(capsys, f"{file}:nothing", *words)
    told = json.loads(out)
    assert (code, told["exit_code"], told["sweeps"]) == (2, 2, [])
    assert "mine.py has no 'nothing'" in told["error"]
    assert told["error"] in err


@pytest.mark.parametrize("words", [["x.py:f"], ["x.py:f", "--over", "a=1", "--workers", "0"]])
def test_words_that_do_not_parse_are_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["sweep", *words])
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_argument_given_twice_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--args", "f32[8,128], rows=8", "--over", "rows=8,16")
    code, _, err = run(capsys, f"{file}:scaled", *words)
    assert code == 2
    assert "rows is given by --args and swept over by --over" in err


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["bm=128,256"], {"bm": [128, 256]}),
        (["bm=128"], {"bm": [128]}),
        (["bm=128, 256,"], {"bm": [128, 256]}),
        (["block=(8,128),(16,128)"], {"block": [(8, 128), (16, 128)]}),
        (["block=8,128; 16,128"], {"block": [(8, 128), (16, 128)]}),
        (["block=(8,128);"], {"block": [(8, 128)]}),
        (["a='x','y'", "b=True,None,1.5"], {"a": ["x", "y"], "b": [True, None, 1.5]}),
    ],
)
def test_values_to_sweep_over(given: list[str], found: dict[str, object]) -> None:
    assert parse_over(given) == found


def test_a_name_twice_is_marked() -> None:
    with pytest.raises(ArgumentError, match="in one --over only"):
        parse_over(["bm=8", "bm=16"])


@needs_libtpu
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_leaves_no_process(
    file: Path, nothing_left: Path, number: signal.Signals
) -> None:
    sweep, below = started(
        f"{file}:hangs",
        "--args",
        "f32[8,128]",
        "--over",
        "rows=8,16,32",
        processes=4,
        command="sweep",
    )
    os.kill(sweep.pid, number)
    _, said = sweep.communicate(timeout=60)
    _, alive = psutil.wait_procs(below, timeout=10)
    assert alive == []
    if number is signal.SIGINT:
        assert sweep.returncode == 130
        assert said.strip() == "interrupted"
    deadline = time.monotonic() + 5
    while list(nothing_left.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
