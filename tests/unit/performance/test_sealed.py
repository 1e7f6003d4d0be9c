"""A record is what a tool wrote, or it is refused."""

import json
from pathlib import Path

import pytest

from pallas_rungs.performance.sealed import FOLDER, RecordError, read_sealed, sealed, write_sealed


def test_a_record_comes_back_as_json_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    write_sealed(path, {"entries": [(1, 0.1)], "who": "µ"})
    kept = read_sealed(path, "`make small` writes it")
    assert kept.pop("digest")
    assert kept == {"entries": [[1, 0.1]], "who": "µ"}


def test_sealing_again_changes_nothing() -> None:
    once = sealed({"a": 1})
    assert sealed(once) == once
    assert sealed({"a": 2})["digest"] != once["digest"]


def test_a_change_by_hand_and_an_absent_record_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    with pytest.raises(RecordError, match=r"no record small\.json; `make small` writes it"):
        read_sealed(path, "`make small` writes it")
    write_sealed(path, {"value": 2})
    path.write_text(path.read_text().replace("2", "1", 1))
    with pytest.raises(RecordError, match="by hand; remove it, and `make small` writes it"):
        read_sealed(path, "`make small` writes it")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_the_records_of_the_book_are_as_they_were_written(path: Path) -> None:
    assert json.loads(path.read_text("utf-8")) == read_sealed(path, "")
