"""Known gaps of the tools: failures that are not the kernel's.

A failure is laid at the tool's door only when three things hold: the rung is the one with the gap,
the raw outcome looks like the gap (status and message), and the program really uses the feature.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass

from pallas_rungs.ladder.advice import advice_for_miscounted
from pallas_rungs.ladder.features import Features
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict

Uses = Callable[[Features, "re.Match[str] | None"], bool]


@dataclass(frozen=True)
class Gap:
    """A known gap of one rung's tool.

    Attributes:
      name: what the tool cannot do, as a clause after "the tool …".
      rung: the rung whose tool has the gap.
      outcome: the raw status that the gap shows as.
      uses: whether a program uses the feature.
      pattern: what the error looks like ("Type: message"); None where there is no error.
    """

    name: str
    rung: Rung
    outcome: Status
    uses: Uses
    pattern: re.Pattern[str] | None = None


def _refusal(name: str, rung: Rung, pattern: str, uses: Uses) -> Gap:
    return Gap(name, rung, Status.REFUSED, uses, re.compile(pattern, re.DOTALL))


_NO_CPU_RULE = (
    r"NotImplementedError: MLIR translation rule for primitive '(\w+)' not found for platform cpu"
)
_INTERNAL_ERROR = r"\A(?:NotImplementedError|KeyError|AssertionError|AttributeError|NameError)\b"
_NO_MEMORY = r"\A\w*MemoryError\b|RESOURCE_EXHAUSTED: Out of memory (?:allocating|while trying)"
_SPARSE_CORE_ERROR = (
    _INTERNAL_ERROR
    + r"|\ATypeError: Only scalar arrays can be converted to Python scalars"
    + r"|Did not ask for inval to be discharged"
)
_NO_FOUR_BITS = (
    r"does not support custom element sizes on non-sub-byte types"
    r"|UNIMPLEMENTED.*\b[SU][24]\b|\bu?int[24]\b.*not (?:supported|implemented)"
)


def _simulates_gpu(features: Features, _: re.Match[str] | None) -> bool:
    return features.mosaic_gpu


def _gpu_simulator(lack: str, pattern: str) -> Gap:
    """A gap of the simulator for Mosaic GPU."""
    return _refusal(f"the GPU simulator {lack}", Rung.SIMULATE, pattern, _simulates_gpu)


def _names_a_primitive(features: Features, match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    return match[1] in features.primitives or ("prng" in match[1] and features.random_bits)


GAPS: tuple[Gap, ...] = (
    _refusal(
        "the interpreter has no rule for the chip's own operation '{0}'",
        Rung.INTERPRET,
        _NO_CPU_RULE,
        _names_a_primitive,
    ),
    _refusal(
        "the simulator has no rule for the chip's own operation '{0}'",
        Rung.SIMULATE,
        _NO_CPU_RULE,
        _names_a_primitive,
    ),
    _refusal(
        "the interpreter has no barrier semaphores",
        Rung.INTERPRET,
        r"TypeError: No ir_type_handler for aval type:.*AbstractRef",
        lambda f, _: f.barrier_semaphore,
    ),
    _refusal(
        "the interpreter waits for no copy to another device on one semaphore of an array",
        Rung.INTERPRET,
        r"ValueError: safe_zip\(\) argument 2 has length",
        lambda f, _: f.semaphore_views,
    ),
    _refusal(
        "the interpreter signals no semaphore of another device",
        Rung.INTERPRET,
        r"NotImplementedError: Remote signal not implemented",
        lambda f, _: f.remote_signals,
    ),
    _refusal(
        "the interpreter copies to another device on meshes of one axis only",
        Rung.INTERPRET,
        r"NotImplementedError: Meshes with more than 1 named dimension",
        lambda f, _: f.remote_copies,
    ),
    _refusal(
        "the interpreter passes no abstract refs to operations outside its own",
        Rung.INTERPRET,
        r"No ir_type_handler for aval type:.*AbstractRef",
        lambda f, _: bool(f.primitives & {"run_scoped", "get_global", "mpmd_map", "core_map"}),
    ),
    _refusal(
        "the interpreter forgets the grid in pl.run_scoped, so that pl.program_id has none",
        Rung.INTERPRET,
        r"\AAssertionError: .*raised in axis_frame",
        lambda f, _: f.scoped_program_ids,
    ),
    _refusal(
        "the interpreter copies only what has a size known while tracing",
        Rung.INTERPRET,
        r"Shapes must be 1D sequences of concrete values",
        lambda f, _: f.dynamic_copies,
    ),
    _refusal(
        "the simulator reads and writes no reshaped or bitcast refs",
        Rung.SIMULATE,
        r"'(?:Reshape|Bitcast|Transpose)Transform' object has no attribute",
        lambda f, _: f.reshaped_refs,
    ),
    _refusal(
        "the interpreter does not bind the core axis '{0}'",
        Rung.INTERPRET,
        r"Found an unbound axis name: (\w+)",
        lambda f, match: match is not None and match[1] in f.core_axes,
    ),
    _refusal(
        "the interpreter knows little of the SparseCore",
        Rung.INTERPRET,
        _SPARSE_CORE_ERROR,
        lambda f, _: f.sparse_core,
    ),
    _refusal(
        "the interpreter knows little of Mosaic GPU kernels",
        Rung.INTERPRET,
        _INTERNAL_ERROR,
        lambda f, _: f.mosaic_gpu,
    ),
    _refusal(
        "the simulator knows little of the SparseCore",
        Rung.SIMULATE,
        _SPARSE_CORE_ERROR,
        lambda f, _: f.sparse_core,
    ),
    _refusal(
        "the simulator's memory holds no random keys",
        Rung.SIMULATE,
        r"NotImplementedError: .*\bkey<",
        lambda f, _: f.random_bits,
    ),
    _refusal(
        "the CPU has no arithmetic on 4-bit values",
        Rung.INTERPRET,
        _NO_FOUR_BITS,
        lambda f, _: f.four_bit,
    ),
    _refusal(
        "the CPU has no arithmetic on 4-bit values",
        Rung.SIMULATE,
        _NO_FOUR_BITS,
        lambda f, _: f.four_bit,
    ),
    _refusal(
        "the simulator does not add the axis of jax.vmap to dimension_semantics, as lowering does",
        Rung.SIMULATE,
        r"ValueError: safe_zip\(\) argument 1 has length",
        lambda f, _: f.batched_semantics,
    ),
    *(
        _refusal(
            "this machine has too little memory to run that here: try smaller shapes",
            rung,
            _NO_MEMORY,
            lambda _, __: True,
        )
        for rung in (Rung.INTERPRET, Rung.SIMULATE)
    ),
    _gpu_simulator(
        "stores no predicated copies, as plgpu.emit_pipeline makes them for its outputs",
        r"NotImplementedError: predicate not supported",
    ),
    _gpu_simulator(
        "reduces nothing while it copies", r"NotImplementedError: reduction_op not supported"
    ),
    _gpu_simulator(
        "knows no masked loads and stores of Triton",
        r"NotImplementedError: (?:load|swap)_p is not supported on GPU",
    ),
    _gpu_simulator(
        "knows no accumulator in pl.run_state",
        r"Cannot lower jaxpr with effects.*(?:WGMMAPipelineEffect|MemoryEffect)",
    ),
    _gpu_simulator(
        "takes no operand of wgmma from registers",
        r"ValueError: Expected shape \(\d+,\) but got",
    ),
    _gpu_simulator(
        "knows named barriers of whole warpgroups only", r"Named barrier over \d+ threads"
    ),
    _gpu_simulator("runs no inline_mgpu", r"inline_mgpu"),
    _gpu_simulator("allocates no semaphores", r"(?i)Error: .*semaphore"),
    _gpu_simulator("has no block specs in pl.pallas_call", r"AssertionError: *\Z"),
    _gpu_simulator("has no rule for an operation of this kernel", r"\ANotImplementedError\b"),
    Gap(
        "the simulator's random bits are a stub that returns zeros",
        Rung.SIMULATE,
        Status.WRONG,
        lambda f, _: f.random_bits,
    ),
    Gap(
        "the simulator ignores the low padding of pl.Element",
        Rung.SIMULATE,
        Status.WRONG,
        lambda f, _: f.element_padding,
    ),
)


def attribute(verdict: Verdict, features: Features) -> Verdict:
    """Return the verdict, laid at the tool's door if a known gap explains it.

    The advice for an error whose message does not tell its cause is taken from the features.

    Args:
      verdict: the raw verdict; its `observed` equals its `status`.
      features: what the program uses.
    """
    error = verdict.error
    text = f"{error.type}: {error.full.strip() or error.message}" if error else ""
    for gap in GAPS:
        if gap.rung is not verdict.rung or gap.outcome is not verdict.status:
            continue
        match = None
        if gap.pattern is not None:
            match = gap.pattern.search(text)
            if match is None:
                continue
        if gap.uses(features, match):
            name = gap.name.format(*match.groups()) if match else gap.name
            return dataclasses.replace(
                verdict,
                status=Status.TOOL_CANNOT,
                observed=verdict.status,
                summary=f"{name}; what it said: {verdict.summary}",
                error=verdict.error and dataclasses.replace(verdict.error, advice=""),
                details={**verdict.details, "gap": name},
            )
    advice = advice_for_miscounted(
        text, lost_length=features.lost_length, half_derivative=features.half_derivative
    )
    if error and advice:
        return dataclasses.replace(verdict, error=dataclasses.replace(error, advice=advice))
    return verdict
