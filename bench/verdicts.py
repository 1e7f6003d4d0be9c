"""Seconds and memory of verdicts and estimates, worker cold and warm, and of a whole climb."""

import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

from bench.checkout import ROOT

CHIPS = ("v5e", "v6e", "v5p", "v4", "tpu7x")

# Run in a process of its own, so that the worker is cold and nothing is imported before.
PROBE = """
import json, sys, time
import jax, numpy as np
from pallas_rungs.kernels.add import add
from pallas_rungs.ladder import climb

jax.make_jaxpr(lambda a: a + 1)(np.ones(8))  # JAX's own first use is no part of a verdict

def verdict(chip, columns):
    x = np.ones((512, columns), np.float32)
    start = time.perf_counter()
    (given,) = climb(add, x, x, rungs=("compile",), chips=(chip,)).verdicts
    return {
        "seconds": time.perf_counter() - start,
        "status": str(given.status),
        "summary": given.summary,
        "bytes": given.details.get("peak memory bytes", 0),
    }

repeats, chips = int(sys.argv[1]), sys.argv[2].split(",")
verdicts = {"cold": [verdict("v5e", 128)]}
# Each program is a new one: nothing that the worker knows already.
verdicts["warm"] = [verdict("v5e", 128 * (2 + n)) for n in range(repeats)]
verdicts |= {chip: [verdict(chip, 128)] for chip in chips}
print(json.dumps(verdicts))
"""


def verdict_times(repeats: int) -> dict[str, Any]:
    """Measures verdicts of the compile rung on an elementwise kernel, and a climb of all rungs.

    Args:
        repeats: How many warm verdicts, and how many climbs; medians count.

    Raises:
        RuntimeError: A verdict was not `passed`, so that its time says nothing.
    """
    others = [chip for chip in CHIPS if chip != "v5e"]
    verdicts: dict[str, list[dict[str, Any]]] = json.loads(
        run(["-c", PROBE, str(repeats), ",".join(others)]).strip().splitlines()[-1]
    )
    for name, found in verdicts.items():
        for verdict in found:
            if verdict["status"] != "passed":
                raise RuntimeError(f"{name}: {verdict['status']}: {verdict['summary']}")
    climbs = [whole_climb() for _ in range(repeats)]
    cold, warm = verdicts["cold"][0], verdicts["warm"]
    every = [verdict for found in verdicts.values() for verdict in found]
    return {
        "method": f"kernel add, f32[512, n], no cache; warm and climb: median of {repeats}; "
        "memory: the largest that the worker ever held, after v5e and after every chip",
        "cold_seconds": round(cold["seconds"], 2),
        "warm_seconds": round(median(v["seconds"] for v in warm), 2),
        "first_on_other_chips_seconds": {c: round(verdicts[c][0]["seconds"], 2) for c in others},
        "v5e_megabytes": round(max(v["bytes"] for v in [cold, *warm]) / 1e6),
        "every_chip_megabytes": round(max(v["bytes"] for v in every) / 1e6),
        "climb_every_rung_cold_seconds": round(median(climbs), 1),
    }


ESTIMATES = """
import json, sys, time
import jax, jax.numpy as jnp
from pallas_rungs.kernels.softmax import softmax
from pallas_rungs.performance import estimate

jax.make_jaxpr(lambda a: a + 1)(jnp.ones(8))  # JAX's own first use is no part of an estimate

def estimated(rows):
    start = time.perf_counter()
    found = estimate(softmax, jax.ShapeDtypeStruct((rows, 1024), jnp.bfloat16), chip="v5e")
    return time.perf_counter() - start, found.seconds

print(json.dumps([estimated(256 * (1 + n)) for n in range(1 + int(sys.argv[1]))]))
"""


def estimate_times(repeats: int) -> dict[str, Any]:
    """Measures estimates of a simple kernel: the first with its worker's start, then warm ones.

    Args:
        repeats: How many warm estimates; each is of another shape, and their median counts.

    Raises:
        RuntimeError: An estimate failed, or is of no time.
    """
    found = json.loads(run(["-c", ESTIMATES, str(repeats)]).strip().splitlines()[-1])
    if not all(estimated > 0 for _, estimated in found):
        raise RuntimeError(f"an estimate of no time: {found}")
    (cold, _), *warm = found
    return {
        "method": f"kernel softmax, bf16[n, 1024], v5e; warm: median of {repeats}",
        "cold_seconds": round(cold, 2),
        "warm_seconds": round(median(seconds for seconds, _ in warm), 2),
    }


def whole_climb() -> float:
    """Climbs every rung by the command, in a new process; returns its wall seconds."""
    kernel = ROOT / "code" / "pallas_rungs" / "kernels" / "add.py"
    start = time.perf_counter()
    arguments = ["--args", "f32[512,512], f32[512,512]", "--reference", f"{kernel}:add_reference"]
    run(["-m", "pallas_rungs", "climb", f"{kernel}:add", "--chip", "v5e", *arguments])
    return time.perf_counter() - start


def run(words: list[str]) -> str:
    """Runs this environment's Python with no verdict cached; returns what it printed.

    Raises:
        RuntimeError: It failed.
    """
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=os.environ | {"PALLAS_RUNGS_NO_CACHE": "1", "JAX_PLATFORMS": "cpu"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{words[:4]}: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")
    return ended.stdout
