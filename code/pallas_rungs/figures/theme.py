"""The colours and type of the figures: the book's variables, with values of their own elsewhere.

Inside the book every ``--pr-…`` variable is defined for light and dark, so a figure follows the
reader's choice. In a notebook, or as a file of its own, the values here apply: light by default,
dark where the host says that it is dark.
"""

from __future__ import annotations

# Name in the figures -> (name in the book, light value, dark value).
_COLOURS: dict[str, tuple[str, str, str]] = {
    "text": ("text", "#1d1f24", "#e6e3dc"),
    "muted": ("muted", "#565a63", "#a9acb4"),
    "line": ("line", "#e0dbcf", "#32363d"),
    "strong": ("line-strong", "#b9b2a2", "#5a5f69"),
    "ground": ("bg", "#fdfcf9", "#15171b"),
    "panel": ("panel", "#f5f2ea", "#1d2025"),
    "raised": ("raised", "#ffffff", "#1a1d22"),
    "good": ("good", "#22692f", "#8ad394"),
    "bad": ("bad", "#a81e2b", "#ff9a97"),
    "warn": ("warn", "#8a4b00", "#f0b765"),
    "quiet": ("quiet", "#565a63", "#a9acb4"),
    "good-bg": ("good-bg", "#e7f3e6", "#1b2e20"),
    "bad-bg": ("bad-bg", "#fbe9e8", "#3a1f21"),
    "quiet-bg": ("quiet-bg", "#efece5", "#25282e"),
    "rung-trace": ("rung-trace", "#34599b", "#9dbcf5"),
    "rung-interpret": ("rung-interpret", "#006b73", "#6fcfd6"),
    "rung-simulate": ("rung-simulate", "#2b6e35", "#8ad394"),
    "rung-lower": ("rung-lower", "#7d5a00", "#e3bf58"),
    "rung-compile": ("rung-compile", "#a2420e", "#f5a273"),
    "rung-chip": ("rung-chip", "#8c2463", "#f09ac8"),
    "1": ("fig-1", "#34599b", "#9dbcf5"),
    "2": ("fig-2", "#b4511f", "#f5a273"),
    "3": ("fig-3", "#2b6e35", "#8ad394"),
    "4": ("fig-4", "#8c2463", "#f09ac8"),
    "5": ("fig-5", "#7d5a00", "#e3bf58"),
    "6": ("fig-6", "#006b73", "#6fcfd6"),
    "fill-1": ("fig-fill-1", "#d9e3f6", "#26365a"),
    "fill-2": ("fig-fill-2", "#f8dfcf", "#52301d"),
    "fill-3": ("fig-fill-3", "#d8ecd9", "#21432a"),
    "fill-4": ("fig-fill-4", "#f3d9e8", "#4b2139"),
    "fill-5": ("fig-fill-5", "#f4e6c3", "#453611"),
    "fill-6": ("fig-fill-6", "#d0ebec", "#16444a"),
}

HIGHLIGHTS = 6
"""How many programs can be told apart by colour in one figure."""

_SANS = '"Source Sans 3","Segoe UI",system-ui,-apple-system,"Helvetica Neue",Arial,sans-serif'
_MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_DARK_HOSTS = (
    'html[data-theme="dark"],html[theme="dark"],body[data-jp-theme-light="false"],body.vscode-dark'
)


def colour(name: str) -> str:
    """CSS value of a theme colour, e.g. ``colour("text")``.

    Raises:
        KeyError: if there is no such colour.
    """
    if name not in _COLOURS:
        raise KeyError(f"no theme colour {name!r}; there are: {', '.join(_COLOURS)}")
    return f"var(--f-{name})"


def _values(names: list[str], dark: bool) -> str:
    return "".join(
        f"--f-{name}:var(--pr-{_COLOURS[name][0]},{_COLOURS[name][2 if dark else 1]});"
        for name in names
    )


def stylesheet(markup: str) -> str:
    """CSS that the figures' `markup` needs: only the colours that it uses, light and dark."""
    names = [name for name in _COLOURS if f"var(--f-{name})" in markup]
    light, dark = _values(names, dark=False), _values(names, dark=True)
    return (
        f".pr-figure{{{light}--f-sans:var(--pr-sans,{_SANS});--f-mono:var(--pr-mono,{_MONO})}}"
        f":is({_DARK_HOSTS}) .pr-figure{{{dark}}}"
        f"@media(prefers-color-scheme:dark){{svg.pr-figure:root{{{dark}}}}}"
        f"{_LAYOUT}"
    )


# `.pr-figure` is a column of parts; `.pr-panels` a row of drawings that wraps where space is short.
_LAYOUT = (
    ".pr-figure{color:var(--f-text,currentColor);container-type:inline-size;max-width:100%}"
    "svg.pr-figure{container-type:normal}"
    ".pr-figure svg{display:block;max-width:100%;height:auto}"
    ".pr-figure .pr-panels{display:flex;flex-wrap:wrap;gap:1.25rem 2rem;align-items:flex-start}"
    ".pr-figure text,svg.pr-figure text{font-family:var(--f-sans)}"
    ".pr-figure text.m,svg.pr-figure text.m{font-family:var(--f-mono)}"
    ".pr-figure .pr-key{display:flex;flex-wrap:wrap;gap:.3rem 1.25rem;list-style:none;"
    "margin:.9rem 0 0;padding:0;font:400 .93rem/1.5 var(--f-sans)}"
    ".pr-figure .pr-key li{display:inline-flex;align-items:center;gap:.45rem;margin:0}"
    ".pr-figure .pr-key svg{flex:none}"
    ".pr-figure .pr-fig-narrow{display:none}"
    "@container(max-width:36rem){.pr-figure .pr-fig-wide{display:none}"
    ".pr-figure .pr-fig-narrow{display:block}}"
)
