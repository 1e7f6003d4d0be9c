"""The first two cases of every kernel on every rung below the compiler.

They are apart from the others because `tools/mutate.py` tries them on each mutant, and must not
wait for all cases of all kernels to be made.
"""

import pytest

from pallas_rungs.kernels.catalogue import KERNELS, Kernel
from unit.kernels.climbs import passes_without_a_compiler


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_case_passes_without_a_compiler(kernel: Kernel, number: int) -> None:
    passes_without_a_compiler(kernel, kernel.cases()[number])
