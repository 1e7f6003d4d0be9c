"""Products of groups of rows with a matrix of their own: one call, groups of any size."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.checks import (
    check_blocks_divide,
    check_dtype,
    check_matrix,
    check_table,
    product_blocks,
    refusal,
)

CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def plan_visits(group_sizes: jax.Array, M: int, bm: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Say which tile of rows, for which group, each visit of the kernel works on.

    A tile of bm rows that holds rows of several groups is visited once for each of them, in a row.
    The rows after the last group count as a group of their own, number G, which has no weights.
    There are at most as many visits as tiles and groups together, so the tables have that length,
    whatever the sizes are; visits that are not needed repeat the last tile for group G.

    Args:
        group_sizes: (G,), int32: rows of each group; what goes past M is cut off.
        M: Number of rows.
        bm: Rows of a tile.

    Returns:
        tile: (V,), int32: the tile of each visit, never falling, V = ceil(M / bm) + G.
        group: (V,), int32: the group of each visit, 0 … G.
        edges: (G + 2,), int32: group g owns rows edges[g] … edges[g + 1] - 1.
    """
    (G,) = group_sizes.shape
    tiles = pl.cdiv(M, bm)
    ends = jnp.minimum(jnp.cumsum(group_sizes), M)
    edges = jnp.array([0, *ends, M], jnp.int32)
    starts, stops = edges[:-1], edges[1:]
    first = starts // bm
    visits = jnp.where(stops > starts, pl.cdiv(stops, bm) - first, 0)  # of each group
    done = jnp.cumsum(visits)  # visits up to and including each group
    visit = jnp.arange(tiles + G, dtype=jnp.int32)
    group = jnp.minimum(jnp.sum(visit[:, None] >= done, axis=1, dtype=jnp.int32), G)
    tile = first[group] + visit - (done - visits)[group]
    return jnp.minimum(tile, tiles - 1).astype(jnp.int32), group, edges


def grouped_matmul_kernel(
    tile_ref: jax.Ref,
    group_ref: jax.Ref,
    edges_ref: jax.Ref,
    x_ref: jax.Ref,
    w_ref: jax.Ref,
    o_ref: jax.Ref,
    acc_ref: jax.Ref,
) -> None:
    """Multiply a (bm, bk) tile with its group's (bk, bn) weights; store the group's rows only."""
    visit, k = pl.program_id(1), pl.program_id(2)
    group = group_ref[visit]

    @pl.when(k == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    @pl.when(group < edges_ref.shape[0] - 2)  # the rows after the last group stay zero
    def _() -> None:
        acc_ref[...] += jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

    @pl.when(k == pl.num_programs(2) - 1)
    def _() -> None:
        bm = o_ref.shape[0]
        row = tile_ref[visit] * bm + jax.lax.broadcasted_iota(jnp.int32, o_ref.shape, 0)
        mine = (edges_ref[group] <= row) & (row < edges_ref[group + 1])
        # The other rows of the tile belong to other visits: they keep what is there.
        o_ref[...] = jnp.where(mine, acc_ref[...], o_ref[...])


def grouped_matmul(
    x: jax.Array,
    w: jax.Array,
    group_sizes: jax.Array,
    *,
    block: tuple[int, int, int] = (128, 512, 512),
    interpret: Any = False,
) -> jax.Array:
    """Multiply each group of rows of x with its own matrix.

    The rows of x are sorted by group. Which tile and which group a program works on stands in
    tables that the index maps read. float32 operands are multiplied at the default precision of
    ``jnp.dot``, which a chip may take as less than float32.

    Args:
        x: (M, K), float32 or bfloat16.
        w: (G, K, N), the same dtype as x.
        group_sizes: (G,), int32, none negative: group g owns the next group_sizes[g] rows of x. A
            group may be empty. Rows past M are cut off; rows after the last group give zeros.
        block: (bm, bk, bn). A block that is longer than an axis is cut down to it. The last block
            of M and of N may be partial; bk must divide K.
        interpret: Passed on to ``pl.pallas_call``.

    Returns:
        (M, N), float32: row r is x[r] @ w[group of r].

    Raises:
        ValueError: x is no matrix or w no stack of matrices of those dtypes, their K or dtypes
            differ, group_sizes is no int32 vector of length G, a block size is neither the whole
            axis nor a multiple of 8 (bm) or 128 (bk, bn), or bk does not divide K.
    """
    M, K = check_matrix("x", x, ("float32", "bfloat16"))
    check_dtype("w", w, (x.dtype.name,))
    if w.ndim != 3 or w.shape[1] != K or w.size == 0:
        raise refusal(
            "the shape of w",
            w.shape,
            f"the kernel takes (G, {K}, N): a matrix for each group, its rows the columns of x",
            "stack the groups' weights along a new first axis",
        )
    G, _, N = w.shape
    if check_table("group_sizes", group_sizes) != G:
        raise refusal(
            "the shape of group_sizes",
            group_sizes.shape,
            f"w has {G} groups",
            "pass one size for each of them, 0 for an empty one",
        )
    bm, bk, bn = product_blocks(block, M, K, N)
    check_blocks_divide("bk", bk, "K", K)

    tile, group, edges = plan_visits(group_sizes, M, bm)
    return pl.pallas_call(
        grouped_matmul_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=3,
            # All visits of a tile come one after the other, so its output block stays in VMEM.
            grid=(pl.cdiv(N, bn), tile.shape[0], K // bk),
            in_specs=[
                pl.BlockSpec((bm, bk), lambda j, v, k, tile, group, edges: (tile[v], k)),
                pl.BlockSpec(
                    (None, bk, bn),
                    lambda j, v, k, tile, group, edges: (jnp.minimum(group[v], G - 1), k, j),
                ),
            ],
            out_specs=pl.BlockSpec((bm, bn), lambda j, v, k, tile, group, edges: (tile[v], j)),
            scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        ),
        out_shape=jax.ShapeDtypeStruct((M, N), jnp.float32),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary", "arbitrary"),
        ),
        interpret=interpret,
    )(tile, group, edges, x, w)


