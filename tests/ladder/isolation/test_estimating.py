"""The command `estimate`: a reader's file in a worker, several chips, another function beside."""

from __future__ import annotations

import json
from pathlib import Path

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
        ("leaves", "no estimate: the process left with exit code 3"),
    ],
)
def test_what_does_not_compile_is_one_message_and_1(
    file: Path, capsys: pytest.CaptureFixture[str], symbol: str, said: str
) -> None:
    code, out, err = run(capsys, f"{file}:{symbol}", "--args", "f32[8,128]")
    assert (code, out) == (1, "")
    assert said in err
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
