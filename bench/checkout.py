"""A copy of the checkout in a temporary folder, to build in and to edit."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Built:
    """One build: its wall seconds and everything that it printed."""

    seconds: float
    log: str


@dataclass(frozen=True)
class Checkout:
    """A copy of this repository, built by this environment's Python.

    Attributes:
        root: The copy's folder.
    """

    root: Path

    def environment(self, fresh: bool) -> dict[str, str]:
        """Returns variables that make the copy's own code win over the installed package."""
        mode = {"PALLAS_RUNGS_FRESH": "1", "PALLAS_RUNGS_NO_CACHE": "1"} if fresh else {}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PALLAS_RUNGS_")}
        return kept | mode | {"PYTHONPATH": str(self.root / "code"), "JAX_PLATFORMS": "cpu"}

    def build(self, *, fresh: bool = False) -> Built:
        """Builds the site as `make book` does.

        Args:
            fresh: Execute every chapter, and ask no cache.

        Raises:
            RuntimeError: The build failed; the message ends with what it printed last.
        """
        start = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, str(self.root / "tools" / "build_book.py")],
            cwd=self.root,
            env=self.environment(fresh),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - start
        if ended.returncode != 0:
            raise RuntimeError(f"the book did not build:\n{ended.stdout[-3000:]}")
        return Built(seconds, ended.stdout)

    def forget(self) -> None:
        """Removes what earlier builds left."""
        shutil.rmtree(self.root / "_build", ignore_errors=True)


@contextmanager
def copied(root: Path = ROOT) -> Iterator[Checkout]:
    """Copies the files that git knows, new ones included, to a folder that is removed afterwards.

    The exhibits' installed packages are linked, since installing them is no part of a build.
    """
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    with TemporaryDirectory(prefix="pallas-rungs-bench-") as folder:
        copy = Path(folder, "book")
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        modules = root / "exhibits" / "node_modules"
        if modules.is_dir():
            (copy / "exhibits" / "node_modules").symlink_to(modules)
        yield Checkout(copy)
