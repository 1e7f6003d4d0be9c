"""Optional extras: where they are looked for, what is said when they are absent, what they need."""

import subprocess
import sys
from pathlib import Path

import pytest

from pallas_rungs import extras

here = pytest.mark.skipif(
    bool(extras.why_missing("tokamax")), reason="tokamax is needed: make tokamax"
)


def installed(folder: Path, version: str = "9.8.7") -> Path:
    (folder / "tokamax" / "_src").mkdir(parents=True)
    (folder / "tokamax" / "__init__.py").write_text("raise ImportError('never imported')")
    (folder / "tokamax" / "_src" / "__init__.py").write_text("")
    (folder / "tokamax" / "_src" / "small.py").write_text("answer = 42\n")
    for name, number in (("tokamax", version), ("beside", "1.0")):
        info = folder / f"{name}-{number}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    return folder


def test_the_folder_that_the_variable_names_goes_first(tmp_path, monkeypatch):
    monkeypatch.setenv(extras.variable("tokamax"), str(installed(tmp_path / "named")))
    assert extras.folder("tokamax") == tmp_path / "named"
    assert extras.version("tokamax") == "9.8.7"
    assert extras.pins("tokamax") == {"beside": "1.0", "tokamax": "9.8.7"}


def test_without_a_folder_of_its_own_it_is_found_among_other_packages(tmp_path, monkeypatch):
    monkeypatch.delenv(extras.variable("tokamax"), raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    # A test before this one may have put tokamax's own folder on the path.
    others = [it for it in sys.path if not (Path(it) / "tokamax").is_dir()]
    monkeypatch.setattr(sys, "path", others)
    assert "make tokamax" in extras.why_missing("tokamax")
    monkeypatch.syspath_prepend(installed(tmp_path / "site-packages"))
    assert extras.folder("tokamax") == tmp_path / "site-packages"
    assert extras.why_missing("tokamax") == ""
    assert extras.pins("tokamax") == {}


def test_an_absent_extra_is_named_with_its_cure(tmp_path, monkeypatch):
    monkeypatch.setenv(extras.variable("tokamax"), str(tmp_path))
    assert str(tmp_path) in extras.why_missing("tokamax")
    for ask in (extras.version, extras.distribution):
        with pytest.raises(extras.ExtraMissingError, match="`make tokamax` installs it"):
            ask("tokamax")
    assert extras.pins("tokamax") == {}


def test_an_unknown_extra_is_refused():
    with pytest.raises(KeyError, match="no extra is called 'tokamacs'; there are tokamax"):
        extras.folder("tokamacs")


def run(program: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={extras.variable("tokamax"): str(folder), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stdout + ended.stderr


def test_modules_are_imported_without_what_the_top_level_imports(tmp_path):
    said = run(
        "from pallas_rungs import extras; extras.open_tokamax(); extras.open_tokamax()\n"
        "from importlib import resources\n"
        "from tokamax._src import small\n"
        "print(small.answer, resources.files('tokamax').name)",
        installed(tmp_path),
    )
    assert said == "42 tokamax\n"


def test_opening_what_is_absent_says_how_to_install_it(tmp_path):
    said = run("from pallas_rungs import extras; extras.open_tokamax()", tmp_path)
    assert "`make tokamax` installs it" in said


@here
def test_the_installed_op_is_imported_with_stand_ins_only_where_packages_are_missing():
    said = run(
        "from pallas_rungs import extras; extras.open_tokamax()\n"
        "from tokamax._src.ops import op\n"
        "import sys; print(op.Op.__name__, 'qwix' in sys.modules, 'xprof' in sys.modules)",
        extras.folder("tokamax"),
    )
    assert said == "Op True True\n"
