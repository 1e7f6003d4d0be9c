"""Kernels that jax ships, against references in float64, on every rung and two chips."""

import functools

import numpy as np
import pytest

from pallas_rungs.ladder import climb

CHIPS = ("v5e", "v6e")
RNG = np.random.default_rng(0)


def attention(q, k, v):
    """Causal attention of (batch, heads, length, depth) in the precision of its arguments."""
    scores = np.einsum("bhqd,bhkd->bhqk", q, k)
    scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(axis=-1, keepdims=True), v)


def grouped_matmul(x, weights, group_sizes):
    """Rows of each group times that group's matrix."""
    ends = np.cumsum(group_sizes)
    starts = ends - group_sizes
    return np.concatenate(
        [x[a:b] @ w for a, b, w in zip(starts, ends, weights, strict=True)], axis=0
    )


def flash_attention():
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    q, k, v = RNG.standard_normal((3, 1, 2, 256, 128)).astype(np.float32) / 4
    return functools.partial(flash_attention, causal=True), (q, k, v), attention


def megablox():
    from jax.experimental.pallas.ops.tpu.megablox import gmm

    x = RNG.standard_normal((256, 128)).astype(np.float32)
    weights = RNG.standard_normal((3, 128, 256)).astype(np.float32)
    return gmm, (x, weights, np.array([100, 28, 128], np.int32)), grouped_matmul


@pytest.mark.parametrize("kernel", [flash_attention, megablox], ids=lambda k: k.__name__)
def test_a_kernel_of_jax_climbs_every_rung(kernel):
    function, args, reference = kernel()
    report = climb(function, *args, reference=reference, chips=CHIPS, name=kernel.__name__)
    assert report.passed, str(report)
    assert {v.target for v in report.verdicts if v.rung == "compile"} == set(CHIPS)


def test_a_wrong_mask_is_seen():
    function, args, _ = flash_attention()
    unmasked = functools.partial(function.func, causal=False)
    report = climb(unmasked, *args, reference=attention, rungs=["interpret"])
    assert report.status("interpret") == "wrong"
