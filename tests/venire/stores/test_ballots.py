"""`venire rate` on ballots: of a table, of a campaign whose judges rank all answers, and beside judges of pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from venire.orchestrator.recording.ending import Ending

Settle = Callable[..., Ending]
Venire = Callable[..., Any]

ROWS = [
    *("ann,1,maple,1", "ann,1,oak,2", "ann,1,cedar,3", "ann,2,oak,1", "ann,2,cedar,2", "ann,2,maple,2"),
    *("oak,1,maple,1", "oak,1,cedar,2", "bob,1,oak,1", "bob,1,maple,3", "bob,1,cedar,2", "bob,2,maple,"),
]
LISTS = """\
[[judge]]
name = "{name}"
model = "simulated/{name}@1"
protocol = "{protocol}"
"""


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["judge,instruction_id,model,rank", *ROWS]) + "\n", encoding="utf-8")
    return path


def test_a_table_of_ballots_is_known_by_its_columns_and_rated_by_pairs(venire: Venire, votes: Path) -> None:
    board = venire("rate", votes, "--json").json()
    facts = board["diagnostics"]
    assert (facts["judgments"], facts["ties"], facts["unreadable"]) == (10, 1, 3)
    assert facts["ballots"] == 4
    assert {row["model"] for row in board["models"]} == {"maple", "oak", "cedar"}
    assert [row["judge"] for row in board["judges"]] == ["ann", "bob", "oak"]
    said = venire("rate", votes).out
    assert "4 ballots" in said
    assert "flipped" not in said


@pytest.mark.parametrize("method", ["borda", "median-rank"])
def test_without_clusters_ballots_are_drawn_whole_and_named(venire: Venire, votes: Path, method: str) -> None:
    words = ("--method", method, "--bootstrap", "5", "--json")
    said = [
        venire("rate", votes, *words, *more).json()["diagnostics"]["errors"] for more in (("--cluster", "none"), ())
    ]
    assert said == ["bootstrap over 4 ballots", "bootstrap over 2 instructions"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--both-bad", "drop"), "is a table of ballots: leave --both-bad out"),
        (("--cluster", "topic"), "is a table of ballots: leave --cluster out"),
        (("--method", "covariates", "--covariate", "length"), "is a table of ballots: leave --covariate out"),
        (("--campaign", "x"), "has no campaigns"),
        (("--format", "table"), "a table of ballots needs the columns model and rank"),
    ],
)
def test_what_means_nothing_to_ballots_is_refused(
    venire: Venire, votes: Path, words: tuple[str, ...], told: str
) -> None:
    done = venire("rate", votes, *words)
    assert done.code == 2
    assert told in done.err


def test_unranked_models_may_be_absent(venire: Venire, votes: Path, tmp_path: Path) -> None:
    text = votes.read_text(encoding="utf-8").replace("bob,1,cedar,2\n", "")
    votes.write_text(text, encoding="utf-8")
    judgments = [
        venire("rate", votes, "--unranked", word, "--json").json()["diagnostics"]["judgments"]
        for word in ("below", "absent")
    ]
    assert judgments == [10, 8]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("model_a,model_b,winner\na,b,tie\n", encoding="utf-8")
    done = venire("rate", pairs, "--unranked", "absent")
    assert done.code == 2
    assert "no ballots" in done.err
    assert "leave --unranked out" in done.err


def test_judges_of_lists_end_their_run_with_a_board(venire: Venire, write_campaign: Callable[..., Path]) -> None:
    judges = "".join(LISTS.format(name=name, protocol="listwise") for name in ("gpt-4-0613", "claude-3-opus"))
    path = write_campaign(judges=judges)
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    assert "Leaderboard" in done.out
    facts = venire("rate", path.with_suffix(".duckdb"), "--json").json()["diagnostics"]
    assert facts["ballots"] == 4
    assert facts["judgments"] + facts["unreadable"] == 4 * 15
    refused = venire("rate", path.with_suffix(".duckdb"), "--method", "covariates", "--covariate", "length")
    assert refused.code == 2
    assert "has ballots alone" in refused.err


def test_beside_judges_of_pairs_ballots_are_left_out_and_it_is_said(
    venire: Venire, write_campaign: Callable[..., Path], settle: Settle
) -> None:
    judges = LISTS.format(name="gpt-4-0613", protocol="listwise")
    judges += LISTS.format(name="claude-3-opus", protocol="two-stage")
    path = write_campaign(judges=judges)
    assert settle(path) is Ending.COMPLETE
    board = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert [row["judge"] for row in board["judges"]] == ["claude-3-opus"]
    assert any("ballots of gpt-4-0613 left out" in note for note in board["diagnostics"]["notes"])


PEERS = """\
name = "peers"
seed = 1
[data]
instructions = "instructions.jsonl"
[plan]
policy = "all-pairs"
instructions = 3
"""
PEER = """\
[[contestant]]
name = "{0}"
model = "simulated/{0}@1"
elo = 1100
[[judge]]
name = "judge {0}"
model = "simulated/{0}@1"
protocol = "listwise"
"""


def test_a_judge_that_wrote_answers_is_known_by_its_model_and_not_heard_on_itself(
    venire: Venire, folder: Path, settle: Settle
) -> None:
    path = folder / "peers.toml"
    names = ("gpt-4-0613", "claude-v1", "bard")
    path.write_text(PEERS + "".join(PEER.format(name) for name in names), encoding="utf-8")
    assert venire("generate", path, "--yes").code == 0
    assert settle(path) is Ending.COMPLETE
    store = path.with_suffix(".duckdb")
    heard, whole = (
        venire("rate", store, *words, "--json").json()["diagnostics"] for words in (("--own", "exclude"), ())
    )
    assert whole["judgments"] + whole["unreadable"] == 3 * 3 * 3
    assert heard["judgments"] + heard["unreadable"] == 3 * 3
    assert heard["own_left_out"] == 3 * 3 * 2
    assert "own_left_out" not in whole
