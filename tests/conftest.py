"""What every test can use: the checkout, Node, Chromium; and the rule that CI skips nothing."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

import programs  # noqa: E402

# Kernels for several devices run on as many CPU devices, whose number is fixed when jax starts.
# Each of them may block one thread of XLA's pool while it waits for another.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "16")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def found(program: str, path: str | None) -> str:
    """Returns the path, or skips the test with the line that installs the program."""
    if path is None:
        message = f"no {program} found; to install it: {programs.install_line(program)}"
        if in_ci():
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's folder."""
    return ROOT


@pytest.fixture(scope="session")
def node() -> str:
    """The path of Node."""
    return found("node", programs.find_node())


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium."""
    return found("chromium", programs.find_chromium())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test that needs the CUDA compiler where that is not; run_tests.py leaves it out."""
    if item.get_closest_marker("cuda"):
        from pallas_rungs.compilers import cuda

        if reason := cuda.why_unavailable():
            pytest.skip(f"{reason} (or, for the tests alone: make cuda)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and in_ci():
        terminalreporter.write_line(f"error: CI skips nothing, yet {len(skipped)} were skipped")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if in_ci() and exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
