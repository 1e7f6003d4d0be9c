"""The gates: what a kernel of this book has to reach, by estimates of both sides.

A gate is one entry of `GATES`: the kernel with its configuration on each chip, what it is compared
with, and how long it may take beside that. `gate_records` keeps what came of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from pallas_rungs.kernels.case import BFLOAT16_RTOL
from pallas_rungs.kernels.layer_norm import layer_norm_reference
from pallas_rungs.kernels.matmul import matmul_reference
from pallas_rungs.kernels.matmul_gelu import matmul_gelu_reference
from pallas_rungs.kernels.matmul_serpentine import matmul_serpentine, matmul_serpentine_gelu
from pallas_rungs.kernels.rms_norm import rms_norm_reference
from pallas_rungs.kernels.softmax import softmax_reference
from pallas_rungs.performance import rivals
from pallas_rungs.performance.causal import causal_flash, causal_reference
from pallas_rungs.performance.jax_flash import causal_flash_of_jax
from pallas_rungs.performance.product_tiles import TILES
from pallas_rungs.performance.row_tasks import BLOCK_BYTES, TASKS, rows_for
from pallas_rungs.performance.sources import code_hash

MORE_BYTES: Final = 1.01
"""What a kernel that reads once and writes once may move, as a part of that."""


@dataclass(frozen=True)
class Rival:
    """What a kernel is compared with.

    Attributes:
      name: what a table calls it: "XLA".
      call: the same task, of the same arguments.
      limits: chip -> the most that the kernel's time may be, as a part of the rival's.
    """

    name: str
    call: Callable[..., Any]
    limits: Mapping[str, float]


@dataclass(frozen=True)
class Gate:
    """What one kernel has to reach.

    Attributes:
      name: of the gate, short.
      task: what is computed, in words.
      kernel: our call.
      configuration: chip -> the keyword arguments that the kernel is called with there.
      rivals: what it is compared with, the most telling first.
      arguments: shapes and dtypes, the same for both sides.
      reference: the same in float64, of NumPy arrays, for whoever measures.
      tolerance: the largest error of a measured result, as a part of its largest value.
      ahead_somewhere: whether the kernel must take less than the first rival on at least one chip.
      bytes_once: whether the kernel may move its arguments and results once only, and 1 % more.
    """

    name: str
    task: str
    kernel: Callable[..., Any]
    configuration: Mapping[str, Mapping[str, Any]]
    rivals: tuple[Rival, ...]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    reference: Callable[..., Any]
    tolerance: float = 2 * BFLOAT16_RTOL
    ahead_somewhere: bool = False
    bytes_once: bool = False
    results: tuple[jax.ShapeDtypeStruct, ...] = field(init=False)

    def __post_init__(self) -> None:
        missing = {chip for rival in self.rivals for chip in rival.limits} ^ set(self.chips)
        if missing:
            raise ValueError(
                f"the gate {self.name!r} has a configuration or a limit, and not both, for "
                f"{', '.join(sorted(missing))}"
            )
        made = jax.tree.leaves(jax.eval_shape(self.rivals[0].call, *self.arguments))
        object.__setattr__(self, "results", tuple(made))

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips that the gate is for."""
        return tuple(self.configuration)

    @property
    def least_bytes(self) -> int:
        """Bytes of the arguments and of the result, each once."""
        return sum(math.prod(it.shape) * it.dtype.itemsize for it in self.arguments + self.results)

    @property
    def criterion(self) -> str:
        """What is asked, in words."""
        parts = []
        for rival in self.rivals:
            chips: dict[float, list[str]] = {}
            for chip, limit in rival.limits.items():
                chips.setdefault(limit, []).append(chip)
            limits = (f"≤ {limit:g} × on {', '.join(of)}" for limit, of in chips.items())
            parts.append(f"{rival.name}: {'; '.join(limits)}")
        if self.ahead_somewhere:
            parts.append(f"ahead of {self.rivals[0].name} on at least one chip")
        if self.bytes_once:
            parts.append("HBM: read once and written once, + 1 %")
        return ". ".join(parts)

    def call(self, chip: str) -> Callable[..., Any]:
        """Return the kernel as it is called on a chip.

        Raises:
          KeyError: the gate is not for that chip.
        """
        made = partial(self.kernel, **self.configuration[chip])
        made.__name__ = self.kernel.__name__  # type: ignore[attr-defined] # the compiler names it so
        return made

    def arrays(self, seed: int = 0) -> tuple[np.ndarray, ...]:
        """Return normally distributed arrays of the gate's shapes and dtypes."""
        rng = np.random.default_rng(seed)
        return tuple(
            rng.standard_normal(it.shape, np.float32).astype(it.dtype) for it in self.arguments
        )

    def code(self, chip: str, rival: Rival | None = None) -> str:
        """Return the hash of the kernel as it is called on a chip, or of a rival, with its task."""
        call = self.call(chip) if rival is None else rival.call
        return code_hash(call, given=[str(it) for it in self.arguments])


