"""Causal attention in strips, against float64 on whole rows; what it skips, and its refusals."""

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_rungs.kernels.flash_attention_forward import forward_error_bound
from pallas_rungs.kernels.flash_attention_strips import (
    across,
    flash_attention_strips,
    flash_attention_strips_reference,
    sums_by_lane,
)
from unit.kernels.launches import blocks_in_order, launches, products
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, assert_within, seeds

BLOCKS = [(128, 128), (256, 128), (256, 256), (512, 128), (1024, 512)]


def draw(seed: int, *shape: int, dtype: Any = FLOAT32) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(3)]


@FEW
@given(
    heads=st.integers(1, 2),
    T=st.sampled_from([128, 512]),
    d=st.sampled_from([8, 64, 128, 136]),
    block=st.sampled_from(BLOCKS),
    scale=st.sampled_from([None, 0.5, -0.25]),
    dtype=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=seeds,
)
def test_causal_attention(
    heads: int, T: int, d: int, block: Any, scale: float | None, dtype: Any, seed: int
) -> None:
    q, k, v = draw(seed, heads, T, d, dtype=dtype)
    o, lse = flash_attention_strips(q, k, v, scale=scale, block=block, interpret=True)
    want_o, want_lse = flash_attention_strips_reference(q, k, v, scale=scale)
    bound = forward_error_bound(q, k, v, abs(scale) if scale else None)
    assert_within(o, want_o, bound, dtype)
    assert_within(lse, want_lse, bound, FLOAT32)


def test_a_key_is_multiplied_with_queries_of_its_strip_and_after_it_only() -> None:
    """NaN among the values of one strip spoils every query that is multiplied with it, and no
    other: on the diagonal those before the strip are not."""
    strips = 4
    (q, k, v) = draw(0, strips, 512, 64)
    for strip in range(strips):
        v[strip, 128 * strip : 128 * (strip + 1)] = np.nan
    o, lse = flash_attention_strips(q, k, v, block=(256, 128), interpret=True)
    touched = np.isnan(o).any(axis=2).reshape(strips, 4, 128).any(axis=2).T
    np.testing.assert_array_equal(touched, np.tri(4) > 0)
    assert np.isfinite(lse).all()


def test_weights_that_grow_from_strip_to_strip_are_rescaled() -> None:
    q, k, v = draw(1, 512, 64)
    k *= np.linspace(0.1, 4, 512, dtype=np.float32)[:, None]
    o, _ = flash_attention_strips(q, k, v, block=(256, 128), interpret=True)
    want, _ = flash_attention_strips_reference(q, k, v)
    np.testing.assert_allclose(o, want, rtol=0, atol=forward_error_bound(q, k, v))


def test_the_helpers_keep_to_their_lanes() -> None:
    p = np.arange(2 * 384, dtype=np.float32).reshape(2, 384)
    np.testing.assert_array_equal(sums_by_lane(p), p.reshape(2, 3, 128).sum(axis=1))
    lane = np.repeat(np.array([[3.0], [5.0]], np.float32), 128, axis=1)
    for width in (8, 128, 200, 256):
        np.testing.assert_array_equal(across(lane, width), np.repeat(lane[:, :1], width, axis=1))


def launch(T: int = 512, dtype: Any = FLOAT32, **options: Any) -> Any:
    x = jax.ShapeDtypeStruct((2, T, 64), dtype)
    (found,) = launches(flash_attention_strips, x, x, x, **options)
    return found


def test_a_program_above_the_diagonal_asks_for_what_the_next_row_begins_with() -> None:
    made = launch(block=(128, 128))
    held = [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]
    every = [(head, block, 0) for head in range(2) for row in held for block in row]
    assert blocks_in_order(made, 1) == blocks_in_order(made, 2) == every


def test_blocks_are_cut_down_and_the_limit_is_the_compilers_unless_asked_for() -> None:
    found = launch()
    assert found["grid_mapping"].grid == (2, 1, 1)
    assert found["compiler_params"].vmem_limit_bytes is None
    assert launch(vmem_limit_bytes=2**20)["compiler_params"].vmem_limit_bytes == 2**20


def test_blocks_are_1024_in_strips_of_512_by_default_and_products_take_the_dtype_of_v() -> None:
    made = launch(T=2048, dtype=BFLOAT16)
    assert made["grid_mapping"].grid == (2, 2, 2)
    taken = [tuple(x.aval.dtype for x in e.invars) for e in products(made["jaxpr"])]
    # Two for each strip: below the diagonal, and on it.
    assert taken == [(BFLOAT16, BFLOAT16)] * (2 * 2 * 2)


x512 = np.ones((512, 64), np.float32)


@pytest.mark.parametrize(
    ("shape", "block", "message"),
    [
        ((500, 64), (128, 128), "the length of q is 500.*pad q, k and v with 12 rows"),
        ((512, 64), (384, 128), "b is 384, but the diagonal.*does not divide T = 512: pass 256"),
        ((512, 64), (512, 384), "strip is 384, but a block is folded.*does not divide b = 512"),
        ((512, 64), (200, 128), "b is 200, but a block takes a multiple of 128"),
        ((512, 64), (256, 64), "strip is 64, but a block takes a multiple of 128"),
        ((512, 64), (256,), r"block is \(256,\), but the kernel takes \(b, strip\)"),
        ((1, 2, 512, 64), (256, 128), r"must be \(heads, Tq, d\) or \(Tq, d\)"),
    ],
)
def test_refusals(shape: Any, block: Any, message: str) -> None:
    x = np.ones(shape, np.float32)
    with pytest.raises(ValueError, match=message):
        flash_attention_strips(x, x, x, block=block, interpret=True)


def test_fewer_keys_than_queries_are_refused() -> None:
    with pytest.raises(ValueError, match="one sequence, and q has 512"):
        flash_attention_strips(x512, x512[:256], x512[:256], interpret=True)
