"""One folder of climbs for the whole session, however many processes share its tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_rungs.compilers.once import FOLDER


@pytest.fixture(scope="session", autouse=True)
def shared_climbs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every bug is climbed once in a session: by the test that wants it first."""
    base = tmp_path_factory.getbasetemp()
    # Each process of a parallel run has a folder of its own below that of the run.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "climbs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        yield folder
