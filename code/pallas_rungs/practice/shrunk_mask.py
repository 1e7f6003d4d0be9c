"""Exercise: the classes of a mask's blocks, and the narrowest grid for those that are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask_info as mask_info

Array = np.ndarray[Any, np.dtype[Any]]
BlockMask = Callable[[Array, int, int], Array]

BLOCKS = ((128, 128), (128, 256), (256, 128))


def starter(mask: Array, bq: int, bk: int) -> Array:
    """Where to begin: a block with something in it is 2, and every block has its program."""
    blocks = mask.reshape(mask.shape[0] // bq, bq, mask.shape[1] // bk, bk)
    return 2 * blocks.any(axis=(1, 3))


def solution(mask: Array, bq: int, bk: int) -> Array:
    """Classes from any and all; then each row's blocks that are not empty, to the left."""
    blocks = mask.reshape(mask.shape[0] // bq, bq, mask.shape[1] // bk, bk)
    classes = blocks.any(axis=(1, 3)).astype(int) + blocks.all(axis=(1, 3))
    width = (classes > 0).sum(axis=1).max()
    shrunk = np.zeros((len(classes), width), int)
    for row, found in zip(shrunk, classes, strict=True):
        kept = found[found > 0]
        row[: len(kept)] = kept
    return shrunk


def not_shrunk(mask: Array, bq: int, bk: int) -> Array:
    """Wrong: the right classes, and a program for each block."""
    blocks = mask.reshape(mask.shape[0] // bq, bq, mask.shape[1] // bk, bk)
    return blocks.any(axis=(1, 3)).astype(int) + blocks.all(axis=(1, 3))


def whole_columns(mask: Array, bq: int, bk: int) -> Array:
    """Wrong: leaves out the columns that are empty in every row, of which a band has none."""
    classes = not_shrunk(mask, bq, bk)
    return classes[:, classes.any(axis=0)]


def to_the_right(mask: Array, bq: int, bk: int) -> Array:
    """Wrong here: padding comes first, as in the table for dK and dV."""
    shrunk = solution(mask, bq, bk)
    return np.stack([np.concatenate([row[row == 0], row[row > 0]]) for row in shrunk])


def sizes_swapped(mask: Array, bq: int, bk: int) -> Array:
    """Wrong: blocks of keys along the queries; nobody notices while both are equally long."""
    return solution(mask, bk, bq)


WRONG: tuple[tuple[BlockMask, str], ...] = (
    (not_shrunk, "as wide as the fullest row"),
    (whole_columns, "as wide as the fullest row"),
    (to_the_right, "stand first in their row"),
    (sizes_swapped, "rows are blocks of queries"),
)


def drawn_masks(length: int = 1024) -> dict[str, Array]:
    """Masks of (length, length) booleans, by name: five as models have, and one of strewn blocks.

    Args:
        length: queries, and keys; a multiple of 256.
    """
    shape = (length, length)
    causal = masks.make_causal_mask(shape)
    scattered = np.random.default_rng(8).random((length // 128, length // 128)) < 0.4
    np.fill_diagonal(scattered, True)
    return {
        "full": np.ones(shape, bool),
        "causal": causal,
        "local": masks.make_local_attention_mask(shape, (256, 0)),
        "chunked": masks.make_chunk_attention_mask(shape, 256),
        "prefix": causal | (np.arange(length) < 200),
        "scattered": causal & np.kron(scattered, np.ones((128, 128), bool)).astype(bool),
    }


def installed(mask: Array, bq: int, bk: int) -> Array:
    """Return what the installed jax makes of a mask: `block_mask` of its one head, shrunk.

    Args:
        mask: (queries, keys), bool; bq divides the first, bk the second.
        bq: queries of a block.
        bk: keys of a block.
    """
    heads = masks.MultiHeadMask([masks.NumpyMask(mask)])
    info, _ = mask_info.process_mask(heads, (bq, bk))
    found: Array = np.asarray(info.block_mask)[0]
    return found


def check(block_mask: BlockMask) -> None:
    """Compare with the installed jax for six masks and three block shapes.

    Args:
        block_mask: called with a mask, (queries, keys) of bool, and the lengths of a block of
            queries and of a block of keys; returns integers, a row for each block of queries.

    Raises:
        AssertionError: it gives another shape or other classes; holds the mask and a hint.
    """
    for name, mask in drawn_masks().items():
        for bq, bk in BLOCKS:
            want, got = installed(mask, bq, bk), np.asarray(block_mask(mask.copy(), bq, bk))
            said = f"{name} mask, blocks of {bq} queries and {bk} keys: "
            if got.shape != want.shape:
                hint = (
                    "the grid is as wide as the fullest row"
                    if got.shape[:1] == want.shape[:1]
                    else "rows are blocks of queries, columns programs"
                )
                raise AssertionError(f"{said}{got.shape}, not {want.shape}\nHint: {hint}")
            if not np.array_equal(got, want):
                i, j = np.argwhere(got != want)[0]
                hint = (
                    "blocks that are needed stand first in their row, zeros after them"
                    if np.array_equal(np.sort(got, axis=1), np.sort(want, axis=1))
                    else "0 is empty, 1 is partly seen, 2 is seen whole"
                )
                raise AssertionError(
                    f"{said}program ({i}, {j}) has {got[i, j]}, not {want[i, j]}\nHint: {hint}"
                )
