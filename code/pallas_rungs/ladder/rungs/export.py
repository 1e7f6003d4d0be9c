"""Carrying a program to a compiler in another process: `jax.export` for the chip's platform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax

from pallas_rungs.compilers.chips import chip_named
from pallas_rungs.ladder.pretend import Pretend
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import Program
from pallas_rungs.ladder.rungs.tracing import facts, traced


@dataclass(frozen=True)
class ExportedProgram:
    """A program that another process can compile.

    Attributes:
      serialized: what `jax.export.deserialize` reads.
      kernels: how many kernels it holds.
      devices: how many devices it spans. The compiling process lays that many devices of the
        topology out as the program's mesh and gives every argument a replicated sharding on it.
      pretend: how the chip was named while tracing.
      details: further facts for the verdict.
    """

    serialized: bytes
    kernels: int
    devices: int = 1
    pretend: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def export_traced(program: Program, pretend: Pretend) -> ExportedProgram:
    """Export a traced program with compiled kernels.

    Raises:
      Exception: what lowering or exporting raises.
    """
    from jax import export

    machine = chip_named(pretend.chip).machine
    exported = export.export(
        jax.jit(program.as_function(False)),
        platforms=[machine.platform],
        disabled_checks=[
            export.DisabledSafetyCheck.custom_call(call) for call in machine.kernel_calls
        ],
    )(*program.arrays)
    return ExportedProgram(
        serialized=bytes(exported.serialize()),
        kernels=len(program.kernels),
        devices=exported.nr_devices,
        pretend=pretend.to_json(),
        details=facts(program, False),
    )


def export_program(problem: Problem, chip: str, *, level: int = 1) -> ExportedProgram:
    """Trace and export `problem` for `chip`.

    Args:
      problem: what to export.
      chip: the chip's name, e.g. `"v5e"`.
      level: how insistently to name the chip; see `pallas_rungs.ladder.pretend`.

    Raises:
      ValueError: no such chip.
      Exception: what the program raises while it is traced, lowered or exported.
    """
    pretend = Pretend(chip_named(chip).name, level, "lowering needs to know the chip")
    with pretend.applied():
        return export_traced(traced(problem), pretend)
