"""libtpu, the TPU's compiler, with no TPU: it compiles in a worker process.

`compile_exported` never raises for what a program does to the compiler: a refusal, an abort and a
time-out are outcomes. The worker stays warm between calls and ends with this process.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from pallas_rungs.compilers import cache as disk
from pallas_rungs.compilers.chips import Chip, chip_named
from pallas_rungs.compilers.process import Died, Reply, TimedOut, Worker, WorkerStartError
from pallas_rungs.compilers.service import ADDRESS_VARIABLE, Service, ServiceWorker

WORKER_ENVIRONMENT: dict[str, str | None] = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
    "TPU_LOG_DIR": "disabled",
    "XLA_FLAGS": None,
    "JAX_COMPILATION_CACHE_DIR": None,
    "JAX_DEBUG_NANS": None,
}
"""What libtpu wants on a machine without a TPU. Set in the worker only."""

FLAGS_VARIABLE = "LIBTPU_INIT_ARGS"
"""libtpu's own flags, taken from this process's environment; part of the cache's key."""

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
      analysis: `device_kind`, `devices`, `tpu_custom_calls`, and where the compiler tells them
        `memory` (bytes by name) and `cost` (`flops`, `bytes accessed`, …).
      versions: of jax, jaxlib and libtpu.
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


