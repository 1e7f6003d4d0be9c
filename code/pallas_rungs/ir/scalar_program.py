"""The scalar half of a dumped program: blocks, branches, and which instructions decide its course.

On a TPU the scalar unit alone decides where a program goes, and it starts every DMA. So the listing
`packed-bundles-post-ra`, in which one bundle is one issue cycle, splits into two: what the scalar
unit does, which is read here, and what the vector and matrix units do in the meantime.

Three facts of the listing make it a program that can be executed:

* A name such as `%s4262_s0` is a value and, after the underscore, the register that holds it. The
  listing is the one after register allocation, so the registers alone tell where a value comes
  from: a phi and a cast (`int_to_ptr`) name the register that they read, and do nothing.
* All instructions of a bundle read before any of them writes.
* The bundles in a branch's *delay slots* are issued whether it is taken or not. Their number
  belongs to the chip; the listing does not tell it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pallas_rungs.ir.bundles import Instruction, Listing
from pallas_rungs.ir.errors import IRError

_NAME: Final = re.compile(r"%\w+")
_THREAD: Final = re.compile(r"\[thread:\$\d+\]")
_PREDICATE: Final = re.compile(r",? *\(!?%p\w+(?:, *[^)]*)?\) *,?")
_TAG: Final = re.compile(r"(?:^| )(\w+)=(?= |$)")
_SCALAR: Final = re.compile(r"%[sp]\d+_")
_ADDRESS: Final = re.compile(r"\s*\[[^ ]*(?: \+ [^ ]*)*\]+")
_ALLOCATION: Final = re.compile(r"#\w+")
_OPENING, _CLOSING = "([{<", ")]}>"

EFFECTS: Final = ("sbr", "scall", "dma", "vsync", "vwait", "sst", "inlined_call", "sdma")
"""Beginnings of the opcodes that change where the program goes, or what it waits for."""

WITHOUT_EFFECT: Final = frozenset(
    {"compiler-scheduling-barrier", "sfence", "cfence", "shalt", "vsyncpa", "reloc"}
)
"""Stems of instructions that change neither registers nor time.

`shalt.err` stops the core when a check of bounds fails, which it is taken not to do. `vsyncpa` sets
the mark that lets a later check find a semaphore that was not used as it should be."""

QUEUED: Final = frozenset({"sdivrem", "vsyncmov"})
"""Stems of scalar instructions whose result waits in a queue until it is popped."""

_VECTOR: Final = frozenset({"cld", "cst"})
"""Stems of vector instructions whose name does not begin with v: v4's common memory."""


@dataclass(frozen=True)
class Operation:
    """An instruction of the scalar unit, with its operands taken apart.

    Attributes:
      bundle: address of its bundle.
      instruction: the instruction as the listing has it.
      operands: the texts between its commas, without predicate and thread.
      tags: what the listing calls the operands (`hbm`, `size_in_granules`, …); empty for most.
    """

    bundle: int
    instruction: Instruction
    operands: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def opcode(self) -> str:
        """The opcode with its endings."""
        return self.instruction.opcode

    @property
    def stem(self) -> str:
        """The opcode without its endings."""
        return self.instruction.stem

    @property
    def result(self) -> str:
        """The name of what it makes; empty where it makes nothing."""
        return self.instruction.results[0] if self.instruction.results else ""

    @property
    def has_effect(self) -> bool:
        """Whether it may change the program's course or the memory of the scalar unit."""
        return (
            self.opcode.startswith(EFFECTS)
            and not self.opcode.startswith("inlined_call_operand")
            and self.stem not in WITHOUT_EFFECT | QUEUED
        )

    def named(self) -> dict[str, str]:
        """Its operands by their tags."""
        return dict(zip(self.tags, self.operands, strict=False))

    def reads(self) -> list[str]:
        """Names of the values that it reads, its predicate's among them."""
        return _NAME.findall(self.instruction.operands)


