"""Wrong numbers: a hint shows where it applies, and nowhere else; what to do next always does."""

import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from ladder.core import wrong_kernels as wrong
from pallas_rungs.ladder import Report, Status, climb
from pallas_rungs.ladder.compare import compare
from pallas_rungs.ladder.index_maps import IndexMaps, Tiling
from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.program import trace
from pallas_rungs.ladder.report_html import report_html
from pallas_rungs.ladder.report_markdown import report_markdown
from pallas_rungs.ladder.rules import suggestions

WANT = np.random.default_rng(1).standard_normal((32, 512)).astype(np.float32)
TILED = {(32, 512): Tiling((32, 512), (8, 128), {})}

SWAPPED = {("index_map_axes_swapped", "Likely rule")}
MAY_BE_SWAPPED = {("index_map_axes_swapped", "Candidate")}
WITHOUT_AXIS = {("output_map_without_axis", "Candidate")}
SHORT_GRID = {("grid_rounded_down", "Candidate")}
NOTHING: set[tuple[str, str]] = set()


def transposed_twice(x):
    return 2 * x.reshape(64, 256).repeat(4, 0).T


KERNELS = [
    (wrong.swapped, wrong.twice, SWAPPED),
    (wrong.swapped_output, wrong.twice, SWAPPED),
    (wrong.one_swapped_of_two, wrong.twice, MAY_BE_SWAPPED),
    (wrong.swapped_on_a_rectangle, lambda x: 2 * x[:16], MAY_BE_SWAPPED),
    (wrong.without_last_axis, wrong.twice, WITHOUT_AXIS),
    (wrong.without_first_axis, wrong.twice, WITHOUT_AXIS),
    (wrong.product_over_a_short_grid, lambda x: 2 * x[:20, :128], SHORT_GRID),
    (wrong.triple, wrong.twice, NOTHING),
    (wrong.triple_on_parallel_axes, wrong.twice, NOTHING),
    (wrong.transposed_and_tripled, transposed_twice, NOTHING),
    (wrong.plus_the_other_program_id, lambda x: x + np.arange(4).repeat(8)[:, None], NOTHING),
    (wrong.root_in_partial_blocks, lambda x: np.abs(x[:20, :128]) ** 0.5, NOTHING),
    (wrong.mean_along_the_other_axis, lambda x: x[:20, :128].mean(1, keepdims=True), NOTHING),
    (wrong.sum_of_roots, lambda x: np.zeros((32, 128)), NOTHING),
    (wrong.first_block_only, wrong.twice, NOTHING),
    (wrong.root_of_a_copy, lambda x: np.abs(x) ** 0.5, NOTHING),
    (wrong.reads_past_the_end, wrong.twice, NOTHING),
    (wrong.writes_past_the_end, wrong.twice, NOTHING),
]


def climbed(kernel, reference=wrong.twice, rungs=("interpret",)) -> Report:
    return climb(kernel, wrong.X, reference=reference, rungs=rungs)


def named(verdict):
    return {(each.rule.name, each.kind) for each in suggestions(verdict)}


@pytest.mark.parametrize(
    ("kernel", "reference", "hints"), KERNELS, ids=[kernel.__name__ for kernel, _, _ in KERNELS]
)
def test_a_hint_shows_where_it_applies_and_what_to_do_next_everywhere(kernel, reference, hints):
    report = climbed(kernel, reference)
    verdict = report.of("interpret")
    assert verdict.status is Status.WRONG, report
    assert named(verdict) == hints, report
    assert notes(verdict)[-1].startswith("Next: "), report
    for text in (str(report), report_markdown(report), report_html("sick", report.verdicts, {})):
        assert "reaches past the end back inside" in text
    (found,) = report.to_json()["verdicts"]
    assert found["details"]["next"]


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (wrong.triple_on_parallel_axes, wrong.twice),
        (wrong.tripled_sums_of_parallel_rows, lambda x: x.reshape(32, 4, 128).sum(1)),
        (wrong.root_of_a_copy, lambda x: np.abs(x) ** 0.5),
    ],
    ids=lambda value: value.__name__,
)
def test_what_is_wrong_in_the_interpreter_is_not_laid_to_copies_or_cores(kernel, reference):
    report = climbed(kernel, reference, ["interpret", "simulate"])
    for verdict in report.verdicts:
        assert verdict.status is Status.WRONG, report
        assert named(verdict) == NOTHING, report
    assert "rung 2 (interpret) is wrong too: begin there" in notes(report.verdicts[-1])[-1]


