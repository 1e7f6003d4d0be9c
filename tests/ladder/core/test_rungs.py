"""Each planted fault is caught by the rung that can catch it, and by none that cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import Rung, Status
from pallas_rungs.ladder.problem import Problem
from pallas_rungs.ladder.program import Program, trace
from pallas_rungs.ladder.rungs import attempt, export_program, simulator_settings


def problem(function, reference=sick.add_one_reference, args=(sick.X,), **fields):
    return Problem(function.__name__, function, args, reference, **fields)


def status(posed, rung, target=""):
    return attempt(posed, rung, target).status


@pytest.mark.parametrize("rung", ["trace", "interpret", "simulate", "lower"])
def test_a_healthy_kernel_passes(rung):
    assert status(problem(sick.add_one), rung) is Status.PASSED


def test_without_a_reference_numbers_are_unchecked():
    posed = problem(sick.add_one, reference=None)
    assert status(posed, "trace") is Status.PASSED
    assert status(posed, "interpret") is Status.UNCHECKED
    assert status(posed, "simulate", "races") is Status.UNCHECKED


def test_a_wrong_reference_makes_the_numbers_wrong():
    verdict = attempt(problem(sick.add_one, lambda x: x + 1 + (x == 130)), "interpret")
    assert verdict.status is Status.WRONG
    assert verdict.difference.count == 1
    assert verdict.difference.first_index == (1, 2)


def test_a_reference_that_raises_is_not_the_kernels_fault():
    def reference(x):
        raise KeyError("no such row")

    verdict = attempt(problem(sick.add_one, reference), "interpret")
    assert verdict.status is Status.REFERENCE_FAILED
    assert verdict.error.type == "KeyError"
    assert status(problem(sick.add_one, reference), "lower") is Status.PASSED


def test_fresh_memory_is_nan():
    posed = problem(sick.fresh_accumulator, sick.sum_of_blocks)
    verdict = attempt(posed, "simulate")
    assert verdict.status is Status.WRONG
    assert verdict.difference.nan == verdict.difference.count == 1024


def test_a_block_out_of_bounds_is_refused_by_the_simulator_with_the_innermost_error():
    verdict = attempt(problem(sick.one_block_too_far), "simulate")
    assert verdict.status is Status.REFUSED
    assert verdict.error.type == "IndexError"
    assert verdict.error.message.startswith("Out-of-bounds block index")
    assert "block indices" in verdict.error.advice


def test_the_simulator_is_clean_after_a_failure():
    assert status(problem(sick.unwaited_copy), "simulate", "races") is Status.REFUSED
    assert status(problem(sick.add_one), "simulate", "races") is Status.PASSED
    assert status(problem(sick.add_one), "simulate") is Status.PASSED


def test_an_unwaited_copy_is_wrong_and_a_race():
    posed = problem(sick.unwaited_copy)
    assert status(posed, "interpret") is Status.PASSED
    assert status(posed, "simulate", "default") is Status.WRONG
    verdict = attempt(posed, "simulate", "races")
    assert verdict.status is Status.REFUSED
    assert "RACE DETECTED" in verdict.error.message
    assert verdict.error.frame.file == sick.__file__


def test_two_copies_of_one_core_race_and_nobody_else_sees_it():
    x = sick.X[:16]
    posed = problem(sick.refilled_too_early, lambda x: x, (x,))
    assert status(posed, "simulate", "default") is Status.PASSED
    before = np.random.get_state()
    verdict = attempt(posed, "simulate", "races")
    assert verdict.status is Status.REFUSED
    assert "RACE DETECTED" in verdict.error.message
    assert status(posed, "simulate", "eager") is Status.PASSED
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_numbers_are_computed_again_where_a_mask_may_be_multiplied(monkeypatch):
    literally = []
    run = Program.run

    def noted(self, interpret, **options):
        literally.append(not options.get("simplify", True))
        return run(self, interpret, **options)

    monkeypatch.setattr(Program, "run", noted)
    assert status(problem(sick.add_one), "interpret") is Status.PASSED
    assert literally == [False]

    def above_ten(x):
        return (x > 10).astype(x.dtype) * sick.add_one(x)

    def reference(x):
        return np.where(x > 10, x + 1, 0)

    assert status(problem(above_ten, reference), "interpret") is Status.PASSED
    assert literally == [False, False, True]


def test_the_choice_of_a_branch_is_no_mask():
    def choosing_kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = x_ref[...]

    def masking_kernel(x_ref, o_ref):
        o_ref[...] = (pl.program_id(0) == 0).astype(x_ref.dtype) * x_ref[...]

    def traced(kernel):
        call = pl.pallas_call(
            kernel, grid=(1,), out_shape=jax.ShapeDtypeStruct((8, 128), "float32")
        )
        return trace(call, (np.ones((8, 128), np.float32),))

    assert not traced(choosing_kernel).turns_masks_into_numbers
    assert traced(masking_kernel).turns_masks_into_numbers


def test_settings_that_share_a_compiled_program_keep_their_own_verdicts():
    traced = []

    def counted(x):
        traced.append(x)
        return sick.unwaited_copy(x)

    posed = problem(counted, simulations={"eager": {"dma_execution_mode": "eager"}})
    wanted = {"races": Status.REFUSED, "default": Status.WRONG, "eager": Status.PASSED}
    for setting in [*wanted, *reversed(wanted)]:
        assert status(posed, "simulate", setting) is wanted[setting], setting
    assert len(traced) == 1
    other = {"zeros": {"uninitialized_memory": "zero"}}
    fresh = problem(sick.fresh_accumulator, sick.sum_of_blocks, simulations=other)
    assert status(fresh, "simulate") is Status.WRONG
    assert attempt(fresh, "simulate", "zeros").difference is None


def test_a_parallel_axis_is_also_tried_on_two_cores():
    posed = problem(sick.parallel_accumulator, sick.sum_of_blocks)
    assert list(simulator_settings(posed)) == ["default", "races", "two cores"]
    assert status(posed, "simulate", "races") is Status.PASSED
    assert status(posed, "simulate", "two cores") is Status.REFUSED
    assert list(simulator_settings(problem(sick.add_one))) == ["default", "races"]


def test_own_simulator_settings_are_tried():
    posed = problem(sick.unwaited_copy, simulations={"eager": {"dma_execution_mode": "eager"}})
    assert list(simulator_settings(posed))[-1] == "eager"
    assert status(posed, "simulate", "eager") is Status.PASSED


def test_a_race_that_the_simulator_only_warns_of_is_refused():
    warned = {"warned": {"detect_races": True, "on_race": "warn", "dma_execution_mode": "eager"}}
    verdict = attempt(problem(sick.unwaited_copy, simulations=warned), "simulate", "warned")
    assert verdict.status is Status.REFUSED
    assert verdict.error.message == "RACE DETECTED"


@pytest.mark.parametrize("setting", ["default", "races", "eager"])
def test_a_kernel_on_a_mesh_of_cores_is_simulated_with_as_many_cores(setting):
    def kernel(x_ref, o_ref, done):
        mine = pl.ds(8 * lax.axis_index("core"), 8)
        pltpu.async_copy(x_ref.at[mine], o_ref.at[mine], done).wait()

    def copied_by_two_cores(x):
        return pl.kernel(
            kernel,
            out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
            mesh=pltpu.TensorCoreMesh(axis_name="core", num_cores=2),
            scratch_types=[pltpu.SemaphoreType.DMA],
        )(x)

    posed = problem(copied_by_two_cores, np.asarray, (np.ones((16, 128), np.float32),))
    assert status(posed, "simulate", setting) is Status.PASSED


def test_an_unknown_setting_is_named():
    with pytest.raises(ValueError, match="'sideways'; there are default, races"):
        attempt(problem(sick.add_one), "simulate", "sideways")


def test_an_unknown_chip_is_named():
    with pytest.raises(ValueError, match="v99"):
        attempt(problem(sick.add_one), "lower", "v99")


def test_the_block_rule_is_caught_by_lowering_alone():
    posed = problem(sick.single_rows)
    assert status(posed, "simulate") is Status.PASSED
    verdict = attempt(posed, "lower")
    assert verdict.status is Status.REFUSED
    assert "divisible by 8 and 128" in verdict.error.full
    assert verdict.error.advice


@pytest.mark.parametrize("rung", ["trace", "interpret", "simulate", "lower", "compile"])
def test_what_does_not_trace_is_refused_on_every_rung(rung):
    verdict = attempt(problem(sick.python_if), rung)
    assert verdict.status is Status.REFUSED
    assert verdict.error.type == "TracerBoolConversionError"
    assert verdict.error.frame.source == "if pl.program_id(0) == 0:"
    assert "pl.when" in verdict.error.advice


@pytest.mark.parametrize("rung", ["trace", "interpret", "simulate", "lower"])
def test_plain_jax_is_no_kernel(rung):
    def plain(x):
        return x + 1

    assert status(problem(plain), rung) is Status.NO_KERNEL


def test_arguments_that_do_not_fit_are_refused():
    verdict = attempt(problem(sick.add_one, args=(sick.X, False, 3)), "trace")
    assert verdict.status is Status.REFUSED
    assert verdict.error.type == "TypeError"


def test_a_kernel_that_exits_is_refused():
    def leaves(x):
        raise SystemExit(3)

    assert status(problem(leaves), "trace") is Status.REFUSED


def test_an_interrupt_passes():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(problem(interrupted), "trace")


def baked(x):
    return sick.add_one(x, interpret=True)


@pytest.mark.parametrize("rung", ["simulate", "lower"])
def test_an_interpreter_baked_in_is_set_aside_and_said(rung):
    verdict = attempt(problem(baked), rung)
    assert verdict.status is Status.PASSED
    assert "interpret=True was set aside" in verdict.details["interpreter"]


def test_a_baked_interpreter_does_not_hide_a_fault_from_the_lowering():
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...], axis=1)

    def cumulative(x):
        return pl.pallas_call(kernel, out_shape=x, interpret=True)(x)

    posed = problem(cumulative, lambda x: np.cumsum(x, 1))
    assert status(posed, "interpret") is Status.PASSED
    assert status(posed, "lower") is Status.REFUSED


@pytest.mark.parametrize("rung", ["interpret", "simulate", "lower"])
@pytest.mark.parametrize("where", ["scan", "while", "cond", "jit", "remat", "custom_vjp", "vmap"])
def test_kernels_are_found_inside_control_flow(where, rung):
    def scanned(x):
        return lax.scan(lambda c, _: (baked(c), None), x, None, length=1)[0]

    def looped(x):
        return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, baked(c[1])), (0, x))[1]

    def branched(x):
        return lax.cond(x[0, 0] == 0, baked, lambda c: c, x)

    def derived(x):
        f = jax.custom_vjp(baked)
        f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
        return f(x)

    functions = {
        "scan": scanned,
        "while": looped,
        "cond": branched,
        "jit": jax.jit(baked),
        "remat": jax.checkpoint(baked),
        "custom_vjp": derived,
        "vmap": lambda x: jax.vmap(baked)(x[None])[0],
    }
    posed = Problem(where, functions[where], (sick.X,), sick.add_one_reference)
    verdict = attempt(posed, rung)
    assert verdict.status is Status.PASSED, verdict.summary
    assert verdict.details["kernels"] == 1


def test_platform_dependent_programs_are_judged_by_their_branch_for_tpu():
    posed = problem(sick.by_platform)
    for rung in ("interpret", "simulate", "lower"):
        assert status(posed, rung) is Status.PASSED


def test_debug_prints_do_not_keep_a_program_from_being_lowered():
    def talks(x):
        jax.debug.print("first {}", x[0, 0])
        return sick.add_one(x)

    assert status(problem(talks), "lower") is Status.PASSED
    assert export_program(problem(talks), "v5e").kernels == 1


def test_a_kernel_whose_result_is_dropped_is_no_kernel_when_lowered():
    def dropped(x):
        sick.add_one(x)
        return x + 1

    assert status(problem(dropped), "lower") is Status.NO_KERNEL


def test_a_program_that_runs_eagerly_only_is_tried_kernel_by_kernel():
    posed = problem(sick.looks_between, lambda x: (x + 1) * 2)
    for rung in ("trace", "interpret", "simulate", "lower"):
        verdict = attempt(posed, rung)
        assert verdict.status is Status.PASSED, verdict.summary
        assert "eager" in verdict.details
    assert status(problem(sick.looks_between), "interpret") is Status.WRONG


def test_static_arguments_are_closed_over():
    def blocked(x, rows, name):
        spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
        return pl.pallas_call(
            sick.add_one_kernel,
            grid=(x.shape[0] // rows,),
            in_specs=[spec],
            out_specs=spec,
            out_shape=x,
            name=name,
        )(x)

    posed = problem(blocked, lambda x, rows, name: x + 1, (sick.X, 16, "rows"))
    verdict = attempt(posed, "interpret")
    assert verdict.status is Status.PASSED
    assert verdict.details["arguments"] == ["float32[32,128]", "16", "'rows'"]
    assert status(posed, "lower") is Status.PASSED


def test_the_chip_rung_cannot_be_tried_here():
    with pytest.raises(ValueError, match="needs a chip"):
        attempt(problem(sick.add_one), Rung.CHIP)


def test_an_exported_program_says_what_it_needs():
    exported = export_program(problem(sick.add_one), "v5e")
    assert exported.kernels == 1
    assert exported.devices == 1
    assert exported.pretend["chip"] == "v5e"
    assert jax.export.deserialize(bytearray(exported.serialized)).platforms == ("tpu",)
