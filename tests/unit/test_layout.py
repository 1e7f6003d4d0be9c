"""The repository keeps its layout; each check is seen to fail on a small tree with a fault."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import drawn
import layout
import pytest
from drawn import Symbol

from pallas_rungs import extras

# Symbols of kernels that no chapter draws, and why that is so.
UNDRAWN: dict[str, str] = {
    "kernels/add.py:add_whole": "the first chapter writes it out, since a reader types it along",
}


def plant(folder: Path, files: Mapping[str, str]) -> Path:
    """Writes a small tree; names without a slash go to the package."""
    for name, text in files.items():
        path = folder / name if "/" in name or name.startswith(".") else folder / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


P = "code/pallas_rungs"


# Import arrows


def test_imports_point_down(root: Path) -> None:
    assert len(list(layout.package_files(root))) > 10
    assert layout.import_arrows(root) == []


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("kernels/add.py", "from pallas_rungs.ladder import climb", "kernels imports ladder"),
        ("kernels/add.py", "import pallas_rungs.book.claims", "kernels imports book"),
        ("kernels/add.py", "from ..bugs import tail", "kernels imports bugs"),
        (
            "kernels/add.py",
            "def f():\n    from pallas_rungs import ladder",
            "kernels imports ladder",
        ),
        ("bugs/tail.py", "from pallas_rungs import compilers", "bugs imports compilers"),
        ("kernels/__init__.py", "from ..ladder import climb", "kernels imports ladder"),
        (
            "compilers/tpu.py",
            "import importlib\nimportlib.import_module('pallas_rungs.ladder.climb')",
            "compilers imports ladder",
        ),
        ("ladder/climb.py", "from pallas_rungs.book import x", "ladder imports book"),
        ("figures/grid.py", "from pallas_rungs import compilers", "figures imports compilers"),
        ("walk/excerpt.py", "from pallas_rungs.figures import grid", "walk imports figures"),
        ("claims.py", "from pallas_rungs.kernels import add", "claims imports kernels"),
        ("weather/rain.py", "", "weather has no layer"),
        ("ladder/climb.py", "from pallas_rungs.weather import x", "weather has no layer"),
    ],
)
def test_import_that_points_up_is_seen(
    tmp_path: Path, place: str, text: str, complaint: str
) -> None:
    (found,) = layout.import_arrows(plant(tmp_path, {f"{P}/{place}": text}))
    assert complaint in found
    assert place in found


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("kernels/add.py", "from pallas_rungs.kernels.case import Case\nfrom . import checks"),
        ("bugs/tail.py", "from pallas_rungs.kernels.case import Case"),
        ("ladder/climb.py", "from ..compilers import tpu\nfrom . import report"),
        ("book/__init__.py", "from pallas_rungs import __version__\nfrom pallas_rungs import walk"),
        ("__main__.py", "from pallas_rungs.cli import main"),
    ],
)
def test_import_that_points_down_is_fine(tmp_path: Path, place: str, text: str) -> None:
    assert layout.import_arrows(plant(tmp_path, {f"{P}/{place}": text})) == []


# Places and names


def test_nothing_is_misplaced(root: Path) -> None:
    assert layout.misplaced(root) == []
    assert layout.vague_names(root) == []


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("code/__init__.py", "shadows Python's own module `code`"),
        ("code/queue.py", "shadows Python's own module `queue`"),
        ("book/_static/style.css", "lands on every page"),
        ("_static/style.css", "lands on every page"),
        ("book/start/picture.png", "text only"),
    ],
)
def test_misplaced_file_is_seen(tmp_path: Path, place: str, complaint: str) -> None:
    assert complaint in layout.misplaced(plant(tmp_path, {place: ""}))[0]


def test_code_package_would_shadow_pythons_own(tmp_path: Path) -> None:
    # Why the rule is there: with code/__init__.py the debugger does not even start.
    plant(tmp_path, {"code/__init__.py": ""})
    started = subprocess.run(
        [sys.executable, "-c", "import pdb"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "InteractiveConsole" in started.stderr


@pytest.mark.parametrize(
    "name", ["utils.py", "ladder/helpers.py", "kernels/_common.py", "misc/x.py"]
)
def test_vague_name_is_seen(tmp_path: Path, name: str) -> None:
    assert layout.vague_names(plant(tmp_path, {f"{P}/{name}": ""}))


def test_every_folder_of_tests_is_run_by_make_test(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    run = set(re.search(r"^ONLY \?= (.*)$", makefile, re.M)[1].split())
    tests = root / "tests"
    there = {f"tests/{p.relative_to(tests).parts[0]}" for p in tests.rglob("test_*.py")}
    assert there <= run, f"not run by make test: {there - run}"
    assert all((root / folder).is_dir() for folder in run)


# What git holds


def test_nothing_in_git_names_a_machine_or_an_index(root: Path) -> None:
    assert len(layout.tracked_files(root)) > 20
    assert layout.traces_of_a_machine(root) == []


@pytest.mark.parametrize(
    "text",
    [
        "open('/" + "root/book/x')",
        "see /" + "home/ada/book",
        "at /" + "Users/ada/x",
        "cd '/" + "work/main'",
        "https://files." + "pythonhosted.org/x.whl",
        '"resolved": "https://registry.' + 'npmjs.org/lit-html"',
    ],
)
def test_trace_of_a_machine_is_seen(tmp_path: Path, text: str) -> None:
    (found,) = layout.traces_of_a_machine(plant(tmp_path, {f"{P}/x.py": f"\n{text}\n"}))
    assert f"{P}/x.py:2: names" in found


@pytest.mark.parametrize(
    "text", ["/usr/bin/env", "/home/reader/k.py", "code/root/x", "$HOME/.pyenv", "book/work/x"]
)
def test_ordinary_path_is_no_trace(tmp_path: Path, text: str) -> None:
    assert layout.traces_of_a_machine(plant(tmp_path, {f"{P}/x.py": text})) == []


def upstream_sources() -> list[Path]:
    import jax

    folder = Path(jax.__file__).parent
    found = [*folder.glob("_src/pallas/**/*.py"), *folder.glob("experimental/pallas/**/*.py")]
    assert len(found) > 50
    if not extras.why_missing("tokamax"):
        found += (extras.folder("tokamax") / "tokamax").rglob("*.py")
    return found


def test_upstream_text_is_drawn_and_never_copied(root: Path) -> None:
    assert layout.upstream_copies(root, upstream_sources()) == []


def test_copied_upstream_text_is_seen(tmp_path: Path) -> None:
    source = next(
        p for p in upstream_sources() if p.name == "core.py" and p.parent.name == "pallas"
    )
    lines = source.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("class BlockSpec"))
    copied = "\n".join(["# A title", *(f"    {line}" for line in lines[start : start + 40])])
    (found,) = layout.upstream_copies(plant(tmp_path, {"book/a.md": copied}), [source])
    assert found.startswith("book/a.md:")
    assert "core.py" in found


# Drawn cells

KERNEL = """
def add_kernel(x_ref, o_ref): ...
def add(x): return call(add_kernel, x)
def unseen(x): return x
def cases(): return ()
"""
CHAPTER = "```{code-cell} python\n:source: kernels/add.py:add_kernel, add\n```\n"
TEST = "from pallas_rungs.kernels import add\ndef test_add(): add.add(1)\n"


def test_every_symbol_of_a_kernel_is_drawn_by_a_chapter(root: Path) -> None:
    symbols = drawn.kernel_symbols(root)
    assert len(symbols) > 10
    undrawn = {str(s) for s in drawn.undrawn(root) if not s.name.endswith("_reference")}
    assert undrawn == UNDRAWN.keys(), "draw each in a chapter, or say in UNDRAWN why it is not"


def test_every_drawn_symbol_is_reached_by_a_test(root: Path) -> None:
    assert drawn.drawn_by_chapters(root)
    assert {str(s): where for s, where in drawn.untested(root).items()} == {}


def test_undrawn_symbol_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, {f"{P}/kernels/add.py": KERNEL, "book/start/a.md": CHAPTER})
    assert drawn.undrawn(tmp_path) == [Symbol("kernels/add.py", "unseen")]


def test_module_without_cases_is_no_kernel(tmp_path: Path) -> None:
    plant(tmp_path, {f"{P}/kernels/checks.py": "def check(): ...", "book/a.md": ""})
    assert drawn.undrawn(tmp_path) == []


def test_drawn_symbol_without_a_test_is_seen_with_its_chapter(tmp_path: Path) -> None:
    plant(tmp_path, {f"{P}/kernels/add.py": KERNEL, "book/start/a.md": CHAPTER})
    plant(tmp_path, {"tests/unit/test_add.py": "def test_add(): add.add(1)\n"})
    assert drawn.untested(tmp_path) == {
        Symbol("kernels/add.py", "add_kernel"): ["book/start/a.md:2"],
        Symbol("kernels/add.py", "add"): ["book/start/a.md:2"],
    }


def test_test_of_a_call_reaches_the_body_that_it_passes_on(tmp_path: Path) -> None:
    plant(tmp_path, {f"{P}/kernels/add.py": KERNEL, "book/start/a.md": CHAPTER})
    plant(tmp_path, {"tests/unit/test_add.py": TEST})
    assert drawn.untested(tmp_path) == {}


def test_test_that_goes_through_a_list_reaches_its_modules(tmp_path: Path) -> None:
    bug = "def broken(): return body\ndef body(): ...\ndef forgotten(): ..."
    museum = "from . import a, b\nMUSEUM: tuple = (a,)"
    chapter = ":source: bugs/a.py:body, forgotten, bugs/b.py:body"
    test = "from pallas_rungs.bugs import MUSEUM\ndef test(): [bug.broken() for bug in MUSEUM]"
    plant(tmp_path, {f"{P}/bugs/{name}.py": bug for name in "ab"})
    plant(
        tmp_path, {f"{P}/bugs/__init__.py": museum, "book/a.md": chapter, "tests/test_a.py": test}
    )
    assert {str(symbol) for symbol in drawn.untested(tmp_path)} == {
        "bugs/a.py:forgotten",
        "bugs/b.py:body",
    }


def test_what_a_tested_kernel_imports_from_another_is_reached(tmp_path: Path) -> None:
    plant(tmp_path, {f"{P}/kernels/ring.py": "def wait(): ...\ndef forgotten(): ..."})
    ring = "from pallas_rungs.kernels.ring import wait\nM, N = 1, 2\ndef add(): wait(M)\n"
    plant(tmp_path, {f"{P}/kernels/add.py": ring, "tests/unit/test_add.py": TEST})
    plant(tmp_path, {"book/a.md": ":source: kernels/ring.py:wait, forgotten, kernels/add.py:M\n"})
    assert {str(symbol) for symbol in drawn.untested(tmp_path)} == {"kernels/ring.py:forgotten"}


def test_test_that_walks_a_package_reaches_its_modules(tmp_path: Path) -> None:
    exercise = "def solution(): ...\ndef forgotten(): ..."
    test = "import pallas_rungs.practice\ndef test(): walk(pallas_rungs.practice.__path__)\n"
    plant(tmp_path, {f"{P}/practice/{name}.py": exercise for name in "ab"})
    plant(tmp_path, {"book/a.md": ":source: practice/b.py:solution, forgotten\n"})
    plant(tmp_path, {"tests/test_a.py": test + "def test_it(exercise): exercise.solution()\n"})
    assert {str(symbol) for symbol in drawn.untested(tmp_path)} == {"practice/b.py:forgotten"}


def test_import_lines_are_no_symbol(tmp_path: Path) -> None:
    plant(tmp_path, {"book/a.md": ":source: kernels/a.py:imports, f\n"})
    assert [str(s) for s in drawn.drawn_by_chapters(tmp_path)] == ["kernels/a.py:f"]


def test_second_file_in_one_option_is_read(tmp_path: Path) -> None:
    plant(tmp_path, {"book/a.md": ":source: kernels/a.py:f, g, bugs/b.py:h\n"})
    assert [str(s) for s in drawn.drawn_by_chapters(tmp_path)] == [
        "kernels/a.py:f",
        "kernels/a.py:g",
        "bugs/b.py:h",
    ]
