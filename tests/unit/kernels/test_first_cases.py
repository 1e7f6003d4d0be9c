"""The first two cases of every kernel on every rung below the compiler.

They are apart from the others because `tools/mutate.py` tries them on each mutant, the cheapest
rung first, and must not wait for all cases of all kernels to be made.
"""

import pytest

from pallas_rungs.kernels.catalogue import KERNELS, Kernel
from pallas_rungs.ladder import Rung
from unit.kernels.climbs import first_problem, passes, passes_in_the_simulator

FIRST = pytest.mark.parametrize(
    ("kernel", "number"),
    [
        pytest.param(kernel, number, id=f"{kernel.name}-{number}")
        for kernel in KERNELS
        for number in (0, 1)
    ],
)


@FIRST
@pytest.mark.parametrize("rung", [Rung.TRACE, Rung.INTERPRET, Rung.LOWER])
def test_the_rung_is_content(kernel: Kernel, number: int, rung: Rung) -> None:
    passes(kernel, first_problem(kernel, number), rung)


@FIRST
def test_the_simulator_is_content(kernel: Kernel, number: int) -> None:
    passes_in_the_simulator(kernel, first_problem(kernel, number), on_two_cores=number == 0)
