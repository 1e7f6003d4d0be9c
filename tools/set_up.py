"""Makes the virtual environment that every make target uses, when it is missing or out of date.

Run by the Python that `find_python.sh` found; needs the standard library only.

`.venv/ready.json` holds what the environment was made from. It is removed before any change and
written after the last, so an interrupted set-up is seen by the next run, which starts over.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "ready.json"
REQUIREMENTS = ROOT / "requirements.txt"


def recipe() -> dict[str, str]:
    """Says what the environment depends on: the pins, the package's metadata, the folder."""

    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    return {
        "requirements.txt": digest(REQUIREMENTS),
        "pyproject.toml": digest(ROOT / "pyproject.toml"),
        "tools/set_up.py": digest(Path(__file__)),
        "folder": str(VENV),
    }


def ready() -> bool:
    """Tells whether the environment is complete, was made from these files, and still runs."""
    try:
        made_from = json.loads(STAMP.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return made_from == recipe() and runs()


def runs() -> bool:
    """Tells whether the environment's Python starts: the one it points to may have been removed."""
    try:
        return subprocess.run([PYTHON, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def usable() -> bool:
    """Tells whether the environment was once complete in this folder, so its packages can change.

    Scripts in an environment name its folder, so one that was moved is made anew.
    """
    try:
        return json.loads(STAMP.read_text("utf-8"))["folder"] == str(VENV) and runs()
    except (OSError, ValueError, KeyError):
        return False


def pin(name: str) -> str:
    """Cuts one package's pin, with its hashes, from requirements.txt."""
    match = re.search(
        rf"^{re.escape(name)}==(?:.*\\\n)*.*\n", REQUIREMENTS.read_text("utf-8"), re.M
    )
    if match is None:
        sys.exit(f"error: requirements.txt pins no {name}; run: make pins")
    return match.group(0)


def run(*command: str | Path) -> int:
    """Runs a command with its output shown; returns its exit status."""
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    environment["VIRTUAL_ENV"] = str(VENV)
    environment.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    # As pip does: a company's own certificates are in the system's store.
    environment.setdefault("UV_SYSTEM_CERTS", "1")
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
    ).returncode


def create() -> None:
    """Makes an empty environment, in place of an unfinished or outdated one."""
    if VENV.is_symlink():
        VENV.unlink()
    elif VENV.exists():
        strange = VENV.is_file() or (any(VENV.iterdir()) and not (VENV / "pyvenv.cfg").exists())
        if strange:
            sys.exit(f"error: {VENV} exists and is no virtual environment; move it away")
        shutil.rmtree(VENV)
    if run(base_python(), "-m", "venv", VENV) != 0:
        sys.exit(f"error: {base_python()} could not make a virtual environment in {VENV}")


def base_python() -> str:
    """Names the Python to make the environment from: never one inside an environment.

    With .venv activated, the Python that was found is .venv's own, which is about to be removed.
    """
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())


def install() -> None:
    """Installs exactly the pins, then the package itself in editable form."""
    with tempfile.TemporaryDirectory(prefix="pallas-rungs-") as folder:
        bootstrap = Path(folder, "uv.txt")
        bootstrap.write_text(pin("uv"), "utf-8")
        pip = (PYTHON, "-m", "pip", "--quiet", "install", "--require-hashes")
        fast = run(*pip, "-r", bootstrap) == 0
    # On a terminal uv draws its progress; elsewhere it would list every package.
    calm = () if sys.stderr.isatty() else ("--quiet",)
    uv = (PYTHON, "-m", "uv", "pip", *calm)
    # Compiled once here, and not by every kernel that executes a chapter.
    sync = ("sync", "--require-hashes", "--compile-bytecode", REQUIREMENTS)
    if fast and run(*uv, *sync) == 0:
        editable = (*uv, "install", "--no-deps", "--no-build-isolation", "--editable", ".")
    else:
        print("uv did not manage; trying pip (slower)", flush=True)
        if run(*pip, "-r", REQUIREMENTS) != 0:
            sys.exit(
                "error: the pins of requirements.txt could not be installed (see above). "
                "If the network failed, run the same command again; if a hash differs, do not "
                "trust the download."
            )
        by_pip = (PYTHON, "-m", "pip", "--quiet", "install")
        editable = (*by_pip, "--no-deps", "--no-build-isolation", "--editable", ".")
    if run(*editable) != 0:
        sys.exit("error: the package under code/ could not be installed (see above)")


def main() -> None:
    """Brings the environment up to date, or with --check tells by the exit status if it is."""
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if ready() else 1)
    lock = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second waits, then finds it done
        if ready():
            return
        start = time.monotonic()
        version = ".".join(map(str, sys.version_info[:3]))
        print(
            f"setting up .venv with Python {version}: 1.6 GB of disk, a few minutes",
            flush=True,
        )
        fresh = not usable()
        STAMP.unlink(missing_ok=True)
        if fresh:
            create()
        install()
        STAMP.write_text(json.dumps(recipe(), indent=1) + "\n", "utf-8")
        print(f"set up in {time.monotonic() - start:.0f} s", flush=True)
    finally:
        os.close(lock)


if __name__ == "__main__":
    main()
