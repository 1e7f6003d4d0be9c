"""Machine code of a GPU kernel: found in an executable of XLA's, and what it says of its needs.

XLA keeps the CUDA ELF images of a serialised executable in blocks that Snappy compressed, in a
Riegeli file within another. Riegeli puts a header of 24 bytes in front of every 64 KiB of a file,
in the middle of whatever stands there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_ELF = b"\x7fELF"
_CUDA_MACHINE = 190
_FURTHEST_BACK = 1 << 16
_RIEGELI = bytes.fromhex("83af70d10d884a3f")
"""How a Riegeli file begins."""
_FRAME = 1 << 16
_FRAME_HEADER = 24
_LARGEST_BLOCK = 1 << 28
_WITH_VALUE = 0x04
_FRAME_SIZE = 0x11
_REGISTERS = 0x2F


@dataclass(frozen=True)
class CubinNeeds:
    """What one kernel in a CUDA ELF image needs.

    Attributes:
      name: the kernel's.
      registers: of each thread.
      stack_bytes: of each thread; what is spilled lies there.
      shared_bytes: static shared memory of a block.
    """

    name: str
    registers: int
    stack_bytes: int
    shared_bytes: int


def cubins(executable: bytes) -> list[bytes]:
    """Return the CUDA ELF images in a serialised executable, unpacked."""
    found: list[bytes] = []
    executable = unframed(executable)
    at = executable.find(_ELF)
    while at >= 0:
        end = at + 1
        for start in range(at, max(0, at - _FURTHEST_BACK), -1):
            try:
                block, block_end = unsnappy(executable, start)
            except (ValueError, IndexError):
                continue
            if images := list(_images(block)):
                found += images
                end = block_end
                break
        at = executable.find(_ELF, end)
    return found


def unframed(data: bytes) -> bytes:
    """Return an executable without the headers that Riegeli put into its files, the outer first.

    The header with which a file begins is left where it is.
    """
    at = data.find(_RIEGELI)
    while at >= 0:
        frames = range(at + _FRAME, len(data), _FRAME)
        whole = [data[frame + _FRAME_HEADER : frame + _FRAME] for frame in frames]
        data = b"".join([data[: at + _FRAME], *whole])
        at = data.find(_RIEGELI, at + 1)
    return data


def unsnappy(data: bytes, start: int = 0) -> tuple[bytes, int]:
    """Return the Snappy block that begins at `start`, unpacked, and where it ends.

    Raises:
      ValueError: no such block begins there.
      IndexError: it is cut off.
    """
    size, at = _varint(data, start)
    if not 64 <= size <= _LARGEST_BLOCK:
        raise ValueError("no block of a credible size")
    out = bytearray()
    while len(out) < size:
        tag = data[at]
        at += 1
        kind, high = tag & 3, tag >> 2
        if kind == 0:
            length = high + 1
            if high >= 60:
                width = high - 59
                length = int.from_bytes(data[at : at + width], "little") + 1
                at += width
            if len(out) + length > size or at + length > len(data):
                raise ValueError("a literal reaches past the end")
            out += data[at : at + length]
            at += length
            continue
        if kind == 1:
            length, back = 4 + (high & 7), (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if kind == 2 else 4
            length, back = high + 1, int.from_bytes(data[at : at + width], "little")
            at += width
        if not 0 < back <= len(out) or len(out) + length > size:
            raise ValueError("a copy from outside")
        for _ in range(length):
            out.append(out[-back])
    return bytes(out), at


def needs(cubin: bytes) -> CubinNeeds:
    """Return what the kernel in a CUDA ELF image needs.

    Raises:
      ValueError: there is no kernel in it.
    """
    sections = dict(_sections(cubin))
    names = [name.removeprefix(".text.") for name in sections if name.startswith(".text.")]
    if not names:
        raise ValueError("no kernel in the image")
    told = dict(_attributes(sections.get(".nv.info", b"")))
    return CubinNeeds(
        name=names[0],
        registers=told.get(_REGISTERS, 0),
        stack_bytes=told.get(_FRAME_SIZE, 0),
        shared_bytes=len(sections.get(f".nv.shared.{names[0]}", b"")),
    )


def _images(block: bytes) -> Iterator[bytes]:
    at = block.find(_ELF)
    while at >= 0:
        size = _elf_size(block, at) if len(block) - at >= 64 else 0
        if not 0 < size <= len(block) - at or block[at + 18] != _CUDA_MACHINE:
            return
        yield block[at : at + size]
        at = block.find(_ELF, at + size)


def _elf_size(data: bytes, at: int) -> int:
    """Where the later of its two header tables ends."""
    programs, sections = struct.unpack_from("<QQ", data, at + 0x20)
    entry = struct.unpack_from("<4H", data, at + 0x36)
    return int(max(programs + entry[0] * entry[1], sections + entry[2] * entry[3]))


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    width, count, names_index = struct.unpack_from("<3H", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * width) for i in range(count)]
    names_at = headers[names_index][4]
    for name_at, kind, _, _, offset, size in headers:
        end = elf.index(b"\0", names_at + name_at)
        name = elf[names_at + name_at : end].decode(errors="replace")
        nothing_stored = kind == 8
        yield name, bytes(size) if nothing_stored else elf[offset : offset + size]


def _attributes(info: bytes) -> Iterator[tuple[int, int]]:
    """Yield kind and value of the attributes that have one for a symbol."""
    at = 0
    while at + 4 <= len(info):
        form, kind, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _WITH_VALUE:
            if size == 8:
                yield kind, struct.unpack_from("<I", info, at + 4)[0]
            at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 35:
            raise ValueError("no such number")
