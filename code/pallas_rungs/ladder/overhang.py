"""Whether a body reduces over what lies past the end of an array, in a partial block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pallas_rungs.ladder import swap

_REDUCTIONS = frozenset(
    {
        "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin",
        "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp",
    }
)  # fmt: skip

_Axes = frozenset[int]
"""Axes of a block or value along which it reaches past the end of the array that it is from."""


def partial_axes(mapping: Any) -> _Axes:
    """Return the axes of an array that its blocks do not divide.

    Args:
      mapping: the operand's block mapping.
    """
    shape = getattr(getattr(mapping, "array_aval", None), "shape", ())
    return frozenset(
        axis
        for axis, (dim, size) in enumerate(zip(mapping.block_shape or (), shape, strict=False))
        if isinstance(step := getattr(dim, "block_size", dim), int) and step > 0 and size % step
    )


def reduces_overhang(kernel: Any, accumulates: bool) -> bool:
    """True for a body that reduces along an axis of a partial block without a select before.

    Args:
      kernel: the equation that launches it.
      accumulates: the body adds to what it wrote before.
    """
    mapping, body = kernel.params.get("grid_mapping"), kernel.params.get("jaxpr")
    if mapping is None or body is None:
        return False
    first = mapping.num_index_operands
    refs = body.invars[first : first + len(mapping.block_mappings)]
    reach: dict[Any, _Axes] = {}
    outputs: dict[Any, _Axes] = {}
    for place, (ref, block) in enumerate(zip(refs, mapping.block_mappings, strict=False)):
        axes = _seen_by_body(block, partial_axes(block))
        (reach if place < mapping.num_inputs else outputs)[ref] = axes
    if not any(reach.values()):
        return False
    return any(_reductions(body, reach, outputs if accumulates else {}))


def _seen_by_body(block: Any, axes: _Axes) -> _Axes:
    """The axes as the body counts them: it does not see those of size None."""
    seen = [
        axis
        for axis, dim in enumerate(block.block_shape)
        if dim is not None and type(dim).__name__ != "Squeezed"
    ]
    return frozenset(seen.index(axis) for axis in axes if axis in seen)


def _reductions(
    jaxpr: Any, reach: dict[Any, _Axes], outputs: Mapping[Any, _Axes]
) -> Iterator[bool]:
    """Yield True for each reduction over an axis in `reach`, which is carried on meanwhile."""
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        inner = list(swap.sub_jaxprs(eqn.params))
        for body in inner:
            yield from _inside(eqn, body, reach, outputs)
        if inner:
            continue
        given = [_of(var, reach) for var in eqn.invars]
        if name in ("swap", "addupdate", "masked_swap"):
            target, value = eqn.invars[0], given[1]
            if target in outputs:
                yield bool(value - outputs[target])
            elif value:
                reach[target] = _of(target, reach) | value
            continue
        yield _reduces(eqn, given)
        if name == "select_n":
            continue
        for out in eqn.outvars:
            reach[out] = _carried(eqn, given, out)


def _inside(
    eqn: Any, body: Any, reach: dict[Any, _Axes], outputs: Mapping[Any, _Axes]
) -> Iterator[bool]:
    """Walk through a jaxpr that an equation calls; its operands are the last of the equation's."""
    count = min(len(body.invars), len(eqn.invars))
    pairs = list(zip(body.invars[-count:], eqn.invars[-count:], strict=True)) if count else []
    within = {inner: _of(outer, reach) for inner, outer in pairs}
    known = {inner: outputs[outer] for inner, outer in pairs if _is_in(outer, outputs)}
    yield from _reductions(body, within, known)
    for out, inner in zip(eqn.outvars, body.outvars[-len(eqn.outvars) :], strict=False):
        reach[out] = _of(out, reach) | _of(inner, within)


def _reduces(eqn: Any, given: list[_Axes]) -> bool:
    if eqn.primitive.name == "dot_general":
        (contracted, _) = eqn.params["dimension_numbers"]
        return any(axes & set(over) for axes, over in zip(given, contracted, strict=False))
    if eqn.primitive.name not in _REDUCTIONS:
        return False
    over = eqn.params.get("axes", (eqn.params.get("axis"),))
    return bool(given[0] & set(over))


def _carried(eqn: Any, given: list[_Axes], out: Any) -> _Axes:
    """The axes of a result: those of its operands of the same shape, all axes for another."""
    shape = getattr(out.aval, "shape", ())
    carried: _Axes = frozenset()
    for var, axes in zip(eqn.invars, given, strict=True):
        if not axes:
            continue
        if getattr(var.aval, "shape", ()) == shape:
            carried |= axes
        elif "axes" in eqn.params or eqn.primitive.name == "dot_general":
            continue  # the other axes of a reduction hold nothing that was not said
        else:
            carried |= frozenset(range(len(shape)))
    return carried


def _of(var: Any, reach: Mapping[Any, _Axes]) -> _Axes:
    return reach[var] if _is_in(var, reach) else frozenset()


def _is_in(var: Any, known: Mapping[Any, _Axes]) -> bool:
    return not hasattr(var, "val") and var in known
