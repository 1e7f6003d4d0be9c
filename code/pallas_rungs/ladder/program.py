"""A problem as a traced program: arguments flattened, kernels counted, any interpreter."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from pallas_rungs.ladder import swap
from pallas_rungs.ladder.features import Features
from pallas_rungs.ladder.index_maps import IndexMaps
from pallas_rungs.ladder.kernel_names import kernel_meant, kernel_names, kernel_source
from pallas_rungs.ladder.verdict import Frame

_LITERAL: dict[str, Any] = {"xla_disable_hlo_passes": "algsimp"}
_QUICK: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_parallel_codegen_split_count": 1,
}


def is_traced(leaf: Any) -> bool:
    """True for arguments that are traced: arrays of NumPy or jax, and NumPy scalars.

    Python numbers stay as they are: a function sees the value that its caller would pass, and may
    use it as a block size or a flag.
    """
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


@dataclass(frozen=True)
class FlatCall:
    """A call with its arrays taken out.

    Attributes:
      function: the user's function.
      leaves: the leaves of the arguments, in order; arrays are traced, the others closed over.
      tree: the arguments' structure.
    """

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    tree: Any

    @classmethod
    def of(cls, function: Callable[..., Any], args: Sequence[Any]) -> FlatCall:
        """Flatten `args`; objects that jax cannot flatten stay whole and are closed over."""
        leaves, tree = jax.tree.flatten(tuple(args))
        return cls(function, tuple(leaves), tree)

    @cached_property
    def arrays(self) -> list[Any]:
        """The traced leaves."""
        return [leaf for leaf in self.leaves if is_traced(leaf)]

    @property
    def static(self) -> int:
        """How many leaves are closed over."""
        return len(self.leaves) - len(self.arrays)

    def __call__(self, *arrays: Any) -> Any:
        """Call the function with `arrays` in the places of the traced leaves."""
        remaining = iter(arrays)
        leaves = [next(remaining) if is_traced(leaf) else leaf for leaf in self.leaves]
        return self.function(*jax.tree.unflatten(self.tree, leaves))


@dataclass(frozen=True)
class Program:
    """A traced program.

    Attributes:
      jaxpr: the closed jaxpr, as the user wrote it.
      arrays: its inputs.
      out_tree: structure of its result.
      static: how many argument leaves were closed over.
      eager: these are the kernels of a program that cannot be traced as a whole.
    """

    jaxpr: Any
    arrays: tuple[Any, ...]
    out_tree: Any
    static: int = 0
    eager: bool = False
    _compiled: dict[Any, Callable[..., Any]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def kernels(self) -> list[Any]:
        """The equations that launch a kernel."""
        return swap.kernels(self.jaxpr)

    @cached_property
    def used_kernels(self) -> list[Any]:
        """The kernels that a result or a side effect depends on; jax drops the others."""
        from jax._src.interpreters.partial_eval import dce_jaxpr

        live, _ = dce_jaxpr(swap.with_interpreter(self.jaxpr, False), True)
        return swap.kernels(live)

    @cached_property
    def interpreters(self) -> tuple[str, ...]:
        """The interpreters that the kernels asked for themselves, without repetition."""
        names = [swap.interpreter_name(eqn.params["interpret"]) for eqn in self.kernels]
        return tuple(dict.fromkeys(names))

    @cached_property
    def features(self) -> Features:
        """What the kernels use, as far as tools have gaps there."""
        return Features.of(self.jaxpr, self.kernels)

    @cached_property
    def index_maps(self) -> IndexMaps:
        """What is known of the kernels' index maps."""
        return IndexMaps.of(self.kernels, self.features.accumulates)

    @cached_property
    def turns_masks_into_numbers(self) -> bool:
        """Whether a boolean becomes a number that can be multiplied.

        The choice of a branch is a number too, and is left out where it is nothing else: every
        `pl.when` makes one.
        """
        used: set[int] = set()
        numbers: list[int] = []
        for jaxpr in swap.jaxprs(self.jaxpr):
            used.update(map(id, jaxpr.outvars))
            for eqn in jaxpr.eqns:
                chooses = eqn.primitive.name == "cond"
                used.update(map(id, eqn.invars[1:] if chooses else eqn.invars))
                if _becomes_a_number(eqn):
                    numbers.append(id(eqn.outvars[0]))
        return not used.isdisjoint(numbers)

    def overridden(self, interpret: Any) -> str:
        """Say which interpreter of the kernel's own gives way to `interpret`; empty if none."""
        wanted = swap.interpreter_name(interpret)
        others = [name for name in self.interpreters if name not in (wanted, "compiled")]
        return f"the kernel's own {', '.join(others)} was set aside" if others else ""

    def as_function(self, interpret: Any, platform: str = "tpu") -> Callable[..., list[Any]]:
        """Return a function of the flat arrays whose kernels use `interpret`.

        An interpreted program takes the branches for `platform` where it has some for several.
        """
        jaxpr = swap.with_interpreter(self.jaxpr, interpret)
        if interpret is False:
            jaxpr = swap.without_debug_prints(jaxpr)
        else:
            jaxpr = swap.on_branch_for(platform, jaxpr, runs_on="cpu")
        run: Callable[..., list[Any]] = jaxpr_as_fun(jaxpr)
        return run

    def run(
        self,
        interpret: Any,
        *,
        platform: str = "tpu",
        simplify: bool = True,
        optimise: bool = True,
    ) -> Any:
        """Evaluate the program on this machine's CPU and return its result as NumPy arrays.

        What was compiled is kept: a second run with the same arguments costs its execution only.

        Args:
          interpret: the interpreter for the kernels.
          platform: the platform whose branches are taken, `"tpu"` or `"cuda"`.
          simplify: let XLA apply the rules of algebra, as it does by default. Some hold for numbers
            and not for NaN: it turns `x * mask` into a select.
          optimise: let XLA make fast code. Without, it compiles in about half the time.
        """
        options = ({} if simplify else _LITERAL) | ({} if optimise else _QUICK)
        key = (repr(interpret), platform, simplify, optimise)
        with _on_cpu(), contextlib.nullcontext() if optimise else _quick_compiles():
            if key not in self._compiled:
                self._compiled[key] = jax.jit(
                    self.as_function(interpret, platform), compiler_options=options or None
                )
            flat = self._compiled[key](*self.arrays)
            jax.block_until_ready(flat)
        return jax.tree.unflatten(self.out_tree, [as_numpy(leaf) for leaf in flat])

    @property
    def kernel_source(self) -> Frame | None:
        """Where the body of the first kernel is defined, if jax noted it."""
        return kernel_source(self.kernels[0]) if self.kernels else None

    @cached_property
    def kernel_names(self) -> list[str]:
        """The kernels' names, in order."""
        return kernel_names(self.kernels)

    def source_meant(self, message: str) -> Frame | None:
        """Where the body of the kernel that a message is about is defined; None if unknown."""
        place = kernel_meant(message, None, self.kernels)
        return None if place is None else kernel_source(self.kernels[place])

    def kernel_meant(self, message: str, frame: Frame | None) -> str:
        """Return the name of the kernel, of several, that an error is about; empty if unknown."""
        place = kernel_meant(message, frame, self.kernels)
        return "" if place is None or len(self.kernels) < 2 else self.kernel_names[place]


