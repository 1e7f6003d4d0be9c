"""Reading what the CUDA compiler wrote about the kernels that it compiled."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pallas_rungs.compilers.cubin import cubins, needs

_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_STATIC_SHARED = re.compile(r"(\d+) bytes smem")
_TARGET = re.compile(r"^\.target (\S+?),?\s*$", re.MULTILINE)
_DYNAMIC_SHARED = re.compile(r"dynamic_shared_memory_size %c(\d+)")
_LAUNCH = re.compile(r"kCustomKernel .* (\S+) grid: .* shared_memory: (\d+) bytes")
_HASH = re.compile(r'kernel_hash = "((?:[^"\\]|\\.)*)"')
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9]+)")


@dataclass
class KernelReport:
    """What the compiler says of one kernel. None where it does not tell.

    Attributes:
      name: the kernel's.
      compiler: `"Mosaic GPU"` or `"Triton"`.
      target: the architecture of its PTX, e.g. `"sm_90a"`.
      registers: of each thread.
      spill_store_bytes: what each thread writes to memory for want of registers; Triton's
        kernels do not tell it apart from the rest of their stack.
      spill_load_bytes: what it reads back.
      stack_bytes: memory of each thread, spilled values included.
      shared_bytes: shared memory of a block.
      instructions: of the machine code, without the part after the first dot: `"HGMMA"` → 8.
      ptx: its PTX.
      sass: its machine code as text; empty without nvdisasm.
    """

    name: str
    compiler: str
    target: str = ""
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    instructions: dict[str, int] = field(default_factory=dict)
    ptx: str = ""
    sass: str = ""

    def to_json(self, listings: bool) -> dict[str, Any]:
        """Return plain JSON data, with PTX and machine code if asked for."""
        told = asdict(self)
        return told if listings else {k: v for k, v in told.items() if k not in ("ptx", "sass")}


def nvdisasm() -> Path | None:
    """Return NVIDIA's disassembler: that of the package nvidia-cuda-nvdisasm, or on the PATH."""
    for folder in map(Path, sys.path):
        for found in sorted(folder.glob("nvidia/*/bin/nvdisasm"), reverse=True):
            return found
    on_path = shutil.which("nvdisasm")
    return Path(on_path).resolve() if on_path else None


class Reports:
    """Reports on the kernels that one process compiles.

    Mosaic GPU keeps what it compiled, and writes nothing when it meets the same kernel again.
    """

    def __init__(self) -> None:
        self._mosaic: dict[str, KernelReport] = {}

    def of(self, folder: Path, executable: bytes, module: str) -> list[KernelReport]:
        """Return a report for each kernel of a program.

        Args:
          folder: where Mosaic GPU and XLA dumped what they made of it.
          executable: the program, compiled and serialised.
          module: the text of its module before it was compiled.
        """
        fresh = of_mosaic(folder)
        kernels = list(dict.fromkeys(_HASH.findall(module)))
        new = [kernel for kernel in kernels if kernel not in self._mosaic]
        if len(new) == len(fresh):
            self._mosaic.update(zip(new, fresh, strict=True))
            fresh = [self._mosaic[kernel] for kernel in kernels]
        return [*fresh, *of_triton(folder, executable)]


def of_mosaic(folder: Path) -> list[KernelReport]:
    """Return a report for each kernel that Mosaic GPU dumped, in the order of their dumps."""
    found = []
    for log in sorted(folder.glob("*.ptxas"), key=lambda p: int(p.stem.rpartition("_")[2])):
        report = KernelReport(log.stem.rpartition("_")[0], "Mosaic GPU")
        text = log.read_text(errors="replace")
        if match := _SPILLS.search(text):
            report.stack_bytes, report.spill_store_bytes, report.spill_load_bytes = map(
                int, match.groups()
            )
        report.registers = _number(_REGISTERS, text)
        report.ptx = _text(log.with_suffix(".ptx"))
        report.target = _target(report.ptx)
        module = _text(log.with_suffix(".mlir-passes.log"))
        dynamic = _number(_DYNAMIC_SHARED, module)
        if dynamic is not None:
            report.shared_bytes = dynamic + (_number(_STATIC_SHARED, text) or 0)
        report.sass = _text(log.with_suffix(".sass_ctrl"))
        report.instructions = instructions(report.sass)
        found.append(report)
    return found


def of_triton(folder: Path, executable: bytes) -> list[KernelReport]:
    """Return a report for each Triton kernel of an executable."""
    launches: dict[str, int] = {}
    for file in folder.glob("*thunk_sequence.txt"):
        launches |= {m[1]: int(m[2]) for m in _LAUNCH.finditer(_text(file))}
    if not launches:
        return []
    every_ptx = [_text(file) for file in sorted(folder.glob("*.ptx")) if "module_" in file.name]
    images = {needs(image).name: image for image in cubins(executable)}
    found = []
    for name, shared in launches.items():
        report = KernelReport(name, "Triton", shared_bytes=shared)
        report.ptx = next((text for text in every_ptx if f".entry {name}(" in text), "")
        report.target = _target(report.ptx)
        if name in images:
            needed = needs(images[name])
            report.registers, report.stack_bytes = needed.registers, needed.stack_bytes
            report.sass = disassembled(images[name], folder)
            report.instructions = instructions(report.sass)
        found.append(report)
    return found


def disassembled(cubin: bytes, folder: Path) -> str:
    """Return the machine code of a CUDA ELF image as text; empty where nobody can read it."""
    tool = nvdisasm()
    if tool is None:
        return ""
    file = folder / "kernel.cubin"
    file.write_bytes(cubin)
    done = subprocess.run([tool, "-c", file], capture_output=True, text=True, check=False)
    return done.stdout


def instructions(sass: str) -> dict[str, int]:
    """Return how often each instruction stands in machine code, the most frequent first."""
    return dict(Counter(_INSTRUCTION.findall(sass)).most_common())


def _target(ptx: str) -> str:
    match = _TARGET.search(ptx)
    return match[1] if match else ""


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(match[1]) if match else None


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""
