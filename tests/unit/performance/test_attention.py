"""The four ways to attention: the same numbers, the work counted, and the gate on one chip."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.compilers import libtpu
from pallas_rungs.kernels.flash_attention_forward import forward_error_bound
from pallas_rungs.kernels.flash_attention_strips import flash_attention_strips_reference
from pallas_rungs.performance import estimate
from pallas_rungs.performance.attention import (
    jax_flash,
    kept,
    ours,
    pairs_in_blocks,
    pairs_in_strips,
    pairs_needed,
    shaped,
    splash_attention,
    xla,
)

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)


@pytest.mark.parametrize("way", ["ours", "jax_flash", "splash_attention", "xla"])
def test_each_way_is_causal_attention(way: str) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 256, 128)).astype(np.float32) for _ in range(3))
    want, _ = flash_attention_strips_reference(q, k, v)
    given = q * np.float32(128**-0.5) if way == "splash_attention" else q
    function: Any = {
        "ours": ours(128, 128),
        "jax_flash": jax_flash(),
        "splash_attention": splash_attention(256, heads=2, interpret=True),
        "xla": xla,
    }[way]
    with pltpu.force_tpu_interpret_mode():
        found = function(given, k, v)
    got = found[0] if way == "ours" else found
    np.testing.assert_allclose(got, want, rtol=0, atol=forward_error_bound(q, k, v))


def test_pairs_are_counted_as_a_table_of_them_says() -> None:
    seen = np.tri(24) > 0
    assert pairs_needed(24) == seen.sum()
    for bq, bk in ((4, 4), (8, 4), (4, 8), (24, 24)):
        blocks = seen.reshape(24 // bq, bq, 24 // bk, bk).any(axis=(1, 3))
        assert pairs_in_blocks(24, bq, bk) == blocks.sum() * bq * bk
    for b, strip in ((8, 4), (12, 4), (24, 8), (8, 8)):
        multiplied = np.zeros((24, 24), bool)
        for i in range(0, 24, b):
            multiplied[i : i + b, :i] = True
            for c in range(i, i + b, strip):
                multiplied[c : i + b, c : c + strip] = True
        assert pairs_in_strips(24, b, strip) == multiplied.sum()


@pytest.fixture(scope="module")
def on_v5e() -> dict[str, dict[str, Any]]:
    """Estimates of ours and of jax's flash with the best block sizes found for it."""
    ways = {"ours": ours(), "jax": jax_flash(1024, 1024, 1024)}
    return {name: kept(estimate(way, *[shaped()] * 3, chip="v5e")) for name, way in ways.items()}


@needs_libtpu
def test_the_gate_is_met_on_v5e(on_v5e: dict[str, dict[str, Any]]) -> None:
    assert on_v5e["ours"]["seconds"] < 0.85 * on_v5e["jax"]["seconds"]
    assert on_v5e["ours"]["unresolved"] == on_v5e["jax"]["unresolved"] == []


@needs_libtpu
def test_what_is_moved_is_what_the_index_maps_ask_for(on_v5e: dict[str, dict[str, Any]]) -> None:
    head, block = 4096 * 128 * 2, 1024 * 128 * 2
    # Of keys and of values, for each head: a block for each of the ten programs that compute, but
    # for the second row's first one, which the first row has left there. And some words besides.
    blocks = 16 * (10 - 1)
    besides = on_v5e["ours"]["hbm_read_bytes"] - 16 * head - 2 * blocks * block
    assert 0 <= besides < 1024
    assert on_v5e["ours"]["hbm_written_bytes"] == 16 * (head + 4096 * 4)


@needs_libtpu
def test_splash_is_estimated_by_its_tables() -> None:
    """Read wrongly, its tables leave out most blocks, and nothing else tells."""
    found = estimate(splash_attention(1024, 256, 256, 256, heads=2), *[shaped(1024, heads=2)] * 3)
    assert found.unresolved == ()
    whole = estimate(jax_flash(256, 256, 256), *[shaped(1024, heads=2)] * 3)
    products = [it.main.occupancy["MXU"] * it.main.cycles for it in (found, whole)]
    assert products[0] == pytest.approx(products[1], rel=0.05)


def test_of_an_estimate_is_kept_what_a_page_needs() -> None:
    class Found:
        def to_json(self) -> dict[str, Any]:
            return {"seconds": 1.0, "constants": {}, "kernels": [{"cycles": 2.0, "loops": []}]}

    found: Any = Found()
    assert kept(found) == {"seconds": 1.0, "kernels": [{"cycles": 2.0}]}


def test_shapes_are_those_of_the_gate() -> None:
    assert shaped() == jax.ShapeDtypeStruct((16, 4096, 128), jnp.bfloat16)
