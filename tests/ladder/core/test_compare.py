"""Comparison: what counts as a difference, and how it is told."""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_rungs.ladder.compare import compare, default_tolerance, reference_result

ONES = np.ones((4, 3), np.float32)


def test_equal_arrays_agree():
    assert compare(ONES, ONES.astype(np.float64)) is None


def test_a_difference_says_how_much_and_where():
    got = ONES.copy()
    got[2, 1] = 1.5
    got[3, 0] = np.nan
    difference = compare(got, ONES)
    assert (difference.count, difference.total, difference.nan) == (2, 12, 1)
    assert difference.first_index == (2, 1)
    assert (difference.got, difference.want) == ("1.5", "1")
    assert difference.max_abs_error == 0.5
    assert "2 of 12 values differ, 1 of them NaN; first at (2, 1)" in str(difference)


def test_nan_and_infinities_equal_themselves_only():
    special = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert compare(special, special) is None
    assert compare(special, np.array([np.nan, -np.inf, -np.inf])).count == 1
    assert compare(np.zeros(3, np.float32), special).count == 3


def test_an_infinity_does_not_hide_other_differences():
    want = np.array([np.inf, 1.0])
    assert compare(np.array([np.inf, 2.0], np.float32), want).first_index == (1,)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.int64])
def test_integers_are_exact(dtype):
    got = np.array([100, 101], dtype)
    assert compare(got, np.array([100, 101])) is None
    assert compare(got, np.array([100, 102])).count == 1


def test_large_integers_are_exact():
    got = np.array([2**60 + 1], np.int64)
    assert compare(got, np.array([2**60], np.int64)).count == 1


def test_booleans_are_exact():
    assert compare(np.array([True, False]), np.array([True, True])).got == "False"


def test_bfloat16_is_compared_with_its_own_tolerance():
    want = np.array([1.0, 2.0])
    assert compare(jnp.asarray([1.0078125, 2.015625], jnp.bfloat16), want) is None
    assert compare(jnp.asarray([1.0625, 2.0], jnp.bfloat16), want).count == 1


def test_a_program_that_rounds_to_bfloat16_is_judged_by_that():
    got = np.array([1.004], np.float32)
    assert compare(got, np.array([1.0])).count == 1
    assert compare(got, np.array([1.0]), rounds_to=jnp.bfloat16) is None


def test_tolerances_given_are_used():
    got = np.array([1.01], np.float32)
    assert compare(got, np.array([1.0]), rtol=0.02) is None
    assert compare(got, np.array([1.0]), rtol=0.001, atol=0.0).count == 1


@pytest.mark.parametrize(
    ("dtype", "rtol"), [(np.float32, 2.0**-17), (jnp.bfloat16, 2.0**-5), (np.float16, 2.0**-8)]
)
def test_default_tolerances_follow_from_the_type(dtype, rtol):
    tolerance = default_tolerance(dtype, np.full(8, 10.0))
    assert tolerance.rtol == rtol
    assert tolerance.atol == pytest.approx(10 * rtol * (1 if rtol < 1e-4 else 0.25))


def test_a_shape_mismatch_is_said_and_never_broadcast():
    difference = compare(np.ones((4, 1), np.float32), np.ones((4, 3)))
    assert "float32[4, 1] came back, the reference has float64[4, 3]" in str(difference)


def test_a_structure_mismatch_is_said():
    difference = compare((ONES, ONES), ONES)
    assert str(difference) == "2 arrays came back, the reference has 1"


def test_the_output_that_differs_is_named():
    difference = compare({"a": ONES, "b": ONES + 1}, {"a": ONES, "b": ONES})
    assert difference.output == "['b']"


def test_tuples_and_lists_are_the_same():
    assert compare([ONES, ONES], (ONES, ONES)) is None


def test_references_see_float64_and_integers_as_they_are():
    seen = {}

    def reference(x, i, flag):
        seen.update(x=x.dtype, i=i.dtype, flag=flag)
        return x

    args = (jnp.ones(3, jnp.bfloat16), np.ones(3, np.int8), True)
    result, how = reference_result(reference, args)
    assert seen == {"x": np.float64, "i": np.int8, "flag": True}
    assert (result.dtype, how) == (np.float64, "float64")


def test_a_jax_reference_computes_in_64_bits():
    result, _ = reference_result(lambda x: jnp.sin(x), (np.ones(3, np.float32),))
    assert result.dtype == np.float64


def test_a_reference_that_insists_on_its_types_gets_them():
    def reference(x):
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        return x

    assert reference_result(reference, (ONES,))[1] == "as given"


def test_a_reference_cannot_change_the_arguments():
    x = ONES.copy()

    def reference(x):
        x += 1
        return x

    reference_result(reference, (x,))
    assert (x == 1).all()
