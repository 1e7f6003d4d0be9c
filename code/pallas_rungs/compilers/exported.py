"""What the compilers' workers share: compiling an exported program for devices of a topology."""

from __future__ import annotations

import math
import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Compiled:
    """A program that a worker compiled.

    Attributes:
      exported: what `jax.export.deserialize` gave.
      devices: those of the topology that it was compiled for.
      executable: what jax's `Lowered.compile` gave.
    """

    exported: Any
    devices: list[Any]
    executable: Any


def compile_in_stages(
    serialized: bytes, topologies: list[tuple[int, str]], make: Callable[[str], Any]
) -> tuple[dict[str, Any], Compiled | None]:
    """Compile an exported program for the smallest topology that has devices enough.

    Args:
      serialized: what `jax.export.Exported.serialize` gave.
      topologies: numbers of devices and names, from small to large.
      make: returns the topology of a name.

    Returns:
      A worker's answer without what only that worker adds: `kind` ("compiled", "refused" or
      "unavailable"), `error_type`, `message`, `stage`, `seconds`, `analysis`, which is empty; and
      what was compiled, None where nothing was.
    """
    start = time.monotonic()
    answer: dict[str, Any] = {"kind": "compiled", "error_type": "", "message": "", "analysis": {}}
    found = None
    stage = "reading the exported program"
    try:
        from jax import export

        exported = export.deserialize(bytearray(serialized))
        stage = "making the topology"
        wanted = exported.nr_devices
        fitting = [name for size, name in topologies if size >= wanted]
        if not fitting:
            raise ValueError(
                f"the program wants {wanted} devices; the topologies known: {topologies}"
            )
        devices = list(make(fitting[0]).devices[:wanted])
        stage = "lowering"
        lowered = lower_for(exported, devices)
        stage = "compiling"
        found = Compiled(exported, devices, lowered.compile())
    except Exception as error:
        answer["kind"] = "unavailable" if stage == "making the topology" else "refused"
        answer["error_type"] = type(error).__name__
        answer["message"] = str(error)
    return {**answer, "stage": stage, "seconds": time.monotonic() - start}, found


def lower_for(exported: Any, devices: list[Any]) -> Any:
    """Return an exported program, lowered for devices that need not be attached.

    Args:
      exported: what `jax.export.deserialize` gave.
      devices: as many devices of a topology as the program spans.
    """
    import jax
    import numpy as np

    if exported.nr_devices == 1:
        whole: Any = jax.sharding.SingleDeviceSharding(devices[0])
        shardings: Any = [whole] * len(exported.in_avals)
    else:
        names, sizes = _mesh_axes(exported)
        mesh = jax.sharding.Mesh(np.asarray(devices).reshape(sizes), names)
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        shardings = [given or whole for given in exported.in_shardings_jax(mesh)]
    leaves = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)
        for aval, sharding in zip(exported.in_avals, shardings, strict=True)
    ]
    args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
    # A program without arguments learns its devices from where its results go.
    outputs = {} if shardings else {"out_shardings": whole}
    return jax.jit(exported.call, **outputs).trace(*args, **kwargs).lower()


_MESH = re.compile(r"sdy\.mesh @\S+ = <\[([^\]]*)\]")
_MESH_AXIS = re.compile(r'"([^"]+)"=(\d+)')


def _mesh_axes(exported: Any) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return names and sizes of the axes of the program's mesh, of one axis where it tells none.

    A program that was sharded over a mesh of two axes is not accepted on a mesh of one.
    """
    for mesh in _MESH.findall(exported.mlir_module()):
        axes = _MESH_AXIS.findall(mesh)
        sizes = tuple(int(size) for _, size in axes)
        if axes and math.prod(sizes) == exported.nr_devices:
            return tuple(name for name, _ in axes), sizes
    return ("devices",), (exported.nr_devices,)


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024
