"""Describing a GPU that is not attached to the CUDA compiler: XLA's `GpuTargetConfigProto`."""

from __future__ import annotations

from dataclasses import dataclass

from pallas_rungs.compilers.chips import Chip

_KIB = 1024


@dataclass(frozen=True)
class Limits:
    """What the compiler asks of a GPU, beside its name and number of cores.

    Attributes:
      fpus_per_core: float32 lanes of a streaming multiprocessor.
      shared_memory_per_core: bytes.
      memory_bandwidth: bytes a second.
      l2_cache: bytes.
      clock_ghz: of the cores.
      memory: bytes.
      accelerated: whether its architecture has instructions of its own (sm_90a, sm_100a).
    """

    fpus_per_core: int
    shared_memory_per_core: int
    memory_bandwidth: int
    l2_cache: int
    clock_ghz: float
    memory: int
    accelerated: bool

    @property
    def shared_memory_per_block(self) -> int:
        """The most that one block may have, in bytes: all of the core's but 1 KiB."""
        return self.shared_memory_per_core - _KIB


LIMITS: dict[str, Limits] = {
    "a100": Limits(
        64, 164 * _KIB, 2_039_040_000_000, 40 * _KIB**2, 1.41, 85_100_068_864, accelerated=False
    ),
    "h100": Limits(
        128, 228 * _KIB, 3_352_320_000_000, 50 * _KIB**2, 1.98, 84_942_979_072, accelerated=True
    ),
    "b200": Limits(
        128, 228 * _KIB, 7_672_320_000_000, 132_644_864, 1.965, 191_514_411_008, accelerated=True
    ),
}
"""Of each GPU in `chips.GPU_CHIPS`."""


def target_config(chip: Chip) -> str:
    """Return the description of a GPU, as the text form of a protocol buffer.

    Raises:
      KeyError: no such GPU is known.
    """
    limits = LIMITS[chip.name]
    major, minor = chip.compute_capability.split(".")
    features = "ACCELERATED_FEATURES" if limits.accelerated else "NONE"
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: {48 * _KIB}
  shared_memory_per_core: {limits.shared_memory_per_core}
  shared_memory_per_block_optin: {limits.shared_memory_per_block}
  threads_per_core_limit: 2048
  core_count: {chip.cores}
  fpus_per_core: {limits.fpus_per_core}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {limits.memory_bandwidth}
  l2_cache_size: {limits.l2_cache}
  clock_rate_ghz: {limits.clock_ghz}
  device_memory_size: {limits.memory}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {features} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
runtime_version {{ major: 13 minor: 0 patch: 0 }}
device_description_str: "{chip.device_kind}"
"""
