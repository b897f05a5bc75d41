"""`venire plan` says what its money buys: widths that come true, and what other widths would cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from venire.configs.loading import load_campaign
from venire.forecasts.intervals import PlanIntervals, plan_intervals
from venire.forecasts.plan import reasons
from venire.orchestrator.costs.forecast import forecast
from venire.orchestrator.recording.ending import Ending
from venire.ratings.design.priors import SLOPE
from venire.session import Session
from venire.storage.plans.trial_states import planned_battles

Settle = Callable[..., Ending]
Write = Callable[..., Path]
Venire = Callable[..., Any]

PRICED = "price = { input = 2.5, output = 10 }"


def widths(file: Path) -> PlanIntervals:
    with Session(load_campaign(file), amend=True) as session:
        found = plan_intervals(session, session.forecast())
    assert isinstance(found, PlanIntervals)
    return found


def test_a_plan_names_its_battles_once_and_how_often_they_are_judged(write_campaign: Write) -> None:
    file = write_campaign(instructions=4)
    file.write_text(file.read_text().replace("instructions = 4", "instructions = 4\nrepeats = 2"))
    with Session(load_campaign(file)) as session:
        found = planned_battles(session.store, session.planned.id)
    assert found.models == tuple(sorted(found.models))
    assert (found.judges, found.repeats) == (2, 2)
    assert set(found.judgments.tolist()) == {4}
    pairs = {(a, b) for a, b, _ in found.battles.tolist()}
    assert pairs == set(combinations(range(6), 2))
    assert len(found.battles) == 15 * 4


def test_before_any_verdict_the_reference_and_usual_judges_are_believed(write_campaign: Write, venire: Venire) -> None:
    file = write_campaign(judge=PRICED, instructions=4)
    found = venire("plan", file, "--json").json()["widths"]
    assert found["believed"] == {"source": "reference", "slope": SLOPE, "judgments": 0}
    assert found["design_effect"]["judgments"] == 0
    assert [one["times"] for one in found["curve"]] == [0.5, 1.0, 2.0, 4.0]
    for less, more in pairwise(found["curve"]):
        assert less["nano"] < more["nano"]
        assert less["half_width"] > more["half_width"]
    assert [one["half_width"] for one in found["needed"]] == [50.0, 25.0, 15.0]
    assert found["needed"][0]["nano"] < found["needed"][1]["nano"]
    assert found["grows_by"] == "instructions"
    assert len(found["models"]) == 6
    shown = venire("plan", file).out
    assert "in four campaigns of five" in shown
    assert found["estimand"] == "other instructions; these judges only"
    assert found["estimand"] in " ".join(shown.split())
    assert "--pilot 40 measures" in shown
    assert 0.0 < found["low"] < found["median"] < found["high"]
    assert all(one["low"] < one["half_width"] < one["high"] for one in found["curve"])
    assert f"reference ratings x {SLOPE}, as usual" in " ".join(shown.split())


def test_a_budget_that_is_too_small_has_a_line_of_its_own(write_campaign: Write, venire: Venire) -> None:
    whole = widths(write_campaign(judge=PRICED, instructions=4))
    calls = 2 * whole.trials // 4
    file = write_campaign(judge=PRICED, instructions=4, more=f"[budget]\ncalls = {calls}")
    found = widths(file)
    assert found.covered == pytest.approx(0.25)
    assert "as the budget covers" in venire("plan", file, "--amend").out
    wide, narrow = found.widths.half_width(found.covered), found.widths.half_width()
    assert np.all(wide > narrow)


def test_verdicts_so_far_are_the_pilot_and_what_was_paid_counts(
    write_campaign: Write, venire: Venire, settle: Settle
) -> None:
    file = write_campaign(judge=PRICED, instructions=4, more="[budget]\ncalls = 120")
    before = widths(file)
    assert (before.done, before.paid) == (0, 0)
    assert settle(file) is Ending.BUDGET
    after = widths(file)
    assert after.effect.judgments > 10
    assert after.done >= 50
    assert after.paid > 0
    assert after.nano(0.0) == after.paid
    assert after.nano(1.0) == pytest.approx(after.paid + after.each * (after.trials - after.done), abs=1)
    assert f"measured on {after.effect.judgments:,} judgments" in venire("plan", file).out


def test_half_of_two_instructions_has_no_width(write_campaign: Write, venire: Venire) -> None:
    """The danger: one instruction alone bounds nothing, and infinity is no JSON."""
    found = venire("plan", write_campaign(instructions=2), "--json").json()["widths"]
    assert [one["half_width"] is None for one in found["curve"]] == [True, False, False, False]


def test_without_pairs_there_are_no_widths(write_campaign: Write, venire: Venire) -> None:
    judge = '[[judge]]\nname = "g"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "direct"\n'
    done = venire("plan", write_campaign(judges=judge), "--json").json()
    assert done["widths"] is None


REAL = """[[judge]]
model = "some-model"
base_url = "http://127.0.0.1:9/v1"
free = true
"""


def test_models_without_a_reference_have_widths_too(write_campaign: Write) -> None:
    file = write_campaign(instructions=4, judges=REAL)
    campaign = load_campaign(file)
    campaign = replace(campaign, data=replace(campaign.data, elo=None))
    with Session(campaign) as session:
        found = plan_intervals(session, session.forecast())
    assert isinstance(found, PlanIntervals)
    assert found.belief.source == "nothing"
    assert np.isfinite(found.widths.half_width()).all()


ROUNDS = """[plan]
policy = "information"
round = 10
battles = 40
"""


OPEN = """[plan]
policy = "information"
round = 10
instructions = 8
[plan.stop]
half_width = 5.0
"""


def in_rounds(file: Path, plan: str = ROUNDS) -> Path:
    """The same campaign, with battles chosen in rounds on eight instructions."""
    file.write_text(file.read_text().replace('[plan]\npolicy = "all-pairs"\n', plan))
    return file


@pytest.mark.slow
def test_rounds_that_are_not_planned_yet_count_as_they_would_be_chosen_now(
    write_campaign: Write, venire: Venire, settle: Settle
) -> None:
    file = in_rounds(write_campaign(judge=PRICED, instructions=8))
    found = widths(file)
    assert found.battles == 40
    assert float(found.remaining.weight.sum()) == 30.0
    assert found.counts.sum() == 40.0
    assert len({tuple(one) for one in found.remaining.battles.tolist()}) == 30
    assert found.trials == 40 * 4
    told = venire("plan", file)
    assert "30 of 40 battles" in told.out
    assert "still to be chosen" in told.out
    assert "every battle there is" in told.out  # 15 pairs on 8 instructions are no four times 40
    assert settle(file) is Ending.COMPLETE
    after = widths(file)
    assert after.battles == 40
    assert after.remaining.until is None
    assert np.median(after.widths.half_width()) == pytest.approx(np.median(found.widths.half_width()), rel=0.4)


def test_without_a_number_the_budget_says_how_many_battles_follow(write_campaign: Write, venire: Venire) -> None:
    file = write_campaign(judge=PRICED, instructions=4)
    in_rounds(file, OPEN).write_text(file.read_text().replace("instructions = 4\n", ""))
    found = widths(file)
    assert (found.battles, found.remaining.open) == (10, True)
    assert "how many battles follow" in venire("plan", file).out
    file.write_text(file.read_text() + "[budget]\ncalls = 240\n")
    bounded = widths(file)
    assert bounded.battles == 240 // 8  # two judges, two orders, two calls
    assert bounded.remaining.until == "the budget"


@pytest.mark.slow
def test_every_choice_is_explained_beside_the_best_that_could_be_done(
    write_campaign: Write, venire: Venire, settle: Settle
) -> None:
    file = in_rounds(write_campaign(judge=PRICED, instructions=8))
    found = venire("plan", file, "--explain", "--json").json()["explain"]
    assert [one["round"] for one in found["chosen"]] == [1] * 10
    first = found["chosen"][0]
    assert first["why"] == "balanced"
    assert first["instruction"] is not None
    assert first["nano"] > 0
    assert first["se_a"] is None
    limit = found["limit"]
    assert limit["purpose"] == "mean"
    assert 0.3 < limit["efficiency"] <= 1.0
    assert limit["least"] == pytest.approx(limit["error"] * limit["efficiency"] ** 0.5)
    assert settle(file) is Ending.COMPLETE
    later = venire("plan", file, "--explain", "--json").json()["explain"]["chosen"]
    assert len(later) == 20
    assert later[:10] == found["chosen"]  # what was chosen stays chosen, and why
    assert {one["why"] for one in later[10:]} >= {"information"}
    with Session(load_campaign(file)) as session:
        last = reasons(session, most=40)[30:]
    assert {one.round for one in last} == {4}
    assert any((one.se_a or 0.0) > 0.0 for one in last)  # of the look after the third
    shown = venire("plan", file, "--explain").out
    assert "the first 20 battles chosen" in shown
    assert "best design of pairs" in " ".join(shown.split())


def test_a_boundary_has_the_expected_error_of_what_lies_across_it_beside_the_limit(
    write_campaign: Write, venire: Venire
) -> None:
    file = in_rounds(write_campaign(instructions=8))
    file.write_text(file.read_text().replace('"information"', '"information"\npurpose = "boundary"\ntop = 2'))
    found = widths(file)
    limit = venire("plan", file, "--explain", "--json").json()["explain"]["limit"]
    covariance = found.widths.bread @ (found.widths.alone + found.widths.shared) @ found.widths.bread
    ranked = np.argsort(-found.belief.logits)
    variances = [covariance[a, a] + covariance[b, b] - 2 * covariance[a, b] for a in ranked[:2] for b in ranked[2:4]]
    assert limit["error"] == pytest.approx(400 / np.log(10) * np.sqrt(np.mean(variances)))
    assert limit["least"] == pytest.approx(limit["error"] * limit["efficiency"] ** 0.5)
    shown = " ".join(venire("plan", file, "--explain").out.split())
    assert "best 2 and the next" in shown
    assert f"(root mean square): {limit['error']:.1f} Elo" in shown


def test_what_is_told_of_the_mean_is_the_error_of_the_widths(write_campaign: Write, venire: Venire) -> None:
    file = in_rounds(write_campaign(instructions=8))
    limit = venire("plan", file, "--explain", "--json").json()["explain"]["limit"]
    assert limit["error"] == pytest.approx(400 / np.log(10) * np.sqrt(widths(file).widths.variance().mean()))


def test_a_placing_says_that_no_error_stands_beside_its_limit(write_campaign: Write, venire: Venire) -> None:
    file = in_rounds(write_campaign(instructions=8))
    file.write_text(file.read_text().replace('"information"', '"information"\npurpose = "place"\nplace = "solid"'))
    assert "no expected error beside it" in venire("plan", file, "--explain").out
    file.write_text(
        file.read_text().replace('place = "solid"', 'place = "terse"')
    )  # planned anew: round 2 of the store
    shown = venire("plan", file, "--explain")
    assert {line.split()[3] for line in shown.out.splitlines() if " balanced " in line and " - " in line} == {"1"}


def test_crossed_matchups_are_explained_with_their_price_on_all_instructions(
    write_campaign: Write, venire: Venire
) -> None:
    few, many = (
        venire(
            "plan", write_campaign(name=f"{n}.toml", judge=PRICED, instructions=n), "--amend", "--explain", "--json"
        ).json()["explain"]["chosen"]
        for n in (2, 4)
    )
    assert len(few) == len(many) == 15
    assert few[0]["instruction"] is None
    assert many[0]["nano"] > 1.5 * few[0]["nano"]
    assert few[0]["gap"] is not None


def write_tables(folder: Path, instructions: int) -> None:
    """Tables of eight models from 850 to 1150 Elo, whose completions are of unlike lengths."""
    rng = np.random.default_rng(1)
    models = [f"m{n}" for n in range(8)]
    names = [f"q{n:03}" for n in range(instructions)]
    asked = [{"instruction_id": name, "instruction": f"Say {name}."} for name in names]
    lengths = rng.lognormal(5.0, 0.35, (8, instructions)).astype(int)
    told = [
        {"model": model, "instruction_id": name, "completion": f"{model} {name} " + "x" * int(lengths[n, i])}
        for n, model in enumerate(models)
        for i, name in enumerate(names)
    ]
    for table, rows in (("instructions", asked), ("completions", told)):
        (folder / f"{table}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elo = "".join(f"{model},{850 + 300 * n / 7:.0f}\n" for n, model in enumerate(models))
    (folder / "elo.csv").write_text(f"model,elo\n{elo}", encoding="utf-8")


@pytest.mark.slow
def test_widths_promised_after_a_sixth_are_those_of_the_board(
    write_campaign: Write, venire: Venire, settle: Settle
) -> None:
    judge = '[[judge]]\nname = "j"\nmodel = "simulated/gpt-4-0613@1"\n'
    file = write_campaign(judges=judge, instructions=40, more="[budget]\ncalls = 800")
    write_tables(file.parent, 40)
    assert settle(file) is Ending.BUDGET
    promised = widths(file)
    file.write_text(file.read_text().replace("[budget]\ncalls = 800", ""))
    assert settle(file, amend=True) is Ending.COMPLETE
    board = venire("rate", file.parent / "small.duckdb", "--json").json()
    seen = np.median([0.5 * (one["hi"] - one["lo"]) for one in board["models"]])
    assert float(np.median(promised.widths.half_width())) / seen == pytest.approx(1.0, abs=0.2)


def test_the_reason_for_a_battle_has_the_price_at_which_it_is_asked(write_campaign: Write, venire: Venire) -> None:
    """A battle that goes by batches is half the price, as in the forecast above it."""
    price = "price = { input = 30.0, output = 60.0 }"
    files = (
        write_campaign(name=f"{n}.toml", judge=one) for n, one in enumerate((price, f"{price}\ntransport = 'batch'"))
    )
    live, batched = (venire("plan", in_rounds(file), "--explain", "--json").json()["explain"] for file in files)
    assert batched["chosen"][0]["nano"] == pytest.approx(live["chosen"][0]["nano"] / 2, rel=1e-3)


@pytest.mark.parametrize("form", [["--json"], ["--explain"]])
def test_a_plan_is_forecast_once(
    form: list[str], write_campaign: Write, venire: Venire, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Mock(wraps=forecast)
    monkeypatch.setattr("venire.session.forecast", asked)
    assert venire("plan", write_campaign(), *form).code == 0
    assert asked.call_count == 1
