"""A forked kernel is as a new one: its own folder, variables and state, and nothing run before."""

import asyncio
import os
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from pallas_rungs.book.execute import kernel_environment
from pallas_rungs.book.forked_kernels import ForkServer
from pallas_rungs.book.session import Failure, Session

CODE = Path(__file__).resolve().parents[3] / "code"

pytestmark = pytest.mark.skipif(not ForkServer.available(), reason="kernels are forked on Linux")


@pytest.fixture(scope="module")
def server():
    with ForkServer(kernel_environment(CODE, fresh=False) | {"OF_THE_SERVER": "yes"}) as server:
        yield server


def run(server, *sources, seconds=60, **variables):
    """Run cells in one kernel; return what each printed, and how the session failed."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    environment = kernel_environment(CODE, fresh=False) | variables
    failure = asyncio.run(Session(notebook, environment, seconds, server=server).run())
    printed = ["".join(o.get("text", "") for o in cell.outputs).strip() for cell in cells]
    return printed, failure


def test_kernels_share_one_parent_and_nothing_else(server):
    tell = "import os; print(os.getpid(), os.getppid(), os.getpgrp(), os.getcwd())"
    first, second = run(server, tell)[0][0].split(), run(server, tell)[0][0].split()
    assert first[1] == second[1] != str(os.getpid())
    assert first[0] != second[0]
    assert first[3] != second[3]
    assert (first[0], second[0]) == (first[2], second[2])  # each leads a group, to be ended with


def test_no_backend_was_set_up_before(server):
    source = "import sys; print('jax' in sys.modules); from jax._src import xla_bridge as bridge"
    assert run(server, source, "print(bridge._backends)")[0] == ["True", "{}"]


def test_nothing_of_the_book_that_a_chapter_imports_was_imported_before(server):
    source = (
        "import sys; print(sorted(m for m in sys.modules if m.startswith('pallas_rungs.')"
        " and m.split('.')[1] not in ('book', 'compilers')))"
    )
    assert run(server, source)[0] == ["[]"]


def test_it_sees_the_variables_that_it_is_given_and_no_others(server):
    names = ("OF_ITS_OWN", "OF_THE_SERVER", "JPY_PARENT_PID")
    source = f"import os; print([os.environ.get(name) for name in {names}])"
    assert run(server, source, OF_ITS_OWN="yes")[0] == ["['yes', None, None]"]
    assert run(server, source)[0] == ["[None, None, None]"]


def test_xla_reads_the_variables_of_its_own(server):
    unknown = {"XLA_FLAGS": "--a_flag_that_xla_does_not_know=1"}
    _, failure = run(server, "import jax; jax.devices()", **unknown)
    assert "the kernel died" in failure.cause


def test_random_numbers_differ(server):
    source = "import random, numpy; print(random.random(), numpy.random.random())"
    first, second = run(server, source)[0][0].split(), run(server, source)[0][0].split()
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_it_is_started_as_any_kernel_is(server):
    source = "import sys; print(sys.argv[0], sys.argv[1], __name__)"
    assert run(server, source)[0] == ["ipykernel_launcher -f __main__"]


def test_a_cell_past_its_limit_is_ended(server):
    _, failure = run(server, "import time; time.sleep(600)", seconds=2)
    assert isinstance(failure, Failure)
    assert "past its limit of 2 s" in failure.cause


def test_a_kernel_that_dies_is_told(server):
    _, failure = run(server, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert isinstance(failure, Failure)
    assert "the kernel died" in failure.cause


def test_what_it_started_at_exit_is_done(server, tmp_path):
    left = tmp_path / "left"
    run(server, f"import atexit, pathlib; atexit.register(pathlib.Path({str(left)!r}).touch)")
    assert left.exists()


def test_kernels_end_with_their_server(tmp_path):
    server = ForkServer(kernel_environment(CODE, fresh=False))
    pid = server.fork(["--log-level=40"], str(tmp_path), {**os.environ, "HOME": str(tmp_path)})
    assert psutil.pid_exists(pid)
    server.close()
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not psutil.pid_exists(pid)


def test_a_server_that_has_ended_fails_the_chapter_in_words():
    server = ForkServer({**os.environ, "PYTHONPATH": str(CODE)})
    server._start()
    server._process.kill()
    server._process.wait()
    _, failure = run(server, "print(1)")
    assert failure.cause == (
        "the kernel did not start: the process that kernels are forked from has ended"
    )
    server.close()


def test_a_server_that_cannot_import_fails_the_chapter_in_words(tmp_path):
    (tmp_path / "jax.py").write_text("raise ImportError('a broken jax')")
    paths = os.pathsep.join([str(tmp_path), str(CODE)])
    with ForkServer({**os.environ, "PYTHONPATH": paths}) as server:
        _, failure = run(server, "print(1)")
    assert "kernels are forked from has ended" in failure.cause
