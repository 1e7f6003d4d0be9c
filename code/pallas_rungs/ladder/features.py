"""What a program's kernels use: the facts that decide whom a failure is to be blamed on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from pallas_rungs.compilers.chips import GPU, TPU, Machine
from pallas_rungs.ladder import swap
from pallas_rungs.ladder.overhang import partial_axes, reduces_overhang

_REF_ACCESSES = (
    "get",
    "swap",
    "load",
    "masked_load",
    "masked_swap",
    "addupdate",
    "ref_get",
    "ref_new",
)
_SHAPE_CHANGES = (
    "slice", "dynamic_slice", "dynamic_update_slice", "squeeze", "reshape", "transpose",
    "broadcast_in_dim", "concatenate", "gather", "rev", "copy", "copy_p", "select_n", "pad", "iota",
    "full", "empty", "device_put", "optimization_barrier",
)  # fmt: skip
_CALLS = (
    "jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call",
    "custom_vjp_call", "cond", "while", "scan", "run_scoped", "run_state", "pallas_call",
    "mpmd_map", "core_map", "shard_map", "dma_start", "dma_wait",
)  # fmt: skip
MOVES_DATA = frozenset(_REF_ACCESSES + _SHAPE_CHANGES + _CALLS)
"""Primitives that round nothing: their output's type says nothing about precision."""


EXPONENTIALS = frozenset({"exp", "exp2", "expm1", "pow", "logistic", "sinh", "cosh"})
"""Primitives that turn the absolute error of their operand into a relative one."""


