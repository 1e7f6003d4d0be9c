"""Worker processes with a time limit, whose death is an outcome and not an accident.

A `Worker` speaks frames over two pipes of its own; what it prints is drained and kept apart. Every
request ends in a `Reply`, in `Died` (with the exit code or signal and the last lines printed) or in
`TimedOut` (with the CPU time used, which tells a deadlock from slow work). After the last two the
worker is gone, and the next request starts a fresh one.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import pallas_rungs
from pallas_rungs.compilers.wire import FrameError, FrameReader, write_frame

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_TAIL_LINES = 400
_LONGEST_LINE = 4000
_TICK_SECONDS = 0.25
_IDLE_SHARE = 0.05  # CPU seconds a second of waiting below which a process counts as idle
_MEMORY_SHARE = 0.8  # of this machine's memory, which one worker may take
START_LIMIT = 120.0
"""Seconds that a worker may take to import what it needs and say that it is ready."""


@dataclass(frozen=True)
class Reply:
    """The worker answered.

    Attributes:
      header: the answer, JSON data.
      blob: bytes that came with it.
      seconds: wall time of the request.
      cpu_seconds: CPU time that the worker and its children used for it.
    """

    header: dict[str, Any]
    blob: bytes
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Died:
    """The worker's process ended during the request.

    Attributes:
      exit_code: its exit code, or None when a signal ended it.
      signal_name: the signal, e.g. `"SIGABRT"`; empty when it left by itself. Both are empty when
        it cut its pipe and was killed for that.
      last_lines: the last lines that it printed.
      seconds: wall time until then.
    """

    exit_code: int | None
    signal_name: str
    last_lines: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        if self.signal_name:
            return f"the process was ended by {self.signal_name}"
        if self.exit_code is None:
            return "the process closed or garbled the pipe to its parent"
        return f"the process left with exit code {self.exit_code}"


@dataclass(frozen=True)
class TimedOut:
    """The time limit passed; the worker was killed.

    Attributes:
      seconds: wall time waited.
      cpu_seconds: CPU time that the worker and its children used for the request.
      idle: no CPU was used in the last part of the wait: it stood still, it was not slow.
      last_lines: the last lines that it printed.
      stack: where the worker's Python stood, when it could still say so.
    """

    seconds: float
    cpu_seconds: float
    idle: bool
    last_lines: tuple[str, ...]
    stack: tuple[str, ...] = ()


Outcome = Reply | Died | TimedOut


class WorkerStartError(RuntimeError):
    """A worker did not get as far as saying that it is ready."""


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    request_fd: int
    reply_fd: int
    folder: Path
    drain: threading.Thread
    owner: int
    reader: FrameReader = field(default_factory=FrameReader)
    ready: dict[str, Any] | None = None


_open: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """A process that answers requests, started when first needed.

    Args:
      module: the module whose `main(request_fd, reply_fd)` runs in the process. It must first send
        a frame (its content is `ready`), then answer each frame with one frame until the end of
        the stream.
      env: changes to this process's environment; None removes a variable.
      cwd: working folder; None keeps this process's.
    """

    def __init__(
        self, module: str, *, env: Mapping[str, str | None] | None = None, cwd: Path | None = None
    ) -> None:
        self.module = module
        self.env = dict(env or {})
        self.cwd = cwd
        self.printed_lines = 0
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._running: _Running | None = None
        self._lock = threading.RLock()
        _open.add(self)

    @property
    def alive(self) -> bool:
        """Whether a process is up."""
        running = self._mine()
        return running is not None and running.process.poll() is None

    @property
    def pid(self) -> int | None:
        """Process id of the worker's supervisor, the root of all that it started."""
        running = self._mine()
        return None if running is None else running.process.pid

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that the worker printed, on either stream."""
        return tuple(self._tail)

    def start(self) -> None:
        """Start the process, without waiting until it is ready; nothing if it is up.

        Raises:
          WorkerStartError: this machine has no room for it (disk, memory, processes).
        """
        with self._lock:
            if not self.alive:
                self.close()
                try:
                    self._running = self._launch()
                except OSError as error:
                    raise WorkerStartError(
                        f"the worker {self.module} could not start: {error}"
                    ) from None

    def ready(self, time_limit: float = START_LIMIT) -> dict[str, Any]:
        """Start the process if need be and return what it said when it was ready.

        Raises:
          WorkerStartError: it died first, or took longer than `time_limit` seconds.
        """
        with self._lock:
            self.start()
            running = self._running
            assert running is not None
            if running.ready is None:
                outcome = self._wait(running, time_limit)
                if not isinstance(outcome, Reply):
                    lines = "\n".join(outcome.last_lines[-15:])
                    what = (
                        f"was not ready after {outcome.seconds:.0f} s"
                        if isinstance(outcome, TimedOut)
                        else f"could not start: {outcome}"
                    )
                    raise WorkerStartError(f"the worker {self.module} {what}\n{lines}".rstrip())
                running.ready = outcome.header
            return running.ready

    def request(
        self, header: dict[str, Any], blob: bytes = b"", *, time_limit: float | None
    ) -> Outcome:
        """Send one request and wait for its outcome.

        Args:
          header: JSON data.
          blob: bytes to go with it.
          time_limit: seconds from sending to the answer, start-up not counted; None waits for ever.

        Raises:
          WorkerStartError: see `ready`.
        """
        with self._lock:
            self.ready()
            running = self._running
            assert running is not None
            try:
                try:
                    write_frame(running.request_fd, header, blob)
                except BrokenPipeError:
                    return self._died(running, time.monotonic())
                return self._wait(running, time_limit)
            except BaseException:  # a half-read answer must not be taken for the next one
                self.close()
                raise

    def interrupt(self) -> None:
        """Kill the worker from another thread than the one that waits for it.

        The one that waits gets `Died`.
        """
        running = self._running
        if running is not None and running.owner == os.getpid():
            with contextlib.suppress(psutil.Error):
                for child in psutil.Process(running.process.pid).children():
                    child.kill()

    def close(self) -> None:
        """End the process and all that it started, and remove its temporary folder."""
        with self._lock:
            running, self._running = self._running, None
            if running is not None:
                _end(running)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mine(self) -> _Running | None:
        running = self._running
        if running is not None and running.owner != os.getpid():  # inherited through a fork
            self._running = running = None
        return running

    def _launch(self) -> _Running:
        folder = Path(tempfile.mkdtemp(prefix="pallas-rungs-"))
        request_read, request_write = _pipe()
        reply_read, reply_write = _pipe()
        env = {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
        for name, value in self.env.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        config = {
            "module": self.module,
            "request_fd": request_read,
            "reply_fd": reply_write,
            "folder": str(folder),
            "root": str(Path(pallas_rungs.__file__).parent.parent),
            "memory": int(psutil.virtual_memory().total * _MEMORY_SHARE),
        }
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-X", "faulthandler", str(_SUPERVISOR), json.dumps(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(request_read, reply_write),
                start_new_session=True,
                env=env,
                cwd=self.cwd,
            )
        except BaseException:
            os.close(request_write)
            os.close(reply_read)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            os.close(request_read)
            os.close(reply_write)
        self._tail.clear()
        drain = threading.Thread(target=self._drain, args=(process,), daemon=True)
        drain.start()
        return _Running(process, request_write, reply_read, folder, drain, os.getpid())

    def _drain(self, process: subprocess.Popen[bytes]) -> None:
        """Keep the worker's output flowing, and its last lines at hand."""
        assert process.stdout is not None
        tail, rest = self._tail, b""
        with process.stdout as stream, contextlib.suppress(OSError, ValueError):
            while data := os.read(stream.fileno(), 1 << 16):
                lines = (rest + data).split(b"\n")
                rest = lines.pop()[-_LONGEST_LINE:]
                self.printed_lines += len(lines)
                tail.extend(
                    line[:_LONGEST_LINE].decode(errors="replace") for line in lines[-_TAIL_LINES:]
                )
        if rest:
            self.printed_lines += 1
            tail.append(rest.decode(errors="replace"))

    def _wait(self, running: _Running, time_limit: float | None) -> Outcome:
        start = time.monotonic()
        cpu_start = _cpu_seconds(running.process.pid)
        deadline = None if time_limit is None else start + time_limit
        window = 2.0 if time_limit is None else max(1.0, min(10.0, time_limit / 3))
        samples: deque[tuple[float, float]] = deque()
        poller = select.poll()
        poller.register(running.reply_fd, select.POLLIN)
        while True:
            left = _TICK_SECONDS if deadline is None else deadline - time.monotonic()
            if poller.poll(max(0.001, min(_TICK_SECONDS, left)) * 1000):
                data = os.read(running.reply_fd, 1 << 20)
                if not data:
                    return self._died(running, start)
                try:
                    frame = running.reader.feed(data)
                except FrameError:
                    self.close()
                    return Died(None, "", self.last_lines, time.monotonic() - start)
                if frame is not None:
                    now = time.monotonic()
                    used = max(0.0, _cpu_seconds(running.process.pid) - cpu_start)
                    return Reply(frame[0], frame[1], now - start, used)
                continue
            if running.process.poll() is not None:
                return self._died(running, start)
            now = time.monotonic()
            if deadline is None:
                continue
            if now > deadline - window - 2 * _TICK_SECONDS:
                samples.append((now, _cpu_seconds(running.process.pid)))
                while len(samples) > 2 and samples[1][0] <= now - window:
                    samples.popleft()
            if now >= deadline:
                cpu = samples[-1][1]
                waited, used = now - samples[0][0], cpu - samples[0][1]
                idle = used <= _IDLE_SHARE * max(waited, _TICK_SECONDS)
                printed = self.printed_lines
                stack = self._ask_for_stack(running)
                self.close()
                running.drain.join(1.0)
                for _ in range(min(self.printed_lines - printed, len(self._tail))):
                    self._tail.pop()
                self.printed_lines = printed
                return TimedOut(
                    now - start, max(0.0, cpu - cpu_start), idle, self.last_lines, stack
                )

    def _ask_for_stack(self, running: _Running) -> tuple[str, ...]:
        """Have faulthandler print the worker's Python stack, where the worker registered it."""
        if not (running.ready or {}).get("stack_signal"):
            return ()
        before = self.printed_lines
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(running.process.pid).children():
                child.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            time.sleep(0.1)
            new = self.printed_lines - before
            if new and "Current thread" in "\n".join(list(self._tail)[-new:]):
                break
        new = self.printed_lines - before
        return tuple(self._tail)[-new:] if new else ()

    def _died(self, running: _Running, start: float) -> Died:
        code: int | None
        try:
            code = running.process.wait(3.0)
        except subprocess.TimeoutExpired:  # the pipe is closed, the process still there
            code = None
        self.close()
        running.drain.join(1.0)
        seconds = time.monotonic() - start
        if code is not None and code < 0:
            return Died(None, signal.Signals(-code).name, self.last_lines, seconds)
        return Died(code, "", self.last_lines, seconds)


