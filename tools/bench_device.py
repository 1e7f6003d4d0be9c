"""Measures the book's kernels on the device that JAX has here, and adds to the records.

Usage: bench_device.py [--minutes 8] [TASK...] | --forget

On a GPU: the kernels for Triton and Mosaic GPU, each beside XLA's own code. On a TPU: the kernels
of the gates. Every result is checked against float64 first. Without either nothing is measured, the
records stay as they are, and their rows read "queued". Any JAX that has the device will do: the
record says which one it was. Where a kernel cannot be run the others are measured all the same.
--forget measures nothing and needs no device: it takes what is void out of the records.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import jax
except ModuleNotFoundError as missing:
    sys.exit(
        f"{sys.executable} cannot import {missing.name}: name a Python whose JAX has the device, "
        "make bench-gpu GPU_PYTHON=/path/to/python3"
    )

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT / "code") not in sys.path:  # another Python than .venv's may have the device
    sys.path.insert(0, str(ROOT / "code"))

from pallas_rungs.performance import measured  # noqa: E402
from pallas_rungs.performance.bench import bench  # noqa: E402
from pallas_rungs.performance.gates import GATES  # noqa: E402
from pallas_rungs.performance.gpu_tasks import TASKS  # noqa: E402

MINUTES = 8.0
FIRST = 60.0
"""Seconds that a task may need: no other is begun with less time left."""


@dataclass(frozen=True)
class Job:
    """One kernel beside its rival.

    Attributes:
        name: Of the task.
        kernel: Our call.
        rival: The same task as written for XLA.
        reference: The same in float64.
        tolerance: The largest error that passes, as a part of the largest value.
        arrays: Makes the arguments.
        codes: Hashes of the kernel and of the rival.
    """

    name: str
    kernel: Callable[..., Any]
    rival: Callable[..., Any]
    reference: Callable[..., Any]
    tolerance: float
    arrays: Callable[[], tuple[Any, ...]]
    codes: tuple[str, str]


def jobs_for_gpu() -> Iterator[Job]:
    """Yields the GPU's tasks."""
    for task in TASKS:
        codes = (task.code(), task.code(rival=True))
        yield Job(
            task.name,
            task.call,
            task.rival,
            task.reference,
            task.tolerance,
            task.arrays,
            codes,
        )


def jobs_for_tpu(chip: str) -> Iterator[Job]:
    """Yields the gates for a chip."""
    for gate in GATES:
        if chip in gate.chips:
            yield Job(
                gate.name,
                gate.call(chip),
                gate.rivals[0].call,
                gate.reference,
                gate.tolerance,
                gate.arrays,
                measured.codes_of_gates(gate.name, chip),
            )


def measure(job: Job, chip: str) -> measured.Measured:
    """Measures both sides of a job on the same arrays; raises what either of them raises."""
    arrays = job.arrays()
    right = job.reference(*arrays)
    sides = [
        bench(
            call,
            *arrays,
            reference=lambda *_: right,
            tolerance=job.tolerance,
            code=code,
            name=f"{job.name}, {side}",
        )
        for side, call, code in zip(
            ("kernel", "XLA"), (job.kernel, job.rival), job.codes, strict=True
        )
    ]
    return measured.Measured(job.name, chip, *sides)


def run(jobs: list[Job], chip: str, path: Path, codes: measured.Codes, minutes: float) -> int:
    """Measures until the time is over, and writes the record after each job; 1 where one failed."""
    began, failed = time.monotonic(), 0
    kept = measured.read_measured(path, codes, only_valid=True)
    for place, job in enumerate(jobs):
        left = minutes * 60 - (time.monotonic() - began)
        if left < FIRST:
            names = ", ".join(one.name for one in jobs[place:])
            print(f"the time is over: not measured: {names}", flush=True)
            break
        try:
            found = measure(job, chip)
        except Exception as error:  # a kernel that this JAX or this device cannot run
            failed = 1
            first = (str(error).strip() or "no message").splitlines()[0]
            print(f"{job.name}: no figure: {type(error).__name__}: {first}", flush=True)
            continue
        print(found.kernel, found.rival, sep="\n", flush=True)
        kept[job.name, chip] = found
        measured.write_measured(path, kept.values())
    return failed


def forget() -> int:
    """Takes the void entries out of both records, and names them."""
    for path, codes in (
        (measured.GPU_RECORD, measured.codes_of_tasks),
        (measured.TPU_RECORD, measured.codes_of_gates),
    ):
        for task, chip in measured.forget_void(path, codes):
            print(f"{path.name}: {task} on {chip} is queued again")
    return 0


def chip_of(device: Any) -> str:
    """Returns this book's name of a TPU, or what the device calls itself."""
    from pallas_rungs.performance.chip_table import listed_chips

    kinds = {chip.device_kind: chip.name for chip in listed_chips()}
    return kinds.get(device.device_kind, str(device.device_kind))


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return value


def main() -> int:
    """Measures; 0 where there is nothing to measure on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--minutes", type=_minutes, default=MINUTES)
    parser.add_argument("--forget", action="store_true", help="take out what is void")
    options = parser.parse_args()
    if options.forget:
        return forget()
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    try:
        device = jax.devices()[0]
    except (RuntimeError, AssertionError) as error:  # a platform was named that is not here
        first = str(error).partition("\n")[0] or type(error).__name__
        asked = f" (JAX_PLATFORMS is {jax.config.jax_platforms!r})"
        print(f"JAX {jax.__version__} finds no device: {first}{asked}", file=sys.stderr)
        return 1
    if device.platform == "gpu":
        chip, path, codes = str(device.device_kind), measured.GPU_RECORD, measured.codes_of_tasks
        jobs = list(jobs_for_gpu())
    elif device.platform == "tpu":
        chip, path, codes = chip_of(device), measured.TPU_RECORD, measured.codes_of_gates
        jobs = list(jobs_for_tpu(chip))
    else:
        print(
            f"no GPU and no TPU for JAX {jax.__version__} here: nothing is measured, and the rows "
            "stay queued"
        )
        return 0
    if options.tasks:
        names = [job.name for job in jobs]
        if unknown := [name for name in options.tasks if name not in names]:
            parser.error(f"there is no task {unknown[0]!r} for {chip}; there is {', '.join(names)}")
        jobs = [job for job in jobs if job.name in options.tasks]
    print(f"{chip}, JAX {jax.__version__}: {len(jobs)} tasks, {options.minutes:g} minutes at most")
    return run(jobs, chip, path, codes, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
