"""Planted faults: each fails the build and is named at its end with chapter, cell and cause."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest


def test_the_build_fails(faulty):
    assert faulty.code != 0


def test_no_fault_hides_another(faulty):
    named = {
        line.split("/")[1].split(".")[0]
        for line in faulty.report.splitlines()
        if line.startswith("book/")
    }
    assert named == {
        "assertion", "drawn", "nothing_raised", "other_type", "other_message", "too_slow",
        "dead_kernel", "missing_symbol", "missing_file", "missing_name", "no_excerpt",
        "raises_tag", "skip_tag", "off_switch", "allows_errors", "no_notebook", "warns", "no_code",
    }  # fmt: skip


def test_a_false_assertion_shows_line_claim_and_values(faulty):
    fault = faulty.fault("book/assertion.md:29: code cell 2: AssertionError")
    assert "claim: seven is more than eight (rung: interpret)" in fault
    assert "assert size > 8" in fault
    assert "size = 7" in fault


def test_a_false_assertion_in_a_drawn_symbol_names_the_symbol_and_its_line(faulty):
    fault = faulty.fault("book/drawn.md:29: code cell 3: AssertionError: 5 is past the limit")
    assert "drawn symbol triple, code/minibook/other.py:15: assert x < LIMIT" in fault
    assert "book/drawn.md:29: triple(5)" in fault
    assert "x = 5" in fault


@pytest.mark.parametrize(
    ("chapter", "cause"),
    [
        ("nothing_raised", "expected ValueError with a message like 'bad'; nothing was raised"),
        ("other_type", "expected ValueError with a message like 'bad'; KeyError was raised"),
        ("other_message", "the message was another: 'good'"),
    ],
)
def test_a_refusal_that_does_not_come(faulty, chapter, cause):
    assert cause in faulty.fault(f"book/{chapter}.md:25: code cell 2")


def test_a_cell_over_its_limit(faulty):
    fault = faulty.fault("book/too_slow.md:22: code cell 2")
    assert "the cell ran past its limit of 5 s" in fault
    assert "| while True:" in fault


def test_a_dead_kernel(faulty):
    fault = faulty.fault("book/dead_kernel.md:22: code cell 2")
    assert "the kernel died while this cell was running" in fault
    assert "| os._exit(3)" in fault


@pytest.mark.parametrize(
    ("chapter", "cause"),
    [
        ("missing_symbol", "no symbol halve in minibook/core.py"),
        ("missing_file", "no file minibook/kore.py to draw double from"),
        ("no_excerpt", "the page draws no excerpt of module 'jax._src.pallas.core'"),
        ("missing_name", "double uses math of minibook/core.py, which no cell"),
        ("raises_tag", "the tag 'raises-exception' is refused"),
        ("skip_tag", "the tag 'skip-execution' is refused"),
    ],
)
def test_a_cell_that_may_not_be(faulty, chapter, cause):
    assert cause in faulty.fault(f"book/{chapter}.md:18: code cell 1")


@pytest.mark.parametrize(
    ("chapter", "cause"),
    [
        ("off_switch", "front matter may not hold 'mystnb'"),
        ("allows_errors", "front matter may not hold 'execution'"),
        ("no_notebook", "the page has code cells but is not a notebook"),
    ],
)
def test_a_chapter_that_may_not_be(faulty, chapter, cause):
    assert cause in faulty.fault(f"book/{chapter}.md")


def test_a_cell_that_is_no_python(faulty):
    fault = faulty.fault("book/no_code.md:20: code cell 1: SyntaxError: invalid syntax")
    assert "x = = 1" in fault


def test_an_unexpected_warning_on_standard_error(faulty):
    fault = faulty.fault("book/warns.md:22: code cell 2: the cell wrote to standard error")
    assert "UserWarning: beware" in fault


def test_no_kernel_is_left_behind(faulty):
    listed = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True)
    orphans = [
        line
        for line in listed.stdout.splitlines()
        if ("ipykernel_launcher" in line or "fork_server" in line) and line.split()[0] == "1"
    ]
    assert orphans == []


def test_a_broken_reference_stays_broken_until_mended(twin):
    twin.edit("book/alpha.md", "The end.", "See {doc}`nowhere`.")
    for _ in range(2):
        build = twin.build()
        assert build.code != 0
        assert "nowhere" in build.fault("book/alpha.md:")
        assert build.executed == []
    twin.edit("book/alpha.md", "See {doc}`nowhere`.", "The end.")
    assert twin.build().code == 0


def test_an_asset_from_another_host(twin):
    image = '<img src="https://example.org/a.png" alt="a">'
    twin.edit("book/alpha.md", "The end.", image)
    build = twin.build()
    assert build.code != 0
    assert "https://example.org/a.png" in build.fault("book/alpha")


def test_an_unknown_coverage_id(twin):
    twin.edit("book/alpha.md", "covers: []", "covers: [Z-99]")
    build = twin.build()
    assert build.code != 0
    assert "Z-99" in build.fault("book/alpha.md")


def test_a_nested_code_cell_is_not_passed_over(twin):
    twin.edit("book/alpha.md", "The end.", "- item\n\n  ```{code-cell} python\n  1 / 0\n  ```\n")
    build = twin.build()
    assert build.code != 0
    assert "code-cell" in build.fault("book/alpha.md:")


def test_an_interrupted_build_leaves_no_process(tmp_path, small):
    book = small.book(tmp_path)
    waits = "import subprocess, time\nsubprocess.Popen(['sleep', '98765'])\n"
    book.write(
        "book/alpha.md", small.chapter(small.cell(waits + "open('started', 'w')\ntime.sleep(60)"))
    )
    book.configure()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    build = subprocess.Popen(
        [Path(sys.executable).with_name("jupyter-book"), "build", "."],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not list(tmp_path.glob("chapter-*/started")):
        assert build.poll() is None
        time.sleep(0.1)
    family = psutil.Process(build.pid).children(recursive=True)
    assert any("98765" in member.cmdline() for member in family)
    build.send_signal(signal.SIGINT)
    assert build.wait(60) != 0
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    assert list(tmp_path.glob("chapter-*")) == []
