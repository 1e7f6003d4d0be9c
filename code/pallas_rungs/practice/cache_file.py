"""Exercise: name the file in which a kernel's measurements for a chip are kept."""

import re
from collections.abc import Callable

Namer = Callable[[str, str], str]


def starter(op: str, device: str) -> str:
    """Where to begin: the class and the device as they call themselves."""
    return f"{device}/{op}.json"


def solution(op: str, device: str) -> str:
    """Every capital after the first begins a word; a device loses its spaces and nothing else."""
    name = re.sub(r"(?!^)([A-Z])", r"_\1", op).lower()
    return f"{device.lower().replace(' ', '_')}/{name}.json"


def words(op: str, device: str) -> str:
    """Wrong: capitals in a row count as one word."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()
    return f"{device.lower().replace(' ', '_')}/{name}.json"


def no_hyphens(op: str, device: str) -> str:
    """Wrong: a hyphen of the device becomes an underscore too."""
    return solution(op, device.replace("-", " "))


def first_capital(op: str, device: str) -> str:
    """Wrong: the first capital begins a word like any other."""
    name = re.sub(r"([A-Z])", r"_\1", op).lower()
    return f"{device.lower().replace(' ', '_')}/{name}.json"


WRONG: tuple[tuple[Namer, str], ...] = (
    (words, "every capital"),
    (no_hyphens, "spaces"),
    (first_capital, "first capital"),
)

FILES: tuple[tuple[str, str, str, str], ...] = (
    (
        "PallasMosaicGpuRaggedDot",
        "NVIDIA B200",
        "nvidia_b200/pallas_mosaic_gpu_ragged_dot.json",
        "words of a class are parted by underscores, its first capital aside, and all is small",
    ),
    (
        "PallasTritonFlashAttention",
        "NVIDIA A100-SXM4-40GB",
        "nvidia_a100-sxm4-40gb/pallas_triton_flash_attention.json",
        "of a device only its spaces change, and capitals become small",
    ),
    (
        "PallasTpuRouterTopK",
        "TPU7x",
        "tpu7x/pallas_tpu_router_top_k.json",
        "every capital after the first begins a word",
    ),
    (
        "XLAAttention",
        "TPU v6 lite",
        "tpu_v6_lite/x_l_a_attention.json",
        "every capital after the first begins a word, also one behind another",
    ),
)
"""A class, a device, the file, and the rule that it stands for."""


def check(name: Namer) -> None:
    """Ask for four files.

    Args:
        name: takes the name of a class and the kind of a device, returns folder and file.

    Raises:
        AssertionError: the name is another; holds it and the rule.
    """
    for op, device, expected, why in FILES:
        got = name(op, device)
        if got != expected:
            raise AssertionError(
                f"{op} on {device!r} is kept in {expected}, and you say {got}.\nHint: {why}"
            )
