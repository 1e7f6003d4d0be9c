"""Checks on the arguments of a kernel call, each with one error that says what to do.

Pallas would find most of these mistakes too, but on some later rung and in the words of that rung.
Shapes, dtypes and block sizes are known when the call is traced, so they are checked there.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SUBLANES = 8
"""Rows of one vector register of a TPU: the second-last axis of a block comes in eights."""

LANES = 128
"""Columns of one vector register of a TPU: the last axis of a block comes in 128s."""


def refusal(argument: str, value: object, rule: str, remedy: str) -> ValueError:
    """Put the four parts of an argument error into one sentence.

    Args:
        argument: The argument, or the part of it, that is at fault.
        value: What it was.
        rule: What it has to be.
        remedy: What the caller can do about it.

    Returns:
        The error, for the caller to raise.
    """
    return ValueError(f"{argument} is {value}, but {rule}: {remedy}.")


def check_matrix(argument: str, array: jax.Array, dtypes: Sequence[str]) -> tuple[int, int]:
    """Check that an array is a matrix with at least one element, of one of the dtypes.

    Args:
        argument: Name of the argument, for the error.
        array: The array.
        dtypes: Names of the dtypes that the kernel is written for.

    Returns:
        The number of rows and the number of columns.

    Raises:
        ValueError: The array has another rank, no element, or another dtype.
    """
    check_dtype(argument, array, dtypes)
    if array.ndim != 2:
        raise refusal(
            f"the shape of {argument}", array.shape, "the kernel takes matrices", "reshape it"
        )
    if array.size == 0:
        raise refusal(
            f"the shape of {argument}",
            array.shape,
            "a grid over nothing runs no program",
            "pass at least one row and one column",
        )
    rows, columns = array.shape
    return rows, columns


def check_dtype(argument: str, array: jax.Array, dtypes: Sequence[str]) -> None:
    """Check that an array has one of the dtypes that a kernel is written for.

    Args:
        argument: Name of the argument, for the error.
        array: The array.
        dtypes: Names of the dtypes that the kernel is written for.

    Raises:
        ValueError: The array has another dtype.
    """
    if array.dtype.name not in dtypes:
        raise refusal(
            f"the dtype of {argument}",
            array.dtype.name,
            f"the kernel is written for {' and '.join(dtypes)}",
            f"convert it first, for instance {argument}.astype(jnp.{dtypes[0]})",
        )


def check_alike(first: str, x: jax.Array, second: str, y: jax.Array) -> None:
    """Check that two arrays have the same shape and the same dtype.

    Args:
        first: Name of the first argument.
        x: The first array.
        second: Name of the second argument.
        y: The second array.

    Raises:
        ValueError: The shapes differ, or the dtypes do.
    """
    if x.shape != y.shape:
        raise refusal(
            f"the shape of {second}",
            y.shape,
            f"it must be that of {first}, {x.shape}",
            f"a Ref does not broadcast by itself, so use jnp.broadcast_to({second}, {first}.shape)",
        )
    if x.dtype != y.dtype:
        raise refusal(
            f"the dtype of {second}",
            y.dtype.name,
            f"it must be that of {first}, {x.dtype.name}",
            f"convert one of them, for instance {second}.astype({first}.dtype)",
        )


def check_inner_axes(x: jax.Array, y: jax.Array) -> None:
    """Check that ``x @ y`` is defined: the columns of x are the rows of y, and the dtypes agree.

    Args:
        x: The left operand, (M, K).
        y: The right operand, (K, N).

    Raises:
        ValueError: The two lengths of K differ, or the dtypes do.
    """
    if x.shape[1] != y.shape[0]:
        raise refusal(
            "the shape of y",
            y.shape,
            f"x @ y needs the {x.shape[1]} columns of x, {x.shape}, to meet as many rows of y",
            "transpose or slice one of them",
        )
    if x.dtype != y.dtype:
        raise refusal(
            "the dtype of y",
            y.dtype.name,
            f"it must be that of x, {x.dtype.name}",
            "convert one of them, for instance y.astype(x.dtype)",
        )


def check_product(x: jax.Array, y: jax.Array) -> tuple[int, int, int]:
    """Check that two arrays are matrices of float32 or bfloat16 whose product is defined.

    Args:
        x: The left operand, (M, K).
        y: The right operand, (K, N).

    Returns:
        M, K and N.

    Raises:
        ValueError: One of them is no such matrix, or they do not fit each other.
    """
    M, K = check_matrix("x", x, ("float32", "bfloat16"))
    _, N = check_matrix("y", y, ("float32", "bfloat16"))
    check_inner_axes(x, y)
    return M, K, N


def block_size(argument: str, size: int, axis: int, multiple: int) -> int:
    """Check one block size against the chip's rule, and cut it down to a shorter axis.

    A TPU moves blocks whose last axis is a multiple of 128 and whose second-last axis is a
    multiple of 8, or which take the whole axis, whatever its length.

    Args:
        argument: Name of the block size, for the error.
        size: The block size that was asked for, a Python integer.
        axis: Length of the axis that is cut into blocks, at least 1.
        multiple: 8, 128, or 1 where the chip has no rule for the axis.

    Returns:
        The block size to use: ``size``, or ``axis`` where that is smaller.

    Raises:
        ValueError: The size is not a static positive integer, or breaks the chip's rule.
    """
    if not isinstance(size, int | np.integer) or isinstance(size, bool):
        raise refusal(
            argument,
            f"a {type(size).__name__}",
            "a block size is fixed before the kernel is traced",
            "pass a Python integer, and under jax.jit name the argument in static_argnames",
        )
    if size < 1:
        raise refusal(argument, size, "a block has at least one element", "pass 1 or more")
    if size >= axis:
        return axis
    if size % multiple:
        above = -(-size // multiple) * multiple
        raise refusal(
            argument,
            size,
            f"a block takes a multiple of {multiple} of this axis or all {axis} of it",
            f"pass {min(above, axis)}",
        )
    return int(size)


def check_blocks_divide(
    argument: str,
    size: int,
    name: str,
    axis: int,
    *,
    multiple: int = LANES,
    because: str = "the kernel sums whole blocks",
) -> None:
    """Check that blocks of one size fill an axis exactly.

    What lies past the end of an array in its last, partial block is not zero. A kernel that
    neither masks nor discards it needs blocks that fill the axis; so does one that copies blocks
    itself, since such a copy has one size, fixed when the kernel is traced.

    Args:
        argument: Name of the block size, for the error.
        size: The block size, no longer than the axis.
        name: Name of the axis, for the error.
        axis: Length of the axis.
        multiple: What block sizes of this axis come in, for the error's proposal.
        because: Why the kernel cannot take a partial block, for the error.

    Raises:
        ValueError: A last block would be partial.
    """
    if axis % size:
        fitting = [d for d in range(multiple, size, multiple) if axis % d == 0]
        raise refusal(
            argument,
            size,
            f"{because} and {size} does not divide {name} = {axis}",
            f"pass {max(fitting, default=axis)}, or pad that axis with zeros",
        )


def check_block(argument: str, block: Sequence[int], axes: Sequence[str]) -> None:
    """Check that a block names one size for each axis.

    Args:
        argument: Name of the argument, for the error.
        block: The block sizes.
        axes: Names of the sizes that the kernel takes, in order.

    Raises:
        ValueError: There are more or fewer sizes, or the block is no sequence.
    """
    if not isinstance(block, tuple | list) or len(block) != len(axes):
        raise refusal(
            argument, block, f"the kernel takes ({', '.join(axes)})", "pass a tuple of that length"
        )


def product_blocks(block: Sequence[int], M: int, K: int, N: int) -> tuple[int, int, int]:
    """Check the block sizes of a tiled matrix product, and cut them down to shorter axes.

    Args:
        block: (bm, bk, bn).
        M: Rows of x.
        K: Columns of x, and rows of y.
        N: Columns of y.

    Returns:
        bm, bk and bn to use.

    Raises:
        ValueError: There are more or fewer sizes, or one is neither the whole axis nor a multiple
            of 8 (bm) or 128 (bk, bn).
    """
    check_block("block", block, ("bm", "bk", "bn"))
    bm = block_size("bm", block[0], M, SUBLANES)
    bk = block_size("bk", block[1], K, LANES)
    bn = block_size("bn", block[2], N, LANES)
    return bm, bk, bn


def float_dtypes(interpret: Any) -> tuple[str, ...]:
    """Return the names of the floating dtypes that a kernel takes.

    Args:
        interpret: What the call passes on to ``pl.pallas_call``. No TPU computes in float64; an
            interpreter does, and a gradient is checked best there.
    """
    return ("float32", "bfloat16", "float64") if interpret else ("float32", "bfloat16")


def at_least_float32(x: jax.Array) -> jax.Array:
    """Convert a block that is narrower than float32 to float32, and leave a wider one alone."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def check_attention(
    q: jax.Array, k: jax.Array, v: jax.Array, causal: bool
) -> tuple[int, int, int, int]:
    """Check that queries, keys and values fit each other, with at least one element each.

    Args:
        q: (heads, Tq, d), or (Tq, d) for one head; float32 or bfloat16.
        k: (heads, Tk, d) or (Tk, d), the same dtype.
        v: As k.
        causal: Query i sees the keys up to i.

    Returns:
        heads, Tq, Tk and d; one head for matrices.

    Raises:
        ValueError: A shape or dtype does not fit, a size is zero, or attention is causal and
            Tq is not Tk.
    """
    check_dtype("q", q, ("float32", "bfloat16"))
    if q.ndim not in (2, 3):
        raise refusal(
            "the shape of q", q.shape, "it must be (heads, Tq, d) or (Tq, d)", "reshape it"
        )
    if k.ndim != q.ndim or k.shape[-1] != q.shape[-1] or k.shape[:-2] != q.shape[:-2]:
        raise refusal(
            "the shape of k",
            k.shape,
            f"it must be that of q, {q.shape}, but for the number of keys",
            "give each head of q its keys, of the same length d",
        )
    check_alike("k", k, "v", v)
    if k.dtype != q.dtype:
        raise refusal(
            "the dtype of k",
            k.dtype.name,
            f"it must be that of q, {q.dtype.name}",
            "convert one of them, for instance k.astype(q.dtype)",
        )
    if q.size == 0 or k.size == 0:
        raise refusal(
            "the shape of q" if q.size == 0 else "the shape of k",
            q.shape if q.size == 0 else k.shape,
            "a softmax over nothing has no value, and a grid over nothing runs no program",
            "pass at least one query and one key",
        )
    *heads, Tq, d = q.shape
    Tk = k.shape[-2]
    if causal and Tq != Tk:
        raise refusal(
            "the shape of k",
            k.shape,
            f"causal attention compares places in one sequence, and q has {Tq}",
            "pass as many keys as queries",
        )
    return heads[0] if heads else 1, Tq, Tk, d


def check_table(argument: str, table: jax.Array) -> int:
    """Check that an array is a table for scalar memory: a vector of int32 with an element.

    What stands in the table is known only when the program runs, so it is not looked at.

    Args:
        argument: Name of the argument, for the error.
        table: The array.

    Returns:
        The number of entries.

    Raises:
        ValueError: The array has another dtype or rank, or no element.
    """
    check_dtype(argument, table, ("int32",))
    if table.ndim != 1 or table.size == 0:
        raise refusal(
            f"the shape of {argument}",
            table.shape,
            "the kernel takes a vector with at least one entry",
            "reshape it to one axis, and call no kernel where there is nothing to do",
        )
    return int(table.shape[0])
