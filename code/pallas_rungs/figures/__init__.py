"""Figures drawn from data, light and dark; a cell whose last expression is one shows it."""

from pallas_rungs.figures.bars import bars
from pallas_rungs.figures.blocks import block_ownership
from pallas_rungs.figures.clamped import clamped_blocks
from pallas_rungs.figures.copy_record import record_of
from pallas_rungs.figures.copy_schedule import copy_schedule
from pallas_rungs.figures.ladder_matrix import ladder_matrix
from pallas_rungs.figures.ladder_picture import ladder_picture
from pallas_rungs.figures.svg import SVG, Figure
from pallas_rungs.figures.tables import Table, table
from pallas_rungs.figures.walk import grid_walk

__all__ = [
    "SVG",
    "Figure",
    "Table",
    "bars",
    "block_ownership",
    "clamped_blocks",
    "copy_schedule",
    "grid_walk",
    "ladder_matrix",
    "ladder_picture",
    "record_of",
    "table",
]
