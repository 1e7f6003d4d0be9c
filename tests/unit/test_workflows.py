"""Workflows hold the least rights, and run only actions pinned by commit."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

Workflow = dict[Any, Any]

# Only this job of this workflow may write, and only this.
WRITERS = {("publish.yml", "deploy"): {"pages": "write", "id-token": "write"}}
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def steps_of(workflow: Workflow) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", [])


def complaints(name: str, text: str) -> list[str]:
    """Says what in a workflow gives away more than it must."""
    workflow: Workflow = yaml.safe_load(text)
    found = []
    triggers = workflow[True]  # YAML 1.1 reads `on` as true
    if {"pull_request_target", "workflow_run", "issue_comment"} & set(triggers):
        found.append("a trigger that gives a stranger's pull request rights")
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("the token must be read-only by default")
    if "concurrency" not in workflow:
        found.append("no concurrency group")
    if "secrets." in text:
        found.append("names a secret")
    for job_name, job in workflow["jobs"].items():
        if job.get("permissions", {}) != WRITERS.get((name, job_name), {}):
            found.append(f"{job_name}: rights that are not in WRITERS")
        if not isinstance(job.get("timeout-minutes"), int):
            found.append(f"{job_name}: no time limit")
        if "pull_request" in triggers and "environment" in job:
            found.append(f"{job_name}: a pull request reaches an environment")
        if job.get("permissions") and any("run" in step for step in job["steps"]):
            found.append(f"{job_name}: runs commands while it may write")
    for step in steps_of(workflow):
        action = step.get("uses", "")
        if action and not PINNED.fullmatch(action):
            found.append(f"{action}: not pinned by a full commit hash")
        if "actions/checkout@" in action and step.get("with", {}).get("persist-credentials"):
            found.append("checkout keeps the token")
        if "actions/checkout@" in action and "persist-credentials" not in step.get("with", {}):
            found.append("checkout keeps the token")
        # Text of a pull request must not become part of a shell line.
        if "${{ github.event" in step.get("run", "") or "github.head_ref" in step.get("run", ""):
            found.append("a pull request's text reaches a shell")
    for line in text.splitlines():
        if "uses:" in line and not re.search(r"# v\d+\.\d+\.\d+$", line):
            found.append(f"{line.strip()}: no comment with the version")
    return found


def workflows(root: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in sorted((root / ".github/workflows").glob("*.y*ml"))}


def test_workflows_hold_the_least_rights(root: Path) -> None:
    texts = workflows(root)
    assert set(texts) == {"pr.yml", "publish.yml"}
    assert [c for name, text in texts.items() for c in complaints(name, text)] == []


def test_gate_runs_on_pull_requests_and_keeps_the_site(root: Path) -> None:
    gate = yaml.safe_load(workflows(root)["pr.yml"])
    assert "pull_request" in gate[True]
    assert any(step.get("run") == ".ci/run" for step in steps_of(gate))
    (kept,) = [s for s in steps_of(gate) if "upload-artifact" in s.get("uses", "")]
    assert kept["with"]["path"] == "_build/html"


def test_only_main_is_published(root: Path) -> None:
    publish = yaml.safe_load(workflows(root)["publish.yml"])
    assert publish[True]["push"] == {"branches": ["main"]}
    assert "pull_request" not in publish[True]
    assert publish["jobs"]["build"]["if"] == "github.ref == 'refs/heads/main'"
    assert publish["jobs"]["deploy"]["needs"] == "build"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("@08c6903cd8c0fde910a37f88322edcfb5dd907a8", "@v5", "not pinned"),
        ("  pull_request:\n", "  pull_request_target:\n", "stranger's pull request rights"),
        ("  contents: read\n", "  contents: write\n", "read-only by default"),
        ("    timeout-minutes: 60\n", "", "no time limit"),
        ("          persist-credentials: false\n", "          fetch-depth: 0\n", "keeps the token"),
        ("run: .ci/run", "run: echo ${{ github.event.pull_request.title }}", "reaches a shell"),
        ("    steps:\n", "    permissions: write-all\n    steps:\n", "not in WRITERS"),
        ("run: .ci/run", "run: echo ${{ secrets.KEY }}", "names a secret"),
        (" # v5.0.0", "", "no comment with the version"),
    ],
)
def test_each_fault_is_seen(root: Path, old: str, new: str, complaint: str) -> None:
    text = workflows(root)["pr.yml"]
    assert old in text
    assert any(complaint in found for found in complaints("pr.yml", text.replace(old, new)))


def test_ci_reads_no_input_and_stops_at_the_first_failure(root: Path) -> None:
    script = root / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text()
    assert "make test </dev/null" in script.read_text()
