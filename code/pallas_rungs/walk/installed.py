"""Find the source file of an installed module, and say whose it is, without importing it.

A package may be installed without its dependencies, so that importing it fails while its source is
there to be read. Everything here therefore works on files and package metadata alone.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pallas_rungs import extras
from pallas_rungs.walk.errors import AbsentExtraError, ExcerptError

# Distribution name -> (repository, form of a release tag, folder of the package in the repository).
_FORGES: dict[str, tuple[str, str, str]] = {
    "jax": ("https://github.com/jax-ml/jax", "jax-v{version}", ""),
    "tokamax": ("https://github.com/openxla/tokamax", "v{version}", ""),
}

_HEADER_LICENCES = (
    ("Apache License, Version 2.0", "Apache-2.0"),
    ("SPDX-License-Identifier: Apache-2.0", "Apache-2.0"),
    ("SPDX-License-Identifier: BSD-3-Clause", "BSD-3-Clause"),
    ("SPDX-License-Identifier: MIT", "MIT"),
    ("MIT License", "MIT"),
)


@dataclass(frozen=True)
class InstalledModule:
    """The source of one module as it lies in the installed package.

    Attributes:
        module: dotted name, e.g. ``jax._src.pallas.core``.
        path: the file on this machine.
        relative: the file's path inside the package's repository, with forward slashes.
        source: its text.
        package: name of the distribution, e.g. ``jax``.
        version: its installed version.
        licence: SPDX name of the licence, from the file's header or the package's metadata.
        copyright: the file's own copyright line, or an empty string.
        repository: address of the project's repository, or None if it is not known.
        tag: name of the release tag of this version, or None if it is not known.
    """

    module: str
    path: Path
    relative: str
    source: str
    package: str
    version: str
    licence: str
    copyright: str
    repository: str | None
    tag: str | None

    @property
    def digest(self) -> str:
        """SHA-256 of package, version and source: changes when what is drawn may have changed."""
        text = f"{self.package}\0{self.version}\0{self.source}"
        return hashlib.sha256(text.encode()).hexdigest()

    def permalink(self, first: int, last: int) -> str | None:
        """Address of lines `first` to `last` at the release tag, or None for an unknown forge."""
        if self.repository is None or self.tag is None:
            return None
        lines = f"#L{first}" if first == last else f"#L{first}-L{last}"
        return f"{self.repository}/blob/{self.tag}/{self.relative}{lines}"


def _locate(module: str) -> Path:
    top, *rest = module.split(".")
    if top in extras.INSTALLED_BY:
        if why := extras.why_missing(top):
            raise AbsentExtraError(f"cannot draw from module {module!r}: {why}", top)
        return _file_of(module, [extras.folder(top) / top], rest)
    try:
        spec = importlib.util.find_spec(top) if top else None
    except ValueError:
        spec = None
    if spec is None:
        raise ExcerptError(
            f"cannot draw from module {module!r}: package {top!r} is not installed. "
            "Install it, or correct the module's name."
        )
    if not rest and spec.origin and not spec.submodule_search_locations:
        return Path(spec.origin)
    return _file_of(module, spec.submodule_search_locations or (), rest)


def _file_of(module: str, roots: Iterable[str | Path], rest: list[str]) -> Path:
    for root in roots:
        stem = Path(root, *rest)
        for candidate in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if candidate.is_file() and (rest or candidate.name == "__init__.py"):
                return candidate
    raise ExcerptError(
        f"cannot draw from module {module!r}: the installed package {module.partition('.')[0]!r} "
        "has no such source file. Look where this version keeps it and correct the module's name."
    )


def _licence_of(source: str, metadata: importlib.metadata.PackageMetadata) -> str | None:
    header = source[:2000]
    for text, name in _HEADER_LICENCES:
        if text in header:
            return name
    for field in ("License-Expression", "License"):
        if field in metadata and (value := metadata[field].strip()):
            return value.splitlines()[0]
    return None


@cache
def _distribution_of(top: str) -> importlib.metadata.Distribution | None:
    names = importlib.metadata.packages_distributions().get(top, ())
    return importlib.metadata.distribution(names[0]) if names else None


def installed_module(module: str) -> InstalledModule:
    """Read the source of `module` from the installed package, with its origin.

    Args:
        module: dotted name of a module that is installed as Python source.

    Raises:
        AbsentExtraError: if it is of an optional extra that is not here.
        ExcerptError: if the module is not installed, belongs to no installed distribution, or
            states no licence.
    """
    path = _locate(module)
    top = module.split(".")[0]
    extra = top in extras.INSTALLED_BY
    distribution = extras.distribution(top) if extra else _distribution_of(top)
    if distribution is None:
        raise ExcerptError(
            f"cannot draw from module {module!r}: {path} belongs to no installed distribution, so "
            "its version and licence are unknown. Draw from installed packages only."
        )
    source = path.read_text(encoding="utf-8")
    package, version = distribution.metadata["Name"], distribution.version
    licence = _licence_of(source, distribution.metadata)
    if licence is None:
        raise ExcerptError(
            f"cannot draw from {package} {version}, module {module}: neither the file's header nor "
            "the package's metadata names a licence. Do not show this text."
        )
    copyright_line = re.search(r"^#\s*(Copyright .*?)\.?\s*$", source[:2000], re.MULTILINE)
    depth = len(module.split(".")) + (1 if path.name == "__init__.py" else 0)
    relative = "/".join(path.parts[-depth:])
    repository: str | None = None
    tag: str | None = None
    if package in _FORGES:
        repository, tag_form, folder = _FORGES[package]
        tag, relative = tag_form.format(version=version), folder + relative
    return InstalledModule(
        module=module,
        path=path,
        relative=relative,
        source=source,
        package=package,
        version=version,
        licence=licence,
        copyright=copyright_line.group(1) if copyright_line else "",
        repository=repository,
        tag=tag,
    )
