"""Programs for two devices: forced host devices below, a mesh of topology devices in the compiler.

The number of host devices is fixed when jax starts, hence a process of their own.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILES = importlib.util.find_spec("libtpu") is not None
PROGRAM = """
import json, sys
import jax, numpy as np
from ladder.core import sick_kernels as sick
from pallas_rungs.ladder import climb

mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
told = {}
for wait in (True, False):
    report = climb(
        lambda x: sick.from_the_neighbour(x, mesh, wait=wait), x,
        reference=lambda x: np.roll(x, 8, axis=0), name="swap",
        rungs=sys.argv[1:],
    )
    told[wait] = {f"{v.rung} {v.target}".strip(): str(v.status) for v in report.verdicts}
print(json.dumps({"waits": told[True], "hurries": told[False]}))
"""


@pytest.fixture(scope="module")
def told():
    env = os.environ | {
        "JAX_NUM_CPU_DEVICES": "2",
        "JAX_PLATFORMS": "cpu",
        "NPROC": "8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    rungs = ["trace", "interpret", "simulate", "lower"]
    rungs += ["compile"] * COMPILES
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *rungs],
        env=env, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_healthy_swap_passes_wherever_the_tool_can(told):
    assert told["waits"] == {
        "trace": "passed",
        "interpret": "tool cannot",
        "simulate default": "passed",
        "simulate races": "passed",
        "simulate eager": "passed",
        "lower v5e": "passed",
    } | ({"compile v5e": "passed"} if COMPILES else {})


def test_a_copy_not_waited_for_is_wrong_and_a_race(told):
    assert told["hurries"]["simulate default"] == "wrong"
    assert told["hurries"]["simulate races"] == "refused"
    assert told["hurries"]["lower v5e"] == "passed"
