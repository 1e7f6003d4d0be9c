"""Everything here computes on the CPU; public troubles are climbed where their folder is."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before jax is imported

HERE = any((parent / "shared" / "cases").is_dir() for parent in Path(__file__).resolve().parents)
# Nothing to collect is no skipped test: the folder is no part of the checkout.
collect_ignore = [] if HERE else ["test_shared_cases.py"]


def pytest_report_header() -> str:
    """Says at the top of a run whether the public troubles are among its tests."""
    return f"public troubles beside the checkout: {'climbed' if HERE else 'not there'}"
