"""Kernels in a traced program: finding them, and changing the interpreter that they ask for.

The rewrite works on the jaxpr, so a kernel that passes its own `interpret=` is tried on every rung
all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

KERNEL_PRIMITIVES = frozenset({"pallas_call", "mpmd_map", "core_map"})
"""The primitives that launch a Pallas kernel."""


def sub_jaxprs(params: dict[str, Any]) -> Iterator[Any]:
    """Yield every jaxpr held in an equation's parameters, tuples included."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Jaxpr | ClosedJaxpr):
                yield item


def equations(jaxpr: Any, *, inside_kernels: bool = True) -> Iterator[JaxprEqn]:
    """Yield every equation of `jaxpr` and, recursively, of the jaxprs inside it.

    Args:
      jaxpr: a jaxpr, open or closed.
      inside_kernels: also walk through kernel bodies.
    """
    for eqn in jaxpr.eqns:
        yield eqn
        if inside_kernels or eqn.primitive.name not in KERNEL_PRIMITIVES:
            for inner in sub_jaxprs(eqn.params):
                yield from equations(inner, inside_kernels=inside_kernels)


def kernels(jaxpr: Any) -> list[JaxprEqn]:
    """Return the equations that launch a Pallas kernel, at any depth, in order."""
    return [
        eqn
        for eqn in equations(jaxpr, inside_kernels=False)
        if eqn.primitive.name in KERNEL_PRIMITIVES
    ]


def interpreter_name(interpret: Any) -> str:
    """Return a short name for the value of an `interpret` parameter."""
    if interpret is False or interpret is None:
        return "compiled"
    return "interpret=True" if interpret is True else type(interpret).__name__


def with_interpreter(jaxpr: Any, interpret: Any) -> Any:
    """Return `jaxpr` with every kernel's `interpret` parameter set to `interpret`.

    Effects follow: the simulator's kernels have input-output effects that compiled ones lack, and
    an equation that holds such a kernel must declare them too.
    """
    return _rewrite(jaxpr, lambda params: {**params, "interpret": interpret})


def on_tpu_branch(jaxpr: Any, runs_on: str) -> Any:
    """Return `jaxpr` with `lax.platform_dependent` taking the branch for TPU on `runs_on`.

    Otherwise a program that has a kernel for TPU and plain jax.numpy for other machines would be
    judged by the wrong branch on the rungs that run on the CPU.
    """
    return _rewrite(jaxpr, None, runs_on)


def _rewrite(
    jaxpr: Any,
    kernel_params: Callable[[dict[str, Any]], dict[str, Any]] | None,
    runs_on: str = "",
) -> Any:
    new_eqns, io_effects = [], set()
    for eqn in jaxpr.eqns:
        new = _rewrite_equation(eqn, kernel_params, runs_on)
        new_eqns.append(new)
        io_effects |= _io_effects_of(new.effects)
    if all(new is old for new, old in zip(new_eqns, jaxpr.eqns, strict=True)):
        return jaxpr
    effects = {e for e in jaxpr.effects if not _is_io(e)} | io_effects
    return jaxpr.replace(eqns=new_eqns, effects=effects)


def _rewrite_equation(
    eqn: JaxprEqn,
    kernel_params: Callable[[dict[str, Any]], dict[str, Any]] | None,
    runs_on: str,
) -> JaxprEqn:
    name = eqn.primitive.name
    if name in KERNEL_PRIMITIVES:
        if kernel_params is None:
            return eqn
        params = kernel_params(eqn.params)
        effects = {e for e in eqn.effects if not _is_io(e)} | _effects_of_interpreter(
            params["interpret"]
        )
        return eqn.replace(params=params, effects=effects)
    if name == "platform_index" and runs_on:
        return eqn.replace(params={**eqn.params, "platforms": _as_on_tpu(eqn.params, runs_on)})
    params = {
        key: _rewrite_value(value, kernel_params, runs_on) for key, value in eqn.params.items()
    }
    if all(params[key] is value for key, value in eqn.params.items()):
        return eqn
    inner_effects: set[Any] = set()
    for inner in sub_jaxprs(params):
        inner_effects |= _io_effects_of(inner.effects)
    effects = {e for e in eqn.effects if not _is_io(e)} | inner_effects
    return eqn.replace(params=params, effects=effects)


def _rewrite_value(value: Any, kernel_params: Any, runs_on: str) -> Any:
    if isinstance(value, Jaxpr | ClosedJaxpr):
        return _rewrite(value, kernel_params, runs_on)
    if isinstance(value, tuple | list) and any(isinstance(v, Jaxpr | ClosedJaxpr) for v in value):
        new = [_rewrite_value(v, kernel_params, runs_on) for v in value]
        if all(a is b for a, b in zip(new, value, strict=True)):
            return value
        return type(value)(new)
    return value


def _as_on_tpu(params: dict[str, Any], runs_on: str) -> tuple[Any, ...]:
    """Return the branches' platforms with TPU's branch answering for `runs_on`."""
    platforms = params["platforms"]
    tpu = [i for i, ps in enumerate(platforms) if ps is not None and "tpu" in ps]
    default = [i for i, ps in enumerate(platforms) if ps is None]
    chosen = (tpu or default or [None])[0]
    if chosen is None:
        return tuple(platforms)
    return tuple(
        None
        if ps is None
        else tuple(p for p in ps if p != runs_on) + ((runs_on,) if i == chosen else ())
        for i, ps in enumerate(platforms)
    )


def _is_io(effect: Any) -> bool:
    return type(effect).__name__ in ("IOEffect", "OrderedIOEffect")


def _io_effects_of(effects: Any) -> set[Any]:
    return {effect for effect in effects if _is_io(effect)}


def _effects_of_interpreter(interpret: Any) -> set[Any]:
    from jax._src.pallas.core import get_interpret_effects

    return set(get_interpret_effects(interpret))
