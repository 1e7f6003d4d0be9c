"""Reading XLA's optimised HLO: what a compiled program does, one launch after the other.

The text of `Compiled.as_text()` names every buffer of the entry computation with its dtype, shape
and, on a TPU, its memory space. That is enough to count what a program reads from main memory and
writes back, which is what fusion is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAIN_MEMORY = 0
"""The memory space of a buffer that names none: HBM on a TPU."""

VMEM = 1
"""The memory space `S(1)` of a TPU's HLO."""

_WAITS = frozenset({"copy-done", "slice-done"})
_NAMES = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"})
_FREE = _WAITS | _NAMES
"""Opcodes that move nothing: they name buffers, or wait for a copy that is counted elsewhere."""

_TARGET_OF_COPY = {"copy-start": 0, "slice-start": 1}
"""Asynchronous copies make a tuple; which of its buffers is the one that is filled."""

_BUFFER = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([^}]*)\})?")
_SPACE = re.compile(r"S\((\d+)\)")
_WIDTH = re.compile(r"(\d+)")
_STATEMENT = re.compile(r"\s*(?:ROOT )?%?([\w.-]+) = ")
_OPERAND = re.compile(r"%([\w.-]+)")
_KIND = re.compile(r", kind=k(\w+)")
_TARGET = re.compile(r', custom_call_target="([^"]*)"')


@dataclass(frozen=True)
class Buffer:
    """An array as the compiler places it.

    Attributes:
      dtype: XLA's name, for instance `"bf16"`.
      shape: Its logical shape; a tiled layout may pad it.
      space: Memory space, `MAIN_MEMORY` or another.
    """

    dtype: str
    shape: tuple[int, ...]
    space: int = MAIN_MEMORY

    @property
    def bytes(self) -> int:
        """Bytes of its elements, without padding."""
        count = 1
        for length in self.shape:
            count *= length
        width = _WIDTH.search(self.dtype)
        bits = 8 if self.dtype == "pred" or width is None else int(width[1])
        return -(-count * bits // 8)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Instruction:
    """One instruction of the entry computation.

    Attributes:
      name: Its name, without the percent sign.
      opcode: What it does, for instance `"fusion"`.
      results: The buffers that it makes.
      operands: Names of the instructions whose results it reads.
      kind: Kind of a fusion, for instance `"Loop"`; empty for others.
      target: Target of a custom call; empty for others.
    """

    name: str
    opcode: str
    results: tuple[Buffer, ...]
    operands: tuple[str, ...]
    kind: str = ""
    target: str = ""

    @property
    def works(self) -> bool:
        """False for instructions that only name, group or wait."""
        return self.opcode not in _FREE and self.target != "ConcatBitcast"


@dataclass(frozen=True)
class Traffic:
    """What a program moves to and from main memory.

    Attributes:
      launches: Instructions that work: fusions, reductions, copies, custom calls, …
      read: Bytes read; an operand counts as read whole by each launch that names it.
      written: Bytes written.
    """

    launches: int
    read: int
    written: int


def entry(text: str) -> tuple[Instruction, ...]:
    """Return the instructions of the entry computation, in the order of the text.

    Args:
      text: Optimised HLO, as `jax.stages.Compiled.as_text` gives it.

    Raises:
      ValueError: The text has no entry computation, or a line of it is not understood.
    """
    return tuple(_instruction(line) for line in _entry_lines(text))


def traffic(text: str) -> Traffic:
    """Count what a compiled program moves to and from main memory.

    Buffers in another memory space, VMEM on a TPU, cost nothing here. The count is exact for
    launches that read all of their operands once, and too high for those that read a part.

    Args:
      text: Optimised HLO.

    Raises:
      ValueError: The text is not understood.
    """
    made: dict[str, tuple[Buffer, ...]] = {}
    launches = read = written = 0
    for instruction in entry(text):
        made[instruction.name] = instruction.results
        if not instruction.works:
            continue
        launches += 1
        sources = [made[name] for name in dict.fromkeys(instruction.operands)]
        if instruction.opcode in _TARGET_OF_COPY:
            filled = instruction.results[_TARGET_OF_COPY[instruction.opcode]]
            read += filled.bytes if _in_main_memory(sources[0]) else 0
            written += _in_main_memory([filled])
        else:
            read += sum(map(_in_main_memory, sources))
            written += _in_main_memory(instruction.results)
    return Traffic(launches, read, written)


def buffers(text: str) -> Iterator[Buffer]:
    """Read the arrays of a type as the text of HLO writes it: of an array, or of a tuple of some.

    Args:
      text: the type, `(f32[8,128]{1,0:T(8,128)S(1)}, u32[]{:S(2)})`.
    """
    for dtype, shape, layout in _BUFFER.findall(text):
        space = _SPACE.search(layout)
        yield Buffer(
            dtype,
            tuple(int(length) for length in shape.split(",") if length),
            int(space[1]) if space else MAIN_MEMORY,
        )


def _in_main_memory(buffers: Iterable[Buffer]) -> int:
    """Bytes of the arrays that are in main memory; a scalar costs nothing."""
    return sum(buffer.bytes for buffer in buffers if buffer.space == MAIN_MEMORY and buffer.shape)


def _entry_lines(text: str) -> Iterator[str]:
    _, found, rest = text.partition("\nENTRY ")
    if not found:
        raise ValueError("the text has no line that begins with ENTRY: pass optimised HLO")
    for line in rest.split("\n")[1:]:
        if line.startswith("}"):
            return
        if line.strip():
            yield line


def _instruction(line: str) -> Instruction:
    statement = _STATEMENT.match(line)
    if statement is None:
        raise ValueError(f"not an instruction of HLO: {line.strip()!r}")
    rest = line[statement.end() :]
    shape, rest = _split_type(rest)
    opcode, _, rest = rest.partition("(")
    operands, attributes = _until_closed(rest)
    kind, target = _KIND.search(attributes), _TARGET.search(attributes)
    return Instruction(
        name=statement[1],
        opcode=opcode.strip(),
        results=tuple(buffers(shape)),
        operands=() if opcode.strip() == "constant" else tuple(_OPERAND.findall(operands)),
        kind=kind[1] if kind else "",
        target=target[1] if target else "",
    )


def _split_type(text: str) -> tuple[str, str]:
    """Split the type of a result from what follows it."""
    if text.startswith("("):
        inside, rest = _until_closed(text[1:])
        return inside, rest
    shape, _, rest = text.partition(" ")
    return shape, rest


def _until_closed(text: str) -> tuple[str, str]:
    """Split at the parenthesis that closes one opened before the text."""
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[:place], text[place + 1 :]
    raise ValueError(f"a parenthesis is not closed: {text!r}")
