"""Kernels are tested on interpreters that XLA compiles for each shape anew, and runs once."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def compile_fast() -> Iterator[None]:
    """Leaves out what XLA does to make a program fast: it takes longer than the program runs."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
