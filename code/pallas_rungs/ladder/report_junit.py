"""The JUnit form of ladder reports: a test suite for each problem, a test case for each verdict.

A verdict that finds fault with the kernel is a failure; a process that died and a reference that
raised are errors; what proves nothing (unchecked, tool cannot, unavailable) is skipped, with the
reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from pallas_rungs.ladder.files import FileClimb
from pallas_rungs.ladder.notes import notes
from pallas_rungs.ladder.report import Report
from pallas_rungs.ladder.report_text import error_lines
from pallas_rungs.ladder.rules import suggestions
from pallas_rungs.ladder.status import Status
from pallas_rungs.ladder.verdict import Verdict

_ELEMENT = {
    Status.PASSED: "",
    Status.UNCHECKED: "skipped",
    Status.TOOL_CANNOT: "skipped",
    Status.UNAVAILABLE: "skipped",
    Status.WRONG: "failure",
    Status.REFUSED: "failure",
    Status.NO_KERNEL: "failure",
    Status.DEADLOCKED: "failure",
    Status.TIMED_OUT: "failure",
    Status.CRASHED: "error",
    Status.REFERENCE_FAILED: "error",
}
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(climbs: Sequence[FileClimb]) -> str:
    """Return the climbs as one JUnit document."""
    root = ElementTree.Element("testsuites", name="pallas_rungs climb")
    for climb in climbs:
        if climb.error:
            _add_unloadable(root, climb)
        for report in climb.reports:
            _add_suite(root, climb.target, report)
    _count(root, list(root.iter("testcase")))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _add_suite(root: ElementTree.Element, target: str, report: Report) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=clean(f"{_short(target)} {report.name}"))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in report.versions.items():
        ElementTree.SubElement(properties, "property", name=clean(name), value=clean(value))
    for verdict in report.verdicts:
        _add_case(suite, f"{_short(target)}.{report.name}", verdict)
    _count(suite, suite.findall("testcase"))


def _add_case(suite: ElementTree.Element, classname: str, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=clean(classname),
        name=clean(verdict.label),
        time=f"{verdict.seconds:.3f}",
    )
    element = _ELEMENT[verdict.status]
    if not element:
        return
    found = ElementTree.SubElement(
        case, element, message=clean(f"{verdict.status}: {verdict.summary}")
    )
    if element != "skipped":
        found.set("type", clean(verdict.error.type if verdict.error else str(verdict.status)))
        found.text = clean("\n".join(_body(verdict)))


def _body(verdict: Verdict) -> list[str]:
    lines = [verdict.summary]
    if verdict.error is not None:
        lines += [*error_lines(verdict.error), verdict.error.full]
    return [*lines, *notes(verdict), *map(str, suggestions(verdict))]


def _add_unloadable(root: ElementTree.Element, climb: FileClimb) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=clean(_short(climb.target)))
    case = ElementTree.SubElement(
        suite, "testcase", classname=clean(_short(climb.target)), name="load", time="0"
    )
    error = ElementTree.SubElement(case, "error", message=clean(climb.error.split("\n", 1)[0]))
    error.set("type", "LoadError")
    error.text = clean(climb.error)
    _count(suite, [case])


def _count(element: ElementTree.Element, cases: Sequence[ElementTree.Element]) -> None:
    element.set("tests", str(len(cases)))
    for name, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(plural, str(sum(case.find(name) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")


def _short(target: str) -> str:
    path, _, symbol = target.rpartition(":")
    return f"{Path(path).name}:{symbol}"


def clean(text: str) -> str:
    """Return the text without what no XML document may hold (control characters, surrogates)."""
    return _NO_XML.sub("\ufffd", text)
