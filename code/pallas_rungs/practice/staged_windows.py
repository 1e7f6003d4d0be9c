"""Exercise: how an operand's blocks come into a TPU kernel, told from its BlockSpec alone."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ir.mosaic import mosaic_modules

Predict = Callable[[str, bool, int | None], str]

_SPACES = {"": None, "any": pl.ANY, "hbm": pltpu.HBM, "vmem": pltpu.VMEM, "smem": pltpu.SMEM}


def lowered_window(space: str, whole: bool, buffers: int | None) -> str:
    """Return what the window parameters of a lowered kernel say of its input.

    Args:
        space: memory space of the BlockSpec: "any", "hbm", "vmem", "smem", or "" for none given.
        whole: the block is the whole (16, 128) array for every program; else it is (8, 128).
        buffers: of `pl.Buffered`; None where the spec has no pipeline mode.

    Returns:
        "none" where the operand has no window; else its pipeline mode, "synchronous" or
        "double_buffered", or "default" where the window has none.
    """
    mode = None if buffers is None else pl.Buffered(buffers)
    shape, index_map = ((16, 128), _zero) if whole else ((8, 128), _own)

    def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        del x_ref
        o_ref[...] = jnp.zeros_like(o_ref)

    def call(x: jax.Array) -> jax.Array:
        output: jax.Array = pl.pallas_call(
            kernel,
            grid=(2,),
            in_specs=[
                pl.BlockSpec(shape, index_map, memory_space=_SPACES[space], pipeline_mode=mode)
            ],
            out_specs=pl.BlockSpec((8, 128), _own),
            out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
        )(x)
        return output

    array = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    program = jax.jit(call).trace(array).lower(lowering_platforms=("tpu",))
    (module,) = mosaic_modules(program)
    window = module.windows[0]
    return dict(window.extra).get("pipeline_mode", "default") if window.staged else "none"


def _own(i: int) -> tuple[int, int]:
    return i, 0


def _zero(i: int) -> tuple[int, int]:
    del i
    return 0, 0


def starter(space: str, whole: bool, buffers: int | None) -> str:
    """Give every operand a window, in the mode that its author asked for."""
    del space, whole
    return {None: "default", 1: "synchronous", 2: "double_buffered"}[buffers]


def solution(space: str, whole: bool, buffers: int | None) -> str:
    """No window in HBM; one buffer for what never changes in VMEM; else what was asked for."""
    if space in ("any", "hbm"):
        return "none"
    if whole and space in ("", "vmem"):
        return "synchronous"
    return {None: "default", 1: "synchronous", 2: "double_buffered"}[buffers]


def only_the_space(space: str, whole: bool, buffers: int | None) -> str:
    """Wrong: a whole array that never changes still has two buffers by default."""
    return "none" if space in ("any", "hbm") else starter(space, whole, buffers)


def default_stays_away(space: str, whole: bool, buffers: int | None) -> str:
    """Wrong: a spec without a space is taken to leave its operand where it is."""
    return "none" if not space else solution(space, whole, buffers)


def asked_for_wins(space: str, whole: bool, buffers: int | None) -> str:
    """Wrong: two buffers that were asked for are kept, for a block that never changes."""
    if buffers == 2 and space not in ("any", "hbm"):
        return "double_buffered"
    return solution(space, whole, buffers)


def scalars_alike(space: str, whole: bool, buffers: int | None) -> str:
    """Wrong: the rule for whole arrays in VMEM is applied in SMEM too."""
    return solution("vmem" if space == "smem" else space, whole, buffers)


WRONG: tuple[tuple[Predict, str], ...] = (
    (only_the_space, "never changes"),
    (default_stays_away, "means VMEM"),
    (asked_for_wins, "even where two were asked for"),
    (scalars_alike, "for VMEM only"),
)


def check(predict: Predict) -> None:
    """Compare with the window parameters of lowered kernels.

    Args:
        predict: takes a memory space, whether the block is the whole array, and the number of
            buffers, and returns what `lowered_window` returns for them.

    Raises:
        AssertionError: a prediction differs; says for which spec, and what to look at.
    """
    for space, whole, buffers, hint in (
        ("vmem", False, None, "A block that changes is staged, as its author asked."),
        ("vmem", False, 1, "One buffer is called synchronous."),
        ("vmem", False, 2, "Two buffers are called double_buffered."),
        ("", False, None, "On a TensorCore no space means VMEM, and blocks are staged there."),
        ("any", True, None, "What may stay in HBM has no window."),
        ("hbm", True, None, "What stays in HBM has no window."),
        ("vmem", True, None, "A block in VMEM that never changes gets one buffer."),
        ("", True, None, "No space means VMEM, and a block that never changes gets one buffer."),
        (
            "",
            True,
            2,
            "One buffer is forced on a block that never changes, even where two were asked for.",
        ),
        ("smem", True, None, "One buffer is forced for VMEM only."),
    ):
        got, want = predict(space, whole, buffers), lowered_window(space, whole, buffers)
        if got != want:
            block = "the whole array" if whole else "a block per program"
            raise AssertionError(
                f"predict({space!r}, {whole}, {buffers}) returned {got!r}; of {block} the lowered "
                f"kernel says {want!r}. {hint}"
            )
