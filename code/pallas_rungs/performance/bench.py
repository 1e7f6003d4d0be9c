"""`bench`: what a function takes on the device that is there, and whether its result is right.

    from pallas_rungs.performance.bench import bench
    bench(matmul, x, y, reference=matmul_reference, tolerance=1e-2)

The function is compiled, run until it is warm, and then timed several times over; the figure is the
median, and its range the quartiles. A wrong result has no time. Neither has a CPU in place of a
chip.
"""

from __future__ import annotations

import importlib.metadata
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

import jax
import numpy as np

from pallas_rungs.performance.provenance import MEASUREMENT, Provenance, Quantity, argument
from pallas_rungs.performance.sources import code_hash
from pallas_rungs.performance.units import SECONDS

RUNS: Final = 20
"""Samples of which the median is taken."""

SAMPLE: Final = 5e-3
"""Seconds that a sample lasts at least: short calls are made several times in it."""

CPU: Final = "this machine's CPU"

_PACKAGES: Final = {
    "cpu": ("jax", "jaxlib"),
    "tpu": ("jax", "jaxlib", "libtpu"),
    "gpu": (
        "jax",
        "jaxlib",
        "jax-cuda12-plugin",
        "jax-cuda12-pjrt",
        "jax-cuda13-plugin",
        "jax-cuda13-pjrt",
    ),
}


class BenchError(RuntimeError):
    """A function that gets no figure: no device for it, or a wrong result; the message says why."""


@dataclass(frozen=True)
class Measurement:
    """What a function took on a device.

    Attributes:
      name: the function's name.
      quantity: the median of its times, its quartiles as the range, and where they come from.
      runs: samples that were timed.
      calls: calls in each sample.
      error: largest difference from the float64 reference, as a part of the reference's largest
        value; None where no reference was given.
    """

    name: str
    quantity: Quantity
    runs: int
    calls: int
    error: float | None

    @property
    def seconds(self) -> float:
        """The median, in seconds."""
        return self.quantity.value

    @property
    def provenance(self) -> Provenance:
        """Where the figure comes from."""
        return self.quantity.provenance

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, as a record keeps it."""
        return {
            "name": self.name,
            **self.quantity.to_json(),
            "runs": self.runs,
            "calls": self.calls,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave.

        Raises:
          ProvenanceError: it has no provenance, or one that lacks something.
        """
        own = {name: data[name] for name in ("name", "runs", "calls", "error")}
        return cls(quantity=Quantity.from_json(data), **own)

    def __str__(self) -> str:
        error = "" if self.error is None else f", off by {self.error:.1e} of its largest value"
        return (
            f"{self.name}: {self.quantity} (quartiles {self.quantity.range}){error}\n"
            f"{self.provenance.caption()}"
        )


def bench(
    fn: Callable[..., Any],
    *args: Any,
    reference: Callable[..., Any] | None = None,
    tolerance: float | None = None,
    runs: int = RUNS,
    on_cpu: bool = False,
    code: str | None = None,
    name: str | None = None,
) -> Measurement:
    """Measure a function on the device that JAX has here.

    Args:
      fn: a function of arrays, with or without Pallas kernels.
      *args: its arrays. They are put on the device first, and the copy is not timed.
      reference: gives the right result in float64 from the same arrays.
      tolerance: the largest error that passes, as a part of the reference's largest value; needed
        with a reference.
      runs: samples to time, 5 or more.
      on_cpu: measure on a CPU all the same, for a figure that is about this machine and no chip.
      code: hash of the code, where the function is made of more than `sources.code_hash` can see.
      name: what to call it; the function's own name by default.

    Returns:
      The measurement, with its provenance.

    Raises:
      ValueError: fewer than 5 runs, or a reference without a tolerance.
      BenchError: there is no accelerator here, or the result is wrong.
      SourcesError: the code of `fn` cannot be read and no `code` is given.
    """
    if runs < 5:
        raise ValueError(f"a median and quartiles need 5 runs or more, not {runs}")
    if (reference is None) != (tolerance is None):
        raise ValueError("a reference and the tolerance of its comparison go together")
    device = jax.devices()[0]
    if device.platform == "cpu" and not on_cpu:
        raise BenchError(
            "a CPU is not the chip: JAX has no accelerator here, so there is no time to tell "
            "(on_cpu=True measures this machine, and the figure then says so)"
        )
    name = name or str(getattr(fn, "__name__", type(fn).__name__))
    code = code or code_hash(fn)
    arrays = [jax.device_put(array, device) for array in args]
    compiled = jax.jit(fn).lower(*arrays).compile()
    result = jax.block_until_ready(compiled(*arrays))
    error = None
    if reference is not None and tolerance is not None:
        error = largest_error(result, reference(*(np.asarray(array) for array in args)))
        if not error <= tolerance:
            raise BenchError(
                f"{name} is off by {error:.2g} of the reference's largest value, and {tolerance:g} "
                "is allowed: a wrong result has no time"
            )
    took, calls = _times(lambda: compiled(*arrays), runs)
    low, median, high = statistics.quantiles(took, n=4)
    checked = f"checked against float64, tolerance {tolerance:g}" if reference else "not checked"
    given = Provenance(
        kind=MEASUREMENT,
        chip=CPU if device.platform == "cpu" else str(device.device_kind),
        arguments=tuple(map(argument, arrays)) or ("no arrays",),
        method=(
            f"median of {runs} samples of {calls} calls each, the launch included, warm; "
            f"range: quartiles; result {checked}"
        ),
        versions=installed(device.platform),
        date=datetime.now(UTC).date().isoformat(),
        code=code,
    )
    return Measurement(name, Quantity(median, SECONDS, given, low, high), runs, calls, error)


def largest_error(got: Any, want: Any) -> float:
    """Return the largest difference of two results, as a part of the second's largest value.

    Args:
      got: arrays, or a tree of them.
      want: the same tree, in float64.

    Returns:
      The error of the worst array; infinite where a value is not finite and its reference is.

    Raises:
      ValueError: shapes differ.
    """
    worst = 0.0
    ours, theirs = jax.tree.leaves(got), jax.tree.leaves(want)
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} arrays were computed and the reference has {len(theirs)}")
    for one, other in zip(ours, theirs, strict=True):
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
        if a.shape != b.shape:
            raise ValueError(f"the result has shape {a.shape}, and its reference {b.shape}")
        finite = np.isfinite(b)
        if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(
            a[~finite], b[~finite], equal_nan=True
        ):
            return float("inf")
        scale = float(np.abs(b[finite]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / scale)
    return worst


def installed(platform: str) -> dict[str, str]:
    """Return the versions of the packages that decide what a platform runs, of those here."""
    found = {}
    for package in _PACKAGES.get(platform, _PACKAGES["gpu"]):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _times(call: Callable[[], Any], runs: int) -> tuple[list[float], int]:
    """Return seconds of a call in each sample, and how many calls each sample makes."""

    def sample(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            last = call()
        jax.block_until_ready(last)
        return time.perf_counter() - start

    once = min(sample(1) for _ in range(3))
    calls = max(1, min(1000, round(SAMPLE / max(once, 1e-9))))
    sample(calls)
    return [sample(calls) / calls for _ in range(runs)], calls
