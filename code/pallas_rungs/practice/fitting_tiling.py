"""Exercise: does a tiling of the sm90 attention kernel fit, into shared memory and its barriers?"""

from collections.abc import Callable

Judge = Callable[[int, int, int, bool, int, bool], bool]

LARGEST = 227 * 1024
"""Bytes of shared memory that a block of an H100 can ask for."""

NAMED = 16
"""Named barriers of a block."""


def starter(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> bool:
    """Where to begin: a block of q, and each stage's k and v, in bfloat16."""
    return 2 * head_dim * (block_q + 2 * stages * block_kv) <= LARGEST


def shared_bytes(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> int:
    """Return the bytes of shared memory: bfloat16, a mask of int8, memory barriers of 8 bytes."""
    q, kv = 2 * 2 * block_q * head_dim, 2 * stages * block_kv * head_dim
    tiles = min(2, (block_q // 64) * (head_dim // 64))
    out = 2 * 2 * tiles * 64 * 64
    used = (q + kv + out if persistent else max(q + kv, out)) + kv
    used += 8 * (1 + 2 * stages)
    if masked:
        used += stages * 2 * block_q * block_kv + 8 * stages
    return used


def named_barriers(stages: int, masked: bool) -> int:
    """Return the number of the first named barrier that is free: four are Mosaic GPU's."""
    return 4 + 2 + 1 + (3 if masked else 2) * stages


def solution(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> bool:
    """Both must fit, the bytes and the named barriers."""
    used = shared_bytes(block_q, block_kv, stages, persistent, head_dim, masked)
    return used <= LARGEST and named_barriers(stages, masked) <= NAMED


def one_warpgroup(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> bool:
    """Wrong: the queries of one warpgroup."""
    used = shared_bytes(block_q // 2, block_kv, stages, persistent, head_dim, masked)
    return used <= LARGEST and named_barriers(stages, masked) <= NAMED


def always_a_union(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> bool:
    """Wrong: the output lies over q and k in a persistent kernel too."""
    return solution(block_q, block_kv, stages, False, head_dim, masked)


def bytes_only(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> bool:
    """Wrong: forgets that named barriers run out."""
    return shared_bytes(block_q, block_kv, stages, persistent, head_dim, masked) <= LARGEST


def mask_for_free(
    block_q: int, block_kv: int, stages: int, persistent: bool, head_dim: int, masked: bool
) -> bool:
    """Wrong: the mask takes barriers and no bytes."""
    used = shared_bytes(block_q, block_kv, stages, persistent, head_dim, False)
    return used <= LARGEST and named_barriers(stages, masked) <= NAMED


WRONG: tuple[tuple[Judge, str], ...] = (
    (one_warpgroup, "two warpgroups"),
    (always_a_union, "persistent"),
    (bytes_only, "named barriers"),
    (mask_for_free, "mask is staged"),
)

TILINGS: tuple[tuple[tuple[int, int, int, bool, int, bool], bool, str], ...] = (
    ((64, 128, 2, False, 128, False), True, "two stages of 64 by 128 take 160 KiB"),
    ((64, 128, 3, False, 128, False), True, "227 KiB are 232448 bytes, and this takes 229432"),
    ((64, 64, 4, False, 64, False), True, "four stages end with named barrier 14"),
    (
        (128, 128, 3, False, 128, False),
        False,
        "`block_q` is for one warpgroup, and two warpgroups compute",
    ),
    (
        (64, 128, 3, True, 128, False),
        False,
        "a persistent kernel keeps q and k apart from the output's tiles",
    ),
    (
        (64, 128, 3, False, 128, True),
        False,
        "the mask is staged too: rows of two warpgroups by `block_kv`, a byte each",
    ),
    (
        (64, 64, 4, False, 64, True),
        False,
        "a mask takes one more of the 16 named barriers for each stage",
    ),
    ((64, 64, 5, False, 64, False), False, "five stages take 7 + 2 · 5 of 16 named barriers"),
)
"""block_q, block_kv, stages, persistent, head_dim, masked; whether it fits, and why."""


def check(fits: Judge) -> None:
    """Ask about eight tilings.

    Args:
        fits: takes block_q, block_kv, the stages, whether the kernel is persistent, the head
            dimension (a multiple of 64) and whether there is a mask of (T, t); all else is
            bfloat16, without bias and residuals. Returns whether the kernel can be lowered.

    Raises:
        AssertionError: an answer is wrong; holds the tiling and a hint.
    """
    for tiling, expected, why in TILINGS:
        got = fits(*tiling)
        if got is not expected:
            block_q, block_kv, stages, persistent, head_dim, masked = tiling
            raise AssertionError(
                f"{block_q} × {block_kv} in {stages} stages, head dimension {head_dim}"
                f"{', persistent' if persistent else ''}{', masked' if masked else ''}: "
                f"{'fits' if expected else 'does not fit'}, and you say {got}.\nHint: {why}"
            )
