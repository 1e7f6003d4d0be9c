"""A matrix times a number, moved in four ways, against NumPy in float64, and the refusals."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractDevice, AbstractMesh

from pallas_rungs.kernels.scale import scale, scale_pipelined, scale_reference
from pallas_rungs.kernels.scale_double_buffered import (
    scale_double_buffered,
    scale_double_buffered_reference,
)
from pallas_rungs.kernels.scale_on_every_core import (
    scale_on_every_core,
    scale_on_every_core_reference,
)
from unit.kernels.matrices import (
    BFLOAT16,
    FEW,
    FLOAT32,
    RTOL,
    float64,
    lengths,
    matrix,
    seeds,
    sizes,
)

DTYPES = st.sampled_from([FLOAT32, BFLOAT16])
FACTORS = st.sampled_from([-1.5, 0.1, 3.0])
FEWER = settings(FEW, max_examples=5)  # a pipeline takes seconds to trace and compile
SIMULATOR = pltpu.InterpretParams(detect_races=True)
EAGER = pltpu.InterpretParams(dma_execution_mode="eager")


@pytest.fixture(autouse=True, scope="module")
def named_chip() -> Iterator[None]:
    """A pipeline asks which chip it is for, a mesh how many cores there are."""
    device = AbstractDevice("TPU v5", num_cores=2, platform="tpu")
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        yield


def assert_scaled(got: Any, x: np.ndarray, factor: float) -> None:
    assert got.dtype == x.dtype
    rtol = RTOL[np.dtype(x.dtype)]
    np.testing.assert_allclose(float64(got), scale_reference(x, factor), rtol=rtol, atol=0)


@FEW
@given(M=lengths, N=lengths, bm=sizes(8, 320), dtype=DTYPES, factor=FACTORS, seed=seeds)
def test_a_grid_scales(M: int, N: int, bm: int, dtype: Any, factor: float, seed: int) -> None:
    x = matrix(seed, M, N, dtype)
    assert_scaled(scale(x, factor, bm=bm, interpret=True), x, factor)


@FEWER
@given(
    blocks=st.integers(1, 5),
    N=st.sampled_from([1, 100, 256]),
    bm=st.sampled_from([8, 24]),
    dtype=DTYPES,
    factor=FACTORS,
    seed=seeds,
)
def test_copies_by_hand_scale(
    blocks: int, N: int, bm: int, dtype: Any, factor: float, seed: int
) -> None:
    x = matrix(seed, blocks * bm, N, dtype)
    assert_scaled(scale_double_buffered(x, factor, bm=bm, interpret=True), x, factor)


@FEWER
@given(
    blocks=st.integers(1, 5),
    N=st.sampled_from([1, 100, 256]),
    bm=st.sampled_from([8, 24]),
    buffers=st.integers(1, 3),
    dtype=DTYPES,
    factor=FACTORS,
    seed=seeds,
)
def test_a_pipeline_scales(
    blocks: int, N: int, bm: int, buffers: int, dtype: Any, factor: float, seed: int
) -> None:
    x = matrix(seed, blocks * bm, N, dtype)
    got = scale_pipelined(x, factor, bm=bm, buffers=buffers, interpret=True)
    assert_scaled(got, x, factor)


@pytest.mark.parametrize("M", [3, 8])
@pytest.mark.parametrize("call", [scale, scale_pipelined, scale_double_buffered])
def test_a_long_block_is_cut_down(call: Callable[..., Any], M: int) -> None:
    x = matrix(0, M, 130, FLOAT32)
    assert_scaled(call(x, 2.0, interpret=True), x, 2.0)


@pytest.mark.parametrize("call", [scale, scale_pipelined, scale_double_buffered])
def test_a_bfloat16_product_is_rounded_once(call: Callable[..., Any]) -> None:
    x = matrix(3, 16, 128, BFLOAT16)
    got = call(x, 0.1, interpret=True)
    assert got.dtype == BFLOAT16
    np.testing.assert_array_equal(got, (x.astype(FLOAT32) * FLOAT32.type(0.1)).astype(BFLOAT16))


def test_by_hand_two_blocks_each_way_are_in_vmem() -> None:
    traced = jax.make_jaxpr(lambda x: scale_double_buffered(x, 2.0, bm=8))(np.ones((32, 128)))
    (body,) = [e.params["jaxpr"] for e in traced.eqns if e.primitive.name == "pallas_call"]
    assert [v.aval.shape for v in body.invars[2:]] == [(2, 8, 128), (2, 8, 128), (2,), (2,)]


@pytest.mark.parametrize("interpret", [SIMULATOR, EAGER])
@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_by_hand_nothing_is_read_early_or_left_under_way(
    blocks: int, interpret: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    x = matrix(blocks, blocks * 8, 128, FLOAT32)
    assert_scaled(scale_double_buffered(x, 2.0, bm=8, interpret=interpret), x, 2.0)
    assert capsys.readouterr().out == ""  # there the simulator reports races and semaphores


@pytest.mark.parametrize(("cores", "blocks"), [(1, 3), (2, 1), (2, 4), (2, 5), (3, 4)])
def test_every_core_scales_its_share(cores: int, blocks: int) -> None:
    x = matrix(blocks, blocks * 8, 128, BFLOAT16)
    got = scale_on_every_core(x, -1.5, bm=8, cores=cores, interpret=SIMULATOR)
    assert_scaled(got, x, -1.5)


def test_there_are_as_many_programs_as_cores() -> None:
    x = matrix(0, 32, 128, FLOAT32)

    def cores(**options: Any) -> int:
        call = partial(scale_on_every_core, factor=2.0, bm=8, **options)
        (launch,) = jax.make_jaxpr(lambda x: call(x))(x).eqns
        (mesh,) = launch.params["meshes"]
        return int(mesh.num_cores)

    assert cores() == 2
    assert cores(cores=1) == 1
    assert cores(cores=3) == 3


def test_by_default_a_block_has_256_rows() -> None:
    x = matrix(0, 512, 128, FLOAT32)
    for call in (scale, scale_pipelined, scale_double_buffered, scale_on_every_core):
        assert "256,128]" in str(jax.make_jaxpr(lambda x, f=call: f(x, 2.0))(x))
    with pytest.raises(ValueError, match="bm is 256, but the kernel copies whole blocks"):
        scale_double_buffered(x[:264], 2.0, interpret=True)


def test_a_pipeline_has_two_buffers_by_default() -> None:
    x = matrix(0, 32, 128, FLOAT32)

    def program(**options: Any) -> str:
        return str(jax.make_jaxpr(lambda x: scale_pipelined(x, 2.0, bm=8, **options))(x))

    assert program() == program(buffers=2)
    assert program() != program(buffers=3)


@pytest.mark.parametrize(
    "reference",
    [scale_reference, scale_double_buffered_reference, scale_on_every_core_reference],
)
def test_the_references_multiply(reference: Any) -> None:
    want = reference(jnp.array([[1.5, -2.0]], jnp.bfloat16), 0.1)
    assert want.dtype == np.float64
    np.testing.assert_allclose(want, [[0.15, -0.2]], rtol=1e-15)


CALLS = [scale, scale_pipelined, scale_double_buffered, scale_on_every_core]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("x", "bm", "message"),
    [
        (np.ones((8, 128), np.int32), 8, "the dtype of x is int32.*float32 and bfloat16"),
        (np.ones(128, np.float32), 8, r"the shape of x is \(128,\), but the kernel takes matr"),
        (np.ones((0, 128), np.float32), 8, "a grid over nothing runs no program"),
        (np.ones((32, 128), np.float32), 4, "bm is 4, but a block takes a multiple of 8"),
    ],
)
def test_what_they_do_not_take(
    call: Callable[..., Any], x: np.ndarray, bm: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(x, 2.0, bm=bm, interpret=True)


@pytest.mark.parametrize("call", CALLS[1:])
def test_blocks_that_do_not_fill_the_array(call: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"bm is 16.*does not divide M = 40: pass 8, or"):
        call(np.ones((40, 128), np.float32), 2.0, bm=16, interpret=True)


def test_no_buffers_and_no_cores() -> None:
    x = np.ones((32, 128), np.float32)
    with pytest.raises(ValueError, match="buffers is 0, but a block has to be somewhere"):
        scale_pipelined(x, 2.0, buffers=0, interpret=True)
    with pytest.raises(ValueError, match="cores is 0, but somebody has to do the work"):
        scale_on_every_core(x, 2.0, cores=0, interpret=SIMULATOR)