@dataclass(frozen=True)
class Features:
    """What the kernels of a program use.

    Attributes:
      primitives: names of every primitive in the program, kernel bodies included.
      parallel_axes: some kernel marks a grid axis as parallel.
      batched_semantics: some kernel that declares dimension_semantics went through vmap.
      copies: some kernel starts asynchronous copies.
      random_bits: some kernel uses the chip's random number generator.
      element_padding: some block has an Element dimension padded at its low end.
      four_bit: some array holds 4-bit (or narrower) values.
      sparse_core: some kernel runs on the SparseCore.
      reshaped_refs: some ref is reshaped or bitcast before it is read or written.
      dynamic_copies: some asynchronous copy has a size known only at run time.
      barrier_semaphore: some kernel takes the barrier semaphore.
      remote_copies: some asynchronous copy goes to another device.
      remote_signals: some semaphore of another device is signalled.
      semaphore_views: some copy to another device has one of an array of semaphores.
      mosaic_gpu: some kernel is written for Mosaic GPU: a mesh, parameters or memory of its.
      triton: some kernel carries parameters of the Triton compiler.
      tpu: some kernel is written for a TPU: a mesh, parameters or memory of its.
      core_axes: names of the axes of the core meshes that kernels run on.
      exponentials: some computation takes an exponential.
      rounds_to: the narrowest float type that any computation in the program rounds to.
      partial_blocks: some block does not divide its array.
      accumulates: some body reads an output or a scratch buffer that it stores to.
      never_cleared: some body reads such a buffer back, and stores to it only after it has read it.
      reduces_overhang: some body reduces over what lies past the end of an array, unmasked.
      masks_with_infinity: some body that takes exponentials selects minus infinity.
      scoped_program_ids: some body asks for its place in the grid inside `pl.run_scoped`.
      lost_length: some call has no operand for a length of its grid that is known at run time.
      half_derivative: some call is the derivative of a kernel by some of its inputs and not all.
    """

    primitives: frozenset[str] = frozenset()
    parallel_axes: bool = False
    batched_semantics: bool = False
    copies: bool = False
    random_bits: bool = False
    element_padding: bool = False
    four_bit: bool = False
    sparse_core: bool = False
    reshaped_refs: bool = False
    dynamic_copies: bool = False
    barrier_semaphore: bool = False
    remote_copies: bool = False
    remote_signals: bool = False
    semaphore_views: bool = False
    mosaic_gpu: bool = False
    triton: bool = False
    tpu: bool = False
    core_axes: frozenset[str] = frozenset()
    exponentials: bool = False
    rounds_to: np.dtype[Any] | None = None
    partial_blocks: bool = False
    accumulates: bool = False
    never_cleared: bool = False
    reduces_overhang: bool = False
    masks_with_infinity: bool = False
    scoped_program_ids: bool = False
    lost_length: bool = False
    half_derivative: bool = False

    @property
    def told(self) -> list[str]:
        """What a verdict's details say that the program uses, in words."""
        words = {
            "parallel axes": self.parallel_axes,
            "copies": self.copies,
            "partial blocks": self.partial_blocks,
            "accumulators": self.accumulates,
            "accumulators that are never cleared": self.never_cleared,
            "reductions over partial blocks": self.reduces_overhang,
            "masks of minus infinity": self.masks_with_infinity,
        }
        return [word for word, used in words.items() if used]

    @classmethod
    def of(cls, jaxpr: Any, kernels: list[Any]) -> Features:
        """Read the features off a traced program and its kernel equations."""
        every = list(swap.equations(jaxpr))
        primitives = frozenset(eqn.primitive.name for eqn in every)
        return cls(
            primitives=primitives,
            parallel_axes=any(_parallel(eqn) for eqn in kernels),
            batched_semantics=any(_batched_semantics(eqn) for eqn in kernels),
            copies="dma_start" in primitives,
            random_bits=any(_draws_on_chip(eqn) for eqn in every),
            element_padding=any(_pads_low(eqn) for eqn in kernels),
            four_bit=any(
                _is_four_bit(v.aval) for eqn in every for v in (*eqn.invars, *eqn.outvars)
            ),
            sparse_core=any(_on_sparse_core(eqn) for eqn in kernels),
            reshaped_refs=any(_reshapes_a_ref(eqn) for eqn in every),
            dynamic_copies=any(
                eqn.primitive.name == "dma_start" and _has_dynamic_size(eqn) for eqn in every
            ),
            barrier_semaphore="get_barrier_semaphore" in primitives,
            remote_copies=any(_goes_to_a_device(eqn, "dma_start") for eqn in every),
            remote_signals=any(_goes_to_a_device(eqn, "semaphore_signal") for eqn in every),
            semaphore_views=any(_waits_on_a_view(eqn) for eqn in every),
            mosaic_gpu=any(_written_for(eqn, "mosaic_gpu") for eqn in kernels),
            triton=any(_written_for(eqn, "triton") for eqn in kernels),
            tpu=any(_written_for(eqn, "mosaic") for eqn in kernels),
            core_axes=frozenset(name for eqn in kernels for name in _core_axes(eqn)),
            exponentials=bool(primitives & EXPONENTIALS),
            rounds_to=_narrowest(every),
            partial_blocks=any(
                bool(partial_axes(mapping))
                for eqn in kernels
                for mapping in getattr(eqn.params.get("grid_mapping"), "block_mappings", ())
            ),
            accumulates=any(_reads_back(eqn) for eqn in kernels),
            never_cleared=any(_never_clears(eqn) for eqn in kernels),
            reduces_overhang=any(reduces_overhang(eqn, _reads_back(eqn)) for eqn in kernels),
            masks_with_infinity=any(_masks_with_infinity(eqn) for eqn in kernels),
            scoped_program_ids=any(_asks_for_its_place(eqn) for eqn in every),
            lost_length=any(_has_lost_a_length(eqn) for eqn in kernels),
            half_derivative=any(_is_half_a_derivative(eqn) for eqn in kernels),
        )

    @property
    def gpu(self) -> bool:
        """Some kernel is written for a GPU."""
        return self.mosaic_gpu or self.triton

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines that its kernels are written for; none for kernels that name none."""
        return (TPU,) * self.tpu + (GPU,) * self.gpu


def epsilon(dtype: Any) -> float:
    """Return the distance from 1 to the next number of a float type."""
    finfo: Any = ml_dtypes.finfo
    return float(finfo(np.dtype(dtype)).eps)


def _semantics(kernel: Any) -> tuple[Any, ...]:
    params = kernel.params.get("compiler_params")
    return tuple(getattr(params, "dimension_semantics", None) or ())


def _parallel(kernel: Any) -> bool:
    return any("parallel" in str(s).lower() for s in _semantics(kernel))


def _batched_semantics(kernel: Any) -> bool:
    batched = getattr(kernel.params.get("grid_mapping"), "vmapped_dims", ())
    return bool(batched) and bool(_semantics(kernel))


def _written_for(kernel: Any, backend: str) -> bool:
    """True when a kernel's parameters, meshes or memory spaces are those of a Pallas backend.

    Args:
      kernel: the equation that launches it.
      backend: the backend's package below `jax._src.pallas`.
    """
    named: list[Any] = [kernel.params.get("compiler_params"), *_meshes(kernel)]
    for body in kernel.params.get("jaxprs") or (kernel.params.get("jaxpr"),):
        for var in getattr(body, "invars", ()):
            named.append(getattr(var.aval, "memory_space", None))
    package = f"jax._src.pallas.{backend}."
    return any(type(thing).__module__.startswith(package) for thing in named)


def _meshes(kernel: Any) -> tuple[Any, ...]:
    return tuple(kernel.params.get("meshes") or (kernel.params.get("mesh"),))


def _core_axes(kernel: Any) -> list[str]:
    return [str(name) for mesh in _meshes(kernel) for name in getattr(mesh, "shape", {})]


def _on_sparse_core(kernel: Any) -> bool:
    meshes = _meshes(kernel)
    params = kernel.params.get("compiler_params")
    kinds = [str(getattr(mesh, "core_type", "")) for mesh in meshes]
    kinds.append(str(getattr(params, "kernel_type", "")))
    names = " ".join(kinds + [type(mesh).__name__ for mesh in meshes]).lower()
    return "subcore" in names or "sparse" in names or "sc_" in names


def _pads_low(kernel: Any) -> bool:
    grid_mapping = kernel.params.get("grid_mapping")
    for mapping in getattr(grid_mapping, "block_mappings", ()):
        for dim in mapping.block_shape or ():
            padding = getattr(dim, "padding", None)
            if padding and int(padding[0]) > 0:
                return True
    return False


def _asks_for_its_place(eqn: Any) -> bool:
    return eqn.primitive.name == "run_scoped" and any(
        inner.primitive.name in ("program_id", "num_programs")
        for body in swap.sub_jaxprs(eqn.params)
        for inner in swap.equations(body)
    )


def _has_lost_a_length(kernel: Any) -> bool:
    """True for a call without operands for the lengths of its grid, as jax.vmap may leave it."""
    mapping, body = kernel.params.get("grid_mapping"), kernel.params.get("jaxpr")
    if mapping is None or body is None or not mapping.num_dynamic_grid_bounds:
        return False
    others = len(body.constvars) + mapping.num_index_operands + mapping.num_inputs
    return bool(len(kernel.invars) == others)


def _is_half_a_derivative(kernel: Any) -> bool:
    """True for a call with more blocks than refs: jax.jvp counts each input twice, used or not."""
    mapping, body = kernel.params.get("grid_mapping"), kernel.params.get("jaxpr")
    if mapping is None or body is None:
        return False
    refs = len(body.invars) - mapping.num_index_operands - mapping.num_scratch_operands
    return bool(refs < len(mapping.block_mappings))


def _reads_back(kernel: Any) -> bool:
    """True for a body that reads an output or a scratch buffer that it stores to.

    What only copies fill is read and not read back.
    """
    read, stored, _ = _own_accesses(kernel)
    return bool(read & stored)


def _never_clears(kernel: Any) -> bool:
    """True for a body that reads back a buffer that it never stores to without reading it first."""
    read, stored, cleared = _own_accesses(kernel)
    return bool((read & stored) - cleared)


def _own_accesses(kernel: Any) -> tuple[set[Any], set[Any], set[Any]]:
    """Return what a body reads, stores to and clears of its outputs and scratch buffers."""
    mapping, body = kernel.params.get("grid_mapping"), kernel.params.get("jaxpr")
    if mapping is None or body is None:
        return set(), set(), set()
    given = mapping.num_index_operands + mapping.num_inputs
    return _accesses(body, {ref: ref for ref in body.invars[given:]})


def _accesses(jaxpr: Any, refs: dict[Any, Any]) -> tuple[set[Any], set[Any], set[Any]]:
    """Return which of the refs a body reads, which it stores to, and which before it has read them.

    What a branch or a loop does counts by itself: a store in a branch comes before what is read
    there, not before what is read above it.

    Args:
      jaxpr: the body, or a jaxpr inside it.
      refs: the variables of `jaxpr` that stand for a ref → that ref.
    """
    read: set[Any] = set()
    stored: set[Any] = set()
    cleared: set[Any] = set()
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        ref = refs.get(eqn.invars[0]) if eqn.invars and _is_var(eqn.invars[0]) else None
        if ref is not None and name in ("get", "load", "addupdate"):
            read.add(ref)
        if ref is not None and name in ("swap", "masked_swap", "addupdate"):
            stored.add(ref)
            if ref not in read:
                cleared.add(ref)
        for inner in swap.sub_jaxprs(eqn.params):
            count = min(len(inner.invars), len(eqn.invars))
            pairs = zip(inner.invars[-count:], eqn.invars[-count:], strict=True) if count else ()
            within = {own: refs[var] for own, var in pairs if _is_var(var) and var in refs}
            more_read, more_stored, more_cleared = _accesses(inner, within)
            read |= more_read
            stored |= more_stored
            cleared |= more_cleared
    return read, stored, cleared


def _is_var(var: Any) -> bool:
    return not hasattr(var, "val")


def _masks_with_infinity(kernel: Any) -> bool:
    """True for a body that takes exponentials and has minus infinity and a select in it."""
    names: set[str] = set()
    infinity = False
    for body in swap.sub_jaxprs(kernel.params):
        for eqn in swap.equations(body):
            names.add(eqn.primitive.name)
            infinity = infinity or any(_is_minus_infinity(var) for var in eqn.invars)
    return infinity and "select_n" in names and bool(names & EXPONENTIALS)


def _is_minus_infinity(var: Any) -> bool:
    value = getattr(var, "val", None)
    return isinstance(value, float | np.floating) and value == -np.inf


def _is_four_bit(aval: Any) -> bool:
    inner = getattr(aval, "inner_aval", aval)
    dtype = getattr(inner, "dtype", None)
    try:
        iinfo: Any = ml_dtypes.iinfo
        return dtype is not None and int(iinfo(dtype).bits) <= 4
    except (TypeError, ValueError):
        return "float4" in str(dtype)


def _trees(eqn: Any) -> str:
    return " ".join(
        str(eqn.params[k]) for k in ("tree", "args_tree", "transforms_tree") if k in eqn.params
    )


def _reshapes_a_ref(eqn: Any) -> bool:
    text = _trees(eqn)
    return any(word in text for word in ("Reshape", "Bitcast", "RefReshaper", "RefBitcaster"))


def _has_dynamic_size(eqn: Any) -> bool:
    tree = eqn.params.get("tree")
    if tree is None:
        return False
    fields = jax.tree.unflatten(tree, list(eqn.invars))
    return any(indexer.is_dynamic_size for indexer in indexers(fields))


_DEVICE_ID = {"dma_start": ("tree", 4), "semaphore_signal": ("args_tree", 3)}
"""Where an operation keeps its operands' structure, and the device id's place in it."""


def _goes_to_a_device(eqn: Any, primitive: str) -> bool:
    if eqn.primitive.name != primitive:
        return False
    tree, place = _DEVICE_ID[primitive]
    operands = jax.tree.unflatten(eqn.params[tree], list(eqn.invars))
    return bool(jax.tree.leaves(operands[place]))


def _waits_on_a_view(eqn: Any) -> bool:
    if eqn.primitive.name != "dma_wait":
        return False
    _, _, *semaphores, device = jax.tree.unflatten(eqn.params["tree"], list(eqn.invars))
    return device is not None and any(any(indexers(s)) for s in semaphores)


def indexers(node: Any) -> Iterator[Any]:
    """Yield the indexers of the refs in `node`, a nest of tuples."""
    kind = type(node).__name__
    if kind == "NDIndexer":
        yield node
    elif kind == "TransformedRef" or isinstance(node, tuple | list):
        for inner in node if isinstance(node, tuple | list) else node.transforms:
            yield from indexers(inner)


def _draws_on_chip(eqn: Any) -> bool:
    """True for the chip's own generator, and for draws with keys of its implementations."""
    if eqn.primitive.name in ("prng_seed", "prng_random_bits"):
        return True
    dtypes = [getattr(var.aval, "dtype", None) for var in eqn.invars]
    return any("pallas" in getattr(getattr(d, "_impl", None), "name", "") for d in dtypes)


def _narrowest(equations: list[Any]) -> np.dtype[Any] | None:
    narrowest: np.dtype[Any] | None = None
    for eqn in equations:
        if eqn.primitive.name in MOVES_DATA:
            continue
        for var in eqn.outvars:
            dtype = getattr(var.aval, "dtype", None)
            if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
                continue
            if eqn.params.get("approx"):  # interpreters take the chip's approximations in bfloat16
                dtype = jnp.dtype(jnp.bfloat16)
            if narrowest is None or epsilon(dtype) > epsilon(narrowest):
                narrowest = np.dtype(dtype)
    return narrowest
