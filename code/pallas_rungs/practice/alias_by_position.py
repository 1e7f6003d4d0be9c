"""Exercise: name inputs and outputs by the numbers that ``input_output_aliases`` counts them by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS, WRITTEN = 4, 2
"""Rows of every array, and how many of them the programs write."""


@dataclass(frozen=True)
class Call:
    """A call, by the names of its operands in the order in which they are given.

    Attributes:
        scalars: the operands of scalar prefetch.
        inputs: all others.
        outputs: what comes out.
        in_place: name of an output -> name of the input that it is written over.
        traced_bounds: how many lengths of the grid are traced values.
    """

    scalars: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    in_place: Mapping[str, str] = field(default_factory=dict)
    traced_bounds: int = 0


Aliases = Callable[[Call], dict[int, int]]

CALLS = (
    Call((), ("x", "keys", "values"), ("keys_out",), {"keys_out": "keys"}),
    Call(("page",), ("x", "keys"), ("keys_out",), {"keys_out": "keys"}),
    Call(
        ("page", "slot"),
        ("x", "keys", "values"),
        ("values_out", "norm", "keys_out"),
        {"keys_out": "keys", "values_out": "values"},
    ),
    Call(("page",), ("x", "keys"), ("norm", "keys_out"), {"keys_out": "keys"}, traced_bounds=1),
)


def written_over(call: Call, aliases: Mapping[int, int]) -> dict[str, np.ndarray]:
    """Run a call whose programs write the first two rows of each output and no others.

    Args:
        call: its operands; input number n is full of n + 1.
        aliases: passed on as ``input_output_aliases``.

    Returns:
        Name of each output -> (4, 4), float32; the rows that were written hold -1.

    Raises:
        ValueError: jax refuses the aliases.
    """
    first_output = len(call.scalars) + len(call.inputs)

    def kernel(*refs: Any) -> None:
        for out_ref in refs[first_output:]:
            out_ref[...] = jnp.full_like(out_ref, -1)

    row = pl.BlockSpec((1, 4), lambda i, *scalars: (i, 0))
    out = jax.ShapeDtypeStruct((ROWS, 4), jnp.float32)

    @jax.jit
    def run(programs: jax.Array, *operands: jax.Array) -> Any:
        return pl.pallas_call(
            kernel,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=len(call.scalars),
                grid=(programs if call.traced_bounds else WRITTEN,),
                in_specs=[row] * len(call.inputs),
                out_specs=[row] * len(call.outputs),
            ),
            out_shape=[out] * len(call.outputs),
            input_output_aliases=dict(aliases),
            interpret=True,
        )(*operands)

    scalars = [jnp.zeros(3, jnp.int32) for _ in call.scalars]
    inputs = [jnp.full((ROWS, 4), n + 1, jnp.float32) for n in range(len(call.inputs))]
    results = run(jnp.int32(WRITTEN), *scalars, *inputs)
    return dict(zip(call.outputs, map(np.asarray, results), strict=True))


def starter(call: Call) -> dict[int, int]:
    """Where to begin: the first input becomes the first output."""
    return {0: 0}


def solution(call: Call) -> dict[int, int]:
    """Keys count the prefetched scalars and then the inputs; values count the outputs."""
    going_in = (*call.scalars, *call.inputs)
    return {going_in.index(i): call.outputs.index(o) for o, i in call.in_place.items()}


def without_scalars(call: Call) -> dict[int, int]:
    """Wrong: counts the inputs alone."""
    return {call.inputs.index(i): call.outputs.index(o) for o, i in call.in_place.items()}


def the_other_way(call: Call) -> dict[int, int]:
    """Wrong: maps outputs to inputs."""
    return {value: key for key, value in solution(call).items()}


def as_the_kernel_counts(call: Call) -> dict[int, int]:
    """Wrong: the number of an output is that of its ref."""
    first_output = len(call.scalars) + len(call.inputs)
    return {key: first_output + value for key, value in solution(call).items()}


def as_the_primitive_counts(call: Call) -> dict[int, int]:
    """Wrong: a traced grid bound, which the primitive takes first, is counted too."""
    return {key + call.traced_bounds: value for key, value in solution(call).items()}


def a_swapped_pair(call: Call) -> dict[int, int]:
    """Wrong: pairs inputs and outputs in the order in which each of them come."""
    right = solution(call)
    return dict(zip(sorted(right), sorted(right.values()), strict=True))


WRONG: tuple[tuple[Aliases, str], ...] = (
    (without_scalars, "count the prefetched scalars too"),
    (the_other_way, "keys are numbers of what goes in"),
    (as_the_kernel_counts, "Values count the outputs alone"),
    (as_the_primitive_counts, "no operand that you give"),
    (a_swapped_pair, "which input each output is written over"),
)


def check(aliases: Aliases) -> None:
    """Run calls that write two rows of four, and see what the other two rows hold.

    Args:
        aliases: takes a `Call` and returns what to pass as ``input_output_aliases``.

    Raises:
        AssertionError: jax refuses the aliases, or an output is not written over its input; says
            for which call, and what to look at.
    """
    for call in CALLS:
        given = aliases(call)
        told = f"scalars {call.scalars}, inputs {call.inputs}, outputs {call.outputs}: {given}"
        try:
            found = written_over(call, given)
        except (ValueError, TypeError, AttributeError) as error:
            said = str(error).partition("\n")[0]
            raise AssertionError(f"{told} is refused: {said}\n{_hint(call, given)}") from None
        for output, over in call.in_place.items():
            want = call.inputs.index(over) + 1
            rest = found[output][WRITTEN:]
            if not np.array_equal(rest, np.full_like(rest, want)):
                raise AssertionError(
                    f"{told}: the rows of {output} that nobody wrote hold {rest.flat[0]:g}, and "
                    f"those of {over} hold {want}\n{_hint(call, given)}"
                )


def _hint(call: Call, given: Mapping[int, int]) -> str:
    for wrong, hint in (
        (without_scalars, "Hint: the keys count the prefetched scalars too, which come first"),
        (the_other_way, "Hint: keys are numbers of what goes in, values of what comes out"),
        (as_the_kernel_counts, "Hint: Values count the outputs alone, the first of them is 0"),
        (
            as_the_primitive_counts,
            "Hint: a traced length of the grid is no operand that you give, and is not counted",
        ),
    ):
        if given == wrong(call):
            return hint
    return "Hint: see which input each output is written over; their orders need not agree"
