"""What a compiler did with a program, kept on disk where it will be the same again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pallas_rungs.compilers import cache as disk
from pallas_rungs.compilers.process import Died, Reply, TimedOut

_FATAL = re.compile(r"(Check failed: .*|Fatal Python error: .*|.*\[FATAL\].*|LLVM ERROR: .*)")
_LOG_PREFIX = re.compile(r"^[FEWI]\d{4} [\d:.]+\s+\d+ \S+?:\d+\] ")


@dataclass(frozen=True)
class CompilerOutcome:
    """What the compiler did with one program.

    Attributes:
      kind: "compiled", "refused" (it raised), "crashed" (it ended its process), "timed out"
        (still busy), "deadlocked" (idle when the time was up) or "unavailable".
      error_type: type of the exception, or the signal's name after a crash.
      message: the whole message; after a crash the compiler's last word.
      seconds: wall time of reading, lowering and compiling the program.
      peak_memory_bytes: largest resident memory of the worker so far.
      cpu_seconds: CPU time used.
      cached: read from the disk cache; the other fields are those of the run that was kept.
      analysis: what the compiler tells about a compiled program: `device_kind`, `devices`; of
        libtpu `tpu_custom_calls`, `memory` (bytes by name) and `cost` (`flops`, …); of the CUDA
        compiler `kernels` (registers, spills, shared memory, see `cuda_worker`).
      versions: of jax, jaxlib and the compiler.
      hlo: the optimised HLO of a compiled program, where it was asked for.
    """

    kind: str
    error_type: str = ""
    message: str = ""
    seconds: float = 0.0
    peak_memory_bytes: int = 0
    cpu_seconds: float = 0.0
    cached: bool = False
    analysis: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    hlo: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def of_reply(reply: Reply, versions: dict[str, str]) -> CompilerOutcome:
    """The outcome that a worker's answer tells."""
    told = reply.header
    return CompilerOutcome(
        told["kind"],
        told["error_type"],
        told["message"],
        seconds=told["seconds"],
        peak_memory_bytes=told["peak_memory_bytes"],
        cpu_seconds=reply.cpu_seconds,
        analysis=told["analysis"],
        hlo=told.get("hlo", ""),
        versions=versions,
    )


def of_timed_out(late: TimedOut, versions: dict[str, str]) -> CompilerOutcome:
    """The outcome of a compilation that outlasted its time."""
    how = "idle" if late.idle else "still busy"
    return CompilerOutcome(
        "deadlocked" if late.idle else "timed out",
        "TimeoutError",
        f"the compiler was {how} after {late.seconds:.0f} s ({late.cpu_seconds:.0f} s of CPU time)",
        seconds=late.seconds,
        cpu_seconds=late.cpu_seconds,
        versions=versions,
    )


def of_died(died: Died, versions: dict[str, str]) -> CompilerOutcome:
    """The outcome of a compilation that ended its process."""
    return CompilerOutcome(
        "crashed",
        died.signal_name or f"exit code {died.exit_code}",
        last_word(died),
        seconds=died.seconds,
        versions=versions,
    )


def last_word(died: Died) -> str:
    """The line with which a compiler aborted, or what else is known about its end."""
    for line in reversed(died.last_lines):
        if match := _FATAL.search(line):
            return f"{died}: {match[1].strip()}"
    lines = [_LOG_PREFIX.sub("", line) for line in died.last_lines if line.strip()]
    return f"{died}: {lines[-1].strip()}" if lines else str(died)


def kept_or_compiled(
    program: bytes,
    decides: Mapping[str, Any],
    compiled: Callable[[], CompilerOutcome],
    cache: bool,
) -> CompilerOutcome:
    """Return the outcome kept on disk, or compile and keep what will be the same next time.

    Args:
      program: the exported program.
      decides: JSON data, all else that decides the outcome; see `cache.key_of`.
      compiled: compiles.
      cache: read and write the disk cache. `PALLAS_RUNGS_NO_CACHE=1` overrules it.
    """
    if not (cache and disk.cache_allowed()):
        return compiled()
    key = disk.key_of(program, decides)
    if (kept := _kept(key)) is not None:
        return kept
    outcome = compiled()
    if outcome.kind in ("compiled", "refused") or "Check failed" in outcome.message:
        disk.store(key, outcome.to_json())
    return outcome


def _kept(key: str) -> CompilerOutcome | None:
    entry = disk.load(key)
    if entry is None:
        return None
    try:
        return CompilerOutcome(**{**entry, "cached": True})
    except TypeError:  # written by a version with other fields
        return None
