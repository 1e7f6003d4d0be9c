"""Estimates both sides of every gate, and writes the record that the book shows.

Usage: renew_gates.py [--all] [GATE...]

What the record has and what still holds is left as it is, with its date; --all does everything
again. Each chip takes some seconds for each side, and no build waits for it.
"""

import argparse
import sys

from pallas_rungs.compilers import libtpu
from pallas_rungs.performance.gate_records import (
    RECORD,
    estimated,
    read_entries,
    write_entries,
)
from pallas_rungs.performance.gates import GATES, gate_named
from pallas_rungs.performance.sealed import RecordError


def main() -> int:
    """Writes the record after each entry; 1 where libtpu is not here."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("gates", nargs="*", metavar="GATE")
    parser.add_argument("--all", action="store_true", help="estimate what still holds as well")
    options = parser.parse_args()
    if why := libtpu.why_unavailable():
        print(f"no estimate without libtpu: {why}", file=sys.stderr)
        return 1
    chosen = [gate_named(name) for name in options.gates] or list(GATES)
    try:
        kept = read_entries(RECORD, only_valid=True)
    except RecordError as error:
        if RECORD.exists():
            print(error, file=sys.stderr)
            return 1
        kept = {}
    for gate in chosen:
        for chip in gate.chips:
            if (gate.name, chip) in kept and not options.all:
                continue
            entry = kept[gate.name, chip] = estimated(gate, chip)
            told = ", ".join(f"{it} of {name}'s" for name, it in entry.ratios().items())
            print(f"{gate.name} on {chip}: {entry.kernel.time}, {told}", flush=True)
            write_entries(RECORD, kept.values())
    write_entries(RECORD, kept.values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
