"""From a campaign that scores criteria and people's votes to Soft-Elo, by commands alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Venire = Callable[..., Any]
Write = Callable[..., Path]

PERSON = '[[judge]]\nmodel = "simulated/person@{seed}"\n'


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the campaign and of the votes, filled once."""
    return tmp_path_factory.mktemp("rehearsal")


@pytest.fixture
def voted(venire: Venire, judged: Write, folder: Path, rehearsal: Path) -> Path:
    """A store of two judges by criteria on six models, with simulated people's votes on three instructions of four.

    The way of the documentation: people are judges of a campaign of their own, whose verdicts are imported as votes.
    """
    store = rehearsal / "judges.duckdb"
    if not store.exists():
        judges = judged(name="judges.toml", instructions=4, judge='protocol = "criteria"')
        people = judged(
            name="people.toml",
            instructions=4,
            judges='orders = "random"\n' + PERSON.format(seed=1) + PERSON.format(seed=2),
        )
        told = venire("export", people, "battles", "-o", folder / "battles.csv")
        assert told.code == 0, told.err
        rows = (folder / "battles.csv").read_text(encoding="utf-8").splitlines()
        at = rows[0].split(",").index("instruction_id")
        some = sorted({row.split(",")[at] for row in rows[1:]})[:3]
        votes = rehearsal / "votes.csv"
        votes.write_text("\n".join([rows[0], *(row for row in rows[1:] if row.split(",")[at] in some)]) + "\n")
        told = venire("import", "votes", votes, "--as", "crowd", "--store", judges)
        assert told.code == 0, told.err
        shutil.copy(judges.with_suffix(".duckdb"), store)
    own = folder / "rated.duckdb"
    shutil.copy(store, own)
    return own


def test_soft_elo_of_a_campaign_is_calibrated_on_people(venire: Venire, voted: Path) -> None:
    found = venire("rate", voted, "--method", "soft-elo", "--human", "crowd", "--json").json()
    facts = found["diagnostics"]
    people = facts["people"]
    assert (people["name"], people["annotators"], people["votes"]) == ("crowd", 2, 90)
    assert people["origin"] == "simulated", "the annotators' names are those of simulated models"
    assert [one["judge"] for one in people["judges"]] == ["claude-3-opus", "gpt-4-0613"]
    for one in people["judges"]:
        assert (one["battles"], one["votes"]) == (45, 90)
        assert 0.5 < one["agreement_lo"] < one["agreement"] < one["agreement_hi"] <= 1.0
        assert 0.0 < one["kappa"]["value"] < 1.0
        assert one["kappa"]["lo"] < one["kappa"]["value"] < one["kappa"]["hi"]
    assert 0.0 < people["alpha_among_people"]["value"] < 1.0
    assert people["alpha"]["items"] == 60, "of all battles, those without a vote have two judges"
    for judge, row in zip(facts["judges_by_people"], found["judges"], strict=True):
        assert row["judge"] == judge["judge"]
        assert (row["beta"], row["beta_se"], row["ece"]) == (judge["beta"], judge["beta_se"], judge["ece"])
        assert 0.0 < row["beta_se"] < row["beta"]
        assert judge["battles"] == 60
        assert sum(judge["reliability"]["count"]) == judge["reliability"]["battles"]
        assert {"hard", "scaled-hard", "smoothed", "soft"} < judge["leave_one_out"].keys()
        assert all(judge["leave_one_out"][name]["mae"] > 0.0 for name in ("hard", "soft"))
        assert abs(judge["leave_one_out"]["soft"]["spearman"]) <= 1.0
    assert facts["n_fit"] == sum(one["n_fit"] for one in facts["judges_by_people"])
    assert facts["beta"] is None, "there is one for each judge"
    assert facts["conformal"]["n"] == 5
    assert all(row["human_elo"] is not None and row["placed_elo"] is not None for row in found["models"])


