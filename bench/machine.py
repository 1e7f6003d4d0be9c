"""The facts that a measured number means nothing without."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = ("jax", "jaxlib", "libtpu", "jupyter-book", "sphinx", "myst-nb", "nbclient", "ipykernel")


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Returns the processor's name as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Returns the versions of the packages that the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def commit(root: Path) -> str:
    """Returns the commit measured, with a plus sign when files differ from it."""

    def git(*words: str) -> str:
        ended = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=False
        )
        return ended.stdout.strip()

    head = git("rev-parse", "--short=12", "HEAD") or "unknown"
    return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def facts(root: Path) -> dict[str, Any]:
    """Returns machine, versions, commit and date; the load tells if others used the machine."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(root),
        "system": platform.platform(),
        "processor": processor(),
        "cores": cores(),
        "load_before": round(os.getloadavg()[0], 1),
        "versions": versions(),
    }
