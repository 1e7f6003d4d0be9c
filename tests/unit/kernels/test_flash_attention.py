"""Flash attention, forward and backward, against float64 on whole rows, and its refusals."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

from pallas_rungs.kernels.flash_attention import (
    _backward,
    _forward,
    flash_attention,
    flash_attention_reference,
    output_and_gradients,
)
from pallas_rungs.kernels.flash_attention_backward import (
    backward_error_bound,
    first_block_seeing,
    flash_attention_backward,
    flash_attention_backward_reference,
)
from pallas_rungs.kernels.flash_attention_forward import (
    flash_attention_forward,
    flash_attention_forward_reference,
    forward_error_bound,
    last_block_seen,
)
from unit.kernels.launches import blocks_in_order, launches
from unit.kernels.matrices import BFLOAT16, FEW, FLOAT32, assert_within, seeds

# One example of attention with its gradients compiles three kernels.
FEWER = settings(FEW, max_examples=4)

places = st.one_of(st.sampled_from([1, 127, 128, 129, 256]), st.integers(2, 300))
blocks = st.tuples(st.sampled_from([128, 256]), st.sampled_from([128, 256]))
widths = st.sampled_from([8, 64, 72])
dtypes = st.sampled_from([FLOAT32, BFLOAT16])


def draw(seed: int, *shapes: tuple[int, ...], dtype: Any = FLOAT32) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@FEWER
@given(
    heads=st.integers(1, 2), Tq=places, Tk=places, d=widths, block=blocks, dtype=dtypes, seed=seeds
)
def test_full_attention(
    heads: int, Tq: int, Tk: int, d: int, block: Any, dtype: Any, seed: int
) -> None:
    q, k, v = draw(seed, (heads, Tq, d), (heads, Tk, d), (heads, Tk, d), dtype=dtype)
    o, lse = flash_attention_forward(q, k, v, block=block, interpret=True)
    want_o, want_lse = flash_attention_forward_reference(q, k, v)
    bound = forward_error_bound(q, k, v)
    assert_within(o, want_o, bound, dtype)
    assert_within(lse, want_lse, bound, FLOAT32)


@FEWER
@given(T=places, d=widths, block=blocks, dtype=dtypes, seed=seeds)
def test_causal_attention_and_its_gradients(
    T: int, d: int, block: Any, dtype: Any, seed: int
) -> None:
    q, k, v, do = draw(seed, *[(T, d)] * 4, dtype=dtype)
    got = output_and_gradients(q, k, v, do, causal=True, block=block, interpret=True)
    want = flash_attention_reference(q, k, v, do, causal=True)
    bounds = [forward_error_bound(q, k, v), *[backward_error_bound(q, k, v, do)] * 3]
    for ours, theirs, bound in zip(got, want, bounds, strict=True):
        assert_within(ours, theirs, bound, dtype)


@pytest.mark.parametrize(("Tq", "Tk", "block"), [(300, 200, (256, 128)), (200, 260, (128, 256))])
def test_gradients_where_queries_and_keys_differ_in_number(Tq: int, Tk: int, block: Any) -> None:
    q, k, v, do = draw(0, (2, Tq, 16), (2, Tk, 16), (2, Tk, 16), (2, Tq, 16))
    got = output_and_gradients(q, k, v, do, block=block, interpret=True)
    for ours, theirs in zip(got[1:], flash_attention_reference(q, k, v, do)[1:], strict=True):
        assert_within(ours, theirs, backward_error_bound(q, k, v, do), FLOAT32)


def test_an_own_scale_reaches_all_three_launches() -> None:
    causal = True
    q, k, v, do = draw(0, *[(150, 16)] * 4)
    got = output_and_gradients(
        q, k, v, do, causal=causal, scale=0.5, block=(128, 128), interpret=True
    )
    want = flash_attention_reference(q, k, v, do, causal=causal, scale=0.5)
    plain = flash_attention_reference(q, k, v, do, causal=causal)
    for ours, theirs, other in zip(got, want, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)
        assert np.max(np.abs(theirs - other)) > 1e-2


def test_later_scores_that_are_larger_do_not_lose_what_came_before() -> None:
    q = np.ones((128, 8), np.float32)
    k = np.linspace(0, 300, 384, dtype=np.float32)[:, None] * np.ones((1, 8), np.float32)
    v = draw(0, (384, 8))[0]
    o, lse = flash_attention_forward(q, k, v, block=(128, 128), interpret=True)
    want_o, want_lse = flash_attention_forward_reference(q, k, v)
    np.testing.assert_allclose(o, want_o, atol=1e-3)
    np.testing.assert_allclose(lse, want_lse, rtol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_values_are_multiplied_where_some_query_of_the_block_sees_their_block(
    causal: bool,
) -> None:
    x = draw(0, (512, 8))[0]
    poisoned = np.broadcast_to(x, (4, 512, 8)).copy()
    for head in range(4):
        poisoned[head, 128 * head : 128 * (head + 1)] = np.nan
    same = np.broadcast_to(x, (4, 512, 8))
    o, _ = flash_attention_forward(
        same, same, poisoned, causal=causal, block=(256, 128), interpret=True
    )
    spoilt = np.isnan(o).any(axis=2).reshape(4, 2, 256).any(axis=2).T
    sees = np.array([[1, 1, 0, 0], [1, 1, 1, 1]]) if causal else np.ones((2, 4))
    np.testing.assert_array_equal(spoilt, sees)


@pytest.mark.parametrize(("bq", "bk"), [(128, 128), (256, 128), (128, 256), (384, 256)])
def test_blocks_that_see_each_other(bq: int, bk: int) -> None:
    T = 768
    seen = np.tri(T).reshape(T // bq, bq, T // bk, bk).any(axis=(1, 3))
    for i, row in enumerate(seen):
        assert int(last_block_seen(i, bq, bk)) == np.flatnonzero(row)[-1]
    for j, column in enumerate(seen.T):
        assert int(first_block_seeing(j, bq, bk)) == np.flatnonzero(column)[0]


def block_places(call: Any, index: int, operand: int) -> list[int]:
    """Which of the blocks along its length each program asks for, in the order of the grid."""
    launch = launches(call, jnp.zeros((512, 8)))[index]
    return [block for _, block, _ in blocks_in_order(launch, operand)]


def test_blocks_that_are_skipped_are_not_fetched() -> None:
    def forward(x: Any) -> Any:
        return flash_attention_forward(x, x, x, causal=True, block=(128, 128))

    def backward(x: Any) -> Any:
        return flash_attention_backward(
            x, x, x, x, jnp.zeros(512), x, causal=True, block=(128, 128)
        )

    clamped = [min(i, j) for i in range(4) for j in range(4)]
    for operand in (1, 2):
        assert block_places(forward, 0, operand) == clamped
        assert block_places(backward, 0, operand) == clamped
    for operand in (0, 3):
        assert block_places(backward, 0, operand) == [i for i in range(4) for _ in range(4)]
        assert block_places(backward, 1, operand) == [max(i, j) for j in range(4) for i in range(4)]
    assert block_places(backward, 1, 1) == [j for j in range(4) for _ in range(4)]


def test_blocks_are_512_by_default_and_only_the_reduction_is_in_order() -> None:
    x = jnp.zeros((3, 1300, 8))
    forward = launches(flash_attention_forward, x, x, x)
    backward = launches(flash_attention_backward, x, x, x, x, jnp.zeros((3, 1300)), x)
    assert (len(forward), len(backward)) == (1, 2)
    for launch in forward + backward:
        assert launch["grid_mapping"].grid == (3, 3, 3)
        assert [str(s) for s in launch["compiler_params"].dimension_semantics] == [
            "parallel",
            "parallel",
            "arbitrary",
        ]


def test_the_forward_reference_sums_values_by_weight() -> None:
    q, k, v = draw(1, (3, 4), (5, 4), (5, 4))
    o, lse = flash_attention_forward_reference(q, k, v)
    for row in range(3):
        s = [
            math.fsum(float(a) * float(b) for a, b in zip(q[row], key, strict=True)) / 2
            for key in k
        ]
        total = math.fsum(map(math.exp, s))
        assert math.isclose(lse[row], math.log(total), rel_tol=1e-12)
        for column in range(4):
            mean = math.fsum(math.exp(x) * float(v[j, column]) for j, x in enumerate(s)) / total
            assert math.isclose(o[row, column], mean, rel_tol=1e-11)
    causal, _ = flash_attention_forward_reference(q, k[:3], v[:3], causal=True)
    np.testing.assert_allclose(causal[0], v[0], rtol=1e-12)
    np.testing.assert_allclose(
        causal[2], flash_attention_forward_reference(q, k[:3], v[:3])[0][2], rtol=1e-12
    )


@pytest.mark.parametrize("causal", [False, True])
def test_the_backward_reference_is_what_jax_derives_in_float64(causal: bool) -> None:
    q, k, v, do = (x.astype(np.float64) for x in draw(2, *[(2, 9, 4)] * 4))

    def attention(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("hqd,hkd->hqk", q, k) / 2
        if causal:
            s = jnp.where(jnp.tri(9) > 0, s, -jnp.inf)
        return jax.nn.softmax(s) @ v

    with jax.enable_x64(True):
        o, pull_back = jax.vjp(attention, q, k, v)
        want = (o, *pull_back(do))
    got = flash_attention_reference(q, k, v, do, causal=causal)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    again = flash_attention_backward_reference(q, k, v, None, None, do, causal=causal)
    np.testing.assert_array_equal(again[1], got[2])


def test_gradients_agree_with_finite_differences() -> None:
    args = draw(3, *[(130, 8)] * 3)
    attend = jax.jit(partial(flash_attention, causal=True, block=(128, 128), interpret=True))
    check_grads(attend, args, order=1, modes=["rev"], atol=1e-2, rtol=1e-2)


def test_only_the_logsumexp_is_kept_besides_operands_and_output() -> None:
    x = jax.ShapeDtypeStruct((1024, 64), jnp.float32)
    kept = jax.eval_shape(lambda *args: jax.vjp(flash_attention, *args)[1], x, x, x)
    shapes = sorted(leaf.shape for leaf in jax.tree.leaves(kept))
    assert shapes == [(1024,), *[(1024, 64)] * 4]


def test_the_two_rules_pass_on_what_was_saved_and_the_options() -> None:
    x = jax.ShapeDtypeStruct((300, 64), jnp.float32)
    options = (True, 0.5, (128, 256), False)
    o, saved = jax.eval_shape(lambda *args: _forward(*args, options), x, x, x)
    assert saved[:4] == (x, x, x, o)
    gradients = launches(lambda *args: _backward(options, args[:5], args[5]), *saved, o)
    assert [launch["grid_mapping"].grid for launch in gradients] == [(1, 3, 2), (1, 2, 3)]


def test_large_scores_loosen_the_bounds_and_bfloat16_more() -> None:
    q, k, v = draw(4, *[(16, 8)] * 3)
    assert forward_error_bound(10 * q, k, v) > 2 * forward_error_bound(q, k, v)
    assert forward_error_bound(q, k, v, scale=10) > forward_error_bound(q, k, v)
    wide = [x.astype(BFLOAT16) for x in (q, k, v)]
    assert forward_error_bound(*wide) > 2.0**-8
    assert forward_error_bound(q, k, v) < 1e-4
    assert backward_error_bound(*wide, wide[0]) > 2.0**-8
    assert backward_error_bound(q, k, v, q) < 1e-2


x8 = np.ones((8, 16), np.float32)


@pytest.mark.parametrize(
    ("q", "k", "v", "options", "message"),
    [
        (x8[0], x8, x8, {}, r"the shape of q is \(16,\), but it must be \(heads, Tq, d\)"),
        (x8[None, None], x8, x8, {}, r"the shape of q is \(1, 1, 8, 16\)"),
        (x8, x8[None], x8[None], {}, r"the shape of k is \(1, 8, 16\), but it must be that of q"),
        (x8, x8[:, :8], x8[:, :8], {}, r"the shape of k is \(8, 8\).*of the same length d"),
        (x8[None], x8[None].repeat(2, 0), x8[None].repeat(2, 0), {}, "each head of q its keys"),
        (x8, x8, x8[:4], {}, r"the shape of v is \(4, 16\), but it must be that of k"),
        (x8.astype(np.int32), x8, x8, {}, "the dtype of q is int32"),
        (x8, x8.astype(BFLOAT16), x8.astype(BFLOAT16), {}, "the dtype of k is bfloat16"),
        (x8[:0], x8, x8, {}, r"the shape of q is \(0, 16\).*a softmax over nothing"),
        (x8, x8[:0], x8[:0], {}, r"the shape of k is \(0, 16\).*a softmax over nothing"),
        (x8, x8[:4], x8[:4], {"causal": True}, "places in one sequence, and q has 8: pass as many"),
        (x8, x8, x8, {"block": (128,)}, r"block is \(128,\), but the kernel takes \(bq, bk\)"),
    ],
)
@pytest.mark.parametrize("call", [flash_attention_forward, flash_attention])
def test_what_is_refused(
    call: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(q, k, v, interpret=True, **options)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((64, 128), "bq is 64, but a block takes a multiple of 128 of this axis or all 300"),
        ((128, 64), "bk is 64, but a block takes a multiple of 128 of this axis or all 200"),
        ((128, 128, 128), r"but the kernel takes \(bq, bk\)"),
    ],
)
def test_blocks_that_no_chip_takes(block: Any, message: str) -> None:
    q, k = np.ones((300, 16), np.float32), np.ones((200, 16), np.float32)
    with pytest.raises(ValueError, match=message):
        flash_attention_forward(q, k, k, block=block, interpret=True)
    with pytest.raises(ValueError, match=message):
        flash_attention_backward(q, k, k, q, q[:, 0], q, block=block, interpret=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"o": x8[:4]}, r"the shape of o is \(4, 16\), but it must be that of q"),
        ({"do": x8.astype(BFLOAT16)}, "the dtype of do is bfloat16, but it must be that of q"),
        ({"lse": x8}, r"lse is float32\[8, 16\], but it must be float32\[8\]"),
        ({"lse": x8[:, 0].astype(BFLOAT16)}, r"lse is bfloat16\[8\].*that the forward pass"),
        ({"k": x8[:4], "v": x8[:4], "causal": True}, "places in one sequence"),
    ],
)
def test_what_the_backward_pass_refuses(changed: Any, message: str) -> None:
    args = {"q": x8, "k": x8, "v": x8, "o": x8, "lse": x8[:, 0], "do": x8} | changed
    with pytest.raises(ValueError, match=message):
        flash_attention_backward(**args, interpret=True)
