"""Kernels in a traced program: finding them, and changing the interpreter that they ask for.

The rewrite works on the jaxpr, so a kernel that passes its own `interpret=` is tried on every rung
all the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn

KERNEL_PRIMITIVES = frozenset({"pallas_call", "mpmd_map", "core_map"})
"""The primitives that launch a Pallas kernel."""

DEBUG_PRIMITIVES = frozenset({"debug_callback", "debug_print"})
"""The primitives of `jax.debug.print` and `jax.debug.callback`."""

_CALLBACK_EFFECTS = frozenset({"IOEffect", "OrderedIOEffect", "DebugEffect", "OrderedDebugEffect"})


def sub_jaxprs(params: dict[str, Any]) -> Iterator[Any]:
    """Yield every jaxpr held in an equation's parameters, tuples included."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Jaxpr):
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


def jaxprs(jaxpr: Any) -> Iterator[Any]:
    """Yield `jaxpr` and, recursively, the jaxprs inside it, kernel bodies included."""
    yield jaxpr
    for eqn in jaxpr.eqns:
        for inner in sub_jaxprs(eqn.params):
            yield from jaxprs(inner)


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

    def change(eqn: JaxprEqn) -> JaxprEqn | None:
        if eqn.primitive.name not in KERNEL_PRIMITIVES:
            return eqn
        effects = {e for e in eqn.effects if not _is_callback_effect(e)}
        effects |= _effects_of_interpreter(interpret)
        changed: JaxprEqn = eqn.replace(
            params={**eqn.params, "interpret": interpret}, effects=effects
        )
        return changed

    return _rewrite(jaxpr, change)


def on_branch_for(platform: str, jaxpr: Any, runs_on: str) -> Any:
    """Return `jaxpr` with `lax.platform_dependent` taking the branch for `platform` on `runs_on`.

    Otherwise a program that has a kernel for `platform` and plain jax.numpy for other machines
    would be judged by the wrong branch on the rungs that run on the CPU.
    """

    def change(eqn: JaxprEqn) -> JaxprEqn | None:
        name, params = eqn.primitive.name, eqn.params
        changed = eqn
        if name == "platform_index":
            platforms = _as_on(platform, params["platforms"], runs_on)
            changed = eqn.replace(params={**params, "platforms": platforms})
        elif name == "cond" and params.get("branches_platforms"):
            changed = _only_branch_for(platform, eqn)
        return changed

    return _rewrite(jaxpr, change)


def without_debug_prints(jaxpr: Any) -> Any:
    """Return `jaxpr` without `jax.debug` callbacks outside kernels: they cannot be exported."""

    def change(eqn: JaxprEqn) -> JaxprEqn | None:
        return None if eqn.primitive.name in DEBUG_PRIMITIVES else eqn

    return _rewrite(jaxpr, change)


def _rewrite(jaxpr: Any, change: Callable[[JaxprEqn], JaxprEqn | None]) -> Any:
    """Apply `change` to every equation outside kernel bodies; None drops the equation.

    The effects of callbacks are gathered anew from the inside out.
    """
    new_eqns: list[JaxprEqn] = []
    callback_effects: set[Any] = set()
    for eqn in jaxpr.eqns:
        new = change(_rewrite_inside(eqn, change))
        if new is not None:
            new_eqns.append(new)
            callback_effects |= {e for e in new.effects if _is_callback_effect(e)}
    if len(new_eqns) == len(jaxpr.eqns) and all(map(operator.is_, new_eqns, jaxpr.eqns)):
        return jaxpr
    effects = {e for e in jaxpr.effects if not _is_callback_effect(e)} | callback_effects
    return jaxpr.replace(eqns=new_eqns, effects=effects)


def _rewrite_inside(eqn: JaxprEqn, change: Callable[[JaxprEqn], JaxprEqn | None]) -> JaxprEqn:
    if eqn.primitive.name in KERNEL_PRIMITIVES:
        return eqn
    params = {key: _rewrite_value(value, change) for key, value in eqn.params.items()}
    if all(params[key] is value for key, value in eqn.params.items()):
        return eqn
    effects = {e for e in eqn.effects if not _is_callback_effect(e)}
    for inner in sub_jaxprs(params):
        effects |= {e for e in inner.effects if _is_callback_effect(e)}
    changed: JaxprEqn = eqn.replace(params=params, effects=effects)
    return changed


def _rewrite_value(value: Any, change: Callable[[JaxprEqn], JaxprEqn | None]) -> Any:
    if isinstance(value, Jaxpr):
        return _rewrite(value, change)
    if isinstance(value, tuple | list) and any(isinstance(v, Jaxpr) for v in value):
        new = [_rewrite_value(v, change) for v in value]
        return value if all(map(operator.is_, new, value)) else type(value)(new)
    return value


def _only_branch_for(platform: str, eqn: JaxprEqn) -> JaxprEqn:
    """Return a `cond` over platforms with its branch for `platform` in every place."""
    chosen = _branch_for(platform, eqn.params["branches_platforms"])
    if chosen is None:
        return eqn
    branch = eqn.params["branches"][chosen]
    params = {
        **eqn.params,
        "branches": (branch,) * len(eqn.params["branches"]),
        "branches_platforms": None,
    }
    effects = {e for e in eqn.effects if not _is_callback_effect(e)}
    effects |= {e for e in branch.effects if _is_callback_effect(e)}
    changed: JaxprEqn = eqn.replace(params=params, effects=effects)
    return changed


def _branch_for(platform: str, platforms: tuple[Any, ...]) -> int | None:
    own = [i for i, names in enumerate(platforms) if names is not None and platform in names]
    default = [i for i, names in enumerate(platforms) if names is None]
    return next(iter(own + default), None)


def _as_on(platform: str, platforms: tuple[Any, ...], runs_on: str) -> tuple[Any, ...]:
    """Return the branches' platforms with the branch for `platform` answering for `runs_on`."""
    chosen = _branch_for(platform, platforms)
    answering: list[Any] = []
    for i, names in enumerate(platforms):
        if names is None:
            answering.append(None)
        else:
            others = tuple(name for name in names if name != runs_on)
            answering.append((*others, runs_on) if i == chosen else others)
    return tuple(answering)


def _is_callback_effect(effect: Any) -> bool:
    return type(effect).__name__ in _CALLBACK_EFFECTS


def _effects_of_interpreter(interpret: Any) -> set[Any]:
    from jax._src.pallas.core import get_interpret_effects

    return set(get_interpret_effects(interpret))
