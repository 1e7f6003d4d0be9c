"""`--watch`: climbs again when a file is saved, goes on after a broken one, and ends cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pallas_rungs.ladder.watching import changed, stamps, wait_for_change

MINE = (
    "from factors import FACTOR\n"
    + """
import jax
from jax.experimental import pallas as pl

def f(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * FACTOR
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def reference(x):
    return x * 2
"""
)


def test_a_file_that_is_written_or_grows_or_comes_back_has_changed(tmp_path: Path) -> None:
    file, other = tmp_path / "a.py", tmp_path / "b.py"
    file.write_text("1")
    other.write_text("2")
    before = stamps([str(file), str(other)])
    assert changed(before) == []
    file.write_text("111")
    assert changed(before) == [str(file)]
    other.unlink()
    assert changed(before) == [str(file)]
    other.write_text("22")
    assert changed(before) == [str(file), str(other)]


def test_waiting_ends_when_the_file_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    before = stamps([str(file)])
    threading.Timer(0.2, file.write_text, ["22"]).start()
    assert wait_for_change(before) == [str(file)]


@pytest.mark.usefixtures("nothing_left")
def test_saving_climbs_again_also_a_module_beside_it_and_interruption_is_the_end(
    tmp_path: Path,
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.py").write_text(MINE)
    factors = here / "factors.py"
    factors.write_text("FACTOR = 2\n")
    words = ["climb", "mine.py:f", "--args", "f32[8,128]", "--rung", "2", "--watch"]
    watching = subprocess.Popen(
        [sys.executable, "-u", "-m", "pallas_rungs", *words],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said: list[str] = []
    assert watching.stdout is not None
    reader = threading.Thread(target=lambda: said.extend(iter(watching.stdout.readline, "")))
    reader.start()

    def wait_for(text: str, times: int) -> None:
        deadline = time.monotonic() + 90
        while "".join(said).count(text) < times:
            assert time.monotonic() < deadline, "".join(said)
            time.sleep(0.05)

    wait_for("watching 2 files", 1)
    assert "passed" in "".join(said)
    factors.write_text("FACTOR = 3000\n")
    wait_for("watching 2 files", 2)
    assert "factors.py changed" in "".join(said)
    assert "wrong" in "".join(said)
    (here / "mine.py").write_text("import no_such_module\n")
    wait_for("no_such_module", 1)
    wait_for("; Ctrl-C ends", 3)
    os.kill(watching.pid, signal.SIGINT)
    assert watching.wait(20) == 2
    reader.join(5)
    assert "Traceback" not in "".join(said)
