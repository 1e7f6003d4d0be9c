"""What a cure changes, as lines that go and lines that come."""

from types import SimpleNamespace

import pytest

from pallas_rungs.bugs import MUSEUM, dma_without_wait, element_offsets_in_index_map
from pallas_rungs.museum import cure


def test_a_line_that_moves_goes_in_one_place_and_comes_in_another() -> None:
    signs = [(sign, line.strip()) for sign, line in cure(dma_without_wait).lines if sign != " "]
    assert signs == [("+", "copy.wait()"), ("-", "copy.wait()")]


def test_only_the_variant_that_differs_is_shown_with_a_little_around_it() -> None:
    shown = cure(element_offsets_in_index_map)
    assert str(shown).splitlines() == [
        "  def fixed(x: jax.Array) -> jax.Array:",
        "-     rows = pl.BlockSpec((8, 128), lambda i: (8 * i, 0))",
        "+     rows = pl.BlockSpec((8, 128), lambda i: (i, 0))",
        "      return pl.pallas_call(",
        "          double_kernel,",
    ]


@pytest.mark.parametrize("bug", MUSEUM, ids=lambda bug: bug.__name__.rpartition(".")[2])
def test_every_cure_shows_code_and_no_docstring(bug) -> None:
    shown = cure(bug)
    assert {"-", "+"} & {sign for sign, _ in shown.lines}
    assert '"""' not in str(shown)


def test_code_is_escaped_and_told_without_colour() -> None:
    html = cure(dma_without_wait)._repr_html_()
    assert "<ins>+     copy.wait()</ins>" in html
    assert "<del>−     copy.wait()</del>" in html
    assert "-&gt; None" in cure(MUSEUM[0])._repr_html_()


def test_a_cure_that_changes_nothing_is_refused() -> None:
    bug = SimpleNamespace(
        __name__="bugs.idle", broken=dma_without_wait.cases, fixed=dma_without_wait.cases
    )
    with pytest.raises(ValueError, match="idle: broken and fixed are the same code"):
        cure(bug)
