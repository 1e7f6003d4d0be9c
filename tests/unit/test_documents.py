"""What README and its neighbours say is so: the worked example, the commands, the links."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "STYLE.md", "RUNBOOK.md")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def climb(folder: Path, text: str) -> str:
    """Runs the climb that the README shows, in a folder that holds my_kernel.py."""
    (command,) = [block for block in blocks(text, "sh") if "pallas_rungs climb" in block]
    python, *words = shlex.split(command.replace("\\\n", " "))
    assert python == ".venv/bin/python"
    ended = subprocess.run(
        [sys.executable, *words, "--plain"],
        cwd=folder,
        env=os.environ | {"PALLAS_RUNGS_NO_CACHE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.stdout.replace(f"{folder.resolve()}/", "") + ended.stderr


def test_readers_example_gives_the_report_that_the_readme_shows(root: Path, tmp_path: Path) -> None:
    text = (root / "README.md").read_text()
    (kernel,) = blocks(text, "python")
    (shown,) = blocks(text, "text")
    (tmp_path / "my_kernel.py").write_text(kernel)
    report = climb(tmp_path, text)
    assert report.startswith(shown), report
    # And the cure that the text names is one.
    (tmp_path / "my_kernel.py").write_text(kernel.replace("min(M, 1024)", "min(M, 256)"))
    assert re.search(r"5  compile v5e +passed", climb(tmp_path, text))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(root: Path, name: str) -> None:
    text = (root / name).read_text()
    targets = re.findall(r"\]\((?!https?://|#)([^)\s]+)\)", text)
    assert [target for target in targets if not (root / target.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_make_targets_exist(root: Path, name: str) -> None:
    makefile = (root / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    code = " ".join(re.findall(r"`[^`]+`|^```sh\n.*?^```", (root / name).read_text(), re.M | re.S))
    named = set(re.findall(r"\bmake ([a-z-]+)", code))
    assert named <= targets
    assert named or name == "STYLE.md"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_files_exist(root: Path, name: str) -> None:
    text = (root / name).read_text()
    pattern = r"`((?:tools|tests|bench|code|records|\.github|\.ci)/[\w./-]+\.\w+|\.ci/run)`"
    named = set(re.findall(pattern, text))
    assert [path for path in sorted(named) if not (root / path).exists()] == []


def test_every_target_says_what_it_does(root: Path) -> None:
    helped = subprocess.run(
        ["make", "-C", root, "help"], capture_output=True, text=True, check=True
    )
    for target in ("book", "test", "bench", "serve", "pins", "clean"):
        assert f"make {target} " in helped.stdout
