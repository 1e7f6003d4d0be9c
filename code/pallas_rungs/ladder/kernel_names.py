"""Which of a program's kernels is which: their names, and the one that an error means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pallas_rungs.ladder import swap
from pallas_rungs.ladder.source_frames import is_users, with_source
from pallas_rungs.ladder.verdict import Frame

_DEFINED_AT = re.compile(r"(\S+) at (.+):(\d+)")
_NAMED = re.compile(
    r"MLIR module name `(?P<module>[^`]+)`"
    r"|%(?P<hlo>[\w-]+?)(?:\.\d+)? = [^%\n]*custom-call"
    r"|space=\w+, .*:: (?P<operation>[\w-]+?)(?:\.\d+)?$"
    r"|in the pallas_call (?P<call>\S+)",
    re.MULTILINE,
)


def kernel_names(kernels: Sequence[Any]) -> list[str]:
    """Return a name for each equation that launches a kernel, a number after repeated ones."""
    seen: dict[str, int] = {}
    names = []
    for kernel in kernels:
        name = _name(kernel)
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def kernel_meant(message: str, frame: Frame | None, kernels: Sequence[Any]) -> int | None:
    """Return the place of the kernel that an error is about; None where that cannot be told.

    Args:
      message: the error's whole message, in which a compiler may name the kernel.
      frame: the line that the error came from, which may lie in one kernel's body.
      kernels: the equations that launch a kernel.
    """
    if len(kernels) < 2:
        return 0 if kernels else None
    said = {name for match in _NAMED.finditer(message) for name in match.groups() if name}
    named = [i for i, kernel in enumerate(kernels) if _name(kernel) in said]
    if not named and frame is not None:
        named = [i for i, kernel in enumerate(kernels) if _holds(kernel_source(kernel), frame)]
    return named[0] if len(named) == 1 else None


def kernel_source(kernel: Any) -> Frame | None:
    """Return where a kernel's body is defined, jax's own functions around it left out."""
    return next(_bodies_of_the_users(kernel), None)


def _bodies_of_the_users(eqn: Any) -> Iterator[Frame]:
    """Yield where the functions inside an equation are defined, those of jax's own left out."""
    for body in swap.sub_jaxprs(eqn.params):
        match = _DEFINED_AT.search(str(getattr(body.debug_info, "func_src_info", "")))
        if match and is_users(match[2]):
            yield with_source(Frame(match[2], int(match[3]), match[1].rpartition(".")[2]))
        for inner in body.eqns:
            yield from _bodies_of_the_users(inner)


def _name(kernel: Any) -> str:
    given = kernel.params.get("name")
    defined = _source_info(kernel).split(" at ", 1)[0].rpartition(".")[2]
    return str(given or defined or kernel.primitive.name)


def _source_info(kernel: Any) -> str:
    bodies = kernel.params.get("jaxprs") or (kernel.params.get("jaxpr"),)
    debug_info = getattr(bodies[0], "debug_info", None)
    return str(getattr(debug_info, "func_src_info", None) or "")


def _holds(body: Frame | None, frame: Frame) -> bool:
    """True when a line lies in the function that is defined at `body`."""
    if body is None or body.file != frame.file:
        return False
    try:
        tree = ast.parse(Path(body.file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    spans = [(_first_line(node), node.lineno, node.end_lineno or node.lineno) for node in functions]
    return any(
        first <= body.line <= own and first <= frame.line <= last for first, own, last in spans
    )


def _first_line(node: ast.FunctionDef | ast.Lambda) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
