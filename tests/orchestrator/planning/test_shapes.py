"""Campaigns of every protocol, and of several at once: what is planned, asked, kept and told. On the virtual clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.parameters import slow_after
from tests.stores import open_with
from venire.arena.budgets import BudgetSettings
from venire.arena.campaigns import (
    CampaignSettings,
    DataSettings,
    JudgeSettings,
    LaneSettings,
    PhaseSettings,
    PlanSettings,
    RouteSettings,
    TokenPrice,
)
from venire.arena.clock import VirtualClock
from venire.arena.errors import InputError
from venire.arena.records import GENERATE, RECORDED, Ballot, Completion, Instruction, Reply, Request
from venire.arena.shapes import Shape
from venire.judges import PROTOCOLS
from venire.judges.entry import FOREIGN
from venire.judges.protocols.criteria import CRITERIA
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.planning.plan import plan_campaign
from venire.orchestrator.planning.respondents import generation, refuse_written
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.orchestrator.run.campaign import run_campaign
from venire.orchestrator.run.reparse import reparse, take_answers
from venire.orchestrator.run.run_setup import RunSetup
from venire.storage.care.checking import check
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.read.judge_quality import judge_readability
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing

MODELS = ("ash", "birch", "cedar")
NAMES = ("q0", "q1", "q2", "q3")
PRICE = TokenPrice(1_000_000_000, 2_000_000_000)
JUDGED = [name for name, entry in PROTOCOLS.items() if not entry.shape.writes and name != RECORDED]
SAID = {name: PROTOCOLS[name].example.replies for name in JUDGED}
"""What a judge says to each step of a trial."""


class Scripted:
    """Answers each step with what is written for it; a contestant gets its own words for the instruction."""

    on_limits: Any = None

    def __init__(self, *said: str) -> None:
        self.said = said
        self.asked: list[Request] = []

    def encode(self, model: str, request: Request) -> bytes:
        self.asked.append(request)
        return orjson.dumps([model, list(request.messages), request.seed])

    def limits_key(self, model: str) -> tuple[str, ...]:
        return ("fake", model)

    def is_structured(self, model: str) -> bool:
        return True

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        model, messages, seed = orjson.loads(body)
        step = sum(message["role"] == "assistant" for message in messages)
        text = self.said[step] if self.said else f"{model} says {seed} to {messages[-1]['content']}"
        return Reply(text, input_tokens=100, output_tokens=50, raw="{}")

    async def check(self) -> str | None:
        return None

    async def close(self) -> None:
        return None


def one(name: str, protocol: str, **options: str) -> JudgeSettings:
    lane = LaneSettings((RouteSettings("openai", "http://127.0.0.1:9/v1", None, name),), concurrency=3)
    return JudgeSettings(name, name, protocol, {"max_tokens": "300", **options}, lane, PRICE)


def campaign(*judges: JudgeSettings, contestants: tuple[JudgeSettings, ...] = (), **plan: Any) -> CampaignSettings:
    settings = PlanSettings((PhaseSettings("all-pairs", matchups=None),), **plan)
    path = Path("c.toml")
    return CampaignSettings(
        *("c", 1, path, Path("c.duckdb"), DataSettings(), settings, judges, BudgetSettings(), "", repr((judges, plan))),
        contestants=contestants,
        generation_settings=repr(contestants),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    questions = [Instruction(name, (f"Question {name}?",), f"Answer {name}.") for name in NAMES]
    answers = [Completion(m, name, f"{m} says {name}") for m in MODELS for name in NAMES]
    with open_with(tmp_path / "c.duckdb", questions, answers, clock=VirtualClock()) as opened:
        yield opened


def go(
    store: Store, asked: CampaignSettings, providers: Mapping[str, Scripted]
) -> tuple[PlannedCampaign, CampaignSummary]:
    planned = plan_campaign(store, asked)
    clock = store.clock
    assert isinstance(clock, VirtualClock)

    async def run() -> CampaignSummary:
        return await run_campaign(
            store,
            asked,
            planned,
            {judge.lane.routes[0].identity: providers[judge.name] for judge in asked.judges},
            {judge.name: PRICE for judge in asked.judges},
            RunSetup(clock, inline=True),
        )

    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        return planned, runner.run(run())


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with store.cursor() as cursor:
        return cursor.execute(sql).fetchall()


COMPLETIONS = "completion c join model m on m.id = c.model"
TRIALS = {name: len(NAMES) * PROTOCOLS[name].shape.trials(len(MODELS), matchups=3) for name in JUDGED}


@pytest.mark.parametrize("protocol", slow_after(1, *JUDGED))
def test_a_campaign_of_any_protocol_runs_to_its_end_is_sound_and_reads_the_same_again(
    store: Store, protocol: str
) -> None:
    judge = one("judge", protocol)
    planned, summary = go(store, campaign(judge), {"judge": Scripted(*SAID[protocol])})
    trials = TRIALS[protocol]
    assert (planned.trials, summary.ending) == (trials, Ending.COMPLETE)
    assert summary.statistics.calls == trials * len(SAID[protocol])
    (row,) = judge_readability(store, planned.id)
    assert (row.protocol, row.settled, row.read, row.readable) == (protocol, trials, trials, 1.0)
    assert frames.progress(store, planned.id).missing == 0
    again = reparse(store, [planned.id], write=False)
    assert (again.comparison.verdicts, again.comparison.same) == (trials, trials)
    store.close()
    assert check(store.path, full=True).sound


def test_a_panel_of_judges_asks_each_in_its_own_way_and_battles_are_those_of_pairs(store: Store) -> None:
    panel = [one(name, name) for name in SAID]
    planned, summary = go(store, campaign(*panel, repeats=2), {name: Scripted(*said) for name, said in SAID.items()})
    assert (planned.trials, summary.ending) == (2 * sum(TRIALS.values()), Ending.COMPLETE)
    assert summary.statistics.calls == 2 * sum(TRIALS[name] * len(said) for name, said in SAID.items())
    read = {row.protocol: (row.settled, row.read, row.readable) for row in judge_readability(store, planned.id)}
    assert read == {name: (2 * trials, 2 * trials, 1.0) for name, trials in TRIALS.items()}
    again = reparse(store, [planned.id], write=False)
    assert again.comparison.verdicts == again.comparison.same == planned.trials
    battles = frames.battles(store, planned.id)
    assert set(battles.judges) == {name for name in JUDGED if PROTOCOLS[name].shape.pairwise}
    assert len(battles.label) == 2 * len(battles.judges) * TRIALS["binary"]
    told = dict(rows(store, "select judge, count(*) from grade group by judge"))
    assert told == {name: 2 * TRIALS[name] for name in JUDGED if PROTOCOLS[name].shape.grades}
    assert rows(store, "select distinct grade from grade where judge = 'direct-reference'") == [("yes",)]
    assert dict(rows(store, "select judge, count(*) from ballot group by judge")) == {"listwise": 2 * 4 * 3}
    store.close()
    assert check(store.path, full=True).sound


def test_scores_and_criteria_are_stored_in_model_terms(store: Store) -> None:
    even = dict.fromkeys(CRITERIA, 7)
    said = json.dumps({"first": {**even, "clarity": 9}, "second": even, "preference": "first"})
    go(store, campaign(one("judge", "criteria")), {"judge": Scripted(said)})
    found = rows(store, "select distinct swapped, winner, score_difference, criteria from battle order by swapped")
    (shown_a, winner_a, score_a, criteria_a), (shown_b, winner_b, score_b, criteria_b) = found
    assert (shown_a, winner_a, shown_b, winner_b) == (False, "model_a", True, "model_b")
    assert score_a == -score_b == pytest.approx(2 / 6)
    assert (criteria_a[8:10], criteria_b[8:10]) == ([9.0, 7.0], [7.0, 9.0])
    (row,) = judge_readability(store, 1)
    assert (row.both_read, row.flips, row.flip_rate) == (12, 12, 1.0)


def test_a_ballot_has_the_places_of_what_was_shown_in_an_order_drawn_for_each_instruction(store: Store) -> None:
    go(store, campaign(one("judge", "listwise")), {"judge": Scripted("B > C > A")})
    found = rows(
        store,
        "select instruction_id, list(model order by shown_at), list(rank order by shown_at) from ballot group by 1",
    )
    assert all(ranks == [3, 1, 2] for _, _, ranks in found)
    orders = {tuple(models) for _, models, _ in found}
    assert len(orders) > 1
    assert all(sorted(order) == list(MODELS) for order in orders)


def test_a_best_k_ballot_ranks_k_and_no_more(store: Store) -> None:
    go(store, campaign(one("judge", "listwise", best="1")), {"judge": Scripted("B")})
    assert rows(store, "select rank, count(*) from ballot group by rank order by rank nulls last") == [
        (1, 4),
        (None, 8),
    ]


@pytest.fixture
def threes() -> Iterator[str]:
    """A protocol that ranks three answers at a time."""
    PROTOCOLS.register("threes", replace(PROTOCOLS["listwise"], shape=Shape(3, Ballot), number=FOREIGN))
    yield "threes"
    PROTOCOLS.unregister("threes")


def test_answers_are_dealt_out_to_a_judge_that_is_shown_three_of_four_at_a_time(store: Store, threes: str) -> None:
    importing.add(store, [Completion("dogwood", name, f"dogwood says {name}") for name in NAMES])
    planned, _ = go(store, campaign(one("judge", threes)), {"judge": Scripted("B > C > A")})
    assert planned.trials == 4 * 2
    found = rows(store, "select instruction_id, list(distinct model), count(*) from ballot group by 1")
    assert [(len(models), count) for _, models, count in found] == [(4, 6)] * 4
    assert rows(store, "select count(distinct models) > 4 from (select list(model) models from ballot group by trial)")


def test_more_answers_at_once_than_there_are_models_are_refused(store: Store, threes: str) -> None:
    asked = campaign(one("judge", threes))
    with pytest.raises(InputError, match=r"'judge': protocol 'threes' shows 3 completions .* there are 2 models"):
        plan_campaign(store, replace(asked, data=DataSettings(models=MODELS[:2])))


def test_the_same_campaign_plans_the_same_lists_and_another_seed_others(store: Store, tmp_path: Path) -> None:
    asked = campaign(one("judge", "listwise"))
    first = plan_campaign(store, asked)
    again = plan_campaign(store, replace(asked, name="again"))
    assert again.trials == first.trials
    assert rows(store, "select count(*) from trial") == [(4,)]
    plan_campaign(store, replace(asked, name="other", seed=2))
    assert rows(store, "select count(*) > 4 from trial") == [(True,)]


def test_reference_answers_that_are_missing_are_told_of_before_anything_is_planned(store: Store) -> None:
    importing.add(store, [Instruction("q9", ("Question nine?",))])
    importing.add(store, [Completion(model, "q9", f"{model} says nine") for model in MODELS])
    with pytest.raises(InputError, match=r"'judge'.*1 of 5 instructions have none \('q9' is the first\)"):
        plan_campaign(store, campaign(one("judge", "direct-reference")))
    assert rows(store, "select count(*) from trial") == [(0,)]


@pytest.mark.parametrize(
    ("judge", "complaint"),
    [
        (one("judge", "binary", best="2"), "best: this protocol has no such setting"),
        (one("judge", "listwise", best="0"), "best: '0' is not a whole number"),
        (one("judge", "generate"), "no protocol 'generate'"),
        (one("judge", "two-stage", **{"prompt.reasons": "Which?"}), r"prompt.reasons: \$first is missing"),
    ],
)
def test_settings_that_a_protocol_does_not_take_are_refused_by_name(
    store: Store, judge: JudgeSettings, complaint: str
) -> None:
    with pytest.raises(InputError, match=rf"c\.toml: judge 'judge': {complaint}"):
        plan_campaign(store, campaign(judge))


def test_own_prompts_a_system_text_and_examples_are_sent_and_make_another_judge(store: Store) -> None:
    own = {"prompt.question": "Say C.\n$instruction\n$answer", "system": "Be strict."}
    own["examples"] = orjson.dumps([{"user": "2 + 2?", "assistant": "A"}]).decode()
    provider = Scripted("", "A")  # after the example, the second to answer
    plain, dressed = one("plain", "direct"), replace(one("plain", "direct", **own), name="dressed")
    dressed = replace(dressed, lane=replace(dressed.lane, routes=(replace(dressed.lane.routes[0], model="d"),)))
    planned, _ = go(store, campaign(plain, dressed), {"plain": Scripted("A"), "dressed": provider})
    assert planned.trials == 2 * TRIALS["direct"]
    roles = [message["role"] for message in provider.asked[0].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert provider.asked[0].messages[0]["content"] == "Be strict."
    assert provider.asked[0].messages[-1]["content"].startswith("Say C.")
    assert rows(store, "select count(*) from prompt where text like 'Say C.%'") == [(1,)]


def contestants(**samples: int) -> tuple[JudgeSettings, ...]:
    return tuple(replace(one(name, GENERATE), repeats=count) for name, count in samples.items())


def generated(store: Store, asked: CampaignSettings) -> tuple[PlannedCampaign, CampaignSummary]:
    made = generation(asked)
    refuse_written(store, made, plan_campaign(store, made))
    planned, summary = go(store, made, {judge.name: Scripted() for judge in made.judges})
    take_answers(store, made, planned)
    return planned, summary


def test_contestants_answer_every_instruction_and_are_judged_like_any_model(store: Store) -> None:
    asked = campaign(one("judge", "two-stage"), contestants=contestants(dogwood=1, elm=1))
    planned, summary = generated(store, asked)
    assert (planned.trials, summary.ending) == (8, Ending.COMPLETE)
    texts = dict(
        rows(store, "select m.name, c.text from completion c join model m on m.id = c.model where c.instruction = 1")
    )
    assert texts["dogwood"] == "dogwood says 1 to Question q0?"
    judging, _ = go(store, asked, {"judge": Scripted("Reasons.", "1")})
    assert judging.design.models == (*MODELS, "dogwood", "elm")
    assert rows(store, "select role, count(*) from respondent group by role order by role") == [
        ("contestant", 2),
        ("judge", 1),
    ]
    store.close()
    assert check(store.path, full=True).sound


def test_samples_are_completions_of_their_own_and_nothing_is_asked_or_made_twice(store: Store) -> None:
    asked = campaign(contestants=contestants(dogwood=3, elm=1))
    planned, summary = generated(store, asked)
    assert summary.statistics.calls == planned.trials == 4 * (3 + 1)
    wanted = [("dogwood", 1, 4), ("dogwood", 2, 4), ("dogwood", 3, 4), ("elm", 1, 4)]
    counted = f"select m.name, c.sample, count(*) from {COMPLETIONS} where m.name > 'd' group by all order by all"
    assert rows(store, counted) == wanted
    _, again = generated(store, asked)
    assert again.statistics.calls == 0
    assert rows(store, counted) == wanted
    more = replace(asked, contestants=contestants(dogwood=4, elm=1), generation_settings="more")
    _, summary = generated(store, more)
    assert summary.statistics.calls == 4


def test_a_name_that_has_other_completions_from_a_file_is_not_mixed_with_them(store: Store) -> None:
    made = generation(campaign(contestants=contestants(ash=1, elm=1)))
    with pytest.raises(InputError, match=r"'ash' has 4 answers in the store.*such as to instruction 'q0'"):
        refuse_written(store, made, plan_campaign(store, made))


def test_a_generation_has_a_budget_of_its_own(store: Store) -> None:
    asked = replace(campaign(contestants=contestants(dogwood=1)), generation=BudgetSettings(calls=3))
    _, summary = generated(store, asked)
    assert (summary.ending, summary.statistics.calls) == (Ending.BUDGET, 3)
    assert rows(store, f"select count(*) from {COMPLETIONS} where m.name = 'dogwood'") == [(3,)]


def test_a_file_without_contestants_has_nothing_to_generate() -> None:
    with pytest.raises(InputError, match="names no contestant"):
        generation(campaign(one("judge", "two-stage")))


def test_instructions_without_any_are_told_of(tmp_path: Path) -> None:
    with open_store(tmp_path / "empty.duckdb", clock=VirtualClock()) as empty:
        with pytest.raises(InputError, match="no instructions to answer"):
            plan_campaign(empty, generation(campaign(contestants=contestants(dogwood=1))))
        assert plans.find_campaign(empty, "c (completions)") is None
