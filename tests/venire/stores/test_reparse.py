"""`venire reparse` at the terminal: what a later Venire reads otherwise is shown, written beside, and rated."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.judges.parsing import choices

Venire = Callable[..., Any]
Write = Callable[..., Path]
Start = Callable[..., "subprocess.Popen[str]"]

TRIALS = 15 * 2 * 2 * 2

KILLED = """
import os, signal, sys
from pathlib import Path
from venire.judges import parsing
from venire.reading import read_again
from venire.storage.store.store import Commit

real = Commit.run

def run(self, name, /, **parameters):
    real(self, name, **parameters)
    if name == "keep_reading":
        os.kill(os.getpid(), signal.SIGKILL)

Commit.run = run
parsing.PARSER = "rules-2"
read_again(Path(sys.argv[1]), None, dry=False)
"""


@pytest.fixture
def store(judged: Write) -> Path:
    """The store of a finished campaign."""
    return judged().with_suffix(".duckdb")


@pytest.fixture
def ties_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later Venire, which takes every choice of the second for a tie."""

    def read(text: str) -> tuple[int, str] | None:
        found = choices.read_choice(text)
        return (0, "new") if found is not None and found[0] == 2 else found

    monkeypatch.setattr("venire.judges.protocols.two_stage.read_choice", read)
    monkeypatch.setattr("venire.judges.parsing.PARSER", "rules-2")


def test_the_same_parser_changes_nothing_and_says_so(venire: Venire, store: Path) -> None:
    before = store.read_bytes()
    done = venire("reparse", store)
    assert done.code == 0
    assert done.out == f"nothing changed: {TRIALS} verdicts read as before with rules-1\n"
    found = venire("reparse", store, "--json").json()
    assert (found["verdicts"], found["same"], found["reading"]) == (TRIALS, TRIALS, None)
    assert found["campaigns"] == ["small"]
    assert store.read_bytes() == before


def test_what_changed_is_shown_written_and_rated_and_the_earlier_reading_is_kept(
    venire: Venire, store: Path, ties_only: None
) -> None:
    board = venire("rate", store, "--json").json()
    dry = venire("reparse", store, "--dry-run")
    assert dry.code == 0, dry.err
    assert "dry run: nothing was written" in dry.out
    assert "model_a -> tie" in dry.out
    assert "model_b -> tie" in dry.out
    assert "bare -> new" in dry.out
    assert dry.out.count(", shown ") == 10
    assert venire("rate", store, "--json").json() == board
    found = venire("reparse", store, "--json").json()
    changed = sum(one["verdicts"] for one in found["changes"])
    assert found["reading"] == 2
    assert {(one["earlier"], one["now"]) for one in found["changes"]} == {("model_a", "tie"), ("model_b", "tie")}
    assert found["same"] == TRIALS - changed
    assert f"{TRIALS} verdicts of small" in dry.out
    assert f"again with rules-2: {found['same']} as before, {changed} otherwise" in dry.out
    assert set(found["examples"][0]) == {"judge", "instruction_id", "models", "repeat", "earlier", "now"}
    now = venire("rate", store, "--json").json()
    assert now["diagnostics"]["ties"] > board["diagnostics"]["ties"]
    with duckdb.connect(str(store), read_only=True) as opened:
        kept = opened.execute("select reading, count(*) from verdict group by all order by all").fetchall()
    assert kept == [(1, TRIALS), (2, TRIALS)]
    again = venire("reparse", store)
    assert again.out == f"nothing changed: {TRIALS} verdicts read as before with rules-2\n"
    status = venire("status", store, "--json").json()
    assert status["holds"]["verdicts"] == TRIALS
    assert status["campaigns"][0]["progress"] == {"planned": TRIALS, "settled": TRIALS, "failed": 0, "missing": 0}


def test_a_run_after_it_asks_nothing(venire: Venire, store: Path, ties_only: None) -> None:
    venire("reparse", store)
    done = venire("run", store.with_suffix(".toml"), "--yes")
    assert done.code == 0
    assert "nothing was asked" in done.err


@pytest.mark.slow
def test_a_kill_in_its_commit_leaves_the_earlier_reading_in_force(venire: Venire, store: Path, start: Start) -> None:
    board = venire("rate", store, "--json").out
    killed = start("-c", KILLED, store)
    _, said = killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL, said
    assert venire("rate", store, "--json").out == board
    with duckdb.connect(str(store), read_only=True) as opened:
        assert opened.execute("select count(*) from verdict").fetchall() == [(TRIALS,)]
        assert opened.execute("select count(*) from reading").fetchall() == [(1,)]
    assert venire("reparse", store).out.startswith("nothing changed")


def test_one_campaign_of_several_is_read_where_it_is_named(
    venire: Venire, store: Path, write_campaign: Write, ties_only: None
) -> None:
    other = write_campaign(name="other.toml", instructions=1)
    text = other.read_text(encoding="utf-8").replace('name = "small"', f'name = "other"\nstore = "{store.name}"')
    other.write_text(text, encoding="utf-8")
    assert venire("run", other, "--yes").code == 0
    found = venire("reparse", store, "--campaign", "other", "--json").json()
    assert (found["campaigns"], found["verdicts"]) == (["other"], TRIALS // 2)
    whole = venire("reparse", store, "--json").json()
    assert sorted(whole["campaigns"]) == ["other", "small"]
    missing = venire("reparse", store, "--campaign", "none")
    assert missing.code == 2
    assert "there are: small, other" in missing.err


def test_what_cannot_be_read_again_is_told_in_a_sentence(venire: Venire, tmp_path: Path, folder: Path) -> None:
    gone = venire("reparse", tmp_path / "none.duckdb")
    assert (gone.code, gone.err.count("\n")) == (2, 1)
    empty = tmp_path / "empty.duckdb"
    venire("import", "table", folder / "instructions.jsonl", "--kind", "instructions", "--store", empty)
    done = venire("reparse", empty)
    assert done.code == 2
    assert "has no campaign yet" in done.err


def test_a_campaign_that_was_only_planned_has_nothing_to_read(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    venire("plan", path)
    done = venire("reparse", path.with_suffix(".duckdb"))
    assert done.code == 0
    assert done.out == "nothing changed: 0 verdicts read as before with rules-1\n"
