"""Real compilers without their chips: worker processes, the chip table, and libtpu.

Importing this package imports neither jax nor libtpu.
"""
