"""Measures, prints and keeps: `python -m bench [--quick] [--only PART ...] [--output FILE]`."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.builds import build_times, growth
from bench.checkout import ROOT, copied
from bench.machine import facts
from bench.pages import page_weights
from bench.verdicts import estimate_times, verdict_times

PARTS = ("verdicts", "estimates", "builds", "pages", "growth")
TARGETS = (
    ("builds", "cold_over_scripts", "cold build over the same cells as scripts", 1.3, "×"),
    ("builds", "cold_seconds", "cold build", 360, " s"),
    ("builds", "unchanged_seconds", "build with no change", 8, " s"),
    ("pages", "heaviest_kilobytes", "heaviest page, gzipped", 200, " KB"),
    ("verdicts", "warm_seconds", "compiler verdict, worker warm", 2.5, " s"),
    ("verdicts", "v5e_megabytes", "memory of the compiler's worker", 500, " MB"),
    ("estimates", "warm_seconds", "estimate of a simple kernel, worker warm", 3, " s"),
    ("verdicts", "climb_every_rung_cold_seconds", "climb of every rung, cold", 10, " s"),
)


def say(line: str) -> None:
    """Prints a line at once, for a run takes minutes."""
    print(line, flush=True)


def weights() -> dict[str, Any]:
    """Weighs the pages of a site built for it, so that they are those of this checkout."""
    with copied() as checkout:
        checkout.build()
        return page_weights(checkout.root / "_build" / "html")


def measure(parts: list[str], repeats: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Measures the parts asked for, one after the other."""
    how: dict[str, Callable[[], dict[str, Any]]] = {
        "verdicts": lambda: verdict_times(repeats + 2),
        "estimates": lambda: estimate_times(repeats + 2),
        "builds": lambda: build_times(say, repeats),
        "pages": weights,
        "growth": lambda: growth(say, sizes),
    }
    results: dict[str, Any] = {"machine": facts(ROOT)}
    for part in parts:
        start = time.perf_counter()
        say(f"{part}:")
        results[part] = how[part]()
        say(f"  measured in {time.perf_counter() - start:.0f} s")
    return results


def report(results: dict[str, Any]) -> str:
    """Puts each number that has a target beside it."""
    lines = []
    for part, key, name, target, unit in TARGETS:
        if part in results:
            value = results[part][key]
            mark = "within" if value <= target else "OVER"
            lines.append(f"{name:45} {value:>8}{unit:3}  {mark} the target of {target}{unit}")
    if "builds" in results:
        built = results["builds"]
        over = built["cell_edited_seconds"] - built["edited_chapter_own_seconds"]
        mark = "within" if over <= 10 else "OVER"
        name = "one chapter edited, beyond its own run time"
        lines.append(f"{name:45} {over:>8.1f} s   {mark} the target of 10 s")
    if "growth" in results:
        ratio = results["growth"]["seconds_a_chapter_last_over_first"]
        lines.append(f"{'seconds a chapter, largest book over smallest':45} {ratio:>8}×")
    return "\n".join(lines)


def main() -> int:
    """Runs the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each once, no growth, nothing kept")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="only this part (repeatable)"
    )
    parser.add_argument("--repeat", type=int, default=3, help="how often; the median is kept (3)")
    parser.add_argument(
        "--sizes", default="8,16,32", help="chapters of the books whose growth is measured"
    )
    parser.add_argument("--output", type=Path, help="where to keep the results")
    options = parser.parse_args()
    parts = options.only or [p for p in PARTS if not (options.quick and p == "growth")]
    sizes = tuple(int(size) for size in options.sizes.split(","))
    results = measure(parts, 1 if options.quick else options.repeat, sizes)
    print(report(results))
    whole = not options.quick and list(parts) == list(PARTS)
    output = options.output or (ROOT / "records" / "bench.json" if whole else None)
    if output is None:
        print("not kept: only a whole run is; to keep this one, give --output FILE")
        return 0
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(f"kept in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
