"""Figures drawn from data, light and dark; a cell whose last expression is one shows it."""

from pallas_rungs.figures.bars import bars
from pallas_rungs.figures.block_schedule import block_schedule
from pallas_rungs.figures.blocks import block_ownership
from pallas_rungs.figures.clamped import clamped_blocks
from pallas_rungs.figures.clock_record import record_clocks
from pallas_rungs.figures.copy_record import record_of
from pallas_rungs.figures.copy_schedule import copy_schedule
from pallas_rungs.figures.curves import Curve, curves
from pallas_rungs.figures.dma_timeline import dma_timeline
from pallas_rungs.figures.file_account import file_account
from pallas_rungs.figures.filtered import Choice, FilteredTable, filtered_table
from pallas_rungs.figures.grid_schedule import grid_schedule
from pallas_rungs.figures.happens_before import happens_before
from pallas_rungs.figures.heat_map import Cell, HeatMap, heat_maps
from pallas_rungs.figures.ladder_matrix import ladder_matrix
from pallas_rungs.figures.ladder_picture import ladder_picture
from pallas_rungs.figures.mask_blocks import MaskBlocks, mask_blocks
from pallas_rungs.figures.pipeline_frames import pipeline_frames
from pallas_rungs.figures.pipeline_schedule import pipeline_schedule
from pallas_rungs.figures.ring import ring_steps
from pallas_rungs.figures.rooflines import Roof, rooflines
from pallas_rungs.figures.stays import block_moves, bytes_fetched, bytes_moved, times_moved
from pallas_rungs.figures.svg import SVG, Figure
from pallas_rungs.figures.tables import Table, table
from pallas_rungs.figures.times import Sourced, TimeTable, Told, sourced, time_table, told
from pallas_rungs.figures.visits import block_visits
from pallas_rungs.figures.walk import grid_walk

__all__ = [
    "SVG",
    "Cell",
    "Choice",
    "Curve",
    "Figure",
    "FilteredTable",
    "HeatMap",
    "MaskBlocks",
    "Roof",
    "Sourced",
    "Table",
    "TimeTable",
    "Told",
    "bars",
    "block_moves",
    "block_ownership",
    "block_schedule",
    "block_visits",
    "bytes_fetched",
    "bytes_moved",
    "clamped_blocks",
    "copy_schedule",
    "curves",
    "dma_timeline",
    "file_account",
    "filtered_table",
    "grid_schedule",
    "grid_walk",
    "happens_before",
    "heat_maps",
    "ladder_matrix",
    "ladder_picture",
    "mask_blocks",
    "pipeline_frames",
    "pipeline_schedule",
    "record_clocks",
    "record_of",
    "ring_steps",
    "rooflines",
    "sourced",
    "table",
    "time_table",
    "times_moved",
    "told",
]
