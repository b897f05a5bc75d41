"""People's votes by command: imported into a campaign's store, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]


@pytest.fixture
def votes(folder: Path) -> Path:
    """Two people's votes on the demo's texts, one row without a winner."""
    path = folder / "votes.csv"
    rows = ["ann,explain-tides,strong,evasive,model_a", "bob,code-sql,strong,solid,tie", "bob,code-sql,solid,terse,"]
    path.write_text("\n".join(["annotator,instruction_id,model_a,model_b,winner", *rows]) + "\n", encoding="utf-8")
    return path


def test_votes_are_imported_into_the_store_of_a_campaign_file_once(
    venire: Venire, write_campaign: Callable[..., Path], votes: Path
) -> None:
    file = write_campaign()
    assert venire("plan", file).code == 0
    told = venire("import", "votes", votes, "--as", "crowd", "--store", file)
    assert told.code == 0, told.err
    assert "2 votes of crowd new" in told.out
    assert "1 rows without a winner" in told.out
    again = venire("import", "votes", votes, "--as", "crowd", "--store", file, "--json").json()
    assert (again["votes"], again["annotators"], again["known"], again["without_winner"]) == (0, 0, 2, 1)
    assert "2 rows" in venire("sql", file, "select * from people_vote where origin = 'people'").out


def test_votes_on_what_the_store_does_not_have_are_refused_by_row_and_name(
    venire: Venire, write_campaign: Callable[..., Path], votes: Path
) -> None:
    file = write_campaign()
    assert venire("plan", file).code == 0
    votes.write_text(votes.read_text(encoding="utf-8").replace("solid,tie", "nobody,tie"), encoding="utf-8")
    told = venire("import", "votes", votes, "--as", "crowd", "--store", file)
    assert told.code == 2
    assert "votes.csv: row 2:" in told.err
    assert "'nobody'" in told.err
    missing = venire("import", "votes", votes, "--as", "crowd", "--store", votes.with_name("none.duckdb"))
    assert (missing.code, missing.out) == (2, "")


def test_a_rehearsed_person_s_token_is_believed(venire: Venire, write_campaign: Callable[..., Path]) -> None:
    """One token a vote is few for any text: a rehearsal is to end without a warning of the provider's counts."""
    ran = venire("run", write_campaign(instructions=1, judges='[[judge]]\nmodel = "simulated/person@1"\n'), "--yes")
    assert ran.code == 0, ran.err
    assert "not believed" not in ran.out + ran.err
