"""Everything here computes on the CPU."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before jax is imported
