"""What a tool cannot do is laid at its door, and nothing else is."""

import dataclasses
import importlib.util

import jax.numpy as jnp
import numpy as np
import pytest

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import KernelError, Rung, Status, Verdict
from pallas_rungs.ladder.features import Features
from pallas_rungs.ladder.gaps import attribute
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import trace
from pallas_rungs.ladder.rungs import attempt

FOUR_BITS = (jnp.ones((32, 128), jnp.int4), jnp.ones((128, 128), jnp.int4))
COMPILE = pytest.param(
    "compile",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None, reason="libtpu is not made for this machine"
    ),
)
SIZE = np.array([32], np.int32)
LENGTH = np.int32(4)
BATCH = (LENGTH, np.stack([np.arange(4, dtype=np.int32)] * 2), np.stack([sick.X] * 2))


@pytest.mark.parametrize(
    ("function", "args", "reference", "rung", "observed"),
    [
        (sick.reshaped_ref, (sick.X,), sick.add_one_reference, "simulate", Status.REFUSED),
        (sick.copy_of_dynamic_size, (SIZE, sick.X), lambda n, x: x, "interpret", Status.REFUSED),
        (sick.random_bits, (sick.X,), None, "interpret", Status.REFUSED),
        (sick.random_bits, (sick.X,), lambda x: x + 1, "simulate", Status.WRONG),
        (sick.padded_below, (sick.X,), sick.shifted_down, "simulate", Status.WRONG),
        (sick.four_bit_product, FOUR_BITS, None, "interpret", Status.REFUSED),
        (sick.four_bit_product, FOUR_BITS, None, "simulate", Status.REFUSED),
        (sick.asks_for_its_core, (sick.X,), lambda x: x, "interpret", Status.REFUSED),
        (sick.batch_that_declares_its_axes, (sick.X,), None, "simulate", Status.REFUSED),
        (sick.place_in_a_scope, (sick.X,), sick.add_place, "interpret", Status.REFUSED),
    ],
)
def test_a_gap_is_named(function, args, reference, rung, observed):
    verdict = attempt(Problem("gap", function, args, reference), rung)
    assert verdict.status is Status.TOOL_CANNOT, verdict.summary
    assert verdict.observed is observed
    assert verdict.details["gap"] in verdict.summary


@pytest.mark.parametrize(
    ("function", "args", "reference", "rung"),
    [
        (sick.reshaped_ref, (sick.X,), sick.add_one_reference, "interpret"),
        (sick.copy_of_dynamic_size, (SIZE, sick.X), lambda n, x: x, "simulate"),
        (sick.padded_below, (sick.X,), sick.shifted_down, "interpret"),
        (sick.asks_for_its_core, (sick.X,), lambda x: x, "simulate"),
        (sick.batch_that_declares_its_axes, (sick.X,), lambda x: np.stack([x + 1] * 2), "lower"),
        (sick.place_in_a_scope, (sick.X,), sick.add_place, "simulate"),
    ],
)
def test_another_rung_judges_it(function, args, reference, rung):
    assert attempt(Problem("gap", function, args, reference), rung).status is Status.PASSED


def test_a_wrong_kernel_that_uses_no_such_feature_stays_wrong():
    posed = Problem("wrong", sick.add_one, (sick.X,), lambda x: x + 2)
    assert attempt(posed, "simulate").status is Status.WRONG


def test_a_gap_needs_its_own_rung_its_error_and_its_feature():
    wrong = Verdict.of(Rung.SIMULATE, Status.WRONG, summary="differs")
    random = Features(random_bits=True)
    assert attribute(wrong, random).status is Status.TOOL_CANNOT
    assert attribute(wrong, Features()).status is Status.WRONG
    assert attribute(dataclasses.replace(wrong, rung=Rung.INTERPRET), random).status is Status.WRONG
    refused = dataclasses.replace(wrong, status=Status.REFUSED, observed=Status.REFUSED)
    assert attribute(refused, random).status is Status.REFUSED


@pytest.mark.parametrize("rung", ["interpret", "simulate", COMPILE])
def test_a_lost_length_is_told_from_a_missing_derivative(rung):
    verdict = attempt(Problem("lost", sick.lost_length, BATCH), rung)
    assert verdict.status is Status.REFUSED, verdict.summary
    assert "batch the length as well" in verdict.error.advice


@pytest.mark.parametrize("rung", ["interpret", "simulate", "lower"])
def test_a_derivative_by_some_inputs_gets_the_advice_for_derivatives(rung):
    verdict = attempt(Problem("half", sick.derivative_by_one_input, (sick.X, sick.X)), rung)
    assert verdict.status is Status.REFUSED, verdict.summary
    assert "jax.custom_vjp" in verdict.error.advice


@pytest.mark.parametrize("rung", ["interpret", COMPILE])
def test_what_is_advised_for_a_lost_length_helps(rung):
    posed = Problem("each", sick.length_for_each_item, BATCH, lambda _, __, xs: xs + 1)
    assert attempt(posed, rung).status is Status.PASSED


def test_two_lengths_that_differ_get_no_advice_where_nothing_tells_the_cause():
    said = "safe_zip() argument 1 has length 2 but argument 0 has length 1."
    refused = Verdict.of(
        Rung.INTERPRET, Status.REFUSED, "", said, error=KernelError("ValueError", said, said)
    )
    assert attribute(refused, Features()).error.advice == ""
    assert attribute(refused, Features(lost_length=True)).status is Status.REFUSED


def test_features_are_read_off_the_program():
    def features(function, *args):
        return trace(function, args).features

    assert features(sick.copy_of_dynamic_size, SIZE, sick.X).dynamic_copies
    assert features(sick.reshaped_ref, sick.X).reshaped_refs
    assert features(sick.parallel_accumulator, sick.X).parallel_axes
    assert features(sick.batch_that_declares_its_axes, sick.X).batched_semantics
    assert not features(sick.parallel_accumulator, sick.X).batched_semantics
    assert features(sick.padded_below, sick.X).element_padding
    assert features(sick.random_bits, sick.X).random_bits
    assert features(sick.place_in_a_scope, sick.X).scoped_program_ids
    assert features(sick.lost_length, *BATCH).lost_length
    assert not features(sick.length_for_each_item, *BATCH).lost_length
    assert features(sick.derivative_by_one_input, sick.X, sick.X).half_derivative
    assert features(sick.fresh_accumulator, sick.X).accumulates
    assert features(sick.cleared_accumulator, sick.X).accumulates
    assert features(sick.part_of_a_block, sick.X).partial_blocks
    assert not features(sick.place_in_a_scope, sick.X).partial_blocks
    plain = features(sick.add_one, sick.X)
    assert plain == Features(primitives=plain.primitives, rounds_to=np.dtype(np.float32))


@pytest.mark.parametrize("rung", [Rung.INTERPRET, Rung.SIMULATE])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("TypeError", "Only scalar arrays can be converted to Python scalars; got arr.ndim=1"),
        ("ValueError", "Did not ask for inval to be discharged but it was. (invar=a)"),
    ],
)
def test_what_interpreters_say_of_the_sparse_core_is_their_gap_there_alone(rung, kind, message):
    error = KernelError(kind, message, message)
    refused = Verdict.of(rung, Status.REFUSED, "", message, error=error)
    assert attribute(refused, Features(sparse_core=True)).status is Status.TOOL_CANNOT
    assert attribute(refused, Features()).status is Status.REFUSED
    ours = dataclasses.replace(refused, error=KernelError("TypeError", "x", "add got float32"))
    assert attribute(ours, Features(sparse_core=True)).status is Status.REFUSED
