"""The orders in which a `pallas_call` has its operands, read from the traced call.

One operand stands in up to four lists, each with an order of its own: the operands of the
primitive, the arguments of the kernel, the arguments of every index map, and the numbers by which
`input_output_aliases` names inputs and outputs. All are read from the equation: the variables that
it takes and returns, its kernel's jaxpr, and its grid mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import jax
from jax._src.jaxpr_util import all_eqns
from jax._src.pallas import core as pallas_core

from pallas_rungs.ir.errors import IRError

REF: Final = "closed-over ref"
BOUND: Final = "grid bound"
PROGRAM: Final = "program id"
SCALAR: Final = "prefetched scalar"
INPUT: Final = "input"
OUTPUT: Final = "output"
SCRATCH: Final = "scratch"

ROLES: Final = (REF, BOUND, PROGRAM, SCALAR, INPUT, OUTPUT, SCRATCH)
"""What an operand can be."""

HEADINGS: Final = ("operand", "role", "call", "kernel", "index maps", "alias")
"""Of the columns that `OperandOrders.rows` fills."""


@dataclass(frozen=True)
class Operand:
    """An operand, and its place in each list that has it, counted from 0.

    Attributes:
      name: what the kernel's author calls it, `x_ref`; of one without a name, what it is and its
        number: `bound 0`, `program_id(0)`, `batch 0`, `ref 0`. The arguments of a kernel that a
        transformation made have no names either: `input 0`.
      role: one of `ROLES`.
      type: of the list that has it first, as jax prints it: `float32[16,128]`,
        `Ref<vmem>{float32[8,128]}`.
      call: place among the primitive's operands.
      result: place among the primitive's results.
      kernel: place among the kernel's arguments, closed-over refs first.
      index_map: place among the arguments of every index map.
      alias: the number by which `input_output_aliases` names it: as a key if it goes in, as a value
        if it comes out.
    """

    name: str
    role: str
    type: str
    call: int | None = None
    result: int | None = None
    kernel: int | None = None
    index_map: int | None = None
    alias: int | None = None


@dataclass(frozen=True)
class OperandOrders:
    """The operands of a call.

    Attributes:
      kernel_name: the function that was traced.
      operands: closed-over refs, bounds, program ids, scalars, inputs, outputs, scratch.
      aliases: key and value of each entry of `input_output_aliases`.
    """

    kernel_name: str
    operands: tuple[Operand, ...]
    aliases: tuple[tuple[int, int], ...]

    @property
    def call(self) -> tuple[str, ...]:
        """Names in the order in which the primitive takes them."""
        return self._ordered(lambda operand: operand.call)

    @property
    def results(self) -> tuple[str, ...]:
        """Names in the order in which the primitive returns them."""
        return self._ordered(lambda operand: operand.result)

    @property
    def kernel(self) -> tuple[str, ...]:
        """Names in the order in which the kernel takes them."""
        return self._ordered(lambda operand: operand.kernel)

    @property
    def index_map(self) -> tuple[str, ...]:
        """Names in the order in which every index map takes them."""
        return self._ordered(lambda operand: operand.index_map)

    @property
    def alias_keys(self) -> tuple[str, ...]:
        """Names in the order in which the keys of `input_output_aliases` count them."""
        return tuple(o.name for o in self.operands if o.role in (SCALAR, INPUT))

    def of(self, name: str) -> Operand:
        """The operand of that name.

        Raises:
          KeyError: there is none; the message lists the names that there are.
        """
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KeyError(
            f"no operand {name!r}; there are: {', '.join(o.name for o in self.operands)}"
        )

    def rows(self) -> list[tuple[str, ...]]:
        """The operands for a table with `HEADINGS`, as inline Markdown."""
        return [
            (
                f"`{o.name}`",
                o.role,
                _told(o.call) if o.result is None else f"result {o.result}",
                _told(o.kernel),
                _told(o.index_map),
                "–" if o.alias is None else f"{'value' if o.role == OUTPUT else 'key'} {o.alias}",
            )
            for o in self.operands
        ]

    def __str__(self) -> str:
        lists = {
            "call": self.call,
            "results": self.results,
            "kernel": self.kernel,
            "index maps": self.index_map,
            "alias keys": self.alias_keys,
        }
        told = [f"  {name + ':':<12}{', '.join(names) or 'none'}" for name, names in lists.items()]
        if self.aliases:
            told.append(f"  {'aliases:':<12}{dict(self.aliases)}")
        return "\n".join([self.kernel_name, *told])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{_html(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        name = escape(self.kernel_name)
        return (
            f"<table><caption>Operands of <code>{name}</code>, counted from 0</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def _ordered(self, place: Callable[[Operand], int | None]) -> tuple[str, ...]:
        found = [(at, o.name) for o in self.operands if (at := place(o)) is not None]
        return tuple(name for _, name in sorted(found))


def operand_orders(function: Callable[..., Any], *args: Any) -> tuple[OperandOrders, ...]:
    """Trace a function and read the orders of each `pallas_call` in it, in order.

    Args:
      function: takes arrays and calls kernels.
      *args: arrays, or `jax.ShapeDtypeStruct`s of theirs.

    Raises:
      IRError: a call has not as many operands, results or arguments as its grid mapping says.
      Exception: whatever the function raises while it is traced.
    """
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    return tuple(
        orders_of(equation)
        for _, equation in all_eqns(jaxpr)
        if equation.primitive.name == "pallas_call"
    )


def orders_of(equation: Any) -> OperandOrders:
    """Read the orders from the equation of a `pallas_call`.

    Args:
      equation: of a jaxpr.

    Raises:
      IRError: it has not as many operands, results or arguments as its grid mapping says.
    """
    kernel, mapping = equation.params["jaxpr"], equation.params["grid_mapping"]
    title = equation.params["name"] or kernel.debug_info.func_name
    refs, bounds = len(kernel.constvars), mapping.num_dynamic_grid_bounds
    scalars, inputs = mapping.num_index_operands, mapping.num_inputs
    outputs, scratch = mapping.num_outputs, mapping.num_scratch_operands
    programs = len(mapping.grid)
    for what, expected, found in (
        ("operands", refs + bounds + scalars + inputs, equation.invars),
        ("results", outputs, equation.outvars),
        ("arguments of its kernel", scalars + inputs + outputs + scratch, kernel.invars),
        ("arguments of its index maps", programs + scalars, mapping.index_map_avals),
    ):
        if len(found) != expected:
            raise IRError(f"the call of {title}", f"{expected} {what}", str(len(found)))
    given = iter([str(v.aval) for v in equation.invars])
    names = iter(_argument_names(kernel, scalars, inputs, outputs, scratch))
    arguments = iter([str(v.aval) for v in kernel.invars])
    call, seen = _counter(), _counter()
    index, alias = _counter(), _counter()
    operands = [
        Operand(f"ref {n}", REF, next(given), call=next(call), kernel=next(seen))
        for n in range(refs)
    ]
    operands += [
        Operand(f"bound {axis}", BOUND, next(given), call=next(call))
        for axis, size in enumerate(mapping.grid)
        if pallas_core.is_dynamic_dim(size)
    ]
    operands += [
        Operand(name, PROGRAM, str(aval), index_map=next(index))
        for name, aval in zip(
            _program_names(programs, mapping.vmapped_dims), mapping.index_map_avals, strict=False
        )
    ]
    for role, count in ((SCALAR, scalars), (INPUT, inputs)):
        for _ in range(count):
            next(arguments)
            operands.append(
                Operand(
                    next(names),
                    role,
                    next(given),
                    call=next(call),
                    kernel=next(seen),
                    index_map=next(index) if role == SCALAR else None,
                    alias=next(alias),
                )
            )
    for n in range(outputs):
        operands.append(
            Operand(next(names), OUTPUT, next(arguments), result=n, kernel=next(seen), alias=n)
        )
    for _ in range(scratch):
        operands.append(Operand(next(names), SCRATCH, next(arguments), kernel=next(seen)))
    return OperandOrders(title, tuple(operands), tuple(equation.params["input_output_aliases"]))


def _argument_names(kernel: Any, *counts: int) -> list[str]:
    """What the kernel's author calls its arguments, or else what they are."""
    made_up = [
        f"{word} {n}"
        for word, count in zip(("scalar", INPUT, OUTPUT, SCRATCH), counts, strict=True)
        for n in range(count)
    ]
    own = kernel.debug_info.safe_arg_names(len(made_up))
    return [name or word for name, word in zip(own, made_up, strict=True)]


def _program_names(programs: int, vmapped: Sequence[int]) -> Iterator[str]:
    """What index maps call their first arguments: axes of vmap, which no kernel sees, apart."""
    seen, batched = _counter(), _counter()
    for axis in range(programs):
        yield f"batch {next(batched)}" if axis in vmapped else f"program_id({next(seen)})"


def _counter() -> Iterator[int]:
    return iter(range(1 << 30))


def _told(place: int | None) -> str:
    return "–" if place is None else str(place)


def _html(cell: str) -> str:
    inner = cell.strip("`")
    return f"<code>{escape(inner)}</code>" if cell.startswith("`") else escape(cell)