def _pipe() -> tuple[int, int]:
    """Return a new pipe whose numbers are no standard stream's, also where those are closed."""
    ends = []
    for fd in os.pipe():
        ends.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3))
        os.close(fd)
    return ends[0], ends[1]


def _end(running: _Running) -> None:
    """Close the pipes, which makes the supervisor clean up; kill what is left after that."""
    for fd in (running.request_fd, running.reply_fd):
        with contextlib.suppress(OSError):
            os.close(fd)
    try:
        running.process.wait(4.0)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(running.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        running.process.kill()
        running.process.wait()
    if running.process.returncode < 0:  # a signal ended the worker, or the supervisor itself
        _kill_strays(running.folder)
    shutil.rmtree(running.folder, ignore_errors=True)


def _kill_strays(folder: Path) -> None:
    """Kill what a worker started and no supervisor ended, known by its temporary folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("TMPDIR") == str(folder):
                process.kill()


def _cpu_seconds(pid: int) -> float:
    """CPU seconds that a process and everything below it have used, ended children included."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
    return total


def interrupt_all() -> None:
    """Kill every worker that this process started, whichever thread waits for it."""
    for worker in list(_open):
        worker.interrupt()


@atexit.register
def close_all() -> None:
    """End every worker that this process started."""
    for worker in list(_open):
        if worker._mine() is not None:
            worker.close()
