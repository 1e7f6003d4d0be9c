"""Naming a chip to code that asks which machine it runs on.

Pallas looks at the device to check 1-D blocks, scalar stores and pipelines, and many kernels look
at it to choose block sizes or to fall back to plain jax.numpy. On a machine without the chip they
see a CPU. Four levels name the chip ever more insistently:

0. nothing: the CPU is what it is;
1. an abstract device in jax's own mesh context (`jax.sharding.use_abstract_mesh`);
2. the same, and `jax.devices`, `jax.default_backend` and their kin answer for the chip;
3. the same, and `jax.default_device` holds the pretend device.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import jax

from pallas_rungs.compilers.abstract import abstract_mesh
from pallas_rungs.compilers.chips import GPU, TPU, Machine, chip_named

DEFAULT_CHIP = TPU.default_chip
HIGHEST_LEVEL = 3

LEVELS = (
    "no chip named",
    "an abstract device names the chip",
    "jax.devices and jax.default_backend answer for the chip",
    "jax.default_device is the chip",
)


@dataclass(frozen=True)
class Pretend:
    """Which chip is named, how insistently, and why."""

    chip: str = DEFAULT_CHIP
    level: int = 0
    why: str = ""

    def raised(self, why: str) -> Pretend:
        """Return the next level, with the reason for it."""
        return Pretend(self.chip, self.level + 1, why)

    def to_json(self) -> dict[str, Any]:
        """Return what the verdict's details say about it."""
        return {
            "level": self.level,
            "chip": self.chip if self.level else "",
            "how": LEVELS[self.level],
            "why": self.why,
        }

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Name the chip for the duration of the block.

        Raises:
          ValueError: no such chip is known.
        """
        with contextlib.ExitStack() as stack:
            if self.level >= 1:
                stack.enter_context(jax.sharding.use_abstract_mesh(abstract_mesh(self.chip)))
            if self.level >= 2:
                stack.enter_context(_machine_answers_for(self.chip))
            if self.level >= 3:
                stack.enter_context(_default_device(PretendDevice.of(self.chip)))
            yield


@dataclass(frozen=True)
class PretendDevice:
    """A stand-in for a `jax.Device` of the chip, for code that only reads its properties."""

    device_kind: str
    num_cores: int
    id: int = 0
    platform: str = "tpu"
    compute_capability: str = ""
    process_index: int = 0
    host_id: int = 0
    local_hardware_id: int = 0
    coords: tuple[int, int, int] = (0, 0, 0)
    core_on_chip: int = 0
    slice_index: int = 0

    @classmethod
    def of(cls, chip: str) -> PretendDevice:
        """Return the stand-in for `chip`."""
        found = chip_named(chip)
        return cls(
            found.device_kind,
            found.cores,
            platform=found.machine.device_platform,
            compute_capability=found.compute_capability,
        )

    @property
    def core_count(self) -> int:
        """What a GPU calls the number of its cores."""
        return self.num_cores

    @property
    def client(self) -> PretendClient:
        """The backend, as far as code reads it."""
        return PretendClient((self,), self.platform)

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes of a TPU's HBM, all of them free; nothing is known here of a GPU's."""
        from jax.experimental.pallas import tpu as pltpu

        if self.platform != "tpu":
            return None
        with jax.sharding.use_abstract_mesh(abstract_mesh(self.device_kind)):
            size = int(pltpu.get_tpu_info().hbm_capacity_bytes)
        return {"bytes_limit": size, "bytes_in_use": 0, "peak_bytes_in_use": 0}

    def __str__(self) -> str:
        return f"{self.platform.upper()}_{self.id}(pretended {self.device_kind})"


@dataclass(frozen=True)
class PretendClient:
    """A stand-in for the backend, for code that reads its platform."""

    held: tuple[PretendDevice, ...]
    platform: str = "tpu"
    platform_version: str = "pretended"

    def devices(self) -> list[PretendDevice]:
        """The devices of the backend."""
        return list(self.held)

    def local_devices(self) -> list[PretendDevice]:
        """The devices of this process."""
        return list(self.held)

    def device_count(self) -> int:
        """How many devices there are."""
        return len(self.held)