def libtpu_version() -> str | None:
    """Version of the installed libtpu, or None."""
    if importlib.util.find_spec("libtpu") is None:
        return None
    for name in ("libtpu", "libtpu-nightly"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"


def why_unavailable() -> str:
    """Say why libtpu cannot be used here and what to install; empty when it can."""
    if libtpu_version() is not None:
        return ""
    if sys.platform != "linux":
        return (
            "libtpu, the TPU's compiler, exists for Linux only; "
            "on another system climb this rung in a Linux x86-64 container"
        )
    return f"libtpu, the TPU's compiler, is not installed; install it with: {install_line()}"


def install_line() -> str:
    """The command that installs the libtpu which the installed jax names."""
    return f'{sys.executable} -m pip install "libtpu{wanted_libtpu()}"'


def wanted_libtpu() -> str:
    """The libtpu that the installed jax names, e.g. `==0.0.50.*`; empty where it names none."""
    try:
        for line in importlib.metadata.requires("jax") or ():
            if match := re.match(r"libtpu\s*([=<>!~][^;]*?)\s*;", line):
                return match[1].strip().strip("()")
    except importlib.metadata.PackageNotFoundError:
        pass
    return ""


def compile_exported(
    serialized: bytes,
    chip: str | Chip,
    *,
    time_limit: float = 120.0,
    cache: bool = False,
    hlo: bool = False,
) -> CompilerOutcome:
    """Compile an exported program for a chip.

    Args:
      serialized: what `jax.export.Exported.serialize` gave for the platform `tpu`. A program for
        several devices is compiled for as many devices of a topology of that chip.
      chip: a name or alias from `chips.CHIPS`.
      time_limit: seconds for this program; the worker's start-up is not counted.
      cache: read and write the disk cache. `PALLAS_RUNGS_NO_CACHE=1` overrules it.
      hlo: have the optimised HLO in the outcome.

    Returns:
      The outcome. Nothing that the program does to the compiler raises.

    Raises:
      ValueError: no such chip.
    """
    chip = chip_named(chip)
    if reason := why_unavailable():
        return CompilerOutcome("unavailable", "", reason)
    versions = installed_versions()
    key = ""
    if cache and disk.cache_allowed():
        key = disk.key_of(
            serialized,
            {
                "topologies": chip.topologies,
                "versions": versions,
                "flags": os.environ.get(FLAGS_VARIABLE, ""),
                "hlo": hlo,
            },
        )
        kept = _kept(key)
        if kept is not None:
            return kept
    outcome = _compile(serialized, chip, time_limit, versions, hlo)
    if key and (outcome.kind in ("compiled", "refused") or "Check failed" in outcome.message):
        disk.store(key, outcome.to_json())
    return outcome


def installed_versions() -> dict[str, str]:
    """Versions of jax, jaxlib and libtpu, read without importing them."""
    found = {}
    for name in ("jax", "jaxlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return {**found, "libtpu": libtpu_version() or "none"}


_worker: Worker | ServiceWorker | None = None
_worker_flags = ""
_worker_lock = threading.Lock()


def warm_up() -> None:
    """Start the worker now, without waiting for it, where libtpu is installed."""
    if not why_unavailable():
        with contextlib.suppress(WorkerStartError):  # told when a program comes
            _shared_worker().start()


def close() -> None:
    """End the worker. The next program starts a new one."""
    global _worker
    with _worker_lock:
        worker, _worker = _worker, None
    if worker is not None:
        worker.close()


def new_worker() -> Worker:
    """Return a worker that compiles with libtpu; it starts with its first program."""
    return Worker("pallas_rungs.compilers.libtpu_worker", env=WORKER_ENVIRONMENT)


def service(workers: int) -> Service:
    """Return a service of that many workers, for processes whose `ADDRESS_VARIABLE` names it."""
    return Service(new_worker, workers)


def _shared_worker() -> Worker | ServiceWorker:
    """The worker of this process, made anew when libtpu's flags have changed.

    A service's workers were started with the flags of another process: with flags of its own, a
    process has a worker of its own.
    """
    global _worker, _worker_flags
    flags = os.environ.get(FLAGS_VARIABLE, "")
    with _worker_lock:
        if _worker is None or flags != _worker_flags:
            if _worker is not None:
                _worker.close()
            address = os.environ.get(ADDRESS_VARIABLE)
            _worker = ServiceWorker(address) if address and not flags else new_worker()
            _worker_flags = flags
        return _worker


def _compile(
    serialized: bytes, chip: Chip, time_limit: float, versions: dict[str, str], hlo: bool
) -> CompilerOutcome:
    worker = _shared_worker()
    start = time.monotonic()
    try:
        outcome = worker.request(
            {"topologies": list(chip.topologies), "hlo": hlo}, serialized, time_limit=time_limit
        )
    except WorkerStartError as error:
        return CompilerOutcome(
            "unavailable",
            type(error).__name__,
            str(error),
            seconds=time.monotonic() - start,
            versions=versions,
        )
    if isinstance(outcome, Reply):
        return _answered(outcome, versions)
    if isinstance(outcome, TimedOut):
        how = "idle" if outcome.idle else "still busy"
        return CompilerOutcome(
            "deadlocked" if outcome.idle else "timed out",
            "TimeoutError",
            f"the compiler was {how} after {outcome.seconds:.0f} s "
            f"({outcome.cpu_seconds:.0f} s of CPU time)",
            seconds=outcome.seconds,
            cpu_seconds=outcome.cpu_seconds,
            versions=versions,
        )
    return CompilerOutcome(
        "crashed",
        outcome.signal_name or f"exit code {outcome.exit_code}",
        last_word(outcome),
        seconds=outcome.seconds,
        versions=versions,
    )


def _answered(reply: Reply, versions: dict[str, str]) -> CompilerOutcome:
    header = reply.header
    kind, message = header["kind"], header["message"]
    if "Invalid TPU external name" in message:
        kind = "unavailable"
        message = (
            f"libtpu {versions['libtpu']} is too old for this chip; the installed jax "
            f"{versions['jax']} goes with: {install_line()}\n{message}"
        )
    return CompilerOutcome(
        kind,
        header["error_type"],
        message,
        seconds=header["seconds"],
        peak_memory_bytes=header["peak_memory_bytes"],
        cpu_seconds=reply.cpu_seconds,
        analysis=header["analysis"],
        hlo=header.get("hlo", ""),
        versions=versions,
    )


def last_word(died: Died) -> str:
    """The line with which a compiler aborted, or what else is known about its end."""
    for line in reversed(died.last_lines):
        if match := _FATAL.search(line):
            return f"{died}: {match[1].strip()}"
    lines = [_LOG_PREFIX.sub("", line) for line in died.last_lines if line.strip()]
    return f"{died}: {lines[-1].strip()}" if lines else str(died)


def _kept(key: str) -> CompilerOutcome | None:
    entry = disk.load(key)
    if entry is None:
        return None
    try:
        return CompilerOutcome(**{**entry, "cached": True})
    except TypeError:  # written by a version with other fields
        return None
