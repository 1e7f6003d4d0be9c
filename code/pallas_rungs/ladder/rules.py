"""From a verdict to the rules that the kernel may have broken, each a bug of the museum.

A rule is named after the museum's bug that breaks it. A message that only one fault is known to
cause gives a *likely* rule; a message or a pattern of wrong numbers that several cause gives
*candidates*. Where nothing is known, nothing is said.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pallas_rungs
from pallas_rungs.ladder.findings import (
    NOT_WRITTEN,
    PAST_THE_END,
    SWAPPED,
    WITHOUT_AXIS,
)
from pallas_rungs.ladder.status import Rung, Status
from pallas_rungs.ladder.verdict import Verdict

SITE = "https://pallas-rungs.github.io/pallas-rungs/"
"""Where the book is published; every link to it starts with this."""

_BUGS = Path(pallas_rungs.__file__).parent / "bugs"


@dataclass(frozen=True)
class Rule:
    """What the author of a sick kernel did not know.

    Attributes:
      name: the museum's module that breaks the rule, e.g. `"captured_array"`.
      text: the rule, one sentence.
      page: the book's page that shows the bug, e.g. `"museum-refused"`.
    """

    name: str
    text: str
    page: str

    @property
    def link(self) -> str:
        """Address of the bug's section in the book."""
        return f"{SITE}book/evidence/{self.page}.html#bug-{self.name.replace('_', '-')}"


@dataclass(frozen=True)
class Suggestion:
    """A rule that a verdict points to.

    Attributes:
      rule: the rule.
      likely: the verdict's message is known to come from this fault; else the rule is one of
        several that would explain it.
    """

    rule: Rule
    likely: bool

    @property
    def kind(self) -> str:
        """`"Likely rule"` or `"Candidate"`."""
        return "Likely rule" if self.likely else "Candidate"

    def __str__(self) -> str:
        return f"{self.kind}: {self.rule.text} {self.rule.link}"

    def to_json(self) -> dict[str, str]:
        """Return plain JSON data."""
        return {
            "rule": self.rule.name,
            "text": self.rule.text,
            "link": self.rule.link,
            "kind": "likely" if self.likely else "candidate",
        }


Holds = Callable[[Verdict], bool]


@dataclass(frozen=True)
class _Sign:
    """What a verdict must show for a rule to be named; `likely` ones end the search."""

    rule: str
    holds: Holds
    likely: bool = True


def _says(pattern: str) -> Holds:
    compiled = re.compile(pattern)

    def holds(verdict: Verdict) -> bool:
        error = verdict.error
        if error is None or verdict.status not in (Status.REFUSED, Status.CRASHED):
            return False
        return bool(compiled.search(f"{error.type}: {error.full or error.message}"))

    return holds


def _differs(pattern: str) -> Holds:
    compiled = re.compile(pattern)

    def holds(verdict: Verdict) -> bool:
        difference = verdict.difference
        if verdict.status is not Status.WRONG or difference is None:
            return False
        return any(compiled.match(each) for each in difference.patterns)

    return holds


def _both(*conditions: Holds) -> Holds:
    return lambda verdict: all(condition(verdict) for condition in conditions)


def _uses(feature: str) -> Holds:
    return lambda verdict: feature in verdict.details.get("uses", ())


def _lacks(feature: str) -> Holds:
    return lambda verdict: feature not in verdict.details.get("uses", ())


def _wrong(verdict: Verdict) -> bool:
    return verdict.status is Status.WRONG


def _right_before(label: str) -> Holds:
    """Holds where an easier rung or setting did not find the numbers wrong."""
    return lambda verdict: verdict.details.get("before", {}).get(label) != Status.WRONG


def _on(rung: Rung, *targets: str) -> Holds:
    return lambda verdict: verdict.rung is rung and (not targets or verdict.target in targets)


def _simplified(verdict: Verdict) -> bool:
    return verdict.status is Status.WRONG and "simplified" in verdict.details


_RACE = _says("RACE DETECTED")
_NAN = _differs("NaN")

