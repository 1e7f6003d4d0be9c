"""Checks on the arguments of a kernel call, each with one error that says what to do.

Pallas would find most of these mistakes too, but on some later rung and in the words of that rung.
Shapes, dtypes and block sizes are known when the call is traced, so they are checked there.
"""

from collections.abc import Sequence

import jax
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


def check_blocks_divide(argument: str, size: int, name: str, axis: int) -> None:
    """Check that blocks of one size fill an axis exactly.

    What lies past the end of an array in its last, partial block is not zero. A kernel that
    neither masks nor discards it needs blocks that fill the axis.

    Args:
        argument: Name of the block size, for the error.
        size: The block size.
        name: Name of the axis, for the error.
        axis: Length of the axis.

    Raises:
        ValueError: A last block would be partial.
    """
    if axis % size:
        fitting = [d for d in range(LANES, axis, LANES) if axis % d == 0 and d <= size]
        raise refusal(
            argument,
            size,
            f"the kernel sums whole blocks and {size} does not divide {name} = {axis}",
            f"pass {max(fitting, default=axis)}, or pad that axis with zeros",
        )


def check_whole_blocks(argument: str, size: int, name: str, axis: int) -> None:
    """Check that blocks of one size fill an axis exactly, for a kernel that copies them itself.

    A copy that a kernel starts by hand has one size, fixed when the kernel is traced.

    Args:
        argument: Name of the block size, for the error.
        size: The block size.
        name: Name of the axis, for the error.
        axis: Length of the axis.

    Raises:
        ValueError: A last block would be partial.
    """
    if axis % size:
        fitting = [d for d in range(SUBLANES, size, SUBLANES) if axis % d == 0]
        raise refusal(
            argument,
            size,
            f"the kernel copies whole blocks and {size} does not divide {name} = {axis}",
            f"pass {max(fitting, default=axis)}, or pad that axis",
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
