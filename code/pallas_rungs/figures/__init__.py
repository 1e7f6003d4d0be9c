"""Figures drawn from data, light and dark; a cell whose last expression is one shows it."""

from pallas_rungs.figures.bars import bars
from pallas_rungs.figures.blocks import block_ownership
from pallas_rungs.figures.clamped import clamped_blocks
from pallas_rungs.figures.ladder_matrix import ladder_matrix
from pallas_rungs.figures.ladder_picture import ladder_picture
from pallas_rungs.figures.schedule import block_schedule, bytes_fetched
from pallas_rungs.figures.svg import SVG, Figure
from pallas_rungs.figures.tables import Table, table
from pallas_rungs.figures.walk import grid_walk

__all__ = [
    "SVG",
    "Figure",
    "Table",
    "bars",
    "block_ownership",
    "block_schedule",
    "bytes_fetched",
    "clamped_blocks",
    "grid_walk",
    "ladder_matrix",
    "ladder_picture",
    "table",
]
