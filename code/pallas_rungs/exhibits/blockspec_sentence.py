"""The sentence that the BlockSpec sandbox says aloud of a setting.

`exhibits/src/logic/blockspec-sandbox.js` says the same, word for word.
"""

from __future__ import annotations

from typing import Any

_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def bytes_text(count: int) -> str:
    """Write a number of bytes with at most one decimal, e.g. `"1.5 MiB"`."""
    for unit, size in _UNITS:
        if count >= size:
            tenths = (count * 10 + size // 2) // size
            whole, rest = divmod(tenths, 10)
            return f"{whole}.{rest} {unit}" if rest else f"{whole} {unit}"
    return f"{count} B"


def tuple_text(numbers: list[int] | tuple[int, ...]) -> str:
    """Write numbers as Python writes a tuple."""
    return f"({numbers[0]},)" if len(numbers) == 1 else f"({', '.join(map(str, numbers))})"


def by_text(numbers: list[int] | tuple[int, ...]) -> str:
    """Write a shape as people say it, e.g. `"256 × 128"`."""
    return " × ".join(map(str, numbers))


def sentence(chip: str, array: tuple[int, ...], result: dict[str, Any]) -> str:
    """Say what the program on show reads, and what the rungs make of the block.

    Args:
      chip: the chip's name.
      array: the array's shape.
      result: the other entries of what `blockspec.derive` returns.
    """
    who = f"Program {tuple_text(result['program'])}, {result['step'] + 1} of {result['programs']},"
    match result["reach"]:
        case "inside":
            where = (
                f"starts at {tuple_text(result['start'])} and holds "
                f"{by_text(result['window'])} elements of the array."
            )
        case "overhang":
            where = (
                f"starts at {tuple_text(result['start'])}; {by_text(result['valid'])} of its "
                f"{by_text(result['window'])} elements are in the array, the rest is padding."
            )
        case _:
            where = (
                f"asks for {tuple_text(result['start'])}, outside the array of "
                f"{by_text(array)}; interpret mode reads at {tuple_text(result['read'])} instead."
            )
    memory = (
        f"In flight: {bytes_text(result['inFlight'])} of VMEM, by estimate; "
        f"the {chip} compiler allows {bytes_text(result['limit'])}."
    )
    refused = [refusal["rung"] for refusal in result["refusals"]]
    if refused:
        verdict = f"Refused at: {', '.join(dict.fromkeys(refused))}."
    elif result["budget"] == "depends":
        verdict = "Legal to lower; whether it compiles depends on where XLA places the arrays."
    else:
        verdict = "Legal to lower, and it fits."
    return f"{who} {where} {memory} {verdict}"
