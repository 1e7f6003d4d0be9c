"""Which instructions of optimised HLO are executed, how often, and which of them share a program.

Where a loop's trip count is known, XLA writes it beside the loop; a loop without one, and a choice
between branches, are told by name, since nothing in the text says how often their bodies run. What
is brought onto the chip before the first instruction is counted beside them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.hlo import MAIN_MEMORY, buffers

_HEAD: Final = re.compile(r"(?P<entry>ENTRY )?%(?P<name>[\w.\-]+) .*\{")
_STATEMENT: Final = re.compile(r"\s+(?:ROOT )?%(?P<name>[\w.\-]+) = (?P<rest>.*)")
_OPCODE: Final = re.compile(r"(?:^|[\s)])([a-z][\w\-]*)\(")
_NAME: Final = re.compile(r"%[\w.\-]+")
_WHILE: Final = re.compile(r"\bcondition=%([\w.\-]+), body=%([\w.\-]+)")
_TRIPS: Final = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CALLED: Final = re.compile(
    r"(?:to_apply|calls|called_computation|branch_computations|true_computation|"
    r"false_computation)=\{?((?:%[\w.\-]+(?:, )?)+)"
)
_TYPE: Final = re.compile(r"[a-z]\w*\[[\d,]*\]")
_CONSTANT: Final = re.compile(r"[su]\d+\[\](?:\{[^}]*\})? constant\((-?\d+)\)")
_VMEM: Final = re.compile(
    r'"used_scoped_memory_configs":\[\{"memory_space":"1","offset":"\d+","size":"(\d+)"'
)
_NOT_SHAPE: Final = re.compile(
    r", (?:sharding|metadata|backend_config|frontend_attributes)=.*", re.DOTALL
)
_FILLED: Final = {"copy-start": 0, "slice-start": 1}
"""Asynchronous copies make a tuple; which of its first two arrays is the one that is filled."""

_PREFETCH: Final = "cross_program_prefetch_index="
_CALLS: Final = ("call", "async-start", "conditional")
PALLAS: Final = 'custom_call_target="tpu_custom_call"'


@dataclass(frozen=True)
class Launch:
    """An instruction that is executed when the module runs.

    Attributes:
      name: its name, without the percent sign.
      opcode: what it does, `fusion`.
      times: how often; loops whose count is not known count once.
      pallas: whether it is a Pallas kernel.
      vmem_bytes: VMEM that the compiler gave it for its own use; 0 where it tells none.
      operands: dtypes and shapes of its operands, without layouts: `s32[8]`.
      constants: values of those operands that are integer constants, by index.
      alike: the same for instructions that do the same with operands of the same types, for which
        the compiler makes one program.
      copied: bytes that an asynchronous copy reads from HBM and bytes that it writes there, each
        time that it is executed; the copy is no program, and none is of what is done before the
        module starts. They are those of the arrays' elements; a scalar counts as nothing.
    """

    name: str
    opcode: str
    times: int
    pallas: bool
    vmem_bytes: int
    operands: tuple[str, ...]
    constants: dict[int, int]
    alike: str
    copied: tuple[int, int]


@dataclass(frozen=True)
class Launches:
    """What a module executes.

    Attributes:
      all: the instructions, in the order of the text, those of loops' bodies after the loop.
      undecided: loops without a known trip count and choices between branches, in words.
      prefetched_bytes: bytes of the arguments that cross-program prefetches bring from HBM onto the
        chip before the first instruction; 0 for none. They are those of the arrays' elements: what
        a tiled layout pads is not counted.
    """

    all: tuple[Launch, ...]
    undecided: tuple[str, ...]
    prefetched_bytes: int

    def __getitem__(self, name: str) -> Launch:
        for launch in self.all:
            if launch.name == name:
                return launch
        raise KeyError(name)


def read_launches(text: str, name: str = "the optimised HLO") -> Launches:
    """Read what a module executes.

    Args:
      text: optimised HLO, as `jax.stages.Compiled.as_text` gives it.
      name: what to call it in an error.

    Raises:
      IRError: there is no entry computation, or one that is called is missing; or a cross-program
        prefetch is no copy of an array onto the chip.
    """
    computations, entry = _computations(text)
    if entry is None:
        raise IRError(name, "a line that begins with ENTRY", repr(text[:60]))
    times: Counter[tuple[str, str]] = Counter()
    undecided: list[str] = []

    def visit(computation: str, executed: int) -> None:
        if computation not in computations:
            raise IRError(name, f"a computation %{computation}", "none of that name")
        for instruction, rest in computations[computation].items():
            times[computation, instruction] += executed
            opcode = _opcode(rest)
            if opcode == "while" and (loop := _WHILE.search(rest)):
                trips = _TRIPS.search(rest)
                if trips is None:
                    undecided.append(f"trips of the loop {instruction}, taken as 1")
                visit(loop[2], executed * int(trips[1] if trips else 1))
            elif opcode in _CALLS and (called := _CALLED.search(rest)):
                if opcode == "conditional":
                    undecided.append(f"the branch that {instruction} takes: all are counted")
                for one in _NAME.findall(called[1]):
                    visit(one[1:], executed)

    visit(entry, 1)
    return Launches(
        tuple(
            _launch(computations, computation, instruction, count)
            for (computation, instruction), count in times.items()
        ),
        tuple(dict.fromkeys(undecided)),
        sum(_prefetched(computations[computation][one], name) for computation, one in times),
    )


def _computations(text: str) -> tuple[dict[str, dict[str, str]], str | None]:
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    entry, last = None, ""
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line):
            current = found.setdefault(head["name"], {})
            entry, last = head["name"] if head["entry"] else entry, ""
        elif statement := _STATEMENT.fullmatch(line):
            last = statement["name"]
            current[last] = statement["rest"]
        elif line == "}":
            last = ""
        elif last:  # metadata of a kernel may go over several lines
            current[last] += f"\n{line}"
    return found, entry


def _opcode(rest: str) -> str:
    match = _OPCODE.search(rest)
    return match[1] if match else ""


def _launch(
    computations: dict[str, dict[str, str]], computation: str, name: str, times: int
) -> Launch:
    rest = computations[computation][name]
    vmem = _VMEM.search(rest)
    return Launch(
        name,
        _opcode(rest),
        times,
        PALLAS in rest,
        int(vmem[1]) if vmem else 0,
        tuple(_operand_types(computations[computation], rest)),
        _constants(computations[computation], rest),
        _alike(computations, computation, rest),
        _copied(rest),
    )


def _copied(rest: str) -> tuple[int, int]:
    """Bytes that an asynchronous copy reads from HBM and writes there; none of other instructions.

    A cross-program prefetch is done before the module starts.
    """
    opcode = _OPCODE.search(rest)
    if opcode is None or opcode[1] not in _FILLED or _PREFETCH in rest:
        return 0, 0
    first, second, *_ = buffers(rest[: opcode.start()])
    filled, source = (first, second) if _FILLED[opcode[1]] == 0 else (second, first)
    size = filled.bytes if filled.shape else 0
    return size * (source.space == MAIN_MEMORY), size * (filled.space == MAIN_MEMORY)


def _prefetched(rest: str, name: str) -> int:
    """Bytes that an instruction has brought onto the chip before the program; 0 for most."""
    if _PREFETCH not in rest:
        return 0
    opcode = _OPCODE.search(rest)
    # The copy, its source and a semaphore.
    made = list(buffers(rest[: opcode.start()])) if opcode and opcode[1] == "copy-start" else []
    if len(made) != 3 or made[0].space == MAIN_MEMORY:
        raise IRError(name, "a cross-program prefetch that copies an array onto the chip", rest)
    return made[0].bytes


def _operand_types(here: dict[str, str], rest: str) -> Iterator[str]:
    """Types of an instruction's operands, tuples left out."""
    for name in _operands(rest):
        if found := _TYPE.match(here.get(name, "")):
            yield found[0]


