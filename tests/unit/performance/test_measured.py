"""Records of measurements, and the tool that makes them: tried on a CPU that is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import bench_device
import numpy as np
import pytest

from pallas_rungs.figures import time_table
from pallas_rungs.performance import measured
from pallas_rungs.performance.bench import bench
from pallas_rungs.performance.gates import GATES
from pallas_rungs.performance.gpu_tasks import TASKS, task_named
from pallas_rungs.performance.measured import (
    Measured,
    codes_of_gates,
    codes_of_tasks,
    read_measured,
    write_measured,
)
from pallas_rungs.performance.provenance import ProvenanceError
from pallas_rungs.performance.sealed import RecordError, write_sealed

X = np.ones((8, 128), np.float32)


def twice(x: Any) -> Any:
    return x + x


def codes(task: str, chip: str) -> tuple[str, str]:
    if task != "twice":
        raise LookupError(f"no task is called {task!r}")
    return "ours", "theirs"


def made(kernel: str = "ours", rival: str = "theirs") -> Measured:
    on_cpu = partial(bench, twice, X, on_cpu=True, runs=5)
    return Measured("twice", "here", on_cpu(code=kernel), on_cpu(code=rival))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    assert read_measured(path, codes) == {}
    entry = made()
    write_measured(path, [entry])
    found = read_measured(path, codes)
    assert found == {("twice", "here"): entry}
    shown = repr(time_table({"n": "label", "t": "measurement"}, [("a", entry.kernel)]))
    assert "code ours" in shown


def test_a_measurement_of_code_that_has_changed_is_void_by_name(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    write_measured(path, [made(kernel="older")])
    with pytest.raises(
        RecordError,
        match="the record of twice on here is void: the kernel or its configuration has changed",
    ):
        read_measured(path, codes)
    write_measured(path, [made(rival="older")])
    with pytest.raises(RecordError, match="is void: the rival or its configuration has changed"):
        read_measured(path, codes)
    assert read_measured(path, codes, only_valid=True) == {}
    write_measured(path, [made()])
    with pytest.raises(RecordError, match="is void: no task is called 'twice'; there are matmul"):
        read_measured(path, codes_of_tasks)


def test_what_is_void_is_taken_out_without_a_device_and_what_holds_stays(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    assert measured.forget_void(path, codes) == []
    assert not path.exists()
    write_measured(path, [made()])
    before = path.read_text()
    assert measured.forget_void(path, codes) == []
    assert path.read_text() == before
    write_measured(path, [made(kernel="older")])
    assert measured.forget_void(path, codes) == [("twice", "here")]
    assert read_measured(path, codes) == {}


def test_a_figure_changed_by_hand_or_without_provenance_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    write_measured(path, [made()])
    kept = json.loads(path.read_text())
    kept["entries"][0]["kernel"]["value"] *= 0.5
    path.write_text(json.dumps(kept))
    with pytest.raises(RecordError, match="something was changed by hand"):
        read_measured(path, codes)
    del kept["entries"][0]["kernel"]["provenance"]
    write_sealed(path, kept)
    with pytest.raises(ProvenanceError, match="a figure without provenance"):
        read_measured(path, codes)


def test_the_records_of_the_book_hold() -> None:
    read_measured(measured.GPU_RECORD, codes_of_tasks)
    read_measured(measured.TPU_RECORD, codes_of_gates)


def test_hashes_tell_tasks_and_sides_apart() -> None:
    told = {codes_of_tasks(task.name, "NVIDIA H200") for task in TASKS}
    told |= {codes_of_gates(gate.name, chip) for gate in GATES for chip in gate.chips[:1]}
    assert len(told) == len(TASKS) + len(GATES)
    assert all(kernel != rival for kernel, rival in told)
    with pytest.raises(LookupError, match="no task is called 'x'"):
        task_named("x")
    with pytest.raises(LookupError):
        codes_of_gates("softmax", "v2")


def job(name: str = "twice", factor: float = 2.0) -> bench_device.Job:
    return bench_device.Job(
        name, twice, twice, lambda x: factor * np.asarray(x), 1e-6, lambda: (X,), ("ours", "theirs")
    )


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the tool measure this machine."""
    monkeypatch.setattr(bench_device, "bench", partial(bench, on_cpu=True, runs=5))


@pytest.mark.usefixtures("on_cpu")
def test_the_tool_measures_both_sides_and_keeps_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpu.json"
    assert bench_device.run([job()], "here", path, codes, 8) == 0
    assert bench_device.run([job()], "there", path, codes, 8) == 0
    assert set(read_measured(path, codes)) == {("twice", "here"), ("twice", "there")}
    told = capsys.readouterr().out
    assert "twice, kernel: " in told
    assert "twice, XLA: " in told
    assert "result checked against float64" in told


@pytest.mark.usefixtures("on_cpu")
def test_a_wrong_kernel_gets_no_figure_and_the_others_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpu.json"
    assert bench_device.run([job("wrong", factor=3), job()], "here", path, codes, 8) == 1
    assert list(read_measured(path, codes)) == [("twice", "here")]
    assert "wrong: no figure: BenchError: wrong, kernel is off by 0.33" in capsys.readouterr().out


@pytest.mark.usefixtures("on_cpu")
def test_no_task_is_begun_when_the_time_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpu.json"
    assert bench_device.run([job()], "here", path, codes, 0.5) == 0
    assert not path.exists()
    assert "the time is over: not measured: twice" in capsys.readouterr().out


def test_without_a_device_the_tool_says_so_and_leaves_records_alone(root: Path) -> None:
    before = {path: path.read_bytes() for path in measured.FOLDER.glob("*.json")}
    done = subprocess.run(
        [sys.executable, root / "tools" / "bench_device.py"],
        env={"JAX_PLATFORMS": "cpu", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith("no GPU and no TPU for JAX ")
    assert line.endswith("the rows stay queued")
    assert before == {path: path.read_bytes() for path in measured.FOLDER.glob("*.json")}


@pytest.mark.parametrize(
    ("before", "words", "said"),
    [
        ("sys.modules['jax'] = None; ", [], "cannot import jax: name a Python whose JAX has the"),
        ("", ["--minutes", "nan"], "'nan' is not a number of minutes above 0"),
        ("import os; os.environ['JAX_PLATFORMS'] = 'cuda'; ", [], "(JAX_PLATFORMS is 'cuda')"),
    ],
)
def test_what_the_tool_cannot_do_is_said_without_a_traceback(
    root: Path, before: str, words: list[str], said: str
) -> None:
    tool = root / "tools" / "bench_device.py"
    script = f"import runpy, sys; {before}sys.argv = {['bench_device', *words]!r}; "
    done = subprocess.run(
        [sys.executable, "-c", f"{script}runpy.run_path({str(tool)!r}, run_name='__main__')"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_task_and_gate_has_a_job() -> None:
    assert [one.name for one in bench_device.jobs_for_gpu()] == [task.name for task in TASKS]
    assert [one.name for one in bench_device.jobs_for_tpu("v5p")] == ["matmul"]
