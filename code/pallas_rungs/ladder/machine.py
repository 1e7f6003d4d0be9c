"""Where the rungs that compute run: on this machine's CPU."""

from __future__ import annotations

import os
from pathlib import Path

import jax

_TPU_DEVICES = ("/dev/accel0", "/dev/vfio/0")


def stay_on_cpu() -> None:
    """Keep jax from looking for a TPU that is not there.

    With libtpu installed and no chip, jax's first computation would try to start one, which takes
    seconds and prints errors. Nothing is changed where the user chose a platform, where jax already
    runs, or where a TPU is attached.
    """
    from jax._src import xla_bridge

    if os.environ.get("JAX_PLATFORMS") or jax.config.jax_platforms:
        return
    if xla_bridge.backends_are_initialized() or any(Path(p).exists() for p in _TPU_DEVICES):
        return
    jax.config.update("jax_platforms", "cpu")
