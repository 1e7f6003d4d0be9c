"""What every interactive exhibit consists of on the Python side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Exhibit:
    """One exhibit: the truth in Python, from which its page data and its test vectors come.

    The element's tag is `<name>`; its logic is `exhibits/src/logic/<name>.js`, a module whose
    `derive(setting, data)` must give what `derive` gives here, on every setting.

    Attributes:
      name: the tag's name, also the argument of the `exhibit` directive, e.g.
        `"blockspec-sandbox"`.
      title: a short title in sentence case.
      default: the setting that the page starts with, JSON-able.
      data: what the logic needs to know of the installed library, JSON-able; goes into the page.
      derive: setting -> everything that the exhibit shows, JSON-able, from the library's own
        functions.
      draw: (seed, count) -> random settings, the same for the same seed.
      fallback: the sentence and the SVG picture of the default setting, for readers without
        scripts.
    """

    name: str
    title: str
    default: dict[str, Any]
    data: Callable[[], dict[str, Any]]
    derive: Callable[[dict[str, Any]], dict[str, Any]]
    draw: Callable[[int, int], list[dict[str, Any]]]
    fallback: Callable[[], tuple[str, str]]
