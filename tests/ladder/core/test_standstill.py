"""A simulated kernel that nobody will wake: told, ended, and nothing of it left behind."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import Status, climb
from pallas_rungs.ladder.rungs.standstill_tpu import ended_at_a_standstill


def waits_for(value, given):
    """A kernel that signals its semaphore `given` and waits for `value`."""

    def kernel(x_ref, o_ref, semaphore):
        pl.semaphore_signal(semaphore, given)
        pl.semaphore_wait(semaphore, value)
        o_ref[...] = x_ref[...]

    def call(x):
        return pl.pallas_call(kernel, out_shape=x, scratch_shapes=[pltpu.SemaphoreType.REGULAR])(x)

    return call


def never_started(x):
    """Waits for a copy that is not under way."""

    def kernel(x_ref, o_ref, semaphore):
        pltpu.make_async_copy(x_ref, o_ref, semaphore).wait()

    return pl.pallas_call(
        kernel,
        in_specs=[sick.HBM],
        out_specs=sick.HBM,
        scratch_shapes=[pltpu.SemaphoreType.DMA],
        out_shape=x,
    )(x)


def test_a_signal_too_few_is_a_deadlock_with_its_numbers():
    report = climb(waits_for(3, 1), sick.X, reference=lambda x: x, rungs=["simulate"])
    for setting in ("default", "races"):
        verdict = report.of("simulate", setting)
        assert verdict.status is Status.DEADLOCKED
        assert verdict.error.type == "TimeoutError"
        assert verdict.summary == (
            "device 0 waits for 3, the semaphore is at 1, and nobody is left to signal it"
        )
        assert "Every wait needs its signal" in verdict.error.advice


def test_enough_signals_are_no_deadlock():
    report = climb(waits_for(3, 3), sick.X, reference=lambda x: x, rungs=["simulate"])
    assert report.passed


def test_a_copy_never_started_is_a_deadlock_at_its_line():
    report = climb(never_started, sick.X, reference=lambda x: x, rungs=["simulate"])
    verdict = report.of("simulate", "default")
    assert verdict.status is Status.DEADLOCKED
    assert "make_async_copy(x_ref, o_ref, semaphore).wait()" in verdict.error.frame.source


def test_what_comes_after_a_deadlock_runs():
    climb(never_started, sick.X, rungs=["simulate"])
    report = climb(sick.add_one, sick.X, reference=sick.add_one_reference, rungs=["simulate"])
    assert report.passed


def test_a_slow_kernel_is_left_alone():
    def slow(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = jax.lax.fori_loop(0, 60, lambda _, y: jnp.tanh(y @ y.T) @ y, x_ref[...])

        return pl.pallas_call(kernel, out_shape=x)(x)

    x = np.ones((256, 256), np.float32)
    report = climb(slow, x, rungs=["simulate"])
    assert report.status("simulate", "default") is Status.UNCHECKED


def test_the_simulators_semaphores_are_as_before():
    from jax._src.pallas.mosaic.interpret.shared_memory import Semaphore

    before = Semaphore.wait, Semaphore.enqueue_task
    with ended_at_a_standstill() as found:
        assert Semaphore.wait is not before[0]
    assert not found
    assert (Semaphore.wait, Semaphore.enqueue_task) == before
