"""One chapter in one kernel: started, run cell by cell, its failure described, ended."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from pallas_rungs.book.forked_kernels import ForkedProvisioner, ForkServer

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_POSTMORTEM_SECONDS = 10


class _OwnInterpreter(KernelSpecManager):
    """Gives the interpreter that builds the book, whatever kernels the user has installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [
            *(sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher"),
            *("-f", "{connection_file}", "--log-level=40", "--HistoryManager.enabled=False"),
        ]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


@dataclass(frozen=True)
class Failure:
    """Why a chapter stopped.

    Attributes:
        index: Index in the notebook of the cell that was running.
        cause: One line: type and message.
        frames: Frames of the traceback, outermost first; see `postmortem.describe`.
        notes: The exception's notes, such as the claim that was being proved.
        values: Values of the assertion that failed.
    """

    index: int
    cause: str
    frames: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass
class Session:
    """One run of a notebook.

    Args:
        notebook: The cells; outputs are written into it.
        environment: All variables of the kernel's process.
        cell_seconds: The limit for one cell, in seconds.
        record_timing: Note in each cell's metadata when it began and ended.
        server: Where the kernel is forked from; without one it is a process of its own.
    """

    notebook: NotebookNode
    environment: Mapping[str, str]
    cell_seconds: int
    record_timing: bool = False
    server: ForkServer | None = None
    current: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    async def run(self) -> Failure | None:
        """Execute all cells in an empty folder; return why it stopped, or ``None``."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="chapter-") as folder:
            manager = AsyncKernelManager(
                kernel_name="python3", kernel_spec_manager=_OwnInterpreter()
            )
            if self.server is not None:
                manager.provisioner = ForkedProvisioner(manager, self.server)
            client = NotebookClient(
                self.notebook,
                km=manager,
                timeout=self.cell_seconds,
                record_timing=self.record_timing,
                on_cell_start=self._note_cell,
                resources={"metadata": {"path": folder}},
            )
            environment = {**self.environment, "IPYTHONDIR": str(Path(folder) / ".ipython")}
            try:
                return await self._run(client, manager, environment)
            finally:
                self.seconds = time.monotonic() - start

    def _note_cell(self, cell: NotebookNode, cell_index: int) -> None:
        self.current = cell_index

    async def _run(
        self, client: NotebookClient, manager: AsyncKernelManager, environment: dict[str, str]
    ) -> Failure | None:
        failure: Failure | None = None
        graceful = False
        try:
            await client.async_start_new_kernel(env=environment)
            await client.async_start_new_kernel_client()
            for index, cell in enumerate(self.notebook.cells):
                if cell.cell_type == "code":
                    await client.async_execute_cell(cell, index)
            graceful = True
        except CellExecutionError as error:
            failure = await self._describe(client, error)
        except CellTimeoutError:
            cause = f"the cell ran past its limit of {self.cell_seconds} s"
            failure = Failure(self.current, cause)
        except DeadKernelError:
            failure = Failure(self.current, "the kernel died while this cell was running")
        except RuntimeError as error:
            failure = Failure(self.current, f"the kernel did not start: {error}")
        finally:
            group = _process_group(manager)
            await _end(client, manager, graceful=graceful)
            _end_group(group)
        return failure

    async def _describe(self, client: NotebookClient, error: CellExecutionError) -> Failure:
        """Ask the kernel, which still holds the error, for frames, notes and values."""
        cause = f"{error.ename}: {_ANSI.sub('', error.evalue)}".strip().rstrip(":")
        probe = (
            "import importlib as _i; "
            "print(_i.import_module('pallas_rungs.book.postmortem').describe())"
        )
        printed: list[str] = []

        def listen(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        kernel: Any = client.kc
        with suppress(TimeoutError, RuntimeError):
            await kernel.execute_interactive(
                probe,
                store_history=False,
                allow_stdin=False,
                output_hook=listen,
                timeout=_POSTMORTEM_SECONDS,
            )
        told = _told("".join(printed))
        if told:
            cause = f"{told['type']}: {told['message']}".strip().rstrip(":")
        return Failure(
            self.current,
            cause,
            frames=tuple(told.get("frames", ())),
            notes=tuple(told.get("notes", ())),
            values=tuple(told.get("values", ())),
        )


def _told(printed: str) -> dict[str, Any]:
    """Find the line of JSON among what a kernel printed; empty when there is none."""
    for line in printed.splitlines():
        with suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict) and "frames" in told:
                return told
    return {}


def _process_group(manager: AsyncKernelManager) -> int:
    provisioner = manager.provisioner
    return int(getattr(provisioner, "pgid", 0) or 0) if provisioner is not None else 0


async def _end(client: NotebookClient, manager: AsyncKernelManager, *, graceful: bool) -> None:
    with suppress(RuntimeError):  # no kernel is running: it died, which was noted
        if await manager.is_alive():
            await manager.shutdown_kernel(now=not graceful)
    if client.kc is not None:
        client.kc.stop_channels()
    await ensure_async(manager.cleanup_resources())


def _end_group(group: int) -> None:
    """End processes that the chapter's cells left behind; the kernel led a group of its own."""
    if group and group != os.getpgrp():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
