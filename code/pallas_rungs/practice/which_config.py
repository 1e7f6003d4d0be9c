"""Exercise: say which configuration a call gets, or which error, from what is known about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Measured = Mapping[str, float | Exception]
"""Configuration -> median of its times, or why it has none."""


@dataclass(frozen=True)
class Call:
    """What is known when a call asks for its configuration.

    Attributes:
        given: the configuration of the op itself, if it has one.
        tunable: whether the op has configurations at all; without, `rule` gives "nothing to tune".
        rule: the op's rule of thumb; it may raise.
        cached: what the cache has for the call's key, if it has the key.
        tune: measures now.
        on_miss: what to do without a cached configuration: "heuristics", "autotune" or "error".
    """

    rule: Callable[[], str]
    given: str | None = None
    tunable: bool = True
    cached: Measured | None = None
    tune: Callable[[], Measured] = dict
    on_miss: str = "heuristics"


Choice = Callable[[Call], str]


def fastest(measured: Measured) -> str:
    """Return the configuration with the lowest median.

    Raises:
        ExceptionGroup: all failed.
        ValueError: there is none.
    """
    times = {name: ms for name, ms in measured.items() if not isinstance(ms, Exception)}
    if times:
        return min(times, key=lambda name: times[name])
    if failed := [error for error in measured.values() if isinstance(error, Exception)]:
        raise ExceptionGroup("All configs failed", failed)
    raise ValueError("Autotuning data is empty")


def starter(call: Call) -> str:
    """Where to begin: the five steps of the docstring, one line each."""
    if call.given is not None:
        return call.given
    if call.cached is not None:
        return fastest(call.cached)
    if call.on_miss == "autotune":
        return fastest(call.tune())
    if call.on_miss == "heuristics":
        return call.rule()
    raise ValueError("No config found")


def solution(call: Call) -> str:
    """As the code has it: the rule comes before the cache, and an empty record is a miss."""
    if call.given is not None:
        return call.given
    rule = call.rule()
    if not call.tunable:
        return rule
    if call.cached:
        return fastest(call.cached)
    if call.on_miss == "autotune":
        return fastest(call.tune())
    if call.on_miss == "heuristics":
        return rule
    raise ValueError("No config found")


def rule_first(call: Call) -> str:
    """Wrong: asks the rule even where the op has its configuration."""
    rule = call.rule()
    if call.given is not None:
        return call.given
    if not call.tunable:
        return rule
    if call.cached:
        return fastest(call.cached)
    if call.on_miss == "autotune":
        return fastest(call.tune())
    if call.on_miss == "heuristics":
        return rule
    raise ValueError("No config found")


def null_is_last(call: Call) -> str:
    """Wrong: an op without configurations is treated as any other."""
    if call.given is not None:
        return call.given
    rule = call.rule()
    if call.cached:
        return fastest(call.cached)
    if call.on_miss == "autotune":
        return fastest(call.tune())
    if call.on_miss == "heuristics":
        return rule
    raise ValueError("No config found")


def failures_are_a_miss(call: Call) -> str:
    """Wrong: goes on where everything in the cache has failed."""
    if call.given is not None:
        return call.given
    rule = call.rule()
    if not call.tunable:
        return rule
    if call.cached and any(not isinstance(ms, Exception) for ms in call.cached.values()):
        return fastest(call.cached)
    if call.on_miss == "autotune":
        return fastest(call.tune())
    if call.on_miss == "heuristics":
        return rule
    raise ValueError("No config found")


WRONG: tuple[tuple[Choice, str], ...] = (
    (starter, "rule of thumb is asked"),
    (rule_first, "before anything else"),
    (null_is_last, "nothing to tune"),
    (failures_are_a_miss, "all failed"),
)


def _no_rule() -> str:
    raise NotImplementedError("no rule of thumb")


CALLS: tuple[tuple[Call, str | type[Exception], str], ...] = (
    (
        Call(given="mine", rule=_no_rule),
        "mine",
        "an op that has its configuration returns it before anything else is asked",
    ),
    (Call(rule=lambda: "rule"), "rule", "without a cached one, the rule of thumb is the default"),
    (
        Call(rule=lambda: "rule", cached={"a": 2.0, "b": 1.0, "c": ValueError("no")}),
        "b",
        "the cached configuration with the lowest median goes before the rule of thumb",
    ),
    (
        Call(rule=_no_rule, cached={"a": 1.0}),
        NotImplementedError,
        "the rule of thumb is asked before the cache is, so that a rule that raises hides it",
    ),
    (
        Call(rule=_no_rule, on_miss="autotune", tune=lambda: {"a": 1.0}),
        NotImplementedError,
        "the rule of thumb is asked first, even where it would not be used",
    ),
    (
        Call(rule=lambda: "rule", cached={}),
        "rule",
        "an empty record is a miss: the cache has the key, and no configuration",
    ),
    (
        Call(rule=lambda: "rule", cached={"a": ValueError("no")}),
        ExceptionGroup,
        "a record whose configurations all failed is no miss: it raises",
    ),
    (
        Call(rule=lambda: "null", tunable=False, cached={"a": 1.0}, on_miss="error"),
        "null",
        "an op with nothing to tune has one answer, whatever is cached and asked",
    ),
    (
        Call(rule=lambda: "rule", cached={}, on_miss="autotune", tune=lambda: {"a": 2.0, "b": 1.0}),
        "b",
        "after a miss that asks for it, the fastest of what was measured now",
    ),
    (
        Call(rule=lambda: "rule", on_miss="error"),
        ValueError,
        "after a miss that asks for it, an error, though there is a rule of thumb",
    ),
)
"""Calls, what each gets, and why."""


def outcome(choice: Choice, call: Call) -> Any:
    """Return what a choice returns for a call, or the type of what it raises."""
    try:
        return choice(call)
    except Exception as error:
        return type(error)


def check(choice: Choice) -> None:
    """Try a choice on ten calls.

    Args:
        choice: takes a `Call`, returns a configuration or raises.

    Raises:
        AssertionError: it returns or raises something else than the library would; holds the call
            and the rule.
    """
    for call, expected, why in CALLS:
        got = outcome(choice, call)
        if got != expected:
            raise AssertionError(
                f"{_told(call)}\nyou give {_shown(got)}, the library {_shown(expected)}.\n"
                f"Hint: {why}"
            )


def _told(call: Call) -> str:
    cached = "no record" if call.cached is None else f"the record {dict(call.cached)}"
    rule = outcome(lambda call: call.rule(), call)
    return (
        f"An op given {call.given!r}, with a rule that gives {_shown(rule)}, {cached}, and on a "
        f"miss {call.on_miss!r}{'' if call.tunable else ', nothing to tune'}:"
    )


def _shown(outcome: Any) -> str:
    return outcome.__name__ if isinstance(outcome, type) else repr(outcome)
