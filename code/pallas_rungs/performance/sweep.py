"""`sweep`: one program with many tiles, each estimated; the refused ones are results too.

    from pallas_rungs.performance import sweep
    sweep(matmul, x, y, over={"block": [(512, 512, 512), (1024, 512, 1024)]}, chip="v5e")

Programs are traced in the thread of the caller and compiled in several workers, one process each.
What comes of a configuration hangs neither on the others nor on the order in which they end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pallas_rungs.compilers.chips import Chip
from pallas_rungs.compilers.crew import Crew
from pallas_rungs.compilers.dumps import FOR_ESTIMATES, Dumper
from pallas_rungs.compilers.libtpu import installed_versions, why_unavailable
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.memory_overflow import in_words, memory_overflow
from pallas_rungs.performance.accuracy import ranges_meet
from pallas_rungs.performance.clock import clock_of
from pallas_rungs.performance.estimate import (
    METHOD,
    TIME_LIMIT,
    Estimate,
    EstimateError,
    Program,
    estimate_of,
    prepare,
)

NOT_TRIED: Final = "not tried"
"""The kind of a configuration whose turn had not come when a sweep was interrupted."""

UNREADABLE: Final = "unreadable"
"""The kind of a configuration that was compiled, but whose dump could not be read."""


@dataclass(frozen=True)
class Trial:
    """What came of one configuration.

    Attributes:
      configuration: arguments by name, or whatever the sweep was given a list of.
      estimate: the estimate; None where there is none.
      kind: why there is none: "refused" (by the kernel itself, while it was traced, or by the
        compiler), "crashed", "timed out", "deadlocked", "unavailable", "unreadable" or
        "not tried"; empty where there is one.
      error_type: type of the error, `ValueError`; empty where there is none.
      message: what was said, in one line; empty where there is an estimate.
      memory: `space`, `used` and `limit` in bytes, where memory of the chip was too small for it.
    """

    configuration: Any
    estimate: Estimate | None = None
    kind: str = ""
    error_type: str = ""
    message: str = ""
    memory: dict[str, Any] | None = None

    @property
    def label(self) -> str:
        """The configuration in words, `bm=256, bk=512`."""
        return label_of(self.configuration)

    @property
    def seconds(self) -> float:
        """The estimate's seconds; infinite where there is no estimate."""
        return float("inf") if self.estimate is None else self.estimate.seconds

    @property
    def why(self) -> str:
        """Why there is no estimate, in one line; empty where there is one."""
        if self.estimate is not None:
            return ""
        told = ": ".join(filter(None, (self.error_type, self.message)))
        return f"{self.kind}: {in_words(self.memory) if self.memory else told}".rstrip(": ")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        told: dict[str, Any] = {"configuration": _plain(self.configuration)}
        if self.estimate is not None:
            return {**told, "estimate": self.estimate.to_json()}
        return told | {name: value for name, value in self.told().items() if value is not None}

    def told(self) -> dict[str, Any]:
        """Return why there is no estimate, as plain JSON data."""
        return {name: getattr(self, name) for name in ("kind", "error_type", "message", "memory")}


