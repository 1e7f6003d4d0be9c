"""The names by which a kernel's file tells the ladder what to try.

A module may define, beside the function to climb (SYMBOL):

- `SYMBOL(*arrays)`, which calls a Pallas kernel; or a factory `SYMBOL(interpret)`, which returns
  such a function;
- `inputs()`: the arguments; or `cases()`: several sets of them, as a mapping from names, or a
  sequence of tuples or of objects with `.args` (and `.kwargs`, `.name`, `.rtol`, `.atol`);
- `SYMBOL_reference(*args)`, `reference(*args)` or `want(*args)`: what should come out. It is
  called as SYMBOL is; an argument by name that it has no parameter for goes to SYMBOL alone;
- `RTOL`, `ATOL`: tolerances; `R3_EXTRA`: simulator settings, name → keyword arguments.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.references import Fitted, fitted


class ProtocolError(ValueError):
    """A file does not hold what the ladder needs to try its kernel."""


def problem_from_module(
    module: ModuleType,
    symbol: str,
    args: Sequence[Any] | None = None,
    reference: Callable[..., Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> list[Problem]:
    """Return the problems that a module poses, one for each set of arguments.

    Args:
      module: the kernel's file, loaded.
      symbol: name of the function or factory to climb.
      args: arguments to use instead of the file's own.
      reference: reference to use instead of the file's own.
      kwargs: arguments by name, beside `args`.

    Raises:
      ProtocolError: the symbol is missing or is no function, there are no arguments for it, or the
        reference cannot be called with them.
    """
    function = function_named(module, symbol)
    factory = function if is_factory(function) else None
    reference = reference or reference_of(module, symbol)
    posed = []
    for case in _cases(module, symbol, function, factory, args, kwargs or {}):
        by_name = tuple(case.kwargs)
        fit = reference and _fitted(reference, None if factory else function, symbol, case)
        made = _made_for_chip(factory) if factory else function
        posed.append(
            Problem(
                name=f"{symbol} {case.name}".strip(),
                function=_called_by_name(made, by_name),
                args=(*case.args, *case.kwargs.values()),
                reference=fit.call if fit else None,
                rtol=case.rtol,
                atol=case.atol,
                simulations=dict(getattr(module, "R3_EXTRA", {})),
                factory=factory and _making_called_by_name(factory, by_name),
                kernel_alone=fit.alone if fit else (),
            )
        )
    return posed


def configured(problem: Problem, configuration: Mapping[str, Any]) -> Problem:
    """Return the problem with further arguments given by name, the same on every call."""
    if not configuration:
        return problem
    factory = problem.factory

    def with_them(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def made(*args: Any) -> Any:
            return function(*args, **configuration)

        return made

    return dataclasses.replace(
        problem,
        function=with_them(problem.function),
        factory=factory and (lambda interpret: with_them(factory(interpret))),
    )


def _called_by_name(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return the function with its last arguments, given by position, passed by these names."""
    if not names:
        return function

    @functools.wraps(function)
    def made(*args: Any, **more: Any) -> Any:
        first = len(args) - len(names)
        return function(*args[:first], **dict(zip(names, args[first:], strict=True)), **more)

    return made


def _making_called_by_name(
    factory: Callable[[Any], Callable[..., Any]], names: Sequence[str]
) -> Callable[[Any], Callable[..., Any]]:
    if not names:
        return factory

    @functools.wraps(factory)
    def made(interpret: Any) -> Callable[..., Any]:
        return _called_by_name(factory(interpret), names)

    return made


def _fitted(
    reference: Callable[..., Any], function: Callable[..., Any] | None, symbol: str, case: _Case
) -> Fitted:
    try:
        return fitted(reference, function, symbol, case.args, case.kwargs)
    except ValueError as error:
        raise ProtocolError(str(error)) from None


