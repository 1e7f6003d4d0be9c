"""Figures of time and rate are found in a text, limits are not, and each is written one way."""

from __future__ import annotations

import pytest

from pallas_rungs.performance.units import figures_in, in_words, unit_in_heading


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it takes 20.3 µs here", [("20.3 µs", "time")]),
        ("1 us, 2ms; 4.5 s.", [("1 us", "time"), ("2ms", "time"), ("4.5 s", "time")]),
        ("18.1 µs to 22.9 µs", [("18.1 µs", "time"), ("22.9 µs", "time")]),
        ("819 GB/s and 197 TFLOP/s", [("819 GB/s", "rate"), ("197 TFLOP/s", "rate")]),
        ("197 10¹²/s at 1.5 GHz", [("197 10¹²/s", "rate"), ("1.5 GHz", "rate")]),
        ("1,024.5 MB/s", [("1,024.5 MB/s", "rate")]),
        ("Below 1 ms, after 2 s, 1 ms or longer, 2 s of CPU time", []),
        ("less than 0.19 ms", [("0.19 ms", "time")]),
        ("512 MiB, 8 steps, v5e 3 sums, x2s, all 0s).Block, 1s, 4 sublanes, 2 s/m", []),
        ("'3 ms'", [("3 ms", "time")]),
        (
            "2 μs, a 3-ms kernel, 4\u2009ms",
            [("2 μs", "time"), ("3-ms", "time"), ("4\u2009ms", "time")],
        ),
        ("5 milliseconds, 1 second", [("5 milliseconds", "time"), ("1 second", "time")]),
        ("2.03 × 10⁻⁵ s, .5 ms", [("2.03 × 10⁻⁵ s", "time"), (".5 ms", "time")]),
        ("7\nms, 3.1 ms/step", [("7\nms", "time"), ("3.1 ms", "time")]),
        ("{'seconds': 0.003}", [("seconds': 0.003", "time")]),
        ("8 GBps, 9 TFLOPS", [("8 GBps", "rate"), ("9 TFLOPS", "rate")]),
        ("3-step, 7\ns, operations a second, seconds", []),
    ],
)
def test_figures_in_a_text(text: str, found: list[tuple[str, str]]) -> None:
    assert list(figures_in(text)) == found


@pytest.mark.parametrize(
    ("heading", "unit"),
    [
        ("estimate, µs", ("µs", "time")),
        ("time under interpret=True on this machine's CPU, ms", ("ms", "time")),
        ("HBM, GB/s", ("GB/s", "rate")),
        ("bfloat16, 10¹²/s", ("10¹²/s", "rate")),
        ("seconds", ("seconds", "time")),
        ("the kernel (ms)", ("ms", "time")),
        ("operations a second", None),
        ("steps", None),
        ("v2 / v1, measured", None),
        ("its kernels", None),
    ],
)
def test_the_unit_of_a_heading(heading: str, unit: tuple[str, str] | None) -> None:
    assert unit_in_heading(heading) == unit


def test_each_unit_is_written_with_three_figures() -> None:
    assert in_words(1.012e-3, "s") == "1.01 ms"
    assert in_words(8.19e11, "B/s") == "819 GB/s"
    assert in_words(1.5e14, "op/s") == "150 Top/s"
    assert in_words(12, "B/s") == "12 B/s"
    assert in_words(12345.6, "cycles") == "12,346 cycles"
    with pytest.raises(ValueError, match="'min' is none of the units"):
        in_words(1, "min")
