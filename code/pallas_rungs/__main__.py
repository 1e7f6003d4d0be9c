"""`python -m pallas_rungs`."""

from pallas_rungs.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
