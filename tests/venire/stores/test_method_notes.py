"""What stands below a leaderboard of an order or of abilities: a reader must see what it cost and who is not in it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from venire.arena.records import Origin
from venire.ratings.am_elo.stable_arena import DroppedJudge
from venire.ratings.data.ballots import ballots, to_battles
from venire.ratings.inference.options import Options
from venire.ratings.methods.findings import AbilitySign, ContradictedVotes, DroppedJudges, JudgesWithoutAbility
from venire.render.sections import show
from venire.reports.board.build import build
from venire.reports.board.sections import method_note_sections
from venire.reports.comparison import compare

ORDER = ContradictedVotes((), cost=12.5, lower_bound=10.0, proved=False, optimal_orders=None)


def said(*findings: object, **counts: Any) -> str:
    facts = build(to_battles(ballots(["x"], None, ["oak"], [1])), origins=[Origin.RECORDED]).diagnostics
    out = io.StringIO()
    facts = replace(facts, findings=findings, counts=replace(facts.counts, **counts))
    show(Console(file=out, width=300, soft_wrap=True), method_note_sections(facts))
    return out.getvalue()


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (ORDER, "cost 12.5, the votes that this order contradicts, lower bound 10: not known to be the least\n"),
        (replace(ORDER, proved=True, optimal_orders=1), ": proved to be the least; no other order costs as little\n"),
        (replace(ORDER, proved=True, optimal_orders=1200), ": proved to be the least; 1,200 orders cost it\n"),
        (AbilitySign("as the majority"), ""),
        (
            AbilitySign("undecided: no judge has a finite ability"),
            "the sign of the abilities is undecided: no judge has",
        ),
        (JudgesWithoutAbility((), {"x": "it agrees", "y": "it agrees"}), "no finite ability: x, y: it agrees\n"),
    ],
)
def test_what_a_method_found_is_a_line(finding: object, told: str) -> None:
    assert told in said(finding)
    assert bool(told) == bool(said(finding))


def test_verdicts_left_out_and_weights_are_a_line() -> None:
    assert said() == ""
    assert said(own_left_out=12) == "12 verdicts of judges on themselves were left out\n"
    assert said(judge_weights={"ann": 0.5, "bob": 0.0}) == "judges weigh ann 0.5, bob 0\n"


def test_five_judges_left_out_are_named_and_the_others_counted() -> None:
    text = said(DroppedJudges(tuple(DroppedJudge(f"j{one}", f"{one} verdicts", 0, one, 0.0) for one in range(7)), 1))
    assert "left out: j4: 4 verdicts\n" in text
    assert "j5" not in text
    assert "2 more judges left out" in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_board_of_places_fits_its_screen_and_says_neither_elo_nor_flips(width: int) -> None:
    battles = to_battles(ballots(["x"] * 3 + ["y"] * 3, None, ["maple", "oak", "cedar"] * 2, [1, 2, 3, 1, 3, 2]))
    out = io.StringIO()
    board = build(battles, origins=[Origin.RECORDED], method="kemeny", options=Options())
    show(Console(file=out, width=width), board.sections())
    lines = out.getvalue().splitlines()
    assert lines[0].strip() == "Leaderboard   kemeny   verdicts: recorded"
    assert lines[1].split() == ["model", "position", "judgments"]
    assert lines[2].split() == ["1", "maple", "1", "4"]
    assert lines[3].split() == ["2", "cedar", "2.5", "4"]
    assert "pairs of 2 ballots" in out.getvalue().replace("\n", " ")
    assert "6 judgments, 0 ties" in out.getvalue().replace("\n", " ")
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("names", [("maple", "oak", "cedar"), ("m" * 70, "oak", "cedar")])
def test_methods_that_do_not_fit_beside_each_other_stand_below(names: tuple[str, str, str]) -> None:
    battles = to_battles(ballots(["x"] * 3 + ["y"] * 3, None, [*names] * 2, [1, 2, 3, 1, 3, 2]))
    chosen = ["kemeny", "win-rate", "win-rate-balanced", "elo", "bradley-terry", "m-elo"]
    out = io.StringIO()
    show(Console(file=out, width=60), compare(battles, chosen, Options()).sections())
    lines = [line.split() for line in out.getvalue().splitlines()]
    heads = [line[1:] for line in lines if line[:1] == ["model"]]
    assert len(heads) > 1
    assert [name for head in heads for name in head] == chosen
    assert sum(line[:1] == ["oak"] for line in lines) == len(heads)
    assert max(map(len, out.getvalue().splitlines())) <= 60


def test_a_board_says_how_many_pairs_were_asked(venire: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "chain.csv"
    lines = ["model_a,model_b,winner,instruction"]
    lines += [f"m{k},m{k + 1},{'model_a' if n % 3 else 'model_b'},q{n}" for k in range(4) for n in range(12)]
    path.write_text("\n".join(lines), encoding="utf-8")
    said = venire("rate", path).out
    assert "4 of 10 pairs" in said
    assert "cannot be told" in said
    assert venire("rate", path, "--json").json()["diagnostics"]["pairs"]["possible"] == 10
    assert "4 of 10 pairs" in venire("rate", path, "--method", "m-elo").out
    every = [f"a,{one},{'model_a' if n % 3 else 'model_b'},q{n}" for one in "bc" for n in range(12)]
    every += [f"b,c,model_a,q{n}" if n % 2 else f"b,c,model_b,q{n}" for n in range(12)]
    path.write_text("\n".join([lines[0], *every]), encoding="utf-8")
    assert "pairs were asked" not in venire("rate", path).out
