"""What to do about an error: a table from patterns of messages to advice."""

from __future__ import annotations

import re

NO_DERIVATIVE = "A kernel has no derivative of its own: give it one with jax.custom_vjp."
"""What to do where jax had to differentiate a kernel."""

LOST_LENGTH = (
    "jax.vmap over a prefetched table loses a traced length of the grid: batch the length as well "
    "(jnp.full(batch, length)), or make it a Python number."
)
"""What to do where a call has fewer operands than its grid needs."""

REFERENCE_TAKES = (
    "The reference is called with the kernel's arguments: give it a parameter for each, or leave "
    "out what is the kernel's alone (reference=lambda x, block: f(x))."
)
"""What to do about a reference that the kernel's arguments do not fit."""

_GPU_TABLE: tuple[tuple[str, str], ...] = (
    (
        r"array arguments and results whose size is a power of 2",
        "Triton's arrays have sizes that are powers of two: take such a block, and mask what is "
        "too much (pl.next_power_of_2; pltriton.load and pltriton.store with mask).",
    ),
    (
        r"Unimplemented primitive in Pallas (Triton|Mosaic GPU) lowering",
        "The GPU lowering has no rule for this operation: express it with others, or do it outside "
        "the kernel.",
    ),
    (
        r"exceeds available shared memory|Shared memory size limit exceeded",
        "A block has no more shared memory than that (227 KiB on H100 and B200, 163 KiB on A100): "
        "take smaller tiles or fewer stages.",
    ),
    (
        r"scratch must be provided when cross-warp reduction",
        "This layout spreads the reduced axis over several warps: reduce the last axis, or cast to "
        "a layout that keeps the axis within a warp (plgpu.layout_cast).",
    ),
    (
        r"Failed to infer a possible set of layouts",
        "No layouts suit all operations at once. Rows that TMA copies are multiples of 16 bytes; "
        "where that holds, say the layouts yourself (plgpu.layout_cast, transforms of plgpu.SMEM).",
    ),
    (
        r"Swizzle \d+ requires the trailing dimension",
        "Tiling and swizzle belong together: the last dimension of a tile has as many bytes as the "
        "swizzle (plgpu.find_swizzle).",
    ),
    (
        r"Barrier completed phase|missed observing phase|is awaiting phase",
        "Wait once for each phase that a barrier completes, before the next one can complete.",
    ),
    (
        r"arrivals pending",
        "Arrivals and waits must balance: num_arrivals of them complete a phase, and each phase is "
        "waited for.",
    ),
    (
        r"barrier with \d+ of \d+ arrivals",
        "A phase completes with num_arrivals arrivals: one for each copy into shared memory and "
        "one for each plgpu.barrier_arrive. Count them, and let every warpgroup come that counts.",
    ),
    (
        r"Not all copy_smem_to_gmem",
        "Wait for the copies out before the kernel ends: plgpu.wait_smem_to_gmem(0).",
    ),
    (
        r"RACE DETECTED[\s\S]*Warp(group)?\(",
        "Two accesses are not ordered: wait for a copy in at its barrier; put plgpu.commit_smem() "
        "between ordinary accesses to shared memory and TMA copies, before arriving too; put a "
        "barrier between warpgroups; let each block write a place of its own.",
    ),
    (
        r"\bgpu_lowering\b",
        "pl.pallas_call goes to GPUs by way of Triton and takes no plgpu.CompilerParams: write a "
        "Mosaic GPU kernel with plgpu.kernel.",
    ),
    (
        r"not supported on \.target|feature '.*' requires|Cannot select: intrinsic %llvm\.nvvm"
        r"|only supported Hopper",
        "This chip's architecture lacks the instruction: wgmma is Hopper's alone, tcgen05 "
        "Blackwell's, TMA is on both and not on Ampere.",
    ),
)
"""For kernels of Mosaic GPU and Triton."""

