"""Small listings, written as libtpu writes them, and what comes of running them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pallas_rungs.ir.bundles import read_listing
from pallas_rungs.ir.scalar_program import ScalarProgram, read_program
from pallas_rungs.performance.clock import clock_of
from pallas_rungs.performance.interpreter import Translation
from pallas_rungs.performance.machine import Machine

SLOTS = {"v5e": 4, "v6e": 4, "v5p": 4, "v4": 1, "tpu7x": 6}


def listing(*bundles: str) -> str:
    """Return the text of a listing; each bundle is the instructions between its braces."""
    return "\n".join(f"{number:#6x}   :  {{ {text} }}" for number, text in enumerate(bundles))


def program(*bundles: str, chip: str = "v5e") -> ScalarProgram:
    return read_program(read_listing(listing(*bundles), "sample"), "sample", SLOTS[chip])


def ran(
    *bundles: str,
    chip: str = "v5e",
    operands: Mapping[int, Sequence[int]] | None = None,
    **options: Any,
) -> Machine:
    """Execute a listing and return the machine that it ran on."""
    scalar = program(*bundles, chip=chip)
    machine = Machine(clock_of(chip), len(scalar.blocks), operands or {}, **options)
    Translation(scalar).run(machine)
    return machine


def stored(machine: Machine, allocation: int = 1, offset: int = 0) -> int:
    """What a program left in SMEM, in the allocation that it named first, second, …"""
    return machine.load((allocation << 18) + offset, "nothing was stored there")


def computed(expression: str, *values: int) -> int:
    """Compute one instruction of operands `%a`, `%b`, `%c` and return what it makes."""
    names = dict(zip("abc", ("%s1_s1", "%s2_s2", "%s3_s3"), strict=True))
    for name, register in names.items():
        expression = expression.replace(f"%{name}", register)
    moves = (
        f"{names['abc'[place]]} = smov {value & 0xFFFFFFFF}" for place, value in enumerate(values)
    )
    machine = ran(*moves, f"%s9_s9 = {expression}", "%5 = sst [smem:[#allocation1]] %s9_s9", READ)
    assert not +machine.unresolved
    return stored(machine)


READ = "%s99_s20 = sld [smem:[#allocation1]]"
"""Reads what a sample stores, so that the store is not left out as one that nothing reads."""

BRANCH = "%7 = sbr.rel {} target bundleno = {} (0x0), region = 1"


def branch(target: int, predicate: str = "") -> str:
    return BRANCH.format(predicate, target)


def loop(limit: int, *body: str, slots: int = 4) -> list[str]:
    """A loop that counts register s0 to `limit`; its body's first bundle has address 1."""
    return [
        "%s1_s0 = smov 0",
        "%s2_s0 = sphi %s1_s0, %s3_s0",
        *body,
        "%s3_s0 = sadd.s32 1, %s2_s0",
        f"%p4_p0 = scmp.ge.s32.totalorder %s3_s0, {limit}",
        branch(1, "(!%p4_p0)"),
        *[""] * slots,
    ]
