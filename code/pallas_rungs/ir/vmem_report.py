"""Reading libtpu's VMEM report: what lies in the fast memory while an instruction runs.

The report is a page with a script; its data is the object after `const DATA =`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from pallas_rungs.ir.errors import IRError

_START: Final = "const DATA ="
SPILL: Final = "SPILL"
"""The tag of the room for spilled registers."""


@dataclass(frozen=True)
class Allocation:
    """A piece of VMEM.

    Attributes:
      tag: what the compiler says it is for.
      shape: its shape; empty where the report names none.
      size: bytes, all buffers of a window together.
    """

    tag: str
    shape: str
    size: int

    @property
    def what(self) -> str:
        """The tag without its explanation: `input window allocation for operator input 0`."""
        return self.tag.partition(".")[0]


@dataclass(frozen=True)
class VmemReport:
    """VMEM by instruction.

    Attributes:
      capacity: bytes of VMEM that the report states for the chip.
      allocations: by HLO instruction.
    """

    capacity: int
    allocations: dict[str, tuple[Allocation, ...]]


def read_vmem_report(text: str, name: str) -> VmemReport:
    """Read a VMEM report.

    Args:
      text: the page that libtpu wrote.
      name: what to call it in an error.

    Raises:
      IRError: the page holds no data, or its data has another form.
    """
    before, found, after = text.partition(_START)
    line = before.count("\n") + 1
    if not found:
        raise IRError(name, f"a line with `{_START}`", f"{line} lines without")
    try:
        data, _ = json.JSONDecoder().raw_decode(after.lstrip())
        return VmemReport(
            data["global_info"]["vmem_capacity"],
            {
                instruction: tuple(_allocations(breakdown))
                for instruction, breakdown in data["hlo_breakdowns"].items()
                if not instruction.startswith("<")
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = "JSON with global_info.vmem_capacity and hlo_breakdowns.….blocks.allocations"
        raise IRError(name, what, f"{type(error).__name__}: {error}", line) from None


def _allocations(breakdown: dict[str, Any]) -> list[Allocation]:
    return [
        Allocation(piece["tag"], piece.get("shape", ""), int(piece["size"]))
        for block in breakdown["blocks"]
        for piece in block["allocations"]
    ]
