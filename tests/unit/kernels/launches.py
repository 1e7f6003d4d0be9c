"""What a call hands to `pallas_call`, from its trace: grid, blocks and their order, parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.jaxpr_util import all_eqns


def launches(call: Any, *args: Any, **options: Any) -> list[Any]:
    """The parameters of each pallas_call that a function makes."""
    equations = jax.make_jaxpr(lambda *args: call(*args, **options))(*args).eqns
    return [e.params for e in equations if e.primitive.name == "pallas_call"]


def products(body: Any) -> list[Any]:
    """The products of matrices in a kernel's body, those in its branches too."""
    return [equation for _, equation in all_eqns(body) if equation.primitive.name == "dot_general"]


def blocks_in_order(launch: Any, operand: int) -> list[tuple[int, ...]]:
    """The block of an operand that each program asks for, in the order of the grid."""
    mapping = launch["grid_mapping"]
    chosen = mapping.block_mappings[operand].index_map_jaxpr
    return [
        tuple(map(int, jax.core.eval_jaxpr(chosen.jaxpr, chosen.consts, *map(jnp.int32, program))))
        for program in np.ndindex(*mapping.grid)
    ]
