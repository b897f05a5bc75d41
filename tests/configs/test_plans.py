"""What a campaign file says of its plan: policies, phases, orders, and when enough is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from venire.arena.campaigns import CampaignSettings, PhaseSettings, PlanSettings, StopSettings
from venire.configs.loading import load_campaign

JUDGE = '[[judge]]\nmodel = "simulated/gpt-4-0613@1"\n'
Load = Callable[[str], CampaignSettings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def read(text: str) -> CampaignSettings:
        path = tmp_path / "c.toml"
        path.write_text(JUDGE + text, encoding="utf-8")
        return load_campaign(path)

    return read


def test_a_plan_without_phases_is_one(load: Load) -> None:
    plan = load(
        '[plan]\npolicy = "information"\npurpose = "boundary"\ntop = 5\nround = 50\nbattles = 900\n'
        'orders = "random"\ninstructions = 40\n'
    ).plan
    phase = PhaseSettings("information", matchups=None, battles=900, round=50, purpose="boundary", top=5)
    assert plan == PlanSettings((phase,), instructions=40, orders="random")


def test_phases_come_in_their_order_with_their_own_keys(load: Load) -> None:
    plan = load(
        '[plan]\ninstructions = 40\n[[plan.phase]]\nname = "screen"\npolicy = "balanced"\nbattles = 300\n'
        '[[plan.phase]]\nname = "refine"\npolicy = "banded-gap"\nband = [50, 150.5]\nmatchups = 12\n'
    ).plan
    screen = PhaseSettings("balanced", "screen", matchups=None, battles=300)
    assert plan.phases == (screen, PhaseSettings("banded-gap", "refine", matchups=12, band=(50.0, 150.5)))


def test_rules_for_stopping_are_taken_as_written(load: Load) -> None:
    text = '[plan]\npolicy = "balanced"\n[plan.stop]\nbattles = 900\nhalf_width = 25\ntop = 3\nranks = true\n'
    plan = load(text + "indifference = 10\nlevel = 0.9\n").plan
    assert plan.stop == StopSettings(900, 25.0, 3, ranks=True, indifference=10.0, level=0.9)
    assert load("").plan.stop == StopSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('policy = "balanced"\nbattles = 9\nmatchups = 3\n', 'plan.matchups: policy "balanced" chooses battles'),
        ('policy = "widest-gap"\nbattles = 9\n', 'plan.battles: policy "widest-gap" puts whole matchups'),
        ('policy = "random"\nround = 9\n', 'plan.round: policy "random" puts whole matchups'),
        ('policy = "balanced"\n', "plan.battles: nothing would end this"),
        ('policy = "balanced"\nbattles = 9\npurpose = "mean"\n', "plan.purpose: only policy"),
        ('policy = "information"\nbattles = 9\ntop = 2\n', 'plan.top: top belongs to purpose "boundary"'),
        ('policy = "information"\nbattles = 9\npurpose = "place"\n', "plan.place: missing"),
        ('policy = "information"\nbattles = 9\nplace = "m"\n', 'plan.place: place belongs to purpose "place"'),
        ('policy = "random"\nband = [60, 200]\n', "plan.band: a band belongs to"),
        ('policy = "banded-gap"\nband = [200, 60]\n', "plan.band"),
        ('policy = "banded-gap"\nband = [60]\n', "plan.band"),
        ("[plan.stop]\nhalf_width = 20\n", "plan.stop: a rule stops a campaign between two rounds"),
        ('policy = "balanced"\nbattles = 9\n[plan.stop]\nindifference = 9\n', "plan.stop.indifference: belongs to"),
        ('policy = "balanced"\n[plan.stop]\nhalf_width = 0\n', "plan.stop.half_width: found 0"),
        ('policy = "balanced"\n[plan.stop]\nbattles = 9\nlevel = 1\n', "plan.stop.level: found 1"),
        (
            'policy = "balanced"\n[[plan.phase]]\nname = "a"\npolicy = "balanced"\nbattles = 9\n',
            "plan.policy: where there are [[plan.phase]] tables",
        ),
        (
            '[[plan.phase]]\nname = "a"\n[[plan.phase]]\nname = "a"\n',
            "plan.phase[2].name: another phase has this name",
        ),
        (
            '[[plan.phase]]\nname = "a"\npolicy = "balanced"\n[[plan.phase]]\nname = "b"\n',
            "plan.phase[1].battles: missing: only the last phase",
        ),
        ('[[plan.phase]]\npolicy = "random"\n', "plan.phase[1].name"),
        ('[[plan.phase]]\nname = "a"\npolicy = "recorded"\n', 'plan.phase[1].policy: "recorded" takes all'),
        ('orders = "one"\n', 'plan.orders: found "one"; accepted: "both" or "random"'),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused_with_the_key_and_what_to_do(
    refusal: Callable[[str], str], text: str, said: str
) -> None:
    assert said in refusal(f"[plan]\n{text}")


def test_a_budget_or_a_rule_ends_a_phase_as_a_number_does(load: Load) -> None:
    assert load('[plan]\npolicy = "balanced"\n[budget]\nmoney = 1\n').plan.phases[0].battles is None
    assert load('[plan]\npolicy = "balanced"\n[plan.stop]\ntop = 1\n').plan.phases[0].battles is None


def test_a_plan_of_an_earlier_version_has_the_settings_it_had(load: Load) -> None:
    settings = json.loads(load('[plan]\npolicy = "random"\nmatchups = 4\n').settings)
    assert settings["plan"] == {
        "coverage": "0.3",
        "instructions": None,
        "matchups": 4,
        "policy": "random",
        "repeats": 1,
    }
