"""What the simulators share: what they only note becomes a verdict, what they leave is cleared."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator

import jax

from pallas_rungs.ladder.advice import advice_for
from pallas_rungs.ladder.rungs.standstill import Standstill
from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Frame, KernelError, Verdict


@contextlib.contextmanager
def unlogged_callbacks() -> Iterator[None]:
    """Keep jax from logging what the simulator's callbacks raise: the verdict holds it."""
    logger = logging.getLogger("jax._src.callback")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def refused_in_passing(verdict: Verdict, message: str, lines: tuple[Frame, ...] = ()) -> Verdict:
    """Return the verdict for a run in which the simulator only noted a fault and went on.

    Args:
      verdict: what was said of the run otherwise.
      message: what the simulator noted.
      lines: the lines that it is about, with their roles.
    """
    error = KernelError(
        "RuntimeError",
        message,
        message,
        frame=lines[-1] if lines else None,
        advice=advice_for("", message),
        lines=lines,
    )
    return dataclasses.replace(
        verdict,
        status=Status.REFUSED,
        observed=Status.REFUSED,
        summary=f"RuntimeError: {message}",
        error=error,
    )


def deadlocked(verdict: Verdict, standstill: Standstill) -> Verdict:
    """Return the verdict for a run that was ended because nobody was left to signal."""
    told = str(standstill)
    full = "\n".join(f"{wait} {wait.at}".rstrip() for wait in standstill.waits)
    frame = standstill.waits[0].frame
    error = KernelError("TimeoutError", told, full, frame, advice_for("TimeoutError", told))
    return dataclasses.replace(
        verdict,
        status=Status.DEADLOCKED,
        observed=Status.DEADLOCKED,
        summary=told,
        error=error,
        difference=None,
    )


def forget_failed_effects() -> None:
    """Forget the error of an earlier run.

    It sits in jax's tokens of ordered effects, from where the next run would raise it.
    """
    from jax._src import dispatch

    with contextlib.suppress(jax.errors.JaxRuntimeError):
        dispatch.runtime_tokens.block_until_ready()
    dispatch.runtime_tokens.clear()
