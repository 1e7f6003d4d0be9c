"""A figure of time or rate without provenance fails the build, with page, cell and figure."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_rungs.book.figures_check import (
    bare_in_prose,
    figures_without_provenance,
    prose_of,
)
from pallas_rungs.claims import MIME as CLAIM
from pallas_rungs.performance.provenance import MIME, Provenance

OF = Provenance("estimate", "v5e", ("bf16[8]",), "by counting", {"jax": "0.12.0.1"})
LINE = (
    "estimate, not a measurement, for v5e: bf16[8]; by counting; jax 0.12.0.1; made in this build"
)


def stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def shown(html: str, *marks: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"text/html": html, "text/plain": "…"}
    if marks:
        data[MIME] = [mark.to_json() if isinstance(mark, Provenance) else mark for mark in marks]
    return {"output_type": "execute_result", "data": data}


@pytest.mark.parametrize(
    ("output", "figures"),
    [
        (stream("it took 20.3 µs"), ["20.3 µs"]),
        (shown("<p>819 GB/s</p>"), ["819 GB/s"]),
        (shown("<b>20.3</b> <i>bytes</i>"), []),
        (shown("<table><th>estimate, <b>µs</b></th></table>"), ["under 'estimate,  µs'"]),
        (shown('<svg><text x="1">time, ms</text></svg>'), ["under 'time, ms'"]),
        (shown("<style>a{transition:all 2s}</style><p>steps</p>"), []),
        ({"output_type": "execute_result", "data": {"text/plain": "'3 ms'"}}, ["3 ms"]),
        (stream("below 1 ms it is short; 512 MiB"), []),
        ({"output_type": "display_data", "data": {CLAIM: {}, "text/html": "3 ms"}}, []),
        (shown("<td>20.3</td><td>µs</td>"), ["20.3\n\nµs"]),
        (shown('<img alt="it took 3 ms">'), ["3 ms"]),
        (shown("<caption>times in ms</caption><td>3</td>"), ["under 'times in ms'"]),
        ({"output_type": "display_data", "data": {"text/markdown": "**3** ms"}}, ["3 ms"]),
        ({"output_type": "display_data", "data": {"text/latex": r"$3\,\mu$s"}}, ["3 µs"]),
    ],
)
def test_bare_figures_of_an_output(output: dict[str, Any], figures: list[str]) -> None:
    assert figures_without_provenance(output)[0] == figures


def test_provenance_in_the_output_is_enough() -> None:
    assert figures_without_provenance(stream(f"20.3 µs\n{LINE}")) == ([], "")
    assert figures_without_provenance(shown("<p>20.3 µs</p>", OF)) == ([], "")
    assert figures_without_provenance(shown(f"<p>20.3 µs</p><p>{LINE}</p>")) == ([], "")


def test_a_mark_that_lacks_something_is_none() -> None:
    lacking = OF.to_json()
    lacking["chip"] = ""
    figures, why = figures_without_provenance(shown("<p>20.3 µs</p>", OF, lacking))
    assert figures == ["20.3 µs"]
    assert "`chip` is missing" in why


def test_constants_vouch_for_rates_and_not_for_times() -> None:
    constants = {"kind": "constants", "source": "a data sheet"}
    assert figures_without_provenance(shown("<p>819 GB/s</p>", constants)) == ([], "")
    figures, why = figures_without_provenance(shown("<p>819 GB/s in 2 ms</p>", constants))
    assert figures == ["2 ms"]
    assert why.startswith("a mark of constants covers rates of chips")
    figures, _ = figures_without_provenance(shown("<p>819 GB/s</p>", {"kind": "constants"}))
    assert figures == ["819 GB/s"]


PAGE = """\
---
minutes: 3 ms
---

# It takes 4 ms

`5 ms` in code, [a link](https://example.org/6ms) and 7 ms.

```{code-cell} python
x = "8 ms"
```

```text
9 ms
```

````{note}
10 ms, as a note says
```python
11 ms
```
12 ms
````

13 ms at the end, and 14 ms that a claim has.

```{admonition} 15 ms
**16** ms, $17\\,\\mathrm{ms}$ and 18&nbsp;ms
```
"""


def test_prose_is_what_is_no_code() -> None:
    found = list(bare_in_prose(PAGE, "It takes 14 ms."))
    assert [figure for _, figure in found] == [
        *("4 ms", "7 ms", "10 ms", "12 ms", "13 ms"),
        *("15 ms", "16 ms", "17 ms", "18\u00a0ms"),
    ]
    lines = PAGE.splitlines()
    assert all(figure[:2].strip() in lines[number - 1] for number, figure in found)
    assert [number for number, _ in prose_of("a\n```\nb\n```\nc")] == [1, 5]


GOOD = """
from pallas_rungs.claims import claim, refuses
from pallas_rungs.figures import table, time_table, told
from pallas_rungs.performance.provenance import Provenance, Quantity
OF = Provenance("estimate", "v5e", ("bf16[8]",), "by counting", {"jax": "0.12.0.1"})
TIME = Quantity(2e-3, "s", OF)
"""


@pytest.fixture(scope="module")
def planted(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The build of a book with a healthy page and pages with one bare figure each."""
    book = small.book(tmp_path_factory.mktemp("figures"))
    cell, chapter = small.cell, small.chapter
    book.write(
        "book/healthy.md",
        chapter(
            cell(GOOD)
            + cell('time_table({"n": "label", "t": "estimate"}, [("a", TIME)])')
            + cell('told("{} for all of it", TIME)')
            + cell('table(["HBM, GB/s"], [("819",)], source="a data sheet")')
            + cell(
                'with claim("Twice 2 ms is 4 ms.", rung="trace"):\n'
                "    assert 2 * TIME.value == 4e-3"
            )
            + cell('with refuses(ValueError, match="took"):\n    raise ValueError("it took 2 ms")')
            + cell('print("hidden: 9 ms")', ":tags: [remove-output]\n")
            + cell('from myst_nb import glue\nglue("time", str(TIME), display=False)')
            + "It takes {glue:text}`time`, and 4 ms for two.\n",
            rungs="trace",
        ),
    )
    faults = {
        "printed": cell("x = 1") + cell('print(f"{3.25:.2f} ms")'),
        "heading": cell(GOOD) + cell('table(["n", "time, µs"], [(1, 20.3)])'),
        "rate": cell(GOOD) + cell('table(["HBM"], [("819 GB/s",)])'),
    }
    for name, body in faults.items():
        book.write(f"book/{name}.md", chapter(body, rungs=""))
    book.write("book/prose.md", chapter(cell("x = 1") + "It takes 5 ms.\n", rungs=""))
    book.write("book/plain.md", "# A page without cells\n\nIt takes 6 ms.\n")
    book.configure()
    return book.build()


def test_planted_figures_fail_the_build(planted: Any) -> None:
    assert planted.code != 0
    assert "healthy" not in planted.report
    assert planted.report.count("a figure without provenance") == 5


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("book/printed.md:22: code cell 2", "a figure without provenance: 3.25 ms"),
        ("book/heading.md:28: code cell 2", "a figure without provenance: under 'time, µs'"),
        ("book/rate.md:28: code cell 2", "a figure without provenance: 819 GB/s"),
        ("book/prose.md:22: prose", "a figure without provenance: 5 ms"),
        ("book/plain.md:3: prose", "a figure without provenance: 6 ms"),
    ],
)
def test_a_planted_figure_is_named_with_its_place(planted: Any, place: str, said: str) -> None:
    fault = planted.fault(place)
    assert said in fault
    assert "assert it in a claim" in fault