_TABLE: tuple[tuple[str, str], ...] = (
    *_GPU_TABLE,
    (
        r"module 'jax\.experimental\.pallas(\.tpu)?' has no attribute '(load|store|swap)'",
        "Index the Ref: value = ref[...], ref[...] = value. With a mask: pltpu.load, pltpu.store.",
    ),
    (
        r"module 'jax\.experimental\.pallas\.tpu' has no attribute 'TPU",
        "This jax has the name without TPU: pltpu.CompilerParams, pltpu.MemorySpace, "
        "pltpu.InterpretParams.",
    ),
    (
        r"module 'jax\.experimental\.pallas\.tpu' has no attribute "
        r"'(ANY|semaphore_\w+|delay|run_scoped)'",
        "This jax has that name in jax.experimental.pallas: write pl. for pltpu.",
    ),
    (
        r"module 'jax[\w.]*' has no attribute",
        "The installed jax has no such name; names of Pallas move between releases: look through "
        "dir(pl) and dir(pltpu), and jax's changelog.",
    ),
    (
        r"^ModuleNotFoundError: No module named",
        "This environment lacks that package: install it beside pallas_rungs, in the Python that "
        "runs climb.",
    ),
    (
        r"^_?\w*MemoryError\b",
        "The process was refused memory (it may take four fifths of this machine's): try smaller "
        "shapes.",
    ),
    (
        r"traced for \w+ returned a value of type .* which is not a valid JAX type",
        "Climb a function that returns arrays, or tuples and dicts of arrays, and nothing else.",
    ),
    (
        r"the compiler was still busy",
        "Give it longer (--time-limit, time_limit=), or less to compile: a Python loop in the body "
        "is unrolled, lax.fori_loop is not.",
    ),
    (
        r"^EOFError: EOF when reading a line",
        "Standard input is empty here: take the value as an argument.",
    ),
    (
        r"Index map function .* must not capture constants",
        "An index map may close over Python numbers, not arrays: pass the table as a scalar-"
        "prefetch operand (pltpu.PrefetchScalarGridSpec); the map gets it as a Ref.",
    ),
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
        r"Shapes must be 1D sequences of concrete values",
        "Shapes are fixed while tracing: take the largest size, and mask what is too much.",
    ),
    (
        r"should return None",
        "A body returns nothing: store the result through the output Ref, o_ref[...] = value.",
    ),
    (
        r"'AbstractRef' object has no attribute",
        "That is a Ref, not its value: read it first, ref[...].",
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
        r"Index map function .* must return \d+ values",
        "An index map returns one block index for each dimension of the block, 0 for those that "
        "the grid does not walk along.",
    ),
    (
        r"Index map function .* must return integer",
        "Block indices are integers: divide with //, and keep tables of them in int32.",
    ),
    (
        r"<lambda>\(\) (takes|missing) .*positional argument",
        "An index map takes one argument for each grid axis, and one more for each scalar-prefetch "
        "operand.",
    ),
    (
        r"(takes|missing) \d+ .*positional argument",
        "A kernel's body takes one Ref for each scalar-prefetch operand, input, output and "
        "scratch, in that order; an index map one argument for each grid axis and each "
        "scalar-prefetch operand.",
    ),
    (
        r"Pytree for `(in_specs|out_specs)` and `\w+` do not match",
        "Give one BlockSpec for each operand that is not a scalar-prefetch operand, and one for "
        "each output.",
    ),
    (
        r"^TypeError: 'function' object is not iterable",
        "A BlockSpec takes block_shape first and index_map second; older releases had them the "
        "other way round.",
    ),
    (
        r"unsupported shape cast",
        "The compiler has no layout for this reshape: keep the last axis of both shapes a multiple "
        "of 128, read and write slices of the Refs instead, or reshape outside the kernel.",
    ),
    (
        r"must have the same number of dimensions as the array shape",
        "A block has as many dimensions as its array: write None for one that the body shall not "
        "see.",
    ),
    (
        r"input_output_aliases contains the mapping",
        "An alias maps the number of an operand (scalar-prefetch operands count) to that of an "
        "output of the same shape and dtype.",
    ),
    (
        r"last two dimensions of your block shape are divisible by 8 and 128",
        "Make the last two block dimensions multiples of 8 and 128, or as large as the array's.",
    ),
    (
        r"rank-?1 block|rank 1 block|1-D .* (multiple|power)",
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
        r"extract_strided_slice",
        "A value cannot be sliced with a stride: read the Ref with it, ref[::2, :] (rows, not "
        "lanes).",
    ),
    (
        r"'tpu\.iota' op",
        "Count in int32, with lax.broadcasted_iota in two dimensions or more, and cast after.",
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
        r"Scan with \d+ extensive|num_extensive",
        "Loops in a TPU kernel have carries only: write the stacked inputs and outputs as Ref "
        "reads and writes in a fori_loop.",
    ),
    (
        r"Cannot do int indexing on TPU|Advanced indexers are not supported",
        "A TPU Ref takes scalars and slices as indices: loop over the index array, kept in SMEM.",
    ),
    (
        r"must be integers|index.*(float|dtype)|expected.*(index|integer) type|arith\.index_cast",
        "Ref indices are integers: keep the float copy for arithmetic only.",
    ),
    (
        r"cannot statically prove that index in dimension \d+ is a multiple of 128",
        "Lanes are addressed by whole rows of 128: prove it with pl.multiple_of (it must be true), "
        "or load the row and take the lanes with pltpu.roll or a mask.",
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
        r"[Oo]ut-of-bounds (masked )?(read|write|swap|store|copy)|[Oo]ut of bounds?\b",
        "The slice reaches past the end of the Ref: check the start and the size, also of the last "
        "step (pl.ds takes elements, counted from the start of the block). interpret=True moves "
        "such a slice back inside; a chip reads or overwrites what lies behind.",
    ),
    (
        r"KeyError: \('(hbm|vmem|smem|any)', \d+",
        "The simulator knows no such buffer there: a device_id must be one of the mesh's (take it "
        "modulo the size of the axis).",
    ),
    (
        r"RACE DETECTED",
        "Two accesses are not ordered: wait for the copy before you touch its buffers, and keep an "
        "axis that carries an accumulator out of the parallel ones.",
    ),
    (
        r"has non-zero count",
        "Signals and waits must balance: wait for every copy that was started, on each of its "
        "semaphores, and for as many signals as come in; what is left over was signalled at the "
        "line named here.",
    ),
    (
        r"in memory space smem|space=smem",
        "SMEM holds scalars, about a million bytes in all: keep only what index maps and scalar "
        "code read in it, and large tables in HBM or VMEM.",
    ),
    (
        r"ScopedVmemOom|Scoped allocation with size|[Rr]an out of memory in memory space vmem"
        r"|space=vmem",
        "Make the blocks smaller, or split the reduction axis: each blocked operand takes its "
        "block twice (double buffering). pltpu.CompilerParams(vmem_limit_bytes=…) raises the "
        "limit.",
    ),
    (
        r"CompileTimeHbmOom|Ran out of memory on HBM|[Rr]an out of memory in memory space hbm",
        "The arrays of the program do not fit in the chip's HBM: smaller shapes, fewer "
        "temporaries, or more devices.",
    ),
    (
        r"Unsigned integer dtype \w+ is not supported for dot_general",
        "The matrix unit reads integers as signed: cast to int8 or bfloat16 first.",
    ),
    (
        r"Unsupported (matmul|lhs|rhs|LHS|RHS)|UnsupportedRhsType|UnsupportedLhsType|matmul .*type"
        r"|Bad lhs/rhs type|float acc with int lhs",
        "This chip's matrix unit does not take that type: cast to bfloat16 or float32 first.",
    ),
    (
        r"Invalid vector type for (load|store)",
        "This compiler has no registers of that type (float16 is one): cast to bfloat16 or float32 "
        "outside the kernel.",
    ),
    (
        r"Reductions over \w+ not implemented|Only vector<\w+> and vector<\w+> are supported",
        "This operation wants a wider type: cast to int32 or float32, and back after it.",
    ),
    (
        r"Loads are only allowed on VMEM|memory space of HBM or ANY cannot be referenced directly",
        "HBM is not read or written directly: copy to a VMEM buffer (pltpu.sync_copy, "
        "pltpu.async_copy), or let a BlockSpec without memory_space bring the blocks.",
    ),
    (
        r"DMA source and target shape mismatch",
        "A copy's source and destination must have the same shape: slice the larger one with .at.",
    ),
    (
        r"does not have trivial BlockSpec|in memory space ANY only blocks having the same block",
        "An operand in HBM or ANY has no blocks; jax.vmap would give it some: batch inside the "
        "kernel, or call it in a loop (lax.map).",
    ),
    (
        r"cannot be automatically partitioned",
        "A kernel sees whole arrays on one device: call it inside jax.shard_map.",
    ),
    (
        r"`manual_axis_type` on `jax.ShapeDtypeStruct`",
        "Say along which mesh axes the output differs (manual_axis_type of out_shape), or pass "
        "check_vma=False to jax.shard_map.",
    ),
    (
        r"closing over Refs in memory space|unexpected tracer",
        "A Ref or value is used outside the function that it was given to: a buffer of "
        "pl.run_scoped ends with its body; return values, not Refs.",
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
        r"Check failed: ",
        "The compiler aborted where it should have refused: what the simulator says about this "
        "kernel (an index past the end, above all) is the likeliest cause.",
    ),
    (
        r"Invalid TPU external name",
        "This libtpu is too old for that chip: install the version that this jax names.",
    ),
    (
        r"nobody is left to signal",
        "Every wait needs its signal: start each copy that is waited for, wait for it once on each "
        "of its semaphores, and give each credit that is waited for.",
    ),
    (
        r"JVP|jvp|[Dd]ifferentiat|linearize|transpose rule",
        NO_DERIVATIVE,
    ),
    (
        r"[Ss]trided.*(load|lane)|last dim size is not 128 in original base memref",
        "Lanes cannot be read with a stride: load the whole rows, then select or transpose.",
    ),
    (
        r"take_along_axis|[Gg]ather|dynamic_gather",
        "The gather rule wants indices shaped like the operand: compare with an iota and reduce, "
        "or loop over scalar indices.",
    ),
)
_COMPILED = tuple((re.compile(pattern), advice) for pattern, advice in _TABLE)


