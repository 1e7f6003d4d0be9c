"""Exercise: say from a line of PTX which of three GPUs can run it."""

from collections.abc import Callable

GPUS = ("a100", "h100", "b200")

Reader = Callable[[str], set[str]]

SEEN: dict[str, set[str]] = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": {"a100", "h100", "b200"},
    "cp.async.cg.shared.global": {"a100", "h100", "b200"},
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16": {"h100"},
    "wgmma.fence.sync.aligned": {"h100"},
    "tcgen05.mma.cta_group::1.kind::f16": {"b200"},
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64": {"b200"},
    "elect.sync": {"h100", "b200"},
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile": {"h100", "b200"},
}
"""Instruction -> the GPUs that take it.

The page's products show it, but for `mma.sync` on the two later GPUs: that is NVIDIA's word in the
PTX manual, where it needs `sm_80` or higher.
"""


def starter(instruction: str) -> set[str]:
    """Where to begin: what one GPU can do, later ones can."""
    if instruction.startswith("tcgen05."):
        return {"b200"}
    if instruction.startswith(("wgmma.", "elect.", "cp.async.bulk.")):
        return {"h100", "b200"}
    return set(GPUS)


def solution(instruction: str) -> set[str]:
    """Tensor cores have instructions of their generation; `mma.sync` alone is for all."""
    if instruction.startswith("tcgen05."):
        return {"b200"}
    if instruction.startswith("wgmma."):
        return {"h100"}
    if instruction.startswith(("elect.", "cp.async.bulk.")):
        return {"h100", "b200"}
    return set(GPUS)


def by_generation_alone(instruction: str) -> set[str]:
    """Wrong: whatever came with Hopper is Hopper's."""
    if instruction.startswith("tcgen05."):
        return {"b200"}
    if instruction.startswith(("wgmma.", "elect.", "cp.async.bulk.")):
        return {"h100"}
    return set(GPUS)


def every_copy_is_old(instruction: str) -> set[str]:
    """Wrong: takes the copy engine's instruction for the asynchronous copy of a thread."""
    if instruction.startswith("cp.async."):
        return set(GPUS)
    return solution(instruction)


def every_mma_is_new(instruction: str) -> set[str]:
    """Wrong: takes every instruction with `mma` for one of a single generation."""
    if "mma.sync" in instruction:
        return {"a100"}
    return solution(instruction)


WRONG: tuple[tuple[Reader, str], ...] = (
    (by_generation_alone, "kept by the next generation"),
    (every_copy_is_old, "copy engine"),
    (every_mma_is_new, "from an A100 on"),
)

_HINTS = {
    "wgmma.": "a warpgroup's products are one generation's alone, and the next has others",
    "tcgen05.": "tensor memory came with Blackwell",
    "mma.": "`mma` of a warp is there from an A100 on",
    "cp.async.bulk.": "the copy engine came with Hopper, and Blackwell has it too",
    "elect.": "what serves the copy engine was kept by the next generation",
    "cp.async.": "the asynchronous copy of a thread is there from an A100 on",
}


def check(who_takes: Reader) -> None:
    """Compare with what the compilers took and refused.

    Args:
        who_takes: called with an instruction of PTX; returns the names of GPUs, of `GPUS`.

    Raises:
        AssertionError: the answer differs for an instruction; holds both and a hint.
    """
    for instruction, wanted in SEEN.items():
        got = who_takes(instruction)
        if not isinstance(got, set | frozenset) or not got <= set(GPUS):
            raise AssertionError(f"{instruction}: {got!r} is not a set of names of {GPUS}")
        if got != wanted:
            hint = next(text for start, text in _HINTS.items() if instruction.startswith(start))
            raise AssertionError(
                f"{instruction}: {sorted(got)}, and compilers take it for {sorted(wanted)}. "
                f"Hint: {hint}"
            )
