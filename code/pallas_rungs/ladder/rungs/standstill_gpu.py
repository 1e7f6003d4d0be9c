"""A GPU kernel in the simulator that waits at a barrier where too few will arrive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from pallas_rungs.ladder.rungs.standstill import Blocked, Standstill, Wait, Watch


@dataclass
class _AtBarrier(Blocked):
    """A thread inside `Barrier.wait`.

    Attributes:
      barrier: the simulator's barrier.
      thread: the simulated warpgroup or warp.
      phase: the phase that was to complete when it began to wait.
      source: where the kernel waits, if the simulator knows.
    """

    barrier: Any
    thread: Any
    phase: int
    source: Any

    def hopeless(self) -> bool:
        """True while the phase is not complete: copies arrive as they start, so none is pending."""
        with self.barrier.cv:
            return bool(self.barrier.phase == self.phase)

    def order(self) -> tuple[int, ...]:
        """By device, block, warpgroup and warp."""
        thread = self.thread
        warp = getattr(thread, "warp_id", 0)
        return thread.device_id, thread.block_id, thread.warpgroup_id, warp

    def told(self) -> Wait:
        """Which thread waits, and how many have arrived."""
        from jax._src import source_info_util

        _, block, warpgroup, _ = self.order()
        warp = getattr(self.thread, "warp_id", None)
        who = f"warpgroup {warpgroup}" + ("" if warp is None else f", warp {warp},")
        arrived, wanted = self.barrier.arrivals_count, self.barrier.num_arrivals
        what = f"phase {self.phase} of a barrier with {arrived} of {wanted} arrivals"
        at = source_info_util.summarize(self.source) if self.source is not None else ""
        return Wait(f"{who} of block {block}", what, at)


@dataclass
class _Watch(Watch):
    running: int = 0

    def memory(self) -> Any:
        """The simulator's shared memory."""
        from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks

        return gpu_callbacks._shared_memory

    def moving(self, memory: Any) -> bool:
        """False: copies are made by the thread that starts them."""
        return False

    def at_the_end(self, memory: Any) -> int:
        """How many devices stand at the barriers around a kernel."""
        return int(memory.barrier.n_waiting + memory.clean_up_barrier.n_waiting)

    def threads(self, memory: Any) -> int | None:
        """Those that have not ended, or one for each warpgroup of the blocks of a cluster."""
        with self.lock:
            if self.running:
                return self.running
        blocks, warpgroups = memory.num_blocks_per_cluster, memory.num_pallas_threads_per_block
        return int(memory.num_devices * blocks * warpgroups)

    def end(self, memory: Any, waiting: list[Blocked]) -> None:
        """Fail the run and wake everybody."""
        memory.set_failed(RuntimeError(str(self.found)), top_level=False)
        for blocked in waiting:
            if isinstance(blocked, _AtBarrier):
                blocked.barrier.abort()

    def counting(self, run: Callable[..., None]) -> Callable[..., None]:
        """Return `run`, which is what a thread of the kernel does, counting those inside."""

        def counted(*args: Any) -> None:
            with self.lock:
                self.running += 1
            try:
                run(*args)
            finally:
                with self.lock:
                    self.running -= 1

        return counted

    def noting(self, wait: Callable[..., None]) -> Callable[..., None]:
        """Return the barrier's `wait`, noting who is in it."""

        def noted(barrier: Any, thread: Any, logging_info: Any = None) -> None:
            source = getattr(logging_info, "source_info", None)
            with self.noted(_AtBarrier(barrier, thread, barrier.phase, source)):
                wait(barrier, thread, logging_info)

        return noted


@contextlib.contextmanager
def ended_at_a_standstill() -> Iterator[Standstill]:
    """End a simulated kernel that waits for arrivals which never come, by an error in its threads.

    Certain where every warpgroup waits that has not come to its end. Where warps of one do so by
    themselves: after five seconds without work.
    """
    from jax._src.pallas.mosaic.interpret import thread_map
    from jax._src.pallas.mosaic_gpu.interpret.shared_memory import Barrier

    watch = _Watch()
    with (
        mock.patch.object(Barrier, "wait", watch.noting(Barrier.wait)),
        mock.patch.object(thread_map, "_run_jaxpr", watch.counting(thread_map._run_jaxpr)),
        watch.watching() as found,
    ):
        yield found
