"""Two hundred climbs with faults thrown in at random leave no process and no folder behind.

The problems are stand-ins without jax, in the processes that readers' files get otherwise: what is
soaked is the pool of processes, its time limits and its cleaning up.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import tempfile
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest

from pallas_rungs.compilers import process
from pallas_rungs.ladder import workers
from pallas_rungs.ladder.files import FileClimb, climb_file
from pallas_rungs.ladder.loading import LoadError
from pallas_rungs.ladder.status import Rung, Status

CLIMBS = 200
SEED = 20261130

STUB = """
import faulthandler, json, os, signal, subprocess, sys, tempfile, time
from pallas_rungs.compilers.wire import read_frame, write_frame

def act(what):
    tempfile.mkdtemp()
    if what == "dies":
        os._exit(3)
    if what == "aborts":
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGABRT)
    if what == "stands":
        time.sleep(1000)
    if what == "spins":
        while True:
            pass
    if what == "forks":
        if os.fork() == 0:
            time.sleep(1000)
    if what == "starts":
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if what == "prints":
        print("x" * 100_000)

def main(request_fd, reply_fd):
    faulthandler.register(signal.SIGUSR1)
    write_frame(reply_fd, {"stack_signal": True})
    what = ""
    while (frame := read_frame(request_fd)) is not None:
        header = frame[0]
        if header["op"] == "load":
            what = header["symbol"]
            write_frame(reply_fd, {"problems": [what], "files": [header["path"]]})
            continue
        act(what)
        verdict = {"rung": header["rung"], "status": "passed", "target": header["target"]}
        write_frame(reply_fd, {"verdict": verdict, "estimable": False})
"""

KINDS = ("is_well", "dies", "aborts", "stands", "spins", "forks", "starts", "prints")
ENDS = {
    "dies": Status.CRASHED,
    "aborts": Status.CRASHED,
    "stands": Status.DEADLOCKED,
    "spins": Status.TIMED_OUT,
}


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_left: Path) -> Path:
    """A file of stand-ins, and workers that try them without jax."""
    (tmp_path / "stub_worker.py").write_text(STUB)
    file = tmp_path / "kernels.py"
    file.write_text("".join(f"def {kind}(): ...\n" for kind in KINDS))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    class StubWorker(process.Worker):
        def __init__(self, module: str, **options: object) -> None:
            super().__init__("stub_worker", **options)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "Worker", StubWorker)
    return file


def climb(file: Path, kind: str, limit: float = 30.0) -> FileClimb:
    return climb_file(file, kind, rungs=[Rung.TRACE, Rung.LOWER], time_limit=limit)


def kill_one_below(
    delay: float, chance: random.Random, spared: list[psutil.Process]
) -> threading.Timer:
    """A timer that kills one process of this climb, as an operator or the kernel would."""

    def kill() -> None:  # without recursion: the supervisor, on whom cleaning up rests
        below = psutil.Process(os.getpid()).children(recursive=chance.random() < 0.7)
        whom = [process for process in below if process not in spared]
        if whom:
            chance.choice(whom).send_signal(
                chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
            )

    timer = threading.Timer(delay, kill)
    timer.start()
    return timer


def strays(temporary: Path) -> list[psutil.Process]:
    """Processes anywhere on this machine that a worker of these climbs has started."""
    found = []
    for running in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(running.environ().get("TMPDIR", "/")).parent == temporary:
                found.append(running)
    return found


def test_two_hundred_climbs_with_faults_leave_nothing(
    stubs: Path, nothing_left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(SEED)
    told: Counter[str] = Counter()
    real_mkdtemp = tempfile.mkdtemp
    me = psutil.Process(os.getpid())
    opened, before = me.num_fds(), me.children(recursive=True)
    for number in range(CLIMBS):
        # What waits for its time limit is dear: every tenth climb, the others end by themselves.
        kind = chance.choice(("stands", "spins") if number % 20 == 0 else (*KINDS[:3], *KINDS[5:]))
        fault = chance.choice(("none", "none", "killed", "disk"))
        if fault == "disk":

            def full(*_: object, **__: object) -> str:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            monkeypatch.setattr(tempfile, "mkdtemp", full)
        timer = None
        if fault == "killed":
            timer = kill_one_below(chance.uniform(0.0, 0.3), chance, before)
        try:
            (report,) = climb(
                stubs, kind, limit=1.0 if kind in ("stands", "spins") else 30.0
            ).reports
            statuses = {verdict.status for verdict in report.verdicts}
            if fault == "none":
                assert statuses == {ENDS.get(kind, Status.PASSED)}, (number, kind, report)
            told[fault] += 1
        except LoadError:  # the worker died, or had no folder
            assert fault != "none", (number, kind)
            told[f"{fault}: not loaded"] += 1
        finally:
            monkeypatch.setattr(tempfile, "mkdtemp", real_mkdtemp)
            if timer is not None:
                timer.cancel()
                timer.join()
        if number % 20 == 19:
            assert list(nothing_left.iterdir()) == [], number
            assert set(me.children(recursive=True)) <= set(before), number
            assert strays(nothing_left) == [], number
    assert told["none"] > CLIMBS / 4
    assert told["disk: not loaded"] > 5
    assert told["killed"] + told["killed: not loaded"] > 5
    assert me.num_fds() <= opened + 2