def _arrays(*shapes: tuple[int, ...]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes)


def _over_rows(name: str, task: str, reference: Callable[..., Any]) -> Gate:
    """The gate of a task over rows: kernel, rival, shape and goal are those of `row_tasks`."""
    rows = TASKS[task]
    chips = tuple(BLOCK_BYTES)
    M, N = rows.shape
    return Gate(
        name,
        f"{name} of the rows of ({M}, {N}), bfloat16",
        kernel=rows.kernel,
        configuration={chip: {"bm": rows_for(chip, N)} for chip in chips},
        rivals=(Rival("XLA", rows.rival, dict.fromkeys(chips, rows.goal)),),
        arguments=rows.arguments(),
        reference=reference,
        bytes_once=True,
    )


_MATRICES: Final = _arrays((4096, 4096), (4096, 4096))

GATES: Final = (
    Gate(
        "matmul",
        "matrix product, 4096³, bfloat16",
        kernel=matmul_serpentine,
        configuration={chip: asdict(tile) for chip, tile in TILES.items()},
        rivals=(
            Rival("XLA", rivals.matmul, {"v5e": 1.03, "v5p": 1.03, "v6e": 1.10, "tpu7x": 1.10}),
        ),
        arguments=_MATRICES,
        reference=matmul_reference,
        ahead_somewhere=True,
    ),
    Gate(
        "matmul + GELU",
        "GELU of a matrix product, 4096³, bfloat16",
        kernel=matmul_serpentine_gelu,
        configuration={chip: asdict(TILES[chip]) for chip in ("v5e", "v6e")},
        rivals=(Rival("XLA", rivals.matmul_gelu, {"v5e": 1.03, "v6e": 1.10}),),
        arguments=_MATRICES,
        reference=matmul_gelu_reference,
    ),
    _over_rows("softmax", "softmax", softmax_reference),
    _over_rows("LayerNorm", "layer_norm", layer_norm_reference),
    _over_rows("RMSNorm", "rms_norm", rms_norm_reference),
    Gate(
        "attention",
        "causal attention, 16 heads of 4096 × 128, bfloat16",
        kernel=causal_flash,
        configuration={"v5e": {"block": (1024, 512)}, "v6e": {"block": (1024, 512)}},
        rivals=(
            Rival("jax's flash kernel", causal_flash_of_jax, {"v5e": 1.10, "v6e": 1.10}),
            Rival("XLA", partial(rivals.attention, causal=True), {"v5e": 1.0, "v6e": 1.0}),
        ),
        arguments=3 * _arrays((16, 4096, 128)),
        reference=causal_reference,
    ),
)
"""All gates, in the order of the table."""


def gate_named(name: str) -> Gate:
    """Return a gate by its name.

    Raises:
      LookupError: there is no such gate; the message lists them.
    """
    for gate in GATES:
        if gate.name == name:
            return gate
    raise LookupError(f"no gate is called {name!r}; there are {', '.join(g.name for g in GATES)}")
