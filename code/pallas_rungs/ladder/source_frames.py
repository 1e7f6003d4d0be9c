"""Finding the user's own line among the frames of an error."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import jax

from pallas_rungs.ladder.verdict import Frame

_LADDER = Path(__file__).parent.resolve()
_NOT_THE_USERS = tuple(
    os.path.join(str(folder), "")
    for folder in (
        Path(jax.__file__).parent,
        Path(jax.__file__).parent.parent / "jaxlib",
        Path(jax.__file__).parent.parent / "numpy",
        Path(jax.__file__).parent.parent / "libtpu",
        _LADDER,
        _LADDER.parent / "compilers",
    )
)
_ESTIMATOR = str(_LADDER.parent / "performance" / "estimate.py")
"""Calls the user's function as the ladder does; beside it lie functions that are estimated."""
_STANDARD_LIBRARY = os.path.join(sysconfig.get_paths()["stdlib"], "")

_TEXT_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_COMPILERS_FRAME = re.compile(r'"([^"()]*)"\("(/[^"]+)":(\d+):')
_AT_LINE = re.compile(r"(?:\bat |, |^|\s)(/[^\s:,()]+\.py):(\d+)")


_CALL_THE_USER = frozenset(
    {"__call__", "callable_for", "made", "run", "reference_result", "trace", "export_traced"}
)
"""The ladder's functions that call the user's, or have jax call it."""


def message_of(error: BaseException) -> str:
    """Return what an error says; empty for one that cannot even say that."""
    try:
        return str(error)
    except Exception:
        return ""


def is_users(file: str) -> bool:
    """True for a source file that is neither jax's, nor the ladder's, nor Python's own."""
    if not file or (file.startswith("<") and not file.startswith("<ipython")):
        return False
    path = os.path.abspath(file) if not file.startswith("<") else file
    if path.startswith(_NOT_THE_USERS) or path == _ESTIMATOR:
        return False
    in_library = path.startswith(_STANDARD_LIBRARY) and "site-packages" not in path
    return not in_library


def users_frame(error: BaseException) -> Frame | None:
    """Return the innermost line of the user's own code that led to `error`.

    Looked for in the error's traceback, then in the stack that jax kept from tracing, then where
    Mosaic GPU stood, then in the text of the message.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if frame := _innermost(_frames_of(link.__traceback__)):
            return frame
        link = link.__cause__ or link.__context__
    return _where_mosaic_gpu_stood(error) or frame_in_text(message_of(error))


def _where_mosaic_gpu_stood(error: BaseException) -> Frame | None:
    """Return the user's line of the operation that Mosaic GPU was lowering when it raised.

    Its passes work on MLIR, whose operations know where they come from; its errors do not say it.
    """
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).startswith("jax.experimental.mosaic.gpu"):
            location = getattr(frame.f_locals.get("op"), "location", None)
            found = (location and frame_in_text(str(location))) or found
    return found


def frame_in_text(text: str) -> Frame | None:
    """Return the innermost line of the user's own code that `text` names."""
    frames = [Frame(m[1], int(m[2]), m[3]) for m in _TEXT_FRAME.finditer(text)]
    if frame := _innermost(_below_the_ladder(frames)):
        return frame
    for match in _COMPILERS_FRAME.finditer(text):  # innermost first
        if is_users(match[2]):
            return with_source(Frame(match[2], int(match[3]), match[1].rpartition(".")[2]))
    for match in _AT_LINE.finditer(text):
        if is_users(match[1]):
            return with_source(Frame(match[1], int(match[2])))
    return None


_ACCESS = re.compile(r"^\s*(read|write) of .*$", re.MULTILINE)


def lines_of_race(text: str) -> tuple[Frame, ...]:
    """Return the two accesses that a race detector names, each with its line and its role.

    An access that is not the user's own is pallas_call's, which moves blocks; its file is empty.
    """
    if "RACE DETECTED" not in text:
        return ()
    found = []
    for match in _ACCESS.finditer(text):
        frame = frame_in_text(match[0]) or Frame("", 0)
        found.append(replace(frame, role=match[1]))
    return tuple(found)


def line_of(source_info: Any, role: str = "") -> Frame | None:
    """Return the innermost line of the user's own code in what jax noted of an operation."""
    from jax._src import source_info_util

    for frame in source_info_util.user_frames(source_info.traceback):
        if is_users(frame.file_name):
            function = frame.function_name.rpartition(".")[2]
            found = with_source(Frame(frame.file_name, frame.start_line, function))
            return replace(found, role=role)
    return None


def raised_by_ladder(error: BaseException) -> bool:
    """True for an error raised by the ladder's own code, not by what it tries.

    A call with arguments that do not fit is raised where the ladder calls the user's function, and
    is the user's.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return False
    last = frames[-1]
    calls_the_user = last.name in _CALL_THE_USER
    return last.filename.startswith(os.path.join(_LADDER, "")) and not calls_the_user


def defined_at(function: Callable[..., Any]) -> Frame | None:
    """Return where a function of the user's is defined, decorators looked through."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return with_source(Frame(code.co_filename, code.co_firstlineno, code.co_name))


def with_source(frame: Frame) -> Frame:
    """Return the frame with the text of its line, if the file can be read."""
    source = linecache.getline(frame.file, frame.line).strip()
    return Frame(frame.file, frame.line, frame.function, source)


def _frames_of(tb: TracebackType | None) -> list[Frame]:
    summary = traceback.extract_tb(tb)
    return _below_the_ladder([Frame(f.filename, f.lineno or 0, f.name) for f in summary])


def _below_the_ladder(frames: list[Frame]) -> list[Frame]:
    """Return the frames below the ladder's last one: those above called the ladder."""
    ladders = [i for i, frame in enumerate(frames) if frame.file.startswith(str(_LADDER))]
    return frames[ladders[-1] + 1 :] if ladders else frames


def _innermost(frames: Iterable[Frame]) -> Frame | None:
    users: Iterator[Frame] = (frame for frame in reversed(list(frames)) if is_users(frame.file))
    found = next(users, None)
    return None if found is None else with_source(found)
