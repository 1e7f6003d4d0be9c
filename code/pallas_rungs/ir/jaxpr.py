"""The jaxpr of a kernel, summed up: its refs with their memory spaces, what it reads, does, writes.

A summary holds what the jaxpr itself prints. A memory space is the word between angle brackets of a
ref's type, `default` where the kernel's author left the choice to the compiler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
from jax._src.jaxpr_util import all_eqns

from pallas_rungs.ir.errors import IRError

LOADS: Final = frozenset({"get", "masked_load"})
"""The primitives that read a value from a ref on every backend."""

STORES: Final = frozenset({"swap", "masked_swap", "addupdate"})
"""The primitives that write a value into a ref on every backend."""

HEADINGS: Final = ("ref", "shape", "dtype", "memory space")
"""Of the columns that `KernelJaxpr.rows` fills."""


@dataclass(frozen=True)
class Ref:
    """An argument of a kernel.

    Attributes:
      name: what the kernel's author calls it, `x_ref`.
      shape: of the memory that it refers to.
      dtype: its elements' type, `float32`.
      space: its memory space, as the jaxpr prints it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    space: str

    def __str__(self) -> str:
        return f"{self.name}: Ref<{self.space}>{{{self.dtype}{list(self.shape)}}}"


@dataclass(frozen=True)
class KernelJaxpr:
    """A kernel's jaxpr, summed up.

    Attributes:
      name: the function that was traced.
      grid: of the call; `None` for a bound that is known at run time only.
      refs: its arguments, in order.
      primitives: name of a primitive -> how often it stands in the kernel, loops and branches
        included, each once however often it runs.
      text: the jaxpr, as jax prints it.
    """

    name: str
    grid: tuple[int | None, ...]
    refs: tuple[Ref, ...]
    primitives: tuple[tuple[str, int], ...]
    text: str

    @property
    def loads(self) -> int:
        """How many places read a ref."""
        return sum(count for name, count in self.primitives if name in LOADS)

    @property
    def stores(self) -> int:
        """How many places write a ref."""
        return sum(count for name, count in self.primitives if name in STORES)

    @property
    def spaces(self) -> tuple[str, ...]:
        """The memory space of each ref."""
        return tuple(ref.space for ref in self.refs)

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.primitives)
        return "\n".join(
            [
                f"{self.name}, grid {self.grid}",
                *(f"  {ref}" for ref in self.refs),
                f"  {self.loads} loads, {self.stores} stores: {counts}",
            ]
        )

    def __repr__(self) -> str:
        return str(self)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The refs for a table with `HEADINGS`, as inline Markdown."""
        return [(f"`{r.name}`", str(r.shape), f"`{r.dtype}`", f"`{r.space}`") for r in self.refs]


def kernel_jaxprs(function: Callable[..., Any], *args: Any) -> tuple[KernelJaxpr, ...]:
    """Trace a function and sum up the kernel of each `pallas_call` in it, in order.

    Args:
      function: takes arrays and calls kernels.
      *args: arrays, or `jax.ShapeDtypeStruct`s of theirs.

    Raises:
      IRError: an argument of a kernel is not a ref.
      Exception: whatever the function raises while it is traced.
    """
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    return tuple(_summary(eqn) for eqn in _calls(jaxpr))


def _calls(jaxpr: Any) -> list[Any]:
    return [eqn for _, eqn in all_eqns(jaxpr) if eqn.primitive.name == "pallas_call"]


def _summary(call: Any) -> KernelJaxpr:
    jaxpr, mapping = call.params["jaxpr"], call.params["grid_mapping"]
    name = call.params["name"] or jaxpr.debug_info.func_name
    names = jaxpr.debug_info.safe_arg_names(len(jaxpr.invars))
    counts = Counter(eqn.primitive.name for _, eqn in all_eqns(jaxpr))
    return KernelJaxpr(
        name=name,
        grid=tuple(n if isinstance(n, int) else None for n in mapping.grid),
        refs=_refs(name, jaxpr.invars, names),
        primitives=tuple(sorted(counts.items())),
        text=jaxpr.pretty_print(use_color=False),
    )


def _refs(kernel: str, variables: Sequence[Any], names: Sequence[str]) -> tuple[Ref, ...]:
    found = []
    for name, variable in zip(names, variables, strict=True):
        aval = variable.aval
        if not hasattr(aval, "memory_space") or not hasattr(aval, "inner_aval"):
            raise IRError(f"the jaxpr of {kernel}", f"a ref as argument {name}", str(aval))
        space = "any" if aval.memory_space is None else str(aval.memory_space)
        found.append(Ref(name, tuple(aval.shape), str(aval.dtype), space))
    return tuple(found)
