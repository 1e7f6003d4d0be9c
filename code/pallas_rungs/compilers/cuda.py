"""The CUDA compiler of jax's plugin, with no GPU: it compiles in a worker process.

The plugin holds ptxas, so a kernel goes all the way to machine code. As with `libtpu`, nothing that
a program does to the compiler raises here: LLVM aborts its process for an instruction that the chip
does not have, and that is an outcome too.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from dataclasses import replace

from pallas_rungs.compilers.chips import GPU, GPU_CHIPS, Chip, chip_named, names_of
from pallas_rungs.compilers.cuda_report import nvdisasm
from pallas_rungs.compilers.cuda_target import target_config
from pallas_rungs.compilers.outcome import CompilerOutcome, kept_or_compiled, of_reply
from pallas_rungs.compilers.packages import installed_version
from pallas_rungs.compilers.process import Reply, Worker
from pallas_rungs.compilers.service import ServiceWorker
from pallas_rungs.compilers.shared_worker import SharedWorker, ask

PLUGIN = "jax-cuda13-plugin"
DISASSEMBLER = "nvidia-cuda-nvdisasm"
DOWNLOAD = "150 MB to download, 400 MB of disk"
"""What the two packages cost, and what comes with them."""

WORKER_ENVIRONMENT: dict[str, str | None] = {
    "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
    "JAX_COMPILATION_CACHE_DIR": None,
    "JAX_DEBUG_NANS": None,
}
"""What the plugin wants on a machine without a GPU and without CUDA's libraries."""


def new_worker() -> Worker:
    """Return a worker that compiles for GPUs; it starts with its first program."""
    return Worker("pallas_rungs.compilers.cuda_worker", env=WORKER_ENVIRONMENT)


_worker = SharedWorker(new_worker)
_worker_is_for = ""


def plugin_version() -> str | None:
    """Version of the installed CUDA plugin, or None."""
    if importlib.util.find_spec("jax_plugins") is None:
        return None
    if importlib.util.find_spec("jax_plugins.xla_cuda13") is None:
        return None
    try:
        return importlib.metadata.version(PLUGIN)
    except importlib.metadata.PackageNotFoundError:
        return None


def why_unavailable() -> str:
    """Say why the CUDA compiler cannot be used here and what to install; empty when it can."""
    if plugin_version() is not None:
        return ""
    if sys.platform != "linux":
        return (
            "jax's CUDA plugin exists for Linux only; "
            "on another system climb this rung in a Linux container"
        )
    return (
        f"the CUDA compiler is an optional extra ({DOWNLOAD}) and not installed; "
        f"install it with: {install_line()}"
    )


def install_line() -> str:
    """The command that installs the plugin which the installed jax names, and the disassembler."""
    return (
        f'{sys.executable} -m pip install "{PLUGIN}=={installed_version("jaxlib")}" {DISASSEMBLER}'
    )


def compile_exported(
    serialized: bytes,
    chip: str | Chip,
    *,
    time_limit: float = 120.0,
    cache: bool = False,
    listings: bool = False,
) -> CompilerOutcome:
    """Compile an exported program for a GPU.

    Args:
      serialized: what `jax.export.Exported.serialize` gave for the platform `cuda`.
      chip: a name or alias from `chips.GPU_CHIPS`.
      time_limit: seconds for this program; the worker's start-up is not counted.
      cache: read and write the disk cache. `PALLAS_RUNGS_NO_CACHE=1` overrules it.
      listings: have PTX and machine code of each kernel in the outcome's analysis.

    Returns:
      The outcome. Nothing that the program does to the compiler raises.

    Raises:
      ValueError: no such GPU.
    """
    chip = chip_named(chip)
    if chip.machine is not GPU:
        raise ValueError(
            f"the CUDA compiler compiles for GPUs, and {chip.name} is a {chip.machine.name}; "
            f"its chips are {names_of(GPU_CHIPS)}"
        )
    if reason := why_unavailable():
        return CompilerOutcome("unavailable", "", reason)
    versions = installed_versions()
    target = target_config(chip)
    decides = {
        "target": target,
        "topologies": chip.topologies,
        "versions": versions,
        "disassembler": nvdisasm() is not None,
        "listings": listings,
    }

    def compiled() -> CompilerOutcome:
        request = {"target": target, "topologies": list(chip.topologies), "listings": listings}
        answer = ask(_worker_for(chip), request, serialized, time_limit, versions)
        return _answered(answer, versions) if isinstance(answer, Reply) else answer

    return kept_or_compiled(serialized, decides, compiled, cache)


def installed_versions() -> dict[str, str]:
    """Versions of jax, jaxlib and the plugin, read without importing them."""
    found = {name: installed_version(name) or "none" for name in ("jax", "jaxlib")}
    return {**found, PLUGIN: plugin_version() or "none"}


def _worker_for(chip: Chip) -> Worker | ServiceWorker:
    """Return the worker, a fresh one if the last one compiled for another chip.

    Mosaic GPU goes on telling ptxas of the first architecture that a process compiled for, and
    ptxas then refuses programs for a newer one.
    """
    global _worker_is_for
    if _worker_is_for not in ("", chip.name):
        _worker.close()
    _worker_is_for = chip.name
    return _worker.get()


def close() -> None:
    """End the worker. The next program starts a new one."""
    _worker.close()


def warm_up() -> None:
    """Start the worker now, without waiting for it, where the plugin is installed."""
    if not why_unavailable():
        _worker.start()


def _answered(reply: Reply, versions: dict[str, str]) -> CompilerOutcome:
    outcome = of_reply(reply, versions)
    if outcome.kind == "unavailable" and versions[PLUGIN] != versions["jaxlib"]:
        message = (
            f"{PLUGIN} {versions[PLUGIN]} does not go with jaxlib {versions['jaxlib']}; "
            f"install the one that does: {install_line()}\n{outcome.message}"
        )
        return replace(outcome, message=message)
    return outcome
