"""The process in which libtpu compiles and dumps. Its flags are set by `dumps.py`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pallas_rungs.compilers.dumps import FOLDER_MARK
from pallas_rungs.compilers.libtpu import FLAGS_VARIABLE
from pallas_rungs.compilers.libtpu_worker import compile_program, get_ready
from pallas_rungs.compilers.wire import read_frame, write_frame


def main(request_fd: int, reply_fd: int) -> None:
    """Point the flags at a folder, import jax, say so, then compile until the end of the stream.

    The folder is made inside this worker's temporary folder, which the supervisor removes. An
    answer's header names the files that were dumped with their sizes, its blob holds them.
    """
    folder = Path(tempfile.mkdtemp(prefix="dumps-"))
    os.environ[FLAGS_VARIABLE] = os.environ[FLAGS_VARIABLE].replace(FOLDER_MARK, str(folder))
    write_frame(reply_fd, {**get_ready(), "folder": str(folder)})
    while (frame := read_frame(request_fd)) is not None:
        take_files(folder)  # of a program before, whose answer failed
        header, blob = frame
        answer = compile_program(header, blob)
        files = take_files(folder)
        answer["files"] = [[name, len(content)] for name, content in files]
        write_frame(reply_fd, answer, b"".join(content for _, content in files))


def take_files(folder: Path) -> list[tuple[str, bytes]]:
    """Read all files below a folder, in the order of their names, and delete them.

    The folders stay: libtpu writes the next program's files into them.
    """
    files = []
    for path in sorted(folder.glob("*/*")):
        files.append((str(path.relative_to(folder)), path.read_bytes()))
        path.unlink()
    return files
