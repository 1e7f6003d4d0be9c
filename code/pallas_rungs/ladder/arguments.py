"""Arguments written as text: `f32[256,512], bf16[512,512]`, and the seeded arrays they stand for.

The parser needs no jax, so a shape string that does not parse is refused before anything starts.

One argument is a dtype with a shape, `f32[256,512]`; a scalar is `i32` or `i32[]`. A range may
follow in braces, half-open as in Python: `i32[8]{0:4}`. A Python literal (`128`, `1.5`, `True`,
`'relu'`) is passed as it is. `NAME=` before an argument passes it by name.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pallas_rungs.ladder.loading import LoadError

_DTYPES: dict[str, str] = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "i4": "int4",
    "u4": "uint4",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "f8_e4m3fn": "float8_e4m3fn",
    "f8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2": "float8_e5m2",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f4_e2m1fn": "float4_e2m1fn",
    "c64": "complex64",
}
_ALIASES: dict[str, str] = {
    "s4": "i4",
    "s8": "i8",
    "s16": "i16",
    "s32": "i32",
    "s64": "i64",
    "pred": "bool",
    "b1": "bool",
    "f8e4m3fn": "f8_e4m3fn",
    "f8e5m2": "f8_e5m2",
    "f8e4m3b11fnuz": "f8_e4m3b11fnuz",
    "f4e2m1fn": "f4_e2m1fn",
}
_WIDE = {"float64": "f32", "int64": "i32", "uint64": "u32"}

_TOKEN = re.compile(
    r"\s*(?P<dtype>[A-Za-z_]\w*)\s*(?P<shape>\[[^\]]*\])?\s*(?P<range>\{[^}]*\})?\s*"
)
_NAME = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=")
_LITERAL = re.compile(r"\s*(?P<literal>True|False|None|'[^']*'|\"[^\"]*\"|[-+]?[\d.][\w.+-]*)\s*")


class ArgumentError(LoadError):
    """Arguments that cannot be made of a text; the message says why, and where in the text."""


@dataclass(frozen=True)
class ArgumentSpec:
    """One argument.

    Attributes:
      dtype: NumPy name of the dtype; empty for a literal.
      shape: dimensions; `()` for a scalar.
      low: smallest value, None for the default of the dtype.
      high: exclusive upper bound, None for the default of the dtype.
      literal: the Python value, where `dtype` is empty.
      name: the parameter that it is passed to by name; empty for one by position.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    literal: Any = None
    name: str = ""

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers."""
        return self.dtype.startswith(("int", "uint"))

    def __str__(self) -> str:
        if not self.dtype:
            return repr(self.literal)
        short = next(name for name, dtype in _DTYPES.items() if dtype == self.dtype)
        return f"{short}[{','.join(map(str, self.shape))}]"


def parse_arguments(text: str, *, x64: bool = False) -> tuple[ArgumentSpec, ...]:
    """Parse an argument string.

    Args:
      text: arguments separated by commas.
      x64: whether 64-bit types mean what they say (`JAX_ENABLE_X64`).

    Raises:
      ArgumentError: with the text, a mark under the place, and what was expected there.
    """
    specs: list[ArgumentSpec] = []
    position = 0
    if not text.strip():
        return ()
    while True:
        name, position = _name(text, position, specs)
        if match := _LITERAL.match(text, position):
            spec = _literal(text, match)
        elif match := _TOKEN.match(text, position):
            spec = _array(text, match, x64)
        else:
            raise _error(text, _skip_space(text, position), "an argument such as f32[256,512]")
        specs.append(replace(spec, name=name))
        position = match.end()
        if position == len(text):
            return tuple(specs)
        if text[position] != ",":
            rest = text[position]
            if rest == "[":
                raise _error(text, position, "a closing ] for this bracket")
            if rest == "{":
                raise _error(text, position, "a closing } for this brace")
            if rest == "(":
                raise _error(text, position, "a shape in square brackets, such as f32[256,512]")
            raise _error(text, position, "a comma or the end")
        position += 1


def parse_over(given: Sequence[str]) -> dict[str, list[Any]]:
    """Parse what to sweep over: `bm=128,256`, `block=(8,128),(16,128)` or `block=8,128; 16,128`.

    Args:
      given: a name and its values each.

    Returns:
      Python literals by name, in the order given.

    Raises:
      ArgumentError: with the text, a mark under the place, and what was expected there.
    """
    found: dict[str, list[Any]] = {}
    for text in given:
        match = _NAME.match(text)
        if match is None:
            raise _error(
                text, _skip_space(text, 0), "a name and an equals sign, such as bm=128,256"
            )
        if match["name"] in found:
            raise _error(text, match.start("name"), f"{match['name']} in one --over only")
        values = text[match.end() :]
        pieces = values.split(";") if ";" in values else [f"[{values}]"]
        try:
            read = [ast.literal_eval(piece.strip()) for piece in pieces if piece.strip()]
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            where = _skip_space(text, match.end())
            raise _error(text, where, "Python numbers, quoted words or tuples of them") from None
        found[match["name"]] = read if ";" in values else read[0]
        if not found[match["name"]]:
            raise _error(text, len(text), "a value, such as 128")
    return found


def _name(text: str, position: int, before: Sequence[ArgumentSpec]) -> tuple[str, int]:
    """Return the name that an argument is given by, if it is, and where its value starts."""
    match = _NAME.match(text, position)
    if match is None:
        if before and before[-1].name:
            where = _skip_space(text, position)
            raise _error(text, where, f"a name: {before[-1].name}= before it has one")
        return "", position
    if match["name"] in [spec.name for spec in before]:
        raise _error(text, match.start("name"), f"{match['name']} only once")
    return match["name"], match.end()


def _literal(text: str, match: re.Match[str]) -> ArgumentSpec:
    try:
        return ArgumentSpec("", literal=ast.literal_eval(match["literal"]))
    except (ValueError, SyntaxError):
        raise _error(text, match.start("literal"), "a number, a quoted word or a dtype") from None


def _array(text: str, match: re.Match[str], x64: bool) -> ArgumentSpec:
    name = match["dtype"]
    start = match.start("dtype")
    dtype = _dtype_named(name)
    if dtype is None:
        raise _error(text, start, f"a dtype; {name!r} is none. The dtypes are {', '.join(_DTYPES)}")
    if dtype in _WIDE and not x64:
        raise _error(
            text,
            start,
            f"a dtype that jax has with 64-bit types off; write {_WIDE[dtype]}, "
            "or set JAX_ENABLE_X64=1 to turn them on",
        )
    shape = _shape(text, match)
    low, high = _range(text, match, dtype)
    return ArgumentSpec(dtype, shape, low, high)


def _dtype_named(name: str) -> str | None:
    lowered = name.lower()
    short = _ALIASES.get(lowered, lowered)
    if short in _DTYPES:
        return _DTYPES[short]
    return lowered if lowered in _DTYPES.values() else None


def _shape(text: str, match: re.Match[str]) -> tuple[int, ...]:
    if match["shape"] is None or not match["shape"][1:-1].strip():
        return ()
    dims: list[int] = []
    position = match.start("shape") + 1
    for part in match["shape"][1:-1].split(","):
        where = _skip_space(text, position)
        if not re.fullmatch(r"\s*\d[\d_]*\s*", part):
            raise _error(text, where, f"a dimension, a whole number; {part.strip()!r} is none")
        dims.append(int(part))
        if dims[-1] == 0:
            raise _error(text, where, "a dimension of at least 1; an empty array tries nothing")
        position += len(part) + 1
    return tuple(dims)


def _range(text: str, match: re.Match[str], dtype: str) -> tuple[float | None, float | None]:
    if match["range"] is None:
        return None, None
    start = match.start("range")
    parts = match["range"][1:-1].split(":")
    bounds = _bounds(dtype)
    try:
        low, high = (float(part) if bounds is None else int(part) for part in parts)
    except ValueError:
        whole = "whole numbers, " if bounds else ""
        raise _error(
            text, start, f"a range such as {{0:4}}, {whole}the upper end excluded"
        ) from None
    if not low < high:
        raise _error(text, start, f"a range that holds a value; {match['range']} is empty")
    if bounds and not bounds[0] <= low < high <= bounds[1]:
        raise _error(text, start, f"a range within that of {dtype}, {{{bounds[0]}:{bounds[1]}}}")
    if not math.isfinite(high - low):
        raise _error(text, start, "a range with finite ends")
    return low, high


def _bounds(dtype: str) -> tuple[int, int] | None:
    """The smallest value of an integer dtype and the first one past its largest."""
    match = re.fullmatch(r"(u?)int(\d+)", dtype)
    if match is None:
        return None
    bits = int(match[2])
    return (0, 1 << bits) if match[1] else (-(1 << (bits - 1)), 1 << (bits - 1))


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _error(text: str, position: int, expected: str) -> ArgumentError:
    return ArgumentError(
        f"the arguments do not parse at character {position + 1}: expected {expected}\n"
        f"  {text}\n  {' ' * position}^"
    )


def check_size(specs: Sequence[ArgumentSpec]) -> None:
    """See that the arrays that `specs` stand for can be in this machine's memory.

    They are drawn with 8 bytes for each element, whatever their dtype.

    Raises:
      ArgumentError: they cannot.
    """
    import psutil

    needed = sum(8 * math.prod(spec.shape) for spec in specs if spec.dtype)
    there = psutil.virtual_memory().total
    if needed > there:
        raise ArgumentError(
            f"the arguments are too large to be made here: that takes {needed / 2**30:,.0f} GiB, "
            f"and this machine has {there / 2**30:,.0f} GiB of memory; give smaller shapes"
        )


def make_inputs(specs: Sequence[ArgumentSpec], seed: int = 0) -> tuple[Any, ...]:
    """Make the arrays that `specs` stand for, the same for the same seed.

    Floats are standard normal. 8-bit integers are data, in [-100, 100) or [0, 200). Wider integers
    may be indices, so they are small and not negative: below the smallest dimension that any
    argument has and below 128; a scalar or a short vector (at most 256), which is often a table of
    blocks, below 4. A range in the text overrules all of this.

    Returns:
      NumPy arrays (of `ml_dtypes` types where NumPy has none), and literals as they are.
    """
    import ml_dtypes
    import numpy as np

    rng = np.random.default_rng(seed)
    dims = [dim for spec in specs for dim in spec.shape if dim > 1]
    bound = min([128, *dims])
    values: list[Any] = []
    for spec in specs:
        if not spec.dtype:
            values.append(spec.literal)
            continue
        dtype = np.dtype(getattr(ml_dtypes, spec.dtype, None) or spec.dtype)
        if spec.dtype == "bool":
            value: Any = rng.integers(0, 2, spec.shape)
        elif spec.is_integer:
            kind = np.uint64 if spec.dtype == "uint64" else np.int64
            value = rng.integers(*_integer_bounds(spec, bound), spec.shape, kind)
        elif spec.low is not None and spec.high is not None:
            value = rng.uniform(spec.low, spec.high, spec.shape)
        elif spec.dtype.startswith("complex"):
            value = rng.standard_normal(spec.shape) + 1j * rng.standard_normal(spec.shape)
        else:
            value = rng.standard_normal(spec.shape)
        values.append(np.asarray(value).astype(dtype))
    return tuple(values)


def _integer_bounds(spec: ArgumentSpec, bound: int) -> tuple[int, int]:
    if spec.low is not None and spec.high is not None:
        return int(spec.low), int(spec.high)
    if spec.dtype in ("int4", "uint4"):
        return (-8, 8) if spec.dtype == "int4" else (0, 16)
    if spec.dtype in ("int8", "uint8"):
        return (-100, 100) if spec.dtype == "int8" else (0, 200)
    size = 1
    for dim in spec.shape:
        size *= dim
    if len(spec.shape) <= 1 and size <= 256:
        return 0, min(bound, 4)
    return 0, bound
