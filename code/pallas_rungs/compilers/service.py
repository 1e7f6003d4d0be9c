"""A few compiler workers for many processes: a pool behind a socket.

A worker takes two seconds of CPU until it has compiled its first program. The chapters of a book
are executed in processes of their own, and each would start one; a build starts as many as it runs
chapters at a time, and the chapters ask it. A worker compiles one program at a time, so that a
program which ends or blocks the compiler is alone in feeling it, as with a worker of its own.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pallas_rungs.compilers.process import (
    Died,
    Outcome,
    Reply,
    TimedOut,
    Worker,
    WorkerStartError,
)
from pallas_rungs.compilers.wire import FrameError, read_frame, write_frame

ADDRESS_VARIABLE = "PALLAS_RUNGS_COMPILER_SERVICE"
"""Names the socket of the service to ask; where it is not set, a process has its own worker."""

_OUTCOMES: dict[str, type[Any]] = {kind.__name__: kind for kind in (Reply, Died, TimedOut)}


class Service:
    """Workers that other processes reach through a socket.

    Args:
      new_worker: makes one worker.
      workers: how many programs are compiled at a time; those that come meanwhile wait.

    Attributes:
      address: path of the socket. Only this user can reach it.
    """

    def __init__(self, new_worker: Callable[[], Worker], workers: int) -> None:
        self._workers = [new_worker() for _ in range(workers)]
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._closed = False
        self._folder = tempfile.TemporaryDirectory(prefix="pallas-rungs-")
        self.address = str(Path(self._folder.name) / "compiler")
        self._server = _Server(self.address, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    def request(self, header: dict[str, Any], blob: bytes, time_limit: float | None) -> Outcome:
        """Give a request to a worker that is idle, as soon as one is; see `Worker.request`.

        Raises:
          ConnectionAbortedError: the service has ended.
        """
        worker = self._idle.get()
        try:
            if self._closed:
                raise ConnectionAbortedError("the service has ended")
            return worker.request(header, blob, time_limit=time_limit)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the workers and remove the socket; who asks later is told that nobody answers."""
        self._closed = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for worker in self._workers:
            worker.close()
        self._folder.cleanup()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: str, service: Service) -> None:
        self.service = service
        super().__init__(address, _Connection)


class _Connection(socketserver.BaseRequestHandler):
    """Answers one process, request by request, until it hangs up."""

    server: _Server

    def handle(self) -> None:
        fd = self.request.fileno()
        with contextlib.suppress(OSError, FrameError):  # the other process has ended
            while (frame := read_frame(fd)) is not None:
                header, blob = frame
                try:
                    outcome = self.server.service.request(
                        header["request"], blob, header["time_limit"]
                    )
                except WorkerStartError as error:
                    write_frame(fd, {"not started": str(error)})
                else:
                    write_frame(fd, *_packed(outcome))


class ServiceWorker:
    """A worker of a service, with what its users ask of `Worker`.

    Args:
      address: the service's.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket: socket.socket | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Do nothing: the service starts its workers when the first program comes."""

    def request(
        self, header: dict[str, Any], blob: bytes = b"", *, time_limit: float | None
    ) -> Outcome:
        """Have one request answered; waiting for an idle worker does not count for the limit.

        Raises:
          WorkerStartError: the service cannot be reached, or its worker could not start.
        """
        with self._lock:
            try:
                fd = self._connected().fileno()
                write_frame(fd, {"request": header, "time_limit": time_limit}, blob)
                frame = read_frame(fd)
            except (OSError, FrameError) as error:
                self._hang_up()
                raise WorkerStartError(f"no answer from {self.address}: {error}") from error
            except BaseException:  # a half-read answer must not be taken for the next one
                self._hang_up()
                raise
            if frame is None:
                self._hang_up()
                raise WorkerStartError(f"no answer from {self.address}: it has ended")
        if "not started" in frame[0]:
            raise WorkerStartError(frame[0]["not started"])
        return _unpacked(*frame)

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            self._hang_up()

    def _connected(self) -> socket.socket:
        if self._socket is None or self._owner != os.getpid():  # inherited through a fork
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._owner = os.getpid()
            self._socket.connect(self.address)
        return self._socket

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _packed(outcome: Outcome) -> tuple[dict[str, Any], bytes]:
    fields = asdict(outcome)
    blob = fields.pop("blob", b"")
    return {"outcome": type(outcome).__name__, "fields": fields}, blob


def _unpacked(header: dict[str, Any], blob: bytes) -> Outcome:
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in header["fields"].items()
    }
    kind = _OUTCOMES[header["outcome"]]
    outcome: Outcome = kind(**fields, blob=blob) if kind is Reply else kind(**fields)
    return outcome
