"""Seconds of builds: cold, unchanged, one chapter edited, and with more and more chapters."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from bench.checkout import Checkout, copied
from bench.scripts import chapters, run_as_scripts

Say = Callable[[str], None]

EXECUTED = re.compile(r"executed (\S+\.md) in ([\d.]+) s")


def executed(log: str) -> dict[str, float]:
    """Reads which chapters a build executed, and the seconds that each took."""
    return {name: float(seconds) for name, seconds in EXECUTED.findall(log)}


def last_code_cell(text: str) -> int:
    """Returns where the body of a chapter's last written code cell ends.

    Raises:
        ValueError: The chapter has none.
    """
    ends = [
        cell.end("body")
        for cell in re.finditer(r"^```\{code-cell\}[^\n]*\n(?P<body>.*?)^```", text, re.M | re.S)
    ]
    if not ends:
        raise ValueError("no code cell")
    return ends[-1]


def build_times(say: Say, repeats: int) -> dict[str, Any]:
    """Measures cold, unchanged and edited builds, and the same cells as plain scripts.

    Args:
        say: Told of each step.
        repeats: How often to measure each; the median counts.
    """
    with copied() as checkout, TemporaryDirectory() as folder:
        shortest = min(chapters(checkout), key=lambda chapter: len(chapter.cells))
        cold, scripts, unchanged, prose, cell, own = [], [], [], [], [], []
        for turn in range(repeats):
            say(f"cold build, {turn + 1} of {repeats}")
            checkout.forget()
            cold.append(checkout.build(fresh=True).seconds)
            say(f"  {cold[-1]:.1f} s; the same cells as plain scripts")
            scripts.append(run_as_scripts(checkout, Path(folder))["all"])
            say(f"  {scripts[-1]:.1f} s; builds with no change, with prose edited, a cell edited")
            checkout.build()
            unchanged.append(checkout.build().seconds)
            text = shortest.path.read_text("utf-8")
            shortest.path.write_text(text + f"\nA sentence more, {turn}.\n", "utf-8")
            prose.append(checkout.build().seconds)
            end = last_code_cell(text)
            shortest.path.write_text(f"{text[:end]}# {turn}\n{text[end:]}", "utf-8")
            built = checkout.build()
            cell.append(built.seconds)
            own.append(executed(built.log).get(shortest.shown, 0.0))
            shortest.path.write_text(text, "utf-8")
            say(f"  {unchanged[-1]:.1f} s, {prose[-1]:.1f} s, {cell[-1]:.1f} s")
    return {
        "method": f"median of {repeats}; cold: no _build, every chapter executed, no cache; "
        "scripts: each chapter's cells as one Python script, two processes at once, no cache",
        "cold_seconds": round(median(cold), 1),
        "scripts_seconds": round(median(scripts), 1),
        "cold_over_scripts": round(median(c / s for c, s in zip(cold, scripts, strict=True)), 2),
        "unchanged_seconds": round(median(unchanged), 1),
        "prose_edited_seconds": round(median(prose), 1),
        "cell_edited_seconds": round(median(cell), 1),
        "edited_chapter": shortest.shown,
        "edited_chapter_own_seconds": round(median(own), 1),
    }


def grow(checkout: Checkout, wanted: int) -> int:
    """Adds copies of the chapters to the book until it has so many; returns how many it has."""
    toc_file = checkout.root / "_toc.yml"
    toc = yaml.safe_load(toc_file.read_text("utf-8"))
    originals = [c for c in chapters(checkout) if "copy-" not in c.docname]
    originals = [c for c in originals if c.docname != toc["root"]]
    have = sum(len(part["chapters"]) for part in toc["parts"])
    extra: list[dict[str, str]] = []
    number = 0
    while have + len(extra) < wanted:
        chapter = originals[number % len(originals)]
        name = f"copy-{number}-{chapter.path.stem}"
        text = chapter.path.read_text("utf-8")
        # A label may stand once in a book.
        text = re.sub(r"^\(([\w-]+)\)=$", rf"(\1-copy-{number})=", text, flags=re.M)
        text = re.sub(r"^(:(?:name|label):\s*\S+)", rf"\1-copy-{number}", text, flags=re.M)
        # What the copies compute must differ, or their outputs would be taken from the originals.
        end = last_code_cell(text)
        text = f"{text[:end]}# copy {number}\n{text[end:]}"
        (chapter.path.parent / f"{name}.md").write_text(text, "utf-8")
        extra.append({"file": str(Path(chapter.docname).parent / name)})
        number += 1
    toc["parts"].append({"caption": "Copies", "chapters": extra})
    toc_file.write_text(yaml.safe_dump(toc, sort_keys=False), "utf-8")
    return have + len(extra)


def growth(say: Say, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Measures cold and unchanged builds of books made of copies of the chapters."""
    rows = []
    with copied() as checkout:
        kept = checkout.root.parent / "kept"
        shutil.copytree(checkout.root / "book", kept)
        toc = (checkout.root / "_toc.yml").read_text("utf-8")
        for size in sizes:
            shutil.rmtree(checkout.root / "book")
            shutil.copytree(kept, checkout.root / "book")
            (checkout.root / "_toc.yml").write_text(toc, "utf-8")
            count = grow(checkout, size)
            checkout.forget()
            cold = checkout.build(fresh=True)
            checkout.build()
            unchanged = checkout.build()
            row = {
                "chapters": count,
                "cold_seconds": round(cold.seconds, 1),
                "cold_seconds_a_chapter": round(cold.seconds / count, 2),
                "unchanged_seconds": round(unchanged.seconds, 1),
                "executed_again_when_unchanged": len(executed(unchanged.log)),
            }
            say("  " + ", ".join(f"{key} {value}" for key, value in row.items()))
            rows.append(row)
    first, last = rows[0], rows[-1]
    return {
        "method": "the chapters copied, with labels renamed, until the book has so many; once each",
        "rows": rows,
        "seconds_a_chapter_last_over_first": round(
            last["cold_seconds_a_chapter"] / first["cold_seconds_a_chapter"], 2
        ),
    }
