"""Everything here computes on the CPU; set before jax is imported."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
