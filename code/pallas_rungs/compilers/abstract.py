"""An abstract device and mesh of a chip that is not there, so that tracing can ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jax.sharding import AbstractDevice, AbstractMesh

from pallas_rungs.compilers.chips import Chip, chip_named


@dataclass(frozen=True)
class _AbstractGPU(AbstractDevice):
    """An abstract device that also tells its architecture, for which Mosaic GPU asks."""

    compute_capability: str


def abstract_device(chip: Chip) -> AbstractDevice:
    """Return the abstract device of a chip."""
    named: dict[str, Any] = {
        "device_kind": chip.device_kind,
        "num_cores": chip.cores,
        "platform": chip.machine.device_platform,
    }
    if not chip.compute_capability:
        return AbstractDevice(**named)
    return _AbstractGPU(**named, compute_capability=chip.compute_capability)


def abstract_mesh(chip: str | Chip) -> AbstractMesh:
    """Return the empty mesh whose abstract device is `chip`.

    Raises:
      ValueError: no such chip is known.
    """
    return AbstractMesh((), (), abstract_device=abstract_device(chip_named(chip)))
