"""The BlockSpec sandbox: page data, random settings and the exhibit itself."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp

from pallas_rungs.compilers.chips import CURRENT_CHIPS
from pallas_rungs.exhibits import blockspec_legality as legality
from pallas_rungs.exhibits import blockspec_picture
from pallas_rungs.exhibits.blockspec import (
    DTYPES,
    INDEXES,
    KINDS,
    Dimension,
    Setting,
    block_mapping,
    derive,
)
from pallas_rungs.exhibits.exhibit import Exhibit
from pallas_rungs.performance import vmem_budget
from pallas_rungs.performance.chip_table import chip_facts

DEFAULT = Setting(
    (Dimension(700, 256, "blocked", "program"), Dimension(1000, 256, "blocked", "program")),
    "float32",
    "v5e",
    7,
)

_MARK = 987_654_321


def _refused_words(array: tuple[int, ...], dtype: str) -> str:
    """Take the lowering's words for a block of 3 along each dimension, shapes left open."""
    dims = tuple(Dimension(extent, 3, "blocked", "program") for extent in array)
    mapping = block_mapping(Setting(dims, dtype, "v5e"))
    words = legality.block_shape_refusal("v5e", mapping)
    for shown, name in ((str(mapping.block_shape), "{block}"), (str(array), "{array}")):
        if shown not in words:
            raise RuntimeError(f"the lowering's refusal no longer names {shown}: {words!r}")
        words = words.replace(shown, name)
    return words


def _shown_dim(kind: str) -> str:
    """Take the library's way of writing a block dimension, its size left open."""
    mapping = block_mapping(Setting((Dimension(_MARK, _MARK, kind, "zero"),), "float32", "v5e"))
    return str(mapping.block_shape)[1:-2].replace(str(_MARK), "{size}")


def data() -> dict[str, Any]:
    """Return what the page's arithmetic needs to know of the installed library and compiler."""
    return {
        "versions": {"jax": jax.__version__},
        "chips": {
            chip: {
                "limit": vmem_budget.scoped_limit(chip),
                "capacity": chip_facts(chip).vmem,
                "leastRows": vmem_budget.tile(chip, "float32", (1, 1))[0],
                "mostRows": vmem_budget.tile(chip, "float32", (1024, 1024))[0],
                "lanes": vmem_budget.tile(chip, "float32", (1024, 1024))[1],
            }
            for chip in CURRENT_CHIPS
        },
        "dtypes": {dtype: jnp.dtype(dtype).itemsize for dtype in DTYPES},
        "words": {
            "tiled": _refused_words((1000, 1000), "float32"),
            "flat": {dtype: _refused_words((1000,), dtype) for dtype in DTYPES},
            "scalar": legality.lowering_words("scalar"),
            "mixed": legality.lowering_words("mixed"),
            "dims": {kind: _shown_dim(kind) for kind in KINDS},
        },
    }


def draw(seed: int, count: int) -> list[dict[str, Any]]:
    """Draw random settings: one, two and three dimensions, legal and illegal, odd and even."""
    rng = random.Random(seed)
    settings: list[dict[str, Any]] = []
    while len(settings) < count:
        dims = _draw_dims(rng)
        for _ in range(min(4, count - len(settings))):
            setting = Setting(dims, rng.choice(DTYPES), rng.choice(CURRENT_CHIPS))
            programs = 1
            for extent in setting.grid:
                programs *= extent
            step = rng.choice((0, programs - 1, rng.randrange(programs), rng.randrange(programs)))
            settings.append({**setting.to_json(), "step": step})
    return settings


def _draw_dims(rng: random.Random) -> tuple[Dimension, ...]:
    if rng.random() < 0.08:
        return tuple(_draw_large_dim(rng) for _ in range(2))
    rank = rng.choice((1, 2, 2, 2, 3, 3))
    kinds = [rng.choice(("blocked", "blocked", "blocked", *KINDS)) for _ in range(rank)]
    if rng.random() < 0.25:
        kinds = [rng.choice(("element", "element", "squeezed")) for _ in range(rank)]
    if rng.random() < 0.04:
        # A block without axes meets lowering's rule of shapes only where the array has one element.
        return tuple(Dimension(1, 1, "squeezed", rng.choice(INDEXES)) for _ in range(rank))
    if rng.random() < 0.04:
        # Element offsets in two programs: the second one strays, and is clamped to what is left.
        block = 128 * rng.randint(1, 4)
        return (Dimension(2 * block, block, "blocked", "scaled"),)
    return tuple(
        _draw_dim(rng, kind, unit) for kind, unit in zip(kinds, (1, 8, 128)[-rank:], strict=True)
    )


def _draw_dim(rng: random.Random, kind: str, unit: int) -> Dimension:
    if rng.random() < 0.65:
        block = unit * rng.choice((1, 2, 3, 4, 8, 16, rng.randint(1, 160 // unit + 20)))
        array = block * rng.randint(1, 12) + rng.choice((0, 0, 0, unit, rng.randrange(unit * 2)))
    else:
        block = rng.randint(1, 300)
        array = rng.randint(1, 3000)
    if rng.random() < 0.15:
        array = block
    if rng.random() < 0.08:
        array = block = 1
    index = rng.choice(("program", "program", "program", *INDEXES))
    if kind == "element" and rng.random() < 0.6:
        index = "scaled"
    return Dimension(array, block, kind, index)


def _draw_large_dim(rng: random.Random) -> Dimension:
    """Draw a dimension whose blocks are near the VMEM budget."""
    block = 128 * rng.randint(4, 20)
    return Dimension(block * rng.randint(1, 4), block, "blocked", rng.choice(("program", "zero")))


def _derive(setting: dict[str, Any]) -> dict[str, Any]:
    return derive(Setting.from_json(setting))


def _fallback() -> tuple[str, str]:
    result = derive(DEFAULT)
    return result["sentence"], blockspec_picture.svg(DEFAULT, result)


EXHIBIT = Exhibit(
    name="blockspec-sandbox",
    title="BlockSpec sandbox",
    default=DEFAULT.to_json(),
    data=data,
    derive=_derive,
    draw=draw,
    fallback=_fallback,
)
