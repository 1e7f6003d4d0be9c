"""A museum of sick kernels: each with its cure, and the verdict of every rung on it.

A module of the museum has ``broken`` and ``fixed`` (the call, sick and cured), ``reference``
(NumPy, float64), ``cases()``, and four constants: ``EXPECTED`` (the verdict on ``broken``, by
rung), ``FIRST_CAUGHT`` (the first rung whose verdict is not "passed", or "none"), ``SYMPTOM``
(what its author sees) and ``RULE`` (what its author did not know).
"""

from types import ModuleType

from pallas_rungs.bugs import (
    accumulator_not_cleared,
    all_of_k_in_a_block,
    block_index_past_the_end,
    branch_on_program_id,
    captured_array,
    dma_without_wait,
    element_offsets_in_index_map,
    masked_by_multiplying,
    negative_index,
    offset_not_aligned,
    one_row_per_step,
    parallel_reduction,
    partial_block_sum,
    primitive_without_rule,
    reduction_axis_outside,
    scalar_store_to_vmem,
)

MUSEUM: tuple[ModuleType, ...] = (
    captured_array,
    branch_on_program_id,
    partial_block_sum,
    accumulator_not_cleared,
    element_offsets_in_index_map,
    masked_by_multiplying,
    dma_without_wait,
    reduction_axis_outside,
    parallel_reduction,
    block_index_past_the_end,
    one_row_per_step,
    primitive_without_rule,
    scalar_store_to_vmem,
    all_of_k_in_a_block,
    offset_not_aligned,
    negative_index,
)
"""All bugs, in the order of the rungs that catch them first."""


def title(bug: ModuleType) -> str:
    """Return the name of a bug as a phrase, e.g. ``"dma without wait"``."""
    return bug.__name__.rpartition(".")[2].replace("_", " ")
