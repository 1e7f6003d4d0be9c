import subprocess
from datetime import date

from pallas_rungs.book.badge import badge_html
from pallas_rungs.book.front_matter import Page
from pallas_rungs.book.history import History, history


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@x.org", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_COMMITTER_DATE": "2026-03-04T12:00:00Z"},
    )


def checkout(folder):
    git(folder, "init", "-q")
    (folder / "a").write_text("1")
    git(folder, "add", "a")
    git(folder, "commit", "-q", "-m", "one")


def test_a_checkout_gives_commit_and_day(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    checkout(tmp_path)
    found = history(tmp_path)
    assert len(found.commit) == 40
    assert found.day == date(2026, 3, 4)
    assert not found.changed


def test_a_changed_file_is_told(tmp_path):
    checkout(tmp_path)
    (tmp_path / "a").write_text("2")
    assert history(tmp_path).changed


def test_a_folder_without_history_gives_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert history(tmp_path) == History()


def test_a_folder_inside_another_checkout_is_no_checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    checkout(tmp_path)
    (tmp_path / "inner").mkdir()
    assert history(tmp_path / "inner") == History()


def test_the_epoch_of_the_source_decides_the_day(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    assert history(tmp_path).day == date(2026, 9, 21)


def test_the_badge_shows_only_what_is_installed():
    html = badge_html(
        Page("a", rungs=("trace", "compile"), minutes=7),
        {"jax": "0.12.0.1", "libtpu": "none"},
        History("0123456789abcdef", date(2026, 3, 4), changed=True),
    )
    assert "jax 0.12.0.1" in html
    assert "libtpu" not in html
    assert "tokamax" not in html
    assert "<code>012345678</code> with local changes, 4 March 2026" in html
    assert html.count('data-rung="') == 2
