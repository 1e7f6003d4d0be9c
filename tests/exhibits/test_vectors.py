"""The JavaScript arithmetic is the Python truth, on fresh random settings, and a lie is caught."""

from __future__ import annotations

import copy
import json
import os
import random
from collections import Counter

import pytest

from pallas_rungs.exhibits import MODULES, exhibit_named
from pallas_rungs.exhibits import vectors as vectors_module


@pytest.fixture(scope="module")
def seed():
    """A new seed each run; a failure names it, `PALLAS_RUNGS_SEED` repeats it."""
    return int(os.environ.get("PALLAS_RUNGS_SEED") or random.SystemRandom().randrange(2**31))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("vectors")
    vectors_module.write(folder, seed)
    return folder


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def test_javascript_agrees_on_fresh_seeds(fresh, seed, run_node_tests):
    done = run_node_tests(fresh)
    assert done.returncode == 0, f"seed {seed}:\n{done.stdout[-4000:]}"
    for name in MODULES:
        assert f"{name} agrees with Python on 2000 cases of seed {seed}" in done.stdout


PLANTED = {
    "a start one element off": lambda result: result["start"].__setitem__(
        0, result["start"][0] + 1
    ),
    "a grid one program too large": lambda result: result["grid"].__setitem__(
        -1, result["grid"][-1] + 1
    ),
    "another tile": lambda result: result.update(tile=[*result["tile"][:-1], 64]),
    "twice the VMEM": lambda result: result.update(inFlight=2 * result["inFlight"]),
    "a refusal forgotten": lambda result: result.update(
        refusals=[] if result["refusals"] else [{"rung": "lower", "kind": "shape", "words": ""}]
    ),
    "another word": lambda result: result.update(sentence=result["sentence"] + " "),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_difference_is_caught(planted, fresh, tmp_path, seed, run_node_tests):
    content = read(fresh, "blockspec-sandbox")
    number = random.Random(seed).randrange(len(content["cases"]))
    before = copy.deepcopy(content["cases"][number][1])
    PLANTED[planted](content["cases"][number][1])
    assert content["cases"][number][1] != before
    (tmp_path / "blockspec-sandbox.json").write_text(json.dumps(content))
    done = run_node_tests(tmp_path)
    assert done.returncode != 0
    assert f"case {number} of seed {seed} differs" in done.stdout


def test_too_few_or_no_vectors_fail(fresh, tmp_path, run_node_tests):
    done = run_node_tests(tmp_path)
    assert done.returncode != 0
    assert "pallas_rungs.exhibits.vectors" in done.stdout
    content = read(fresh, "blockspec-sandbox")
    content["cases"] = content["cases"][:100]
    (tmp_path / "blockspec-sandbox.json").write_text(json.dumps(content))
    done = run_node_tests(tmp_path)
    assert done.returncode != 0
    assert "only 100 cases" in done.stdout


def test_vectors_reach_every_branch(fresh):
    seen = Counter()
    for setting, result in read(fresh, "blockspec-sandbox")["cases"]:
        seen[len(setting["dims"])] += 1
        seen[setting["dtype"]] += 1
        seen[setting["chip"]] += 1
        seen["reach", result["reach"]] += 1
        seen["budget", result["budget"]] += 1
        seen["buffers", result["buffers"]] += 1
        seen["strays", result["strays"], result["covers"]] += 1
        for refusal in result["refusals"] or [{"rung": "none", "kind": "none"}]:
            seen[refusal["rung"], refusal["kind"]] += 1
    wanted = [
        *(1, 2, 3, "float32", "bfloat16", "int8", "v4", "v5e", "v5p", "v6e", "tpu7x"),
        *(("reach", reach) for reach in ("inside", "overhang", "outside")),
        *(("budget", budget) for budget in ("fits", "depends", "over")),
        *(("strays", strays, covers) for strays in (True, False) for covers in (True, False)),
        *(("buffers", 1), ("buffers", 2)),
        *(("lower", kind) for kind in ("shape", "scalar", "mixed")),
        *(("simulate", "outside"), ("compile", "aligned"), ("compile", "vmem"), ("none", "none")),
    ]
    assert {branch: seen[branch] for branch in wanted if seen[branch] < 2} == {}


def test_same_seed_same_settings_other_seed_others():
    for name in MODULES:
        draw = exhibit_named(name).draw
        assert draw(7, 50) == draw(7, 50)
        assert draw(7, 50) != draw(8, 50)
