"""How fast a kernel may be on a chip that is not there: bounds, budgets and estimates.

`chip_table`, `roofline` and `vmem_budget` need no compiler. An estimate does. Its parts, in the
order in which a program goes through them: `ir.bundles` reads the dumped listing,
`ir.scalar_program` takes its scalar half out, `interpreter` executes it on a `machine` whose DMAs
`dma` simulates with the constants of `clock`, `kernel` and `module` make estimates of the counts,
and `estimate` compiles a function and puts it all together. `sweep` does so for many tiles at once.
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
