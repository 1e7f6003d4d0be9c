"""SASS, the machine code of NVIDIA's GPUs, as `nvdisasm` prints it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from pallas_rungs.ir.errors import IRError

_LINE = re.compile(
    r"/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:(?P<predicate>@!?\w+)\s+)?"
    r"(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;/\n]*)"
)

_LABEL = re.compile(r"^\s*(?P<label>\.L_\w+):", re.MULTILINE)
_TARGET = re.compile(r"\(?(?P<label>\.L_\w+)\)?")

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "tensor core": ("HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "UTCHMMA",
                    "UTCQMMA"),
    "global memory": ("LDG", "STG", "RED", "ATOMG"),
    "memory of any kind": ("LD", "ST"),
    "shared memory": ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
    "copy engine": ("UTMALDG", "UTMASTG", "UBLKCP"),
    "asynchronous copy": ("LDGSTS",),
    "tensor memory": ("LDTM", "STTM", "UTCATOMSWS"),
    "stack": ("STL", "LDL"),
    "wait or order": ("BAR", "DEPBAR", "LDGDEPBAR", "MEMBAR", "FENCE", "SYNCS", "WARPGROUP",
                      "WARPSYNC", "UTCBAR", "NANOSLEEP", "ACQBULK"),
    "between threads": ("SHFL", "REDUX", "CREDUX", "VOTE", "VOTEU", "ELECT"),
    "special function": ("MUFU",),
    "control": ("BRA", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "NOP"),
}  # fmt: skip
"""Kinds of instructions, by their names up to the first dot; as far as our kernels use them."""

OTHER: Final = "arithmetic and moves"

_KIND_OF: Final = {name: kind for kind, names in KINDS.items() for name in names}


@dataclass(frozen=True)
class Instruction:
    """One instruction of machine code.

    Attributes:
      address: in bytes from the kernel's first.
      opcode: with its modifiers, `"HGMMA.64x128x16.F32"`.
      operands: as text.
      predicate: `"@!P0"`; empty where it is always executed.
    """

    address: int
    opcode: str
    operands: str
    predicate: str = ""

    @property
    def name(self) -> str:
        """The opcode up to its first dot."""
        return self.opcode.partition(".")[0]

    @property
    def kind(self) -> str:
        """What it is for: a key of `KINDS`, or `OTHER`."""
        return _KIND_OF.get(self.name, OTHER)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.predicate, self.opcode, self.operands)))


@dataclass(frozen=True)
class SASS:
    """The machine code of a kernel.

    Attributes:
      instructions: in the order of their addresses.
    """

    instructions: tuple[Instruction, ...]

    @property
    def kinds(self) -> dict[str, int]:
        """Kind of instruction -> how often it stands in the code."""
        return dict(sorted(Counter(it.kind for it in self.instructions).items()))

    def of_kind(self, kind: str) -> tuple[Instruction, ...]:
        """The instructions of one kind, in order."""
        return tuple(it for it in self.instructions if it.kind == kind)

    def __str__(self) -> str:
        return ", ".join(f"{kind} {count}" for kind, count in self.kinds.items())


def parsed(text: str) -> SASS:
    """Read what `nvdisasm` printed of one kernel, with control information or without.

    Raises:
      IRError: there is no instruction in it, or an address does not follow the one before.
    """
    found: list[Instruction] = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.search(line)
        if match is None:
            continue
        address = int(match["address"], 16)
        if found and address <= found[-1].address:
            raise IRError(
                "machine code", f"an address above {found[-1].address:#x}", f"{address:#x}", number
            )
        opcode, operands = match["opcode"], match["operands"].strip()
        found.append(Instruction(address, opcode, operands, match["predicate"] or ""))
    if not found:
        raise IRError("machine code", "lines of nvdisasm such as /*0000*/ MOV R1, R2 ;", "none")
    return SASS(tuple(found))


def loops(text: str) -> tuple[SASS, ...]:
    """Return the loops of a kernel that `nvdisasm` printed with its labels, in order.

    A loop is what stands between a label and a conditional branch back to it. A jump back without a
    condition comes from code that was moved out of the way, and is none; nor is a branch to itself,
    with which a kernel's code ends.

    Args:
      text: as for `parsed`.

    Raises:
      IRError: as for `parsed`; or a branch goes to a label that is not there.
    """
    places: dict[str, int] = {}
    waiting: list[str] = []
    for line in text.splitlines():
        if label := _LABEL.match(line):
            waiting.append(label["label"])
        elif instruction := _LINE.search(line):
            places.update(dict.fromkeys(waiting, int(instruction["address"], 16)))
            waiting.clear()
    code = parsed(text).instructions
    found = []
    for branch in code:
        conditional = branch.name == "BRA" and branch.predicate
        target = _TARGET.search(branch.operands) if conditional else None
        if target is None:
            continue
        if target["label"] not in places:
            raise IRError("machine code", f"the label {target['label']}", "none", branch.address)
        first = places[target["label"]]
        if first < branch.address:
            found.append(SASS(tuple(it for it in code if first <= it.address <= branch.address)))
    return tuple(sorted(found, key=lambda it: it.instructions[0].address))
