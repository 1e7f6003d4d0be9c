"""Installs tokamax, an optional extra, beside the environment: into .venv/tokamax.

Its kernels and its measured medians are what `make validate-estimator` compares with. In a folder
of its own, and without what it needs only for profiling and training: the book needs none of it.
"""

import hashlib
import shutil
import sys

from set_up import PYTHON, ROOT, VENV, run

FOLDER = VENV / "tokamax"
REQUIREMENTS = ROOT / "requirements-tokamax.txt"
STAMP = FOLDER / "ready.txt"


def recipe() -> str:
    """Says what the folder depends on: the pins."""
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def here() -> bool:
    """Tells whether the folder is complete and was made from these pins."""
    return STAMP.is_file() and STAMP.read_text("utf-8") == recipe()


def main() -> int:
    """Makes the folder anew unless it is complete; returns pip's exit status."""
    if here():
        return 0
    print("installing tokamax into .venv/tokamax: 30 MB of disk", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    pip = (PYTHON, "-m", "pip", "--quiet", "install", "--require-hashes", "--no-deps")
    status = run(*pip, "--target", FOLDER, "-r", REQUIREMENTS)
    if status == 0:
        STAMP.write_text(recipe(), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
