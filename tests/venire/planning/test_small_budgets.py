"""A budget that covers nothing is refused in a sentence; one that was spent ends a run, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parameters import slow_after
from venire.configs.loading import load_campaign
from venire.forecasts.intervals import remaining_battles
from venire.session import Session

Venire = Callable[..., Any]
Write = Callable[..., Path]

PRICED = "price = { input = 30.0, output = 60.0 }"
IN_ROUNDS = "[plan]\npolicy = 'balanced'\nround = 20\nbattles = 40\n"


def in_rounds(path: Path) -> Path:
    """The same campaign, asked in rounds of battles."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('policy = "all-pairs"', IN_ROUNDS.removeprefix("[plan]\n")), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("verb", "battles", "limit", "told"),
    [
        ("run", True, "money = 0.05", ("$0.0500 does not cover one battle", "2 judges 8 calls and abou")),
        ("plan", True, "calls = 7", ("7 calls does not cover one battle", "takes 2 judges 8 calls")),
        ("plan", False, "tokens = 900", ("900 tokens does not cover one trial", " 2 calls and about ")),
        *slow_after(
            0,
            ("plan", False, "money = 0.05", ("$0.0500 does not cover one trial", " 2 calls and about $")),
            ("run", False, "calls = 1", ("1 call does not cover one trial", " 2 calls")),
        ),
    ],
)
def test_a_budget_that_covers_nothing_is_refused_and_leaves_no_store(
    verb: str, battles: bool, limit: str, told: tuple[str, ...], venire: Venire, write_campaign: Write
) -> None:
    path = write_campaign(judge=PRICED, more=f"[budget]\n{limit}")
    done = venire(verb, in_rounds(path) if battles else path, *(["--yes"] if verb == "run" else []))
    assert done.code == 2
    assert all(one in done.err for one in told), done.err
    assert "raise it" in done.err
    assert not list(path.parent.glob("*.duckdb*"))


def test_the_budget_that_is_told_is_enough_for_a_battle(venire: Venire, write_campaign: Write) -> None:
    refused = venire("plan", in_rounds(write_campaign(judge=PRICED, more="[budget]\nmoney = 0.05")))
    enough = refused.err.split("a budget of $")[1].split(":")[0]
    path = in_rounds(write_campaign(judge=PRICED, more=f"[budget]\nmoney = {enough}"))
    done = venire("run", path, "--yes")
    assert "round 1 (plan): 1 battle" in done.err


def test_battles_ahead_count_for_models_that_the_first_round_does_not_show(
    venire: Venire, write_campaign: Write
) -> None:
    """The danger: the budget cut the first round to one battle, and every battle ahead of other models was left out."""
    file = in_rounds(write_campaign(judge=PRICED, more="[budget]\ncalls = 8"))
    told = venire("plan", file, "--json").json()
    assert [one["battles"] for one in told["plan"]["rounds"]] == [1]
    assert len(told["widths"]["models"]) == len(told["models"]) == 6
    every = 15 * 2
    assert told["widths"]["ahead"]["battles"] == every - 1
    assert next(one["battles"] for one in told["widths"]["curve"] if one["plan"] == "this plan") == every


@pytest.mark.slow
def test_nothing_is_ahead_of_a_plan_that_its_budget_has_ended(venire: Venire, write_campaign: Write) -> None:
    """The danger: what was left covered battles as expected, but no call at its worst: nothing was to be asked."""
    file = write_campaign(judge=PRICED, more="[budget]\nmoney = 0.9")
    file.write_text(file.read_text(encoding="utf-8").replace('"all-pairs"', "'balanced'\nround = 20"), encoding="utf-8")
    assert "complete: " in venire("run", file, "--yes").err
    assert "no further battle" in venire("run", file, "--yes").err
    with Session(load_campaign(file)) as session:
        assert remaining_battles(session, None, 2.0).until is None


def test_what_costs_nothing_is_not_refused_for_money(venire: Venire, write_campaign: Write) -> None:
    path = in_rounds(write_campaign(more="[budget]\nmoney = 0.01"))
    assert venire("plan", path).code == 0


def test_a_judge_that_cannot_pay_is_no_reason_to_refuse_another(venire: Venire, write_campaign: Write) -> None:
    path = in_rounds(write_campaign(judge=PRICED, more="[budget.judge.gpt-4-0613]\nmoney = 0.01"))
    assert venire("plan", path).code == 0
    both = "".join(f"[budget.judge.{name}]\nmoney = 0.01\n" for name in ("gpt-4-0613", "claude-3-opus"))
    refused = venire("plan", in_rounds(write_campaign(judge=PRICED, more=both)))
    assert refused.code == 2
    assert "judge 'claude-3-opus' of $0.0100" in refused.err


