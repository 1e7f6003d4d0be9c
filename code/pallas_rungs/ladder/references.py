"""Which of a kernel's arguments its reference is given, and what is said where they do not fit."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Fitted:
    """A reference, ready to be called with the arguments of the kernel.

    Attributes:
      call: takes all of the kernel's arguments, those by name last, and passes on what fits.
      alone: names of the arguments that it has no parameter for and is not given.
    """

    call: Callable[..., Any]
    alone: tuple[str, ...]


def fitted(
    reference: Callable[..., Any],
    function: Callable[..., Any] | None,
    symbol: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Fitted:
    """Fit a reference to the arguments of a kernel: it is not given names that it does not take.

    Arguments that the kernel's function does not take either are left to be told of that.

    Args:
      reference: what the kernel is compared with.
      function: the function that calls the kernel; None where that is made anew for each rung.
      symbol: its name.
      args: its arguments by position.
      kwargs: its arguments by name.

    Raises:
      ValueError: the reference cannot be called with the arguments by position and those by name
        that it takes; the message names them and says what to do.
    """
    signature = _signature(reference)
    alone = () if signature is None else _not_taken(signature, kwargs)
    own = None if function is None else _signature(function)
    if signature is not None and _binds(own, args, kwargs):
        try:
            signature.bind(*args, **{name: kwargs[name] for name in kwargs if name not in alone})
        except TypeError as error:
            name = getattr(reference, "__name__", "the reference")
            raise ValueError(
                f"the reference {name}{signature} cannot be called with the arguments of "
                f"{symbol}: {error}{_extras(signature, own, symbol, len(args))}"
            ) from None
    return Fitted(_passing(reference, tuple(kwargs), alone), alone)


def fits(reference: Callable[..., Any], args: Sequence[Any]) -> bool:
    """True for a reference that can be called with so many arguments, or that does not tell."""
    return _binds(_signature(reference), args, {})


def _binds(
    signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    try:
        if signature is not None:
            signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # it does not tell
        return None


def _not_taken(signature: inspect.Signature, names: Mapping[str, Any]) -> tuple[str, ...]:
    parameters = signature.parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return ()
    taken = {p.name for p in parameters if p.kind in _BY_NAME}
    return tuple(name for name in names if name not in taken)


def _passing(
    reference: Callable[..., Any], names: tuple[str, ...], alone: tuple[str, ...]
) -> Callable[..., Any]:
    """Return the reference with its last arguments passed by these names, but for some."""
    if not names:
        return reference

    @functools.wraps(reference)
    def made(*args: Any) -> Any:
        first = len(args) - len(names)
        by_name = dict(zip(names, args[first:], strict=True))
        return reference(*args[:first], **{n: v for n, v in by_name.items() if n not in alone})

    return made


def _extras(
    signature: inspect.Signature, own: inspect.Signature | None, symbol: str, given: int
) -> str:
    """Say which arguments by position a reference does not take; empty where it takes so many."""
    takes = sum(p.kind in _BY_POSITION for p in signature.parameters.values())
    if given <= takes:
        return ""
    known = (
        [] if own is None else [p.name for p in own.parameters.values() if p.kind in _BY_POSITION]
    )
    extras = [known[i] if i < len(known) else f"argument {i + 1}" for i in range(takes, given)]
    which = " and ".join(extras)
    are, them = ("is", "it") if len(extras) == 1 else ("are", "them")
    named = ", ".join(f"{name}=…" for name in extras if name.isidentifier())
    how = f" ({named})" if named else ""
    return (
        f". It has no parameter for {which}. Where {which} {are} for {symbol} alone, give {them} "
        f"by name{how}: an argument by name that the reference has no parameter for goes to "
        f"{symbol} alone"
    )
