"""The small process between a parent and its worker, which leaves nothing behind.

It is started as a script, before anything else is imported, in a session of its own. It forks: the
child becomes the worker, the supervisor waits for one of two things, the worker's death or the
parent's (seen as the end of the request pipe). Either way it kills what the worker started, removes
the worker's temporary folder and leaves as the worker left, with the same exit code or signal. That
holds when the worker hangs in native code with the interpreter locked, and when the parent is
killed outright.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 1.0  # what nested supervisors get to clean up before they are killed
_SETTLED_SECONDS = 0.05


def main(config: dict[str, Any]) -> None:
    """Fork the worker, wait, clean up, and leave as the worker left.

    Args:
      config: `module` whose `main(request_fd, reply_fd)` is the worker; `request_fd`, `reply_fd`;
        `folder`, the temporary folder to remove; `root`, the folder that holds `pallas_rungs`;
        `memory`, the bytes that the worker may take before it is told that there are no more.
    """
    request_fd, reply_fd = int(config["request_fd"]), int(config["reply_fd"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(int(config.get("memory", 0)))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    supervisor = os.getpid()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    worker = os.fork()
    if worker == 0:
        os.close(wake_read)
        os.close(wake_write)
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        _work(config)
        return
    os.close(reply_fd)
    _silence()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    status = _wait(worker, request_fd, wake_read)
    _kill_group(worker)
    if status is None:
        _, status = os.waitpid(worker, 0)
    _end_descendants()
    shutil.rmtree(config["folder"], ignore_errors=True)
    _leave_as(status)


def _limit_memory(size: int) -> None:
    """See that a worker is refused memory before the machine has none left for anybody."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if size > 0 and (hard == resource.RLIM_INFINITY or size < hard):
            resource.setrlimit(resource.RLIMIT_DATA, (size, hard))


def _work(config: dict[str, Any]) -> None:
    """Become the worker: import its module and call its `main`."""
    if config["root"] not in sys.path:
        sys.path.append(config["root"])
    sys.argv = [config["module"]]
    module = __import__(config["module"], fromlist=["main"])
    worker_main: Callable[[int, int], None] = module.main
    worker_main(int(config["request_fd"]), int(config["reply_fd"]))


def _wait(worker: int, request_fd: int, wake_fd: int) -> int | None:
    """Wait for the worker's death (its wait status) or the parent's (None)."""
    poller = select.poll()
    poller.register(request_fd, 0)  # no events asked for: only the hang-up is reported
    poller.register(wake_fd, select.POLLIN)
    while True:
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid:
            return status
        for fd, _ in poller.poll(5000):
            if fd == request_fd:
                return None
            os.read(wake_fd, 4096)
        _reap_adopted(worker)


def _reap_adopted(worker: int) -> None:
    """Reap orphans that this process adopted, without touching the worker's own status."""
    for pid in _children():
        if pid != worker:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _end_descendants() -> None:
    """Wait a moment for what the worker left running, then kill it."""
    deadline = time.monotonic() + _GRACE_SECONDS
    settled = time.monotonic() + _SETTLED_SECONDS
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            continue
        now = time.monotonic()
        if now > deadline or (now > settled and not any(map(_is_supervisor, _children()))):
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _is_supervisor(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return os.path.basename(__file__).encode() in file.read()
    return False


def _children() -> list[int]:
    """This process's children (Linux; elsewhere none are listed)."""
    me = os.getpid()
    with contextlib.suppress(OSError), open(f"/proc/{me}/task/{me}/children") as file:
        return [int(pid) for pid in file.read().split()]
    return []


def _kill_group(worker: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)


def _leave_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1)
    os._exit(os.WEXITSTATUS(status))


def _silence() -> None:
    """Let go of the worker's output pipe, so that its end is the worker's end."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
