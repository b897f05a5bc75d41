"""Edited completions: battles judged again with either answer edited, and what a board makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from tests.stores import rows_of
from venire.configs.loading import load_campaign
from venire.orchestrator.planning.respondents import editing
from venire.orchestrator.recording.ending import Ending
from venire.storage.read.judge_quality import judge_readability

Venire = Callable[..., Any]

PAIRS = '[[judge]]\nname = "pairs"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "binary"\n'
ASKED = 6
"""Instructions."""
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
        path = write_campaign(judges=judges, **{"instructions": ASKED, **options})
        written = path.read_text(encoding="utf-8").replace('policy = "all-pairs"', plan)
        path.write_text(written.replace("[data]", f"[data]\nmodels = {models}"), encoding="utf-8")
        return path

    return write


def test_edited_battles_are_judged_and_are_no_battles_of_the_models(
    venire: Venire, campaign: Callable[..., Path], settled: Callable[[Path], Path]
) -> None:
    path = campaign()
    planned = venire("plan", path)
    assert "answer edited (echo)" in planned.out + planned.err
    settled(path)
    store = path.with_suffix(".duckdb")
    assert rows_of(store, "select count(*) from battle") == [(3 * ASKED * 2,)]
    sides = rows_of(store, "select variant_a, variant_b, count(*) from edited_battle group by all order by 1")
    # strong lacks one edited copy: neither of its two battles there is asked with an edit
    assert sides == [("", "echo", (3 * ASKED - 2) * 2), ("echo", "", (3 * ASKED - 2) * 2)]
    shown = venire("rate", store)
    assert "Edited completions: echo   verdicts: simulated" in shown.out
    board = vn.rate(store)
    assert sum(row["battles"] for row in board.rows()) == 2 * 3 * ASKED
    (edit,) = board.edits
    assert (edit.variant, edit.pairs, edit.battles) == ("echo", "all pairs", 3 * ASKED - 2)
    assert edit.shift == pytest.approx(edit.on_a - edit.on_b)
    assert board.to_json()["edits"][0]["battles"] == edit.battles
    by_row = venire("rate", store, "--cluster", "none", "--json").json()["edits"][0]
    assert by_row["shift"] == pytest.approx(edit.shift, abs=1e-6)
    assert (by_row["lo"], by_row["hi"]) != pytest.approx((edit.lo, edit.hi), abs=1e-6)
    assert venire("store", "check", store).code == 0


def test_a_copy_that_is_no_different_is_not_judged(
    campaign: Callable[..., Path], settled: Callable[[Path], Path]
) -> None:
    path = campaign(instructions=ASKED)
    table = path.with_name("completions.jsonl")
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    texts = {(row["model"], row["instruction_id"]): row["completion"] for row in rows if not row["variant"]}
    for row in rows:
        if row["model"] == "solid":
            row["completion"] = texts[row["model"], row["instruction_id"]]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settled(path)
    (edit,) = vn.rate(path).edits
    assert edit.battles == ASKED - 1  # strong against verbose, but for the copy that strong lacks


def test_a_board_is_the_same_with_and_without_edits(
    campaign: Callable[..., Path], settled: Callable[[Path], Path]
) -> None:
    plain = campaign(plan='policy = "all-pairs"', name="plain.toml")
    settled(plain)
    both = campaign(name="both.toml")
    settled(both)
    one, other = (vn.rate(path).to_json() for path in (plain, both))
    assert "edits" not in one
    assert other.pop("edits")
    assert one == other
    with vn.open_store(both.with_suffix(".duckdb")) as store:
        (row,) = judge_readability(store, 1)
    assert row.both_read == 3 * ASKED + 2 * (3 * ASKED - 2)  # each with its two orders


def test_edits_are_beside_grades_by_kind_of_pair(
    venire: Venire, campaign: Callable[..., Path], settled: Callable[[Path], Path]
) -> None:
    grader = '[[judge]]\nname = "{0}"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "{0}"\n'
    path = campaign(PAIRS + grader.format("direct") + grader.format("echo"))
    settled(path)
    board = vn.rate(path)
    kinds = {one.pairs: one for one in board.edits}
    assert list(kinds)[:3] == ["all pairs", "discriminative", "non-discriminative"]
    assert kinds["all pairs"].battles == sum(one.battles for name, one in kinds.items() if name != "all pairs")
    assert board.grades is not None
    assert board.grades.accuracy is not None
    assert all(row.graded == ASKED for row in board.grades.accuracy.models)  # edited copies are not graded


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


EDITOR = '[[editor]]\nname = "echo"\nmodel = "simulated/gpt-4-0613@1"\nmax_tokens = 8000\n{more}'


def copies(path: Path) -> list[tuple[str, str]]:
    """Each completion that was edited, and its copy."""
    return rows_of(
        path.with_suffix(".duckdb"),
        "select o.text, e.text from completion e join completion o on o.model = e.model and "
        "o.instruction = e.instruction and o.variant = '' where e.variant = 'echo' order by all",
    )


def test_an_editor_writes_copies_that_a_run_then_judges(venire: Venire, write_campaign: Callable[..., Path]) -> None:
    path = write_campaign(judges=EDITOR.format(more="") + PAIRS)
    path.write_text(path.read_text().replace('policy = "all-pairs"', VARIANTS), encoding="utf-8")
    early = venire("run", path, "--yes")
    assert early.code == 2
    assert "`venire edit` writes the copies" in early.err
    done = venire("edit", path, "--yes")
    assert done.code == 0, done.err
    assert "6 models x 2 instructions" in done.err
    assert "1 editor = 12 trials" in done.err
    assert done.out.splitlines()[1].split() == ["echo", "12", "12", "0"]
    made = copies(path)
    assert len(made) == 12
    for text, copy in made:
        assert copy.startswith(text)
        assert copy.count(text) == 4
    again = venire("edit", path, "--yes")
    assert "nothing was asked" in again.err
    judged = venire("run", path, "--yes")
    assert judged.code == 0, judged.err
    assert "Edited completions: echo   verdicts: simulated" in judged.out
    assert len(copies(path)) == 12
    board = vn.rate(path)
    assert board.edits[0].battles == 15 * 2
    only = venire("rate", path, "--json").json()  # the campaign of edits is none that rates models
    assert sum(row["battles"] for row in only["models"]) == 2 * 15 * 2


def test_an_editor_is_sent_a_prompt_of_ones_own(venire: Venire, write_campaign: Callable[..., Path]) -> None:
    path = write_campaign(judges=EDITOR.format(more='prompts = { edit = "edit.txt" }\n') + PAIRS)
    prompt = path.with_name("edit.txt")
    prompt.write_text("Make it longer.\n\n$instruction\n\n$answer\n\nWrite the longer answer only.", encoding="utf-8")
    asked = editing(load_campaign(path)).judges[0]
    assert asked.options["prompt.edit"] == prompt.read_text(encoding="utf-8")
    prompt.write_text("Make it longer.\n\n$instruction", encoding="utf-8")
    refused = venire("edit", path, "--yes")
    assert refused.code == 2
    assert "answer" in refused.err


def test_copies_from_a_file_are_not_asked_for_again(venire: Venire, campaign: Callable[..., Path]) -> None:
    path = campaign(EDITOR.format(more="") + PAIRS, plan='policy = "all-pairs"', instructions=2)
    refused = venire("edit", path, "--yes")
    assert refused.code == 2
    assert "copies edited as 'echo'" in refused.err


@pytest.mark.slow
def test_the_budget_of_edits_ends_them_with_3_and_what_was_written_counts(
    venire: Venire, write_campaign: Callable[..., Path]
) -> None:
    path = write_campaign(judges=EDITOR.format(more="") + PAIRS, more="[budget.generation]\ncalls = 5")
    done = venire("edit", path, "--yes")
    assert done.code == 3
    assert "Raise [budget.generation]" in done.err
    assert "venire edit " in done.err
    assert len(copies(path)) == 5
    path.write_text(path.read_text().replace("calls = 5", "calls = 50"), encoding="utf-8")
    result = vn.edit(path, amend=True)
    assert result.ending is Ending.COMPLETE
    assert result.board is None
    assert len(copies(path)) == 12


def test_a_file_without_editors_is_told_what_to_add(venire: Venire, write_campaign: Callable[..., Path]) -> None:
    refused = venire("edit", write_campaign(), "--yes")
    assert refused.code == 2
    assert "add an [[editor]] table" in refused.err


@pytest.mark.parametrize(
    ("editor", "message"),
    [
        (EDITOR.format(more="").replace('name = "echo"\n', ""), "editor[1].name (editor"),
        (EDITOR.format(more="") * 2, "echo"),
        (EDITOR.format(more="").replace('"simulated/gpt-4-0613@1"', '"gpt-4"'), "editor[1].base_url (editor"),
    ],
)
def test_an_editor_that_cannot_be_asked_is_refused_by_name(
    venire: Venire, write_campaign: Callable[..., Path], editor: str, message: str
) -> None:
    refused = venire("edit", write_campaign(judges=editor + PAIRS), "--yes")
    assert refused.code == 2
    assert message in refused.err
    assert "editor" in refused.err
