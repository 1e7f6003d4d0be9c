"""The process in which libtpu compiles. Its environment is set by `libtpu.py` before it starts."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Callable
from typing import Any

from pallas_rungs.compilers.exported import compile_in_stages, peak_memory
from pallas_rungs.compilers.wire import read_frame, write_frame


def main(request_fd: int, reply_fd: int) -> None:
    """Import jax and libtpu, say so, then compile what comes until the end of the stream."""
    write_frame(reply_fd, get_ready())
    while (frame := read_frame(request_fd)) is not None:
        header, blob = frame
        write_frame(reply_fd, compile_program(header, blob))


def get_ready() -> dict[str, Any]:
    """Import what compiling needs. Returns what the worker says when it is ready."""
    faulthandler.disable()  # an abort of the compiler says what was wrong; Python's stack adds none
    import jax
    import jax.experimental.topologies
    import jax.export

    return {"jax": jax.__version__}


def compile_program(request: dict[str, Any], serialized: bytes) -> dict[str, Any]:
    """Compile one exported program.

    Args:
      request: `topologies`, a list of [devices, name] from small to large; `hlo`, true to have the
        optimised HLO in the answer.
      serialized: what `jax.export.Exported.serialize` gave, for the platform `tpu`.

    Returns:
      JSON data: `kind` ("compiled", "refused" or "unavailable"), `error_type`, `message`, `stage`,
      `seconds`, `peak_memory_bytes` of this process so far, `analysis`, `hlo`.
    """
    answer, found = compile_in_stages(serialized, request["topologies"], _topology)
    if found is not None:
        answer["analysis"] = _analysis(found.executable, found.devices)
        answer["hlo"] = found.executable.as_text() if request.get("hlo") else ""
    return {**answer, "peak_memory_bytes": peak_memory()}


def _topology(name: str) -> Any:
    from jax.experimental import topologies

    return topologies.get_topology_desc(topology_name=name, platform="tpu")


def _analysis(compiled: Any, devices: list[Any]) -> dict[str, Any]:
    analysis: dict[str, Any] = {
        "device_kind": devices[0].device_kind,
        "devices": len(devices),
        "tpu_custom_calls": compiled.as_text().count('custom_call_target="tpu_custom_call"'),
    }
    memory = _asked(compiled.memory_analysis)
    if memory is not None:
        analysis["memory"] = {
            name: int(getattr(memory, name))
            for name in dir(memory)
            if name.endswith("_in_bytes") and not name.startswith("host_")
        }
    cost = _asked(compiled.cost_analysis)
    if cost:
        analysis["cost"] = {name: float(value) for name, value in cost.items() if "{" not in name}
    return analysis


def _asked(analysis: Callable[[], Any]) -> Any:
    """What an analysis says, or None where this compiler does not offer it."""
    try:
        return analysis()
    except Exception as error:
        print(f"{analysis.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
