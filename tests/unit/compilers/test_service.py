"""A pool of workers behind a socket answers as a worker of one's own does."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.process import Died, Reply, TimedOut, Worker, WorkerStartError
from pallas_rungs.compilers.service import ADDRESS_VARIABLE, Service, ServiceWorker
from unit.compilers.test_process import PLAYER


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "player.py").write_text(PLAYER)
    with tempfile.TemporaryDirectory() as short:  # a socket's path may have some 100 letters
        monkeypatch.setattr(tempfile, "tempdir", short)
        yield tmp_path


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    with Service(lambda: Worker("player", env={"PYTHONPATH": str(folder)}), 2) as service:
        yield service


def ask(address: str, **header: object) -> Reply:
    worker = ServiceWorker(address)
    outcome = worker.request(header, time_limit=60)
    worker.close()
    assert isinstance(outcome, Reply)
    return outcome


def test_an_answer_and_its_bytes_come_back(service):
    outcome = ServiceWorker(service.address).request(
        {"do": "echo", "say": "ü"}, b"\0bytes", time_limit=60
    )
    assert isinstance(outcome, Reply)
    assert (outcome.header["said"], outcome.blob) == ("ü", b"\0bytes")
    assert outcome.seconds > 0


def test_processes_one_after_another_share_a_worker(service):
    pids = {ask(service.address, do="echo", say=i).header["pid"] for i in range(3)}
    assert len(pids) == 1


def test_as_many_are_answered_at_a_time_as_there_are_workers(service):
    """Two that hang leave no worker for a third, which waits until their time is up."""
    outcomes = []

    def hang() -> None:
        worker = ServiceWorker(service.address)
        outcomes.append(worker.request({"do": "sleep"}, time_limit=3))

    hanging = [threading.Thread(target=hang) for _ in range(2)]
    for thread in hanging:
        thread.start()
    for thread in hanging:
        thread.join()
    assert all(isinstance(outcome, TimedOut) and outcome.idle for outcome in outcomes)
    assert len(outcomes) == 2
    assert ask(service.address, do="echo", say="well").header["said"] == "well"


def test_a_worker_that_dies_is_told_and_replaced(service):
    worker = ServiceWorker(service.address)
    outcome = worker.request({"do": "abort"}, time_limit=60)
    assert isinstance(outcome, Died)
    assert outcome.signal_name == "SIGABRT"
    assert "Check failed: left == right" in outcome.last_lines[-1]
    assert isinstance(worker.request({"do": "echo", "say": 1}, time_limit=60), Reply)


def test_a_worker_that_cannot_start_is_told(folder):
    def broken() -> Worker:
        return Worker("player", env={"PYTHONPATH": str(folder), "PLAYER_FAILS": "1"})

    with (
        Service(broken, 1) as service,
        pytest.raises(WorkerStartError, match="no such luck"),
    ):
        ServiceWorker(service.address).request({"do": "echo", "say": 1}, time_limit=60)


def test_one_who_hangs_up_while_waiting_holds_nobody_up(service):
    worker = ServiceWorker(service.address)
    connection = worker._connected()

    told = []

    def ask_and_be_cut_off() -> None:
        try:
            worker.request({"do": "sleep"}, time_limit=2)
        except WorkerStartError as error:
            told.append(error)

    thread = threading.Thread(target=ask_and_be_cut_off)
    thread.start()
    connection.shutdown(2)
    thread.join(10)
    assert not thread.is_alive()
    assert len(told) == 1
    assert ask(service.address, do="echo", say=2).header["said"] == 2


def test_a_service_that_has_ended_is_no_bare_traceback(folder):
    with Service(lambda: Worker("player", env={"PYTHONPATH": str(folder)}), 1) as service:
        worker = ServiceWorker(service.address)
        reply = worker.request({"do": "echo", "say": 1}, time_limit=60)
    assert isinstance(reply, Reply)
    with pytest.raises(WorkerStartError, match="no answer"):
        worker.request({"do": "echo", "say": 1}, time_limit=60)


def test_nothing_is_left_behind(folder):
    with Service(lambda: Worker("player", env={"PYTHONPATH": str(folder)}), 2) as service:
        pid = ask(service.address, do="echo", say=1).header["pid"]
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)
    assert os.listdir(tempfile.gettempdir()) == []


def test_only_this_user_can_reach_it(service):
    assert os.stat(Path(service.address).parent).st_mode & 0o077 == 0


def test_a_process_asks_the_service_that_its_environment_names(service, monkeypatch):
    libtpu.close()
    monkeypatch.setenv(ADDRESS_VARIABLE, service.address)
    worker = libtpu._worker.get()
    assert isinstance(worker, ServiceWorker)
    assert worker.address == service.address
    libtpu.close()


def test_flags_of_its_own_give_a_process_its_own_worker(service, monkeypatch):
    libtpu.close()
    monkeypatch.setenv(ADDRESS_VARIABLE, service.address)
    monkeypatch.setenv(libtpu.FLAGS_VARIABLE, "--xla_tpu_some_flag=1")
    assert isinstance(libtpu._worker.get(), Worker)
    libtpu.close()
