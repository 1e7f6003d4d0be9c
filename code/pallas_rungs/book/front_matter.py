"""What a page says about itself in its front matter, and whether that is true."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import yaml

from pallas_rungs.book.coverage_list import coverage_list
from pallas_rungs.book.faults import ChapterFaults, Fault, fault_log
from pallas_rungs.claims import RUNGS

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

KEYS = ("covers", "needs", "rungs", "minutes")


@dataclass(frozen=True)
class Page:
    """The front matter of one page.

    Attributes:
        docname: Sphinx's name of the page.
        covers: Ids of the coverage list that the page teaches.
        needs: Docnames of the pages to read before this one.
        rungs: The rungs on which the page's claims are proved, lowest first.
        minutes: Reading time; 0 for a page that gives none.
    """

    docname: str
    covers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    rungs: tuple[str, ...] = ()
    minutes: int = 0


def read_block(text: str) -> dict[str, Any]:
    """Read the YAML block at the top of a page; empty when the page has none.

    Raises:
        ValueError: when the block is not closed, is not YAML, or is no mapping.
    """
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise ValueError("the front matter is never closed by a line '---'")
    try:
        block = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError as error:
        raise ValueError(f"the front matter is not YAML: {' '.join(str(error).split())}") from error
    if block is None:
        return {}
    if not isinstance(block, dict):
        raise ValueError("the front matter must be a mapping of names to values")
    return block


def read_page(
    docname: str, block: Mapping[str, Any], *, base: str = "", executed: bool = True
) -> tuple[Page, list[str]]:
    """Take a page's promises out of its front matter.

    Args:
        docname: Sphinx's name of the page.
        block: the front matter.
        base: the folder to which ``needs`` are relative, such as ``book``.
        executed: whether the page has cells; such a page must give all four keys.

    Returns:
        the page, and what is wrong with the keys, one line each.
    """
    wrong: list[str] = []
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("covers", "needs", "rungs"):
        value = block.get(key, [] if not executed else None)
        if value is None:
            wrong.append(f"front matter lacks `{key}`; write `{key}: []` when there is none")
            value = []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            wrong.append(f"`{key}` must be a list of names, not {value!r}")
            value = []
        for item in sorted({item for item in value if value.count(item) > 1}):
            wrong.append(f"`{key}` names {item} twice")
        lists[key] = tuple(dict.fromkeys(value))
    for rung in lists["rungs"]:
        if rung not in RUNGS:
            wrong.append(f"`rungs` names {rung!r}; the rungs are {', '.join(RUNGS)}")
    minutes = block.get("minutes", None if executed else 0)
    if type(minutes) is not int or minutes < int(executed):
        wrong.append(f"`minutes` must be a whole number of minutes of reading, not {minutes!r}")
        minutes = 0
    rungs = tuple(rung for rung in RUNGS if rung in lists["rungs"])
    needs = tuple(posixpath.normpath(posixpath.join(base, need)) for need in lists["needs"])
    return Page(docname, lists["covers"], needs, rungs, minutes), wrong


def check_ids(page: Page, known: Iterable[str]) -> list[str]:
    """Name the coverage ids that are not in the list."""
    known = set(known)
    return [
        f"`covers` names {item}, which is not in the coverage list"
        for item in page.covers
        if item not in known
    ]


def check_needs(pages: Mapping[str, Page]) -> dict[str, list[str]]:
    """Find needs that name no page, and pages that need each other in a circle.

    Returns:
        what is wrong, by docname.
    """
    wrong: dict[str, list[str]] = {}
    for page in pages.values():
        for need in page.needs:
            if need not in pages:
                wrong.setdefault(page.docname, []).append(
                    f"`needs` names {need}, and there is no such page"
                )
        if page.docname in _before(page.docname, pages):
            wrong.setdefault(page.docname, []).append(
                "`needs` runs in a circle: this page is needed before itself"
            )
    return wrong


def _before(docname: str, pages: Mapping[str, Page]) -> set[str]:
    """All pages that must be read before one, itself among them only in a circle."""
    seen: set[str] = set()
    waiting = list(pages[docname].needs)
    while waiting:
        need = waiting.pop()
        if need in pages and need not in seen:
            seen.add(need)
            waiting.extend(pages[need].needs)
    return seen


def check_rungs(page: Page, claimed: Iterable[str]) -> list[str]:
    """Compare the rungs a page lists with those its claims were proved on."""
    used = {rung for rung in claimed if rung}
    missing = [rung for rung in RUNGS if rung in used and rung not in page.rungs]
    idle = [rung for rung in page.rungs if rung not in used]
    wrong = [f"the page has a claim on rung {r}, which `rungs` does not list" for r in missing]
    wrong += [f"`rungs` lists {rung}, and no claim of the page is on that rung" for rung in idle]
    return wrong


_pages: WeakKeyDictionary[Sphinx, dict[str, Page]] = WeakKeyDictionary()


def pages_of(app: Sphinx) -> dict[str, Page]:
    """Return the front matter of every page of this build, by docname."""
    return _pages[app]


def _check(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Read and check the front matter of all pages; stop the build when any is at fault."""
    from pallas_rungs.book.execute import chapter_docnames
    from pallas_rungs.book.gather import claims_of

    executed = set(chapter_docnames(app))
    known = {item.id for item in coverage_list().items}
    prose = {item.id for item in coverage_list().items if item.prose}
    base = posixpath.dirname(app.config.root_doc)
    pages: dict[str, Page] = {}
    wrong: dict[str, list[str]] = {}
    for docname in sorted(env.found_docs):
        try:
            block = read_block(Path(env.doc2path(docname)).read_text("utf8"))
        except ValueError as error:
            wrong[docname] = [str(error)]
            continue
        page, said = read_page(docname, block, base=base, executed=docname in executed)
        records = claims_of(app, docname)
        said += check_ids(page, known) + check_rungs(page, (record.rung for record in records))
        # What this machine cannot check was still claimed: without a compiler that may be all.
        made = [record for record in records if record.kind in ("claim", "unproved")]
        if set(page.covers) - prose and not made:
            said.append(f"`covers` names {', '.join(page.covers)}, and the page proves no claim")
        pages[docname] = page
        wrong[docname] = said
    for docname, said in check_needs(pages).items():
        wrong[docname] += said
    _pages[app] = pages
    log = fault_log(app)
    for docname, said in wrong.items():
        shown = Path(env.doc2path(docname, base=False)).as_posix()
        for line in said:
            log.add(Fault(shown, line))
    if any(wrong.values()):
        raise ChapterFaults("front matter and page disagree; see the end of this output")


def setup(app: Sphinx) -> None:
    """Check the front matter once all chapters are executed, before any page is read."""
    app.connect("env-before-read-docs", _check, priority=200)
