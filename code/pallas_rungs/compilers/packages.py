"""Which packages are installed, read without importing them."""

from __future__ import annotations

from importlib import metadata


def installed_version(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
