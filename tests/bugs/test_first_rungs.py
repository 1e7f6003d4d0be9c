"""The first two rungs, by jax alone: what the museum says of them holds without the ladder."""

from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.bugs import MUSEUM
from pallas_rungs.kernels.case import Case

VARIANTS = [
    pytest.param(bug, variant, id=f"{bug.__name__.rpartition('.')[2]}: {variant}")
    for bug in MUSEUM
    for variant in ("broken", "fixed")
]


# Where the interpreter itself gives up there is nothing to see without the ladder.
INTERPRETED = [
    variant for variant in VARIANTS if variant.values[0].EXPECTED["interpret"] != "tool cannot"
]


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pallas_call of the test is interpreted, whatever it asked for."""
    compiled = pl.pallas_call

    def pallas_call(*args: Any, **options: Any) -> Any:
        return compiled(*args, **{**options, "interpret": True})

    monkeypatch.setattr(pl, "pallas_call", pallas_call)


def expected(bug: ModuleType, variant: str, rung: str) -> str:
    return bug.EXPECTED[rung] if variant == "broken" else "passed"


@pytest.mark.parametrize(("bug", "variant"), VARIANTS)
def test_trace(bug: ModuleType, variant: str) -> None:
    call = getattr(bug, variant)
    for case in bug.cases():
        try:
            jax.make_jaxpr(call)(*case.args)
            verdict = "passed"
        except (ValueError, TypeError):
            verdict = "refused"
        assert verdict == expected(bug, variant, "trace")


def agrees(bug: ModuleType, call: Any, case: Case) -> bool:
    # Taken literally: XLA's simplifier would repair a product with a mask. A function of its own,
    # since jax remembers what it traced `call` to when it was not interpreted.
    options = {"xla_disable_hlo_passes": "algsimp"}
    literally = jax.jit(lambda *args: call(*args), compiler_options=options)
    got = np.asarray(literally(*case.args)).astype(np.float64)
    want = bug.reference(*case.args)
    assert want.dtype == np.float64
    assert got.shape == want.shape
    return np.allclose(got, want, rtol=case.rtol, atol=case.atol)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("bug", "variant"), INTERPRETED)
def test_interpret(bug: ModuleType, variant: str) -> None:
    call = getattr(bug, variant)
    for case in bug.cases():
        try:
            verdict = "passed" if agrees(bug, call, case) else "wrong"
        except (ValueError, TypeError):
            verdict = "refused"
        assert verdict == expected(bug, variant, "interpret")
