"""What `make bench-gpu` measures: the book's kernels for a GPU, each beside XLA's own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from pallas_rungs.kernels.gpu.flash_attention import flash_attention_by_triton
from pallas_rungs.kernels.gpu.layer_norm import layer_norm_by_triton
from pallas_rungs.kernels.gpu.matmul import matmul_by_triton, matmul_tiles_by_wgmma
from pallas_rungs.kernels.gpu.softmax import softmax_by_mosaic_gpu, softmax_by_triton
from pallas_rungs.kernels.layer_norm import layer_norm_reference
from pallas_rungs.kernels.matmul import matmul_reference
from pallas_rungs.kernels.softmax import softmax_reference
from pallas_rungs.performance import rivals
from pallas_rungs.performance.causal import causal_reference
from pallas_rungs.performance.sources import code_hash

HALF: Final = 2.0**-11
"""Half a unit of float16 beside 1: what rounding a result to it may cost."""


@dataclass(frozen=True)
class GpuTask:
    """One kernel to measure.

    Attributes:
      name: of the task and the way that the kernel takes: "matmul, Triton".
      kernel: our call.
      rival: the same task as written for XLA.
      reference: the same in float64, of NumPy arrays.
      arguments: shapes and dtypes.
      tolerance: the largest error that passes, as a part of the result's largest value.
      configuration: keyword arguments of the kernel.
      chip: the GPU, among those of the offline compiler, whose instructions it needs.
      tensor_cores: whether it multiplies matrices.
    """

    name: str
    kernel: Callable[..., Any]
    rival: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    tolerance: float
    configuration: Mapping[str, Any] = field(default_factory=dict)
    chip: str = "h100"
    tensor_cores: bool = False

    @property
    def call(self) -> Callable[..., Any]:
        """The kernel as it is called."""
        made = partial(self.kernel, **self.configuration)
        made.__name__ = self.kernel.__name__  # type: ignore[attr-defined] # reports name it so
        return made

    def code(self, *, rival: bool = False) -> str:
        """Return the hash of the kernel as it is called, or of the rival, with its task."""
        call = self.rival if rival else self.call
        return code_hash(call, given=[str(it) for it in self.arguments])

    def arrays(self, seed: int = 0) -> tuple[np.ndarray, ...]:
        """Return normally distributed arrays of the task's shapes and dtypes."""
        rng = np.random.default_rng(seed)
        return tuple(
            rng.standard_normal(it.shape, np.float32).astype(it.dtype) for it in self.arguments
        )


def _arrays(dtype: Any, *shapes: tuple[int, ...]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes)


_MATRICES: Final = _arrays(jnp.float16, (4096, 4096), (4096, 4096))

TASKS: Final = (
    GpuTask(
        "matmul, Triton",
        kernel=matmul_by_triton,
        configuration={"block": 128},
        rival=rivals.matmul,
        reference=matmul_reference,
        arguments=_MATRICES,
        tolerance=2 * HALF,
        tensor_cores=True,
    ),
    GpuTask(
        "matmul, Mosaic GPU",
        kernel=matmul_tiles_by_wgmma,
        configuration={"block": (128, 128)},
        rival=rivals.matmul,
        reference=matmul_reference,
        arguments=_MATRICES,
        tolerance=2 * HALF,
        tensor_cores=True,
    ),
    GpuTask(
        "softmax, Triton",
        kernel=softmax_by_triton,
        configuration={"bm": 1, "num_warps": 8},
        rival=rivals.softmax,
        reference=softmax_reference,
        arguments=_arrays(jnp.float32, (8192, 4096)),
        tolerance=1e-5,
    ),
    GpuTask(
        "softmax, Mosaic GPU",
        kernel=softmax_by_mosaic_gpu,
        rival=rivals.softmax,
        reference=softmax_reference,
        arguments=_arrays(jnp.float32, (65536, 256)),
        tolerance=1e-5,
    ),
    GpuTask(
        "LayerNorm, Triton",
        kernel=layer_norm_by_triton,
        rival=rivals.layer_norm,
        reference=layer_norm_reference,
        arguments=(
            *_arrays(jnp.float16, (8192, 4096)),
            *_arrays(jnp.float32, (4096,), (4096,)),
        ),
        tolerance=2 * HALF,
    ),
    GpuTask(
        "flash attention, Triton",
        kernel=flash_attention_by_triton,
        configuration={"causal": True, "block": (128, 64), "num_warps": 8},
        rival=partial(rivals.attention, causal=True),
        reference=causal_reference,
        arguments=_arrays(jnp.float16, *[(16, 4096, 64)] * 3),
        tolerance=8 * HALF,
        tensor_cores=True,
    ),
)
"""All of them, in the order of the table: the first ones first where time runs out."""


def task_named(name: str) -> GpuTask:
    """Return a task by its name.

    Raises:
      LookupError: there is no such task; the message lists them.
    """
    for task in TASKS:
        if task.name == name:
            return task
    known = "; ".join(task.name for task in TASKS)
    raise LookupError(f"no task is called {name!r}; there are {known}")
