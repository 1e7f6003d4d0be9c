"""`estimate`: what a program would take on a TPU that is not there.

    from pallas_rungs.performance import estimate
    estimate(matmul, x, y, chip="v5e")

libtpu compiles the program and dumps the final schedule of each of its kernels. The scalar half of
that schedule is executed and its DMAs are simulated; bundles issued and cycles waited, divided by
the clock, are the estimate. It is not a measurement, and it says how far it has been from some.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import jax
import numpy as np
from jax import export

from pallas_rungs.compilers import dumps as dumping
from pallas_rungs.compilers.abstract import abstract_mesh
from pallas_rungs.compilers.chips import Chip
from pallas_rungs.compilers.dumps import Dumps, compile_for_estimate
from pallas_rungs.compilers.libtpu import install_line
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.performance.accuracy import accuracy_of
from pallas_rungs.performance.clock import Clock, clock_of
from pallas_rungs.performance.kernel import KernelEstimate, TooLongError
from pallas_rungs.performance.module import TOP_LEVEL, ModuleEstimate, estimate_module
from pallas_rungs.performance.operands import KernelOperands, known_operands
from pallas_rungs.performance.provenance import argument

METHOD: Final = "scalar program executed and DMAs simulated, from libtpu's final schedule"
TIME_LIMIT: Final = 300.0
"""Seconds that the compiler may take for a program."""

_FULL: Final = re.compile(r"No space left on device|File too large|Disk quota exceeded")
"""What the operating system says of a file that has no room."""

_TRACED: Final = (jax.ShapeDtypeStruct, jax.Array, np.ndarray, np.generic)


class EstimateError(RuntimeError):
    """A program that cannot be estimated; the message says why and what to do.

    Attributes:
      kind: what came of compiling: "refused", "crashed", "timed out", "deadlocked", "unavailable".
      outcome: what the compiler said; None where it was not asked.
    """

    def __init__(self, kind: str, message: str, outcome: CompilerOutcome | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.outcome = outcome


@dataclass(frozen=True)
class Estimate:
    """What a program is estimated to take on a chip; not a measurement.

    Attributes:
      name: the function's name.
      arguments: its arguments' dtypes and shapes, `bf16[4096,4096]`.
      chip: the chip's name.
      seconds: the estimate.
      low: that, less one root mean square error of this method; None where its error is not known.
      high: that, and one such error.
      error: how the error is known, in words.
      cycles: cycles of one run.
      hbm_read_bytes: bytes read from HBM, from the program's start on.
      hbm_written_bytes: bytes written to HBM.
      kernels: the module's programs, Pallas kernels and XLA's own code alike.
      unresolved: what had to be guessed, in words; empty where nothing that matters was.
      versions: of jax, jaxlib and libtpu.
      method: how it was made.
      prefetched_bytes: bytes of the arguments that are brought from HBM onto the chip before the
        program starts, a cross-program prefetch in XLA's words: into VMEM, on a v4 into memory
        space 3. 0 for none; None in an estimate that was recorded before this was read. They are
        the bytes of the arrays' elements, without a layout's padding. Neither they nor their time
        are in the other figures, which are those of a program whose arguments were fetched in the
        shadow of the one before.
    """

    name: str
    arguments: tuple[str, ...]
    chip: str
    seconds: float
    low: float | None
    high: float | None
    error: str
    cycles: float
    hbm_read_bytes: int
    hbm_written_bytes: int
    kernels: tuple[KernelEstimate, ...]
    unresolved: tuple[str, ...]
    versions: dict[str, str]
    method: str = METHOD
    prefetched_bytes: int | None = None

    @property
    def main(self) -> KernelEstimate:
        """The program that takes most of the time.

        Raises:
          LookupError: the module runs no program.
        """
        if not self.kernels:
            raise LookupError(f"{self.name} runs no program on the chip, so none is its main one")
        return max(self.kernels, key=lambda kernel: kernel.cycles * kernel.times)

    @property
    def hbm_bytes(self) -> int:
        """Bytes moved to and from HBM by the program itself, without `prefetched_bytes`."""
        return self.hbm_read_bytes + self.hbm_written_bytes

    @property
    def clock(self) -> Clock:
        """The chip's constants, each with its source."""
        return clock_of(self.chip)

    def seconds_of(self, kernel: KernelEstimate) -> float:
        """Return what a program takes in all of its executions, by itself."""
        return kernel.cycles * kernel.times / self.clock.frequency.value

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, which says that it is an estimate."""
        constants = {name: str(value) for name, value in self.clock.constants().items()}
        return {
            "kind": "estimate",
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "arguments": list(self.arguments),
            "unresolved": list(self.unresolved),
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "constants": constants,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build an estimate from what `to_json` gave; the constants are those known here."""
        kernels = tuple(map(KernelEstimate.from_json, data["kernels"]))
        told = {"prefetched_bytes": None, **data}
        given = {name: told[name] for name in cls.__dataclass_fields__}
        tuples = {name: tuple(data[name]) for name in ("arguments", "unresolved")}
        return cls(**{**given, **tuples, "kernels": kernels})

    def __str__(self) -> str:
        from pallas_rungs.performance.report import report_text

        return report_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from pallas_rungs.performance.report import report_html

        return report_html(self)


