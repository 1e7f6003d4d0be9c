"""Test vectors: random settings of an exhibit with the truth about each, as JSON.

`python -m pallas_rungs.exhibits.vectors --out exhibits/dist/vectors` writes a file for each
exhibit; `node --test` in `exhibits/` holds the JavaScript to them. They quote the installed
library's messages, so they are made where they are used and never committed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pallas_rungs.exhibits import MODULES, exhibit_named

LEAST_CASES = 2000
"""Fewer cases than this hold no exhibit's arithmetic to anything."""


def vectors(name: str, seed: int, count: int = LEAST_CASES) -> dict[str, Any]:
    """Draw `count` settings of the exhibit by seed and compute the truth about each.

    Returns:
      `{"exhibit", "seed", "data", "cases": [[setting, expected], ...]}`, JSON-able.
    """
    exhibit = exhibit_named(name)
    settings = [exhibit.default, *exhibit.draw(seed, count - 1)]
    return {
        "exhibit": name,
        "seed": seed,
        "data": exhibit.data(),
        "cases": [[setting, exhibit.derive(setting)] for setting in settings],
    }


def write(folder: Path, seed: int, count: int = LEAST_CASES) -> list[Path]:
    """Write the vectors of every exhibit into the folder and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in MODULES:
        path = folder / f"{name}.json"
        path.write_text(json.dumps(vectors(name, seed, count)), encoding="utf-8")
        written.append(path)
    return written


def main() -> None:
    """Write vectors for all exhibits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the JSON files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=LEAST_CASES, help="cases for each exhibit")
    arguments = parser.parse_args()
    for path in write(arguments.out, arguments.seed, arguments.count):
        print(path)


if __name__ == "__main__":
    main()
