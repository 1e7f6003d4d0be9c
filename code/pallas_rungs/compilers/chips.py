"""The TPU chips that the compiler knows: names, topologies and device kinds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """A TPU chip as libtpu names it.

    Attributes:
      name: the short name that reports use, e.g. `"v5e"`.
      device_kind: what `jax.Device.device_kind` says on that chip, e.g. `"TPU v5 lite"`.
      cores: TensorCores that one jax device of the chip holds (`jax.Device.num_cores`).
      topologies: (number of devices, topology name) from small to large; the first is what a
        program for one device is compiled for.
      aliases: other names that people use.
    """

    name: str
    device_kind: str
    cores: int
    topologies: tuple[tuple[int, str], ...]
    aliases: tuple[str, ...] = ()

    @property
    def topology(self) -> str:
        """The topology that a program for one device is compiled for."""
        return self.topologies[0][1]

    def topology_for(self, devices: int) -> str:
        """Return the smallest topology with at least `devices` devices.

        Raises:
          ValueError: no topology known here is that large.
        """
        for size, name in self.topologies:
            if size >= devices:
                return name
        largest = self.topologies[-1][0]
        raise ValueError(
            f"{self.name}: the program wants {devices} devices; the largest {self.name} topology "
            f"known here has {largest}"
        )


CHIPS: tuple[Chip, ...] = (
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
"""Every chip that libtpu compiles for with none attached. v3 and v2 only when asked for."""

CURRENT_CHIPS: tuple[str, ...] = ("v5e", "v6e", "v5p", "v4", "tpu7x")
"""The chips that the book tries its kernels on."""

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
