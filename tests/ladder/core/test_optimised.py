"""The optimised HLO of a program, from the CPU's compiler and from the TPU's."""

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from pallas_rungs.compilers import libtpu
from pallas_rungs.ir import hlo
from pallas_rungs.ladder.optimised import hlo_for_cpu, hlo_for_tpu

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
X = jax.ShapeDtypeStruct((64, 256), jnp.float32)


def doubled(x: jax.Array, rows: int = 8) -> jax.Array:
    """Twice x, by a kernel that takes some rows at a time."""

    def kernel(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[...]

    block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(kernel, x, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block)(
        x
    )


@needs_libtpu
def test_a_kernel_is_one_launch_that_xla_does_not_look_into() -> None:
    text = hlo_for_tpu(lambda x: doubled(x) + 1, X)
    assert text is not None
    launches = [instruction for instruction in hlo.entry(text) if instruction.works]
    assert [launch.target for launch in launches].count("tpu_custom_call") == 1
    assert len(launches) > 1
    assert hlo.traffic(hlo_for_tpu(doubled, X)).read == 64 * 256 * 4


@needs_libtpu
def test_a_function_without_a_kernel_is_compiled_too() -> None:
    counted = hlo.traffic(hlo_for_tpu(lambda x: jnp.tanh(2 * x + 1) * x, X, chip="v6e"))
    assert (counted.read, counted.written) == (65536, 65536)


@needs_libtpu
def test_a_program_that_the_compiler_refuses_is_an_error_in_its_words() -> None:
    large = jax.ShapeDtypeStruct((8192, 8192), jnp.float32)
    with pytest.raises(RuntimeError, match=r"compiler for v5e refused it: .*RESOURCE_EXHAUSTED"):
        hlo_for_tpu(lambda x: doubled(x, rows=8192), large)


def test_without_libtpu_there_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu, "why_unavailable", lambda: "not installed")
    assert hlo_for_tpu(doubled, X) is None


def test_an_unknown_chip_is_the_callers_error() -> None:
    with pytest.raises(ValueError, match="unknown chip 'v99'"):
        hlo_for_tpu(doubled, X, chip="v99")


def test_the_cpus_compiler_fuses_a_chain() -> None:
    launches = [i for i in hlo.entry(hlo_for_cpu(lambda x: jnp.tanh(2 * x + 1) * x, X)) if i.works]
    assert [launch.opcode for launch in launches] == ["fusion"]
