"""The worker process: every way in which it can end is an outcome, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pallas_rungs.compilers.process import (
    Died,
    Reply,
    TimedOut,
    Worker,
    WorkerStartError,
)

PLAYER = """
import ctypes, faulthandler, os, signal, subprocess, sys, tempfile, time
from pallas_rungs.compilers.wire import read_frame, write_frame

def act(header, blob, reply_fd):
    what = header["do"]
    if what == "echo":
        return {"said": header["say"], "pid": os.getpid(), "tmp": tempfile.gettempdir()}
    if what == "print":
        for i in range(header["lines"]):
            print("line", i, "x" * 100)
    if what == "exit":
        os._exit(header["code"])
    if what == "abort":
        print("F1129 12:00:00.0 1 some.cc:3] Check failed: left == right", file=sys.stderr)
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGABRT)
    if what == "sleep":
        time.sleep(1000)
    if what == "spin":
        while True:
            pass
    if what == "hold":  # native code that never lets go of the interpreter
        ctypes.PyDLL(None).sleep(1000)
    if what == "stdin":
        return {"read": sys.stdin.read()}
    if what == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"],
                                 start_new_session=header["own_session"])
        return {"child": child.pid, "tmp": tempfile.mkdtemp()}
    if what == "allocate":
        try:
            return {"got": len(bytearray(header["size"]))}
        except MemoryError:
            return {"got": 0}
    if what == "garbage":
        os.write(reply_fd, b"\\0\\0\\0\\4" + b"\\0" * 8 + b"what")
    if what == "close":
        os.close(reply_fd)
        time.sleep(1000)
    return {}

def main(request_fd, reply_fd):
    faulthandler.register(signal.SIGUSR1)
    if os.environ.get("PLAYER_FAILS"):
        raise RuntimeError("no such luck")
    write_frame(reply_fd, {"stack_signal": True})
    while (frame := read_frame(request_fd)) is not None:
        write_frame(reply_fd, act(*frame, reply_fd), frame[1])
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    (tmp_path / "player.py").write_text(PLAYER)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with Worker("player", env={"PYTHONPATH": str(tmp_path)}) as worker:
        yield worker
        tree = _tree(worker)
    _all_gone(tree)
    assert list(temporary.iterdir()) == []


def _tree(worker: Worker) -> list[psutil.Process]:
    if worker.pid is None:
        return []
    root = psutil.Process(worker.pid)
    return [root, *root.children(recursive=True)]


def _all_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=5)
    assert alive == []


def test_answers_and_keeps_its_process_between_requests(worker: Worker) -> None:
    blob = os.urandom(3_000_000)
    first = worker.request({"do": "echo", "say": "grüß"}, blob, time_limit=30)
    second = worker.request({"do": "echo", "say": "again"}, time_limit=30)
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert first.header["said"] == "grüß"
    assert first.blob == blob
    assert first.header["pid"] == second.header["pid"]
    assert Path(first.header["tmp"]).parent == Path(tempfile.gettempdir())


def test_exit_code_and_a_fresh_process_after_it(worker: Worker) -> None:
    outcome = worker.request({"do": "exit", "code": 7}, time_limit=30)
    assert isinstance(outcome, Died)
    assert (outcome.exit_code, outcome.signal_name) == (7, "")
    again = worker.request({"do": "echo", "say": 1}, time_limit=30)
    assert isinstance(again, Reply)


def test_abort_is_named_with_its_last_words(worker: Worker) -> None:
    outcome = worker.request({"do": "abort"}, time_limit=30)
    assert isinstance(outcome, Died)
    assert outcome.signal_name == "SIGABRT"
    assert any("Check failed: left == right" in line for line in outcome.last_lines)


@pytest.mark.parametrize(("act", "idle"), [("sleep", True), ("spin", False)])
def test_time_limit_tells_idle_from_busy_and_where(worker: Worker, act: str, idle: bool) -> None:
    outcome = worker.request({"do": act}, time_limit=1.5)
    assert isinstance(outcome, TimedOut)
    assert outcome.idle is idle
    assert any("player.py" in line and "in act" in line for line in outcome.stack)
    assert not worker.alive


def test_native_code_that_holds_the_interpreter_is_ended(worker: Worker) -> None:
    worker.ready()
    tree = _tree(worker)
    outcome = worker.request({"do": "hold"}, time_limit=1.0)
    assert isinstance(outcome, TimedOut)
    assert outcome.idle
    _all_gone(tree)


def test_prints_are_drained_and_kept_apart(worker: Worker) -> None:
    outcome = worker.request({"do": "print", "lines": 50_000}, time_limit=60)
    assert isinstance(outcome, Reply)
    deadline = time.monotonic() + 5
    while worker.printed_lines < 50_000 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.printed_lines == 50_000
    assert worker.last_lines[-1].startswith("line 49999")
    assert len(worker.last_lines) < 1000


