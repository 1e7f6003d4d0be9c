"""Runs in a chapter's kernel after a cell failed: frames, claim and values, as one JSON line."""

from __future__ import annotations

import ast
import json
import linecache
import os
import sys
from types import FrameType, TracebackType
from typing import Any

_LIMIT = 160


def _brief(value: Any) -> str:
    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # a repr of the reader's own may do anything
        text = f"<repr failed: {error}>"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if len(text) > _LIMIT:
        text = text[:_LIMIT] + "…"
    return f"{text}  (shape {shape}, {dtype})" if shape else text


def _statement(source: str, line: int) -> ast.Assert | None:
    """Find the assertion that stands at a line."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or line):
            found = node
    return found


def _asked(test: ast.expr) -> list[ast.expr]:
    """Return the parts of an assertion whose values tell most."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asked(test.operand)
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in _asked(value)]
    if isinstance(test, ast.Compare):
        return [p for p in [test.left, *test.comparators] if not isinstance(p, ast.Constant)]
    if isinstance(test, ast.Call):
        return [a for a in test.args if not isinstance(a, ast.Constant | ast.GeneratorExp)]
    return [test]


def values_at(frame: FrameType, line: int) -> list[str]:
    """Return ``expression = value`` lines for the assertion that failed in a frame.

    Args:
        frame: The frame in which it failed.
        line: The line, from 1, at which it failed.
    """
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    statement = _statement("".join(lines), line)
    if statement is None:
        return []
    rows = []
    for part in _asked(statement.test):
        text = ast.unparse(part)
        try:
            value = eval(text, frame.f_globals, frame.f_locals)
        except Exception:
            continue  # a value that cannot be had again is left out
        rows.append(f"{text} = {_brief(value)}")
    return rows


def _chain(error: BaseException | None) -> list[str]:
    notes: list[str] = []
    while error is not None:
        notes += [str(note) for note in getattr(error, "__notes__", [])]
        error = error.__cause__ or error.__context__
    return notes


def describe() -> str:
    """Return the last error as JSON: ``type``, ``message``, ``notes``, ``frames``, ``values``.

    A frame has ``file``, ``line``, ``function``, ``source``, and ``cell``: the execution count
    of the cell that holds it, or null.
    """
    from IPython import get_ipython

    error = getattr(sys, "last_value", None)
    counts = getattr(get_ipython().compile, "_filename_map", {})
    frames: list[dict[str, Any]] = []
    values: list[str] = []
    step: TracebackType | None = getattr(sys, "last_traceback", None)
    while step is not None:
        file, line = step.tb_frame.f_code.co_filename, step.tb_lineno
        frames.append(
            {
                "file": file,
                "line": line,
                "function": step.tb_frame.f_code.co_name,
                "source": linecache.getline(file, line, step.tb_frame.f_globals).strip(),
                "cell": counts.get(file),
            }
        )
        if step.tb_next is None and isinstance(error, AssertionError):
            values = values_at(step.tb_frame, line)
        step = step.tb_next
    message = str(error)
    if isinstance(error, SyntaxError) and not os.path.isfile(error.filename or ""):
        message = error.msg
        frames = [
            {
                "file": "",
                "line": error.lineno or 1,
                "function": "",
                "source": (error.text or "").strip(),
                "cell": get_ipython().execution_count - 1,
            }
        ]
    return json.dumps(
        {
            "type": type(error).__name__,
            "message": message,
            "notes": _chain(error),
            "frames": frames,
            "values": values,
        }
    )