@dataclass(frozen=True)
class Sweep:
    """What came of every configuration of a sweep, on one chip. Estimates, not measurements.

    Attributes:
      name: the function's name.
      chip: the chip's name.
      trials: one for each configuration, in the order in which they were given.
      against: what came of the function that they are held against; None where there is none.
      versions: of jax, jaxlib and libtpu.
      method: how the estimates were made.
    """

    name: str
    chip: str
    trials: tuple[Trial, ...]
    against: Trial | None
    versions: dict[str, str]
    method: str = METHOD

    @property
    def estimated(self) -> tuple[Trial, ...]:
        """The configurations that have an estimate."""
        return tuple(trial for trial in self.trials if trial.estimate is not None)

    @property
    def refused(self) -> tuple[Trial, ...]:
        """The configurations that have none, for whatever reason."""
        return tuple(trial for trial in self.trials if trial.estimate is None)

    @property
    def best(self) -> Trial:
        """The configuration with the shortest estimate, the first of several.

        Raises:
          LookupError: no configuration has an estimate; the message says what the first one met.
        """
        if not self.estimated:
            first = self.trials[0]
            raise LookupError(
                f"none of the {len(self.trials)} configurations of {self.name} has an estimate on "
                f"{self.chip}; {first.label}: {first.why}"
            )
        return min(self.estimated, key=lambda trial: trial.seconds)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Dtypes and shapes of the arguments, as an estimate tells them; empty without one."""
        told = [trial.estimate for trial in self.trials if trial.estimate is not None]
        return told[0].arguments if told else ()

    def not_told_apart(self) -> tuple[Trial, ...]:
        """The configurations whose range meets the best one's, the best one included.

        The ranges hold the estimator's error on other kernels. Where it is not known no two
        configurations can be told apart, and all that have an estimate are returned.

        Raises:
          LookupError: no configuration has an estimate.
        """
        best = self.best.estimate
        assert best is not None
        near = []
        for trial in self.estimated:
            found = trial.estimate
            assert found is not None
            if ranges_meet((found.low, found.high), (best.low, best.high)) is not False:
                near.append(trial)
        return tuple(near)

    def ratio(self, trial: Trial) -> float | None:
        """Return a configuration's estimate as a part of that of `against`; None without both."""
        if trial.estimate is None or self.against is None or self.against.estimate is None:
            return None
        return trial.seconds / self.against.seconds if self.against.seconds else None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, which says that these are estimates."""
        return {
            "kind": "sweep of estimates",
            "name": self.name,
            "chip": self.chip,
            "arguments": list(self.arguments),
            "best": self.trials.index(self.best) if self.estimated else None,
            "trials": [
                {**trial.to_json(), "ratio": self.ratio(trial)}
                if self.against is not None
                else trial.to_json()
                for trial in self.trials
            ],
            "against": None if self.against is None else self.against.to_json(),
            "versions": dict(self.versions),
            "method": self.method,
        }

    def __str__(self) -> str:
        from pallas_rungs.performance.sweep_report import sweep_text

        return sweep_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from pallas_rungs.performance.sweep_report import sweep_html

        return sweep_html(self)


class SweepInterrupted(KeyboardInterrupt):
    """A sweep was interrupted; nothing that it had estimated is lost.

    Attributes:
      sweep: what came of it until then; the rest is of the kind "not tried".
    """

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(f"{len(sweep.estimated)} of {len(sweep.trials)} configurations estimated")
        self.sweep = sweep


OnTrial = Callable[[Trial, int, int], None]
"""Called with a trial that ended, how many have, and how many there are."""


def sweep(
    fn: Callable[..., Any],
    *args: Any,
    over: Mapping[str, Sequence[Any]] | Iterable[Any],
    chip: str | Chip = "v5e",
    against: Callable[..., Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    workers: int | None = None,
    time_limit: float = TIME_LIMIT,
    progress: OnTrial | None = None,
) -> Sweep:
    """Estimate the time of a program on a TPU for each of several configurations.

    Args:
      fn: with a mapping for `over`, the function; else it is called with a configuration and
        returns the function.
      *args: the function's arguments, or their shapes and dtypes; see `estimate`.
      over: arguments by name with the values to try, `{"bm": [128, 256], "bn": [128]}`: every
        value with every other one, the last name's changing fastest. Or configurations of any
        kind, one after the other.
      chip: a TPU chip whose constants are known (`clock.CLOCKS`).
      against: a function of the same arguments that every configuration is held against.
      kwargs: further arguments by name, the same for all, `against` included.
      workers: compilers at work, a process each; as many as there are cores, if not given.
      time_limit: seconds that the compiler may take for each.
      progress: called in this thread, in the order in which configurations end.

    Returns:
      One trial for each configuration, in their order; the same each time.

    Raises:
      ValueError: no such chip, or one whose constants are not known; nothing to sweep over.
      EstimateError: libtpu is not here.
      SweepInterrupted: after Ctrl-C; holds what there is. No worker is left.
    """
    name = clock_of(chip).chip
    configurations = list(configurations_of(over))
    if reason := why_unavailable():
        raise EstimateError("unavailable", reason)
    made = _making(fn, by_name=isinstance(over, Mapping))
    asked: list[tuple[Any, Callable[[], Callable[..., Any]]]] = [
        (configuration, partial(made, configuration)) for configuration in configurations
    ]
    if against is not None:
        rival = against
        asked.append((_name_of(rival), lambda: rival))
    ended: dict[int, Trial] = {}

    def note(place: int, trial: Trial) -> None:
        ended[place] = trial
        if progress is not None and place < len(configurations):
            progress(trial, len(ended.keys() - {len(configurations)}), len(configurations))

    def result() -> Sweep:
        trials = [
            ended.get(place, Trial(configuration, kind=NOT_TRIED))
            for place, (configuration, _) in enumerate(asked)
        ]
        held = trials.pop() if against is not None else None
        return Sweep(_name_of(fn), name, tuple(trials), held, installed_versions())

    def do(dumper: Dumper, task: tuple[Any, Program]) -> Trial:
        configuration, program = task
        return tried(
            configuration,
            lambda: estimate_of(
                program, dumper.compile(program.exported, name, time_limit=time_limit, hlo=True)
            ),
        )

    try:
        with Crew(lambda: Dumper(FOR_ESTIMATES), do, workers) as crew:
            for place, (configuration, make) in enumerate(asked):
                try:
                    program = prepare(make(), *args, chip=name, kwargs=kwargs)
                except (Exception, SystemExit) as error:
                    note(place, failed(configuration, error))
                else:
                    crew.give(place, (configuration, program))
                for done in crew.done(wait=False):
                    note(*done)
            for done in crew.done(wait=True):
                note(*done)
    except KeyboardInterrupt:
        raise SweepInterrupted(result()) from None
    return result()


def configurations_of(over: Mapping[str, Sequence[Any]] | Iterable[Any]) -> list[Any]:
    """Return the configurations that `over` stands for, in their order; see `sweep`.

    Raises:
      ValueError: there is none; or a name comes with something else than a list of values.
    """
    if not isinstance(over, Mapping):
        found = list(over)
        if not found:
            raise ValueError("there is nothing to sweep over: the list of configurations is empty")
        return found
    for name, values in over.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise ValueError(
                f"the values of {name!r} to sweep over are {values!r}; give a list of them, "
                f"such as {{{name!r}: [128, 256]}}"
            )
    if not over:
        raise ValueError("there is nothing to sweep over: no argument was named")
    return [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]


def label_of(configuration: Any) -> str:
    """Write a configuration in one line, `bm=256, bk=512`."""
    if isinstance(configuration, Mapping):
        return ", ".join(f"{name}={value}" for name, value in configuration.items())
    return str(configuration)


def tried(configuration: Any, make: Callable[[], Estimate]) -> Trial:
    """Return the trial of an estimate that `make` makes, or of what it raises instead."""
    try:
        return Trial(configuration, make())
    except (Exception, SystemExit) as error:
        return failed(configuration, error)


def failed(configuration: Any, error: BaseException) -> Trial:
    """Return the trial of a configuration that ended in an error."""
    kind, error_type, text = "refused", type(error).__name__, str(error)
    if isinstance(error, EstimateError):
        kind, error_type = error.kind, ""
        if error.outcome is not None:
            error_type, text = error.outcome.error_type, error.outcome.message
    elif isinstance(error, IRError):
        kind = UNREADABLE
    overflow = memory_overflow(text) if kind == "refused" else None
    return Trial(configuration, None, kind, error_type, _first_line(text), overflow)


def _making(fn: Callable[..., Any], *, by_name: bool) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes a function of a configuration, under the name of what it was made of."""

    def made(configuration: Any) -> Callable[..., Any]:
        if by_name:
            function = partial(fn, **configuration)
        else:
            function = fn(configuration)
            if not callable(function):
                raise TypeError(
                    f"the function of a configuration returned {function!r}, which is no function"
                )

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__name__ = _name_of(function)  # the compiler names programs by it
        return call

    return made


def _name_of(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _plain(value: Any) -> Any:
    """A configuration as JSON data: what JSON cannot hold, in words."""
    if isinstance(value, Mapping):
        return {str(name): _plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