def test_standard_input_is_empty(worker: Worker) -> None:
    outcome = worker.request({"do": "stdin"}, time_limit=10)
    assert isinstance(outcome, Reply)
    assert outcome.header["read"] == ""


@pytest.mark.parametrize("own_session", [False, True])
def test_children_of_the_worker_end_with_it(worker: Worker, own_session: bool) -> None:
    outcome = worker.request({"do": "child", "own_session": own_session}, time_limit=10)
    assert isinstance(outcome, Reply)
    child = psutil.Process(outcome.header["child"])
    worker.close()
    _all_gone([child])
    assert not Path(outcome.header["tmp"]).exists()


@pytest.mark.parametrize("act", ["garbage", "close"])
def test_a_broken_pipe_is_a_death(worker: Worker, act: str) -> None:
    outcome = worker.request({"do": act}, time_limit=20)
    assert isinstance(outcome, Died)
    assert (outcome.exit_code, outcome.signal_name) == (None, "")
    assert not worker.alive


def test_a_worker_that_cannot_start_says_why(worker: Worker) -> None:
    worker.env["PLAYER_FAILS"] = "1"
    with pytest.raises(WorkerStartError, match="no such luck"):
        worker.request({"do": "echo", "say": 1}, time_limit=5)


def test_interrupted_request_ends_the_worker(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.ready()
    tree = _tree(worker)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            worker.request({"do": "sleep"}, time_limit=60)
    finally:
        signal.signal(signal.SIGALRM, previous)
    _all_gone(tree)


PARENT = """
import os, sys, threading, time
from pallas_rungs.compilers.process import Worker
worker = Worker("player", env={"PYTHONPATH": sys.argv[1]})
worker.ready()
answer = worker.request({"do": "child", "own_session": True}, time_limit=10)
print(worker.pid, answer.header["child"], answer.header["tmp"], flush=True)
HOW
"""


HELD = """threading.Thread(
    target=worker.request, args=({"do": "hold"},), kwargs={"time_limit": 900}, daemon=True
).start()
time.sleep(1000)"""


@pytest.mark.parametrize("how", ["time.sleep(1000)", HELD, "os._exit(0)", "sys.exit(0)", "1 / 0"])
def test_nothing_outlives_its_parent(tmp_path: Path, how: str) -> None:
    (tmp_path / "player.py").write_text(PLAYER)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT).replace("HOW", how), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert parent.stdout is not None
    supervisor, child, _ = parent.stdout.readline().split()
    below = []
    for pid in (supervisor, child):
        try:
            below.append(psutil.Process(int(pid)))
        except psutil.NoSuchProcess:
            continue
    if "sleep" in how:
        time.sleep(0.5)
        parent.kill()
    parent.wait(10)
    parent.stdout.close()
    _all_gone(below)
    deadline = time.monotonic() + 5
    while list(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []


def test_a_worker_is_refused_memory_before_the_machine_has_none(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_a_gigabyte = 1 << 29
    monkeypatch.setattr(
        "pallas_rungs.compilers.process._MEMORY_SHARE",
        half_a_gigabyte / psutil.virtual_memory().total,
    )
    for size, got in ((1 << 20, 1 << 20), (1 << 30, 0)):
        reply = worker.request({"do": "allocate", "size": size}, time_limit=30)
        assert isinstance(reply, Reply)
        assert reply.header["got"] == got


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_what_a_worker_started_ends_also_when_its_supervisor_is_killed(
    worker: Worker, number: signal.Signals
) -> None:
    reply = worker.request({"do": "child", "own_session": True}, time_limit=30)
    assert isinstance(reply, Reply)
    assert worker.pid is not None
    child = psutil.Process(reply.header["child"])
    os.kill(worker.pid, number)
    while worker.alive:
        time.sleep(0.01)
    assert isinstance(worker.request({"do": "echo", "say": 1}, time_limit=30), Died | Reply)
    _, alive = psutil.wait_procs([child], timeout=5)
    assert alive == []


def test_a_machine_without_room_is_an_error_that_says_so(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(WorkerStartError, match=r"could not start: .*No space left on device"):
        worker.request({"do": "echo", "say": 1}, time_limit=30)


def test_the_pipes_are_no_standard_streams_where_those_are_closed() -> None:
    script = (
        "import os; os.close(0); os.close(1); os.close(2)\n"
        "from pallas_rungs.compilers.process import _pipe\n"
        "ends = (*_pipe(), *_pipe())\n"
        "os._exit(0 if min(ends) > 2 and len(set(ends)) == 4 else 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == 0
