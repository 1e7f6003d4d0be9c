"""Bundle all exhibits into one classic script with esbuild, when Node is there.

`bundle()` installs the locked npm packages, runs esbuild and writes `exhibits/dist/site/`: the
script and a manifest of versions, licences and hashes. It does nothing when nothing has changed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = "exhibits.js"
MANIFEST = "exhibits-manifest.json"
FLAGS = ("--bundle", "--minify", "--format=iife", "--target=es2022", "--legal-comments=eof")
_INSTALLED = "node_modules/.pallas-rungs-lock"
_LEAST_NODE = (20, 11)


class BundleError(Exception):
    """npm or esbuild failed; the message holds the command and what it said."""


@dataclass(frozen=True)
class Bundle:
    """What `bundle` gives.

    Attributes:
      folder: holds `exhibits.js` and its manifest; `None` when there is no script to load.
      message: one line on why there is none, or on what was done.
      fresh: whether work was done.
    """

    folder: Path | None
    message: str
    fresh: bool = False


def exhibits_folder() -> Path | None:
    """Return the repository's `exhibits/` folder, or None for a package installed elsewhere."""
    folder = Path(__file__).resolve().parents[3] / "exhibits"
    return folder if (folder / "package-lock.json").is_file() else None


def bundle(folder: Path | None = None) -> Bundle:
    """Make the script, or find that it is already there.

    Args:
      folder: the JavaScript sources; the repository's own when omitted.

    Raises:
      BundleError: Node is there, but npm or esbuild failed.
    """
    folder = folder or exhibits_folder()
    if folder is None:
        return Bundle(None, "exhibits: no JavaScript sources beside the package; pictures only")
    site = folder / "dist" / "site"
    wanted = _digest(folder)
    if _is_current(site, wanted):
        return Bundle(site, "exhibits: script is up to date")
    if reason := why_no_node():
        return Bundle(None, f"exhibits: {reason}; pages show the pictures only")
    _install(folder)
    site.mkdir(parents=True, exist_ok=True)
    script = site / SCRIPT
    _run([_esbuild(folder), "src/index.js", *FLAGS, f"--outfile={script}"], folder)
    manifest = _manifest(folder, script, wanted)
    (site / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    size = manifest["script"]["gzipped"]
    return Bundle(site, f"exhibits: bundled {SCRIPT}, {size} bytes gzipped", fresh=True)


def why_no_node() -> str:
    """Return why Node cannot be used, in words for a reader; empty when it can."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not (node and npm):
        return "Node and npm are not installed (on Debian: apt-get install nodejs npm)"
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    numbers = answer.stdout.strip().lstrip("v").split(".")[:2]
    if not all(number.isdigit() for number in numbers) or tuple(map(int, numbers)) < _LEAST_NODE:
        least = ".".join(map(str, _LEAST_NODE))
        return f"Node {least} or newer is wanted, found {answer.stdout.strip() or 'none'}"
    return ""


def _inputs(folder: Path) -> Iterator[Path]:
    yield folder / "package.json"
    yield folder / "package-lock.json"
    yield from sorted((folder / "src").rglob("*.js"))


def _digest(folder: Path) -> str:
    """Hash everything that the script is made from."""
    state = hashlib.sha256(" ".join(FLAGS).encode())
    for path in _inputs(folder):
        state.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def _is_current(site: Path, wanted: str) -> bool:
    try:
        manifest = json.loads((site / MANIFEST).read_text(encoding="utf-8"))
        made = hashlib.sha256((site / SCRIPT).read_bytes()).hexdigest()
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return bool(manifest["inputs"] == wanted and manifest["script"]["sha256"] == made)


def _install(folder: Path) -> None:
    """Install the locked packages unless these very ones are there."""
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / _INSTALLED
    if stamp.is_file() and stamp.read_text() == lock and Path(_esbuild(folder)).is_file():
        return
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
    stamp.write_text(lock)


def _esbuild(folder: Path) -> str:
    return str(folder / "node_modules" / "esbuild" / "bin" / "esbuild")


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[:20])
        words = " ".join(command)
        raise BundleError(f"`{words}` in {folder} ended with {done.returncode}:\n{said}")


def _manifest(folder: Path, script: Path, inputs: str) -> dict[str, Any]:
    """Say what the script was made from, under which licences, and what it weighs."""
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    packages = {}
    for name in sorted({*wanted["dependencies"], "esbuild"}):
        found = json.loads(
            (folder / "node_modules" / name / "package.json").read_text(encoding="utf-8")
        )
        packages[name] = {
            "version": found["version"],
            "licence": found["license"],
            "shipped": name in wanted["dependencies"],
        }
    content = script.read_bytes()
    return {
        "inputs": inputs,
        "packages": packages,
        "script": {
            "name": script.name,
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
            "gzipped": len(gzip.compress(content, 9, mtime=0)),
        },
    }


def main() -> None:
    """Bundle and say what was done."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(bundle().message)


if __name__ == "__main__":
    main()
