"""What is installed, which rungs that makes available, and what installs the rest."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from pallas_rungs.compilers import cuda, libtpu
from pallas_rungs.compilers.chips import GPU_CHIPS, TPU_CHIPS, names_of
from pallas_rungs.compilers.cuda_report import nvdisasm
from pallas_rungs.ladder.status import Rung

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OLDEST_PYTHON = (3, 12)
_OLDEST_NODE = 20


@dataclass(frozen=True)
class Item:
    """One thing that the ladder or the book's build needs.

    Attributes:
      name: what it is.
      version: its version, empty when it is missing.
      needed_for: what it is for.
      ok: it is there and new enough.
      note: what is wrong with it, if anything.
      install: the line that installs it, where `ok` is false or the version is another one.
      path: where it was found, for programs.
    """

    name: str
    version: str
    needed_for: str
    ok: bool
    note: str = ""
    install: str = ""
    path: str = ""


@dataclass(frozen=True)
class RungAvailable:
    """Whether a rung can be tried here.

    Attributes:
      rung: which.
      available: whether it can.
      how: what does the work, or why it cannot be done.
      optional: TPU kernels do without.
    """

    rung: Rung
    available: bool
    how: str
    optional: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """What `doctor` found."""

    items: tuple[Item, ...]
    rungs: tuple[RungAvailable, ...]
    machine: str

    @property
    def exit_code(self) -> int:
        """0 when every rung that needs no chip and no extra is available, else 1."""
        needed = [r for r in self.rungs if r.rung is not Rung.CHIP and not r.optional]
        return 0 if all(r.available for r in needed) else 1

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "machine": self.machine,
            "items": [asdict(item) for item in self.items],
            "rungs": [{**asdict(rung), "rung": str(rung.rung)} for rung in self.rungs],
            "exit_code": self.exit_code,
        }

    def __str__(self) -> str:
        lines = [f"machine   {self.machine}", ""]
        width = max(len(item.name) for item in self.items)
        version_width = max(len(item.version) for item in self.items)
        for item in self.items:
            mark = "ok     " if item.ok else "missing" if not item.version else "check  "
            version = item.version or "-"
            lines.append(
                f"{mark}  {item.name:<{width}}  {version:<{version_width}}  for {item.needed_for}"
            )
            if item.note:
                lines.append(f"         {item.note}")
            if item.install:
                lines.append(f"         install: {item.install}")
        lines.append("")
        for rung in self.rungs:
            mark = "ready  " if rung.available else "no     "
            lines.append(f"{mark}  rung {rung.rung.number} {rung.rung:<10} {rung.how}")
        return "\n".join(lines)


def diagnose() -> Diagnosis:
    """Look at this machine. Imports neither jax nor libtpu."""
    python = _python()
    jax, jaxlib = _package("jax"), _package("jaxlib")
    rest = (_package("numpy"), _package("flatbuffers"), _package("psutil"), _package("rich"))
    compiler = _libtpu(jax.version)
    programs = (_node(), _chromium())
    jax_ready = all(item.ok for item in (python, jax, jaxlib, *rest))
    why_not = "" if jax_ready else "needs what is missing above"
    gpu_compiler = _cuda_compiler()
    rungs = (
        RungAvailable(Rung.TRACE, jax_ready, why_not or "jax.make_jaxpr"),
        RungAvailable(Rung.INTERPRET, jax_ready, why_not or "interpret=True, on the CPU"),
        RungAvailable(
            Rung.SIMULATE,
            jax_ready,
            why_not or "the TPU and GPU simulators (InterpretParams, InterpretGPUParams)",
        ),
        RungAvailable(
            Rung.LOWER, jax_ready, why_not or "lowering for TPU and CUDA, no chip needed"
        ),
        RungAvailable(
            Rung.COMPILE,
            jax_ready and compiler.ok,
            why_not
            or (
                f"libtpu {compiler.version}, for {names_of(TPU_CHIPS)}"
                if compiler.ok
                else libtpu.why_unavailable() or compiler.note
            ),
        ),
        RungAvailable(
            Rung.COMPILE,
            jax_ready and gpu_compiler.ok,
            why_not
            or (
                f"the CUDA plugin {gpu_compiler.version}, for {names_of(GPU_CHIPS)}"
                if gpu_compiler.ok
                else "for GPUs: an optional extra, see above"
            ),
            optional=True,
        ),
        RungAvailable(Rung.CHIP, False, "recorded runs only; nothing here runs on a chip"),
    )
    machine = f"{platform.system()} {platform.machine()}"
    return Diagnosis(
        (python, jax, jaxlib, *rest, compiler, gpu_compiler, *programs), rungs, machine
    )


def _python() -> Item:
    version = platform.python_version()
    ok = sys.version_info >= _OLDEST_PYTHON
    oldest = ".".join(map(str, _OLDEST_PYTHON))
    return Item(
        "python",
        version,
        "every rung",
        ok,
        note="" if ok else f"Python {oldest} or newer is needed",
        path=sys.executable,
    )


def _package(name: str) -> Item:
    wanted = _own_requirement(name)
    line = f'{sys.executable} -m pip install "{wanted}"'
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Item(name, "", "every rung", False, install=line)
    if _fits(version, wanted.removeprefix(name)):
        return Item(name, version, "every rung", True)
    note = f"the ladder is tested with {wanted}; verdicts may differ from the book's"
    return Item(name, version, "every rung", True, note=note, install=line)


def _own_requirement(name: str) -> str:
    """How this package asks for `name`, e.g. `jax==0.12.0.1`."""
    try:
        for line in importlib.metadata.requires("pallas-rungs") or ():
            requirement = line.split(";")[0].strip()
            if requirement.replace("=", " ").replace(">", " ").split()[0] == name:
                return requirement
    except importlib.metadata.PackageNotFoundError:
        pass
    return name


def _libtpu(jax_version: str) -> Item:
    version = libtpu.libtpu_version() or ""
    needed_for = "rung 5, compile"
    if not version:
        on_linux = sys.platform == "linux"
        return Item(
            "libtpu",
            "",
            needed_for,
            False,
            note="" if on_linux else "it exists for Linux x86-64 only",
            install=libtpu.install_line() if on_linux else "",
        )
    wanted = libtpu.wanted_libtpu()
    note = ""
    if wanted and not _fits(version, wanted):
        note = f"jax {jax_version} goes with libtpu{wanted}; verdicts may differ from the book's"
    return Item("libtpu", version, needed_for, True, note=note)


def _cuda_compiler() -> Item:
    """Jax's CUDA plugin with its ptxas, and the disassembler beside it: an optional extra."""
    version = cuda.plugin_version() or ""
    needed_for = "rung 5 for GPU kernels (optional)"
    if not version:
        on_linux = sys.platform == "linux"
        note = f"optional: {cuda.DOWNLOAD}" if on_linux else cuda.why_unavailable()
        install = cuda.install_line() if on_linux else ""
        return Item(cuda.PLUGIN, "", needed_for, False, note=note, install=install)
    if nvdisasm() is None:
        note = "without nvdisasm registers and spills are told, and no machine code is read"
        return Item(cuda.PLUGIN, version, needed_for, True, note=note, install=cuda.install_line())
    return Item(cuda.PLUGIN, version, needed_for, True)


