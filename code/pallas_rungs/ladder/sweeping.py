"""Sweeps of a reader's own file, which is executed in several worker processes side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pallas_rungs.compilers.chips import TPU
from pallas_rungs.compilers.crew import Crew
from pallas_rungs.compilers.libtpu import installed_versions
from pallas_rungs.ladder.arguments import ArgumentError, check_size, parse_arguments
from pallas_rungs.ladder.estimating import TIME_LIMIT, Estimating, FileEstimate, estimate_file
from pallas_rungs.ladder.loading import LoadError, Target
from pallas_rungs.ladder.workers import FileRequest
from pallas_rungs.performance import Estimate, Sweep, Trial
from pallas_rungs.performance.clock import clock_of
from pallas_rungs.performance.sweep import NOT_TRIED, configurations_of

OnTrial = Callable[[str, Trial, int, int], None]
"""Called with a chip, a trial that ended, how many have, and how many there are in all."""


class FileSweepInterrupted(KeyboardInterrupt):
    """A sweep was interrupted.

    Attributes:
      sweeps: what came of it until then; the rest is of the kind "not tried".
    """

    def __init__(self, sweeps: list[Sweep]) -> None:
        super().__init__("interrupted")
        self.sweeps = sweeps


def sweep_file(
    target: Target,
    *,
    over: Mapping[str, Sequence[object]],
    args: str | None = None,
    chips: Sequence[str] | None = None,
    against: Target | None = None,
    case: str | None = None,
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
    workers: int | None = None,
    progress: OnTrial | None = None,
) -> list[Sweep]:
    """Estimate a function of a reader's file with many values of its arguments. Executes the file.

    Args:
      target: the file and the function.
      over: arguments by name with the values to try, which are Python literals: every value with
        every other one.
      args: its other arguments as text; None takes what the file gives (`cases()` or `inputs()`).
      chips: TPU chips; None takes v5e.
      against: a function of the same arguments that the configurations are held against.
      case: sweep only the problem of this name.
      time_limit: seconds for importing the file and for each estimate.
      seed: seed of random inputs; integers among them may decide where a kernel goes.
      workers: how many processes at the same time; as many as there are cores, if not given.
      progress: called in this thread, in the order in which configurations end.

    Returns:
      One for each problem and chip, problem by problem.

    Raises:
      LoadError: the file or the symbol cannot be tried at all; the message says why.
      ArgumentError: `args` does not parse, or stands for arrays too large for this machine.
      ValueError: no such chip, or one whose constants are not known; nothing to sweep over.
      FileSweepInterrupted: after Ctrl-C; holds what there is. No worker is left.
    """
    names = tuple(dict.fromkeys(clock_of(chip).chip for chip in chips or (TPU.default_chip,)))
    configurations = configurations_of(over)
    if args is not None:
        specs = parse_arguments(args, x64=True)
        check_size(specs)
        for spec in specs:
            if spec.name in over:
                raise ArgumentError(f"{spec.name} is given by --args and swept over by --over")
    request = FileRequest(str(target.path), target.symbol, args, seed=seed, over=tuple(over))
    waiting = [Estimating(request, time_limit)]
    with waiting[0] as first:
        problems = first.load(names[0])
        chosen = first.chosen(case)
        rivals: list[FileEstimate] = []
        sweeps = [(index, chip) for index in chosen for chip in names]
        tasks = [(*which, it) for which in sweeps for it in configurations]
        ended: dict[int, Trial] = {}

        def note(place: int, trial: Trial) -> None:
            ended[place] = trial
            if progress is not None:
                progress(tasks[place][1], trial, len(ended), len(tasks))

        def result() -> list[Sweep]:
            found = []
            for number, (index, chip) in enumerate(sweeps):
                start = number * len(configurations)
                trials = tuple(
                    ended.get(start + place, Trial(it, kind=NOT_TRIED))
                    for place, it in enumerate(configurations)
                )
                rival = None
                if against is not None:
                    rival = Trial(against.symbol, kind=NOT_TRIED)
                    if rivals:
                        rival = trial_of(against.symbol, rivals[number])
                found.append(Sweep(problems[index], chip, trials, rival, installed_versions()))
            return found

        def hire() -> Estimating:
            return waiting.pop() if waiting else Estimating(request, time_limit)

        def do(hand: Estimating, task: tuple[int, str, dict[str, object]]) -> Trial:
            index, chip, configuration = task
            try:
                hand.load(chip)
                name = problems[index]
                return trial_of(configuration, hand.estimate(index, name, chip, configuration))
            except LoadError as error:  # it was loaded before: it ends its process, or takes long
                return Trial(configuration, None, "crashed", "LoadError", _first_line(str(error)))

        try:
            with Crew(hire, do, workers) as crew:
                if against is not None:
                    rivals = estimate_file(
                        against, args=args, chips=names, case=case, time_limit=time_limit, seed=seed
                    )
                    if len(rivals) != len(sweeps):
                        raise LoadError(
                            f"{target.symbol} has {len(sweeps)} sweeps and {against.symbol} "
                            f"{len(rivals)} estimates, so they are not of the same arguments: "
                            "give them by --args"
                        )
                for place, task in enumerate(tasks):
                    crew.give(place, task)
                for done in crew.done(wait=True):
                    note(*done)
        except KeyboardInterrupt:
            raise FileSweepInterrupted(result()) from None
        return result()


def trial_of(configuration: object, found: FileEstimate) -> Trial:
    """Return what came of a configuration as a trial."""
    if not found.error:
        return Trial(configuration, Estimate.from_json(found.estimate))
    trial = Trial(configuration, None, found.kind, "", _first_line(found.error))
    return replace(trial, **found.told) if found.told else trial


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
