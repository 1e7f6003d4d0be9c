"""Machine code found in an executable, and what it says of its needs."""

from __future__ import annotations

import struct

import pytest

from pallas_rungs.compilers.cubin import CubinNeeds, cubins, needs, unframed, unsnappy


def snappy(data: bytes) -> bytes:
    """Pack `data` as Snappy does, literals only, 60 bytes each."""
    out, size = bytearray(), len(data)
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    for at in range(0, len(data), 60):
        piece = data[at : at + 60]
        out += bytes([(len(piece) - 1) << 2]) + piece
    return bytes(out)


def elf(machine: int = 190) -> bytes:
    """A CUDA ELF image with one kernel, `add`: 24 registers, a stack of 16 bytes, 1 KiB shared."""
    info = struct.pack("<BBHII", 4, 0x2F, 8, 1, 24) + struct.pack("<BBHII", 4, 0x11, 8, 1, 16)
    sections = [
        (b"", 0, b""),
        (b".text.add", 1, b"code"),
        (b".nv.info", 0x70000000, info),
        (b".nv.shared.add", 8, b""),
        (b".shstrtab", 3, b""),
    ]
    names = b"\0".join(name for name, _, _ in sections) + b"\0"
    body, headers, at = b"", [], 64
    for name, kind, held in sections:
        data = names if name == b".shstrtab" else held
        name_at = names.find(b"\0" + name + b"\0") + 1 if name else 0
        size = 1024 if kind == 8 else len(data)
        headers.append(struct.pack("<IIQQQQ", name_at, kind, 0, 0, at, size).ljust(64, b"\0"))
        body += data
        at += len(data)
    header = bytearray(64)
    header[:4] = b"\x7fELF"
    header[18] = machine
    struct.pack_into("<QQ", header, 0x20, 0, at)
    struct.pack_into("<HHHHH", header, 0x36, 0, 0, 64, len(headers), len(headers) - 1)
    return bytes(header) + body + b"".join(headers)


def test_an_image_is_found_packed_among_other_bytes() -> None:
    image = elf()
    packed = b"noise\x00\xff" * 9 + snappy(b"before" + image + b"after") + b"more noise"
    assert cubins(packed) == [image]
    assert cubins(packed + packed) == [image, image]


def framed(data: bytes, before: int) -> bytes:
    """A Riegeli file that begins `before` bytes after the start, as far as frames are concerned."""
    data = bytes.fromhex("83af70d10d884a3f") + data
    parts, size = [data[: 1 << 16]], (1 << 16) - 24
    for at in range(1 << 16, len(data), size):
        parts += [b"H" * 24, data[at : at + size]]
    return b"before" * before + b"".join(parts)


def test_an_image_that_frames_cut_into_pieces_is_found() -> None:
    image = elf()
    program = snappy(b"\0" * 30_000 + image + b"\1" * 180_000)
    inner = framed(b"." * 40_000 + program, before=3)
    assert len(inner) > 3 << 16
    outer = framed(b"name" + inner, before=7)
    assert cubins(outer) == [image]
    assert program in unframed(outer)
    assert program not in outer


def test_an_image_of_another_machine_is_none_of_ours() -> None:
    assert cubins(snappy(elf(machine=62))) == []
    assert cubins(b"nothing at all") == []


def test_what_a_kernel_needs() -> None:
    assert needs(elf()) == CubinNeeds("add", 24, 16, 1024)


def test_copies_of_what_was_unpacked() -> None:
    # 4 bytes, 8 copied from 4 back (one offset byte), 4 from 12 back (two), a long literal.
    data = bytes([4 + 8 + 4 + 64, 3 << 2]) + b"abcd" + bytes([(8 - 4) << 2 | 1, 4])
    data += bytes([3 << 2 | 2, 12, 0]) + bytes([60 << 2, 63]) + b"x" * 64
    assert unsnappy(data) == (b"abcd" * 4 + b"x" * 64, len(data))


@pytest.mark.parametrize(
    "data",
    [
        bytes([10, 9 << 2]) + b"0123456789",  # too small to be one
        bytes([100, 1 | 4 << 2, 9]),  # copies from before the beginning
        bytes([100, 59 << 2]) + b"x" * 20,  # a literal past the end
        bytes([100, 59 << 2]) + b"x" * 60 + bytes([59 << 2]) + b"x" * 60,  # more than it said
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_what_is_no_block_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        unsnappy(data)
