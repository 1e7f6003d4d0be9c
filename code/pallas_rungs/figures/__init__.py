"""Figures drawn from data, light and dark; a cell whose last expression is one shows it."""

from pallas_rungs.figures.blocks import block_ownership
from pallas_rungs.figures.svg import SVG, Figure

__all__ = ["SVG", "Figure", "block_ownership"]
