"""Exercise: how many bytes the blocks of a tiled matmul bring in and take out."""

import itertools
from collections.abc import Callable, Iterator

Count = Callable[[int, int, int, int, int, int, int], int]

SIZES = (
    # M, K, N, bm, bk, bn, bytes of an element
    (512, 512, 512, 512, 512, 512, 4),
    (1024, 512, 768, 256, 128, 256, 4),
    (1024, 512, 768, 256, 512, 256, 4),
    (1024, 512, 256, 256, 128, 256, 2),
    (256, 512, 768, 256, 512, 128, 2),
)


def starter(M: int, K: int, N: int, bm: int, bk: int, bn: int, width: int) -> int:
    """The floor: every element of x, y and the product once."""
    return (M * K + K * N + M * N) * width


def solution(M: int, K: int, N: int, bm: int, bk: int, bn: int, width: int) -> int:
    """Count a fetch wherever the block index differs from that of the program before."""
    ni, nj, nk = M // bm, N // bn, K // bk
    x_fetches = ni * (nj * nk if nk > 1 else 1)  # block (i, k): the same for every j if K is whole
    y_fetches = ni * nj * nk if nj * nk > 1 else 1  # block (k, j)
    return (x_fetches * bm * bk + y_fetches * bk * bn + M * N) * width


def every_step_fetches(M: int, K: int, N: int, bm: int, bk: int, bn: int, width: int) -> int:
    """Wrong: a block that stays is not fetched again."""
    steps = (M // bm) * (N // bn) * (K // bk)
    return (steps * (bm * bk + bk * bn) + M * N) * width


def product_every_step(M: int, K: int, N: int, bm: int, bk: int, bn: int, width: int) -> int:
    """Wrong: the output block is written once, after its last step."""
    right = solution(M, K, N, bm, bk, bn, width)
    return right + (K // bk - 1) * M * N * width


def elements(M: int, K: int, N: int, bm: int, bk: int, bn: int, width: int) -> int:
    """Wrong: counts elements."""
    return solution(M, K, N, bm, bk, bn, 1)


WRONG: tuple[tuple[Count, str], ...] = (
    (every_step_fetches, "Hint: a block whose index stays is not fetched again"),
    (product_every_step, "Hint: a block of the product leaves VMEM once"),
    (elements, "Hint: these are elements"),
)


def _walk(M: int, K: int, N: int, bm: int, bk: int, bn: int) -> Iterator[tuple[int, int, int]]:
    return itertools.product(range(M // bm), range(N // bn), range(K // bk))


def _changes(indices: Iterator[tuple[int, int]]) -> int:
    return sum(1 for _ in itertools.groupby(indices))


def _by_walking(M: int, K: int, N: int, bm: int, bk: int, bn: int, width: int) -> int:
    sizes = (M, K, N, bm, bk, bn)
    x = _changes((i, k) for i, _, k in _walk(*sizes)) * bm * bk
    y = _changes((k, j) for _, j, k in _walk(*sizes)) * bk * bn
    o = _changes((i, j) for i, j, _ in _walk(*sizes)) * bm * bn
    return (x + y + o) * width


def check(count: Count) -> None:
    """Compare a formula with a walk over the grid that counts every change of a block index.

    Args:
        count: Called with M, K, N, bm, bk, bn and the bytes of an element; returns the bytes that
            move between HBM and VMEM when the grid is (M // bm, N // bn, K // bk), each block
            divides its axis, and a block is moved only when its index changes.

    Raises:
        AssertionError: The formula is off for some sizes; says for which, and a hint.
    """
    for sizes in SIZES:
        M, K, N, bm, bk, bn, width = sizes
        want, got = _by_walking(*sizes), count(*sizes)
        if got == want:
            continue
        hints = {
            starter(*sizes): "this is the floor; blocks are fetched again for other blocks of the "
            "product.",
            every_step_fetches(*sizes): "a block whose index stays is not fetched again: which "
            "operand does not look at j, and when does k not change?",
            product_every_step(*sizes): "a block of the product leaves VMEM once, after its last "
            "step.",
            want // width: "these are elements; the question is about bytes.",
        }
        told = f"\nHint: {hints[got]}" if got in hints else ""
        raise AssertionError(
            f"M, K, N = {M}, {K}, {N} in blocks of bm, bk, bn = {bm}, {bk}, {bn} with {width} "
            f"bytes an element: {got} bytes, and a walk over the grid counts {want}{told}"
        )
