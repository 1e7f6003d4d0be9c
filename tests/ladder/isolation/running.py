"""A command in a process of its own, as a reader starts one."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil


def started(
    *arguments: str, processes: int, command: str = "climb"
) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """Start a command and wait until so many processes run below it; return it and them."""
    climb = subprocess.Popen(
        [sys.executable, "-m", "pallas_rungs", command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    root = psutil.Process(climb.pid)
    deadline = time.monotonic() + 60
    below: list[psutil.Process] = []
    while len(below) < processes and time.monotonic() < deadline:
        time.sleep(0.1)
        below = root.children(recursive=True)
    assert len(below) >= processes, "the workers did not start"
    return climb, below
