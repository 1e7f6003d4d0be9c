"""Blocks with which the product meets its gates, for each chip: found by estimates, kept as data.

Found by estimating `matmul_serpentine` with bm and bn of 512 and of 1024, bfloat16, (4096, 4096) by
(4096, 4096), with jax 0.12.0.1 and libtpu 0.0.50.1; the page "A product at the gate" shows all of
them. They are good for that size, and no more than a place to begin for another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import jax

from pallas_rungs.kernels.matmul_serpentine import matmul_serpentine, matmul_serpentine_gelu

MIB: Final = 2**20


@dataclass(frozen=True)
class ProductTile:
    """What `matmul_serpentine` is called with.

    Attributes:
      block: (bm, bn).
      vmem_limit_bytes: VMEM that it asks for: what the compiler takes for it, and some to spare.
    """

    block: tuple[int, int]
    vmem_limit_bytes: int


TILES: Final = {
    "v5e": ProductTile((512, 512), 32 * MIB),
    "v5p": ProductTile((512, 512), 32 * MIB),
    "v6e": ProductTile((1024, 1024), 48 * MIB),
    "tpu7x": ProductTile((1024, 1024), 48 * MIB),
}
"""By chip. v4 is not among them: blocks with all of K = 4096 are more than its VMEM."""


def product_for(chip: str, *, gelu: bool = False, **changed: Any) -> partial[jax.Array]:
    """Return the product, or the product with a GELU, with the blocks for a chip.

    Args:
      chip: one of `TILES`.
      gelu: whether GELU of the product is asked for.
      **changed: arguments of the call that are to be others.

    Raises:
      ValueError: no blocks were looked for on that chip.
    """
    if chip not in TILES:
        raise ValueError(
            f"no blocks of the product are known for {chip!r}: they were looked for on "
            f"{', '.join(TILES)}; call matmul_serpentine with a block of your own"
        )
    tile = TILES[chip]
    call = matmul_serpentine_gelu if gelu else matmul_serpentine
    made = partial(
        call, **{"block": tile.block, "vmem_limit_bytes": tile.vmem_limit_bytes, **changed}
    )
    made.__name__ = call.__name__  # type: ignore[attr-defined] # the compiler's name for it
    return made
