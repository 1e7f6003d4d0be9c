"""What a chapter's key sees: each thing that could change its outputs, and nothing else."""

import pytest

from book.front_matter import HEAD
from pallas_rungs.book.dependencies import chapter_key, closure, reached_files
from pallas_rungs.book.notebooks import read_chapter

FILES = {
    "pkg/__init__.py": "",
    "pkg/a.py": "from . import b\n",
    "pkg/b.py": "def f():\n    from pkg.sub.c import g\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/c.py": "g = 1\n",
    "pkg/worker.py": "print('works')\n",
    "pkg/starts.py": "COMMAND = ['-m', 'pkg.worker']\n",
    "pkg/apart.py": "x = 1\n",
    "pkg/records/runs.json": "{}",
    "single.py": "",
}


@pytest.fixture
def code(tmp_path):
    for name, text in FILES.items():
        (tmp_path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "code" / name).write_text(text, "utf8")
    return tmp_path / "code"


def read(code, body, prose="Words."):
    path = code.parent / "chapter.md"
    path.write_text(f"{HEAD}{prose}\n\n```{{code-cell}} python\n{body}\n```\n", "utf8")
    chapter = read_chapter("chapter", path, "chapter.md", code, code)
    assert chapter is not None
    return chapter


def reached(code, body):
    files = reached_files(read(code, body), (code,))
    return {file.relative_to(code).as_posix() for file in files}


ROOT = {"pkg/__init__.py", "pkg/records/runs.json"}


def test_imports_are_followed_into_functions_and_packages(code):
    assert reached(code, "import pkg.a") == ROOT | {
        "pkg/a.py",
        "pkg/b.py",
        "pkg/sub/__init__.py",
        "pkg/sub/c.py",
    }


def test_a_module_named_in_a_string_is_followed(code):
    assert "pkg/worker.py" in reached(code, "import pkg.starts")


def test_what_is_not_reached_is_not_seen(code):
    assert "pkg/apart.py" not in reached(code, "import pkg.a")
    assert reached(code, "import math") == set()
    assert "single.py" in reached(code, "import single")


def test_a_magic_reaches_everything(code):
    assert reached(code, "%timeit 1") == set(FILES)


def test_a_drawn_file_is_reached(code):
    assert "pkg/a.py" in reached(code, ":source: pkg/a.py:b")


def test_a_cycle_ends(code):
    (code / "single.py").write_text("import double\n")
    (code / "double.py").write_text("import single\n")
    assert closure({code / "single.py"}, (code,)) == {code / "single.py", code / "double.py"}


def test_the_key_ignores_prose_and_sees_cells(code):
    key = chapter_key(read(code, "import pkg.a"), (code,), {})
    assert chapter_key(read(code, "import pkg.a", "Other words."), (code,), {}) == key
    assert chapter_key(read(code, "import pkg.b"), (code,), {}) != key
    tagged = ":tags: [expects-stderr]\n\nimport pkg.a"
    assert chapter_key(read(code, tagged), (code,), {}) != key


@pytest.mark.parametrize(
    ("name", "changes"),
    [("pkg/sub/c.py", True), ("pkg/records/runs.json", True), ("pkg/apart.py", False)],
)
def test_the_key_sees_files_that_are_reached(code, name, changes):
    chapter = read(code, "import pkg.a")
    key = chapter_key(chapter, (code,), {})
    (code / name).write_text("# changed\n", "utf8")
    assert (chapter_key(chapter, (code,), {}) != key) is changes


@pytest.mark.parametrize(
    ("variable", "changes"),
    [("JAX_ENABLE_X64", True), ("XLA_FLAGS", True), ("HOME", False), ("PALLAS_RUNGS_JOBS", False)],
)
def test_the_key_sees_variables_that_shape_outputs(code, variable, changes):
    chapter = read(code, "import pkg.a")
    key = chapter_key(chapter, (code,), {})
    assert (chapter_key(chapter, (code,), {variable: "1"}) != key) is changes


def test_the_key_sees_versions(code, monkeypatch):
    chapter = read(code, "import pkg.a")
    key = chapter_key(chapter, (code,), {})
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    assert chapter_key(chapter, (code,), {}) != key
