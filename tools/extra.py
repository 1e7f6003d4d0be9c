"""An optional extra: packages in a folder of their own beside the environment.

So the book is built, and all else is tested, as a reader has it, without the extra.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from set_up import PYTHON, ROOT, VENV, run


@dataclass(frozen=True)
class Extra:
    """Packages that `requirements-<name>.txt` pins, installed into .venv/<name>.

    Attributes:
        name: of the folder and of the pins.
        what: what to call it when it is installed.
        disk: what it takes, in words.
    """

    name: str
    what: str
    disk: str

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return VENV / self.name

    @property
    def _stamp(self) -> Path:
        return self.folder / "ready.txt"

    @property
    def _requirements(self) -> Path:
        return ROOT / f"requirements-{self.name}.txt"

    def _recipe(self) -> str:
        """Says what the folder depends on: the pins."""
        return hashlib.sha256(self._requirements.read_bytes()).hexdigest()

    def here(self) -> bool:
        """Tells whether the folder is complete and was made from these pins."""
        return self._stamp.is_file() and self._stamp.read_text("utf-8") == self._recipe()

    def install(self) -> int:
        """Makes the folder anew unless it is complete; returns pip's exit status."""
        if self.here():
            return 0
        print(f"installing {self.what} into .venv/{self.name}: {self.disk} of disk", flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        pip = (PYTHON, "-m", "pip", "--quiet", "install", "--require-hashes", "--no-deps")
        status = run(*pip, "--target", self.folder, "-r", self._requirements)
        if status == 0:
            self._stamp.write_text(self._recipe(), "utf-8")
        return status
