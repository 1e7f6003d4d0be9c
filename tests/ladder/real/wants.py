"""Kernels as real packages write them: each asks something else of a tool that tries them."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128) / 64
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def doubling_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def adding_kernel(x_ref, o_ref, *, amount):
    o_ref[...] = x_ref[...] + amount


def doubled(x, **more):
    return pl.pallas_call(
        doubling_kernel,
        grid=(x.shape[0] // 8,),
        in_specs=[ROWS],
        out_specs=ROWS,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        **more,
    )(x)


# keyword-only arguments


def needs_keywords(x, *, scale, block=8):
    return doubled(x) * scale


def needs_keywords_cases():
    return {"half": SimpleNamespace(args=(X,), kwargs={"scale": 0.5})}


def needs_keywords_reference(x, *, scale, block=8):
    return x * 2 * scale


# pytrees


class Params(NamedTuple):
    weight: jax.Array
    bias: dict


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    x: jax.Array
    step: int


def takes_pytrees(params, state):
    return {"out": (doubled(state.x) * params.weight + params.bias["b"],)}


def takes_pytrees_cases():
    return [(Params(X[:1], {"b": X[1:2]}), State(X, 3))]


def takes_pytrees_reference(params, state):
    return {"out": (state.x * 2 * params.weight + params.bias["b"],)}


# static arguments


@functools.partial(jax.jit, static_argnames=("block", "name"))
def is_static(x, block, name):
    assert name == "relu"
    spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
    return pl.pallas_call(
        doubling_kernel,
        grid=(x.shape[0] // block,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def is_static_cases():
    return [(X, 8, "relu")]


def is_static_reference(x, block, name):
    return x * 2


# custom_vjp


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def with_vjp(x, block):
    return doubled(x)


def _fwd(x, block):
    return doubled(x), None


def _bwd(block, _, g):
    return (doubled(g),)


with_vjp.defvjp(_fwd, _bwd)


def with_vjp_cases():
    return [(X, 8)]


def with_vjp_reference(x, block):
    return x * 2


def gradient(x):
    return jax.grad(lambda x: jnp.sum(with_vjp(x, 8) ** 2))(x)


def gradient_reference(x):
    return 8 * x


# several kernels


def two_kernels(x):
    y = doubled(x, name="first")
    return pl.pallas_call(
        functools.partial(adding_kernel, amount=1.0),
        name="second",
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(y)


def two_kernels_reference(x):
    return x * 2 + 1


def cumsum_kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def second_is_sick(x):
    y = doubled(x, name="first")
    return pl.pallas_call(
        cumsum_kernel, name="second", out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(y)


def hungry_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def with_scratch_kernel(x_ref, o_ref, scratch):
    scratch[:32] = x_ref[...]
    o_ref[...] = scratch[:32] + 1


def second_is_too_large(x):
    y = doubled(x, name="first")
    return pl.pallas_call(
        with_scratch_kernel,
        name="second",
        scratch_shapes=[pltpu.VMEM((1 << 19, 128), jnp.float32)],
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(y)


def is_sick_alone(x):
    return pl.pallas_call(cumsum_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


# the machine


def asks_for_the_kind(x):
    kind = jax.devices()[0].device_kind
    block = {"TPU v5 lite": 8, "TPU v6 lite": 16}[kind]
    spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
    return pl.pallas_call(
        doubling_kernel,
        grid=(x.shape[0] // block,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


def asks_tpu_info(x):
    cores = pltpu.get_tpu_info().num_cores
    return doubled(x * cores) / cores


def asks_for_the_memory(x):
    free = jax.devices()[0].memory_stats()["bytes_limit"]
    return doubled(x) * (free > 0)


# prefetch


def pick_kernel(rows_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


def picks(rows, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(rows.shape[0],),
        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
    )
    return pl.pallas_call(
        pick_kernel,
        grid_spec=spec,
        out_shape=jax.ShapeDtypeStruct((8 * rows.shape[0], 128), x.dtype),
    )(rows, x)


def picks_cases():
    return {"in range": (np.array([3, 0, 2], np.int32), X)}


def picks_reference(rows, x):
    return np.concatenate([x[8 * r : 8 * r + 8] for r in rows])


picks_out_of_range = picks


# interpret of their own


def interprets(x, interpret=True):
    return doubled(x, interpret=interpret)


def interprets_by_params(x):
    return doubled(x, interpret=pltpu.InterpretParams())


# a mesh


def gathers(x):
    n = 4
    mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))

    def kernel(x_ref, o_ref, local, send, receive):
        me = jax.lax.axis_index("x")
        here = pltpu.make_async_copy(x_ref, o_ref.at[pl.ds(me * 8, 8)], local)
        here.start()
        here.wait()
        for step in range(1, n):
            to = jax.lax.rem(me + step, n)
            copy = pltpu.make_async_remote_copy(
                x_ref,
                o_ref.at[pl.ds(me * 8, 8)],
                send.at[step - 1],
                receive.at[step - 1],
                device_id=(to,),
            )
            copy.start()
            copy.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)

    def gather(x):
        return pl.pallas_call(
            kernel,
            in_specs=[anywhere],
            out_specs=anywhere,
            out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
            scratch_shapes=[
                pltpu.SemaphoreType.DMA,
                pltpu.SemaphoreType.DMA((3,)),
                pltpu.SemaphoreType.DMA((3,)),
            ],
        )(x)

    return jax.shard_map(
        gather, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False
    )(x)


def same(x):
    return x


def twice(x):
    return x * 2


def second_is_out_of_range(x):
    y = doubled(x, name="first")
    spec = pl.BlockSpec((8, 128), lambda i: (i + 1, 0))
    return pl.pallas_call(
        hungry_kernel,
        name="second",
        grid=(4,),
        in_specs=[spec],
        out_specs=ROWS,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(y)
