"""Troubles of the kinds that people meet: each gets a careful expert's verdict on each rung."""

import importlib.util
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ladder.cases import troubles as sick
from pallas_rungs.ladder import Status, climb

COMPILES = importlib.util.find_spec("libtpu") is not None
WORDS = {
    "ok": "passed",
    "WRONG": "wrong",
    "NO": "refused",
    "none": "no kernel",
    "tool": "tool cannot",
}


@dataclass(frozen=True)
class Trouble:
    """A sick kernel and what the rungs should say.

    Attributes:
      function: name of the function in `troubles`.
      says: a word for trace, interpret, simulate, lower and compile (see `WORDS`).
      advice: what the advice of the first rung that refuses must hold.
      line: what the line it points at must hold.
      reference: what should come out.
      args: the arguments.
      chips: chips to compile for; the last word is for all of them.
    """

    function: str
    says: str
    advice: str = ""
    line: str = ""
    reference: Any = None
    args: tuple[Any, ...] = (sick.X,)
    chips: tuple[str, ...] = ("v5e",)


def doubled(x):
    return x * 2


REFUSED = "NO NO NO NO NO"
LOWERING = "ok ok ok NO NO"
COMPILER = "ok ok ok ok NO"
FINE = "ok ok ok ok ok"

TROUBLES = (
    # the lowering lacks it
    Trouble("sorts", LOWERING, "has no rule", "jnp.sort", lambda x: np.sort(x, 1)),
    Trouble("maps_over_rows", LOWERING, "fori_loop", "lax.map", doubled),
    Trouble("strides_over_a_value", LOWERING, "Ref", "[::2]", lambda x: x[::2]),
    Trouble(
        "counts_in_float", LOWERING, "int32", "arange", lambda x: np.tile(np.arange(128), (8, 1))
    ),
    Trouble(
        "unsigned_product", LOWERING, "signed", "jnp.dot",
        lambda a: a.astype(int) @ a.astype(int), args=(sick.ONES,),
    ),
    Trouble(
        "int8_maximum", LOWERING, "wider", "jnp.max", lambda x: x.max(0, keepdims=True),
        args=(sick.INT8,),
    ),
    Trouble("half_a_row_of_lanes", LOWERING, "8 and 128", "call(doubling", doubled),
    Trouble("reads_hbm", "ok ok NO NO NO", "VMEM", "x_ref[...]", doubled),
    # it does not trace
    Trouble("captures_numpy", REFUSED, "operand", "call(kernel"),
    Trouble("captures_a_tracer", REFUSED, "operand", "call(kernel"),
    Trouble("captures_in_the_index_map", REFUSED, "scalar-prefetch", "in_specs=[spec]"),
    Trouble("returns_a_value", REFUSED, "output Ref", "call(kernel"),
    Trouble("forgets_the_brackets", REFUSED, "ref[...]", "x_ref * 2"),
    Trouble("body_lacks_the_table", REFUSED, "one Ref for each", "call(kernel"),
    Trouble("while_in_python", REFUSED, "pl.when", "while i < 3"),
    Trouble("range_of_a_tracer", REFUSED, "static", "range("),
    Trouble("shape_of_a_tracer", REFUSED, "largest size", "jnp.zeros"),
    Trouble("one_index_for_two_axes", REFUSED, "for each dimension", "call(doubling"),
    Trouble("index_in_float", REFUSED, "integers", "call(doubling"),
    Trouble("map_of_two_axes", REFUSED, "each grid axis", "call(doubling"),
    Trouble("alias_of_another_type", REFUSED, "same shape", "call(kernel"),
    Trouble("gradient_of_a_kernel", REFUSED, "custom_vjp", ""),
    Trouble("tangent_with_program_id", REFUSED, "custom_vjp", "jax.jvp"),
    Trouble("asserts_something_else", REFUSED, "", "assert x.shape"),
    # the numbers tell
    Trouble("rebinds_the_output", "ok WRONG WRONG ok ok", reference=doubled),
    Trouble("one_step_too_few", "ok WRONG WRONG ok ok", reference=doubled),
    Trouble("adds_in_run_scoped", "ok WRONG WRONG ok ok", reference=lambda x: x),
    Trouble(
        "adds_to_fresh_integers", "ok WRONG WRONG ok ok",
        reference=lambda x: np.full((8, 128), 4),
    ),
    Trouble(
        "reads_what_it_overwrote", "ok WRONG WRONG ok ok",
        reference=lambda x: x + np.roll(x, 8, 0),
    ),
    # the simulator tells
    Trouble(
        "swaps_the_axes", "ok WRONG NO ok ok", "block indices", "", doubled, args=(sick.WIDE,)
    ),
    Trouble("output_one_block_too_far", "ok WRONG NO ok ok", "block indices", "", doubled),
    Trouble("one_step_too_many", "ok ok NO ok ok", "grid", "", doubled),
    Trouble("table_one_too_far", "ok WRONG NO ok ok", "block indices", "", lambda x: x),
    Trouble("stores_past_the_end", "ok WRONG NO ok ok", "past the end", "", lambda x: x),
    Trouble(
        "keeps_most_of_an_alias", "ok ok WRONG ok ok",
        reference=lambda x: np.where(np.arange(32)[:, None] < 8, x * 2, x),
    ),
    Trouble(
        "carries_over_a_parallel_axis", "ok ok WRONG ok ok",
        reference=lambda x: x.reshape(4, 8, 128).sum(0),
    ),
    Trouble("overwrites_the_source", "ok ok WRONG ok ok", reference=lambda x: x[:8]),
    Trouble(
        "starts_and_forgets", "ok ok NO ok ok", "must balance", "", reference=lambda x: x[:8]
    ),
    Trouble("signals_too_often", "ok ok NO ok ok", "must balance", "", lambda x: x),
    Trouble("pipelines_by_offsets", "ok WRONG NO ok ok", "past the end", "", doubled),
    # the compiler tells
    Trouble(
        "rows_from_three", COMPILER, "32 bits", "x_ref[pl.ds", lambda x, i: x[3:11],
        args=(sick.BF16, sick.THREE),
    ),
    Trouble(
        "rows_from_three", COMPILER, "32 bits", "x_ref[pl.ds", lambda x, i: x[3:35],
        args=(sick.INT8, sick.THREE),
    ),
    Trouble(
        "lane_three", COMPILER, "128", "column =",
        lambda x, i: np.tile(x[:8, 3:4], (1, 128)), args=(sick.X, sick.THREE),
    ),
    Trouble(
        "float8_product", COMPILER, "matrix unit", "jnp.dot", lambda a, b: a @ b,
        args=(sick.ONES, sick.ONES), chips=("v3", "v4"),
    ),
    Trouble(
        "float8_product", FINE, reference=lambda a, b: a @ b,
        args=(sick.ONES, sick.ONES), chips=("v5e", "tpu7x"),
    ),
    Trouble(
        "int32_product", COMPILER, "matrix unit", "jnp.dot", lambda a, b: a @ b,
        args=(sick.ONES, sick.ONES), chips=("v5e", "v6e", "tpu7x"),
    ),
    Trouble(
        "half_precision", COMPILER, "float16", "x_ref[...] * 2", doubled,
        args=(sick.X.astype(np.float16),),
    ),
    Trouble("scratch_larger_than_vmem", COMPILER, "blocks smaller", "", lambda x: x),
    Trouble("scratch_larger_than_smem", COMPILER, "scalars", "", lambda x: x),
    Trouble(
        "blocks_larger_than_vmem", COMPILER, "blocks smaller", "", doubled,
        args=(np.ones((2048, 2048), np.float32),),
    ),
    # the machine, the interpreter, and kernels that are not there
    Trouble("nothing_uses_the_kernel", "none none none none none", reference=doubled),
    Trouble("nothing_uses_the_kernel_and_wrong", "none WRONG WRONG none none", reference=doubled),
    Trouble("no_kernel_at_all", "none none none none none", reference=doubled),
    Trouble("falls_back", FINE, reference=doubled),
    Trouble("asserts_a_tpu", FINE, reference=doubled),
    Trouble("looks_its_chip_up", FINE, reference=doubled),
    Trouble("bakes_the_interpreter_in", LOWERING, "has no rule", "jnp.sort", lambda x: np.sort(x)),
    Trouble("rounds_at_random", "ok tool tool ok ok", reference=lambda x: x.astype(jnp.bfloat16)),
    Trouble("looks_at_random_bits", "ok tool tool ok ok", reference=lambda x: x),
    Trouble(
        "batch_in_hbm", "ok ok NO NO NO", "lax.map", "", lambda x: np.stack([x, x + 1]) * 2
    ),
    # healthy all the same
    Trouble(
        "closes_over_outside_the_kernel", FINE, reference=lambda x: x * 2 * np.arange(128)
    ),
    Trouble("signals_as_often_as_it_waits", FINE, reference=lambda x: x),
    Trouble("pipelines", FINE, reference=doubled),
    Trouble("kernel_on_a_core", FINE, reference=doubled),
    Trouble("gradient_of_its_own", FINE, reference=lambda x: np.full_like(x, 2)),
    Trouble("batch_of_kernels", FINE, reference=lambda x: np.stack([x, x + 1]) * 2),
    Trouble("approximate_reciprocal", FINE, reference=lambda x: 1 / (x + 1)),
    Trouble(
        "takes_objects", FINE, reference=lambda pair, settings, key: pair.left + pair.right,
        args=(sick.Pair(sick.X, sick.X), sick.Settings(8), jax.random.key(0)),
    ),
)  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda t: t.function)
def test_each_rung_gives_an_experts_verdict(trouble):
    rungs = ["trace", "interpret", "simulate", "lower", *["compile"] * COMPILES]
    report = climb(
        getattr(sick, trouble.function),
        *trouble.args,
        reference=trouble.reference,
        rungs=rungs,
        chips=trouble.chips,
    )
    said = {f"{rung} {v.target}": str(v.status) for rung in rungs for v in [report.of(rung)]}
    words = [WORDS[word] for word in trouble.says.split()]
    assert list(said.values()) == words[: len(rungs)], f"\n{report}"
    if COMPILES:
        compiled = {str(report.status("compile", chip)) for chip in trouble.chips}
        assert compiled == {words[4]}, f"\n{report}"
    refusals = [v for v in report.verdicts if v.status is Status.REFUSED]
    for verdict in refusals:
        assert verdict.error is not None
        assert trouble.advice in verdict.error.advice, f"\n{report}"
        if trouble.line:
            assert verdict.error.frame is not None, f"\n{report}"
            assert trouble.line in verdict.error.frame.source, f"\n{report}"
            assert verdict.error.frame.file == sick.__file__


def test_at_least_one_trouble_for_each_rung_that_can_catch_one():
    caught = set()
    for trouble in TROUBLES:
        words = trouble.says.split()
        caught.add(next((i for i, word in enumerate(words) if word in ("NO", "WRONG")), None))
    assert caught == {None, 0, 1, 2, 3, 4}


@pytest.mark.skipif(not COMPILES, reason="needs libtpu: install the version that jax names")
def test_both_forms_of_a_vmem_overflow_are_read_into_numbers():
    scratch = climb(sick.scratch_larger_than_vmem, sick.X, rungs=["compile"]).of("compile")
    assert scratch.details["memory"]["used"] == 8192 * 8192 * 4
    assert scratch.details["memory"]["limit"] == 128 * 2**20
    blocks = climb(
        sick.blocks_larger_than_vmem, np.ones((2048, 2048), np.float32), rungs=["compile"]
    ).of("compile")
    assert blocks.details["memory"]["used"] >= 4 * 1024 * 2048 * 4
    assert blocks.details["memory"]["limit"] == 16 * 2**20
    assert blocks.summary == "needs 32 MiB of vmem, the limit is 16 MiB"
