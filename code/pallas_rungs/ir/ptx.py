"""PTX, the assembly language that GPU compilers hand to ptxas: its head, and its instructions."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from pallas_rungs.ir.errors import IRError

_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)
_VERSION = re.compile(r"^\.version\s+([\d.]+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_THREADS = re.compile(r"^\.(?:maxntid|reqntid)\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", re.MULTILINE)
_REGISTERS = re.compile(r"^\s*\.reg \.(\w+)\s+%\w+<(\d+)>;", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PREDICATE = re.compile(r"@!?[%\w]+\s+")
_OPCODE = re.compile(r"[a-z][a-z0-9_]*(?:(?:\.|::)\w+)*")

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "tensor core": ("mma", "wmma", "wgmma.mma_async", "tcgen05.mma"),
    "global memory": ("ld.global", "st.global", "red.global"),
    "memory of any kind": ("ld", "st"),
    "shared memory": ("ld.shared", "st.shared", "ldmatrix", "stmatrix"),
    "arithmetic and moves": ("ld.param",),
    "copy engine": ("cp.async.bulk", "cp.reduce.async.bulk"),
    "asynchronous copy": ("cp.async",),
    "tensor memory": ("tcgen05.ld", "tcgen05.st", "tcgen05.alloc", "tcgen05.dealloc", "tcgen05.cp",
                      "tcgen05.relinquish_alloc_permit"),
    "wait or order": ("cp.async.commit_group", "cp.async.wait_group", "bar", "barrier", "mbarrier",
                      "fence", "membar", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group",
                      "tcgen05.wait", "tcgen05.fence", "tcgen05.commit", "griddepcontrol"),
    "between threads": ("shfl", "redux", "vote", "elect", "match", "activemask"),
    "special function": ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", "div"),
    "control": ("bra", "ret", "exit", "call", "trap"),
}  # fmt: skip
"""Kinds of instructions, and how the names of each begin. The longest beginning decides.

A load or store that names no space is told by its address, when it runs, which memory it means."""

OTHER: Final = "arithmetic and moves"


@dataclass(frozen=True)
class PTX:
    """A kernel in PTX.

    Attributes:
      name: of its entry.
      version: of the language, `"8.7"`.
      target: architecture, `"sm_90a"`.
      threads: of a block, as far as the text bounds them; 0 where it does not.
      registers: type -> how many virtual registers of it there are; ptxas maps them to real ones.
      instructions: full name -> how often it stands in the text, the most frequent first.
    """

    name: str
    version: str
    target: str
    threads: int
    registers: dict[str, int]
    instructions: dict[str, int]

    @property
    def kinds(self) -> dict[str, int]:
        """Kind of instruction -> how often it stands in the text."""
        counts: Counter[str] = Counter()
        for name, count in self.instructions.items():
            counts[kind_of(name)] += count
        return dict(sorted(counts.items()))

    def of_kind(self, kind: str) -> dict[str, int]:
        """The instructions of one kind, by full name."""
        return {name: n for name, n in self.instructions.items() if kind_of(name) == kind}

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.items())
        return f"{self.name}: PTX {self.version} for {self.target}\n  instructions: {kinds}"


def kind_of(instruction: str) -> str:
    """Return the kind of an instruction, from its name."""
    fitting = [
        (len(start), kind)
        for kind, starts in KINDS.items()
        for start in starts
        if instruction == start or instruction.startswith((f"{start}.", f"{start}::"))
    ]
    return max(fitting)[1] if fitting else OTHER


def parsed(text: str) -> PTX:
    """Read a kernel in PTX.

    Args:
      text: a module of one kernel.

    Raises:
      IRError: it has no version, target or entry, more than one entry, or no instruction; or a
        statement of its body is none.
    """
    head = {"version": _VERSION, "target": _TARGET, "entry": _ENTRY}
    found = {name: pattern.search(text) for name, pattern in head.items()}
    for name, match in found.items():
        if match is None:
            raise IRError("a PTX module", f"a line .{name}", f"{text[:40]!r}…", 1)
    if (entries := len(_ENTRY.findall(text))) > 1:
        raise IRError("a PTX module", "one kernel", f"{entries} lines with .entry")
    threads = _THREADS.search(text)
    instructions = _instructions(text, found["entry"].end())  # type: ignore[union-attr]
    if not instructions:
        raise IRError("a PTX module", "instructions in the kernel's body", "none")
    return PTX(
        name=found["entry"][1],  # type: ignore[index]
        version=found["version"][1],  # type: ignore[index]
        target=found["target"][1],  # type: ignore[index]
        threads=_product(threads) if threads else 0,
        registers={kind: int(count) for kind, count in _REGISTERS.findall(text)},
        instructions=instructions,
    )


def _product(match: re.Match[str]) -> int:
    product = 1
    for number in match.groups("1"):
        product *= int(number)
    return product


def _instructions(text: str, after: int) -> dict[str, int]:
    """Count the instructions between the braces of the kernel, those inside of inner ones too."""
    blanked = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
    start = blanked.find("{", after)
    end = _closing(blanked, start)
    if start < 0 or end < 0:
        line = text.count("\n", 0, after) + 1
        raise IRError("a PTX module", "a body in braces after .entry", "none", line)
    counts: Counter[str] = Counter()
    line = text.count("\n", 0, start + 1) + 1
    for statement in blanked[start + 1 : end].split(";"):
        first = line + len(statement[: len(statement) - len(statement.lstrip())].split("\n")) - 1
        line += statement.count("\n")
        bare = _without_labels(statement)
        if not bare or bare.startswith("."):
            continue
        opcode = _OPCODE.match(_PREDICATE.sub("", bare, count=1))
        if opcode is None:
            raise IRError("a PTX module", "an instruction", repr(bare[:40]), first)
        counts[opcode[0]] += 1
    return dict(counts.most_common())


def _closing(text: str, start: int) -> int:
    """Where the brace is that closes the one at `start`; -1 where there is none."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[max(start, 0) :]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start + brace.start()
    return -1


def _without_labels(statement: str) -> str:
    """A statement without what may stand before it: labels, braces, directives of a line."""
    bare = statement.strip()
    while True:
        shorter = re.sub(r"^(?:[{}]|[\w$]+:(?!:)|\.(?:loc|file|pragma)[^\n]*\n?)\s*", "", bare)
        if shorter == bare:
            return bare
        bare = shorter.strip()
