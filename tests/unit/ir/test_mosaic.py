"""Mosaic modules out of lowered programs: what they hold, the round trip, and what is refused."""

import base64
import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.compilers import libtpu
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.mosaic import Argument, MosaicModule, Window, decoded, mosaic_modules, parsed
from pallas_rungs.kernels.gather_blocks import gather_blocks
from pallas_rungs.kernels.matmul_scratch import matmul_scratch
from pallas_rungs.kernels.softmax import softmax

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
HALF = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16)


def lowered(function: Callable[..., Any], *args: Any) -> Any:
    return jax.jit(function).trace(*args).lower(lowering_platforms=("tpu",))


def module(function: Callable[..., Any], *args: Any) -> MosaicModule:
    (found,) = mosaic_modules(lowered(function, *args))
    return found


def left_in_hbm(x: jax.Array) -> jax.Array:
    """A kernel with one operand in HBM, one whole in VMEM, one in single-buffered blocks."""

    def body(far_ref: jax.Ref, whole_ref: jax.Ref, x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        del far_ref
        o_ref[...] = x_ref[...] + whole_ref[0:64, :]

    rows = pl.BlockSpec((64, 512), lambda i: (i, 0), pipeline_mode=pl.Buffered(1))
    result: jax.Array = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[
            pl.BlockSpec(memory_space=pl.ANY),
            pl.BlockSpec((256, 512), lambda i: (0, 0)),
            rows,
        ],
        out_specs=pl.BlockSpec((64, 512), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=2**24),
    )(x, x, x)
    return result


def test_softmax_is_what_its_call_says() -> None:
    kernel = module(softmax, X)
    assert (kernel.name, kernel.grid, kernel.semantics) == ("softmax_kernel", (4,), ("parallel",))
    assert kernel.arguments[0] == Argument("grid index", "i32", "")
    assert kernel.spaces == ("vmem", "vmem")
    assert kernel.windows == (
        Window((64, 512), "transform_0"),
        Window((64, 512), "transform_1"),
    )
    assert [name for name, _ in kernel.transforms] == ["transform_0", "transform_1"]


def test_scalars_and_scratch_are_told_from_operands() -> None:
    table = jax.ShapeDtypeStruct((4,), jnp.int32)
    gather = module(gather_blocks, table, jax.ShapeDtypeStruct((64, 128), jnp.float32))
    assert [a.space for a in gather.of_role("prefetched scalars")] == ["smem"]
    assert "memref.load" in dict(gather.transforms)["transform_0"]
    matmul = module(matmul_scratch, HALF, HALF)
    assert len(matmul.grid) == len(matmul.of_role("grid index")) == 3
    assert len(matmul.of_role("operand")) == len(matmul.windows) == 3
    assert [a.type for a in matmul.of_role("scratch")] == [
        "memref<256x256xf32, #tpu.memory_space<vmem>>"
    ]


def test_operands_left_in_hbm_have_no_window_and_whole_ones_no_second_buffer() -> None:
    kernel = module(left_in_hbm, X)
    assert kernel.spaces == ("any", "vmem", "vmem", "vmem")
    assert [window.staged for window in kernel.windows] == [False, True, True, True]
    assert [dict(window.extra) for window in kernel.windows] == [
        {},
        {"pipeline_mode": "synchronous"},
        {"pipeline_mode": "synchronous"},
        {},
    ]
    assert "no window" in str(kernel)
    assert json.loads(dict(kernel.config)["scoped_memory_configs"])[0]["size"] == 2**24


@pytest.mark.parametrize(
    ("function", "args"),
    [(softmax, (X,)), (matmul_scratch, (HALF, HALF)), (left_in_hbm, (X,))],
)
def test_a_module_goes_through_the_parser_and_comes_back_the_same(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    kernel = module(function, *args)
    assert parsed(kernel.text) == dataclasses.replace(kernel, config=())


def test_operations_are_those_of_the_text() -> None:
    kernel = module(matmul_scratch, HALF, HALF)
    counts = Counter({name: n for name, n in kernel.operations if not name.startswith("func.")})
    for name, count in counts.items():
        if name != "scf.yield":  # printed only where it yields something
            assert kernel.text.count(f"{name} ") == count, name
    assert kernel.dialects["tpu"] == 4
    generic, tpu = kernel.vocabularies
    assert generic + tpu + kernel.dialects["func"] == sum(n for _, n in kernel.operations)


@pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
@pytest.mark.parametrize(
    ("function", "args"), [(softmax, (X,)), (matmul_scratch, (HALF, HALF)), (left_in_hbm, (X,))]
)
def test_the_compiler_says_that_it_was_given_this_module(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = module(function, *args)
    program = export.export(jax.jit(function), platforms=["tpu"])(*args)
    monkeypatch.setenv(libtpu.FLAGS_VARIABLE, f"--xla_mosaic_dump_to={tmp_path}")
    assert libtpu.compile_exported(bytes(program.serialize()), "v5e").kind == "compiled"
    first = min(tmp_path.glob("*-post-deserialization.txt"))
    given = parsed(first.read_text("utf8"))
    assert given.operations == kernel.operations
    assert (given.windows, given.spaces) == (kernel.windows, kernel.spaces)


def test_every_kernel_of_a_program_is_found() -> None:
    both = mosaic_modules(lowered(lambda x: softmax(softmax(x, bm=32)), X))
    assert [kernel.grid for kernel in both] == [(8,), (4,)]
    assert not mosaic_modules(lowered(jnp.exp, X))


EMPTY = b"module attributes {stable_mosaic.version = 15 : i64} {}"


def body(text: bytes) -> str:
    inside = {"body": base64.b64encode(text).decode()}
    return json.dumps({"custom_call_config": inside})


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ("{", r"backend_config of a tpu_custom_call, line 1: expected JSON"),
        ("{}", r"expected custom_call_config with a body, found no 'custom_call_config'"),
        ('{"custom_call_config": {}}', r"found no 'body'"),
        ('{"custom_call_config": {"body": "a"}}', r"expected a body in base64"),
        (body(b"nothing"), r"expected MLIR bytecode"),
        (body(b"module {}"), r"(?s)expected MLIR bytecode.*Missing or invalid version"),
        (body(EMPTY), r"expected one function with dimension_semantics, found 0 of none"),
    ],
)
def test_a_configuration_of_another_shape_is_refused(config: str, complaint: str) -> None:
    with pytest.raises(IRError, match=complaint):
        decoded(config)


def test_a_text_of_another_shape_is_refused_with_the_place() -> None:
    text = module(softmax, X).text
    with pytest.raises(IRError, match=r"a Mosaic module: expected MLIR, found .*\n.*:3:\d+"):
        parsed(text.replace("arith.constant 0", "arith.constants 0", 1))
    with pytest.raises(IRError, match=r"window_params: expected window_bounds, found"):
        parsed(text.replace(", window_bounds = array<i64: 64, 512>", "", 1))
    with pytest.raises(IRError, match=r"at least 1 indices, 0 scalars and 5 scratch"):
        parsed(text.replace("scratch_operands = 0", "scratch_operands = 5"))
