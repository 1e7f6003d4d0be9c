"""What libtpu writes while it compiles: Mosaic's passes, bundles, utilisation, VMEM report, HLO.

libtpu reads its flags once, when it is loaded, so a `Dumper` has a worker of its own. The worker
dumps only the passes that were asked for, into a folder inside its temporary folder, empties it
after every program, and the folder goes with the worker however that ends: closed, aborted, timed
out, or left behind by a parent that was killed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pallas_rungs.compilers import cache as disk
from pallas_rungs.compilers.chips import Chip, chip_named
from pallas_rungs.compilers.libtpu import (
    FLAGS_VARIABLE,
    WORKER_ENVIRONMENT,
    answered,
    installed_versions,
    why_unavailable,
)
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.compilers.process import Reply, Worker
from pallas_rungs.compilers.service import Service, ServiceWorker
from pallas_rungs.compilers.shared_worker import SharedWorker, ask

FOLDER_MARK: Final = "{dumps}"
"""Stands for the dump folder in the flags that the worker is started with."""

LLO_KINDS: Final = {
    "final bundles": "final_bundles",
    "packed bundles": "packed-bundles-post-ra",
    "utilization": "pre-delay_hlo-static-per-bundle-utilization",
    "final utilization": "final_hlo-static-per-bundle-utilization",
    "static profile": "hlo-static-bundle-profile",
    "vmem report": "vmem_report",
}
"""Kinds of files that the LLO back end writes, and the labels of their passes."""

MOSAIC: Final = "mosaic"
"""The kind of the modules between Mosaic's passes."""

HLO: Final = "hlo"
"""The kind of XLA's own modules."""

KINDS: Final = (*LLO_KINDS, MOSAIC, HLO)

FOR_ESTIMATES: Final = ("packed bundles", "utilization")
"""The kinds that an estimate of a program's time is made of."""

SERVICE_VARIABLE: Final = "PALLAS_RUNGS_DUMPING_SERVICE"
"""Names the socket of a service whose workers dump what estimates need, as `service` makes it."""

_LABELS: Final = {label: kind for kind, label in LLO_KINDS.items()}
_LLO_FILE: Final = re.compile(r"\d+-(?P<program>.+)-(?P<order>\d+)-(?P<label>[^-].*)\.(txt|html)")
_HLO_FILE: Final = re.compile(r"\d+-(?P<program>.+)-hlo\.txt")
_MOSAIC_FILE: Final = re.compile(
    r"\d+-(?P<order>\d+)-mosaic-dump-(?P<program>.+?)-(?P<label>original|post-.+)\.txt"
)


@dataclass(frozen=True)
class DumpFile:
    """One file that the compiler wrote.

    Attributes:
      kind: one of `KINDS`.
      program: the HLO instruction that was compiled (`softmax.1`), `TLP` for the top-level program;
        for Mosaic the kernel's body, `softmax_kernel`.
      label: the pass after which it was written; empty for HLO.
      order: its number among the files of its program.
      text: the content.
    """

    kind: str
    program: str
    label: str
    order: int
    text: str


@dataclass(frozen=True)
class Dumps:
    """A compiled program and what the compiler wrote on the way.

    Attributes:
      outcome: what came of compiling. A refused program may have left files; one that ended the
        worker's process has none.
      files: the files of the kinds asked for, by kind, program and order.
    """

    outcome: CompilerOutcome
    files: tuple[DumpFile, ...]

    def of(self, kind: str) -> dict[str, str]:
        """The texts of a kind, by program; Mosaic's come by `mosaic_passes`.

        Raises:
          ValueError: no such kind, or Mosaic, which writes many files for a program.
        """
        _check((kind,))
        if kind == MOSAIC:
            raise ValueError("Mosaic writes a file after each pass: ask mosaic_passes")
        return {file.program: file.text for file in self.files if file.kind == kind}

    def text(self, kind: str, program: str) -> str:
        """The text of a kind for the one program whose name begins like this.

        Args:
          kind: one of `KINDS`.
          program: the beginning of a program's name; `softmax` finds `softmax.1`.

        Raises:
          ValueError: no such kind.
          LookupError: no program, or more than one, is called so; the message lists the names.
        """
        found = self.of(kind)
        return found[self._one(found, program, kind)]

    def mosaic_passes(self, kernel: str) -> list[tuple[str, str]]:
        """The module of a kernel after each of Mosaic's passes, in their order, as (pass, text).

        The passes are called as in the files: `original`, `post-infer-vector-layout`, …

        Args:
          kernel: the beginning of the name of the kernel's body.

        Raises:
          LookupError: no kernel, or more than one, is called so; the message lists the names.
        """
        files = [file for file in self.files if file.kind == MOSAIC]
        name = self._one({file.program: "" for file in files}, kernel, MOSAIC)
        return list({f.label: f.text for f in files if f.program == name}.items())

    def _one(self, found: dict[str, str], program: str, kind: str) -> str:
        names = [name for name in found if name == program]
        names = names or [name for name in found if name.startswith(program)]
        if len(names) != 1:
            raise LookupError(
                f"{len(names)} programs begin with {program!r} among the dumps of kind {kind!r}; "
                f"there are {sorted(found) or 'none'}; the compiler said: "
                f"{self.outcome.kind} {self.outcome.message[:200]}".rstrip()
            )
        return names[0]


