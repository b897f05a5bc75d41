"""Edited completions: battles judged again with either answer edited, and what a board makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.orchestrator.recording.ending import Ending
from venire.storage.read.judge_quality import judge_readability

Venire = Callable[..., Any]

PAIRS = '[[judge]]\nname = "pairs"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "binary"\n'
VARIANTS = 'policy = "all-pairs"\nvariants = ["echo"]'


@pytest.fixture
def campaign(folder: Path, write_campaign: Callable[..., Path]) -> Callable[..., Path]:
    """Writes a campaign of three models whose completions have an edited copy, all but one; with `variants`."""
    table = folder / "completions.jsonl"
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    copies = [{**row, "completion": f"{row['completion']}\n\n{row['completion']}", "variant": "echo"} for row in rows]
    del copies[next(n for n, row in enumerate(copies) if row["model"] == "strong")]
    text = "".join(json.dumps({"variant": "", **row}) + "\n" for row in [*rows, *copies])
    table.write_text(text, encoding="utf-8")

    def write(
        judges: str = PAIRS, *, plan: str = VARIANTS, models: str = '["strong", "solid", "verbose"]', **options: Any
    ) -> Path:
        path = write_campaign(judges=judges, **{"instructions": 16, **options})
        written = path.read_text(encoding="utf-8").replace('policy = "all-pairs"', plan)
        path.write_text(written.replace("[data]", f"[data]\nmodels = {models}"), encoding="utf-8")
        return path

    return write


def test_edited_battles_are_judged_and_are_no_battles_of_the_models(
    venire: Venire, campaign: Callable[..., Path], settle: Callable[..., Ending]
) -> None:
    path = campaign()
    planned = venire("plan", path)
    assert "and again with each answer edited (echo)" in planned.out + planned.err
    assert settle(path) is Ending.COMPLETE
    store = path.with_suffix(".duckdb")
    count = "select count(*) from {0}"
    assert venire("sql", store, count.format("battle"), "--json").json() == [{"count_star()": 3 * 16 * 2}]
    sides = venire(
        "sql", store, "select variant_a, variant_b, count(*) n from edited_battle group by all order by 1", "--json"
    ).json()
    # strong lacks one edited copy: neither of its two battles there is asked with an edit
    assert [tuple(row.values()) for row in sides] == [("", "echo", (3 * 16 - 2) * 2), ("echo", "", (3 * 16 - 2) * 2)]
    shown = venire("rate", store)
    assert "Edited completions: echo   verdicts: simulated" in shown.out
    board = vn.rate(store)
    assert sum(row["battles"] for row in board.rows()) == 2 * 3 * 16
    (edit,) = board.edits
    assert (edit.variant, edit.pairs, edit.battles) == ("echo", "all pairs", 3 * 16 - 2)
    assert edit.shift == pytest.approx(edit.on_a - edit.on_b)
    assert board.to_json()["edits"][0]["battles"] == edit.battles
    assert venire("store", "check", store).code == 0


def test_a_board_is_the_same_with_and_without_edits(
    campaign: Callable[..., Path], settle: Callable[..., Ending]
) -> None:
    plain = campaign(plan='policy = "all-pairs"', name="plain.toml")
    assert settle(plain) is Ending.COMPLETE
    both = campaign(name="both.toml")
    assert settle(both) is Ending.COMPLETE
    one, other = (vn.rate(path).to_json() for path in (plain, both))
    assert "edits" not in one
    assert other.pop("edits")
    assert one == other
    with vn.open_store(both.with_suffix(".duckdb")) as store:
        (row,) = judge_readability(store, 1)
    assert row.both_read == 3 * 16 + 2 * (3 * 16 - 2)  # each with its two orders


def test_edits_are_beside_grades_by_kind_of_pair(
    venire: Venire, campaign: Callable[..., Path], settle: Callable[..., Ending]
) -> None:
    grader = '[[judge]]\nname = "{0}"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "{0}"\n'
    path = campaign(PAIRS + grader.format("direct") + grader.format("echo"))
    assert settle(path) is Ending.COMPLETE
    board = vn.rate(path)
    kinds = {one.pairs: one for one in board.edits}
    assert list(kinds)[:3] == ["all pairs", "discriminative", "non-discriminative"]
    assert kinds["all pairs"].battles == sum(one.battles for name, one in kinds.items() if name != "all pairs")
    assert board.grades is not None
    assert board.grades.accuracy is not None
    assert all(row.graded == 16 for row in board.grades.accuracy.models)  # edited copies are not graded


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plan": 'policy = "all-pairs"\nvariants = ["long"]'}, "no completion of these models was edited so"),
        ({"plan": 'policy = "balanced"\nbattles = 8\nvariants = ["echo"]'}, "a plan of one round"),
        ({"judges": PAIRS.replace("binary", "direct")}, "needs judges of pairs"),
        ({"plan": 'policy = "all-pairs"\nvariants = ["echo", "echo"]'}, "each once"),
    ],
)
def test_edits_that_cannot_be_judged_are_refused(
    venire: Venire, campaign: Callable[..., Path], options: dict[str, str], message: str
) -> None:
    refused = venire("plan", campaign(**options))
    assert refused.code == 2
    assert message in refused.err
