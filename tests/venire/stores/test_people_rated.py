"""From a campaign that scores criteria and people's votes to Soft-Elo, by commands alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from venire.orchestrator.recording.ending import Ending

Settle = Callable[..., Ending]
Venire = Callable[..., Any]
Write = Callable[..., Path]

PERSON = '[[judge]]\nname = "{name}"\nmodel = "simulated/person@{seed}"\n'


@pytest.fixture
def judged(venire: Venire, write_campaign: Write, settle: Settle, folder: Path) -> Path:
    """A campaign file whose store has scores of two judges and the votes of two embedded persons."""
    people = "".join(PERSON.format(name=name, seed=seed) for seed, name in enumerate(("ann", "bob"), start=1))
    crowd = write_campaign(name="crowd.toml", instructions=8, judges=people)
    assert settle(crowd) is Ending.COMPLETE
    assert venire("store", "export", crowd, "-o", folder / "votes", "--format", "csv", "--table", "battle").code == 0
    path = write_campaign(instructions=8, judge='protocol = "criteria"')
    assert settle(path) is Ending.COMPLETE
    done = venire("import", "votes", folder / "votes" / "battle.csv", "--as", "crowd", "--store", path)
    assert done.code == 0, done.err
    assert "(2 new annotators)" in done.out
    return path


def test_scores_are_calibrated_on_the_votes_and_held_against_them(venire: Venire, judged: Path) -> None:
    done = venire("rate", judged, "--method", "soft-elo", "--human", "crowd")
    assert done.code == 0, done.err
    for words in ("beta se", "Judges and people", "each model left out in turn", "scaled", "smoothed", "conformal"):
        assert words in done.out or words == "conformal"
    board = venire("rate", judged, "--method", "soft-elo", "--json").json()  # the only group needs no name
    assert board["method"] == "soft-elo"
    for judge in board["judges"]:
        assert judge["beta"] > 0.0 < judge["beta_se"]
        assert 0.0 <= judge["ece"] < 0.5
    facts = board["diagnostics"]
    assert {one["judge"] for one in facts["people"]["judges"]} == {one["judge"] for one in board["judges"]}
    assert all(one["votes"] > 0 for one in facts["people"]["judges"])
    assert set(facts["baselines"]) >= {"hard", "scaled-hard", "smoothed", "soft"}
    assert len(facts["judges_by_people"]) == 2


def test_people_are_a_reference_and_judges_of_an_audit(venire: Venire, judged: Path) -> None:
    done = venire("rate", judged, "--reference", "crowd")
    assert "reference: votes of crowd" in done.out
    assert "agreement with the reference: 6 models, Pearson" in done.out
    assert venire("rate", judged, "--method", "human-elo", "--human", "crowd").code == 0
    audited = venire("audit", judged, "--check", "judge-agreement", "--human", "crowd", "--json").json()["findings"][0]
    assert {one["judge"] for one in audited["details"]["judges"]} == {"claude-3-opus", "gpt-4-0613", "people"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--human", "nobody"), "crowd"),
        (("--reference", "nobody"), "nobody"),
        (("--method", "soft-elo", "--human", "gpt-4-0613"), "crowd"),
    ],
)
def test_unknown_people_are_refused_with_those_there_are(
    venire: Venire, judged: Path, asked: tuple[str, ...], said: str
) -> None:
    done = venire("rate", judged, *asked)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_of_several_groups_one_is_named(venire: Venire, judged: Path, folder: Path) -> None:
    votes = folder / "votes" / "battle.csv"
    assert venire("import", "votes", votes, "--as", "experts", "--where", "judge=ann", "--store", judged).code == 0
    done = venire("rate", judged, "--method", "soft-elo")
    assert done.code == 2
    assert "name one with --human: crowd, experts" in done.err
    assert venire("rate", judged, "--method", "soft-elo", "--human", "experts").code == 0
    assert venire("rate", judged).code == 0


def test_a_judge_of_a_table_can_be_people(venire: Venire, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    lines = ["model_a,model_b,winner,judge,instruction_id,score_difference"]
    for number in range(30):
        for a, b in (("oak", "elm"), ("elm", "ash"), ("ash", "oak")):
            up = (number * 7 + len(a) + ord(b[0])) % 3 != 0
            lines.append(f"{a},{b},{'model_a' if up else 'model_b'},j,q{number},{1.5 if up else -1}")
            lines.append(f"{a},{b},{'model_a' if (number % 4) else 'model_b'},crowd,q{number},")
    path.write_text("\n".join(lines), encoding="utf-8")
    board = venire("rate", path, "--method", "soft-elo", "--human", "crowd", "--json").json()
    assert [one["judge"] for one in board["judges"]] == ["j"]
    assert "no judge is called 'x'" in venire("rate", path, "--human", "x").err
