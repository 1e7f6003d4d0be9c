"""Exercise: make one figure and its range of a list of times, as a record keeps them."""

import statistics
from collections.abc import Callable, Sequence

Figure = Callable[[Sequence[float], int], tuple[float, float, float]]

SAMPLES: tuple[tuple[str, tuple[float, ...], int], ...] = (
    ("steady", (5.0, 5.0, 5.0, 5.0, 5.0), 0),
    ("the first two calls compile", (900.0, 60.0, 5.0, 6.0, 7.0, 8.0, 9.0), 2),
    ("one call was interrupted", (9.0, 5.0, 6.0, 400.0, 7.0, 8.0, 6.0, 7.0), 1),
    ("drawn in no order", (8.0, 3.0, 9.0, 1.0, 4.0, 7.0, 2.0, 6.0), 0),
)
"""What it is, times in the order of the calls, and how many of them warmed up."""


def starter(times: Sequence[float], warm_up: int) -> tuple[float, float, float]:
    """Where to begin: the least, the mean and the most of all calls.

    Args:
        times: of the calls, in their order.
        warm_up: how many of the first ones are no samples.

    Returns:
        the range's lower end, the figure, and the range's upper end.
    """
    return min(times), sum(times) / len(times), max(times)


def solution(times: Sequence[float], warm_up: int) -> tuple[float, float, float]:
    """The quartiles of the warm calls: half of them lie between the outer two."""
    low, median, high = statistics.quantiles(times[warm_up:], n=4)
    return low, median, high


def cold_calls_too(times: Sequence[float], warm_up: int) -> tuple[float, float, float]:
    """Wrong: takes the calls that compiled for samples."""
    low, median, high = statistics.quantiles(times, n=4)
    return low, median, high


def mean_of_the_warm(times: Sequence[float], warm_up: int) -> tuple[float, float, float]:
    """Wrong: one interrupted call moves the mean."""
    warm = times[warm_up:]
    low, _, high = statistics.quantiles(warm, n=4)
    return low, sum(warm) / len(warm), high


def fastest_call(times: Sequence[float], warm_up: int) -> tuple[float, float, float]:
    """Wrong: the best case, told as though it were what to expect."""
    low, _, high = statistics.quantiles(times[warm_up:], n=4)
    return low, min(times[warm_up:]), high


def whole_range(times: Sequence[float], warm_up: int) -> tuple[float, float, float]:
    """Wrong: the range is that of the worst call."""
    warm = times[warm_up:]
    return min(warm), statistics.median(warm), max(warm)


WRONG: tuple[tuple[Figure, str], ...] = (
    (cold_calls_too, "the first calls compile"),
    (mean_of_the_warm, "a mean goes wherever one interrupted call"),
    (fastest_call, "half of the calls take longer"),
    (whole_range, "quartiles"),
)


def check(figure: Figure) -> None:
    """Hold a function against four lists of times.

    Args:
        figure: called with times in the order of their calls, and the number that warmed up;
            returns the range's lower end, the figure and the range's upper end.

    Raises:
        AssertionError: one of the three is another; holds the list and a hint.
    """
    for name, times, warm_up in SAMPLES:
        want = statistics.quantiles(times[warm_up:], n=4)
        got = tuple(figure(times, warm_up))
        if len(got) != 3:
            raise AssertionError(f"{name}: three numbers are asked for, and {len(got)} came")
        if all(abs(g - w) < 1e-9 for g, w in zip(got, want, strict=True)):
            continue
        raise AssertionError(
            f"{name}, {times}: {got}, not {tuple(want)}.\nHint: {_hint(got, times, warm_up)}"
        )


def _hint(got: Sequence[float], times: Sequence[float], warm_up: int) -> str:
    warm = times[warm_up:]
    if got[1] in (statistics.median(times), sum(times) / len(times)) and warm_up:
        return "the first calls compile and fill caches; leave out those that warmed up"
    if abs(got[1] - sum(warm) / len(warm)) < 1e-9 and got[1] != statistics.median(warm):
        return "a mean goes wherever one interrupted call takes it; a median does not"
    if got[1] == min(warm) and got[1] != statistics.median(warm):
        return "half of the calls take longer than the figure should be: take the one in the middle"
    return "the range's ends are the quartiles, below and above which a quarter of the calls lies"
