"""What the installed jax states of every TPU that it lists.

Nothing is typed here: each chip is asked for under an abstract device of its kind, as a lowering
rule asks. jax states its numbers for one TensorCore, and so does this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import jax
from jax._src.tpu_info import chip_version_from_device_kind
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractDevice, AbstractMesh

DTYPES: Final = ("bfloat16", "int8", "float8", "int4")
"""The kinds of operands that jax has a rate of the matrix units for."""


@dataclass(frozen=True)
class ChipFacts:
    """One TensorCore of a chip, as jax describes it.

    Attributes:
      name: what this book calls the chip: `v5e`, `tpu7x`.
      device_kind: what `jax.Device.device_kind` says, or an alias that jax takes for it.
      generation: of the architecture.
      cores: TensorCores of the chip.
      lanes: columns of a register.
      sublanes: rows of a register, of 32 bits.
      mxus: matrix units.
      mxu_side: columns of a matrix unit.
      vmem: bytes.
      smem: bytes.
      hbm: bytes, the core's share.
      bandwidth: bytes a second between the core and HBM, the core's share.
      rates: dtype -> operations a second of all matrix units, a product and a sum being two. A
        dtype that jax has no rate for is not there.
    """

    name: str
    device_kind: str
    generation: int
    cores: int
    lanes: int
    sublanes: int
    mxus: int
    mxu_side: int
    vmem: int
    smem: int
    hbm: int
    bandwidth: int
    rates: dict[str, int]

    def rate(self, dtype: str = "bfloat16") -> int:
        """Return the operations a second of the matrix units on such operands.

        Raises:
          LookupError: jax states none; the message lists the dtypes that it states one for.
        """
        if dtype not in self.rates:
            raise LookupError(
                f"{self.name}: jax states no rate of the matrix units for {dtype!r}; it has one "
                f"for {', '.join(self.rates)}"
            )
        return self.rates[dtype]

    def ridge(self, dtype: str = "bfloat16") -> float:
        """Return the operations for each byte of HBM at which both limits are equal.

        Raises:
          LookupError: jax states no rate for the dtype.
        """
        return self.rate(dtype) / self.bandwidth

    def implied_clock(self, rows_a_cycle: int = 1) -> float:
        """Return the cycles a second that the rate of bfloat16 asks for.

        Args:
          rows_a_cycle: rows of the left operand that a matrix unit multiplies in a cycle.
        """
        each = 2 * rows_a_cycle * self.mxus * self.mxu_side**2
        return self.rate("bfloat16") / each


def listed_chips() -> tuple[ChipFacts, ...]:
    """Return every chip that the installed jax lists, in its order."""
    return tuple(_facts(version) for version in pltpu.ChipVersion)


@lru_cache(maxsize=64)
def chip_facts(name: str) -> ChipFacts:
    """Return what jax states of a chip.

    Args:
      name: `v5e`, `tpu7x`; a chip of `listed_chips`.

    Raises:
      ValueError: jax lists no such chip; the message has those that it lists.
    """
    named = {_name(version): version for version in pltpu.ChipVersion}
    if name not in named:
        raise ValueError(f"jax lists no TPU {name!r}; it lists {', '.join(named)}")
    return _facts(named[name])


@contextmanager
def as_device(device_kind: str, cores: int = 1) -> Iterator[None]:
    """Have jax trace, lower and answer as for such a TPU, with none attached.

    Args:
      device_kind: as `jax.Device.device_kind` says it.
      cores: TensorCores of the device.
    """
    device = AbstractDevice(device_kind=device_kind, num_cores=cores, platform="tpu")
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        yield


def _name(version: pltpu.ChipVersion) -> str:
    return f"tpu{version}" if str(version)[0].isdigit() else str(version)


def _device_kind(version: pltpu.ChipVersion) -> str:
    """A device kind that jax takes for this chip."""
    said = str(version)
    kinds = (f"TPU {said}", f"TPU{said}", f"TPU {said[:-1]} lite")
    found = [kind for kind in kinds if chip_version_from_device_kind(kind) is version]
    if not found:
        raise ValueError(
            f"jax lists the chip {said!r} under none of the device kinds {', '.join(kinds)}: see "
            "jax._src.tpu_info.chip_version_from_device_kind, and add the form to chip_table.py"
        )
    return found[0]


def _facts(version: pltpu.ChipVersion) -> ChipFacts:
    kind = _device_kind(version)
    with as_device(kind):
        info = pltpu.get_tpu_info()
    rates = (
        info.bf16_ops_per_second,
        info.int8_ops_per_second,
        info.fp8_ops_per_second,
        info.int4_ops_per_second,
    )
    return ChipFacts(
        name=_name(version),
        device_kind=kind,
        generation=info.generation,
        cores=version.num_physical_tensor_cores_per_chip,
        lanes=info.num_lanes,
        sublanes=info.num_sublanes,
        mxus=info.num_mxus,
        mxu_side=info.mxu_column_size,
        vmem=info.vmem_capacity_bytes,
        smem=info.smem_capacity_bytes,
        hbm=info.hbm_capacity_bytes,
        bandwidth=info.mem_bw_bytes_per_second,
        rates={dtype: rate for dtype, rate in zip(DTYPES, rates, strict=True) if rate},
    )
