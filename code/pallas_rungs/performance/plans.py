"""What the compiler says that it planned for XLA's own code: a second witness beside the estimator.

The optimised HLO names the operands of a program and what the compiler itself expects of it; the
listing of its bundles names each window that it copies. Neither is executed here, so a plan holds
nothing that the estimator could have misread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self
from unittest.mock import patch

from pallas_rungs.compilers.dumps import Dumps, compile_for_estimate
from pallas_rungs.compilers.libtpu import FLAGS_VARIABLE
from pallas_rungs.ir.bundles import read_listing
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.window_copies import WindowCopy, window_copies
from pallas_rungs.performance.estimate import TIME_LIMIT, Program, prepare

LIMIT_FLAG: Final = "--xla_tpu_scoped_vmem_limit_kib"
"""The flag of libtpu that sets how much VMEM a program may have for its windows."""

NO_FIGURE: Final = 2**63 - 1
"""What stands for the cycles of a program where the compiler's own cost model has none."""

_CYCLES: Final = re.compile(r'"estimated_cycles":"(\d+)"')
_EMITTER: Final = re.compile(r'"emitter":"(\w+)"')
_OPERANDS: Final = re.compile(r" [a-z][\w\-]*\(((?:%[\w.\-]+(?:, )?)*)\)")
_NAME: Final = re.compile(r"%([\w.\-]+)")


@dataclass(frozen=True)
class Plan:
    """What the compiler planned for one program.

    Attributes:
      program: the HLO instruction.
      operands: of each operand the instruction that makes it and its type, `broadcast f32[8,128]`.
      copies: the windows that it copies from HBM.
      cycles: what the compiler's own cost model expects; `NO_FIGURE` where it has no figure, 0
        where it says nothing.
      emitter: which of its ways to make code the compiler chose; empty where it says nothing.
    """

    program: str
    operands: tuple[str, ...]
    copies: tuple[WindowCopy, ...]
    cycles: int
    emitter: str

    @property
    def read_bytes(self) -> int:
        """Bytes read from HBM, if each step of the grid copies each window."""
        return sum(copy.moved_bytes for copy in self.copies)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        copies = [{key: _plain(value) for key, value in vars(it).items()} for it in self.copies]
        return {**vars(self), "operands": list(self.operands), "copies": copies}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Build a plan from what `to_json` gave."""
        copies = tuple(
            WindowCopy(**{key: _tupled(value) for key, value in it.items()})
            for it in data["copies"]
        )
        return cls(**{**data, "operands": tuple(data["operands"]), "copies": copies})


def compiled_with(
    fn: Callable[..., Any], *args: Any, chip: str, vmem_mib: int | None = None
) -> tuple[Program, Dumps]:
    """Compile a function for a chip, with a limit on the VMEM that each of its programs may have.

    Args:
      fn: a function of arrays.
      *args: its arguments, or their shapes and dtypes.
      chip: a TPU chip whose constants are known.
      vmem_mib: the limit in MiB; None leaves it to the compiler.

    Returns:
      What `estimate_of` takes: the program, and what the compiler dumped.

    Raises:
      Exception: what `prepare` raises.
    """
    program = prepare(fn, *args, chip=chip)
    flags = os.environ.get(FLAGS_VARIABLE, "")
    if vmem_mib is not None:
        flags = f"{flags} {LIMIT_FLAG}={vmem_mib * 1024}".strip()
    with patch.dict(os.environ, {FLAGS_VARIABLE: flags} if flags else {}):
        return program, compile_for_estimate(program.exported, chip, time_limit=TIME_LIMIT)


def longest_plan(dumps: Dumps) -> Plan:
    """Return the plan of the program that is to read most from HBM.

    Args:
      dumps: what `compiled_with` gave.

    Raises:
      IRError: no program has windows that it copies, or the HLO does not name the one that does.
    """
    found = {
        name: tuple(
            it
            for it in window_copies(read_listing(text, name), name)
            if it.opcode == "dma.hbm_to_vmem"
        )
        for name, text in dumps.of("packed bundles").items()
    }
    program = max(found, key=lambda name: sum(it.moved_bytes for it in found[name]), default=None)
    if program is None or not found[program]:
        raise IRError("the listings", "a program that copies windows from HBM", "none")
    return plan_in(dumps.outcome.hlo, program, found[program])


def plan_in(hlo: str, program: str, copies: tuple[WindowCopy, ...]) -> Plan:
    """Return the plan of a program from the optimised HLO and from its copies.

    Args:
      hlo: the optimised HLO.
      program: the instruction's name.
      copies: what it copies from HBM.

    Raises:
      IRError: the HLO has no such instruction with operands, or does not say what one of them is.
    """
    line = _line(hlo, program)
    operands = _OPERANDS.search(line)
    if operands is None:
        raise IRError("the optimised HLO", f"the operands of %{program}", repr(line[:80]))
    cycles, emitter = _CYCLES.search(line), _EMITTER.search(line)
    return Plan(
        program,
        tuple(_told(hlo, name) for name in _NAME.findall(operands[1])),
        copies,
        int(cycles[1]) if cycles else 0,
        emitter[1] if emitter else "",
    )


def _line(hlo: str, name: str) -> str:
    entry = hlo[hlo.find("\nENTRY ") :]
    match = re.search(rf"%{re.escape(name)} = (.*)", entry)
    if match is None:
        raise IRError("the optimised HLO", f"an instruction %{name} in ENTRY", "none")
    return match[1]


def _told(hlo: str, name: str) -> str:
    line = _line(hlo, name)
    match = re.match(r"(\w+\[[\d,]*\])\S* ([a-z][\w\-]*)\(", line)
    if match is None:
        raise IRError("the optimised HLO", f"type and opcode of %{name}", repr(line[:80]))
    return f"{match[2]} {match[1]}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
