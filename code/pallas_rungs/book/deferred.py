"""Parts of a page that depend on all other pages: placed while reading, filled while writing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

Maker = Callable[["Sphinx", str, str], list[nodes.Node]]
"""Makes the nodes for one place: given the application, the page's docname and an argument."""

_makers: dict[str, Maker] = {}
_inputs: dict[str, Callable[[Sphinx], Any]] = {}


class Deferred(nodes.General, nodes.Inline, nodes.Element):
    """A place that is filled when all pages are known."""


def maker(name: str, make: Maker, inputs: Callable[[Sphinx], Any]) -> None:
    """Register how places called `name` are filled.

    Args:
        name: what `place` is called with.
        make: makes the nodes.
        inputs: returns the JSON-able data that the nodes are made from; pages with such places
            are written anew when it changes.
    """
    _makers[name] = make
    _inputs[name] = inputs


def place(env: BuildEnvironment, name: str, argument: str = "") -> Deferred:
    """Make a place on the page that is being read."""
    _places(env).setdefault(env.docname, set()).add(name)
    return Deferred("", maker=name, argument=argument)


def link(app: Sphinx, docname: str, target: str, text: str, anchor: str = "") -> nodes.reference:
    """Make a link from one page of the book to another, or to a place on it."""
    fragment = f"#{anchor}" if anchor else ""
    uri = app.builder.get_relative_uri(docname, target) + fragment
    return nodes.reference("", text, refuri=uri or "#", internal=True)


def title(app: Sphinx, docname: str) -> str:
    """Return a page's title as plain text."""
    found = app.env.titles.get(docname)
    return found.astext() if found is not None else docname


def _places(env: BuildEnvironment) -> dict[str, set[str]]:
    if not hasattr(env, "pallas_rungs_places"):
        env.pallas_rungs_places = {}  # type: ignore[attr-defined]
    places: dict[str, set[str]] = env.pallas_rungs_places  # type: ignore[attr-defined]
    return places


def _purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _places(env).pop(docname, None)


def _digest(app: Sphinx, names: Iterable[str]) -> str:
    data = {name: _inputs[name](app) for name in sorted(names)}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _stale(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Name the pages whose places would be filled with something else than last time."""
    before: dict[str, str] = getattr(env, "pallas_rungs_filled", {})
    now = {docname: _digest(app, names) for docname, names in _places(env).items()}
    env.pallas_rungs_filled = now  # type: ignore[attr-defined]
    return [docname for docname, digest in now.items() if before.get(docname) != digest]


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(Deferred)):
        node.replace_self(_makers[node["maker"]](app, docname, node["argument"]))


def setup(app: Sphinx) -> None:
    """Fill places when pages are written; write pages anew when their places change."""
    app.add_node(Deferred)
    app.connect("env-purge-doc", _purge)
    app.connect("env-updated", _stale)
    app.connect("doctree-resolved", _fill)