def _becomes_a_number(eqn: Any) -> bool:
    return (
        eqn.primitive.name == "convert_element_type"
        and eqn.params["new_dtype"] != jnp.bool_
        and getattr(eqn.invars[0].aval, "dtype", None) == jnp.bool_
    )


def _on_cpu() -> contextlib.AbstractContextManager[Any]:
    if jax.default_backend() == "cpu":
        return contextlib.nullcontext()
    on_cpu: contextlib.AbstractContextManager[Any] = jax.default_device(
        jax.local_devices(backend="cpu")[0]
    )
    return on_cpu


@contextlib.contextmanager
def _quick_compiles() -> Iterator[None]:
    """Compile quickly whatever is compiled meanwhile: the simulator compiles once more per core."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


def as_numpy(leaf: Any) -> np.ndarray[Any, Any]:
    """Return an array as NumPy's; random keys as their words."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def trace(function: Callable[..., Any], args: Sequence[Any]) -> Program:
    """Trace `function(*args)` to a program.

    Raises:
      Exception: whatever the function raises while it is traced.
    """
    call = FlatCall.of(function, args)
    jaxpr, shapes = jax.make_jaxpr(call, return_shape=True)(*call.arrays)
    return Program(jaxpr, tuple(call.arrays), jax.tree.structure(shapes), call.static)


def describe_arguments(args: Sequence[Any]) -> list[str]:
    """Return the arguments as short strings, e.g. `["f32[8,128]", "3"]`."""
    return [_describe(leaf) for leaf in jax.tree.leaves(tuple(args))]


def _describe(leaf: Any) -> str:
    if is_traced(leaf):
        shape = ",".join(str(n) for n in np.shape(leaf))
        return f"{leaf.dtype.name}[{shape}]"
    if dataclasses.is_dataclass(leaf):
        return type(leaf).__name__
    text = repr(leaf)
    return text if len(text) <= 40 else text[:37] + "..."
