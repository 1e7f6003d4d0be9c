"""Frames between a parent and its worker: a JSON header and a blob of bytes.

A frame is two big-endian lengths (4 bytes for the header, 8 for the blob), the header as UTF-8
JSON, then the blob. Nothing is unpickled: a worker that goes wrong can send bad data, never code.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

_LENGTHS = struct.Struct(">IQ")
_CHUNK = 1 << 20


class FrameError(ValueError):
    """What came through the pipe is not a frame."""


def write_frame(fd: int, header: dict[str, Any], blob: bytes = b"") -> None:
    """Write one frame to `fd`.

    Raises:
      BrokenPipeError: the other side is gone.
      TypeError: `header` holds something that is not JSON.
    """
    text = json.dumps(header).encode()
    data = memoryview(_LENGTHS.pack(len(text), len(blob)) + text + blob)
    while data:
        data = data[os.write(fd, data) :]


def read_frame(fd: int) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame from `fd`; None at the end of the stream.

    Raises:
      FrameError: the stream ended inside a frame, or holds something else.
    """
    head = _read(fd, _LENGTHS.size)
    if not head:
        return None
    text_size, blob_size = _LENGTHS.unpack(head)
    text, blob = _read(fd, text_size), _read(fd, blob_size)
    if len(head) != _LENGTHS.size or len(text) != text_size or len(blob) != blob_size:
        raise FrameError("the stream ended inside a frame")
    return parse_header(text), blob


def parse_header(text: bytes) -> dict[str, Any]:
    """Return the header that `text` holds.

    Raises:
      FrameError: it is not a JSON object.
    """
    try:
        header = json.loads(text)
    except ValueError as error:
        raise FrameError(f"a frame's header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise FrameError("a frame's header is not a JSON object")
    return header


def _read(fd: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        part = os.read(fd, min(size, _CHUNK))
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class FrameReader:
    """Gathers frames from a pipe that is read as data comes, without ever blocking on a half frame.

    Feed it bytes with `feed`; it gives a frame when one is complete.
    """

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> tuple[dict[str, Any], bytes] | None:
        """Add `data`; return the first complete frame, if there is one now.

        Raises:
          FrameError: the header is no JSON object.
        """
        self._data += data
        if len(self._data) < _LENGTHS.size:
            return None
        text_size, blob_size = _LENGTHS.unpack_from(self._data)
        start, end = _LENGTHS.size, _LENGTHS.size + text_size + blob_size
        if len(self._data) < end:
            return None
        header = parse_header(bytes(self._data[start : start + text_size]))
        blob = bytes(self._data[start + text_size : end])
        del self._data[:end]
        return header, blob
