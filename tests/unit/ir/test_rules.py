"""The rule tables: whole, told apart by primitive, and their dialects held against real modules."""

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax._src.pallas.mosaic import lowering
from jax._src.pallas.mosaic.core import CoreType
from jax._src.pallas.triton.lowering import triton_lowering_rules
from jax.experimental import pallas as pl
from jaxlib.mlir.dialects import arith

from pallas_rungs.ir import rules
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.jaxpr import kernel_jaxprs
from pallas_rungs.ir.mosaic import mosaic_modules
from pallas_rungs.ir.rules import (
    BACKENDS,
    LANE,
    SCALAR_SUBCORE,
    TENSOR_CORE,
    TRITON,
    VECTOR_SUBCORE,
    WARPGROUP,
    Rule,
    RuleTables,
    rule_tables,
)
from pallas_rungs.kernels import add_one_by_hand, layer_norm, matmul_gelu, row_sums, softmax
from pallas_rungs.ladder.pretend import Pretend

TABLES = rule_tables()


def test_every_rule_of_the_registries_is_in_its_table() -> None:
    for backend, registry in (
        (TENSOR_CORE, lowering.lowering_rules[CoreType.TC]),
        (SCALAR_SUBCORE, lowering.lowering_rules[CoreType.SC_SCALAR_SUBCORE]),
        (VECTOR_SUBCORE, lowering.lowering_rules[CoreType.SC_VECTOR_SUBCORE]),
        (TRITON, triton_lowering_rules),
    ):
        names = {name.partition(" (")[0] for name in TABLES.rules[backend]}
        assert len(TABLES.rules[backend]) == len(registry), backend.name
        assert names == {primitive.name for primitive in registry}, backend.name
    assert list(TABLES.rules) == list(BACKENDS)
    assert len(TABLES.rules[LANE]) > 100
    assert len(TABLES.rules[WARPGROUP]) > 100


def test_the_tables_do_not_depend_on_what_was_imported_before() -> None:
    program = "from pallas_rungs.ir.rules import rule_tables; print(rule_tables())"
    alone = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert alone.stdout.strip() == str(TABLES)


def test_primitives_of_one_name_are_told_apart() -> None:
    assert "swap" in TABLES.rules[TENSOR_CORE]
    assert "swap (mosaic.sc_primitives)" not in TABLES.rules[TENSOR_CORE]
    assert {"swap", "swap (mosaic.sc_primitives)"} <= set(TABLES.rules[VECTOR_SUBCORE])


def test_intersections() -> None:
    def rule(name: str) -> Rule:
        return Rule(name, "m:f", ("arith",) if name == "add" else (), False)

    small = RuleTables(
        {
            TENSOR_CORE: {name: rule(name) for name in ("add", "roll", "dma")},
            VECTOR_SUBCORE: {name: rule(name) for name in ("add", "dma")},
            TRITON: {name: rule(name) for name in ("add", "cumsum")},
        }
    )
    assert small.primitives() == {"add", "roll", "dma", "cumsum"}
    assert small.primitives(TENSOR_CORE, TRITON) == {"add"}
    assert small.only(TENSOR_CORE) == {"roll", "dma"}  # a SparseCore is of the same maker
    assert small.dialects(TENSOR_CORE) == {"arith": 1}


KERNELS: tuple[tuple[Callable[..., Any], Any], ...] = (
    (softmax.softmax, softmax),
    (layer_norm.layer_norm, layer_norm),
    (matmul_gelu.matmul_gelu, matmul_gelu),
    (row_sums.row_sums, row_sums),
    (add_one_by_hand.add_one_by_hand, add_one_by_hand),
)


@pytest.mark.parametrize(("kernel", "home"), KERNELS)
def test_a_kernel_is_built_in_no_dialect_that_its_rules_do_not_name(
    kernel: Callable[..., Any], home: Any
) -> None:
    args = home.cases()[0].args
    (jaxpr,) = kernel_jaxprs(kernel, *args)
    with Pretend("v5e", 1).applied():
        program = jax.jit(kernel).trace(*args).lower(lowering_platforms=("tpu",))
    (module,) = mosaic_modules(program)
    table = TABLES.rules[TENSOR_CORE]
    foreseen = {dialect for name, _ in jaxpr.primitives for dialect in table[name].dialects}
    # The functions around the rules' operations come with no rule.
    assert set(module.dialects) - {"func"} <= foreseen
    assert {"arith", "vector", "tpu"} <= foreseen


def test_a_rule_without_a_table_entry_is_the_one_that_is_refused() -> None:
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)

    def lowers(function: Callable[..., Any]) -> bool:
        def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
            o_ref[...] = function(x_ref[...])

        def call(x: jax.Array) -> jax.Array:
            result: jax.Array = pl.pallas_call(kernel, out_shape=x_shape)(x)
            return result

        x_shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        (jaxpr,) = kernel_jaxprs(call, x)
        known = all(name in TABLES.rules[TENSOR_CORE] for name, _ in jaxpr.primitives)
        try:
            jax.jit(call).trace(x).lower(lowering_platforms=("tpu",))
        except NotImplementedError:
            assert not known
            return False
        assert known
        return True

    assert lowers(jax.lax.tanh)
    assert not lowers(jax.lax.sinh)


def test_dialects_are_found_behind_aliases_and_in_functions_that_are_handed_on() -> None:
    def inner(_: str) -> Any:
        return arith.addf(None, None)

    def rule() -> Any:
        return list(map(inner, ""))

    wrapped = functools.partial(rule)
    assert rules._rule("made_up", wrapped).dialects == ("arith",)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(IRError, match="expected a Python function as a rule, found 3"):
        rules._rule("made_up", 3)  # type: ignore[arg-type]
