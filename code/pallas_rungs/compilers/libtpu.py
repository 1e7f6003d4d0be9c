"""libtpu, the TPU's compiler, with no TPU: it compiles in a worker process.

`compile_exported` never raises for what a program does to the compiler: a refusal, an abort and a
time-out are outcomes. The worker stays warm between calls and ends with this process.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from dataclasses import replace

from pallas_rungs.compilers.chips import TPU, TPU_CHIPS, Chip, chip_named, names_of
from pallas_rungs.compilers.outcome import CompilerOutcome, kept_or_compiled, of_reply
from pallas_rungs.compilers.packages import installed_version
from pallas_rungs.compilers.process import Reply, Worker
from pallas_rungs.compilers.service import ADDRESS_VARIABLE, Service, ServiceWorker
from pallas_rungs.compilers.shared_worker import SharedWorker, ask

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
      chip: a name or alias from `chips.TPU_CHIPS`.
      time_limit: seconds for this program; the worker's start-up is not counted.
      cache: read and write the disk cache. `PALLAS_RUNGS_NO_CACHE=1` overrules it.
      hlo: have the optimised HLO in the outcome.

    Returns:
      The outcome. Nothing that the program does to the compiler raises.

    Raises:
      ValueError: no such TPU chip.
    """
    chip = chip_named(chip)
    if chip.machine is not TPU:
        raise ValueError(
            f"libtpu compiles for TPUs, and {chip.name} is a {chip.machine.name}; "
            f"its chips are {names_of(TPU_CHIPS)}"
        )
    if reason := why_unavailable():
        return CompilerOutcome("unavailable", "", reason)
    versions = installed_versions()
    decides = {
        "topologies": chip.topologies,
        "versions": versions,
        "flags": os.environ.get(FLAGS_VARIABLE, ""),
        "hlo": hlo,
    }
    return kept_or_compiled(
        serialized, decides, lambda: _compile(serialized, chip, time_limit, versions, hlo), cache
    )


def installed_versions() -> dict[str, str]:
    """Versions of jax, jaxlib and libtpu, read without importing them."""
    found = {name: installed_version(name) or "none" for name in ("jax", "jaxlib")}
    return {**found, "libtpu": libtpu_version() or "none"}


def new_worker() -> Worker:
    """Return a worker that compiles with libtpu; it starts with its first program."""
    return Worker("pallas_rungs.compilers.libtpu_worker", env=WORKER_ENVIRONMENT)


def service(workers: int) -> Service:
    """Return a service of that many workers, for processes whose `ADDRESS_VARIABLE` names it."""
    return Service(new_worker, workers)


def _own_or_a_services() -> Worker | ServiceWorker:
    """Return a worker: a service's, where one is named and this process sets no flags.

    A service's workers were started with the flags of another process.
    """
    address = os.environ.get(ADDRESS_VARIABLE)
    flags = os.environ.get(FLAGS_VARIABLE, "")
    return ServiceWorker(address) if address and not flags else new_worker()


_worker = SharedWorker(_own_or_a_services, follows=(FLAGS_VARIABLE,))


def warm_up() -> None:
    """Start the worker now, without waiting for it, where libtpu is installed."""
    if not why_unavailable():
        _worker.start()


def close() -> None:
    """End the worker. The next program starts a new one."""
    _worker.close()


def _compile(
    serialized: bytes, chip: Chip, time_limit: float, versions: dict[str, str], hlo: bool
) -> CompilerOutcome:
    request = {"topologies": list(chip.topologies), "hlo": hlo}
    answer = ask(_worker.get(), request, serialized, time_limit, versions)
    return answered(answer, versions) if isinstance(answer, Reply) else answer


def answered(reply: Reply, versions: dict[str, str]) -> CompilerOutcome:
    """The outcome that a worker's answer tells."""
    outcome = of_reply(reply, versions)
    if "Invalid TPU external name" in outcome.message:
        message = (
            f"libtpu {versions['libtpu']} is too old for this chip; the installed jax "
            f"{versions['jax']} goes with: {install_line()}\n{outcome.message}"
        )
        return replace(outcome, kind="unavailable", message=message)
    return outcome
