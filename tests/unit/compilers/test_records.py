"""What a compiler says: asked where it is, recorded where it is not, never a stale record."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pallas_rungs.claims import claim
from pallas_rungs.compilers.once import FOLDER
from pallas_rungs.compilers.records import RENEW, Known, RecordError, live, live_or_recorded
from pallas_rungs.compilers.records import recorded as long_record


class Compiler:
    """A compiler that is here or not, and counts how often it is asked."""

    def __init__(self, version: str = "1", *, here: bool = True) -> None:
        self.version, self.here, self.count = version, here, 0
        self.says: Any = {"spills": 3, "units": ["MXU"]}

    def why_unavailable(self) -> str:
        return "" if self.here else "not installed"

    def installed_versions(self) -> dict[str, str]:
        return {"libtpu": self.version}

    def ask(self) -> Any:
        self.count += 1
        return self.says


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(live, "RECORDS", tmp_path / "records")
    monkeypatch.delenv(RENEW, raising=False)
    monkeypatch.delenv(FOLDER, raising=False)
    return tmp_path / "records"


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    compiler = Compiler()
    monkeypatch.setenv(RENEW, "1")
    live_or_recorded("softmax", compiler.ask, compiler)
    monkeypatch.delenv(RENEW)
    return compiler


@pytest.fixture
def build(recorded: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """The compiler of a build of the book, in which records are held to what the compiler says."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "build"))
    return recorded


def test_where_the_compiler_is_it_is_asked_and_nothing_is_marked(recorded: Compiler) -> None:
    known = live_or_recorded("softmax", recorded.ask, recorded)
    assert recorded.count == 2
    assert (known.value, known.made, known.remark) == (recorded.says, "", "")


def test_where_it_is_not_the_record_says_so(recorded: Compiler) -> None:
    absent = Compiler("none", here=False)
    known = live_or_recorded("softmax", absent.ask, absent)
    assert absent.count == 0
    assert known.value == recorded.says
    assert known.made
    assert known.remark == f"from a record of {known.made}, made with libtpu 1"


@pytest.mark.usefixtures("build")
def test_a_missing_record_is_named_with_and_without_the_compiler() -> None:
    for here in (True, False):
        compiler = Compiler(here=here)
        with pytest.raises(RecordError, match=r"'add'.*make records.*add\.json"):
            live_or_recorded("add", compiler.ask, compiler)


def test_a_record_that_the_same_versions_no_longer_bear_out_is_an_error(build: Compiler) -> None:
    build.says = {"spills": 4}
    with pytest.raises(RecordError, match=r"'softmax' of .* is not what the compiler says now"):
        live_or_recorded("softmax", build.ask, build)
    build.version = "2"
    assert live_or_recorded("softmax", build.ask, build).value == {"spills": 4}


def test_who_changes_a_page_of_their_own_gets_what_the_compiler_says(recorded: Compiler) -> None:
    recorded.says = {"spills": 4}
    assert live_or_recorded("softmax", recorded.ask, recorded).value == {"spills": 4}
    assert live_or_recorded("another", recorded.ask, recorded).value == {"spills": 4}