class Dumper:
    """Compiles programs with libtpu and keeps what it dumps. A context manager.

    Args:
      kinds: what to dump, some of `KINDS`; nothing else is written.

    Raises:
      ValueError: no kind, or one that is not known.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self.kinds = tuple(dict.fromkeys(kinds))
        _check(self.kinds)
        self.worker = _new_worker(self.kinds)

    def compile(
        self,
        serialized: bytes,
        chip: str | Chip,
        *,
        time_limit: float = 120.0,
        hlo: bool = False,
    ) -> Dumps:
        """Compile an exported program for a chip and read what was dumped.

        Args:
          serialized: what `jax.export.Exported.serialize` gave for the platform `tpu`.
          chip: a name or alias of a TPU chip.
          time_limit: seconds, the worker's start-up not counted.
          hlo: have the optimised HLO in the outcome.

        Returns:
          Outcome and files. Nothing that the program does to the compiler raises.

        Raises:
          ValueError: no such chip.
        """
        return _compiled(self.worker, self.kinds, serialized, chip_named(chip), time_limit, hlo)

    def interrupt(self) -> None:
        """Kill the worker from another thread than the one that waits for a program."""
        self.worker.interrupt()

    def close(self) -> None:
        """End the worker; its dump folder goes with it."""
        self.worker.close()

    def __enter__(self) -> Dumper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def compile_for_estimate(
    serialized: bytes, chip: str | Chip, *, time_limit: float, cache: bool = False
) -> Dumps:
    """Compile a program and keep what an estimate is made of, in the one worker for that.

    The worker is shared by all of this process, starts with its first program and stays warm; it is
    a service's where `SERVICE_VARIABLE` names one.

    Args:
      serialized: what `jax.export.Exported.serialize` gave for the platform `tpu`.
      chip: a name or alias of a TPU chip.
      time_limit: seconds, the worker's start-up not counted.
      cache: read and write the disk cache. `PALLAS_RUNGS_NO_CACHE=1` overrules it.

    Returns:
      Files of the kinds `FOR_ESTIMATES`, and the optimised HLO in the outcome.

    Raises:
      ValueError: no such chip.
    """
    chip = chip_named(chip)
    keep = cache and disk.cache_allowed() and not why_unavailable()
    decides = {
        "topologies": chip.topologies,
        "versions": installed_versions(),
        "flags": os.environ.get(FLAGS_VARIABLE, ""),
        "dumps": FOR_ESTIMATES,
    }
    key = disk.key_of(serialized, decides) if keep else ""
    if keep and (kept := _kept(key)) is not None:
        return kept
    dumps = _compiled(_shared.get(), FOR_ESTIMATES, serialized, chip, time_limit, True)
    if keep and dumps.outcome.kind in ("compiled", "refused"):
        disk.store(key, {"outcome": dumps.outcome.to_json(), "files": _packed(dumps.files)})
    return dumps


def service(workers: int) -> Service:
    """Return a service of that many workers, for processes whose `SERVICE_VARIABLE` names it."""
    return Service(lambda: _new_worker(FOR_ESTIMATES), workers)


def warm_up() -> None:
    """Start the worker of `compile_for_estimate` without waiting for it."""
    if not why_unavailable():
        _shared.start()


def close() -> None:
    """End the worker of `compile_for_estimate`. The next program starts a new one."""
    _shared.close()


def _new_worker(kinds: tuple[str, ...]) -> Worker:
    flags = f"{os.environ.get(FLAGS_VARIABLE, '')} {dump_flags(kinds)}".strip()
    return Worker(
        "pallas_rungs.compilers.dumping_worker", env={**WORKER_ENVIRONMENT, FLAGS_VARIABLE: flags}
    )


def _own_or_a_services() -> Worker | ServiceWorker:
    """Return a worker: a service's, where one is named and this process sets no flags."""
    address = os.environ.get(SERVICE_VARIABLE)
    if address and not os.environ.get(FLAGS_VARIABLE):
        return ServiceWorker(address)
    return _new_worker(FOR_ESTIMATES)