def test_what_the_interpreter_agrees_with_is_laid_to_memory():
    report = climbed(wrong.reads_before_the_copy_has_come, rungs=["interpret", "simulate"])
    assert report.status("interpret") is Status.PASSED
    verdict = report.of("simulate", "default")
    assert "rung 2 (interpret) agrees" in notes(verdict)[-1]
    assert named(verdict) == {("dma_without_wait", "Candidate")}
    alone = climbed(wrong.reads_before_the_copy_has_come, rungs=["simulate"])
    assert "climb rung 2 (interpret) as well" in notes(alone.of("simulate", "default"))[-1]


def test_the_block_that_differs_is_told_with_its_program():
    verdict = climbed(wrong.swapped_output).of("interpret")
    assert verdict.difference.place == (
        "block (0, 1) of 4 × 4 blocks of (8, 128), element (0, 0) in it; "
        "program (1, 0) writes it last"
    )
    short = climbed(wrong.product_over_a_short_grid, lambda x: 2 * x[:20, :128]).of("interpret")
    assert short.difference.place.endswith("no program writes it")


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (
            wrong.swapped,
            "the index map of in_specs[0] returns (j, i) where that of out_specs returns (i, j)",
        ),
        (
            wrong.without_last_axis,
            "the index map of out_specs returns (i, 0), without the grid's axis 1 (j): its 4 "
            "programs write the same block, and the last one's values stay; 12 of its 16 blocks "
            "are never written",
        ),
        (
            wrong.product_over_a_short_grid,
            "the index map of out_specs over the grid (2,) does not reach every block of "
            "[20, 128]: 1 of its 3 blocks is never written",
        ),
        (
            wrong.swapped_on_a_rectangle,
            "the index map of in_specs[0] returns block 3 along axis 0, where the last block is 1",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_the_index_maps_do_is_read_off_the_program(kernel, told):
    program = trace(kernel, (wrong.X,))
    maps = IndexMaps.of(program.kernels, program.features.accumulates)
    assert told in [finding.told for finding in maps.findings]


def test_a_body_that_stores_a_slice_of_its_block_overwrites_nothing():
    program = trace(wrong.writes_past_the_end, (wrong.X,))
    assert program.index_maps.findings == ()


@pytest.mark.parametrize(("aliases", "missing"), [({}, 1), ({0: 0}, 0)])
def test_blocks_that_an_alias_fills_are_not_missing(aliases, missing):
    def first_rows(x):
        return pl.pallas_call(
            wrong.double_kernel,
            grid=(2,),
            in_specs=[wrong.ROWS],
            out_specs=wrong.ROWS,
            out_shape=wrong.SHAPE,
            input_output_aliases=aliases,
        )(x)

    assert len(trace(first_rows, (wrong.X,)).index_maps.findings) == missing


def test_a_block_visited_again_by_a_map_without_an_axis_is_laid_to_that_map():
    report = climbed(wrong.without_first_axis, rungs=["simulate"])
    verdict = report.of("simulate", "default")
    assert "Revisited block" in verdict.summary
    assert named(verdict) == {("output_map_without_axis", "Likely rule")}


def test_a_swapped_map_that_leaves_the_array_is_laid_to_the_swap():
    report = climbed(wrong.swapped_on_a_rectangle, lambda x: 2 * x[:16], ["simulate"])
    verdict = report.of("simulate", "default")
    assert "Out-of-bounds block index" in verdict.summary
    assert named(verdict) == SWAPPED


def test_values_that_are_right_by_chance_do_not_hide_a_pattern():
    got = WANT + 1
    got[3, 7], got[20, 300] = WANT[3, 7], WANT[20, 300]
    assert compare(got, WANT).patterns == ("wrong everywhere, but for 2 values",)
    half = np.where(np.arange(32)[:, None] < 16, WANT, got)
    assert compare(half, WANT).patterns == ("wrong to the end of axis 0, from 16 of 32",)


def test_a_third_that_is_right_is_not_chance():
    got = np.where(np.arange(32 * 512).reshape(32, 512) % 3 == 0, WANT, WANT + 1)
    assert compare(got, WANT, tilings=TILED).patterns == ()


def test_maps_that_transpose_are_not_told_of_where_numbers_are_wrong_everywhere():
    assert trace(wrong.transposed_and_tripled, (wrong.X,)).index_maps.findings
    verdict = climbed(wrong.transposed_and_tripled, transposed_twice).of("interpret")
    assert "index maps" not in verdict.details
    assert "In the program" not in " ".join(notes(verdict))


def test_a_block_that_is_right_is_not_chance():
    tiled = {(64, 1024): Tiling((64, 1024), (8, 128), {})}
    want = np.random.default_rng(2).standard_normal((64, 1024))
    got = want + 1
    got[:8, :128] = want[:8, :128]
    (pattern,) = compare(got, want, tilings=tiled).patterns
    assert pattern == "wrong in whole blocks of (8, 128), 63 of 64"


def test_blocks_that_changed_places_are_told():
    got = WANT.copy()
    got[:8, 128:256], got[8:16, :128] = WANT[8:16, :128], WANT[:8, 128:256]
    assert (
        "blocks exchanged along axes 0 and 1: block (0, 1) holds what belongs to block (1, 0)"
        in compare(got, WANT, tilings=TILED).patterns
    )
    got = WANT.copy()
    got[:8, :128] = WANT[:8, 384:]
    assert (
        "blocks displaced: block (0, 0) holds what belongs to block (0, 3)"
        in compare(got, WANT, tilings=TILED).patterns
    )
    assert not any("block" in p for p in compare(WANT + 1, WANT, tilings=TILED).patterns)


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        (wrong.reads_past_the_end, "x_ref[pl.ds(8 * pl.program_id(0) + 8, 8), :]"),
        (wrong.writes_past_the_end, "o_ref[pl.ds(8 * pl.program_id(0) + 8, 8), :] ="),
        (wrong.copies_past_the_end, "pltpu.async_copy(x_ref.at[rows], o_ref, semaphore).wait()"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_slice_past_the_end_is_named_by_its_line_with_advice(kernel, line):
    verdict = climbed(kernel, rungs=["simulate"]).of("simulate", "default")
    assert verdict.status is Status.REFUSED
    assert line in verdict.error.frame.source
    assert "reaches past the end of the Ref" in verdict.error.advice
    assert "interpret=True moves such a slice back inside" in verdict.error.advice


def test_a_copy_of_a_computed_size_past_the_end_is_refused_in_the_simulators_words():
    """A pipeline's last partial block: the size of its copy is known in the kernel alone."""
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    in_hbm = pl.BlockSpec(memory_space=pltpu.HBM)

    def double(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[...]

    def by_pipeline(x):
        pipeline = pltpu.emit_pipeline(double, grid=(4,), in_specs=[rows], out_specs=[rows])
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(pipeline, out, in_specs=[in_hbm], out_specs=in_hbm)(x)

    x = np.ones((28, 128), np.float32)
    verdict = climb(by_pipeline, x, reference=wrong.twice, rungs=["simulate"]).verdicts[0]
    assert verdict.status is Status.REFUSED
    assert "Out-of-bounds read" in verdict.summary


def test_a_race_is_told_with_both_its_lines():
    report = climbed(wrong.reads_before_the_copy_has_come, rungs=["simulate"])
    verdict = report.of("simulate", "races")
    assert [(line.role, line.source) for line in verdict.error.lines] == [
        ("write", "copy.start()"),
        ("read", "o_ref[...] = 2 * buffer[...]"),
    ]
    assert Report.from_json(report.to_json()) == report
    for text in (
        str(report),
        report_markdown(report),
        report_html("race", report.verdicts, {}),
    ):
        assert "copy.start()" in text
        assert "o_ref[...] = 2 * buffer[...]" in text
    assert "      write at " in str(report)
    assert "      read at " in str(report)


@pytest.mark.parametrize(
    ("kernel", "setting", "line"),
    [
        (wrong.signals_twice, "default", "pl.semaphore_signal(semaphore, 2)"),
        (wrong.starts_and_never_waits, "eager", ".start()"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_semaphore_left_over_is_told_with_the_line_that_signalled_it(kernel, setting, line):
    report = climbed(kernel, rungs=["simulate"])
    error = report.of("simulate", setting).error
    assert "has non-zero count" in error.message
    (signalled,) = error.lines
    assert signalled == error.frame
    assert signalled.role == "signalled"
    assert line in signalled.source
    assert "      signalled at " in str(report)


def test_a_semaphore_without_copies_is_not_laid_to_copies():
    assert named(climbed(wrong.signals_twice, rungs=["simulate"]).of("simulate")) == NOTHING