_SIGNS: tuple[_Sign, ...] = (
    _Sign("captured_array", _says(r"captures constants|captures non-scalar array constants")),
    _Sign("branch_on_program_id", _says(r"TracerBoolConversionError")),
    _Sign("gradient_of_a_kernel", _says(r"Linearization failed to produce known values")),
    _Sign(
        "index_map_without_prefetch", _says(r"<lambda>\(\) (takes|missing) .*positional argument")
    ),
    _Sign("ref_without_brackets", _says(r"got a Ref\b.*a Ref can't be passed")),
    _Sign("store_of_another_dtype", _says(r"Invalid dtype for `swap`")),
    _Sign("index_by_array", _says(r"Cannot do int indexing on TPU")),
    _Sign("scan_with_outputs", _says(r"Scan with \d+ extensive")),
    _Sign("vector_from_smem", _says(r"Can only load scalars from SMEM")),
    _Sign("narrow_gather", _says(r"Multiple source vregs along gather dimension")),
    _Sign("output_map_without_axis", _both(_says(r"Revisited block"), _uses(WITHOUT_AXIS))),
    _Sign("reduction_axis_outside", _says(r"Revisited block"), likely=False),
    _Sign("unsorted_segments", _says(r"Revisited block"), likely=False),
    _Sign("one_row_per_step", _says(r"block shape are divisible by 8 and 128")),
    _Sign("scalar_store_to_vmem", _says(r"Cannot store scalars to VMEM")),
    _Sign("primitive_without_rule", _says(r"Unimplemented primitive in Pallas \w+ lowering")),
    _Sign(
        "all_of_k_in_a_block",
        _says(r"ScopedVmemOom|Scoped allocation with size|memory space vmem|space=vmem"),
        likely=False,
    ),
    _Sign("offset_not_aligned", _says(r"cannot statically prove that index .* multiple of 128")),
    _Sign(
        "row_of_packed_type", _says(r"cannot statically prove that index .* multiple of \d{1,2}\b")
    ),
    _Sign("float16_operands", _says(r"Invalid vector type for (load|store)"), likely=False),
    _Sign("table_too_large_for_smem", _says(r"memory space smem|space=smem"), likely=False),
    _Sign("wait_without_copy", lambda v: v.status is Status.DEADLOCKED, likely=False),
    _Sign("masked_by_multiplying", _simplified),
    _Sign("index_map_axes_swapped", _both(_differs("blocks exchanged"), _uses(SWAPPED))),
    _Sign(
        "index_map_axes_swapped", _both(_differs("wrong in whole blocks"), _uses(SWAPPED)), False
    ),
    _Sign("output_map_without_axis", _both(_wrong, _uses(WITHOUT_AXIS)), likely=False),
    _Sign("parallel_reduction", _both(_RACE, _on(Rung.SIMULATE, "two cores"), _lacks("copies"))),
    _Sign("dma_without_wait", _both(_RACE, _uses("copies")), likely=False),
    _Sign("parallel_reduction", _both(_RACE, _uses("parallel axes")), likely=False),
    _Sign("dma_without_wait", _both(_says(r"has non-zero count"), _uses("copies")), likely=False),
    _Sign(
        "copy_left_in_flight", _both(_says(r"has non-zero count"), _uses("copies")), likely=False
    ),
    _Sign("index_map_axes_swapped", _both(_says(r"Out-of-bounds block index"), _uses(SWAPPED))),
    _Sign("element_offsets_in_index_map", _says(r"Out-of-bounds block index"), likely=False),
    _Sign("block_index_past_the_end", _says(r"Out-of-bounds block index"), likely=False),
    _Sign("block_index_past_the_end", _says(r"Check failed: llo::CouldLtS32"), likely=False),
    _Sign(
        "dma_without_wait",
        _both(_NAN, _uses("copies"), _on(Rung.SIMULATE), _right_before("interpret")),
        likely=False,
    ),
    _Sign("partial_block_sum", _both(_NAN, _uses("reductions over partial blocks")), likely=False),
    _Sign(
        "element_offsets_in_index_map", _both(_wrong, _uses(PAST_THE_END), _lacks(SWAPPED)), False
    ),
    _Sign(
        "grid_rounded_down",
        _both(_differs("(NaN|wrong) to the end"), _uses(NOT_WRITTEN), _lacks(PAST_THE_END)),
        likely=False,
    ),
    _Sign(
        "fully_masked_row",
        _both(_differs("NaN (to the end|in whole)"), _uses("masks of minus infinity")),
        likely=False,
    ),
    _Sign(
        "accumulator_not_cleared",
        _both(_differs("NaN everywhere"), _uses("accumulators that are never cleared")),
        likely=False,
    ),
    _Sign(
        "parallel_reduction",
        _both(
            _wrong,
            _on(Rung.SIMULATE, "two cores"),
            _uses("accumulators"),
            _right_before("simulate default"),
        ),
        likely=False,
    ),
)

_NO_RUNG = "no rung catches it, so that no verdict can point to it"
_NUMBERS = "wrong numbers that look like those of many other faults"
NO_SIGN = {
    "negative_index": _NO_RUNG,
    "sum_in_bfloat16": _NO_RUNG,
    "false_multiple_of": _NO_RUNG,
    "product_at_default_precision": _NO_RUNG,
    "blocks_too_small": _NO_RUNG,
    "alias_read_after_write": _NUMBERS,
    "int8_sum_wraps": _NUMBERS,
    "mask_in_block_coordinates": _NUMBERS,
    "prefetched_table_written": _NUMBERS,
    "scratch_kept_between_rows": _NUMBERS,
    "aliased_block_not_written": _NUMBERS,
    "buffer_reused_too_early": _NUMBERS,
    "remote_copy_not_received": _NUMBERS,
}
"""Bugs of the museum that no verdict points to, and why."""


def rule_names() -> tuple[str, ...]:
    """Return the names of the rules that a verdict can point to."""
    return tuple(dict.fromkeys(sign.rule for sign in _SIGNS))


@cache
def rule_named(name: str) -> Rule:
    """Return a rule, in the museum's words.

    The module is read and not imported: the command line does not import jax.

    Raises:
      KeyError: the museum has no such bug, or it states no RULE.
    """
    stated = _constants(_BUGS / f"{name}.py")
    if "RULE" not in stated:
        raise KeyError(f"the museum has no bug {name!r} that states a RULE")
    page = _constants(_BUGS / "__init__.py")["GROUPS"][stated["GROUP"]]
    return Rule(name, stated["RULE"], page)


def _constants(module: Path) -> dict[str, Any]:
    """Return what a module assigns to names in capitals as plain literals; {} if there is none."""
    found = {}
    for node in ast.parse(module.read_bytes()).body if module.is_file() else ():
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.isupper():
                with contextlib.suppress(ValueError):
                    found[target.id] = ast.literal_eval(node.value)
    return found


def suggestions(verdict: Verdict) -> tuple[Suggestion, ...]:
    """Return the rules that a verdict points to: one that is likely, or candidates, or none."""
    if not verdict.status.blames_kernel:
        return ()
    found = [sign for sign in _SIGNS if sign.holds(verdict)]
    likely = [sign for sign in found if sign.likely]
    chosen = dict.fromkeys((sign.rule, sign.likely) for sign in (likely[:1] or found))
    return tuple(Suggestion(rule_named(name), certain) for name, certain in chosen)
