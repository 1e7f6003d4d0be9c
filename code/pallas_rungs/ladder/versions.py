"""Which versions a verdict was made with."""

from __future__ import annotations

import platform
from datetime import UTC, datetime

from pallas_rungs.compilers.packages import installed_version

PACKAGES = ("jax", "jaxlib", "libtpu")
EXTRAS = ("jax-cuda13-plugin",)
"""Told where they are installed."""


def installed(package: str) -> str:
    """Return the installed version of a package; `"not installed"` if there is none."""
    return installed_version(package) or "not installed"


def versions() -> dict[str, str]:
    """Return versions of jax, jaxlib, libtpu, extras and Python, and today's date (UTC)."""
    found = {package: installed(package) for package in PACKAGES}
    found |= {extra: version for extra in EXTRAS if (version := installed_version(extra))}
    found["python"] = platform.python_version()
    found["date"] = datetime.now(UTC).date().isoformat()
    return found
