"""`venire generate` as a person uses it: contestants write, judges judge what they wrote, and nothing is paid twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]

FILE = """\
name = "peers"
seed = 1
[data]
instructions = "instructions.jsonl"
[plan]
policy = "all-pairs"
instructions = 2
{more}
"""
PEER = """\
[[contestant]]
name = "{0}"
model = "simulated/{0}@1"
elo = {1}
[[judge]]
name = "{0}"
model = "simulated/{0}@1"
protocol = "{2}"
"""


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    def peers(protocol: str = "listwise", more: str = "") -> Path:
        path = folder / "peers.toml"
        both = "".join(PEER.format(name, elo, protocol) for name, elo in (("gpt-4-0613", 1200), ("claude-v1", 1100)))
        path.write_text(FILE.format(more=more) + both, encoding="utf-8")
        return path

    return peers


def test_contestants_are_asked_first_and_then_judged(venire: Venire, write: Callable[..., Path]) -> None:
    path = write()
    early = venire("run", path, "--yes")
    assert early.code == 2
    assert "contestant 'gpt-4-0613' has no completions yet: ask it first with `venire generate peers.toml`" in early.err
    done = venire("generate", path, "--yes")
    assert done.code == 0, done.err
    assert "2 instructions to answer x 2 contestants = 4 trials" in done.err
    assert [line.split()[:3] for line in done.out.splitlines()[1:]] == [
        ["claude-v1", "2", "2"],
        ["gpt-4-0613", "2", "2"],
    ]
    judged = venire("run", path, "--yes")
    assert judged.code == 0, judged.err
    assert "lists of 2 models x 2 instructions x 2 judges = 4 trials" in judged.err
    store = path.with_suffix(".duckdb")
    ballots = venire("sql", store, "select judge, model, rank from ballot", "--json").json()
    assert len(ballots) == 2 * 2 * 2
    again = venire("generate", path)
    assert again.code == 0
    assert "nothing was asked" in again.err
    assert again.out == done.out


def test_a_board_is_that_of_the_campaign_that_judges_pairs(venire: Venire, write: Callable[..., Path]) -> None:
    path = write("two-stage")
    assert venire("generate", path, "--yes").code == 0
    assert venire("run", path, "--yes").code == 0
    board = venire("rate", path.with_suffix(".duckdb"), "--json").json()
    assert {one["model"] for one in board["models"]} == {"gpt-4-0613", "claude-v1"}


def test_what_no_board_can_be_made_of_is_said_with_where_it_is(venire: Venire, write: Callable[..., Path]) -> None:
    path = write("direct")
    assert venire("generate", path, "--yes").code == 0
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    assert "direct" in done.out
    rated = venire("rate", path.with_suffix(".duckdb"))
    assert rated.code == 2
    assert "views grade" in rated.err


def test_the_budget_of_the_generation_ends_it_with_3_and_what_was_written_counts(
    venire: Venire, write: Callable[..., Path]
) -> None:
    path = write(more="[budget.generation]\ncalls = 3")
    done = venire("generate", path, "--yes")
    assert done.code == 3
    assert "the budget of 3 calls is reached" in done.err
    held = venire("status", path.with_suffix(".duckdb"), "--json").json()["holds"]
    assert held["completions"] == 3


def test_a_file_without_contestants_is_told_what_to_add(venire: Venire, write: Callable[..., Path]) -> None:
    path = write()
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("[[contestant]]")] + '[[judge]]\nmodel = "simulated/bard@1"\n', encoding="utf-8")
    done = venire("generate", path, "--yes")
    assert done.code == 2
    assert "names no contestant: add a [[contestant]] table" in done.err
