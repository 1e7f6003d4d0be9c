"""Executing a scalar program: every block is translated to Python, and the whole is run.

A register is a Python variable that holds a signed number of 32 bits; arithmetic wraps as the
machine's does. What the translation does not understand becomes a guess with a name, so that it
shows in the estimate and is not silently zero.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from pallas_rungs.ir.scalar_program import QUEUED, Block, Operation, ScalarProgram
from pallas_rungs.performance.dma import MEMORIES
from pallas_rungs.performance.machine import ALLOCATION_BITS, OPERAND_VALUES, Machine

_MASK: Final = 0xFFFFFFFF
_REGISTER: Final = re.compile(r"%[a-z]+\d+_([sp]\d+)")
_NUMBER: Final = re.compile(r"-?\d+|0x[0-9a-f]+")
_REAL: Final = re.compile(r"-?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|inf|nan)")
_TERM: Final = re.compile(r"#\w+|\$0x[0-9a-f]+|%\w+|\b\d+\b")
_INDEX: Final = re.compile(r"index: (\d+)")
_SPACE: Final = re.compile(r"inlined_call_operand\.(<[^>]*>|\w+)")
_CALLED: Final = re.compile(r"%?(\S+)")
_SPACES_TOLD: Final = re.compile(r"(\w+)-to-(\w+)")

_POINTS_INTO: Final = re.compile(r"([^\[\s]+) \[#\w+\]")
"""In `%s33_s14, 1 [#allocation5]` the brackets remark what the sum points into, and add nothing."""

_OF_REALS: Final[dict[str, Callable[..., float]]] = {
    "sadd.f32": lambda x, y: x + y,
    "ssub.f32": lambda x, y: x - y,
    "smul.f32": lambda x, y: x * y,
    "sfloor.f32": lambda x: math.floor(x) if math.isfinite(x) else x,
    "sceil.f32": lambda x: math.ceil(x) if math.isfinite(x) else x,
}

_COMPARE: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC: Final = {
    "por": "({0} or {1})",
    "pand": "({0} and {1})",
    "pnand": "(not ({0} and {1}))",
    "pnor": "(not ({0} or {1}))",
    "pxor": "(bool({0})!=bool({1}))",
    "pneg": "(not {0})",
    "pmov": "{0}",
}


class NotUnderstoodError(ValueError):
    """An instruction, or an operand of one, that the translation does not know."""


def wrapped(value: int) -> int:
    """Return the signed number that is left of a value in 32 bits."""
    return (value + 0x80000000 & _MASK) - 0x80000000


def real(word: int) -> float:
    """Return the float32 that a word holds."""
    (value,) = struct.unpack("<f", struct.pack("<i", word))
    return float(value)


def word_of(value: float) -> int:
    """Return the word that holds the float32 next to a value; infinity is beyond the largest."""
    (word,) = struct.unpack("<i", np.float32(value).tobytes())
    return int(word)


def run(program: ScalarProgram, machine: Machine) -> None:
    """Execute a program on a machine."""
    Translation(program).run(machine)


class Translation:
    """A program as a Python function; it may be run many times.

    Attributes:
      program: what was translated.
      source: the function's text.
      not_understood: instructions that became guesses, with where they stand and why.
      compared: constants that something is compared with.
      asks_for_the_core: whether it reads which core it runs on: else all cores take one course.
    """

    def __init__(self, program: ScalarProgram) -> None:
        self.program = program
        self.not_understood: list[str] = []
        self.asks_for_the_core = False
        self.compared = tuple(sorted(self._compared_with()))
        self._allocations: dict[str, int] = {}
        self.source = "\n".join(self._function())
        held: dict[str, Any] = {"of_reals": _of_reals, "whole": _whole}
        exec(compile(self.source, f"<scalar program of {program.name}>", "exec"), held)
        self._run = held["run"]

    def run(self, machine: Machine) -> None:
        """Execute the program; counts, stalls and guesses are left in the machine."""
        for what in self.not_understood:
            machine.unresolved[what] += 0
        self._run(machine)

    def _compared_with(self) -> set[int]:
        return {
            wrapped(int(operand, 0))
            for block in self.program.blocks
            for operation in block.operations
            if operation.stem == "scmp"
            for operand in operation.operands
            if _NUMBER.fullmatch(operand.strip())
        }

    def _function(self) -> Iterator[str]:
        bodies = [list(self._body(number)) for number in range(len(self.program.blocks))]
        registers = sorted(
            set(re.findall(r"\b[spqr]\d+\b", "\n".join("\n".join(body) for body in bodies)))
        )
        yield "def run(m):"
        yield " load=m.load;store=m.store;operand=m.operand;unknown=m.unknown"
        yield " start=m.start;wait=m.wait;add=m.add;set_=m.set;count=m.count"
        yield " call=m.run_called;counts=m.counts"
        if registers:
            yield f" {'='.join(registers)}=0"
        yield " t=m.time;left=0;at=0;taken=0"
        yield " while True:"
        yield "  if not left:"
        yield "   left=m.more()"
        yield "   if not left: break"
        yield "  left-=1"
        yield from self._dispatch(bodies, 0, len(bodies), "  ")
        yield f"  if at>={len(bodies)}: break"
        yield " m.time=t"

    def _dispatch(
        self, bodies: list[list[str]], first: int, end: int, indent: str
    ) -> Iterator[str]:
        """Choose the block to execute by halving."""
        if end - first == 1:
            block = self.program.blocks[first]
            yield f"{indent}counts[{first}]+=1"
            for line in bodies[first]:
                yield indent + line
            yield f"{indent}t+={len(block)}"
            following = str(first + 1)
            if block.target is not None:
                following = f"{block.target} if taken else {following}"
            yield f"{indent}at={following}"
            return
        middle = (first + end) // 2
        yield f"{indent}if at<{middle}:"
        yield from self._dispatch(bodies, first, middle, indent + " ")
        yield f"{indent}else:"
        yield from self._dispatch(bodies, middle, end, indent + " ")

    def _body(self, number: int) -> Iterator[str]:
        block = self.program.blocks[number]
        bundle: list[Operation] = []
        for operation in block.operations:
            if bundle and operation.bundle != bundle[0].bundle:
                yield from self._bundle(block, bundle)
                bundle = []
            bundle.append(operation)
        if bundle:
            yield from self._bundle(block, bundle)

    def _bundle(self, block: Block, operations: list[Operation]) -> Iterator[str]:
        """Translate a bundle: everything reads before anything writes."""
        written: dict[str, str] = {}
        effects = []
        for operation in operations:
            try:
                if operation.stem == "sbr":
                    written["taken"] = self._predicate(operation) or "1"
                elif operation.stem in QUEUED:
                    written |= self._queued(operation, operation.bundle - block.first)
                elif operation.has_effect:
                    effects.append(self._effect(operation, operation.bundle - block.first))
                elif not self._is_renaming(operation, operations):
                    written[self._target(operation)] = self._assigned(operation)
            except NotUnderstoodError as error:
                what = f"{operation.opcode} at bundle {operation.bundle:#x}: {error}"
                self.not_understood.append(what)
                register = _REGISTER.fullmatch(operation.result)
                if register:
                    written[register[1]] = f"unknown({what!r})"
                else:
                    effects.append(f"unknown({what!r})")
        if effects and written:
            held = [f"w{place}" for place in range(len(written))]
            yield f"{','.join(held)},={','.join(written.values())},"
            yield from effects
            yield f"{','.join(written)},={','.join(held)},"
        elif written:
            yield f"{','.join(written)}={','.join(written.values())}"
        else:
            yield from effects

    # Operands

    def _value(self, text: str) -> str:
        """Return the Python expression of an operand."""
        text = _POINTS_INTO.sub(r"\1", text.strip())
        if text.startswith("!"):
            return f"(not {self._value(text[1:])})"
        if "[" in text:
            return self._address(text)
        if text.startswith("%"):
            register = _REGISTER.fullmatch(text)
            if register is None:
                raise NotUnderstoodError(f"the operand {text!r} is no scalar register")
            return register[1]
        if _NUMBER.fullmatch(text):
            number = wrapped(int(text, 0))
            return f"({number})" if number < 0 else str(number)
        if _REAL.fullmatch(text):
            raise NotUnderstoodError(f"the operand {text!r} is a float; only integers are followed")
        raise NotUnderstoodError(f"the operand {text!r} is neither a register nor a number")

    def _real(self, text: str) -> str:
        """Return the Python expression of an operand of an instruction of float32."""
        return str(word_of(float(text))) if _REAL.fullmatch(text.strip()) else self._value(text)

    def _address(self, text: str) -> str:
        """Return the sum of the allocations, registers and offsets that an address names."""
        terms = []
        inside = re.sub(r"\b(?:smem|sflag|vmem|hbm|cmem|imem):", "", text)
        for term in _TERM.findall(inside):
            if term.startswith("#"):
                number = self._allocations.setdefault(term, len(self._allocations) + 1)
                terms.append(str(wrapped(number << ALLOCATION_BITS)))
            elif term.startswith("$"):
                terms.append(str(int(term[1:], 16)))
            else:
                terms.append(self._value(term))
        if not terms or _TERM.sub("", inside).strip(" []+"):
            raise NotUnderstoodError(f"the address {text!r}")
        return f"({'+'.join(terms)})"

    def _predicate(self, operation: Operation) -> str:
        predicate = operation.instruction.predicate
        return self._value(predicate) if predicate else ""

    def _is_renaming(self, operation: Operation, bundle: list[Operation]) -> bool:
        """Whether an instruction only gives another name to what its register holds.

        A cast into another register is a move.
        """
        if operation.opcode.endswith("phi") or operation.stem == "int_to_ptr":
            made = self._target(operation)
            read = {match[1] for match in map(_REGISTER.fullmatch, operation.reads()) if match}
            in_this_bundle = {other.result for other in bundle} & set(operation.reads())
            if read != {made} and (operation.opcode.endswith("phi") or in_this_bundle):
                raise NotUnderstoodError(
                    f"it reads {operation.reads()} and writes another register"
                )
            return read == {made}
        return False

    def _target(self, operation: Operation) -> str:
        register = _REGISTER.fullmatch(operation.result)
        if register is None:
            raise NotUnderstoodError(f"it writes {operation.result!r}, which is no scalar register")
        return register[1]

    def _assigned(self, operation: Operation) -> str:
        """Return what a register holds after an instruction."""
        value = self._made(operation)
        predicate = self._predicate(operation)
        return f"({value} if {predicate} else {self._target(operation)})" if predicate else value

    def _made(self, operation: Operation) -> str:
        """Return the Python expression of what an instruction makes."""
        opcode, stem = operation.opcode, operation.stem
        operands = operation.operands
        if stem == "sld":
            if "core id" in operation.instruction.comment and "_spill" not in operands[0]:
                self.asks_for_the_core = True
                return "m.core"
            where = self._address(operands[0])
            what = f"SMEM {operands[0]}, which nothing wrote before bundle {operation.bundle:#x}"
            return f"load({where},{what!r})"
        if stem == "inlined_call_operand":
            return self._operand(operation)
        if stem == "scalar_parameter_address":
            return f"operand({int(operands[0])},'hbm','')"
        if stem in ("spop", "vpop"):
            return self._popped(operation)
        if stem == "reloc":
            return "0"
        if stem in ("smov", "int_to_ptr"):
            return self._value(operands[-1].rpartition("]")[2] if stem != "smov" else operands[-1])
        if opcode in _OF_REALS:
            return f"of_reals({opcode!r},{','.join(map(self._real, operands))})"
        values = [self._value(operand) for operand in operands]
        if opcode == "scvt.f32.s32" and len(values) == 1:
            what = f"how bundle {operation.bundle:#x} rounds a number to a whole one"
            return f"whole(m,{values[0]},{what!r})"
        if stem in _LOGIC:
            return _LOGIC[stem].format(*values)
        if stem == "scalar_select":
            return f"({values[1]} if {values[0]} else {values[2]})"
        if stem == "scmp":
            return _compared(opcode, values)
        if stem == "scalar_lea":
            return _wrapping("+".join(values))
        return _arithmetic(opcode, values)

    def _operand(self, operation: Operation) -> str:
        text = f"{operation.opcode}{operation.instruction.operands}"
        index, space = _INDEX.search(text), _SPACE.search(text)
        if index is None or space is None:
            raise NotUnderstoodError("an operand without index or memory space")
        what = f"{OPERAND_VALUES} {index[1]}"
        return f"operand({index[1]},{space[1]!r},{what!r})"

    def _queued(self, operation: Operation, offset: int) -> dict[str, str]:
        """Return what is put into a queue, under its own names: `q641`, of a remainder `r641`."""
        number = operation.result[1:]
        made: dict[str, str] = {}
        if operation.opcode == "vsyncmov":
            made[f"q{number}"] = f"count(t+{offset},{self._value(operation.operands[0])})"
        elif operation.opcode == "sdivrem.u32":
            x, y = (_unsigned(self._value(operand)) for operand in operation.operands)
            for letter, sign in (("q", "//"), ("r", "%")):
                made[f"{letter}{number}"] = f"({_wrapping(f'{x}{sign}{y}')} if {y} else 0)"
        else:
            raise NotUnderstoodError("an instruction that nothing here knows")
        predicate = self._predicate(operation)
        if predicate:
            made = {name: f"({value} if {predicate} else {name})" for name, value in made.items()}
        return made

    def _popped(self, operation: Operation) -> str:
        """Return what a pop takes: from a queue above, or a value of the vector unit."""
        operations = [it for block in self.program.blocks for it in block.operations]
        for maker in operations:
            if maker.stem in QUEUED and maker.result in operation.reads():
                wanted = maker.instruction.comment
                if maker.stem == "vsyncmov" or wanted == "kDiv":
                    return f"q{maker.result[1:]}"
                if wanted == "kRem":
                    return f"r{maker.result[1:]}"
                if wanted == "kDivAndRem":
                    pops = [it for it in operations if maker.result in it.reads()]
                    return f"{'q' if pops[0] is operation else 'r'}{maker.result[1:]}"
                raise NotUnderstoodError(f"it pops what {wanted or maker.opcode} leaves")
        raise NotUnderstoodError("a value that the vector unit computes")

    # Effects

    def _effect(self, operation: Operation, offset: int) -> str:
        made = self._done(operation, offset)
        predicate = self._predicate(operation)
        return f"if {predicate}: {made}" if predicate else made

    def _done(self, operation: Operation, offset: int) -> str:
        opcode, operands = operation.opcode, operation.operands
        now = f"t+{offset}"
        if opcode == "sst":
            where, value = self._stored(operands)
            return f"store({where},{value})"
        if opcode == "inlined_call":
            name = _CALLED.match(operation.instruction.comment.strip())
            if name is None:
                raise NotUnderstoodError("a call that does not say of what")
            return f"t=call({now},{name[1]!r})-{offset}"
        if opcode.startswith("dma.done.wait") or opcode.startswith("vwait.ge"):
            flag, least = (self._value(operand) for operand in operands)
            return f"t=wait({now},{flag},{least},{operation.bundle})-{offset}"
        if opcode == "vsyncadd":
            return f"add({','.join(map(self._value, operands))})"
        if opcode.startswith("vsyncset"):
            return f"set_({','.join(map(self._value, operands))})"
        if operation.stem == "dma":
            return self._started(operation, now)
        raise NotUnderstoodError("an instruction that nothing here knows")

    def _stored(self, operands: tuple[str, ...]) -> tuple[str, str]:
        match = re.fullmatch(r"(\[.*\])\s+(\S+)", ", ".join(operands), re.DOTALL)
        if match is None:
            raise NotUnderstoodError(f"the operands {operands}")
        return self._address(match[1]), self._value(match[2])

    def _started(self, operation: Operation, now: str) -> str:
        named = operation.named()
        for tag in ("size_in_granules", "dst_syncflagno"):
            if tag not in named:
                raise NotUnderstoodError(f"a transfer without {tag}")
        spaces, places = self._ends(operation, named)
        if len(spaces) != 2 or not set(spaces) <= MEMORIES:
            raise NotUnderstoodError("a transfer between memories that are not known")
        source, target = map(self._value, places)
        size, flag = self._value(named["size_in_granules"]), self._value(named["dst_syncflagno"])
        return f"start({now},{spaces!r},{size},({source},{target}),{flag})"

    def _ends(
        self, operation: Operation, named: dict[str, str]
    ) -> tuple[tuple[str, ...], tuple[str, str]]:
        """Return the memories at a transfer's ends, and the operands that point into them.

        A described transfer, `dma.general`, has its memories in a remark or else from its pointers.
        """
        if operation.opcode != "dma.general":
            spaces = tuple(operation.opcode.removeprefix("dma.").split("_to_"))
            return spaces, (named.get(spaces[0], "0"), named.get(spaces[-1], "0"))
        places = (named.get("src", "0"), named.get("dst", "0"))
        if told := _SPACES_TOLD.search(operation.instruction.comment):
            return told.groups(), places
        return tuple(self.program.spaces.get(place, "") for place in places), places


def _of_reals(opcode: str, *words: int) -> int:
    """Compute an instruction of float32 words."""
    with np.errstate(all="ignore"):
        return word_of(_OF_REALS[opcode](*map(real, words)))


def _whole(machine: Machine, word: int, what: str) -> int:
    """Convert a float32 to int32; a guess where it is not whole, or too large."""
    value = real(word)
    fits = math.isfinite(value) and value == int(value) and abs(value) < 1 << 31
    return int(value) if fits else machine.unknown(what)


def _wrapping(expression: str) -> str:
    return f"(({expression}+0x80000000&{_MASK})-0x80000000)"


def _unsigned(value: str) -> str:
    return f"({value}&{_MASK})"


def _compared(opcode: str, values: list[str]) -> str:
    """Translate `scmp.lt.s32.totalorder` and its kin."""
    parts = opcode.split(".")
    if parts[1] not in _COMPARE or parts[2] not in ("s32", "u32"):
        raise NotUnderstoodError("a comparison that nothing here knows")
    first, second = map(_unsigned, values) if parts[2] == "u32" else values
    return f"({first}{_COMPARE[parts[1]]}{second})"


def _arithmetic(opcode: str, values: list[str]) -> str:
    """Translate the arithmetic of two registers or numbers."""
    if len(values) != 2:
        raise NotUnderstoodError("an instruction that nothing here knows")
    x, y = values
    unsigned_x, unsigned_y = _unsigned(x), _unsigned(y)
    plain = {
        "sadd.s32": _wrapping(f"{x}+{y}"),
        "ssub.s32": _wrapping(f"{x}-{y}"),
        "smul.u32": _wrapping(f"{x}*{y}"),
        "smulhi.u32": _wrapping(f"({unsigned_x}*{unsigned_y}>>32)"),
        "sand.u32": f"({x}&{y})",
        "sor.u32": f"({x}|{y})",
        "sxor.u32": f"({x}^{y})",
        "smin.s32": f"min({x},{y})",
        "smax.s32": f"max({x},{y})",
        "smin.u32": _wrapping(f"min({unsigned_x},{unsigned_y})"),
        "smax.u32": _wrapping(f"max({unsigned_x},{unsigned_y})"),
        "sc.u32": f"({unsigned_x}+{unsigned_y}>{_MASK})",
        "sshll.u32": _wrapping(f"({x}<<min({unsigned_y},32))"),
        "sshrl.u32": _wrapping(f"({unsigned_x}>>min({unsigned_y},32))"),
        "sshra.s32": f"({x}>>min({unsigned_y},31))",
    }
    if opcode not in plain:
        raise NotUnderstoodError("an instruction that nothing here knows")
    return plain[opcode]
