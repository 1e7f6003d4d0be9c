"""Exercise: count the copies of key blocks that jax's causal flash attention asks for."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu import flash_attention as installed

from pallas_rungs.figures.calls import read_call

Copies = Callable[[int, int, int, int], int]

CASES = (
    (1024, 1024, 256, 256),
    (1024, 1024, 512, 256),
    (1024, 1024, 128, 512),
    (2048, 2048, 256, 512),
    (512, 1024, 128, 128),
    (1024, 512, 256, 128),
)
"""Queries, keys, `block_q` and `block_k_major`."""

KEYS = 1
"""Place of the keys among the operands of the forward launch."""


def starter(queries: int, keys: int, block_q: int, block_k: int) -> int:
    """Where to begin: one copy for each program."""
    return (queries // block_q) * (keys // block_k)


def solution(queries: int, keys: int, block_q: int, block_k: int) -> int:
    """Write down the block of each program, block 0 where it is skipped, and count the changes."""
    held = [
        j if (i + 1) * block_q - 1 > j * block_k else 0
        for i in range(queries // block_q)
        for j in range(keys // block_k)
    ]
    return 1 + sum(one != other for one, other in itertools.pairwise(held))


def those_that_compute(queries: int, keys: int, block_q: int, block_k: int) -> int:
    """Wrong: two programs in a row may compute with one block."""
    programs = ((i, j) for i in range(queries // block_q) for j in range(keys // block_k))
    return sum((i + 1) * block_q - 1 > j * block_k for i, j in programs)


def waits_at_the_diagonal(queries: int, keys: int, block_q: int, block_k: int) -> int:
    """Wrong: a skipped program of this file does not keep the last block, it asks for block 0."""
    held = [
        min(j, ((i + 1) * block_q - 1) // block_k)
        for i in range(queries // block_q)
        for j in range(keys // block_k)
    ]
    return 1 + sum(one != other for one, other in itertools.pairwise(held))


def compares_numbers_of_blocks(queries: int, keys: int, block_q: int, block_k: int) -> int:
    """Wrong: compares i with j, as if both kinds of block were equally long."""
    held = [j if i >= j else 0 for i in range(queries // block_q) for j in range(keys // block_k)]
    return 1 + sum(one != other for one, other in itertools.pairwise(held))


WRONG: tuple[tuple[Copies, str], ...] = (
    (those_that_compute, "held already"),
    (waits_at_the_diagonal, "asks for block 0"),
    (compares_numbers_of_blocks, "places"),
)

_HINTS = {
    "equal": "a block that is held already is not copied again; begin with the first row",
    "unequal": "compare places, not numbers of blocks: the last query of block i with the first "
    "key of block j",
    "more keys": "a skipped program asks for block 0, also in the last row",
}


def check(copies: Copies) -> None:
    """Compare with the file's own index map, run for each program of six calls, for one head.

    Args:
        copies: called with the number of queries and of keys, the queries of a block and the keys
            of a major block, all of them dividing; returns how often a block of keys is copied.

    Raises:
        AssertionError: the number is another; holds the call, what the index map gives, and a hint.
    """
    for case in CASES:
        queries, keys, block_q, block_k = case
        got = copies(*case)
        held = blocks_asked_for(*case)
        wanted = 1 + sum(one != other for one, other in itertools.pairwise(held))
        if got != wanted:
            kind = "more keys" if keys > queries else "equal" if block_q == block_k else "unequal"
            row = held[: keys // block_k]
            raise AssertionError(
                f"{queries} queries in blocks of {block_q}, {keys} keys in blocks of {block_k}: "
                f"{got} copies, and the file's index map asks for {wanted}.\n"
                f"The first row of programs holds blocks {row}\nHint: {_HINTS[kind]}"
            )


@functools.cache
def blocks_asked_for(queries: int, keys: int, block_q: int, block_k: int) -> tuple[int, ...]:
    """Return the block of keys that each program of the forward launch asks for, in order.

    Args:
        queries: their number, a multiple of `block_q`.
        keys: their number, a multiple of `block_k`.
        block_q: queries of a block.
        block_k: keys of a major block, and of a minor one.
    """
    sizes = installed.BlockSizes(block_q, block_k, block_k, block_b=1)

    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        made: jax.Array = installed.flash_attention(q, k, v, causal=True, block_sizes=sizes)
        return made

    q, k = (jax.ShapeDtypeStruct((1, 1, n, 128), jnp.float32) for n in (queries, keys))
    operand = read_call(attention, q, k, k).operands[KEYS]
    return tuple(int(start) // block_k for start in operand.starts[:, 2])