@contextlib.contextmanager
def _machine_answers_for(chip: str) -> Iterator[None]:
    """Make the public questions about the machine answer for `chip`.

    Only the names that user code calls are replaced; jax's own machinery keeps its own references,
    so tracing, evaluating and exporting still work on the CPU.
    """
    import jax.extend.backend
    from jax._src import tpu_info

    device = PretendDevice.of(chip)
    machine = chip_named(chip).machine
    answers = {machine.device_platform, machine.platform}
    cpu_devices, cpu_local_devices = jax.devices, jax.local_devices

    def devices(backend: Any = None) -> list[Any]:
        if backend is not None and str(backend) not in answers:
            return list(cpu_devices(backend))
        return [_numbered(device, i) for i in range(len(cpu_devices()))]

    def local_devices(process_index: Any = None, backend: Any = None, host_id: Any = None) -> Any:
        if backend is not None and str(backend) not in answers:
            return cpu_local_devices(process_index, backend, host_id)
        return devices()

    def default_backend() -> str:
        return device.platform

    def get_backend(platform: Any = None) -> PretendClient:
        return device.client

    def get_default_device() -> PretendDevice:
        return device

    replacements: list[tuple[Any, str, Any]] = [
        (jax, "devices", devices),
        (jax, "local_devices", local_devices),
        (jax, "default_backend", default_backend),
        (jax.extend.backend, "get_backend", get_backend),
        (jax.extend.backend, "get_default_device", get_default_device),
        (tpu_info, "get_device_kind", lambda: device.device_kind),
        (tpu_info, "get_num_device_cores", lambda: device.num_cores),
    ]
    jax.clear_caches()
    with contextlib.ExitStack() as stack:
        for owner, name, value in replacements:
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, value))
        try:
            yield
        finally:
            jax.clear_caches()


def _numbered(device: PretendDevice, index: int) -> PretendDevice:
    return dataclasses.replace(device, id=index, coords=(index, 0, 0))


@contextlib.contextmanager
def _default_device(device: Any) -> Iterator[None]:
    """Make `jax.config.jax_default_device` read as `device` in user code."""
    config = type(jax.config)
    with mock.patch.object(config, "jax_default_device", property(lambda _: device)):
        yield


_CHIP_UNNAMED = re.compile(
    r"Unsupported [TG]PU device kind|use_abstract_mesh|specify an abstract GPU device"
)
_ASKED_A_CPU_FOR_CORES = re.compile(r"^AttributeError:\s*$")
_SAW_A_CPU = re.compile(
    r"""(?ix) has\ no\ attribute\ '(num_cores|coords|core_on_chip|compute_capability|core_count)'
    | \b(backend|platform|device\ kind|device|hardware|accelerator)\b .* \bcpu\b
    | \bcpu\b .* \b(backend|platform|device|unsupported|not\ supported)\b
    | ^KeyError:\ '(cpu|CPU)'
    | 'NoneType'\ object\ .* \bmemory_stats\(
    | ^AssertionError:\ assert\b .* (platform|backend|device|kind) .* \b(tpu|gpu|cuda)
    | \b([tg]pus?|cuda)\b .* \b(required|requires|only|needed)\b
    | \b([tg]pus?|cuda)\b .* \b(not\ found|unavailable|not\ available)\b
    | \b(require[sd]?|only|need[s]?|no)\b .* \b([tg]pus?|cuda)\b
    | \bno\ .* \b(devices?|backend)\b .* \bfound\b
    | unknown\ (tpu|gpu|device|chip|backend)
    """
)
_NOT_THE_MACHINE = re.compile(
    r"translation rule for primitive|(?:Pallas|Mosaic) (?:TPU|GPU|Triton) lowering"
)
_ASKS_FOR_A_GPU = re.compile(r"(?i)\b(gpus?|cuda|nvidia|compute_capability)\b")
_ASKS_FOR_A_TPU = re.compile(r"(?i)\btpus?\b")


def why_name_the_chip(level: int, message: str) -> str:
    """Return why a program that failed with `message` should be tried at a higher level.

    Args:
      level: the level it was tried at.
      message: the innermost error's type and message.

    Returns:
      The reason in words; empty when naming the chip more insistently would not help.
    """
    if level >= HIGHEST_LEVEL:
        return ""
    first_line = message.strip().split("\n", 1)[0]
    if _CHIP_UNNAMED.search(message):
        return f"it asked for the chip: {first_line[:120]}"
    if _ASKED_A_CPU_FOR_CORES.search(message) and level == 0:
        return "it asked the device for something that a CPU does not have"
    if _SAW_A_CPU.search(first_line) and not _NOT_THE_MACHINE.search(message):
        return f"it looked at the machine: {first_line[:120]}"
    return ""


def why_without_kernel(level: int) -> str:
    """Return why a program without a kernel should be tried at a higher level."""
    return "" if level >= HIGHEST_LEVEL else "no kernel was left in it on this machine"


def machine_asked_for(message: str) -> Machine:
    """Return the machine that a program asked for when it failed with `message`."""
    gpu = _ASKS_FOR_A_GPU.search(message) and not _ASKS_FOR_A_TPU.search(message)
    return GPU if gpu else TPU
