"""Tables and scalars for Pallas kernels, computed where they follow from what is given.

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
import jax.numpy as jnp
import numpy as np

_KERNELS: Final = ("pallas_call", "mpmd_map", "core_map")
_INLINED: Final = ("call", "jit", "custom", "remat", "checkpoint")
_BODIES: Final = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
_LETTERS: Final = {"bfloat": "bf", "float": "f", "uint": "u", "int": "s"}
_WORDS: Final = re.compile("|".join(_LETTERS))
_ROW: Final = 128
"""Words that a row of a table takes in SMEM."""

_TILE: Final = 8
"""Rows of a table that lie together, at most."""

_LARGEST_TABLE: Final = 1 << 18
"""Elements of an operand above which it is not looked at: SMEM does not hold as many."""

_AS_INTEGERS: Final = {1: "i1", 2: "<i2", 4: "<i4"}
_SUB_BYTE: Final = ("int2", "int4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
"""Types of which NumPy gives each number a byte, and the chip less."""

_LARGEST: Final = 1 << 22
"""Elements of an array above which it is not computed: no table for scalar prefetch is so large."""


@dataclass(frozen=True)
class KernelOperands:
    """What is known of one kernel's small operands.

    Attributes:
      name: the kernel's name; empty where the call gives none.
      types: dtypes and shapes of all of its operands, as the HLO of the kernel's call writes them,
        `s32[8]`; booleans reach a kernel as int32.
      values: words of SMEM by the operand's index; an operand that is not known is not in it.
      unread: operands that are known, and of which it is not known here how they lie in SMEM.
    """

    name: str
    types: tuple[str, ...]
    values: dict[int, tuple[int, ...]]
    unread: tuple[int, ...] = ()


def known_operands(closed: Any, args: Sequence[Any]) -> tuple[KernelOperands, ...]:
    """Compute the small operands of a program's kernels, as far as they can be known.

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
    made = []
    for name, indices, values in zip(names, wanted, results, strict=True):
        words = {
            index: words_of(np.asarray(result))
            for index, result in zip(indices, values, strict=True)
        }
        known_words = {index: them for index, them in words.items() if them is not None}
        made.append(KernelOperands(*name, known_words, tuple(sorted(words.keys() - known_words))))
    return tuple(made)


def words_of(values: np.ndarray) -> tuple[int, ...] | None:
    """Return the 32-bit words that hold an array in SMEM.

    A vector of 32 bits lies as it is. A row of a table takes 128 words, however short it is, and
    tiles of 128 columns and up to 8 rows lie one after the other: 1, 2 or 4 rows where the table
    has no more. Of a narrower type as many rows as fit share the words of a tile's row, the first
    in the lowest bits; a vector is cut into rows of 128 for that. Several tables in one array lie
    one after the other, each with whole tiles. Read off the layouts in libtpu's HLO and the
    addresses in its listings.

    Args:
      values: numbers, of any shape; booleans lie as int32 does.

    Returns:
      The words, signed; None where the layout is not known here: of numbers that are neither one
      nor two nor four bytes, or narrower than they lie in NumPy.
    """
    if values.dtype == np.bool_:
        values = values.astype(np.int32)
    size = values.dtype.itemsize
    if size not in _AS_INTEGERS or str(values.dtype).endswith(_SUB_BYTE):
        return None
    numbers: Any = np.ascontiguousarray(values).view(_AS_INTEGERS[size]).reshape(values.shape)
    if numbers.ndim == 0 or (numbers.ndim == 1 and size == 4):
        return tuple(int(number) for number in numbers.reshape(-1))
    if not numbers.size:
        return ()
    packed, most = 4 // size, _TILE
    if numbers.ndim == 1:
        most = packed
        length = -(-len(numbers) // (_ROW * packed)) * _ROW * packed
        numbers = np.pad(numbers, (0, length - len(numbers))).reshape(-1, _ROW)
    *tables, rows, columns = numbers.shape
    tile = max(packed, min(most, 1 << (rows - 1).bit_length()))
    down, across = -(-rows // tile), -(-columns // _ROW)
    padded = np.zeros((*tables, down * tile, across * _ROW), numbers.dtype)
    padded[..., :rows, :columns] = numbers
    tiles = padded.reshape(-1, down, tile // packed, packed, across, _ROW)
    together = np.ascontiguousarray(tiles.transpose(0, 1, 4, 2, 5, 3))
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
            types = tuple(_type_in_call(atom.aval) for atom in equation.invars)
            yield (
                (_kernel_name(equation), types),
                {
                    index: value
                    for index, value in enumerate(values)
                    if value is not None and _is_small(equation.invars[index])
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


def _type_in_call(aval: Any) -> str:
    """Write the type that an operand has where HLO calls the kernel: jax casts booleans before."""
    return re.sub(r"^pred\b", "s32", hlo_type(aval))


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


def _is_small(atom: Any) -> bool:
    """Whether an operand may be a table or a scalar for SMEM: numbers, and not too many."""
    aval = atom.aval
    if not hasattr(aval, "dtype") or not jnp.issubdtype(aval.dtype, jnp.number):
        return getattr(aval, "dtype", None) == jnp.bool_ and aval.size <= _LARGEST_TABLE
    return bool(aval.size <= _LARGEST_TABLE)


def _is_large(equation: Any) -> bool:
    return any(getattr(out.aval, "size", 0) > _LARGEST for out in equation.outvars)
