"""Every kernel on every rung that needs no chip: each of its cases, on each of its chips.

The first two cases below the compiler are in test_first_cases.py.
"""

import pytest

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.catalogue import KERNELS, Kernel
from pallas_rungs.ladder import Rung, Status
from unit.kernels.climbs import climbed, passes_without_a_compiler

CHIPS = ("v5e", "v6e", "tpu7x")
BY_NAME = {kernel.name: kernel for kernel in KERNELS}


REMAINING = [
    pytest.param(kernel, case, id=f"{kernel.name}: {case.name}")
    for kernel in KERNELS
    for case in kernel.cases()[2:]
]


@pytest.mark.parametrize(("kernel", "case"), REMAINING)
def test_the_case_passes_without_a_compiler(kernel: Kernel, case: Case) -> None:
    passes_without_a_compiler(kernel, case)


COMPILED = [
    pytest.param(kernel, case, id=f"{kernel.name}: {case.name}")
    for kernel in KERNELS
    if kernel.chips
    for case in (kernel.cases()[1], kernel.cases()[-1])
]


@pytest.mark.parametrize(("kernel", "case"), COMPILED)
def test_the_case_compiles_for_its_chips(kernel: Kernel, case: Case) -> None:
    assert set(CHIPS) <= set(kernel.chips)
    report = climbed(kernel, case, [Rung.LOWER, Rung.COMPILE], CHIPS)
    assert {v.target for v in report.verdicts if v.rung == Rung.COMPILE} == set(CHIPS)
    assert report.passed, report


@pytest.mark.parametrize("chip", CHIPS)
def test_offsets_of_four_are_refused_by_the_compiler(chip: str) -> None:
    kernel = BY_NAME["add_by_offsets"]
    assert not kernel.chips
    report = climbed(kernel, kernel.cases()[0], [Rung.LOWER, Rung.COMPILE], (chip,))
    assert report.status(Rung.LOWER) == Status.PASSED, report
    verdict = report.of(Rung.COMPILE)
    assert verdict.status == Status.REFUSED, report
    assert verdict.error is not None
    assert "multiple of 128" in verdict.error.message, report
