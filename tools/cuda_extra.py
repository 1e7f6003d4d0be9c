"""Installs the CUDA compiler, an optional extra, into .venv/cuda.

The tests marked `cuda` are given the folder by run_tests.py.
"""

import sys

from extra import Extra

CUDA = Extra("cuda", "the CUDA compiler", "400 MB")
FOLDER = CUDA.folder
here = CUDA.here

if __name__ == "__main__":
    sys.exit(CUDA.install())
