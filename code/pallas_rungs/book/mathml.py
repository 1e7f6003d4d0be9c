"""Formulae as MathML: TeX is turned into markup while the book is built.

A page that has a formula needs no script, no font and no stylesheet for it, and reads the same
with scripts off. Every formula keeps its TeX in an annotation. The converter underneath is
lenient (it prints what it does not know), so its result is checked: an unknown command, an
unbalanced brace or a stray ``&`` fails the build with the place.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.errors import SphinxError
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
RENDERER = "pallas_rungs_mathml"

_TAG = f"{{{NAMESPACE}}}"
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(aligned|split|align)\}")
_FENCES = {"⌈", "⌉", "⌊", "⌋", "⟨", "⟩"}


class TexError(SphinxError):
    """A formula that cannot be turned into MathML."""

    category = "TeX error"


def to_mathml(tex: str, *, display: bool = False) -> str:
    r"""Turn one formula into a ``<math>`` element with its TeX as an annotation.

    Args:
        tex: the formula, without dollar signs, e.g. ``\frac{M}{b_m}``.
        display: True for a formula on a line of its own.

    Returns:
        the markup of one ``math`` element.

    Raises:
        TexError: when the formula is empty, has unbalanced braces, or uses a command or
            character that would be printed instead of typeset.
    """
    source = tex.strip()
    if not source:
        raise TexError("the formula is empty")
    _check_braces(source)
    prepared = _ENVIRONMENT.sub(r"\\\1{align*}", source)
    try:
        from latex2mathml.converter import convert

        markup = convert(prepared, display="block" if display else "inline")
        root = ET.fromstring(markup.replace("<mi>&</mi>", "<mi>&amp;</mi>"))
    except TexError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise TexError(f"{source!r} does not parse ({reason})") from error
    _check_leaves(root, source)
    _make_fences_operators(root)
    return _serialise(root, source)


def _check_braces(tex: str) -> None:
    depth = 0
    for position, character in enumerate(tex):
        if position and tex[position - 1] == "\\":
            continue
        depth += (character == "{") - (character == "}")
        if depth < 0:
            raise TexError(f"{tex!r} closes a brace that it never opened (character {position})")
    if depth:
        raise TexError(f"{tex!r} leaves {depth} brace{'s' if depth > 1 else ''} open")


def _check_leaves(root: ET.Element, tex: str) -> None:
    escaped = re.findall(r"\\([{}&])", tex)
    for leaf in root.iter():
        text = leaf.text or ""
        if leaf.tag == f"{_TAG}mtext":
            continue
        if text.startswith("\\"):
            raise TexError(f"{tex!r} uses {text}, which this book's converter does not know")
        if text in {"&", "}", "{"} and text not in escaped and "\\begin{cases}" not in tex:
            raise TexError(f"{tex!r} has a stray {text!r}: alignment belongs inside an environment")


def _make_fences_operators(root: ET.Element) -> None:
    for leaf in root.iter(f"{_TAG}mi"):
        if leaf.text in _FENCES:
            leaf.tag = f"{_TAG}mo"
            leaf.set("stretchy", "false")
            leaf.set("form", "prefix" if leaf.text in "⌈⌊⟨" else "postfix")


def _serialise(root: ET.Element, tex: str) -> str:
    semantics = ET.Element(f"{_TAG}semantics")
    body = ET.SubElement(semantics, f"{_TAG}mrow")
    body.extend(list(root))
    for child in list(root):
        root.remove(child)
    annotation = ET.SubElement(semantics, f"{_TAG}annotation", {"encoding": "application/x-tex"})
    annotation.text = tex
    root.append(semantics)
    markup = ET.tostring(root, encoding="unicode")
    markup = re.sub(r"<(/?)ns\d+:", r"<\1", markup)
    return re.sub(r'\sxmlns(:ns\d+)?="[^"]*"', "", markup)


def _place(node: nodes.Node) -> str:
    source = getattr(node, "source", None) or "?"
    parent: nodes.Node | None = node
    while parent is not None and getattr(parent, "line", None) is None:
        parent = parent.parent
    line = getattr(parent, "line", None)
    return f"{source}:{line}" if line else str(source)


def _convert_node(node: nodes.Element, *, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display=display)
    except TexError as error:
        raise TexError(f"{_place(node)}: {error}") from error


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_convert_node(node, display=False))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    # A formula wider than a phone scrolls, and must do so by keyboard too.
    translator.body.append(translator.starttag(node, "div", CLASS="pr-math", tabindex="0"))
    if node.get("number"):
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="pr-eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(_convert_node(node, display=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def _choose_renderer(app: Sphinx, config: Any) -> None:
    """Use this renderer unless the configuration names another one."""
    if config.html_math_renderer is None:
        config.html_math_renderer = RENDERER


def setup(app: Sphinx) -> None:
    """Register the renderer and make it the default."""
    app.add_html_math_renderer(RENDERER, (_visit_inline, None), (_visit_block, None))
    app.connect("config-inited", _choose_renderer)
