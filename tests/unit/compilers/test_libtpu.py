"""libtpu in its worker: compiled, refused, aborted, missing, cached."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.experimental import pallas as pl
from jax.sharding import AbstractDevice, AbstractMesh

from pallas_rungs.compilers import libtpu
from pallas_rungs.compilers.outcome import last_word
from pallas_rungs.compilers.process import Died

needs_libtpu = pytest.mark.skipif(
    libtpu.libtpu_version() is None, reason="libtpu is not installed here (Linux x86-64 only)"
)


def _exported(function: Callable[..., Any], *shapes: tuple[int, ...]) -> bytes:
    device = AbstractDevice(device_kind="TPU v5 lite", num_cores=1, platform="tpu")
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        return bytes(export.export(jax.jit(function), platforms=["tpu"])(*args).serialize())


def _blocked(block: tuple[int, int], row: int = 0) -> Callable[..., Any]:
    """Add a row to a matrix, block by block; `row` is the block index of the row, 0 if right."""

    def add(x: jax.Array, b: jax.Array) -> Any:
        def kernel(x_ref: Any, b_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] + b_ref[...]

        spec = pl.BlockSpec(block, lambda i, j: (i, j))
        row_spec = pl.BlockSpec((1, block[1]), lambda i, j: (row, j))
        return pl.pallas_call(
            kernel,
            grid=(x.shape[0] // block[0], x.shape[1] // block[1]),
            in_specs=[spec, row_spec],
            out_specs=spec,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x, b)

    return add


@functools.cache
def _healthy() -> bytes:
    return _exported(_blocked((8, 128)), (16, 256), (1, 256))


@needs_libtpu
def test_compiles_for_every_chip_in_one_process() -> None:
    for chip, kind in (("v5e", "TPU v5 lite"), ("v6e", "TPU v6 lite"), ("v7x", "TPU7x")):
        outcome = libtpu.compile_exported(_healthy(), chip)
        assert outcome.kind == "compiled", outcome.message
        assert outcome.analysis["device_kind"] == kind
        assert outcome.analysis["tpu_custom_calls"] == 1
        assert outcome.analysis["memory"]["argument_size_in_bytes"] >= 16 * 256 * 4
        assert outcome.peak_memory_bytes > 50_000_000
        assert outcome.versions["libtpu"] == libtpu.libtpu_version()
        assert not outcome.cached


@needs_libtpu
def test_a_refusal_is_the_compilers_own_words_and_keeps_the_worker() -> None:
    libtpu.compile_exported(_healthy(), "v5e")
    pid = libtpu._worker.get().pid
    outcome = libtpu.compile_exported(
        _exported(_blocked((2048, 2048)), (4096, 4096), (1, 4096)), "v5e"
    )
    assert outcome.kind == "refused"
    assert "RESOURCE_EXHAUSTED" in outcome.message
    assert libtpu._worker.get().pid == pid


@needs_libtpu
def test_an_abort_of_the_compiler_is_an_outcome(capfd: pytest.CaptureFixture[str]) -> None:
    broken = _exported(_blocked((8, 128), row=1), (16, 256), (1, 256))
    outcome = libtpu.compile_exported(broken, "v5e")
    if libtpu.libtpu_version() != "0.0.50.1":
        assert outcome.kind in ("crashed", "refused")
    else:
        assert outcome.kind == "crashed"
        assert outcome.error_type == "SIGABRT"
        assert "Check failed: llo::CouldLtS32(digits[i], bounds[i])" in outcome.message
    assert libtpu.compile_exported(_healthy(), "v5e").kind == "compiled"
    assert capfd.readouterr() == ("", "")


@needs_libtpu
def test_time_limit_ends_a_compilation() -> None:
    libtpu.compile_exported(_healthy(), "v5e")
    outcome = libtpu.compile_exported(_healthy(), "v6e", time_limit=0.001)
    assert outcome.kind in ("timed out", "deadlocked")
    assert libtpu.compile_exported(_healthy(), "v6e").kind == "compiled"


@needs_libtpu
def test_cached_outcomes_say_so_and_can_be_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALLAS_RUNGS_CACHE", str(tmp_path))
    monkeypatch.delenv("PALLAS_RUNGS_NO_CACHE", raising=False)
    first = libtpu.compile_exported(_healthy(), "v5e", cache=True)
    second = libtpu.compile_exported(_healthy(), "v5e", cache=True)
    assert (first.cached, second.cached) == (False, True)
    assert second.analysis == first.analysis
    assert not libtpu.compile_exported(_healthy(), "v6e", cache=True).cached
    assert not libtpu.compile_exported(_healthy(), "v5e").cached
    monkeypatch.setattr(libtpu, "installed_versions", lambda: {"jax": "", "libtpu": "newer"})
    assert not libtpu.compile_exported(_healthy(), "v5e", cache=True).cached
    monkeypatch.undo()
    monkeypatch.setenv("PALLAS_RUNGS_CACHE", str(tmp_path))
    monkeypatch.setenv("PALLAS_RUNGS_NO_CACHE", "1")
    assert not libtpu.compile_exported(_healthy(), "v5e", cache=True).cached


def test_without_libtpu_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu, "libtpu_version", lambda: None)
    outcome = libtpu.compile_exported(b"", "v5e")
    assert outcome.kind == "unavailable"
    assert "libtpu" in outcome.message
    monkeypatch.setattr("sys.platform", "linux")
    assert 'pip install "libtpu==0.0.50.*"' in libtpu.why_unavailable()
    monkeypatch.setattr("sys.platform", "darwin")
    assert "Linux only" in libtpu.why_unavailable()


def test_an_unknown_chip_is_the_callers_error() -> None:
    with pytest.raises(ValueError, match="unknown chip"):
        libtpu.compile_exported(b"", "v9")
    with pytest.raises(ValueError, match="libtpu compiles for TPUs, and h100 is a GPU"):
        libtpu.compile_exported(b"", "h100")


def test_the_last_word_of_a_dead_compiler() -> None:
    lines = (
        "noise",
        "F1129 13:00:00.1 77 a.cc:12] Check failed: a < b ",
        "*** trace ***",
        "  @ 0x1",
    )
    assert last_word(Died(None, "SIGABRT", lines, 1.0)) == (
        "the process was ended by SIGABRT: Check failed: a < b"
    )
    assert last_word(Died(9, "", (), 1.0)) == "the process left with exit code 9"