def _constants(here: dict[str, str], rest: str) -> dict[int, int]:
    found = {}
    for index, name in enumerate(_operands(rest)):
        if value := _CONSTANT.match(here.get(name, "")):
            found[index] = int(value[1])
    return found


def _operands(rest: str) -> list[str]:
    """Names of an instruction's operands."""
    opcode = _OPCODE.search(rest)
    inside = rest[opcode.end() :].split(")", 1)[0] if opcode else ""
    return [name[1:] for name in _NAME.findall(inside)]


def _alike(computations: dict[str, dict[str, str]], computation: str, rest: str) -> str:
    """Return the instruction with operands' types for their names, and what it calls spelt out."""
    shape = _NOT_SHAPE.sub("", rest)
    here = computations[computation]
    called = _CALLED.search(shape)
    inside = ""
    if called and _opcode(rest) == "fusion":
        body = computations.get(called[1].strip("%, "), {})
        numbers = {f"%{name}": f"#{number}" for number, name in enumerate(body)}
        inside = ";".join(
            _NAME.sub(lambda match: numbers.get(match[0], ""), _NOT_SHAPE.sub("", line))
            for line in body.values()
        )
        shape = _CALLED.sub("", shape)

    def typed(match: re.Match[str]) -> str:
        other = here.get(match[0][1:], "")
        opcode = _OPCODE.search(other)
        return other[: opcode.start()].strip() if opcode else ""

    return f"{_NAME.sub(typed, shape)} {{{inside}}}"