def estimate(
    fn: Callable[..., Any],
    *args: Any,
    chip: str | Chip = "v5e",
    time_limit: float = TIME_LIMIT,
    kwargs: Mapping[str, Any] | None = None,
) -> Estimate:
    """Estimate the time of a program on a TPU, from what its compiler dumps.

    Args:
      fn: a function of arrays, with or without Pallas kernels.
      *args: its arguments, or their shapes and dtypes; arrays are traced, anything else is closed
        over. Integer arguments that decide where a kernel
        goes (tables for scalar prefetch, bounds of a dynamic grid) are given as concrete arrays;
        otherwise they are guessed, and `unresolved` says so.
      chip: a TPU chip whose constants are known (`clock.CLOCKS`).
      time_limit: seconds that the compiler may take.
      kwargs: arguments by name.

    Returns:
      The estimate; the same each time.

    Raises:
      ValueError: no such chip, or one whose constants are not known.
      EstimateError: libtpu is not here, or did not compile the program; or it is for several
        devices, or runs for so long that its end is not reached.
      IRError: a dump is not as its reader knows it.
      Exception: what tracing or lowering the function raises.
    """
    program = prepare(fn, *args, chip=chip, kwargs=kwargs)
    dumps = compile_for_estimate(program.exported, program.chip, time_limit=time_limit)
    return estimate_of(program, dumps)


@dataclass(frozen=True)
class Program:
    """A function, traced and exported for a chip: what is left to do needs its compiler.

    Attributes:
      name: the function's name.
      arguments: its arguments' dtypes and shapes.
      chip: the chip's name.
      exported: the program as a compiler takes it.
      operands: values of the kernels' tables and scalars, as far as they are known.
    """

    name: str
    arguments: tuple[str, ...]
    chip: str
    exported: bytes
    operands: tuple[KernelOperands, ...]


def prepare(
    fn: Callable[..., Any],
    *args: Any,
    chip: str | Chip = "v5e",
    kwargs: Mapping[str, Any] | None = None,
) -> Program:
    """Trace and export a function for a chip; see `estimate`.

    Raises:
      ValueError: no such chip, or one whose constants are not known.
      EstimateError: the program is for several devices.
      Exception: what tracing or lowering the function raises.
    """
    clock = clock_of(chip)
    call, arrays = _of_arrays(fn, args, dict(kwargs or {}))
    shaped = [_shape_of(array) for array in arrays]
    with jax.sharding.use_abstract_mesh(abstract_mesh(clock.chip)):
        closed = call.trace(*shaped).jaxpr
        exported = export.export(call, platforms=["tpu"])(*shaped)
        operands = known_operands(closed, arrays)
    if exported.nr_devices > 1:
        raise EstimateError(
            "refused",
            f"the program spans {exported.nr_devices} devices; an estimate is of one: "
            "estimate the function that each device runs",
        )
    arguments = tuple(map(argument, shaped))
    return Program(_name_of(fn), arguments, clock.chip, bytes(exported.serialize()), operands)