def function_named(module: ModuleType, symbol: str) -> Callable[..., Any]:
    """Return the function `symbol` of the module.

    Raises:
      ProtocolError: there is none; the message lists the functions there are.
    """
    where = getattr(module, "__file__", None) or module.__name__
    found: Any = module
    try:
        for part in symbol.split("."):  # dots reach into classes and instances
            found = getattr(found, part)
    except AttributeError:
        names = sorted(
            name
            for name, value in vars(module).items()
            if callable(value)
            and not name.startswith("_")
            and not isinstance(value, type)
            and getattr(value, "__module__", None) == module.__name__
        )
        there = f"; it defines {', '.join(names)}" if names else ""
        raise ProtocolError(f"{where} has no {symbol!r}{there}") from None
    if not callable(found) or isinstance(found, type):
        raise ProtocolError(
            f"{where}: {symbol!r} is no function but {_a(type(found).__name__)}; "
            "name a function that calls pallas_call"
        )
    function: Callable[..., Any] = found
    return function


def is_factory(function: Callable[..., Any]) -> bool:
    """True for a function whose one required parameter is `interpret`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return [p.name for p in required] == ["interpret"]


def reference_of(module: ModuleType, symbol: str) -> Callable[..., Any] | None:
    """Return the module's reference for `symbol`, if it has one."""
    for name in (f"{symbol}_reference", "reference", "want"):
        found = getattr(module, name, None)
        if callable(found) and name != symbol:
            reference: Callable[..., Any] = found
            return reference
    return None


def _made_for_chip(factory: Callable[[Any], Callable[..., Any]]) -> Callable[..., Any]:
    def made(*args: Any, **more: Any) -> Any:
        return factory(False)(*args, **more)

    return made


@dataclass(frozen=True)
class _Case:
    """One call to try."""

    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    rtol: float | None
    atol: float | None


def _cases(
    module: ModuleType,
    symbol: str,
    function: Callable[..., Any],
    factory: Callable[..., Any] | None,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any],
) -> list[_Case]:
    rtol, atol = getattr(module, "RTOL", None), getattr(module, "ATOL", None)
    if args is not None:
        return [_Case("", args, kwargs, rtol, atol)]
    for name in (f"{symbol}_cases", "cases"):
        if callable(getattr(module, name, None)):
            return [_case(i, case, rtol, atol) for i, case in enumerate(_listed(module, name))]
    if callable(getattr(module, "inputs", None)):
        return [_Case("", _tuple(module.inputs()), {}, rtol, atol)]
    if factory is None and not _required(function):
        return [_Case("", (), {}, rtol, atol)]
    where = getattr(module, "__file__", None) or module.__name__
    raise ProtocolError(
        f"{where} has neither inputs() nor cases(): say what {symbol} is called with, "
        "for instance --args 'f32[256,512], bf16[512,512]'"
    )


def _listed(module: ModuleType, name: str) -> list[Any]:
    cases = getattr(module, name)()
    if isinstance(cases, Mapping):
        return list(cases.items())
    if isinstance(cases, Sequence) and cases:
        return list(cases)
    raise ProtocolError(f"{name}() of {module.__name__} gave no cases: {cases!r}")


def _case(index: int, case: Any, rtol: float | None, atol: float | None) -> _Case:
    name, held = f"case {index}", case
    if isinstance(case, tuple) and len(case) == 2 and isinstance(case[0], str):
        name, held = case
    kwargs: Mapping[str, Any] = {}
    if hasattr(held, "args"):
        name = getattr(held, "name", name)
        rtol = getattr(held, "rtol", rtol)
        atol = getattr(held, "atol", atol)
        kwargs = getattr(held, "kwargs", kwargs) or {}
        held = held.args
    return _Case(name, _tuple(held), kwargs, rtol, atol)


def _tuple(args: Any) -> tuple[Any, ...]:
    return tuple(args) if isinstance(args, tuple | list) else (args,)


def _required(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.default is p.empty and p.kind in (0, 1) for p in parameters)


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
