"""`venire rate --method stable-arena`: who was left out stands below the board, with the reason, and in the JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Venire = Callable[..., Any]


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    """Four judges of 60 verdicts, `eve` against the other three, and `few` with 10; models m0 to m3, best first."""
    rng, rows = np.random.default_rng(1), ["model_a,model_b,winner,judge,instruction_id"]
    for judge, sign, size in (("ann", 1, 60), ("bob", 1, 60), ("cal", 1, 60), ("eve", -1, 60), ("few", 1, 10)):
        for row in range(size):
            a, b = rng.choice(4, 2, replace=False)
            won = rng.random() < 1 / (1 + np.exp(sign * (a - b)))
            rows.append(f"m{a},m{b},{'model_a' if won else 'model_b'},{judge},i{row % 12}")
    path = tmp_path / "crowd.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_judges_left_out_are_told_with_the_reason(venire: Venire, crowd: Path) -> None:
    said = venire("rate", crowd, "--method", "stable-arena").out
    assert "left out: eve: ability -" in said
    assert "10 verdicts, fewer than 50" in said
    board = venire("rate", crowd, "--method", "stable-arena", "--json").json()
    eve, few = board["diagnostics"]["dropped"]
    assert (eve["judge"], eve["pass"], eve["verdicts"]) == ("eve", 1, 60)
    assert (few["judge"], few["pass"], few["ability"]) == ("few", 0, None)
    ability = {row["judge"]: row["ability"] for row in board["judges"]}
    assert ability["eve"] == eve["ability"] < 0.0
    assert ability["few"] is None
    assert np.mean([ability[name] for name in ("ann", "bob", "cal")]) == pytest.approx(1.0, abs=1e-5)
    assert board["models"][0]["model"] == "m0"


def test_thresholds_are_those_of_the_command_line(venire: Venire, crowd: Path) -> None:
    told = ("--least-verdicts", "10", "--least-ability", "0.9", "--until-stable", "--json")
    facts = venire("rate", crowd, "--method", "stable-arena", *told).json()["diagnostics"]
    assert "few" not in [one["judge"] for one in facts["dropped"] if one["pass"] == 0]
    assert facts["passes"] >= 1
    assert all(one["ability"] <= 0.9 for one in facts["dropped"])
    done = venire("rate", crowd, "--method", "stable-arena", "--least-verdicts", "0")
    assert (done.code, done.out) == (2, "")
    assert "least_verdicts is 0" in done.err


def test_no_rating_where_nobody_may_stay_says_why(venire: Venire, crowd: Path) -> None:
    done = venire("rate", crowd, "--method", "stable-arena", "--least-verdicts", "61")
    assert done.code == 0
    assert "fewer than 61 verdicts" in " ".join(done.out.split())
    assert "ann with 60" in " ".join(done.out.split())
    assert venire("rate", crowd, "--compare", "--json").code == 0


def test_the_board_says_what_an_ability_is_and_where_those_of_judges_left_out_come_from(
    venire: Venire, crowd: Path
) -> None:
    told = " ".join(venire("rate", crowd, "--method", "am-elo").out.split())
    assert "below 0: against it" in told
    assert "of judges left out" not in told
    left = " ".join(venire("rate", crowd, "--method", "stable-arena").out.split())
    assert "of judges left out" in left
    assert "ability:" not in venire("rate", crowd).out


def test_few_instructions_are_warned_of_beside_abilities_as_elsewhere(venire: Venire, crowd: Path) -> None:
    for method in ("bradley-terry", "am-elo", "stable-arena"):
        assert "note: only 12 clusters: intervals" in venire("rate", crowd, "--method", method).out
    alone = venire("rate", crowd, "--method", "am-elo", "--cluster", "none").out
    assert "clusters" not in alone
