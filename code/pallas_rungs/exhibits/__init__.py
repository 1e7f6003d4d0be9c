"""The Python truth of the interactive exhibits, their test vectors and their bundle.

Each exhibit's arithmetic is computed here with the library's own functions; the JavaScript that a
reader runs is held to it on thousands of random settings.
"""

from __future__ import annotations

from importlib import import_module

from pallas_rungs.exhibits.exhibit import Exhibit

MODULES: dict[str, str] = {"blockspec-sandbox": "blockspec_sandbox"}
"""Tag name -> module of this package that holds it as `EXHIBIT`."""


def exhibit_named(name: str) -> Exhibit:
    """Return the exhibit of that tag name.

    Raises:
      ValueError: there is none; the message lists those there are.
    """
    if name not in MODULES:
        known = ", ".join(sorted(MODULES))
        raise ValueError(f"unknown exhibit {name!r}; the exhibits are: {known}")
    found: Exhibit = import_module(f"{__name__}.{MODULES[name]}").EXHIBIT
    return found
