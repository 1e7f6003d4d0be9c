"""Libraries that some pages read and that are no part of the environment: optional extras.

Each lies in a folder of its own, without what it asks for beyond reading it, or, on a reader's
machine, among all other packages. Its source and data are read as files; what is imported of it is
imported without what its top level imports.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

INSTALLED_BY: Final[Mapping[str, str]] = {"tokamax": "make tokamax"}
"""The extras, and the command that installs each."""


class ExtraMissingError(LookupError):
    """An extra is not here; the message says how to install it."""


def variable(name: str) -> str:
    """Return the variable that names an extra's folder: `PALLAS_RUNGS_TOKAMAX` for tokamax."""
    return f"PALLAS_RUNGS_{name.upper()}"


def folder(name: str) -> Path:
    """Return the folder in which an extra is looked for.

    It is the one that its variable names; else `.venv/<name>`; else, where that holds nothing, the
    folder of the environment in which it is installed.

    Raises:
      KeyError: there is no such extra.
    """
    if name not in INSTALLED_BY:
        raise KeyError(f"no extra is called {name!r}; there are {', '.join(INSTALLED_BY)}")
    named = os.environ.get(variable(name))
    own = Path(named or Path(sys.prefix) / name)
    if named or (own / name).is_dir():
        return own
    for root in map(Path, filter(None, sys.path)):
        if (root / name / "__init__.py").is_file() and any(root.glob(f"{name}-*.dist-info")):
            return root
    return own


def why_missing(name: str) -> str:
    """Say why an extra cannot be read here; empty when it can.

    Raises:
      KeyError: there is no such extra.
    """
    if (folder(name) / name).is_dir():
        return ""
    return f"{name} is not in {folder(name)}; `{INSTALLED_BY[name]}` installs it"


def distribution(name: str) -> metadata.Distribution:
    """Return what an extra's package says of itself.

    Raises:
      ExtraMissingError: it is not here.
    """
    for found in metadata.distributions(name=name, path=[str(folder(name))]):
        return found
    raise ExtraMissingError(why_missing(name) or f"no version of {name} in {folder(name)}")


def version(name: str) -> str:
    """Return an extra's version.

    Raises:
      ExtraMissingError: it is not here.
    """
    return distribution(name).version


def pins(name: str) -> dict[str, str]:
    """Return what a reader installs for an extra: packages and versions, itself among them.

    They are those of its folder; empty where it is not here, or has no folder of its own.
    """
    where = folder(name)
    if why_missing(name) or str(where) in sys.path:
        return {}
    found = {each.name: each.version for each in metadata.distributions(path=[str(where)])}
    return dict(sorted(found.items()))


class _QArray:
    """Stands for a quantised array, which nothing here makes."""


def open_tokamax() -> None:
    """Make modules of tokamax importable: those that its top level imports stay where they are.

    Packages that only profiling and quantised arrays need get stand-ins, which do nothing.

    Raises:
      ExtraMissingError: it is not here.
    """
    if "tokamax" in sys.modules:
        return
    if why := why_missing("tokamax"):
        raise ExtraMissingError(why)
    here = str(folder("tokamax"))
    if here not in sys.path:
        sys.path.append(here)
    top = folder("tokamax") / "tokamax"
    spec = importlib.util.spec_from_file_location(
        "tokamax", top / "__init__.py", submodule_search_locations=[str(top)]
    )
    assert spec is not None
    sys.modules["tokamax"] = importlib.util.module_from_spec(spec)  # made, and not executed
    if importlib.util.find_spec("qwix") is None:
        _stand_in("qwix", QArray=_QArray)
    if importlib.util.find_spec("xprof") is None:
        _stand_in("xprof")
        _stand_in("xprof.cli")
        _stand_in("xprof.cli.tools", get_kernel_stats_tool=None)


def _stand_in(name: str, **attributes: object) -> None:
    module = types.ModuleType(name)
    module.__path__ = []
    for attribute, value in attributes.items():
        setattr(module, attribute, value)
    sys.modules[name] = module
