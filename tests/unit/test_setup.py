"""Set-up: a Python that fits is found or named, pins have hashes, an environment is made once."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import compile_pins
import cuda_extra
import programs
import pytest
import run_tests
import set_up

# find_python.sh


class Machine:
    """A machine whose PATH and home folder hold only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin dir"
        self.home = folder / "home"
        self.bin.mkdir()
        self.home.mkdir()

    def put(self, path: Path, script: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def put_python(self, path: Path) -> Path:
        """Puts a Python that fits: the one that runs this test."""
        return self.put(path, f'exec "{sys.executable}" "$@"')

    def put_old(self, path: Path) -> Path:
        """Puts a Python that runs and is too old."""
        return self.put(path, 'case "$*" in *ensurepip*) exit 1;; *) echo "is 3.11.7";; esac')

    def put_shim(self, path: Path) -> Path:
        """Puts what pyenv leaves for a version that is not selected."""
        return self.put(path, 'echo "pyenv: $0: command not found" >&2; exit 127')

    def find(self, root: Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(root / "tools/find_python.sh")],
            env={"PATH": str(self.bin), "HOME": str(self.home)} | more,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_shim_that_does_not_run_is_passed_over(machine: Machine, root: Path) -> None:
    machine.put_shim(machine.bin / "python3.13")
    machine.put_shim(machine.bin / "python3.12")
    machine.put_old(machine.bin / "python3")
    fits = machine.put_python(machine.home / ".pyenv/versions/3.13.0/bin/python3")
    found = machine.find(root)
    assert (found.returncode, found.stdout.strip(), found.stderr) == (0, str(fits), "")


def test_name_on_path_comes_before_hidden_versions(machine: Machine, root: Path) -> None:
    machine.put_python(machine.home / ".pyenv/versions/3.13.0/bin/python3")
    fits = machine.put_python(machine.bin / "python3.12")
    assert machine.find(root).stdout.strip() == str(fits)


def test_python_that_uv_keeps_is_found(machine: Machine, root: Path) -> None:
    place = ".local/share/uv/python/cpython-3.13.1-linux-x86_64-gnu/bin/python3"
    fits = machine.put_python(machine.home / place)
    assert machine.find(root).stdout.strip() == str(fits)


def test_no_python_that_fits_is_one_line_naming_what_was_tried(
    machine: Machine, root: Path
) -> None:
    machine.put_old(machine.bin / "python3")
    machine.put_shim(machine.bin / "python3.13")
    found = machine.find(root)
    assert found.returncode == 1
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert "python3 (is 3.11.7)" in line
    assert "python3.13 (does not run)" in line
    assert "Install one" in line


def test_empty_machine_is_one_line(machine: Machine, root: Path) -> None:
    found = machine.find(root)
    assert found.returncode == 1
    assert len(found.stderr.splitlines()) == 1


def test_named_python_is_tried_alone(machine: Machine, root: Path) -> None:
    machine.put_python(machine.bin / "python3.13")
    old = machine.put_old(machine.home / "old")
    found = machine.find(root, PYTHON=str(old))
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert str(old) in line
    assert "is 3.11.7" in line


# set_up.py


class Installs:
    """Stands in for set_up.run: makes the folders that venv makes, and notes every command."""

    def __init__(self, fail: tuple[str, ...] = ()) -> None:
        self.commands: list[str] = []
        self.fail = fail

    def __call__(self, *command: object) -> int:
        words = " ".join(map(str, command))
        self.commands.append(words)
        if "-m venv" in words:
            set_up.PYTHON.parent.mkdir(parents=True)
            (set_up.VENV / "pyvenv.cfg").touch()
            set_up.PYTHON.symlink_to(sys.executable)
        return int(any(part in words for part in self.fail))

    def count(self, part: str) -> int:
        return sum(part in command for command in self.commands)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pins and no environment, which set_up takes for the checkout."""
    folder = tmp_path / "a book"
    folder.mkdir()
    (folder / "requirements.txt").write_text(
        "uv==1.0 \\\n    --hash=sha256:aa\nzipp==2.0 \\\n    --hash=sha256:bb\n"
    )
    (folder / "pyproject.toml").write_text("")
    venv = folder / ".venv"
    monkeypatch.setattr(set_up, "ROOT", folder)
    monkeypatch.setattr(set_up, "REQUIREMENTS", folder / "requirements.txt")
    monkeypatch.setattr(set_up, "VENV", venv)
    monkeypatch.setattr(set_up, "PYTHON", venv / "bin" / "python")
    monkeypatch.setattr(set_up, "STAMP", venv / "ready.json")
    monkeypatch.setattr(sys, "argv", ["set_up.py"])
    return folder


def installing(monkeypatch: pytest.MonkeyPatch, *fail: str) -> Installs:
    installs = Installs(fail)
    monkeypatch.setattr(set_up, "run", installs)
    set_up.main()
    return installs


def test_second_set_up_does_nothing(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = installing(monkeypatch)
    assert first.count("-m venv") == 1
    assert first.count("sync --require-hashes") == 1
    assert first.count("--no-deps --no-build-isolation --editable .") == 1
    assert installing(monkeypatch).commands == []


def test_changed_pins_are_installed_into_the_same_environment(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installing(monkeypatch)
    with (checkout / "requirements.txt").open("a") as pins:
        pins.write("wheel==3.0 \\\n    --hash=sha256:cc\n")
    again = installing(monkeypatch)
    assert again.count("-m venv") == 0
    assert again.count("sync --require-hashes") == 1


def test_interrupted_set_up_starts_over(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(set_up, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            installing(patch)
    assert (checkout / ".venv/pyvenv.cfg").exists()
    assert not set_up.ready()
    again = installing(monkeypatch)
    assert again.count("-m venv") == 1
    assert set_up.ready()


def test_moved_checkout_gets_a_new_environment(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installing(monkeypatch)
    stamp = checkout / ".venv/ready.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"folder": "/elsewhere/.venv"}))
    assert installing(monkeypatch).count("-m venv") == 1


def test_environment_whose_python_was_removed_is_made_anew(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installing(monkeypatch)
    python = checkout / ".venv/bin/python"
    python.unlink()
    python.symlink_to(checkout / "no such python")
    assert installing(monkeypatch).count("-m venv") == 1


def test_pip_takes_over_where_uv_fails(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installs = installing(monkeypatch, "sync")
    (by_pip,) = [c for c in installs.commands if "requirements.txt" in c and "-m pip" in c]
    assert "--require-hashes" in by_pip
    assert set_up.ready()


def test_failed_install_leaves_nothing_that_looks_ready(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=r"could not be installed"):
        installing(monkeypatch, "sync", "requirements.txt")
    assert not set_up.ready()


def test_folder_that_is_no_environment_is_left_alone(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv/thesis.txt").write_text("dear")
    with pytest.raises(SystemExit, match="is no virtual environment"):
        installing(monkeypatch)
    assert (checkout / ".venv/thesis.txt").read_text() == "dear"


def test_pin_is_cut_out_with_all_its_hashes_and_no_more(checkout: Path) -> None:
    assert set_up.pin("uv") == "uv==1.0 \\\n    --hash=sha256:aa\n"
    with pytest.raises(SystemExit, match="pins no ruff"):
        set_up.pin("ruff")


# the pins


def pins(text: str) -> dict[str, str]:
    """Maps names to versions in the form `name==version` at the start of a line."""
    return {
        name.lower().replace("_", "-"): version
        for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", text, re.M)
    }


@pytest.mark.parametrize(("source", "at_least"), zip(compile_pins.FILES, (80, 3, 11), strict=True))
def test_every_pin_has_a_hash_and_no_index_is_named(root: Path, source: str, at_least: int) -> None:
    text = (root / source).with_suffix(".txt").read_text()
    assert text.startswith(compile_pins.HEADER.format(source=source))
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.M)[1:]
    assert len(blocks) >= at_least
    assert [b.splitlines()[0] for b in blocks if "--hash=sha256:" not in b] == []
    assert "://" not in text
    assert not re.search(r"^\s*--(index|extra-index|find-links|trusted)", text, re.M)


@pytest.mark.parametrize("source", compile_pins.FILES)
def test_chosen_names_are_what_was_compiled(root: Path, source: str) -> None:
    chosen = pins((root / source).read_text())
    compiled = pins((root / source).with_suffix(".txt").read_text())
    assert chosen
    assert {name: compiled.get(name) for name in chosen} == chosen


def test_the_cuda_extra_is_the_same_in_pins_and_metadata(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    chosen = pins((root / "requirements-cuda.in").read_text())
    for wanted in project["optional-dependencies"]["cuda"]:
        name, _, version = wanted.partition(";")[0].strip().partition("==")
        assert chosen[name] == (version or chosen[name])
    assert chosen["jax-cuda13-plugin"] == pins((root / "requirements.in").read_text())["jax"]


def test_package_metadata_agrees_with_the_pins(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    compiled = pins((root / "requirements.txt").read_text())
    for dependency in project["dependencies"]:
        name, _, version = dependency.partition(";")[0].strip().partition("==")
        assert name in compiled, f"{name} is needed by the package and not pinned"
        assert version in {"", compiled[name]}, f"{dependency}: pinned to {compiled[name]}"


def test_one_version_everywhere(root: Path) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert f'__version__ = "{version}"' in (root / "code/pallas_rungs/__init__.py").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", (root / "CITATION.cff").read_text(), re.M)


# Node and Chromium


def test_old_node_is_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in {"node": "echo v18.19.0", "npm": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find_node() is None
    (tmp_path / "node").write_text("#!/bin/sh\necho v20.1.0\n")
    assert programs.find_node() == str(tmp_path / "node")


def test_missing_programs_end_a_ci_run_with_the_line_that_installs_them(
    root: Path, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, str(root / "tools/run_tests.py"), "--collect-only", "tests/unit/no_such"],
        env={"PATH": str(tmp_path), "CI": "true", "HOME": os.environ.get("HOME", "")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "no node found" in ended.stderr
    assert programs.install_line("chromium") in ended.stderr


def test_skipped_test_fails_a_ci_run(root: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        (root / "tests/conftest.py")
        .read_text()
        .replace("ROOT = Path(__file__).resolve().parent.parent", f"ROOT = Path({str(root)!r})")
    )
    (tmp_path / "test_lazy.py").write_text("import pytest\ndef test_lazy(): pytest.skip('tired')\n")
    for ci, status in {"true": 1, "": 0}.items():
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--rootdir=.",
                str(tmp_path),
            ],
            cwd=tmp_path,
            env=os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == status, ended.stdout


@pytest.mark.parametrize(
    ("asked", "parts", "statuses", "status"),
    [
        (["tests/unit", "tests/book"], [["tests/unit"], ["tests/book"]], [0, 0], 0),
        (["tests/unit", "tests/browser"], [["tests/unit"], ["tests/browser"]], [0, 1], 1),
        (["tests/unit", "tests/book"], [["tests/unit"], ["tests/book"]], [2, 0], 2),
        (["tests/bugs", "-k", "book"], [["-k", "book", "tests/bugs"]], [0], 0),
        (["tests/bugs", "-k", "no_such"], [["-k", "no_such", "tests/bugs"]], [5], 5),
        (
            ["tests/unit", "tests/book", "--", "-k", "x"],
            [["-k", "x", "tests/unit"], ["-k", "x", "tests/book"]],
            [5, 0],
            0,
        ),
        (["tests"], [["tests"]], [0], 0),
    ],
)
@pytest.mark.parametrize("with_cuda", [False, True])
def test_what_is_asked_goes_to_pytest_in_parts(
    asked: list[str],
    parts: list[list[str]],
    statuses: list[int],
    status: int,
    with_cuda: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def noted(*arguments: str) -> int:
        ran.append([argument for argument in arguments if argument not in run_tests.SIDE_BY_SIDE])
        return [*statuses, run_tests.NOTHING_COLLECTED][len(ran) - 1]

    parts = [[*run_tests.NO_CUDA, *part] for part in parts]
    if with_cuda:
        options = [argument for argument in parts[0][2:] if not argument.startswith("tests")]
        paths = [argument for argument in asked if argument.startswith("tests")]
        parts.append([*run_tests.CUDA, *options, *paths])
    monkeypatch.setattr(run_tests, "missing", dict)
    monkeypatch.setattr(cuda_extra, "here", lambda: with_cuda)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(run_tests, "_pytest", noted)
    monkeypatch.setattr(sys, "argv", ["run_tests.py", *asked])
    assert run_tests.main() == status
    assert ran == parts
