"""What to do about an error: a table from patterns of messages to advice."""

from __future__ import annotations

import re

SLOW = (
    "Interpreters take every grid step in Python: try smaller shapes with the same blocks and a "
    "few steps along each axis, or raise the time limit."
)
"""What to do when an interpreter runs out of time while still busy."""

_TABLE: tuple[tuple[str, str], ...] = (
    (
        r"captures constants|captures non-scalar array constants",
        "A kernel may close over Python scalars, not arrays: pass the array as an operand with its "
        "own BlockSpec.",
    ),
    (
        r"TracerBoolConversionError|Attempted boolean conversion of traced array",
        "The body runs once, under tracing: branch with pl.when, jnp.where or lax.cond instead of "
        "a Python if.",
    ),
    (
        r"ConcretizationTypeError|TracerArrayConversionError|TracerIntegerConversionError",
        "A value was needed as a Python number while tracing: make it a static argument, or "
        "compute with jax.numpy.",
    ),
    (
        r"Invalid dtype for `(swap|get|addupdate)`",
        "Ref stores do not cast: write value.astype(ref.dtype).",
    ),
    (
        r"Invalid shape for `(swap|addupdate)`",
        "The value must have the shape of the slice that it is stored to: broadcast or reshape it.",
    ),
    (
        r"index_map.*(must|takes|arguments|positional)|takes \d+ positional arguments? but",
        "An index map takes one argument for each grid axis, and one more for each scalar-prefetch "
        "operand.",
    ),
    (
        r"last two dimensions of your block shape are divisible by 8 and 128",
        "Make the last two block dimensions multiples of 8 and 128, or as large as the array's.",
    ),
    (
        r"rank-?1|1D|1-D .* (multiple|power)|rank 1 block",
        "A 1-D block must be the whole array, or a multiple of 1024, or a power of two of at least "
        "128·(32 / bits) elements; a 2-D layout is usually better.",
    ),
    (
        r"blocks of rank >= 1|rank-0|0-dimensional",
        "Return a (1, 1) array in SMEM instead of a scalar.",
    ),
    (
        r"Cannot store scalars to VMEM",
        "VMEM is a vector memory: put the scalar output in SMEM, or store a vector.",
    ),
    (
        r"Can only load scalars from SMEM|Loading non-scalars from SMEM|SMEM.*scalar",
        "SMEM is read and written one scalar at a time: keep arrays in VMEM.",
    ),
    (
        r"Unimplemented primitive in Pallas TPU lowering for \w+: cumsum",
        "Cumulative sums have no TPU rule: multiply by a triangular matrix of ones, or loop.",
    ),
    (
        r"Unimplemented primitive in Pallas TPU lowering for \w+: (dynamic_slice|gather)",
        "Index the Ref (ref[i]), not a value loaded from it: values live in registers and have no "
        "address.",
    ),
    (
        r"Unimplemented primitive in Pallas TPU lowering for \w+: scatter",
        "x.at[i].set(v) on a value is a scatter: store through the Ref instead, ref[i] = v.",
    ),
    (
        r"Unimplemented primitive in Pallas TPU lowering",
        "The TPU lowering has no rule for this operation: express it with others, or do it outside "
        "the kernel.",
    ),
    (
        r"[Ss]can.*(num_extensive|xs|stacked)|num_extensive",
        "Loops in a TPU kernel have carries only: write the stacked inputs and outputs as Ref "
        "reads and writes in a fori_loop.",
    ),
    (
        r"Cannot do int indexing on TPU|Advanced indexers are not supported|int.*array.*index",
        "A TPU Ref takes scalars and slices as indices: loop over the index array, kept in SMEM.",
    ),
    (
        r"must be integers|index.*(float|dtype)|expected.*(index|integer) type",
        "Ref indices are integers: keep the float copy for arithmetic only.",
    ),
    (
        r"UnprovenMemoryAccessAlignment|cannot statically prove that index",
        "Prove the alignment with pl.multiple_of (it must be true), or widen the block to 32 bits: "
        "packed types are addressed by whole tiles.",
    ),
    (
        r"Revisited block",
        "An output block may be revisited only on the next grid step: make the reduction the "
        "innermost grid axis.",
    ),
    (
        r"Out-of-bounds block index",
        "An index map returns block indices, which Pallas multiplies by the block size: check the "
        "grid against the number of blocks.",
    ),
    (
        r"[Oo]ut-of-bounds (read|write)|out of bounds",
        "The slice reaches past the end of the Ref: check the start and the size, also of the last "
        "step.",
    ),
    (
        r"RACE DETECTED",
        "Two accesses are not ordered: wait for the copy before you touch its buffers, and keep an "
        "axis that carries an accumulator out of the parallel ones.",
    ),
    (
        r"ScopedVmemOom|Scoped allocation with size|in memory space vmem|space=vmem",
        "Make the blocks smaller, or split the reduction axis: each blocked operand takes its "
        "block twice (double buffering). pltpu.CompilerParams(vmem_limit_bytes=…) raises the "
        "limit.",
    ),
    (
        r"Unsupported (matmul|lhs|rhs|LHS|RHS)|UnsupportedRhsType|UnsupportedLhsType|matmul .*type",
        "This chip's matrix unit does not take that type: cast to bfloat16 or float32 first.",
    ),
    (
        r"Low padding not supported",
        "Pad the array outside the kernel: this compiler pads blocks at the high end only.",
    ),
    (
        r"requires all mesh axes to be Manual",
        "Call the kernel inside jax.shard_map with every mesh axis manual.",
    ),
    (
        r"Invalid TPU external name",
        "This libtpu is too old for that chip: install the version that this jax names.",
    ),
    (
        r"JVP|jvp|[Dd]ifferentiat|linearize|transpose rule",
        "A kernel has no derivative of its own: give it one with jax.custom_vjp.",
    ),
    (
        r"strided.*(load|lane)|[Ss]tride",
        "Lanes cannot be read with a stride: load the whole rows, then select or transpose.",
    ),
    (
        r"take_along_axis|[Gg]ather",
        "The gather rule wants indices shaped like the operand: compare with an iota and reduce, "
        "or loop over scalar indices.",
    ),
)
_COMPILED = tuple((re.compile(pattern), advice) for pattern, advice in _TABLE)


def advice_for(error_type: str, message: str) -> str:
    """Return what to do about an error; empty when the table has nothing on it."""
    text = f"{error_type}: {message}"
    return next((advice for pattern, advice in _COMPILED if pattern.search(text)), "")
