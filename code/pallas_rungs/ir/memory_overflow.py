"""Reading the compiler's words about memory that does not fit."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"": 1, "B": 1, "K": 2**10, "KB": 2**10, "KiB": 2**10, "M": 2**20, "MB": 2**20}
_UNITS |= {"MiB": 2**20, "G": 2**30, "GB": 2**30, "GiB": 2**30}
_SIZE = r"([\d.]+)\s*([KMG]i?B?|B)?\b"

_SCOPED = re.compile(rf"Scoped allocation with size {_SIZE} and limit {_SIZE}")
_ALLOCATION = re.compile(r"Allocation \(size=(\d+)\) would exceed memory \(size=(\d+)\)")
_SPACE = re.compile(r"space=(\w+)")
_RAN_OUT = re.compile(rf"Ran out of memory in memory space (\w+)\. Used {_SIZE} of {_SIZE}")
_BUFFERING = re.compile(r"This allocation is (\w+) buffered")
_BUFFER_SIZE = re.compile(rf"Size:\s*{_SIZE}")


def memory_overflow(message: str) -> dict[str, Any] | None:
    """Read a compiler's refusal for lack of on-chip memory.

    Args:
      message: the compiler's whole message.

    Returns:
      None when it is no such refusal, else `space` ("vmem", "smem", …), `used` and `limit` in
      bytes and, where the message tells, `buffer` in bytes (the one allocation that did not fit)
      and `buffering` ("single", "double").
    """
    found: dict[str, Any]
    if match := _SCOPED.search(message):
        found = {
            "space": "vmem" if "vmem" in message.lower() else "",
            "used": _bytes(match[1], match[2]),
            "limit": _bytes(match[3], match[4]),
        }
    elif match := _RAN_OUT.search(message):
        found = {
            "space": match[1],
            "used": _bytes(match[2], match[3]),
            "limit": _bytes(match[4], match[5]),
        }
    elif match := _ALLOCATION.search(message):
        space = _SPACE.search(message)
        found = {
            "space": space[1] if space else "",
            "used": int(match[1]),
            "limit": int(match[2]),
            "buffer": int(match[1]),
        }
    else:
        return None
    if match := _BUFFERING.search(message):
        found["buffering"] = match[1]
    if "buffer" not in found and (sizes := _BUFFER_SIZE.findall(message)):
        found["buffer"] = max(_bytes(number, unit) for number, unit in sizes)
    return found


def in_words(overflow: dict[str, Any]) -> str:
    """Return one clause about an overflow, e.g. `"needs 25.1 MiB of vmem, the limit is 16 MiB"`."""
    space = overflow.get("space") or "memory"
    return f"needs {_human(overflow['used'])} of {space}, the limit is {_human(overflow['limit'])}"


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit or ""])


def _human(size: int) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} bytes"
