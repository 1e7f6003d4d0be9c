"""Installs tokamax, an optional extra, into .venv/tokamax.

Some pages of the book read it, and its kernels and measured medians are what
`make validate-estimator` compares with. What it needs only for profiling and training is left out.
"""

import sys

from extra import Extra

TOKAMAX = Extra("tokamax", "tokamax", "40 MB")

if __name__ == "__main__":
    sys.exit(TOKAMAX.install())
