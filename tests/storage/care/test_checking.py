"""What is wrong in a store is seen and named; nothing in it is changed by looking."""

from __future__ import annotations

import lzma
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from venire.arena.errors import InputError, StoreError, StoreHeldError
from venire.arena.records import Rating
from venire.storage.care import checking
from venire.storage.care.checking import check, check_open, refuse_unsound
from venire.storage.store.journal import Journal
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

FIXTURES = Path(__file__).parents[1] / "fixtures"
WITHOUT_CHECKS = "create table loose as select * from {0}; drop table {0}; create table {0} as select * from loose;"


@pytest.fixture(scope="session")
def content() -> bytes:
    """A small store that is sound."""
    return lzma.decompress(max(FIXTURES.glob("*.xz")).read_bytes())


@pytest.fixture
def sound(content: bytes, path: Path) -> Path:
    path.write_bytes(content)
    return path


def spoil(path: Path, statements: str) -> None:
    """Do to a store what only another program or a defect would."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(statements)


SETTLED = "(select min(trial) from verdict)"
SUBMISSION = "insert into submission select {}, {}, (select min(id) from lane), {}, 9, 'd'::blob, 0, 0, now(), 1;"
LINE = "insert into submission_line values ({}, {}, 1, 99, 0, 0, 'd'::blob, 1);"
COLLECTED = "insert into submission_event values (1, now(), 'collected', 'batch_1', '', 1);"
PLANTED = {
    "check_trial_keys": "update trial set trial_key = (select trial_key from trial where id = 1) where id = 2",
    "check_trial_ids": "update trial set id = 1 where id = 2",
    "check_plan_trial": "update plan set trial = 999999 where ordinal = 0 and campaign = 1",
    "check_plan_campaign": "update plan set campaign = 9 where ordinal = 0 and campaign = 1",
    "check_attempt_trial": "update attempt set trial = 999999 where rowid = 0",
    "check_attempt_campaign": "update attempt set campaign = 9 where rowid = 0",
    "check_verdict_trial": "update verdict set trial = 999999 where rowid = 0",
    "check_verdict_reading": "update verdict set reading = 9 where rowid = 0",
    "check_failure_trial": "update failure set trial = 999999 where rowid = 0",
    "check_trial_completion": "update trial set shown = [999, shown[2]] where id = 1",
    "check_trial_sides": "update trial set shown = list_reverse(shown) where id = 1",
    "check_trial_instruction": "update trial set instruction = 99 where id = 1",
    "check_trial_respondent": "update trial set respondent = 99 where id = 1",
    "check_judge_respondent": "update campaign_judge set respondent = 99 where name = 'vicuna'",
    "check_completion_instruction": "update completion set instruction = 99 where id = 1",
    "check_completion_model": "update completion set model = 99 where id = 1",
    "check_suspicion_completion": "insert into suspicion values (99999, 'asks for the verdict')",
    "check_vote_names": "insert into vote values (9, 1, 1, 2, null, 1, 0, 1, null)",
    "check_gold_names": "insert into gold values (9, 1, 1, 1)",
    "check_look_round": "insert into look values (1, 1, 9, now(), 0, 0, 0, 0, null, '{}')",
    "check_plan_twice": "insert into plan select campaign, round, 999, trial, gap, batch from plan where ordinal = 0",
    "check_round_trials": "delete from plan where ordinal = 3",
    "check_verdict_attempt": f"delete from attempt where trial = {SETTLED}",
    "check_verdict_twice": "insert into verdict select * from verdict where rowid = 0",
    "check_verdict_cost": "update verdict set cost = cost + 1 where rowid = 0",
    "check_attempt_numbers": "update attempt set number = 1 where number = 2",
    "check_attempt_text": WITHOUT_CHECKS.format("attempt")
    + f"update attempt set text = null where fault = 0 and trial = {SETTLED}",
    "check_settled_failed": f"insert into failure select {SETTLED}, 1, 1, false, 1",
    "check_ledger_running": "update ledger set written = written + 1 where batch = 5",
    "check_ledger_gaps": "delete from ledger where batch = 5",
    "check_ledger_rows": "update ledger set written = 0 where batch = (select max(batch) from attempt)",
    "check_submission_campaign": SUBMISSION.format("1", "9, 'w-1'", 0) + COLLECTED,
    "check_submission_twice": SUBMISSION.format("1", "1, 'w-1'", 0) + SUBMISSION.format("2", "1, 'w-1'", 0),
    "check_submission_lines": SUBMISSION.format("1", "1, 'w-1'", 2) + LINE.format("1", 1),
    "check_submission_trial": SUBMISSION.format("1", "1, 'w-1'", 1) + LINE.format("1", 999999),
    "check_submission_event": COLLECTED,
    "check_submission_collected": SUBMISSION.format("1", "1, 'w-1'", 1) + LINE.format("1", 1) + COLLECTED,
    "check_submission_out": SUBMISSION.format("1", "1, 'w-1'", 1)
    + SUBMISSION.format("2", "1, 'w-2'", 1)
    + LINE.format("1", 1)
    + LINE.format("2", 1),
    "check_spend": "create or replace view spend as select campaign, 1::bigint nano from attempt group by campaign",
    "check_instruction_keys": "update instruction set turns = '[\"What else?\"]' where external_id = 'tea'",
    "check_prompt_digests": "update prompt set text = text || ' ' where id = 1",
    "check_completion_keys": "update completion set text = 'Five minutes.' where id = 2",
    "check_trial_digests": "update trial set repeat = 2 where id = 2",
}


KEYS = ("check_instruction_keys", "check_prompt_digests", "check_completion_keys", "check_trial_digests")


@pytest.fixture(scope="module")
def connection(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The sound store, open; whoever spoils it takes that back."""
    path = tmp_path_factory.mktemp("sound") / "judged.duckdb"
    path.write_bytes(content)
    with duckdb.connect(str(path)) as opened:
        opened.execute("set TimeZone = 'UTC'")
        yield opened
        assert check_open(opened, full=True).sound


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_is_named_with_a_count_and_an_example(
    name: str, connection: duckdb.DuckDBPyConnection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is planted is looked for: a sound store is looked over by all of it."""
    monkeypatch.setattr(checking, "_ROWS", {key: what for key, what in checking._ROWS.items() if key == name})
    connection.begin()
    connection.execute(PLANTED[name])
    found = check_open(connection, full=True)
    connection.rollback()
    finding = dict(zip((*checking._ROWS, *KEYS), found.findings, strict=True))[name]
    assert finding.count > 0
    assert finding.example
    assert not found.sound
    with pytest.raises(StoreError, match="is not sound"):
        refuse_unsound(path, found)


def test_every_kind_of_damage_that_is_looked_for_has_been_planted() -> None:
    assert {*checking._ROWS, *KEYS} == set(PLANTED)


def test_a_sound_store_is_sound_and_stays_as_it_was_byte_for_byte(sound: Path, content: bytes) -> None:
    found = check(sound, full=True)
    assert found.sound
    assert [one.what for one in found.findings if one.count] == []
    assert [note.what for note in found.notes] == ["battles with a verdict in one order only"]
    assert found.notes[0].count > 0
    assert sum(found.paid.values()) > 0
    assert sound.read_bytes() == content
    assert [one.name for one in sound.parent.iterdir()] == [sound.name]


STORES = sorted(FIXTURES.glob("*.xz"))


@pytest.mark.parametrize(
    "fixture",
    [STORES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in STORES[1:-1]), STORES[-1]],
    ids=lambda fixture: fixture.name.partition(".")[0],
)
def test_a_store_of_any_format_is_looked_over_and_stays_as_it_was(fixture: Path, path: Path) -> None:
    content = lzma.decompress(fixture.read_bytes())
    path.write_bytes(content)
    assert check(path, full=True).sound
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_keys_of_a_sample_are_looked_at_and_it_is_said_of_how_many(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_SAMPLE", 8)
    looked = [one.looked for one in check(sound).findings if one.looked is not None]
    assert looked == [8, 8]
    assert [one.looked for one in check(sound, full=True).findings if one.looked is not None] == []


def test_a_plan_that_was_cut_short_is_a_note_and_no_mistake(sound: Path) -> None:
    spoil(sound, "insert into plan select campaign, 7, ordinal, trial, gap, batch from plan where rowid < 3")
    notes = [note.what for note in check(sound).notes]
    assert "plans that were cut short; the next run makes them anew" in notes


def test_what_is_out_and_what_was_cut_short_are_notes_and_no_mistake(sound: Path) -> None:
    spoil(sound, SUBMISSION.format("1", "1, 'w-1'", 1) + LINE.format("1", 1) + LINE.format("2", 2))
    spoil(sound, "update ledger set written = written + 3, running = running + 3 where batch = 1")
    notes = {note.what: note.example for note in check(sound).notes}
    assert notes["batches that are out; the next run of their campaign collects them"] == "batch w-1"
    assert notes["lines of batches that were cut short, and never sent"] == "step 1 of trial 2"


def test_a_log_that_a_killed_run_left_is_read_and_left(
    sound: Path, in_process: Callable[..., subprocess.Popen[str]]
) -> None:
    script = """
import os, sys, duckdb
connection = duckdb.connect(":memory:")
connection.execute(f"attach '{sys.argv[1]}' as kept")
connection.execute("insert into kept.verdict by name select 999999 trial, 1 reading, 1 status, 'r' as rule, "
    "false answered, false flagged, 0 as cost, 1 batch")
os._exit(0)
"""
    in_process(script, sound).communicate(timeout=60)
    log = sound.with_name(f"{sound.name}.wal")
    before = log.read_bytes()
    found = check(sound)
    assert not found.sound
    assert any("judged.duckdb.wal was left" in note.what for note in found.notes)
    assert log.read_bytes() == before


def test_commits_that_only_the_journal_knows_of_are_missed_until_the_loss_is_accepted(path: Path) -> None:
    with open_store(path) as store:
        importing.add(store, [Rating("a", 1000.0)])
        constant = store.constant
    journal = Journal(path, constant, 1, datetime(2026, 1, 1, tzinfo=UTC))
    journal.mark(4, 9)
    journal.close(remove=False)
    found = check(path)
    assert [(one.what, one.count) for one in found.findings if one.count] == [
        ("every commit that the journal beside the store knows of is there", 3)
    ]
    open_store(path, accept_loss=True).close()
    assert check(path).sound


def test_what_is_no_store_is_said_in_a_sentence(tmp_path: Path, path: Path) -> None:
    with pytest.raises(InputError, match="there is no store"):
        check(path)
    with pytest.raises(InputError, match="is a folder"):
        check(tmp_path)
    path.write_text("not a database, by far" * 1000, encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot open .* as a store"):
        check(path)
    other = tmp_path / "other.duckdb"
    spoil(other, "create table t (a integer)")
    with pytest.raises(InputError, match="something else"):
        check(other)


def test_a_store_that_is_open_elsewhere_is_not_looked_at(path: Path) -> None:
    with open_store(path), pytest.raises(StoreHeldError):
        check(path)
