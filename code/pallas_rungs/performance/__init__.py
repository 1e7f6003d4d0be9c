"""How fast a kernel may be on a chip that is not there, and how fast it was on one that is.

Without a compiler, from what is known of a chip and of a call: `chip_table`, `roofline` and
`vmem_budget`.

An estimate needs libtpu's listing. Its parts, in the order in which a program goes through them:
`ir.bundles` reads the listing, `ir.scalar_program` takes its scalar half out, `operands` computes
integers that decide how far it goes, `interpreter` executes it on a `machine` whose copies `dma`
simulates with the constants of `clock`, `timeline` keeps what happened when, `kernel` and `module`
make estimates of the counts. `estimate` compiles a function and puts it all together, `report`
says it in words. `sweep` does so for many tiles at once, with `sweep_report`.

How far to trust that: `shipped` and `medians` read the times that others measured and tokamax
ships, `measured_calls` builds the kernels that they are of, `validation` keeps and judges the
comparison, `fitting` fits a chip's constants on half of it, and `accuracy` is the error that an
estimate prints.

What is held against what: `rivals` is XLA's own code, and `plans` what the compiler says that it
planned for it; `product_tiles`, `row_tasks` and `attention` are the tasks of the pages with the
blocks found for them; `causal` and `jax_flash` are attention as a gate calls it.

What may be said of it: `units` finds and writes figures, `provenance` is what one carries. `gates`
asks, `gate_records` keeps the estimates of both sides, with the hash of their code by `sources`.
Measurements are apart: `bench` times a function on a device, `gpu_tasks` is what is measured on a
GPU, and `measured` keeps it. `sealed` is how each of these records is written and read.
"""

from pallas_rungs.performance.estimate import Estimate, EstimateError, estimate
from pallas_rungs.performance.sweep import Sweep, SweepInterrupted, Trial, sweep

__all__ = [
    "Estimate",
    "EstimateError",
    "Sweep",
    "SweepInterrupted",
    "Trial",
    "estimate",
    "sweep",
]
