"""Innermost errors, frames, advice and the compiler's words about memory."""

import linecache

import jax
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from pallas_rungs.ir.memory_overflow import in_words, memory_overflow
from pallas_rungs.ladder.advice import advice_for
from pallas_rungs.ladder.diagnose import first_line, innermost, kernel_error
from pallas_rungs.ladder.source_frames import is_users

CALLBACK = """INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):
  File "/home/reader/kernel.py", line 13, in <module>
  File "/lib/jax/_src/callback.py", line 72, in __call__
IndexError: Out-of-bounds block index (8, 0) for input "x_ref"
"""


def test_a_callback_error_is_unwrapped():
    inner = innermost(jax.errors.JaxRuntimeError(CALLBACK))
    assert inner.type == "IndexError"
    assert inner.message == 'Out-of-bounds block index (8, 0) for input "x_ref"'


def test_nested_tracebacks_give_the_last_exception_with_all_its_lines():
    text = CALLBACK + "\nDuring handling:\n\nTraceback (most recent call last):\n"
    text += '  File "/lib/x.py", line 1, in f\nRuntimeError: RACE DETECTED\n  read of vmem\n'
    inner = innermost(jax.errors.JaxRuntimeError(text))
    assert inner.type == "RuntimeError"
    assert inner.message == "RACE DETECTED\n  read of vmem"


def test_other_errors_stay_as_they_are():
    assert innermost(ValueError("Traceback (most recent call last):")).type == "ValueError"
    assert innermost(jax.errors.JaxRuntimeError("INTERNAL: x")).type == "JaxRuntimeError"


def test_the_compilers_preamble_is_left_out_of_the_first_line():
    message = (
        "INTERNAL: Mosaic failed to compile TPU kernel with MLIR module name `kernel` HLO name "
        "`_lambda_.1`: E2003: CompileTimeMosaicUnprovenMemoryAccessAlignment: cannot prove\nmore"
    )
    assert first_line(message).startswith("E2003: CompileTimeMosaicUnproven")
    assert first_line("") == "(the error carries no message)"


def test_the_users_frame_is_found():
    def user_code():
        raise ValueError("here")

    try:
        user_code()
    except ValueError as error:
        frame = kernel_error(error).frame
    assert frame.file == __file__
    assert frame.source == 'raise ValueError("here")'


def test_whose_file():
    assert is_users(__file__)
    assert not is_users(jax.__file__)
    assert not is_users(linecache.__file__)
    assert not is_users("<frozen importlib>")


@pytest.mark.parametrize(
    ("kind", "message", "word"),
    [
        ("ValueError", "Invalid dtype for `swap`. Ref dtype: bfloat16.", "astype"),
        ("ValueError", "captures constants [f32[128]]", "operand"),
        (
            "JaxRuntimeError",
            "E2003: cannot statically prove that index in dimension 0",
            "multiple_of",
        ),
        (
            "NotImplementedError",
            "Unimplemented primitive in Pallas TPU lowering for tc: sort",
            "rule",
        ),
        ("ValueError", "Revisited block", "innermost"),
        ("JaxRuntimeError", "infer-vector-layout: unsupported shape cast", "multiple of 128"),
    ],
)
def test_advice(kind, message, word):
    assert word in advice_for(kind, message)


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        (pl, "load", "With a mask: pltpu.load"),
        (pl, "store", "pltpu.store"),
        (pltpu, "TPUCompilerParams", "pltpu.CompilerParams"),
        (pltpu, "TPUMemorySpace", "pltpu.MemorySpace"),
        (pltpu, "TPUInterpretParams", "pltpu.InterpretParams"),
        (pltpu, "ANY", "write pl. for pltpu"),
        (pltpu, "semaphore_wait", "write pl. for pltpu"),
        (pltpu, "repeat", "dir(pltpu)"),
    ],
)
def test_a_name_of_an_older_pallas_gets_the_one_of_today(module, name, words):
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert words in advice_for("AttributeError", str(caught.value))


def test_a_block_spec_with_its_arguments_the_old_way_round_is_told():
    spec = pl.BlockSpec(lambda i: (i, 0), (8, 128))
    call = pl.pallas_call(
        lambda x_ref, o_ref: None,
        grid=(2,),
        in_specs=[spec],
        out_shape=jax.ShapeDtypeStruct((16, 128), "float32"),
    )
    with pytest.raises(TypeError) as caught:
        jax.make_jaxpr(call)(jax.ShapeDtypeStruct((16, 128), "float32"))
    assert "block_shape first" in advice_for("TypeError", str(caught.value))


def test_the_names_that_are_advised_exist():
    for name in ("load", "store", "CompilerParams", "MemorySpace", "InterpretParams"):
        assert hasattr(pltpu, name)
    for name in ("ANY", "semaphore_signal", "semaphore_wait", "delay", "run_scoped"):
        assert hasattr(pl, name)


def test_the_path_of_a_file_is_no_part_of_what_was_wrong():
    said = "supports in memory space ANY only blocks having the same block shape as the array shape"
    call = f"The lowering currently {said}. Block spec in printing/kernel.py: index_map"
    assert "lax.map" in advice_for("ValueError", call)


def test_no_advice_is_better_than_wrong_advice():
    assert advice_for("ZeroDivisionError", "division by zero") == ""


@pytest.mark.parametrize(
    ("message", "used", "limit"),
    [
        (
            "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Scoped allocation with size "
            "96.00M and limit 16.00M exceeded scoped vmem limit",
            96 * 2**20,
            16 * 2**20,
        ),
        (
            "RESOURCE_EXHAUSTED: Allocation (size=268435456) would exceed memory (size=134217728) "
            ":: #allocation7 [shape = 'u8[268435456]{0}', space=vmem]. This allocation is single "
            "buffered",
            268435456,
            134217728,
        ),
        (
            "Ran out of memory in memory space vmem. Used 25.07M of 16.00M vmem. Exceeded vmem "
            "capacity by 9.07M.",
            round(25.07 * 2**20),
            16 * 2**20,
        ),
    ],
)
def test_memory_overflows_are_read(message, used, limit):
    found = memory_overflow(message)
    assert (found["space"], found["used"], found["limit"]) == ("vmem", used, limit)
    assert "of vmem, the limit is" in in_words(found)


def test_the_buffer_that_did_not_fit_is_read():
    message = "Allocation (size=268435456) would exceed memory (size=134217728), space=vmem. "
    found = memory_overflow(message + "This allocation is single buffered")
    assert found["buffer"] == 268435456
    assert found["buffering"] == "single"


def test_other_messages_are_no_overflow():
    assert memory_overflow("INTERNAL: something else with size 3") is None


def test_colours_for_a_terminal_are_left_out():
    found = kernel_error(ValueError("index_map { \x1b[34;1mlambda\x1b[39;22m ; }"))
    assert found.message == found.full == "index_map { lambda ; }"
