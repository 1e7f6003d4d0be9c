"""Each kernel's own cases, with interpret=True, to the tolerance that the case states."""

import numpy as np
import pytest

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.catalogue import KERNELS, Kernel

CASES = [
    pytest.param(kernel, case, id=f"{kernel.name}: {case.name}")
    for kernel in KERNELS
    for case in kernel.cases()
]


@pytest.mark.parametrize(("kernel", "case"), CASES)
def test_the_case_agrees_with_its_reference(kernel: Kernel, case: Case) -> None:
    got = np.asarray(kernel.call(*case.args, interpret=True)).astype(np.float64)
    want = kernel.reference(*case.args)
    assert want.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_cases_have_names_of_their_own_and_repeat_exactly(kernel: Kernel) -> None:
    first, again = kernel.cases(), kernel.cases()
    assert len({case.name for case in first}) == len(first)
    for one, two in zip(first, again, strict=True):
        for x, y in zip(one.args, two.args, strict=True):
            np.testing.assert_array_equal(x, y)
