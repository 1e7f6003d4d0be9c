"""The command `estimate`: a reader's file in a worker, several chips, another function beside."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from pallas_rungs import cli
from pallas_rungs.compilers import libtpu
from pallas_rungs.ladder.estimate_printing import apart
from pallas_rungs.ladder.estimating import FileEstimate

pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(
        libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
    ),
]

KERNELS = """
import os
import sys
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]

def double(x):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def plain(x):
    return 2 * x

def summed(x):
    return jnp.sum(x, 0)

def too_large(x):
    return double(jnp.zeros((8192, 8192), x.dtype))

def broken(x):
    raise RuntimeError("my own trouble")

def leaves(x):
    os._exit(3)

def exits(x):
    sys.exit(4)

def loops(x):
    while True:
        pass

def looks(x):
    y = double(x)
    return y if jnp.sum(y) > 0 else plain(double(y))

def constant(x):
    return 3

def closes(x):
    for fd in range(3):
        os.close(fd)
    return double(x)

def scalar_body(x_ref, o_ref):
    o_ref[0, 0] = x_ref[0, 0]

def stores_scalar(x):
    return pl.pallas_call(scalar_body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def until_body(x_ref, o_ref):
    def small(carry):
        return (carry[0] < 100) & (jnp.max(carry[1]) < 1e4)
    def more(carry):
        return carry[0] + 1, 2 * carry[1]
    o_ref[...] = jax.lax.while_loop(small, more, (0, x_ref[...]))[1]

def until(x):
    return pl.pallas_call(until_body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def gpu_body(x_ref, o_ref):
    o_ref[...] = 2 * x_ref[...]

def for_a_gpu(x):
    from jax.experimental.pallas import triton as plt
    out, params = jax.ShapeDtypeStruct(x.shape, x.dtype), plt.CompilerParams(num_warps=4)
    return pl.pallas_call(gpu_body, out_shape=out, compiler_params=params)(x)

class Scales:
    def __init__(self, factor):
        self.factor = factor

    def call(self, x):
        return self.factor * double(x)

    @staticmethod
    def twice(x):
        return double(x)

scales = Scales(3)

def asks(x):
    assert jax.devices()[0].platform == "tpu", "a TPU is required"
    return double(x)

def pick_body(table_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]

def pick(table, x):
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(16,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, table: (i, 0)),
    )
    out = jax.ShapeDtypeStruct((128, 128), x.dtype)
    return pl.pallas_call(pick_body, grid_spec=grid, out_shape=out)(table, x)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reader") / "mine.py"
    path.write_text(KERNELS)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.main(["estimate", *map(str, words)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_chips_are_estimated_one_after_the_other(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, f"{file}:double", "--args", "f32[512,512]", "--chip", "v5e,v6e")
    assert (code, err) == (0, "")
    first, second = out.split("\n\n")
    assert first.startswith("double(f32[512,512])\nestimate for v5e, not a measurement: ")
    assert second.startswith("double(f32[512,512])\nestimate for v6e, not a measurement: ")
    assert "double.1" in first
    assert f"libtpu {libtpu.libtpu_version()}" in first


def test_json_is_alone_on_the_output_and_holds_the_ratio(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--args", "f32[512,512]", "--against", "plain", "--json")
    code, out, _ = run(capsys, f"{file}:double", *words)
    assert code == 0
    (found,) = json.loads(out)["estimates"]
    assert (found["kind"], found["chip"], found["name"]) == ("estimate", "v5e", "double")
    assert found["hbm_read_bytes"] == found["hbm_written_bytes"] == 512 * 512 * 4
    assert found["against"]["name"] == "plain"
    assert found["ratio"] == found["seconds"] / found["against"]["seconds"]


def test_another_function_is_shown_beside_with_the_ratio(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--args", "f32[512,512]", "--against", f"{file}:plain")
    code, out, _ = run(capsys, f"{file}:double", *words)
    assert code == 0
    assert out.splitlines()[-1].startswith("double / plain on v5e: ")
    assert " × (two estimates whose ranges overlap: they do not say" in out.splitlines()[-1]


@pytest.mark.parametrize("names", [("double", "summed"), ("summed", "double")])
def test_beside_another_it_says_whose_arguments_are_fetched_before(
    file: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, str]
) -> None:
    words = (f"{file}:{names[0]}", "--args", "f32[512,512]", "--against", names[1])
    _, out, _ = run(capsys, *words)
    assert out.splitlines()[-2].startswith(f"{names[0]} / {names[1]} on v5e: ")
    assert out.splitlines()[-1].startswith("  summed: 1 MiB of arguments are fetched onto the chip")
    _, out, _ = run(capsys, *words, "--json")
    (found,) = json.loads(out)["estimates"]
    sides = {it["name"]: it["prefetched_bytes"] for it in (found, found["against"])}
    assert sides == {"double": 0, "summed": 512 * 512 * 4}


@pytest.mark.parametrize("name", ["double", "summed"])
def test_beside_itself_it_says_on_which_side(
    file: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    _, out, _ = run(capsys, f"{file}:{name}", "--args", "f32[512,512]", "--against", name)
    told = [it for it in out.splitlines() if it.startswith("  the ")]
    sides = ["  the first: 1 MiB", "  the second: 1 MiB"] if name == "summed" else []
    assert [it.partition(" of arguments")[0] for it in told] == sides


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ((1.0, 2.0), (1.9, 3.0), "ranges overlap"),
        ((1.9, 3.0), (1.0, 2.0), "ranges overlap"),
        ((1.0, 1.5), (1.9, 3.0), "ranges are apart"),
        ((1.9, 3.0), (1.0, 1.5), "ranges are apart"),
        ((None, None), (1.0, 1.5), "errors are not known"),
    ],
)
def test_two_estimates_say_whether_they_are_apart(
    one: tuple[float, float], other: tuple[float, float], said: str
) -> None:
    found = [FileEstimate("f", "v5e", {"low": low, "high": high}) for low, high in (one, other)]
    assert said in apart(*found)


def test_a_guess_takes_the_ranges_their_word() -> None:
    sure = {"low": 1.0, "high": 1.5, "unresolved": []}
    guessed = {"low": 2.0, "high": 2.5, "unresolved": ["trips of a loop"]}
    assert "ranges are apart" in apart(
        FileEstimate("f", "v5e", sure), FileEstimate("f", "v5e", {**guessed, "unresolved": []})
    )
    said = apart(FileEstimate("f", "v5e", sure), FileEstimate("f", "v5e", guessed))
    assert "partly guessed: their ranges do not say which is faster" in said


def test_values_of_integers_decide_what_is_moved(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = {}
    for values in ("{0:1}", "{0:16}"):
        args = f"i32[16]{values}, f32[128,128]"
        code, out, _ = run(capsys, f"{file}:pick", "--args", args, "--json")
        assert code == 0
        (found,) = json.loads(out)["estimates"]
        assert found["unresolved"] == []
        moved[values] = found["hbm_read_bytes"]
    assert moved["{0:16}"] > moved["{0:1}"]


@pytest.mark.parametrize(
    ("symbol", "said"),
    [
        ("too_large", "libtpu did not compile the program for v5e"),
        ("broken", "not lowered: RuntimeError: my own trouble\n  at "),
        (
            "leaves",
            "the process left with exit code 3\n  → something it calls ends the process (os._exit",
        ),
        ("exits", "SystemExit: 4 (something that it calls ends the process: sys.exit"),
        ("constant", "runs nothing there, so there is no time to estimate: the result is a con"),
        ("stores_scalar", "Cannot store scalars to VMEM\n  at {file}:"),
        ("stores_scalar", ": o_ref[0, 0] = x_ref[0, 0]\n  → VMEM is a vector memory: put the"),
        ("for_a_gpu", "it is written for a GPU, and a time is estimated for TPUs only; `climb`"),
    ],
)
def test_what_does_not_compile_is_one_message_and_1(
    file: Path, capsys: pytest.CaptureFixture[str], symbol: str, said: str
) -> None:
    code, out, err = run(capsys, f"{file}:{symbol}", "--args", "f32[8,128]")
    assert (code, out) == (1, "")
    assert said.format(file=file) in err
    assert err.startswith(f"{symbol} on v5e: no estimate: ")


def test_a_function_that_asks_for_the_chip_sees_one(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, f"{file}:asks", "--args", "f32[8,128]")
    assert code == 0
    assert out.startswith("asks(f32[8,128])\nestimate for v5e")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{file}:double", "--args", "f32[8,128]", "--chip", "h100"], "no constants are known"),
        (["{file}:double", "--args", "f32[8,128]", "--chip", "v9"], "unknown chip 'v9'"),
        (["{file}:nothing", "--args", "f32[8,128]"], "mine.py has no 'nothing'"),
        (["{file}:double", "--args", "f32[8"], "f32[8"),
        (["{file}:double"], "double"),
        (["nowhere.py:double"], "there is no file nowhere.py"),
        (["{file}:double", "--args", "f32[8,128]", "--against", "none.py:f"], "none.py"),
        (["{file}:double", "--args", "f32[8,128], x=f32[8,128]"], "double is given x twice"),
        (["{file}:Scales.half", "--args", "f32[8,128]"], "mine.py has no 'Scales.half'"),
    ],
)
def test_what_cannot_be_tried_is_one_line_and_2(
    file: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code, out, err = run(capsys, *(word.format(file=file) for word in words))
    assert (code, out) == (2, "")
    assert err.startswith("pallas_rungs estimate: ")
    assert said in err


def test_without_a_compiler_it_is_3(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pallas_rungs.ladder.workers import FileWorker

    told = {"error": "libtpu, the TPU's compiler, is not installed", "kind": "unavailable"}
    monkeypatch.setattr(FileWorker, "estimate", lambda *_: told)
    code, _, err = run(capsys, f"{file}:double", "--args", "f32[8,128]")
    assert code == 3
    assert "is not installed" in err


def test_a_function_that_never_ends_is_stopped_at_the_limit_and_its_line_is_told(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = time.monotonic()
    words = ("--args", "f32[8,128]", "--time-limit", "4")
    code, out, err = run(capsys, f"{file}:loops", *words)
    assert (code, out) == (1, "")
    assert time.monotonic() - start < 60
    assert "loops on v5e: no estimate: it was still busy after 4 s" in err
    assert f"\n  at {file}:" in err
    assert "\n  → try smaller shapes, or a larger --time-limit" in err


def test_what_a_program_that_looks_at_values_does_beside_its_kernels_is_named_as_left_out(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, f"{file}:looks", "--args", "f32[512,512]", "--json")
    assert code == 0
    (found,) = json.loads(out)["estimates"]
    assert "looks at values while it is traced: only its Pallas kernels" in found["unresolved"][0]
    words = ("climb", f"{file}:looks", "--args", "f32[512,512]", "--rung", "5", "--plain")
    assert cli.main(words) in (0, 3)
    assert "partly guessed), not a measurement" in capsys.readouterr().out


def test_a_loop_whose_end_hangs_on_values_is_a_guess_in_words(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, f"{file}:until", "--args", "f32[64,128]")
    assert code == 0
    assert " s, partly guessed (" in re.sub(r"[nµm]s,", "s,", out)
    assert "guessed: " in out
    assert "is a float; only integers are followed" in out


@pytest.mark.parametrize("symbol", ["Scales.twice", "scales.call", "closes"])
def test_what_can_be_estimated_all_the_same(
    file: Path, capsys: pytest.CaptureFixture[str], symbol: str
) -> None:
    """Dots reach into classes and instances; a function may have closed the standard streams."""
    code, out, err = run(capsys, f"{file}:{symbol}", "--args", "f32[8,128]")
    assert (code, err) == (0, "")
    assert out.startswith(f"{symbol}(f32[8,128])\nestimate for v5e")


def test_nothing_is_estimated_before_the_other_function_is_found(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pallas_rungs.ladder.workers import FileWorker

    monkeypatch.setattr(FileWorker, "estimate", lambda *_: pytest.fail("it was estimated"))
    words = ("--args", "f32[8,128]", "--against", "nothing", "--json")
    code, out, err = run(capsys, f"{file}:double", *words)
    assert code == 2
    told = json.loads(out)
    assert (told["estimates"], told["exit_code"]) == ([], 2)
    assert told["error"] in err
    assert "mine.py has no 'nothing'" in told["error"]


def test_after_ctrl_c_what_was_estimated_is_printed(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pallas_rungs.ladder.workers import FileWorker

    whole = FileWorker.estimate

    def interrupted(worker: FileWorker, problem: int, chip: str, given: str = "{}") -> Any:
        if chip == "v6e":
            raise KeyboardInterrupt
        return whole(worker, problem, chip, given)

    monkeypatch.setattr(FileWorker, "estimate", interrupted)
    words = (f"{file}:double", "--args", "f32[8,128]", "--chip", "v5e,v6e")
    code, out, err = run(capsys, *words)
    assert code == 130
    assert out.startswith("double(f32[8,128])\nestimate for v5e")
    assert err == "interrupted\n"
    code, out, _ = run(capsys, *words, "--json")
    told = json.loads(out)
    assert [entry["chip"] for entry in told["estimates"]] == ["v5e"]
    assert code == told["exit_code"] == 130