def test_renewing_leaves_a_record_that_still_holds_as_it_is(
    recorded: Compiler, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = records / "softmax.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "made": "2020-02-02"}))
    monkeypatch.setenv(RENEW, "1")
    live_or_recorded("softmax", recorded.ask, recorded)
    assert json.loads(file.read_text())["made"] == "2020-02-02"
    recorded.says = []
    live_or_recorded("softmax", recorded.ask, recorded)
    assert json.loads(file.read_text()) == {**kept, "value": []}


def test_what_takes_long_is_read_from_its_record_and_asked_only_to_renew_it(
    build: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.says = {"spills": 4}
    known = long_record("softmax", build.ask, build)
    assert build.count == 1
    assert known.value == {"spills": 3, "units": ["MXU"]}
    assert known.remark.startswith("from a record of")
    monkeypatch.setenv(RENEW, "1")
    assert long_record("softmax", build.ask, build).value == {"spills": 4}
    monkeypatch.delenv(RENEW)
    assert long_record("softmax", build.ask, Compiler(here=False)).value == {"spills": 4}
    with pytest.raises(RecordError, match=r"no record 'add'.*make records.*add\.json"):
        long_record("add", build.ask, build)


@pytest.mark.usefixtures("build")
def test_a_build_asks_once(recorded: Compiler) -> None:
    first = live_or_recorded("softmax", recorded.ask, recorded)
    assert live_or_recorded("softmax", recorded.ask, recorded) == first
    assert recorded.count == 2


def test_every_record_is_asked_for_by_a_chapter(root: Path) -> None:
    pages = "".join(page.read_text("utf-8") for page in (root / "book").rglob("*.md"))
    kept = (root / "code" / "pallas_rungs" / "compilers" / "records").glob("*.json")
    names = [record.stem for record in kept]
    asked = [  # a name may be one of several that a page puts together: f"sizes-{chip}"
        re.compile(r"[a-z0-9]+".join(map(re.escape, re.split(r"\{\w+\}", name))))
        for name in re.findall(r'"([a-z0-9-]+(?:\{\w+\})?)"', pages)
    ]
    assert names
    assert [name for name in names if not any(it.fullmatch(name) for it in asked)] == []


def test_a_claim_about_a_record_is_shown_as_not_checked(
    recorded: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr("pallas_rungs.claims._show", lambda record, *_: shown.append(record))
    for compiler in (recorded, Compiler(here=False)):
        known = live_or_recorded("softmax", compiler.ask, compiler)
        with claim("three spills", rung="compile", given=known):
            assert known.value["spills"] == 3
    assert [record["kind"] for record in shown] == ["claim", "unproved"]


def test_a_claim_about_a_record_can_be_false(recorded: Compiler) -> None:
    absent = Compiler(here=False)
    known = live_or_recorded("softmax", absent.ask, absent)
    with pytest.raises(AssertionError), claim("no spills", rung="compile", given=known):
        assert known.value["spills"] == 0, "spills"


KEYS = ("a", "b", "c")


class Tiles(Compiler):
    """A compiler that is asked about tiles, and notes which."""

    asked: tuple[str, ...] = ()
    slow: str = ""

    def tiles(self, *keys: str) -> dict[str, Any]:
        self.asked += keys
        return {key: {"cycles": 9 if key == self.slow else 1} for key in keys}

    def known(self, *again: str) -> Known:
        return long_record(
            "tiles", partial(self.tiles, *KEYS), self, again=partial(self.tiles, *again)
        )


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> Tiles:
    """A compiler whose record of all keys was made."""
    compiler = Tiles()
    monkeypatch.setenv(RENEW, "1")
    made = compiler.known("b")
    assert (compiler.asked, made.made) == (KEYS, "")
    monkeypatch.delenv(RENEW)
    compiler.asked = ()
    return compiler


def test_of_a_long_record_only_a_part_is_asked_again(tiles: Tiles) -> None:
    known = tiles.known("b")
    assert known.value == {key: {"cycles": 1} for key in KEYS}
    assert known.remark.startswith("from a record of ")
    assert tiles.asked == ("b",)


def test_a_part_that_is_no_longer_so_is_an_error(tiles: Tiles) -> None:
    tiles.slow = "b"
    with pytest.raises(RecordError, match=r"of 'b', and the compiler says .*9.* now; where the"):
        tiles.known("b")
    tiles.slow = "c"  # what is not asked again cannot be noticed
    assert tiles.known("b").value["c"] == {"cycles": 1}


@pytest.mark.parametrize(("version", "here"), [("2", True), ("1", False)])
def test_another_compiler_or_none_is_not_asked(tiles: Tiles, version: str, here: bool) -> None:
    tiles.version, tiles.here, tiles.slow = version, here, "b"
    assert tiles.known("b").versions == {"libtpu": "1"}
    assert tiles.asked == ()


def test_a_long_record_without_an_answer_is_an_error(tiles: Tiles) -> None:
    with pytest.raises(RecordError, match="'tiles' has nothing of 'z'; where the"):
        tiles.known("z")
