"""Kernels for GPUs, for the pages that follow them through Triton, Mosaic GPU and ptxas."""
