"""Exercise: double every other block of an array in place, and keep the rest."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.practice.judging import Hint, agree, has_nan, run

Call = Callable[[Any], Any]

ROWS = 48
COLUMNS = 128
BLOCK_ROWS = 8
EVEN = pl.BlockSpec((BLOCK_ROWS, COLUMNS), lambda i: (2 * i, 0))
SHAPE = jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32)
PROGRAMS = ROWS // BLOCK_ROWS // 2


def double(x_ref: Any, o_ref: Any) -> None:
    """Write twice the block."""
    o_ref[...] = 2 * x_ref[...]


def starter(x: jax.Array) -> Any:
    """Visits the even blocks; nobody writes the odd ones."""
    return pl.pallas_call(
        double, grid=(PROGRAMS,), in_specs=[EVEN], out_specs=EVEN, out_shape=SHAPE
    )(x)


def solution(x: jax.Array) -> Any:
    """The output starts out as x: its unvisited blocks keep what x held."""
    return pl.pallas_call(
        double,
        grid=(PROGRAMS,),
        in_specs=[EVEN],
        out_specs=EVEN,
        out_shape=SHAPE,
        input_output_aliases={0: 0},
    )(x)


def reads_the_output(x: jax.Array) -> Any:
    """Wrong: the array is aliased, but the block of the output in VMEM starts out as garbage."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        del x_ref
        o_ref[...] = 2 * o_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(PROGRAMS,),
        in_specs=[EVEN],
        out_specs=EVEN,
        out_shape=SHAPE,
        input_output_aliases={0: 0},
    )(x)


def doubles_everything(x: jax.Array) -> Any:
    """Wrong: visits the odd blocks too."""
    rows = pl.BlockSpec((BLOCK_ROWS, COLUMNS), lambda i: (i, 0))
    return pl.pallas_call(
        double, grid=(2 * PROGRAMS,), in_specs=[rows], out_specs=rows, out_shape=SHAPE
    )(x)


WRONG: tuple[tuple[Call, str], ...] = (
    (reads_the_output, "Hint: a block of the output starts out undefined"),
    (doubles_everything, "Hint: the odd blocks were to stay as they are"),
)


def check(function: Call) -> None:
    """Run ``function(x)`` in both interpreters and look at every block.

    Args:
        function: Takes x, f32[48, 128], and returns an array in which blocks 0, 2 and 4 of eight
            rows are doubled and the others are those of x.

    Raises:
        AssertionError: A block is wrong; says where, under which interpreter, and a hint.
    """
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) + 1
    blocks = x.astype(np.float64).reshape(-1, BLOCK_ROWS, COLUMNS)
    want = (blocks * np.array([2, 1] * PROGRAMS)[:, None, None]).reshape(x.shape)

    def odd_blocks_undefined(got: Any, want: Any) -> bool:
        return has_nan(got[BLOCK_ROWS : 2 * BLOCK_ROWS], want[BLOCK_ROWS : 2 * BLOCK_ROWS])

    for name, interpret in {
        "interpret=True": True,
        "the simulator": pltpu.InterpretParams(),
    }.items():
        call = f"your function(x) under {name}"
        agree(
            run(function, x, call=call, interpret=interpret),
            want,
            call=call,
            rtol=0,
            atol=0,
            hints=(
                Hint(
                    "nobody wrote the odd blocks: which argument gives the output the buffer of x?",
                    odd_blocks_undefined,
                ),
                Hint(
                    "a block of the output starts out undefined in VMEM, aliased or not: read the "
                    "input's ref.",
                    has_nan,
                ),
                Hint(
                    "the odd blocks were to stay as they are.",
                    lambda got, want: np.array_equal(got, 2 * x),
                ),
            ),
        )
