"""Reading Triton IR and Mosaic GPU modules out of programs that the installed jax lowers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import triton as pltriton

from pallas_rungs.compilers.abstract import abstract_mesh
from pallas_rungs.ir import gpu_rules
from pallas_rungs.ir.calls import configuration, custom_calls_to, entry
from pallas_rungs.ir.errors import IRError
from pallas_rungs.ir.mosaic_gpu import mosaic_gpu_modules
from pallas_rungs.ir.triton import accesses, triton_kernels


def lowered(function: Any, *shapes: tuple[int, ...]) -> Any:
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    with jax.sharding.use_abstract_mesh(abstract_mesh("h100")):
        return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",))


def by_triton(body: Any, block: tuple[int, ...], grid: tuple[int, ...], index_map: Any) -> Any:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec(block, index_map)
        return pl.pallas_call(
            body,
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            grid=grid,
            in_specs=[spec],
            out_specs=spec,
            compiler_params=pltriton.CompilerParams(num_warps=8, num_stages=2),
        )(x)

    return call


def double(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * 2


def by_mosaic(x: Any) -> Any:
    def body(x_gmem: Any, o_gmem: Any, smem: Any) -> None:
        rows = pl.ds(lax.axis_index("i") * 64, 64)
        smem[...] = x_gmem.at[rows][...]
        o_gmem.at[rows][...] = smem[...] * 2

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(3,),
        grid_names=("i",),
        scratch_types=[plgpu.SMEM((64, 128), x.dtype)],
    )(x)


def test_a_triton_kernel_is_found_among_other_operations_of_the_program() -> None:
    call = by_triton(double, (8, 16), (2, 3), lambda i, j: (i, j))
    first, second = triton_kernels(lowered(lambda x: call(jnp.sin(call(x))), (16, 48)))
    assert first == second
    assert (first.name, first.grid) == ("double", (2, 3, 1))
    assert (first.num_warps, first.num_stages) == (8, 2)
    counts = dict(first.operations)
    assert (counts["tt.load"], counts["tt.store"], counts["arith.mulf"]) == (2, 1, 1)
    assert first.dialects["tt"] == sum(n for op, n in first.operations if op.startswith("tt."))
    assert str(first).startswith("double, grid (2, 3, 1), 8 warps, 2 stages\n  operations: arith ")
    assert triton_kernels(lowered(jnp.sin, (8,))) == ()


def test_each_program_of_a_grid_touches_its_block() -> None:
    call = by_triton(double, (8, 16), (2, 3), lambda i, j: (i, 2 - j))
    (kernel,) = triton_kernels(lowered(call, (16, 48)))
    places = np.arange(16 * 48).reshape(16, 48)
    for i in range(2):
        for j in range(3):
            load, _, store = accesses(kernel.text, (i, j, 0))
            wanted = places[8 * i :, 16 * (2 - j) :][:8, :16]
            np.testing.assert_array_equal(load.offsets, wanted)
            np.testing.assert_array_equal(store.offsets, wanted)
            assert (load.argument, store.argument, load.mask) == (0, 1, None)


def test_what_overhangs_is_masked() -> None:
    call = by_triton(double, (8, 16), (2, 3), lambda i, j: (i, j))
    (kernel,) = triton_kernels(lowered(call, (13, 41)))
    places = np.arange(13 * 41).reshape(13, 41)
    for access in accesses(kernel.text, (1, 2, 0)):
        assert access.mask is not None
        np.testing.assert_array_equal(access.offsets[access.mask], places[8:, 32:].ravel())


def test_pointers_that_depend_on_loaded_values_are_out_of_reach() -> None:
    def chases(x_ref: Any, o_ref: Any) -> None:
        o_ref[0] = x_ref[x_ref[1].astype(jnp.int32)]

    call = by_triton(chases, (4,), (1,), lambda i: (i,))
    (kernel,) = triton_kernels(lowered(call, (4,)))
    with pytest.raises(IRError, match=r"pointers of a load that are made of .* found .*tt\.load"):
        accesses(kernel.text)


def test_a_text_that_is_no_triton_ir_is_named() -> None:
    with pytest.raises(IRError, match="a module of Triton IR: expected MLIR"):
        accesses("module {")
    with pytest.raises(IRError, match=r"expected one tt\.func, found 0 of them"):
        accesses("module {}")


def test_a_mosaic_gpu_module_says_how_it_is_launched() -> None:
    (module,) = mosaic_gpu_modules(lowered(by_mosaic, (192, 128)))
    assert module.name == "body_mosaic_gpu"
    assert module.arch == (9, 0)
    assert (module.blocks, module.threads) == ((3, 1, 1), (128, 1, 1))
    assert 0 <= module.shared_bytes - 64 * 128 * 4 < 1024
    assert module.dialects["gpu"] >= 1
    assert "gpu.launch" in module.text
    multiplied = [line for line in module.text.splitlines() if "arith.mulf" in line]
    width = int(multiplied[0].rpartition("vector<")[2].partition("x")[0])
    assert len(multiplied) * width * 128 == 64 * 128
    assert any(asm.startswith("bar.sync") for asm, _ in module.inline_asm)
    assert "blocks (3, 1, 1), threads (128, 1, 1)" in str(module)
    assert mosaic_gpu_modules(lowered(jnp.sin, (8,))) == ()


def test_a_configuration_that_has_changed_is_named() -> None:
    target = "mosaic_gpu_v2"
    ((_, call),) = custom_calls_to(lowered(by_mosaic, (192, 128)), target)
    with pytest.raises(IRError, match=r"configuration of mosaic_gpu_v2: .*'ir', found kernel_hash"):
        entry(configuration(call, target), "ir", target)


def test_rules_are_all_there_and_keyed_by_primitives() -> None:
    rules = gpu_rules.mosaic_gpu_rules()
    assert set(rules) == {
        (lowering, thread) for lowering in ("Lane", "Warpgroup") for thread in ("Warpgroup", "Warp")
    }
    assert lax.dot_general_p in gpu_rules.triton_rules()
    assert lax.dot_general_p not in frozenset().union(*rules.values())
    # Registered by the front ends, which nobody has imported for their rules.
    assert "wgmma" in gpu_rules.names(rules["Lane", "Warpgroup"])
    assert "masked_load" in gpu_rules.names(gpu_rules.triton_rules())
    names = gpu_rules.names(rules["Lane", "Warpgroup"])
    assert len(names) == len(rules["Lane", "Warpgroup"])
    assert names == tuple(sorted(names))


def test_equations_of_a_body_come_in_order_with_those_inside_of_them() -> None:
    def body(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = lax.fori_loop(0, 3, lambda _, x: jnp.sin(x), x_ref[...])

    call = by_triton(body, (8,), (1,), lambda i: (i,))
    equations = gpu_rules.kernel_equations(
        lambda x: call(jnp.cos(x)), jax.ShapeDtypeStruct((8,), jnp.float32)
    )
    told = [str(equation) for equation in equations]
    assert told[0] == "f32[8] = get"
    assert told[-1] == "f32[8] = swap"
    assert "  f32[8] = sin" in told
    assert not any("cos" in line for line in told)
