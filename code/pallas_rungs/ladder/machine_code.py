"""What the CUDA compiler and its disassembler make of a call's kernel, as data for a page.

The module is a compiler in the sense of `compilers.records`: it says whether both are here, and in
which versions.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import jax
from jax import export

from pallas_rungs.compilers import cuda
from pallas_rungs.compilers.abstract import abstract_mesh
from pallas_rungs.compilers.chips import GPU
from pallas_rungs.compilers.cuda_report import nvdisasm
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.compilers.packages import installed_version
from pallas_rungs.ir import ptx, sass

_FILE = re.compile(r"\S*/\S+")
_PTXAS = re.compile(r"error\s*: (.+)")
_ABORT = re.compile(r"LLVM ERROR: .+")


def why_unavailable() -> str:
    """Say which of the two is not here and what to install; empty when both are."""
    if reason := cuda.why_unavailable():
        return reason
    return "" if nvdisasm() else f"machine code is read with {cuda.DISASSEMBLER}: install it"


def installed_versions() -> dict[str, str]:
    """Versions of jax, jaxlib, the plugin and the disassembler."""
    disassembler = installed_version(cuda.DISASSEMBLER) or "none"
    return {**cuda.installed_versions(), cuda.DISASSEMBLER: disassembler}


def exported_for(chip: str, call: Any, *args: Any) -> bytes:
    """Trace, lower and export a call for a GPU that need not be there.

    Raises:
      Exception: what lowering raises.
    """
    checks = [export.DisabledSafetyCheck.custom_call(name) for name in GPU.kernel_calls]
    with jax.sharding.use_abstract_mesh(abstract_mesh(chip)):
        made = export.export(jax.jit(call), platforms=[GPU.platform], disabled_checks=checks)(*args)
    return bytes(made.serialize())


def compiled(
    call: Any, *args: Any, chip: str, lowered_for: str = "", loops: bool = False
) -> dict[str, Any]:
    """Compile a call with one kernel for a GPU and count what came of it.

    Args:
      call: the function.
      *args: its arguments, or their shapes and dtypes.
      chip: the GPU to compile for.
      lowered_for: the GPU that it is lowered for; `chip` by default.
      loops: tell of the loops as well.

    Returns:
      JSON data, the same each time: `kind` ("compiled", "refused" or "crashed") and `message`; of a
      compiled kernel also `compiler`, `target`, `registers`, `stack_bytes`, `spill_store_bytes`,
      `shared_bytes`, `threads`; `virtual` (registers in PTX, by type); `ptx` and `sass`
      (instructions by name) and `sass_kinds`; `ptx_tensor` and `sass_tensor`, the first
      instruction of tensor cores in each, empty where there is none. With `loops` also `loops`: of
      each loop in the machine code its `first` and `last` address and `sass`, as above.

    Raises:
      Exception: what lowering raises.
      RuntimeError: the compiler cannot be asked, or does not answer.
      IRError: what it wrote is not as our readers know it.
    """
    program = exported_for(lowered_for or chip, call, *args)
    outcome = cuda.compile_exported(program, chip, listings=True)
    if outcome.kind in ("refused", "crashed"):
        return refusal(outcome)
    if outcome.kind != "compiled":
        raise RuntimeError(f"{outcome.kind}: {outcome.message}")
    (kernel,) = outcome.analysis["kernels"]
    assembly, code = ptx.parsed(kernel["ptx"]), sass.parsed(kernel["sass"])
    told = ("compiler", "target", "registers", "stack_bytes", "spill_store_bytes", "shared_bytes")
    told_of_loops = {"loops": [_loop(it) for it in sass.loops(kernel["sass"])]} if loops else {}
    return {
        "kind": "compiled",
        "message": "",
        **{name: kernel[name] for name in told},
        "threads": assembly.threads,
        "virtual": assembly.registers,
        "ptx": assembly.instructions,
        "ptx_kinds": assembly.kinds,
        "sass": dict(Counter(it.opcode for it in code.instructions).most_common()),
        "sass_kinds": code.kinds,
        "ptx_tensor": next(iter(assembly.of_kind("tensor core")), ""),
        "sass_tensor": next((str(it) for it in code.of_kind("tensor core")), ""),
        **told_of_loops,
    }


def _loop(code: sass.SASS) -> dict[str, Any]:
    first, last = code.instructions[0], code.instructions[-1]
    opcodes = Counter(it.opcode for it in code.instructions)
    return {"first": first.address, "last": last.address, "sass": dict(opcodes.most_common())}


def refusal(outcome: CompilerOutcome) -> dict[str, Any]:
    """Return what is told of a kernel that did not compile: `kind` and `message`."""
    return {"kind": outcome.kind, "message": _lasting(outcome.message)}


def _lasting(message: str) -> str:
    """A compiler's last word without what differs from run to run: files, how a process ended."""
    if found := _PTXAS.search(message):
        return f"ptxas: {found[1].strip()}"
    if found := _ABORT.search(message):
        return found[0].strip()
    return _FILE.sub("a file", message.strip())
