"""From votes to Soft-Elo: those of a page's table and those of a served page come to the same figures."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import Callable
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.venire.conftest import Done
from tests.venire.live.test_voting import booth
from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.pages.report_page import report_html, report_markdown
from venire.session import Session
from venire.storage.read.blind_battles import completions_by_code
from venire.storage.store.opening import open_store

Venire = Callable[..., Done]
ELO = {f"m{number:02}": 800 + 60 * number for number in range(11)}
INSTRUCTIONS = 5
JUDGED = 110
BATTLES = 80
"""Of which a person votes on each."""
CAMPAIGN = f"""
name = "small"
[data]
instructions = "i.jsonl"
completions = "c.jsonl"
elo = "e.jsonl"
[plan]
policy = "balanced"
battles = {JUDGED}
[[judge]]
name = "scores"
model = "simulated/gpt-4-0613@1"
protocol = "criteria"
[[judge]]
name = "picks"
model = "simulated/claude-3-opus@1"
"""


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of eleven models, twice in each pair: enough for a finite conformal interval."""
    folder = tmp_path_factory.mktemp("rated")
    asked = [f"q{number}" for number in range(INSTRUCTIONS)]
    lines(folder / "i.jsonl", [{"instruction_id": one, "instruction": f"What of {one}?"} for one in asked])
    texts = [{"instruction_id": one, "model": name, "completion": f"{name} on {one}"} for one in asked for name in ELO]
    lines(folder / "c.jsonl", texts)
    lines(folder / "e.jsonl", [{"model": name, "elo": elo} for name, elo in ELO.items()])
    file = folder / "small.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    with Session(load_campaign(file), clock=VirtualClock()) as session:
        session.run(environ={}, embedded=Embedded(direct=True))
    return load_campaign(file).store


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    own = tmp_path / "small.duckdb"
    own.write_bytes(made.read_bytes())
    return own


class Person:
    """Somebody who sees the models' ratings in their answers, and ties now and then."""

    def __init__(self, store: Path, seed: int) -> None:
        with open_store(store) as opened:
            self.known = completions_by_code(opened)
        self.seed = seed

    def vote(self, battle: dict[str, Any]) -> str:
        """What they say, the same of a battle whatever the order."""
        shown = [self.known[answer["code"]] for answer in battle["answers"]]
        first, second = sorted(shown)
        draw = Random(f"{self.seed} {first} {second}")
        if draw.random() < 0.15:
            return "tie"
        gap = ELO[first[0]] - ELO[second[0]]
        wins = draw.random() < 1.0 / (1.0 + exp(-gap / 150.0))
        return f"answer_{1 + shown.index(first if wins else second)}"


def by_table(venire: Venire, store: Path, folder: Path, name: str, seed: int) -> Path:
    """The table that a page hands out after all of its battles have a vote."""
    page = folder / f"{name}.html"
    done = venire("annotate", store, "-o", page, "--count", BATTLES, "--seed", 4)
    assert done.code == 0, done.err
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert held is not None
    found, person = json.loads(held[1]), Person(store, seed)
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["page", "battle", "answer_1", "answer_2", "winner", "annotator", "note", "voted_at"])
        for number, battle in enumerate(found["battles"], 1):
            codes = [answer["code"] for answer in battle["answers"]]
            writer.writerow([found["page"], number, *codes, person.vote(battle), name, "", "2026-01-01T00:00:00Z"])
    return path


async def by_hand(store: Path, people: dict[str, int]) -> None:
    """The votes of some people, each sent to the served page."""
    persons = {name: Person(store, seed) for name, seed in people.items()}
    async with booth(store, count=BATTLES, seed=4, people="served") as one:
        for name, person in persons.items():
            _, found = await one.battles(name)
            for battle in found["battles"]:
                ballot = one.ballot(battle, person.vote(battle), annotator=name)
                assert await one.post(ballot) == (200, {"changed": True})


PEOPLE = {"ann": 1, "bob": 2}
FIGURES = ("elo", "lo", "hi", "human_elo", "placed_elo", "conformal_lo", "conformal_hi")


def test_votes_of_pages_and_of_the_server_calibrate_soft_elo_alike(venire: Venire, store: Path, tmp_path: Path) -> None:
    tables = [by_table(venire, store, tmp_path, name, seed) for name, seed in PEOPLE.items()]
    done = venire("import", "votes", *tables, "--as", "paper", "--store", store)
    assert f"{2 * BATTLES} votes of paper new" in done.out, done.err
    asyncio.run(by_hand(store, PEOPLE))

    boards = {}
    for group in ("paper", "served"):
        found = venire("rate", store, "--method", "soft-elo", "--human", group, "--json").json()
        boards[group] = found
        facts = found["diagnostics"]
        people = facts["people"]
        assert (people["name"], people["origin"], people["annotators"], people["votes"]) == (
            group,
            "people",
            2,
            2 * BATTLES,
        )
        (scores,) = facts["judges_by_people"]
        assert scores["judge"] == "scores"
        assert 0.0 < scores["beta_se"] < scores["beta"]
        assert facts["conformal"]["n"] == len(ELO) - 1
        for row in found["models"]:
            assert row["conformal_lo"] < row["placed_elo"] < row["conformal_hi"]
        inside = sum(row["conformal_lo"] <= row["human_elo"] <= row["conformal_hi"] for row in found["models"])
        assert inside >= 8
        assert [one["judge"] for one in people["judges"]] == ["picks", "scores"]
        assert all(one["kappa"]["lo"] < one["kappa"]["value"] < one["kappa"]["hi"] for one in people["judges"])
        assert [one["annotator"] for one in people["each"]] in ([], ["ann", "bob"])
        assert people["together"]["kappa"]["value"] is not None
        assert people["alpha_among_people"]["value"] is not None
    paper, served = ([{key: row[key] for key in FIGURES} for row in boards[one]["models"]] for one in boards)
    for one, other in zip(paper, served, strict=True):
        assert one == pytest.approx(other, abs=0.01)
    by_people = [boards[one]["diagnostics"]["people"]["judges"] for one in boards]
    assert by_people[0] == by_people[1]


