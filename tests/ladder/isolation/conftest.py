"""A reader's folder with every kind of trouble, and a check that nothing is left behind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

KERNELS = '''
import os, sys, threading
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, PartitionSpec as P

NUMBER = 3

def _call(kernel, x, **more):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), **more)(x)

def good(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2
    return _call(kernel, x)

def good_reference(x):
    return x * 2

def wrong_reference(x):
    return x * 3

def body_alone(x_ref, o_ref):
    o_ref[...] = x_ref[...]

def returns_value(x):
    def kernel(x_ref, o_ref):
        return x_ref[...]
    return _call(kernel, x)

def exits(x):
    os._exit(3)

def exits_while_running(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
    def leave(value):
        os._exit(0)
    jax.debug.callback(leave, x)
    return _call(kernel, x)

def leaves(x):
    sys.exit(4)

def segfaults(x):
    import ctypes
    ctypes.string_at(0)

def loops(x):
    n = 0
    while True:
        n += 1

def loops_in_kernel(x):
    def kernel(x_ref, o_ref):
        n = jax.lax.while_loop(lambda c: c >= 0, lambda c: (c + 1) % 7, 0)
        o_ref[...] = x_ref[...] + n
    return _call(kernel, x)

def waits(x):
    threading.Event().wait()

def semaphore_never(x):
    def kernel(x_ref, o_ref, sem):
        pl.semaphore_wait(sem, 1)
        o_ref[...] = x_ref[...] * 2
    return _call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.REGULAR])

def aborts_compiler(x, row):
    def kernel(x_ref, row_ref, o_ref):
        o_ref[...] = x_ref[...] + row_ref[...]
    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel, grid=(2, 2), in_specs=[spec, pl.BlockSpec((1, 128), lambda i, j: (1, j))],
        out_specs=spec, out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32))(x, row)

def forks_and_both_go_on(x):
    os.fork()
    return good(x)

def returns_text(x):
    return {"out": good(x), "name": "text"}

def raises_no_exception(x):
    raise BaseException("mine")

def interrupts_itself(x):
    raise KeyboardInterrupt

def raises_what_cannot_speak(x):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")
    raise Mute

def raises_odd_text(x):
    raise ValueError("bad \\ud800 \\x00 \\x07 " + "y" * 100_000)

def recurses(x):
    return recurses(x)

def takes_all_memory(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
    block = pl.BlockSpec((16, 256), lambda i: (0, 0))
    return pl.pallas_call(kernel, grid=(1,), in_specs=[block], out_specs=block,
                          out_shape=jax.ShapeDtypeStruct((1 << 20, 1 << 18), x.dtype))(x)

def prints_binary(x):
    os.write(1, bytes(range(256)) * 9)
    return good(x)

def leaves_a_daemon(x):
    if os.fork() == 0:
        os.setsid()
        threading.Event().wait()
    return good(x)

def removes_its_folder(x):
    import shutil, tempfile
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)
    return good(x)

def breaks_json(x):
    import json
    json.dumps = None
    return good(x)

def prints(x):
    for i in range(30_000):
        print("spam", i)
    return good(x)

def reads_stdin(x):
    input("your name? ")
    return good(x)

def closes_pipes(x):
    os.closerange(3, 300)
    return good(x)

def pretend_falls_back(x):
    return good(x) if jax.default_backend() == "tpu" else x * 2

def shifts(x):
    n = 4
    mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))
    def kernel(x_ref, o_ref, send, receive):
        to = jax.lax.rem(jax.lax.axis_index("x") + 1, n)
        copy = pltpu.make_async_remote_copy(
            src_ref=x_ref, dst_ref=o_ref, send_sem=send, recv_sem=receive, device_id=(to,))
        copy.start()
        copy.wait()
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    def shift(x):
        return _call(kernel, x, in_specs=[anywhere], out_specs=anywhere,
                     scratch_shapes=[pltpu.SemaphoreType.DMA] * 2)
    spec = P("x", None)
    return jax.shard_map(shift, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)

def shifts_reference(x):
    return np.roll(x, 8, axis=0)

def counts(x):
    """Says which process it is in: a fresh one counts from 1 again."""
    global NUMBER
    NUMBER += 1
    print("tried", NUMBER)
    return good(x)
'''

OTHERS = {
    "syntax.py": "def f(:\n",
    "null.py": "a = 1\0\n",
    "exit_import.py": "import os\nos._exit(5)\n",
    "leave_import.py": "import sys\nsys.exit(2)\n",
    "loop_import.py": "while True:\n    pass\n",
    "stdin_import.py": "x = input()\n",
    "missing_import.py": "import no_such_module\n",
    "print_import.py": "print('hello')\n" + KERNELS,
    "needs_tpu.py": "import jax\nassert jax.default_backend() == 'tpu', 'TPU required'\n" + KERNELS,
    "cases_file.py": KERNELS
    + "def cases():\n    a = np.ones((8, 128), np.float32)\n"
    + "    return {'one': (a,), 'two': (a + 1,)}\n"
    + "def reference(x):\n    return x * 2\n",
    "slow_inputs.py": "from kernels import good\nimport time\nimport numpy as np\n"
    "np.random.default_rng = lambda seed: time.sleep(1000)\n",
    "no_memory.py": "from kernels import good\nimport numpy as np\ndef full(seed):\n"
    "    raise MemoryError('no room')\nnp.random.default_rng = full\n",
    "sick_ladder.py": "from kernels import good\nimport numpy as np\ndef fault(seed):\n"
    "    raise KeyError('planted')\nnp.random.default_rng = fault\n",
    "broken_cases.py": KERNELS + "def cases():\n    return [1 / 0]\n",
    "status.py": KERNELS,  # the name of a module of ours
    "random.py": KERNELS,  # the name of a module of Python's
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's folder."""
    base = tmp_path_factory.mktemp("reader")
    for name, text in {"kernels.py": KERNELS, **OTHERS}.items():
        (base / name).write_text(text)
    package = base / "outer" / "inner"
    package.mkdir(parents=True)
    (base / "outer" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (base / "outer" / "factors.py").write_text("FACTOR = 2\n")
    (package / "relative.py").write_text("from ..factors import FACTOR\n" + KERNELS)
    return base


@pytest.fixture
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Point temporary folders at an empty one, and see that it and the process table end clean."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("PALLAS_RUNGS_NO_CACHE", "1")
    before = {process.pid for process in psutil.process_iter()}
    yield temporary
    below = psutil.Process(os.getpid()).children(recursive=True)
    mine = [process for process in below if process.pid not in before]
    _, alive = psutil.wait_procs(mine, timeout=5)
    assert alive == []
    assert list(temporary.iterdir()) == []
