"""Outputs name nothing that only the machine of one build knows."""

import tempfile
from pathlib import Path

from pallas_rungs.book.lasting import LastingNames

NAMES = LastingNames(Path("/home/reader/book"), {"123.py": "In[3]"})


def test_a_cells_file_is_named_as_the_cell():
    text = f"kernel at {tempfile.gettempdir()}/ipykernel_77/123.py:4"
    assert NAMES.applied(text) == "kernel at In[3]:4"


def test_files_of_the_checkout_are_named_from_its_root():
    output = {"data": {"text/plain": ["at /home/reader/book/code/pallas_rungs/x.py:1\n"]}}
    assert NAMES.applied(output) == {"data": {"text/plain": ["at code/pallas_rungs/x.py:1\n"]}}


def test_a_temporary_folder_is_left_out():
    assert NAMES.applied(f"{tempfile.gettempdir()}/tmpab_12cd/mine.py:5") == "mine.py:5"


def test_other_paths_stay():
    assert NAMES.applied("/home/reader/bookshelf/x.py") == "/home/reader/bookshelf/x.py"