def test_a_report_has_rows_of_judges_and_of_people_with_intervals(venire: Venire, store: Path) -> None:
    without = venire("report", store, "--format", "json").json()
    assert without["people"] is None
    assert any(one["what"] == "Agreement with people" and "no votes" in one["why"] for one in without["left_out"])
    asyncio.run(by_hand(store, {"ann": 1, "bob": 2, "<b>cat</b>": 3}))
    board = venire("rate", store, "--json").json()["diagnostics"]["people"]
    with open_store(store) as opened:
        opened.connection.execute("insert into people values (9, 'others', 'people')")
        opened.connection.execute("insert into annotator values (9, 9, 'dan')")
        opened.connection.execute("insert into vote select * replace (9 as annotator) from vote where annotator = 1")
    several = venire("report", store, "--format", "json").json()
    assert several["people"] is None
    assert any("votes of served, others: --human" in one["why"] for one in several["left_out"])
    found = venire("report", store, "--format", "json", "--human", "served").json()
    people = found["people"]
    assert {**people, "judges": None} == {**board, "judges": None}
    assert [one["kappa"]["value"] for one in people["judges"]] == sorted(
        (one["kappa"]["value"] for one in board["judges"]), reverse=True
    )
    assert len(people["each"]) == 3
    assert not any(one["what"] == "Agreement with people" for one in found["left_out"])
    section = report_html(found).partition('<h2 id="people">')[2].partition("<h2")[0]
    assert f"{3 * BATTLES} votes of 3 annotators" in section
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", section, re.S)
    names = [re.sub(r"<.*?>", "", name) for name, _ in rows]
    assert names[:2] == [one["judge"] for one in people["judges"]]
    assert {one.removesuffix(", a person") for one in names[2:5]} == {"ann", "bob", "&lt;b&gt;cat&lt;/b&gt;"}
    assert names[5] == "one person beside another"
    for (_, cells), one in zip(rows, [*people["judges"], *people["each"], people["together"]], strict=True):
        assert f"{one['kappa']['value']:.3f}" in cells
        assert f"{one['kappa']['lo']:.2f} to {one['kappa']['hi']:.2f}" in cells
        assert f"{100 * one['agreement_lo']:.0f}% to {100 * one['agreement_hi']:.0f}%" in cells
    alpha = people["alpha_among_people"]
    assert f"people among themselves {alpha['value']:.2f}" in section
    shown = report_markdown(found)
    assert "## People" in shown
    assert r"| \<b\>cat\</b\>, a person |" in shown


def test_a_width_learns_from_the_votes_of_a_page_and_of_the_people_named(
    venire: Venire, store: Path, tmp_path: Path
) -> None:
    ask = ("annotate", store, "--width", 0.1, "--json")
    before = venire(*ask).json()
    assert (before["measured"], before["by_judge"], before["available"]) == (0, {}, JUDGED)
    table = by_table(venire, store, tmp_path, "ann", 1)
    assert venire("import", "votes", table, "--as", "paper", "--store", store).code == 0
    after = venire(*ask).json()
    assert after["measured"] == BATTLES
    asyncio.run(by_hand(store, {"bob": 2}))
    assert venire(*ask).json()["measured"] == 0, "of two groups neither is taken unasked"
    for group in ("paper", "served"):
        found = venire(*ask, "--human", group).json()
        assert found["measured"] == BATTLES
        assert found["by_judge"].keys() == {"picks", "scores"}
        rated = venire("rate", store, "--human", group, "--json").json()["diagnostics"]["people"]["judges"]
        for one in rated:
            width, needed = one["agreement_hi"] - one["agreement_lo"], found["by_judge"][one["judge"]]
            assert width > 0.1
            assert needed / BATTLES == pytest.approx((width / 0.1) ** 2, rel=0.25), (
                "an interval is as the root of the votes"
            )
    assert venire(*ask, "--human", "paper").json()["by_judge"] == after["by_judge"]
    nobody = venire(*ask, "--human", "nobody")
    assert (nobody.code, "name one group of people" in nobody.err) == (2, True)
    refused = venire("annotate", store, "-o", tmp_path / "x.html", "--human", "paper")
    assert (refused.code, "--human says whose votes --width" in refused.err) == (2, True)
