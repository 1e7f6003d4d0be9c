"""Integer operands of Pallas kernels, computed where they follow from what is given.

Tables for scalar prefetch and bounds of a dynamic grid decide which blocks a kernel visits. Their
values are found by evaluating, on this machine, the part of the program that leads to them from
concrete arguments and constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np

_KERNELS: Final = ("pallas_call", "mpmd_map", "core_map")
_INLINED: Final = ("call", "jit", "custom", "remat", "checkpoint")
_BODIES: Final = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
_LETTERS: Final = {"bfloat": "bf", "float": "f", "uint": "u", "int": "s"}
_WORDS: Final = re.compile("|".join(_LETTERS))
_ROW: Final = 128
"""Words that a row of a table takes in SMEM."""

_LARGEST: Final = 1 << 22
"""Elements of an array above which it is not computed: no table for scalar prefetch is so large."""


@dataclass(frozen=True)
class KernelOperands:
    """What is known of one kernel's integer operands.

    Attributes:
      name: the kernel's name; empty where the call gives none.
      types: dtypes and shapes of all of its operands, as HLO writes them, `s32[8]`.
      values: words of SMEM by the operand's index; an operand that is not known is not in it.
    """

    name: str
    types: tuple[str, ...]
    values: dict[int, tuple[int, ...]]


def integer_operands(closed: Any, args: Sequence[Any]) -> tuple[KernelOperands, ...]:
    """Compute the integer operands of a program's kernels, as far as they can be known.

    Args:
      closed: the program's jaxpr.
      args: its flat arguments; arrays and numbers are known, anything else (a shape and dtype) is
        not.

    Returns:
      One for each kernel, in the order of the trace; kernels inside of loops are left out.
    """
    known = [_is_known(arg) for arg in args]
    names: list[tuple[str, tuple[str, ...]]] = []
    wanted: list[tuple[int, ...]] = []

    def evaluate(given: list[Any]) -> list[Any]:
        values = iter(given)
        env = _Environment()
        for variable, one in zip(closed.jaxpr.invars, known, strict=True):
            if one:
                env[variable] = next(values)
        for variable, constant in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            env[variable] = constant
        found = list(_kernels(closed.jaxpr, env))
        names[:] = [name for name, _ in found]
        wanted[:] = [tuple(operands) for _, operands in found]
        return [list(operands.values()) for _, operands in found]

    results = jax.jit(evaluate)([arg for arg, one in zip(args, known, strict=True) if one])
    return tuple(
        KernelOperands(
            *name,
            {
                index: words
                for index, result in zip(indices, values, strict=True)
                if (words := words_of(np.asarray(result))) is not None
            },
        )
        for name, indices, values in zip(names, wanted, results, strict=True)
    )


def words_of(values: np.ndarray) -> tuple[int, ...] | None:
    """Return the 32-bit words that hold an array of integers in SMEM.

    A row of a table takes 128 words, however short it is. Of int8, four rows share them: byte b of
    a word belongs to row 4 i + b. Read off the addresses in libtpu's listings.

    Args:
      values: integers, of any shape.

    Returns:
      The words, signed; None where the layout is not known here: a row longer than 128, several
      tables in one array, or a narrow type that was not looked at.
    """
    bits = values.dtype.itemsize * 8
    if values.size <= 1 or (values.ndim <= 1 and bits == 32):
        return tuple(int(value) for value in values.reshape(-1))
    if values.ndim < 2 or bits not in (8, 32):
        return None
    *tables, rows, columns = values.shape
    if columns > _ROW or any(size != 1 for size in tables):
        return None
    packed = 32 // bits
    padded = np.zeros((-(-rows // packed) * packed, _ROW), values.dtype)
    padded[:rows, :columns] = values.reshape(rows, columns)
    together = np.ascontiguousarray(padded.reshape(-1, packed, _ROW).swapaxes(1, 2))
    return tuple(int(word) for word in together.view("<i4").reshape(-1))


class _Environment(dict[Any, Any]):
    """Values of variables, as far as they are known."""

    def read(self, atom: Any) -> Any:
        """Return the value of a variable or literal; None where it is not known."""
        return atom.val if hasattr(atom, "val") else self.get(atom)


def _is_known(arg: Any) -> bool:
    return isinstance(arg, np.ndarray | np.generic | jax.Array | int | bool | float)


def _kernels(
    jaxpr: Any, env: _Environment
) -> Iterator[tuple[tuple[str, tuple[str, ...]], dict[int, Any]]]:
    """Walk through a jaxpr, compute what is known, and yield the kernels met."""
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        values = [env.read(atom) for atom in equation.invars]
        if primitive.name in _KERNELS:
            types = tuple(hlo_type(atom.aval) for atom in equation.invars)
            yield (
                (_kernel_name(equation), types),
                {
                    index: value
                    for index, value in enumerate(values)
                    if value is not None and _is_integer(equation.invars[index])
                },
            )
            continue
        if (body := _body(equation)) is not None:
            inner = _Environment()
            inside = getattr(body, "jaxpr", body)
            inner.update(zip(inside.constvars, getattr(body, "consts", ()), strict=False))
            for variable, value in zip(inside.invars, values, strict=False):
                if value is not None:
                    inner[variable] = value
            yield from _kernels(inside, inner)
            results = [inner.read(atom) for atom in inside.outvars]
        elif any(value is None for value in values) or _is_large(equation):
            continue
        else:
            try:
                made = primitive.bind(*values, **primitive.get_bind_params(equation.params))
            except Exception:  # it is not for this machine: what it makes is not known
                continue
            results = list(made) if primitive.multiple_results else [made]
        for variable, result in zip(equation.outvars, results, strict=True):
            if result is not None:
                env[variable] = result


def hlo_type(aval: Any) -> str:
    """Write a dtype and shape as HLO does: `s32[8]`."""
    if not hasattr(aval, "dtype"):
        return str(aval)
    name = str(np.dtype(aval.dtype).name)
    kind = "pred" if name == "bool" else _WORDS.sub(lambda word: _LETTERS[word[0]], name)
    return f"{kind.replace('_', '')}[{','.join(map(str, aval.shape))}]"


def _kernel_name(equation: Any) -> str:
    params = equation.params
    told = params.get("name") or getattr(params.get("name_and_src_info"), "name", "")
    return str(told)


def _body(equation: Any) -> Any:
    """Return the jaxpr of a call that is executed once; None for anything else."""
    if not any(part in equation.primitive.name for part in _INLINED):
        return None
    for name in _BODIES:
        body = equation.params.get(name)
        if hasattr(body, "eqns") or hasattr(body, "jaxpr"):
            return body
    return None


def _is_integer(atom: Any) -> bool:
    return (
        bool(np.issubdtype(atom.aval.dtype, np.integer)) if hasattr(atom.aval, "dtype") else False
    )


def _is_large(equation: Any) -> bool:
    return any(getattr(out.aval, "size", 0) > _LARGEST for out in equation.outvars)