def _fits(version: str, wanted: str) -> bool:
    """Whether a version meets a requirement of the form `==0.0.50.*`."""
    operator, _, pattern = wanted.partition("==")
    if operator or not pattern:
        return True
    if pattern.endswith(".*"):
        prefix = pattern[:-2]
        return version == prefix or version.startswith(prefix + ".")
    return version == pattern


def _node() -> Item:
    path = shutil.which("node")
    version = _version_said_by(path).lstrip("v")
    major = version.split(".")[0]
    ok = major.isdigit() and int(major) >= _OLDEST_NODE
    return Item(
        "node",
        version,
        "the book's exhibits and their tests",
        ok,
        note=f"Node {_OLDEST_NODE} or newer is needed" if version and not ok else "",
        install="" if ok else _system_install("nodejs", "node"),
        path=path or "",
    )


def _chromium() -> Item:
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    said = _version_said_by(path)
    version = next((word for word in said.split() if word[:1].isdigit()), "")
    return Item(
        "chromium",
        version,
        "the book's browser tests",
        bool(version),
        install="" if version else _system_install("chromium", "chromium"),
        path=path or "",
    )


def _system_install(debian: str, brew: str) -> str:
    return f"brew install {brew}" if sys.platform == "darwin" else f"sudo apt-get install {debian}"


def _version_said_by(path: str | None) -> str:
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else ""
