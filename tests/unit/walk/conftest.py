"""A package that lies installed on the path, made for one test."""

import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

LICENCE = "# Copyright 2024 The Authors.\n# SPDX-License-Identifier: MIT\n"
_counter = itertools.count()


@dataclass
class Package:
    """An installed package of one module, `module`, whose text can be replaced."""

    folder: Path
    name: str

    @property
    def module(self) -> str:
        return f"{self.name}.core"

    @property
    def path(self) -> Path:
        return self.folder / self.name / "core.py"

    def write(self, source: str, *, version: str = "1.2.3", licence: str = LICENCE) -> None:
        (self.folder / self.name).mkdir(exist_ok=True)
        (self.folder / self.name / "__init__.py").write_text("raise ImportError('never imported')")
        self.path.write_text(licence + source)
        info = self.folder / f"{self.name}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {version}\n"
        )
        (info / "top_level.txt").write_text(f"{self.name}\n")
        importlib.invalidate_caches()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Package]:
    """Returns a function that installs a module with the given text."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(source: str, **options: str) -> Package:
        made = Package(tmp_path, f"upstream{next(_counter)}")
        made.write(source, **options)
        return made

    return install