def estimate_of(program: Program, dumps: Dumps) -> Estimate:
    """Estimate a program from what its compiler dumped.

    Args:
      program: what was compiled.
      dumps: files of the kinds `FOR_ESTIMATES`, and the optimised HLO in the outcome.

    Raises:
      EstimateError: libtpu is not here, or did not compile the program; or its end is not reached.
      IRError: a dump is not as its reader knows it.
    """
    _see_that_it_compiled(dumps, program.chip)
    listings = dumps.of("packed bundles")
    if TOP_LEVEL not in listings:
        raise EstimateError(
            "refused",
            "the compiler made no program for the chip, so there is nothing to estimate: "
            "the result does not depend on an argument that jax traces "
            "(a function of NumPy is computed while it is traced)",
        )
    clock = clock_of(program.chip)
    try:
        module = estimate_module(
            listings,
            dumps.of("utilization"),
            dumps.outcome.hlo,
            clock,
            program.operands,
        )
    except TooLongError as error:
        raise EstimateError("refused", str(error)) from error
    if not (module.kernels or module.cycles or module.hbm_read_bytes + module.hbm_written_bytes):
        raise EstimateError(
            "refused",
            "the compiler's program for the chip runs nothing there, so there is no time to "
            "estimate: the result is a constant, whatever the arguments are",
        )
    return _estimate(program, clock, module, dumps.outcome.versions)


def close() -> None:
    """End the compiler's worker. The next estimate starts a new one."""
    dumping.close()


def _of_arrays(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[Any]]:
    """Return a jitted function of the arrays among a call's arguments, and the arrays."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    arrays = [leaf for leaf in leaves if isinstance(leaf, _TRACED)]

    def call(*traced: Any) -> Any:
        waiting = iter(traced)
        given = [next(waiting) if isinstance(leaf, _TRACED) else leaf for leaf in leaves]
        args, kwargs = jax.tree.unflatten(tree, given)
        return fn(*args, **kwargs)

    call.__name__ = _name_of(fn)  # the compiler names programs by it
    return jax.jit(call), arrays


def _name_of(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def _shape_of(leaf: Any) -> Any:
    aval = jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else leaf
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _see_that_it_compiled(dumps: Dumps, chip: str) -> None:
    outcome = dumps.outcome
    if outcome.kind == "compiled":
        return
    if outcome.kind == "unavailable":
        raise EstimateError("unavailable", outcome.message, outcome)
    advice = {
        "refused": "change the kernel until it compiles; `climb` says more about a refusal",
        "crashed": "the program ends the compiler's process; `climb` says more",
        "timed out": "give a larger time_limit, or smaller shapes",
        "deadlocked": f"if it happens again, try another libtpu: {install_line()}",
    }[outcome.kind]
    if outcome.kind == "crashed" and (full := _FULL.search(outcome.message)):
        raise EstimateError(
            outcome.kind,
            f"libtpu could not write the dumps that an estimate is made of: {full[0]}; make room "
            "in the folder for temporary files, or name another one in TMPDIR",
            outcome,
        )
    first = outcome.message.strip().split("\n\n", 1)[0]
    raise EstimateError(
        outcome.kind,
        f"libtpu did not compile the program for {chip}, so there is nothing to estimate: "
        f"{outcome.kind}: {outcome.error_type}: {first}\n{advice}",
        outcome,
    )


def _estimate(
    program: Program, clock: Clock, module: ModuleEstimate, versions: Mapping[str, str]
) -> Estimate:
    seconds = module.cycles / clock.frequency.value
    in_pallas = sum(k.cycles * k.times for k in module.kernels if k.pallas)
    in_xla = sum(k.cycles * k.times for k in module.kernels if not k.pallas)
    accuracy = accuracy_of(clock.chip, in_pallas >= in_xla, seconds)
    low, high = accuracy.range(seconds) if accuracy else (None, None)
    error = f"no measurement of {clock.chip} was at hand to compare estimates with"
    if accuracy:
        error = f"rms log error {accuracy.rms_log_error:g} over {accuracy.points} {accuracy.source}"
    return Estimate(
        name=program.name,
        arguments=program.arguments,
        chip=clock.chip,
        seconds=seconds,
        low=low,
        high=high,
        error=error,
        cycles=module.cycles,
        hbm_read_bytes=module.hbm_read_bytes,
        hbm_written_bytes=module.hbm_written_bytes,
        kernels=module.kernels,
        unresolved=module.unresolved,
        versions=dict(versions),
        prefetched_bytes=module.prefetched_bytes,
    )