def grouped_matmul_reference(x: jax.Array, w: jax.Array, group_sizes: jax.Array) -> np.ndarray:
    """Return each group's product in float64, one group after the other."""
    x64, w64 = np.asarray(x, np.float64), np.asarray(w, np.float64)
    result = np.zeros((x64.shape[0], w64.shape[2]))
    start = 0
    for size, matrix in zip(np.asarray(group_sizes), w64, strict=True):
        result[start : start + size] = x64[start : start + size] @ matrix
        start += size
    return result


def cases() -> tuple[Case, ...]:
    """Return inputs: groups that fill tiles, straddle them, are empty, and leave rows over."""
    rng = np.random.default_rng(0)

    def inputs(
        sizes: list[int], M: int, K: int, N: int, dtype: Any = np.float32, offset: float = 0.0
    ) -> tuple[Any, ...]:
        x = offset + rng.standard_normal((M, K))
        w = rng.standard_normal((len(sizes), K, N))
        return x.astype(dtype), w.astype(dtype), np.array(sizes, np.int32)

    infinite = inputs([5, 11], 16, 128, 128)
    infinite[0][0, 0] = np.inf
    # Sums of K products of size about 1 end near sqrt(K), with errors near K * 2**-24. With an
    # offset of 1e4 the bound is K * 2**-24 of the sum of the sizes, K * 1e4: 10 for K = 128.
    rtol, atol = 1e-5, 1e-4
    return (
        Case("groups of whole tiles", inputs([128, 256], 384, 128, 128), rtol, atol),
        Case("groups that share tiles", inputs([60, 100, 40], 200, 1024, 128), rtol, atol),
        Case("last block of N partial", inputs([5], 8, 128, 640), rtol, atol),
        Case("empty groups", inputs([0, 130, 0, 10, 0], 140, 128, 128), rtol, atol),
        Case("a tile of four groups", inputs([3, 1, 7, 2], 13, 128, 128), rtol, atol),
        Case("rows left over", inputs([70], 270, 128, 128), rtol, atol, note="they are zero"),
        Case("no rows in any group", inputs([0, 0], 40, 128, 128), rtol, atol, note="all zero"),
        Case("one element", inputs([1], 1, 1, 1), rtol, atol),
        Case("one row", inputs([0, 1], 1, 128, 128), rtol, atol),
        Case("large offset", inputs([9, 7], 16, 128, 128, offset=1e4), rtol, 10.0),
        Case("infinity stays in its row", infinite, rtol, atol),
        Case("bfloat16", inputs([60, 80], 140, 128, 256, jnp.bfloat16), rtol, atol),
    )