def test_the_board_shows_every_judge_beside_people(venire: Venire, voted: Path) -> None:
    shown = venire("rate", voted, "--method", "soft-elo").out
    assert "human elo" in shown
    assert "beta" in shown
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    at = next(i for i, line in enumerate(lines) if line.startswith("Judges and people votes: simulated"))
    assert lines[at + 1] == "beside people battles votes same winner kappa"
    assert [line.split()[:3] for line in lines[at + 2 : at + 4]] == [
        ["claude-3-opus", "45", "90"],
        ["gpt-4-0613", "45", "90"],
    ]
    assert any(line.startswith("90 votes of 2 annotators (crowd, simulated)") for line in lines)
    assert any(line.startswith("Krippendorff's alpha: judges and people 0") for line in lines)
    at = next(i for i, line in enumerate(lines) if line.startswith("Judges' ratings beside people's"))
    assert lines[at + 1] == "judge MAE hard MAE scaled MAE smoothed MAE soft Spearman hard Spearman soft"
    assert [line.split()[0] for line in lines[at + 2 : at + 5]] == ["claude-3-opus", "gpt-4-0613", "all"]


def test_people_are_a_reference_a_method_and_a_check(venire: Venire, voted: Path) -> None:
    alone = venire("rate", voted, "--method", "human-elo", "--cluster", "annotator", "--json").json()["diagnostics"]
    assert (alone["cluster"], alone["degrees"]) == ("people", 1.0)
    assert alone["estimand"] == "other people like these; these instructions only"
    by_people = venire("rate", voted, "--method", "human-elo", "--json").json()
    assert by_people["diagnostics"]["estimand"] == "other instructions; these people only"
    assert {row["judge"] for row in by_people["judges"]} == {"simulated/person@1", "simulated/person@2"}
    elo = {row["model"]: row["elo"] for row in by_people["models"]}
    for name in ("crowd", "people"):
        found = venire("rate", voted, "--reference", name, "--json").json()
        assert {row["model"]: row["reference"] for row in found["models"]} == pytest.approx(elo, abs=1e-5)
        assert found["diagnostics"]["agreement"]["pearson"] > 0.5
    assert "votes of crowd (simulated), 6" in venire("rate", voted, "--reference", "crowd").out
    joined = venire("audit", voted, "--check", "judge-agreement", "--human", "crowd", "--json").json()["findings"][0]
    assert {one["judge"] for one in joined["details"]["judges"]} == {"claude-3-opus", "gpt-4-0613", "people"}
    audit = venire("audit", voted, "--check", "people-agreement", "--json").json()
    (finding,) = audit["findings"]
    assert finding["worry"] is False
    assert finding["figure"] == min(one["agreement"] for one in finding["details"]["judges"]) > 0.55
    assert "alpha of people among themselves" in finding["says"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--human", "nobody"), "crowd"),
        (("--reference", "nobody"), "no file is called so, and no people; votes are here of crowd"),
        (("--reference", "nobody.csv"), "nobody.csv: no such file"),
        (("--method", "soft-elo", "--human", "gpt-4-0613"), "crowd"),
    ],
)
def test_unknown_people_are_refused_with_those_there_are(
    venire: Venire, voted: Path, asked: tuple[str, ...], said: str
) -> None:
    done = venire("rate", voted, *asked)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_of_several_groups_one_is_named(venire: Venire, voted: Path, rehearsal: Path) -> None:
    votes = rehearsal / "votes.csv"
    assert (
        venire(
            "import", "votes", votes, "--as", "experts", "--where", "judge=simulated/person@1", "--store", voted
        ).code
        == 0
    )
    done = venire("rate", voted, "--method", "soft-elo")
    assert done.code == 2
    assert "--human: crowd, experts" in done.err
    assert venire("rate", voted, "--method", "soft-elo", "--human", "experts").code == 0
    assert venire("rate", voted).code == 0


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
