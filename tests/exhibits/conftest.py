"""Vectors for the exhibits' tests, and how the JavaScript is run against them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def run_node_tests(root: Path, node: str) -> Callable[[Path], subprocess.CompletedProcess[str]]:
    """Run the exhibits' JavaScript tests on the vectors in a folder."""

    def run(vectors: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [node, "--test"],
            cwd=root / "exhibits",
            env={**os.environ, "PALLAS_RUNGS_VECTORS": str(vectors)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
