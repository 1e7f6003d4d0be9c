"""Finds the two programs that pip does not install: Node (exhibits) and Chromium (pages)."""

import os
import re
import shutil
import subprocess
import sys

NODE_FROM = 20  # the oldest major version whose test runner the exhibits' tests use

INSTALL = {
    "node": {
        "linux": "sudo apt-get install -y nodejs npm",
        "darwin": "brew install node",
    },
    "chromium": {
        "linux": "sudo apt-get install -y chromium",
        "darwin": "brew install --cask chromium",
    },
}


def install_line(program: str) -> str:
    """Gives the one line that installs a program on this system."""
    return INSTALL[program]["darwin" if sys.platform == "darwin" else "linux"]


def find_node() -> str | None:
    """Returns the path of a Node of version 20 or later that has npm beside it, or None."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"v(\d+)\.", said.stdout)
    return node if version and int(version.group(1)) >= NODE_FROM else None


def find_chromium() -> str | None:
    """Returns the path of a Chromium or Chrome, or None; $CHROMIUM, when set, is tried alone."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    places = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ]
    return next((path for path in map(shutil.which, places) if path), None)


def missing() -> dict[str, str]:
    """Maps each program that is not here to the line that installs it."""
    found = {"node": find_node(), "chromium": find_chromium()}
    return {program: install_line(program) for program, path in found.items() if path is None}