_shared: Final = SharedWorker(_own_or_a_services, follows=(FLAGS_VARIABLE, SERVICE_VARIABLE))


def _compiled(
    worker: Worker | ServiceWorker,
    kinds: tuple[str, ...],
    serialized: bytes,
    chip: Chip,
    time_limit: float,
    hlo: bool,
) -> Dumps:
    if reason := why_unavailable():
        return Dumps(CompilerOutcome("unavailable", "", reason), ())
    versions = installed_versions()
    request = {"topologies": list(chip.topologies), "hlo": hlo}
    answer = ask(worker, request, serialized, time_limit, versions)
    if not isinstance(answer, Reply):
        return Dumps(answer, ())
    return Dumps(answered(answer, versions), _read(answer, kinds))


def _packed(files: tuple[DumpFile, ...]) -> str:
    """The files as a short text; dumps shrink to a tenth."""
    data = json.dumps([list(vars(file).values()) for file in files]).encode()
    return base64.b64encode(zlib.compress(data, 6)).decode()


def _kept(key: str) -> Dumps | None:
    entry = disk.load(key)
    try:
        if entry is None:
            return None
        files = json.loads(zlib.decompress(base64.b64decode(entry["files"])))
        outcome = CompilerOutcome(**{**entry["outcome"], "cached": True})
        return Dumps(outcome, tuple(DumpFile(*file) for file in files))
    except (KeyError, TypeError, ValueError, zlib.error):  # written by another version
        return None


def dump_flags(kinds: Iterable[str]) -> str:
    """Give the flags of libtpu that dump these kinds and nothing more, into `FOLDER_MARK`.

    They are not documented; they belong to libtpu's version as the texts do.
    """
    kinds = tuple(kinds)
    labels = [LLO_KINDS[kind] for kind in kinds if kind in LLO_KINDS]
    flags = []
    if labels or HLO in kinds:
        flags.append(f"--xla_jf_dump_to={FOLDER_MARK}/llo")
    if labels:
        wanted = "|".join(map(re.escape, labels))
        flags.append("--xla_jf_dump_llo_text=true")
        flags.append(f"--xla_jf_dump_llo_pass_label_regex=^({wanted})$")
    if HLO in kinds:
        flags.append("--xla_jf_dump_hlo_text=true")
    if MOSAIC in kinds:
        flags.append(f"--xla_mosaic_dump_to={FOLDER_MARK}/mosaic")
    return " ".join(flags)


def _check(kinds: tuple[str, ...]) -> None:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ValueError(f"no kind of dump {unknown or '(none given)'}; the kinds are {KINDS}")


def _read(reply: Reply, kinds: tuple[str, ...]) -> tuple[DumpFile, ...]:
    """The files of a worker's answer, without the times in their names."""
    files, start = [], 0
    for name, size in reply.header["files"]:
        text = reply.blob[start : start + size].decode("utf8", errors="replace")
        start += size
        file = _file(name, text)
        if file is not None and file.kind in kinds:
            files.append(file)
    return tuple(sorted(files, key=lambda file: (file.kind, file.order, file.program)))


def _file(name: str, text: str) -> DumpFile | None:
    """A dumped file by its name, or None where it is of no kind that is read."""
    folder, _, base = name.partition("/")
    if folder == "mosaic":
        match = _MOSAIC_FILE.fullmatch(base)
        kind: str | None = MOSAIC
    elif match := _HLO_FILE.fullmatch(base):
        return DumpFile(HLO, match["program"], "", 0, text)
    else:
        match = _LLO_FILE.fullmatch(base)
        kind = _LABELS.get(match["label"]) if match else None
    if match is None or kind is None:
        return None
    return DumpFile(kind, match["program"], match["label"], int(match["order"]), text)