@dataclass(frozen=True)
class Block:
    """Bundles that are issued one after the other whenever the first of them is.

    Attributes:
      first: address of its first bundle.
      end: address after its last one.
      operations: what of it has to be executed, bundle by bundle.
      target: number of the block that its branch goes to; None where it has no branch, and the
        number of blocks where the branch leaves the program.
    """

    first: int
    end: int
    operations: tuple[Operation, ...]
    target: int | None

    def __len__(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class ScalarProgram:
    """A program as the scalar unit sees it.

    Attributes:
      name: what errors call it.
      blocks: in the order of their addresses; without a taken branch each leads to the next.
      delay_slots: bundles that are issued after a branch, taken or not.
      spaces: memory spaces of the pointers, by the value's name.
      unknown: opcodes that nothing here knows and that may matter, with where they stand.
    """

    name: str
    blocks: tuple[Block, ...]
    delay_slots: int
    spaces: dict[str, str]
    unknown: tuple[str, ...]

    @property
    def bundles(self) -> int:
        """How many bundles the program has."""
        return self.blocks[-1].end

    def loops(self) -> tuple[tuple[int, int], ...]:
        """The loops, as numbers of their first block and of the block after their last one."""
        return tuple(
            (block.target, number + 1)
            for number, block in enumerate(self.blocks)
            if block.target is not None and block.target <= number
        )


def read_program(listing: Listing, name: str, delay_slots: int) -> ScalarProgram:
    """Take the scalar half out of a listing.

    Args:
      listing: `packed-bundles-post-ra`.
      name: what to call it in an error.
      delay_slots: bundles that the chip issues after a branch, taken or not.

    Raises:
      IRError: a branch without a target, or one whose delay slots hold another branch, a target,
        or the end of the program.
    """
    first_of = _first_bundles(listing, name, delay_slots)
    number_of = {address: number for number, address in enumerate(first_of)}
    operations = _without_lost_stores(list(_operations(listing)))
    needed = _needed(operations)
    held: list[list[Operation]] = [[] for _ in first_of]
    number = 0
    for operation in operations:
        while number + 1 < len(first_of) and operation.bundle >= first_of[number + 1]:
            number += 1
        if operation.has_effect or operation.result in needed:
            held[number].append(operation)
    targets: list[int | None] = [None] * len(first_of)
    for branch in listing.branches():
        assert branch.target is not None
        number = number_of.get(branch.source + delay_slots + 1, len(first_of)) - 1
        targets[number] = number_of.get(branch.target, len(first_of))
    ends = [*first_of[1:], len(listing)]
    blocks = tuple(
        Block(first, end, tuple(inside), target)
        for first, end, inside, target in zip(first_of, ends, held, targets, strict=True)
    )
    made = {operation.result for operation in operations}
    lost = sorted(name for name in needed if _SCALAR.match(name) and name not in made)
    unknown = (*_unknown(listing), *(f"that makes {name}, if there is one" for name in lost))
    return ScalarProgram(name, blocks, delay_slots, _spaces(operations), unknown)


def _first_bundles(listing: Listing, name: str, delay_slots: int) -> list[int]:
    """Where blocks begin: at targets of branches, and after a branch's delay slots."""
    branches = listing.branches()
    first = {0}
    for branch in branches:
        if branch.target is None:
            line = listing.bundles[branch.source].line
            raise IRError(name, "a branch with `target bundleno = N`", "one without", line)
        first |= {branch.target, branch.source + delay_slots + 1}
    sources = {branch.source for branch in branches}
    for source in sources:
        for slot in range(source + 1, source + delay_slots + 1):
            what = (
                "the end of the program"
                if slot >= len(listing)
                else "another branch"
                if slot in sources
                else "a branch's target"
                if slot in first
                else ""
            )
            if what:
                line = listing.bundles[source].line
                expected = f"{delay_slots} delay slots after the branch"
                raise IRError(name, expected, f"{what} at {slot:#x}", line)
    return sorted(address for address in first if address < len(listing))


def _operations(listing: Listing) -> Iterator[Operation]:
    for bundle in listing.bundles:
        for instruction in bundle.instructions:
            if not _is_vectors(instruction):
                yield Operation(
                    bundle.address,
                    instruction,
                    tuple(split_operands(instruction.operands)),
                    tuple(_TAG.findall(instruction.comment)),
                )


def _without_lost_stores(operations: list[Operation]) -> list[Operation]:
    """Leave out what is stored in allocations that nothing else names: nothing can read it."""
    named: Counter[str] = Counter()
    stored: dict[int, list[str]] = {}
    for place, operation in enumerate(operations):
        text = operation.instruction.operands
        address = _ADDRESS.match(text) if operation.opcode == "sst" else None
        if address is not None:
            stored[place] = _ALLOCATION.findall(address[0])
            text = text[address.end() :]
        named.update(_ALLOCATION.findall(text))
    return [
        operation
        for place, operation in enumerate(operations)
        if not stored.get(place) or any(named[name] for name in stored[place])
    ]


def _is_vectors(instruction: Instruction) -> bool:
    """Whether an instruction is the vector unit's own: without scalar result or effect here."""
    opcode = instruction.opcode
    if opcode[0] == "v":
        makes_scalar = any(map(_SCALAR.match, instruction.results))
        return not (makes_scalar or opcode.startswith(("vsync", "vwait")))
    return instruction.stem in _VECTOR


def split_operands(text: str) -> list[str]:
    """Split an instruction's operands at the commas outside of brackets.

    The predicate and the thread's mark are left out; a lone name before `[…]` stays with it, as in
    `%s33_s14, 1 [#allocation5]`.
    """
    text = _PREDICATE.sub(" ", _THREAD.sub("", text), count=1)
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _needed(operations: list[Operation]) -> set[str]:
    """Names of the values that what has an effect depends on.

    A result that waits in a queue is needed with all that pops it: which part a pop takes is told
    by how many were before it, used or not.
    """
    makers = {operation.result: operation for operation in operations if operation.result}
    pops: defaultdict[str, list[str]] = defaultdict(list)
    for operation in operations:
        if operation.stem == "spop":
            for name in operation.reads():
                pops[name].append(operation.result)
    needed: set[str] = set()
    waiting = [
        name for operation in operations if operation.has_effect for name in operation.reads()
    ]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        if name in makers:
            waiting += makers[name].reads()
            waiting += pops[name] if makers[name].stem in QUEUED else []
    return needed


def _spaces(operations: list[Operation]) -> dict[str, str]:
    told = ("int_to_ptr.", "scalar_lea.", "inlined_call_operand.")
    return {
        operation.result: operation.opcode.split(".")[1]
        for operation in operations
        if operation.opcode.startswith(told)
    }


def _unknown(listing: Listing) -> Iterator[str]:
    """Opcodes without a result that are none of the vector unit's and none that is known."""
    seen = set()
    for bundle in listing.bundles:
        for instruction in bundle.instructions:
            opcode = instruction.opcode
            if (
                opcode in seen
                or _is_vectors(instruction)
                or instruction.stem in WITHOUT_EFFECT
                or opcode.startswith(EFFECTS)
                or any(map(_SCALAR.match, instruction.results))
                or instruction.stem in QUEUED
            ):
                continue
            seen.add(opcode)
            yield f"{opcode} at bundle {bundle.address:#x}"
