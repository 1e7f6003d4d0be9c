"""Reading libtpu's bundle listings: the very long instruction words of a TPU's core.

A line of `final_bundles` or `packed-bundles-post-ra` is a **bundle**: the instructions that the
core issues at once, one for each slot that is used. In `packed-bundles-post-ra` every delay is
still a bundle of its own, an empty one; in `final_bundles` runs of them are encoded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pallas_rungs.ir.errors import IRError

_RECORD: Final = re.compile(
    r"^ *(?P<address>0x[0-9a-f]+|0) *(?P<marks>(?:[A-Z]{2} *)*): *(?P<depth>(?:> *)*)\{",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_INSTRUCTION: Final = re.compile(
    r"(?:(?P<results>%\S+(?:, *%\S+)*) = )?(?P<opcode>[a-z][\w.\-]*)(?P<rest>.*)", re.DOTALL
)
_PREDICATE: Final = re.compile(r"\((!?%p\w+)(?:, *[^)]*)?\)")
_TARGET: Final = re.compile(r"target = (\$region\w+)")
_NUMBER: Final = re.compile(r"target bundleno = (\d+)")
_GRANULES: Final = re.compile(r", *(\d+)(?:,|$)")
MARKS: Final = {
    "LH": "loop header",
    "LB": "loop body",
    "LE": "loop exit",
    "PB": "predicated region body",
    "PF": "predicated region fallthrough",
    "CT": "control target",
}
"""What the two letters before a bundle mean, in the listing's own key."""


@dataclass(frozen=True)
class Instruction:
    """One slot of a bundle.

    Attributes:
      results: names of what it makes, `%v991_v0`; the part after the underscore is the register.
      opcode: its name with all of its endings, `vmatmul.bf16.gmra.mxu0`.
      operands: the rest of its text, without comments.
      predicate: the scalar predicate under which it acts, `!%p109_p0`; empty where there is none.
      comment: what the compiler remarks on it.
    """

    results: tuple[str, ...]
    opcode: str
    operands: str
    predicate: str
    comment: str

    @property
    def stem(self) -> str:
        """The opcode without its endings: `vmatmul`."""
        return self.opcode.partition(".")[0]

    @property
    def unit(self) -> str:
        """The matrix unit that the opcode names, `mxu0`; empty where it names none."""
        match = re.search(r"\.(mxu\d+)$", self.opcode)
        return match[1] if match else ""

    @property
    def spills(self) -> bool:
        """Whether it stores a register because there are too few."""
        return self.stem == "vst" and "_spill]" in self.operands

    @property
    def fills(self) -> bool:
        """Whether it loads a register that was spilled."""
        return self.stem == "vld" and "_spill]" in self.operands

    def __str__(self) -> str:
        left = f"{', '.join(self.results)} = " if self.results else ""
        return f"{left}{self.opcode}{self.operands}"


@dataclass(frozen=True)
class Bundle:
    """What the core issues at once.

    Attributes:
      address: its number.
      marks: keys of `MARKS`.
      depth: how many regions (loops, predicated regions) it lies in.
      instructions: its slots that are used; none in a bundle that only waits.
      line: its line in the listing, from 1.
    """

    address: int
    marks: tuple[str, ...]
    depth: int
    instructions: tuple[Instruction, ...]
    line: int

    def __str__(self) -> str:
        marks = " ".join(self.marks)
        slots = " ;; ".join(map(str, self.instructions))
        return f"{self.address:#6x} {marks:5}: {{ {slots} }}"


@dataclass(frozen=True)
class Branch:
    """A jump of the scalar unit.

    Attributes:
      source: address of the bundle that holds it.
      target: address that it jumps to, where the listing tells; else None.
      region: the region that it jumps to, `$region69`; may be empty.
      predicate: when it is taken; empty where always.
    """

    source: int
    target: int | None
    region: str
    predicate: str

    @property
    def back(self) -> bool:
        """Whether it jumps back: the end of a loop."""
        return self.target is not None and self.target <= self.source


@dataclass(frozen=True)
class MemoryCopy:
    """An instruction that starts a copy between memories, or waits for one.

    Attributes:
      place: `before`, `in` or `after` the loops of its program.
      opcode: `dma.hbm_to_vmem`, `dma.vmem_to_hbm`, `dma.done.wait`.
      granules: how much is copied; a granule is 32 bytes on v5e.
      predicate: the scalar predicate under which it acts; empty where it always does.
      comment: what the compiler remarks on it.
    """

    place: str
    opcode: str
    granules: int
    predicate: str
    comment: str


