"""Dumps: only what was asked for, the same each time, and no folder left behind."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.experimental import pallas as pl
from jax.sharding import AbstractDevice, AbstractMesh

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.dumps import (
    FOLDER_MARK,
    MOSAIC,
    Dumper,
    Dumps,
    dump_flags,
)
from pallas_rungs.compilers.outcome import CompilerOutcome
from pallas_rungs.kernels.softmax import softmax

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)
SHAPE = jax.ShapeDtypeStruct((256, 512), jnp.float32)


def _exported(function: Callable[[jax.Array], Any]) -> bytes:
    device = AbstractDevice(device_kind="TPU v5 lite", num_cores=1, platform="tpu")
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        traced = export.export(jax.jit(function), platforms=["tpu"])
        return bytes(traced(SHAPE).serialize())


@functools.cache
def _softmax() -> bytes:
    return _exported(softmax)


@functools.cache
def _aborting() -> bytes:
    """A block index outside of a constant: the pinned libtpu ends its process over it."""

    def kernel(x_ref: jax.Ref, o_ref: jax.Ref) -> None:
        o_ref[...] = x_ref[...]

    def copy(x: jax.Array) -> Any:
        outside = pl.BlockSpec((64, 512), lambda i: (7, 0))
        return pl.pallas_call(
            kernel, jax.ShapeDtypeStruct((64, 512), x.dtype), grid=(1,), in_specs=[outside]
        )(x)

    return _exported(copy)


def _folder(dumper: Dumper) -> Path:
    return Path(dumper.worker.ready()["folder"])


@needs_libtpu
def test_bundles_are_the_same_again_and_from_two_workers_at_once() -> None:
    kinds = ("final bundles", "utilization", MOSAIC)
    with Dumper(kinds) as one, Dumper(kinds) as other, ThreadPoolExecutor(2) as pool:
        first = one.compile(_softmax(), "v5e")
        both = list(pool.map(lambda dumper: dumper.compile(_softmax(), "v5e"), (one, other)))
    assert first.files
    assert [dumps.files for dumps in both] == [first.files] * 2


@needs_libtpu
def test_only_what_was_asked_for_is_dumped_and_a_next_program_finds_an_empty_folder() -> None:
    with Dumper(["final bundles"]) as dumper:
        for _ in range(2):
            dumps = dumper.compile(_softmax(), "v5e")
            assert {file.kind for file in dumps.files} == {"final bundles"}
            assert "vld" in dumps.text("final bundles", "softmax")
            assert not [path for path in _folder(dumper).rglob("*") if path.is_file()]


@needs_libtpu
def test_passes_of_a_kernel_come_in_their_order() -> None:
    with Dumper([MOSAIC]) as dumper:
        passes = dumper.compile(_softmax(), "v5e").mosaic_passes("softmax")
    names = [name for name, _ in passes]
    assert names.index("original") < names.index("post-infer-vector-layout")
    assert names.index("post-infer-vector-layout") < names.index("post-apply-vector-layout")
    assert names[-1] == "post-finalize-llo"
    assert "math.exp" in dict(passes)["original"]


@needs_libtpu
def test_folder_goes_when_the_dumper_is_closed() -> None:
    with Dumper(["final bundles"]) as dumper:
        folder = _folder(dumper)
        assert folder.is_dir()
    assert not folder.parent.exists()


@needs_libtpu
def test_folder_goes_when_the_compiler_aborts_and_the_next_program_has_a_new_one() -> None:
    with Dumper(["final bundles"]) as dumper:
        folder = _folder(dumper)
        dumps = dumper.compile(_aborting(), "v5e")
        assert (dumps.outcome.kind, dumps.outcome.error_type, dumps.files) == (
            "crashed",
            "SIGABRT",
            (),
        )
        assert not folder.parent.exists()
        assert dumper.compile(_softmax(), "v5e").files
        assert _folder(dumper) != folder


@needs_libtpu
def test_folder_goes_when_the_time_is_up() -> None:
    with Dumper(["final bundles"]) as dumper:
        folder = _folder(dumper)
        dumps = dumper.compile(_softmax(), "v5e", time_limit=0.001)
        assert dumps.outcome.kind in {"timed out", "deadlocked"}
        assert not folder.parent.exists()


@needs_libtpu
def test_folder_goes_when_the_parent_is_killed() -> None:
    program = (
        "from pallas_rungs.compilers.dumps import Dumper\n"
        "dumper = Dumper(['final bundles'])\n"
        "print(dumper.worker.ready()['folder'], flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    folder = Path(parent.stdout.readline().strip())
    assert folder.is_relative_to(tempfile.gettempdir())
    assert folder.is_dir()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while folder.parent.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.parent.exists()


def test_flags_dump_no_pass_that_was_not_asked_for() -> None:
    flags = dump_flags(["final bundles", "vmem report"])
    assert r"label_regex=^(final_bundles|vmem_report)$" in flags
    assert "mosaic" not in flags
    assert "hlo" not in flags
    assert dump_flags([MOSAIC]) == f"--xla_mosaic_dump_to={FOLDER_MARK}/mosaic"


def test_unknown_kind_and_unknown_program_are_named() -> None:
    with pytest.raises(ValueError, match=r"no kind of dump \['bundle'\].*'final bundles'"):
        Dumper(["bundle"])
    dumps = Dumps(CompilerOutcome("refused", "E", "too large"), ())
    with pytest.raises(LookupError, match=r"0 programs begin with 'softmax'.*refused too large"):
        dumps.text("final bundles", "softmax")
