"""Installs the CUDA compiler, an optional extra, beside the environment: into .venv/cuda.

In a folder of its own, so that the book is built and all else is tested as a reader has it, without
the extra; the tests marked `cuda` are given the folder by run_tests.py.
"""

import hashlib
import shutil
import sys

from set_up import PYTHON, ROOT, VENV, run

FOLDER = VENV / "cuda"
REQUIREMENTS = ROOT / "requirements-cuda.txt"
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
    print("installing the CUDA compiler into .venv/cuda: 400 MB of disk", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    pip = (PYTHON, "-m", "pip", "--quiet", "install", "--require-hashes", "--no-deps")
    status = run(*pip, "--target", FOLDER, "-r", REQUIREMENTS)
    if status == 0:
        STAMP.write_text(recipe(), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