@dataclass(frozen=True)
class Listing:
    """The bundles of a program, in the order of their addresses."""

    bundles: tuple[Bundle, ...]

    def __len__(self) -> int:
        return len(self.bundles)

    def between(self, first: int, last: int) -> Listing:
        """The bundles from address `first` to before `last`."""
        return Listing(self.bundles[first:last])

    @property
    def empty(self) -> int:
        """How many bundles hold no instruction."""
        return sum(not bundle.instructions for bundle in self.bundles)

    def instructions(self) -> Iterator[Instruction]:
        """All instructions, bundle by bundle."""
        for bundle in self.bundles:
            yield from bundle.instructions

    def stems(self) -> Counter[str]:
        """How many instructions there are of each opcode, endings left out."""
        return Counter(instruction.stem for instruction in self.instructions())

    @property
    def spills(self) -> int:
        """How many instructions store a vector register for want of registers."""
        return sum(instruction.spills for instruction in self.instructions())

    @property
    def fills(self) -> int:
        """How many instructions load one again."""
        return sum(instruction.fills for instruction in self.instructions())

    def branches(self) -> tuple[Branch, ...]:
        """All branches, in the order of the listing."""
        found = []
        for bundle in self.bundles:
            for instruction in bundle.instructions:
                if instruction.stem == "sbr":
                    text = instruction.operands + instruction.comment
                    number, region = _NUMBER.search(text), _TARGET.search(text)
                    found.append(
                        Branch(
                            bundle.address,
                            int(number[1]) if number else None,
                            region[1] if region else "",
                            instruction.predicate,
                        )
                    )
        return tuple(found)

    def copies(self) -> tuple[MemoryCopy, ...]:
        """The starts of copies between memories, and the waits for them, in the listing's order.

        Raises:
          IRError: one of them does not say how much it copies.
        """
        loops = self.loops()
        first = min((begin for begin, _ in loops), default=len(self))
        last = max((end for _, end in loops), default=len(self))
        found = []
        for bundle in self.bundles:
            for it in bundle.instructions:
                if it.stem != "dma":
                    continue
                size = _GRANULES.search(it.operands)
                if size is None:
                    raise IRError(it.opcode, "a number of granules", repr(it.operands), bundle.line)
                place = "in" if bundle.address >= first else "before"
                place = "after" if bundle.address > last else place
                found.append(MemoryCopy(place, it.opcode, int(size[1]), it.predicate, it.comment))
        return tuple(found)

    def loops(self) -> tuple[tuple[int, int], ...]:
        """The loops, as addresses of their first bundle and of the branch that goes back there.

        The bundles that the core still issues after a taken branch are not counted in. Only
        `packed-bundles-post-ra` tells where a branch goes by number; of other listings no loops are
        known.
        """
        return tuple(
            (b.target, b.source) for b in self.branches() if b.target is not None and b.back
        )


def read_listing(text: str, name: str) -> Listing:
    """Read a listing of bundles.

    Args:
      text: the file that libtpu wrote.
      name: what to call it in an error.

    Raises:
      IRError: there are no bundles, a bundle is missing or not closed, or a slot of one is no
        instruction.
    """
    records = list(_RECORD.finditer(text))
    if not records:
        first = text.lstrip().partition("\n")[0]
        raise IRError(name, "a bundle, `0x1 : { … }`", repr(first[:80]), 1)
    bundles = []
    ends = [record.start() for record in records[1:]] + [len(text)]
    line, counted = 1, 0
    for expected, (record, end) in enumerate(zip(records, ends, strict=True)):
        line += text.count("\n", counted, record.start())
        counted = record.start()
        address = int(record["address"], 16)
        if address != expected:
            raise IRError(name, f"the bundle {expected:#x}", f"{address:#x}", line)
        body = text[record.end() : end]
        bundles.append(
            Bundle(
                address,
                tuple(record["marks"].split()),
                record["depth"].count(">"),
                tuple(_slots(body, name, line)),
                line,
            )
        )
    return Listing(tuple(bundles))


def _slots(body: str, name: str, line: int) -> Iterator[Instruction]:
    comments: list[str] = []

    def keep(match: re.Match[str]) -> str:
        comments.append(match[0][2:-2].strip())
        return f"\0{len(comments) - 1}\0"

    clean = _COMMENT.sub(keep, body)
    inside, closed, _ = clean.rpartition("}")
    if not closed:
        raise IRError(name, "a bundle that ends with `}`", repr(body[-60:]), line)
    for part in inside.split(";;"):
        said = " ".join(comments[int(number)] for number in re.findall("\0(\\d+)\0", part))
        slot = re.sub(" *\0\\d+\0", "", part).strip()
        if not slot:
            continue
        match = _INSTRUCTION.fullmatch(slot)
        if match is None:
            raise IRError(
                name, "an instruction, `%result = opcode operands`", repr(slot[:80]), line
            )
        predicate = _PREDICATE.search(match["rest"])
        yield Instruction(
            tuple((match["results"] or "").replace(" ", "").split(",")) if match["results"] else (),
            match["opcode"],
            match["rest"],
            predicate[1] if predicate else "",
            said,
        )
