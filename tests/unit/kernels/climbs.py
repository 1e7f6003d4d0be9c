"""Climbing a kernel's case, and what must come of it where no compiler is asked."""

from pallas_rungs.kernels.case import Case
from pallas_rungs.kernels.catalogue import Kernel
from pallas_rungs.ladder import Report, Rung, Status, climb

HERE = [Rung.TRACE, Rung.INTERPRET, Rung.SIMULATE]


def climbed(kernel: Kernel, case: Case, rungs: list[Rung], chips: tuple[str, ...]) -> Report:
    return climb(
        kernel.call,
        *case.args,
        reference=kernel.reference,
        rungs=rungs,
        chips=chips,
        rtol=case.rtol,
        atol=case.atol,
        name=f"{kernel.name}: {case.name}",
    )


def passes_without_a_compiler(kernel: Kernel, case: Case) -> None:
    report = climbed(kernel, case, [*HERE, Rung.LOWER], ("v5e",))
    assert {v.rung for v in report.verdicts} == {*HERE, Rung.LOWER}
    for verdict in report.verdicts:
        tried = verdict.rung not in kernel.tool_cannot
        assert verdict.status == (Status.PASSED if tried else Status.TOOL_CANNOT), report
