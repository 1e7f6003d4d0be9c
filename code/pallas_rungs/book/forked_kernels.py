"""Kernels forked from one process of the build, seen from the build: see `fork_server`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import psutil
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from pallas_rungs.compilers.wire import FrameError, read_frame, write_frame

_COMMAND = (sys.executable, "-Xfrozen_modules=off", "-m", "pallas_rungs.book.fork_server")
_END_SECONDS = 5.0


class ForkServer:
    """Starts kernels as forks of one process, which is started when the first is asked for.

    Args:
        environment: All variables of that process. What jax reads while it is imported counts for
            the kernels too, whatever variables they are given.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._request_fd = self._reply_fd = -1
        self._lock = threading.Lock()

    @staticmethod
    def available() -> bool:
        """Whether kernels can be forked here: elsewhere system libraries do not survive it."""
        return sys.platform == "linux"

    def fork(self, arguments: list[str], folder: str, environment: Mapping[str, str]) -> int:
        """Start a kernel.

        Args:
            arguments: Of its command line, without the interpreter and the module.
            folder: Its working folder.
            environment: All its variables.

        Returns:
            Its process id, which is that of its process group too.

        Raises:
            RuntimeError: The server has ended.
        """
        with self._lock:
            if self._process is None:
                self._start()
            request = {
                "arguments": arguments,
                "folder": folder,
                "environment": dict(environment),
            }
            try:
                write_frame(self._request_fd, request)
                frame = read_frame(self._reply_fd)
            except (BrokenPipeError, FrameError):
                frame = None
            if frame is None:
                raise RuntimeError("the process that kernels are forked from has ended")
            return int(frame[0]["pid"])

    def close(self) -> None:
        """End the server, and with it the kernels that are left."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            os.close(self._request_fd)
            os.close(self._reply_fd)
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        server_reads, self._request_fd = os.pipe()
        self._reply_fd, server_writes = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*_COMMAND, str(server_reads), str(server_writes)],
                stdin=subprocess.DEVNULL,
                pass_fds=(server_reads, server_writes),
                env=self.environment,
            )
        finally:
            os.close(server_reads)
            os.close(server_writes)


class _Forked:
    """A process that is not our child, with what a kernel's manager asks of a `Popen`.

    Nobody is told with which code it left. Like a `Popen`, it takes signals that come too late.
    """

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._process: psutil.Process | None = psutil.Process(pid)
        except psutil.NoSuchProcess:  # it has ended already
            self._process = None

    def poll(self) -> int | None:
        """Return None while it runs."""
        return None if self._process is not None and self._process.is_running() else 0

    def wait(self) -> int:
        """Wait for its end."""
        if self._process is not None:
            self._process.wait()
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal, if it is still there."""
        if self._process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class ForkedProvisioner(LocalProvisioner):
    """Gives a kernel manager a fork instead of a new interpreter; all else stays as it is.

    Args:
        manager: The manager whose kernel it will be.
        server: Where its process comes from.
    """

    def __init__(self, manager: AsyncKernelManager, server: ForkServer) -> None:
        super().__init__(
            parent=manager, kernel_id=manager.kernel_id, kernel_spec=manager.kernel_spec
        )
        self._server = server

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork the kernel that `cmd` would start."""
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        pid = await asyncio.to_thread(self._server.fork, arguments, kwargs["cwd"], kwargs["env"])
        self.process: Any = _Forked(pid)
        self.pid: Any = pid
        self.pgid: Any = pid
        return self.connection_info