_MISCOUNTED = re.compile(r"safe_zip\(\) argument \d+ has length|Wrong number of window_params")
"""How interpreters, lowering and compiler say that a call and its grid mapping do not agree."""


def advice_for_miscounted(message: str, *, lost_length: bool, half_derivative: bool) -> str:
    """Return what to do about a call that has not the operands its grid mapping counts.

    The message holds two lengths and no cause, so the cause is read off the program.

    Args:
      message: of the error, in full.
      lost_length: the program has a call without the traced lengths of its grid.
      half_derivative: it has the derivative of a kernel by some of its inputs.

    Returns:
      The advice; empty for another error, or a program with neither.
    """
    if not _MISCOUNTED.search(message):
        return ""
    if lost_length:
        return LOST_LENGTH
    return NO_DERIVATIVE if half_derivative else ""


_COMPILERS_DUMP = re.compile(r"\n(at location: .*|The MLIR operation involved:)", re.DOTALL)


def advice_for(error_type: str, message: str) -> str:
    """Return what to do about an error; empty when the table has nothing on it.

    What the compiler says is looked up before the operation that it prints after it, whose
    attributes hold many a word of the table.
    """
    text = f"{error_type}: {message}"
    for part in (_COMPILERS_DUMP.sub("", text), text):
        for pattern, advice in _COMPILED:
            if pattern.search(part):
                return advice
    return ""
