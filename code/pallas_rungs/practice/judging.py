"""What the checks of the exercises share: run the reader's function, judge its result, hint.

Whatever is wrong ends in an `AssertionError` that says what was found and what to look at. A check
offers hints: each recognises one plausible mistake by the result that it leaves behind.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ladder import Report, climb
from pallas_rungs.ladder.compare import compare
from pallas_rungs.ladder.program import trace

Recognises = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Hint:
    """What to tell a reader whose result shows a known mistake.

    Attributes:
        text: One or two sentences: what happened, and where to look.
        when: Called with the result and the wanted result, both NumPy, of one shape; true where the
            result shows the mistake. It may look at the dtype.
    """

    text: str
    when: Recognises


def has_nan(got: Any, want: Any) -> bool:
    """Recognise NaN where the wanted result has none."""
    return bool(np.isnan(np.asarray(got, np.float64))[~np.isnan(want)].any())


def close_to(mistake: Any, *, rtol: float = 1e-4, atol: float = 1e-5) -> Recognises:
    """Recognise the result that a known mistake leaves behind."""

    def when(got: Any, want: Any) -> bool:
        found = np.asarray(got, np.float64)
        return found.shape == np.shape(mistake) and np.allclose(
            found, mistake, rtol, atol, equal_nan=True
        )

    return when


def run(function: Callable[..., Any], *args: Any, call: str, interpret: Any = True) -> Any:
    """Run the reader's function on this machine, its kernels in an interpreter.

    Args:
        function: The reader's function; its kernels need not ask for an interpreter.
        *args: Its arguments.
        call: The call as the reader would write it, for messages, for instance ``axpy(x, 2, 1)``.
        interpret: Which interpreter runs the kernels.

    Returns:
        The result, a NumPy array or a pytree of them.

    Raises:
        AssertionError: The function raised, returned nothing, or launched no kernel.
    """
    with _told(call):
        program = trace(function, args)
    if program.out_tree.num_leaves == 0:
        raise AssertionError(f"{call} returned nothing: return what pl.pallas_call returns")
    if not program.kernels:
        raise AssertionError(f"{call} launched no kernel: the work belongs in a pl.pallas_call")
    with _told(call):
        return program.run(interpret, optimise=False)


@contextlib.contextmanager
def _told(call: str) -> Iterator[None]:
    """Turn whatever a call raises into an `AssertionError` that names the call."""
    try:
        yield
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0] or "without a message"
        raise AssertionError(f"{call} raised {type(error).__name__}: {first_line}") from error


def agree(
    got: Any,
    want: Any,
    *,
    call: str,
    rtol: float,
    atol: float,
    hints: Sequence[Hint] = (),
    dtype: Any = None,
) -> None:
    """Insist that a result has the wanted shape, dtype and numbers.

    Args:
        got: The reader's result, NumPy.
        want: The wanted result in float64.
        call: The call as the reader would write it, for the message.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        hints: Known mistakes; the first that recognises a wrong result is told.
        dtype: The dtype that the result must have, where the exercise asks for one.

    Raises:
        AssertionError: The result differs; says how, where, and the first hint that fits.
    """
    if dtype is not None and np.dtype(got.dtype) != np.dtype(dtype):
        told = _first_hint(hints, got, want)
        raise AssertionError(
            f"{call} has dtype {got.dtype}, and should have {np.dtype(dtype)}{told}"
        )
    difference = compare(got, want, rtol=rtol, atol=atol)
    if difference is None:
        return
    told = "" if difference.mismatch else _first_hint(hints, got, want)
    raise AssertionError(f"{call}: {difference}{told}")


def climbs(
    function: Callable[..., Any], *args: Any, reference: Callable[..., Any], **options: Any
) -> Report:
    """Insist that the reader's function passes the rungs; see `climb` for the options.

    Returns:
        The report. A rung that this machine lacks is left out of the judgement.

    Raises:
        AssertionError: A rung did not pass; holds the whole report.
    """
    report = climb(function, *args, reference=reference, **options)
    if not _healthy(report):
        raise AssertionError(f"not healthy yet:\n{report}")
    return report


def climbs_on_devices(
    function: Callable[..., Any],
    *args: Any,
    devices: int,
    reference: Callable[..., Any],
    call: str,
    hints: Sequence[Hint] = (),
    when_deadlocked: str = "",
) -> Report:
    """Insist that a function of several devices traces, is sound in the simulator, and lowers.

    Args:
        function: Runs the reader's kernel on that many devices.
        *args: Its arguments.
        devices: How many devices jax must have.
        reference: Called with the arguments; returns the wanted result in float64.
        call: The call as the reader would write it, for messages.
        hints: Known mistakes; the first that recognises a wrong result is told.
        when_deadlocked: A hint for a kernel that waits for what never comes.

    Returns:
        The report.

    Raises:
        RuntimeError: jax has started with fewer devices.
        AssertionError: A rung did not pass; holds the hint that fits, or the whole report.
    """
    if len(jax.devices()) < devices:
        raise RuntimeError(
            f"this exercise runs on {devices} devices and jax has {len(jax.devices())}: restart "
            f'Python and call jax.config.update("jax_num_cpu_devices", {devices}) first of all'
        )
    rungs = ("trace", "simulate", "lower")
    report = climb(function, *args, reference=reference, rungs=rungs, name=call)
    if _healthy(report):
        return report
    told = ""
    if any(v.status == "deadlocked" for v in report.verdicts) and when_deadlocked:
        told = f"\nHint: {when_deadlocked}"
    elif all(v.status in ("passed", "wrong") for v in report.verdicts if v.rung == "simulate"):
        got = run(function, *args, call=call, interpret=pltpu.InterpretParams())
        agree(got, reference(*args), call=call, rtol=1e-6, atol=1e-6, hints=hints)
    raise AssertionError(f"not healthy yet:\n{report}{told}")


def _healthy(report: Report) -> bool:
    return all(v.status in ("passed", "unavailable") for v in report.verdicts)


def _first_hint(hints: Sequence[Hint], got: Any, want: Any) -> str:
    return next((f"\nHint: {hint.text}" for hint in hints if hint.when(got, want)), "")
