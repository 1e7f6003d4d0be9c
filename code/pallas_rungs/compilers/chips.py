"""The chips that the compilers know: names, topologies, device kinds, kinds of machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A kind of machine that kernels are written for.

    Attributes:
      name: what reports call it, `"TPU"` or `"GPU"`.
      platform: jax's name of its lowering, `"tpu"` or `"cuda"`.
      device_platform: what `jax.Device.platform` says on it, `"tpu"` or `"gpu"`.
      default_chip: the chip that a kernel is tried for when none is named.
      kernel_calls: targets of the custom calls that kernels become in a lowered module.
    """

    name: str
    platform: str
    device_platform: str
    default_chip: str
    kernel_calls: tuple[str, ...]


TPU = Machine("TPU", "tpu", "tpu", "v5e", ("tpu_custom_call",))
GPU = Machine("GPU", "cuda", "gpu", "h100", ("__gpu$xla.gpu.triton", "mosaic_gpu_v2"))


@dataclass(frozen=True)
class Chip:
    """A chip as its compiler names it.

    Attributes:
      name: the short name that reports use, e.g. `"v5e"`.
      device_kind: what `jax.Device.device_kind` says on that chip, e.g. `"TPU v5 lite"`.
      cores: TensorCores that one jax device of a TPU chip holds (`jax.Device.num_cores`);
        streaming multiprocessors of a GPU.
      topologies: (number of devices, topology name) from small to large; the first is what a
        program for one device is compiled for.
      aliases: other names that people use.
      machine: which kind of machine it is.
      compute_capability: of a GPU, e.g. `"9.0"`; empty for a TPU.
    """

    name: str
    device_kind: str
    cores: int
    topologies: tuple[tuple[int, str], ...]
    aliases: tuple[str, ...] = ()
    machine: Machine = TPU
    compute_capability: str = ""

    @property
    def topology(self) -> str:
        """The topology that a program for one device is compiled for."""
        return self.topologies[0][1]


TPU_CHIPS: tuple[Chip, ...] = (
    Chip(
        "v5e",
        "TPU v5 lite",
        1,
        ((1, "v5e:1x1"), (2, "v5e:1x2"), (4, "v5e:2x2"), (8, "v5e:2x4"), (16, "v5e:4x4")),
        ("v5litepod", "v5lite"),
    ),
    Chip(
        "v6e",
        "TPU v6 lite",
        1,
        ((1, "v6e:1x1"), (2, "v6e:1x2"), (4, "v6e:2x2"), (8, "v6e:2x4"), (16, "v6e:4x4")),
        ("v6lite", "trillium"),
    ),
    Chip(
        "v5p",
        "TPU v5",
        2,
        ((4, "v5p:2x2x1"), (8, "v5p:2x2x2"), (16, "v5p:2x2x4")),
        ("v5",),
    ),
    Chip("v4", "TPU v4", 1, ((8, "v4:2x2x1"), (16, "v4:2x2x2"), (32, "v4:2x2x4"))),
    Chip(
        "tpu7x",
        "TPU7x",
        1,
        ((8, "tpu7x:2x2x1"), (16, "tpu7x:2x2x2")),
        ("v7x", "7x", "v7", "ironwood"),
    ),
    Chip("v3", "TPU v3", 1, ((8, "v3:2x2"), (32, "v3:4x4"))),
    Chip("v2", "TPU v2", 1, ((8, "v2:2x2"),)),
)
"""Every TPU chip that libtpu compiles for with none attached. v3 and v2 only when asked for."""

_GPUS = ((1, "1x1x1"), (2, "1x1x2"), (4, "1x1x4"), (8, "1x1x8"))
"""Slices × hosts × devices of a host."""

GPU_CHIPS: tuple[Chip, ...] = (
    Chip(
        "h100",
        "NVIDIA H100 80GB HBM3",
        132,
        _GPUS,
        ("sm90", "sm90a", "sm_90", "sm_90a", "hopper"),
        GPU,
        "9.0",
    ),
    Chip(
        "b200",
        "NVIDIA B200",
        148,
        _GPUS,
        ("sm100", "sm100a", "sm_100", "sm_100a", "blackwell"),
        GPU,
        "10.0",
    ),
    Chip(
        "a100",
        "NVIDIA A100-SXM4-80GB",
        108,
        _GPUS,
        ("sm80", "sm_80", "ampere"),
        GPU,
        "8.0",
    ),
)
"""The GPUs that the CUDA compiler is tried for with none attached."""

CHIPS: tuple[Chip, ...] = TPU_CHIPS + GPU_CHIPS

CURRENT_CHIPS: tuple[str, ...] = ("v5e", "v6e", "v5p", "v4", "tpu7x")
"""The TPU chips that the book tries its kernels on."""

_BY_NAME = {
    name.lower(): chip for chip in CHIPS for name in (chip.name, chip.device_kind, *chip.aliases)
}


def chip_named(name: str | Chip) -> Chip:
    """Return the chip of that name, alias or device kind (upper or lower case).

    Raises:
      ValueError: no such chip; the message lists those there are.
    """
    if isinstance(name, Chip):
        return name
    try:
        return _BY_NAME[name.strip().lower()]
    except KeyError:
        known = ", ".join(
            chip.name if not chip.aliases else f"{chip.name} (or {chip.aliases[0]})"
            for chip in CHIPS
        )
        raise ValueError(f"unknown chip {name!r}; the chips are {known}") from None


def names_of(chips: Iterable[Chip]) -> str:
    """Return the chips' names, with commas."""
    return ", ".join(chip.name for chip in chips)
