"""A museum of sick kernels: each with its cure, and the verdict of every rung on it.

A module of the museum has ``broken`` and ``fixed`` (the call, sick and cured), ``reference``
(NumPy, float64), ``cases()``, and five constants: ``EXPECTED`` (the verdict on ``broken``, by
rung), ``FIRST_CAUGHT`` (the first rung that blames the kernel, or "none"), ``GROUP`` (one of
`GROUPS`), ``SYMPTOM`` (what its author sees) and ``RULE`` (what its author did not know).

What a symptom says of a chip is what people report or what the rule lets expect; no kernel of the
museum was run on one.
"""

from types import ModuleType

from pallas_rungs.bugs import (
    accumulator_not_cleared,
    alias_read_after_write,
    aliased_block_not_written,
    all_of_k_in_a_block,
    block_index_past_the_end,
    blocks_too_small,
    branch_on_program_id,
    buffer_reused_too_early,
    captured_array,
    copy_left_in_flight,
    dma_without_wait,
    element_offsets_in_index_map,
    false_multiple_of,
    float16_operands,
    fully_masked_row,
    gradient_of_a_kernel,
    grid_rounded_down,
    index_by_array,
    index_map_axes_swapped,
    index_map_without_prefetch,
    int8_sum_wraps,
    mask_in_block_coordinates,
    masked_by_multiplying,
    narrow_gather,
    negative_index,
    offset_not_aligned,
    one_row_per_step,
    output_map_without_axis,
    parallel_reduction,
    partial_block_sum,
    prefetched_table_written,
    primitive_without_rule,
    product_at_default_precision,
    reduction_axis_outside,
    ref_without_brackets,
    remote_copy_not_received,
    row_of_packed_type,
    scalar_store_to_vmem,
    scan_with_outputs,
    scratch_kept_between_rows,
    store_of_another_dtype,
    sum_in_bfloat16,
    table_too_large_for_smem,
    unsorted_segments,
    vector_from_smem,
    wait_without_copy,
)

GROUPS: dict[str, str] = {
    "error while tracing": "museum-refused",
    "passes on CPU, fails to compile": "museum-refused",
    "NaN where numbers should be": "museum-wrong-numbers",
    "finite but wrong": "museum-wrong-numbers",
    "wrong on the chip only": "museum-on-the-chip",
    "hangs": "museum-on-the-chip",
    "only slow": "museum-on-the-chip",
}
"""The symptoms by which bugs are found, and the page of the book that shows those of each."""

MUSEUM: tuple[ModuleType, ...] = (
    captured_array,
    branch_on_program_id,
    gradient_of_a_kernel,
    index_map_without_prefetch,
    ref_without_brackets,
    store_of_another_dtype,
    partial_block_sum,
    accumulator_not_cleared,
    element_offsets_in_index_map,
    masked_by_multiplying,
    fully_masked_row,
    grid_rounded_down,
    output_map_without_axis,
    index_map_axes_swapped,
    alias_read_after_write,
    int8_sum_wraps,
    mask_in_block_coordinates,
    prefetched_table_written,
    scratch_kept_between_rows,
    block_index_past_the_end,
    index_by_array,
    dma_without_wait,
    reduction_axis_outside,
    parallel_reduction,
    aliased_block_not_written,
    buffer_reused_too_early,
    remote_copy_not_received,
    unsorted_segments,
    copy_left_in_flight,
    wait_without_copy,
    one_row_per_step,
    primitive_without_rule,
    scalar_store_to_vmem,
    scan_with_outputs,
    vector_from_smem,
    all_of_k_in_a_block,
    offset_not_aligned,
    float16_operands,
    narrow_gather,
    row_of_packed_type,
    table_too_large_for_smem,
    sum_in_bfloat16,
    negative_index,
    false_multiple_of,
    product_at_default_precision,
    blocks_too_small,
)
"""All bugs, in the order of the rungs that catch them first."""


def name(bug: ModuleType) -> str:
    """Return the name of a bug's module, e.g. ``"dma_without_wait"``."""
    return bug.__name__.rpartition(".")[2]


def title(bug: ModuleType) -> str:
    """Return the name of a bug as a phrase, e.g. ``"dma without wait"``."""
    return name(bug).replace("_", " ")


def anchor(bug: ModuleType) -> str:
    """Return the id of a bug's section in the book, e.g. ``"bug-dma-without-wait"``."""
    return f"bug-{name(bug).replace('_', '-')}"


def link(bug: ModuleType) -> str:
    """Return where a bug's section is, as seen from a page of the museum.

    For example ``"museum-on-the-chip.html#bug-dma-without-wait"``.
    """
    return f"{GROUPS[bug.GROUP]}.html#{anchor(bug)}"