@pytest.mark.parametrize("calls", [pytest.param(2, marks=pytest.mark.slow), 40])
def test_a_budget_that_was_spent_ends_a_run_with_3_however_small_it_became(
    calls: int, venire: Venire, write_campaign: Write
) -> None:
    """Also where its two calls went to two trials of two steps, so that no verdict came of them."""
    path = write_campaign(judge=PRICED, instructions=1, more=f"[budget]\ncalls = {calls}")
    assert venire("run", path, "--yes").code == 3
    write_campaign(judge=PRICED, instructions=1, more="[budget]\ncalls = 1")
    again = venire("run", path, "--yes", "--amend")
    assert again.code == 3
    assert "nothing was asked" in again.err
    assert venire("plan", path).code == 0


def test_a_plan_that_is_refused_leaves_no_store_and_takes_none_away(venire: Venire, write_campaign: Write) -> None:
    """The danger: the imported tables stayed behind in a store of a campaign that there is not."""
    path = write_campaign(instructions=99)
    refused = venire("plan", path)
    assert refused.code == 2
    assert "instructions = 99" in refused.err
    assert not list(path.parent.glob("*.duckdb*"))
    assert venire("plan", write_campaign()).code == 0
    assert venire("plan", write_campaign(instructions=99)).code == 2
    assert path.with_suffix(".duckdb").exists()


def enlarge(table: Path, column: str) -> dict[str, str]:
    """Make the first text of a table four million characters long; its row."""
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    rows[0][column] = "word" * 1_000_000
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return dict(rows[0])


@pytest.mark.parametrize(
    ("battles", "limit"),
    slow_after(1, (False, "tokens = 2000000"), (True, "money = 20"), (True, "tokens = 2000000"), (False, "money = 20")),
)
def test_one_text_that_no_budget_covers_is_named_and_the_others_are_planned(
    venire: Venire, write_campaign: Write, *, battles: bool, limit: str
) -> None:
    """What is kept free for the dearest call of a plan was more than there is, and cut 200 battles to one."""
    path = write_campaign(judge=PRICED, instructions=8, more=f"[budget]\n{limit}")
    path = in_rounds(path) if battles else path
    before = venire("plan", path, "--json").json()
    row = enlarge(path.parent / "completions.jsonl", "completion")
    path.with_suffix(".duckdb").unlink()
    plan = venire("plan", path, "--json").json()
    (sentence,) = [one for one in plan["warnings"] if one.startswith("left out: ")]
    assert f"the answer of {row['model']!r} to instruction {row['instruction_id']!r}" in sentence
    assert "about 1,000,000 tokens" in sentence
    assert plan["trials"] >= (before["trials"] if battles else before["trials"] * 7 // 8)


def test_a_run_asks_what_is_planned_beside_such_a_text_and_ends_complete(venire: Venire, write_campaign: Write) -> None:
    path = in_rounds(write_campaign(instructions=16, more="[budget]\ntokens = 900000"))
    row = enlarge(path.parent / "completions.jsonl", "completion")
    done = venire("run", path, "--yes")
    assert done.code == 0, done.err
    assert f"the answer of {row['model']!r} to instruction {row['instruction_id']!r}" in " ".join(done.err.split())


def test_an_instruction_that_no_budget_covers_is_named_and_not_asked_of_contestants(
    venire: Venire, folder: Path
) -> None:
    path = folder / "peers.toml"
    path.write_text(
        'name = "peers"\n[data]\ninstructions = "instructions.jsonl"\n[plan]\npolicy = "all-pairs"\n'
        "[budget]\ntokens = 900000\n[budget.generation]\ntokens = 900000\n"
        '[[contestant]]\nname = "claude-v1"\nmodel = "simulated/claude-v1@1"\nelo = 1100\n'
        '[[judge]]\nname = "gpt-4-0613"\nmodel = "simulated/gpt-4-0613@1"\n',
        encoding="utf-8",
    )
    row = enlarge(folder / "instructions.jsonl", "instruction")
    done = venire("generate", path, "--yes")
    assert done.code == 0, done.err
    assert f"left out: instruction {row['instruction_id']!r} has about 1,000,0" in " ".join(done.err.split())


def test_a_budget_that_cuts_a_plan_is_named_with_what_all_battles_take(venire: Venire, write_campaign: Write) -> None:
    """The danger: a template of 200 battles was cut by its own number of calls without a word."""
    file = in_rounds(write_campaign(judge=PRICED, more="[budget]\ncalls = 80\nmoney = 0.9"))
    done = venire("plan", file)
    assert "chosen at once; planned: " in done.out
    cut = next(line for line in done.out.splitlines() if "of the 30 battles of the plan" in line)
    assert cut.startswith("the budget of ")
    assert "raise it" in cut
    most = [line for line in done.out.splitlines() if line.startswith("at most: what the budget leaves")]
    assert len(most) == 1
    assert cut in " ".join(venire("plan", file, "--json").json()["warnings"])


def test_a_plan_that_its_budget_covers_says_nothing_of_it(venire: Venire, write_campaign: Write) -> None:
    shown = venire("plan", in_rounds(write_campaign(judge=PRICED, more="[budget]\ncalls = 5000"))).out
    assert "battles of the plan" not in shown
    assert "at most: what" not in shown
