"""What an edit of a completion does to verdicts: the same battles with the edit on A and on B."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.reports.test_grades import make_grades, of
from venire.arena.battles import Battles
from venire.ratings.diagnostics.accuracy import paired_preference_shift
from venire.ratings.inference.options import Options
from venire.render.sections import show
from venire.reports.edits import edit_contrasts
from venire.reports.grade_sections import edit_sections

Table = Callable[..., Battles]
ITEMS = 40


def verdicts(table: Table, move: float, seed: int, judges: str = "j") -> Battles:
    """a against b by some judges; `move` is what the edit adds to the log odds of a."""
    rng = np.random.default_rng(seed)
    rows = [
        ("a", "b", "first" if 0.5 + move + rng.logistic() > 0 else "second", judge, f"q{n}")
        for n in range(ITEMS)
        for judge in judges
    ]
    return table(rows)


def edited(table: Table, move: float = 2.0, judges: str = "j") -> dict[tuple[str, str], Battles]:
    return {("echo", "a"): verdicts(table, -move, 1, judges), ("echo", "b"): verdicts(table, move, 2, judges)}


def wins(battles: Battles) -> Any:
    """Outcomes for a, instruction by instruction."""
    won = dict(zip(battles.instruction.tolist(), (battles.label == 1).tolist(), strict=True))
    names = {name: code for code, name in enumerate(battles.instructions)}
    return np.array([won[names[f"q{n}"]] for n in range(ITEMS)], dtype=float)


def test_the_contrast_is_over_the_battles_judged_with_either_edit(table: Table) -> None:
    sides = edited(table)
    (one,) = edit_contrasts(sides, verdicts(table, 0.0, 3), Options())
    on_a, on_b = wins(sides["echo", "a"]), wins(sides["echo", "b"])
    expected = paired_preference_shift(on_a, on_b, np.arange(ITEMS))
    assert (one.variant, one.judge, one.pairs, one.battles) == ("echo", None, "all pairs", ITEMS)
    assert (one.on_a, one.on_b) == pytest.approx((on_a.mean(), on_b.mean()))
    assert (one.shift, one.lo, one.hi) == pytest.approx((expected.shift, expected.lo, expected.hi))
    assert one.unedited == pytest.approx(wins(verdicts(table, 0.0, 3)).mean())
    assert one.shift < -0.4
    assert one.hi is not None
    assert one.hi < 0.0


def test_battles_with_one_of_both_edits_are_not_counted(table: Table) -> None:
    sides = {
        ("echo", "a"): table([("a", "b", "first", "j", "q0"), ("a", "b", "first", "j", "q1")]),
        ("echo", "b"): table([("a", "b", "second", "j", "q1"), ("a", "b", "first", "j", "q2")]),
        ("long", "a"): table([("a", "b", "first", "j", "q0")]),
    }
    (one,) = edit_contrasts(sides, table([("a", "b", "tie", "j", "q0")]), Options())
    assert (one.battles, one.on_a, one.on_b, one.unedited) == (1, 1.0, 0.0, None)
    assert (one.lo, one.hi) == (None, None)


def test_kinds_and_judges_have_contrasts_of_their_own(table: Table) -> None:
    grades = make_grades(of("t", "direct", a=[1] * ITEMS, b=[n % 2 for n in range(ITEMS)]))
    found = edit_contrasts(
        edited(table, judges="jk"), verdicts(table, 0.0, 3, "jk"), Options(), grades=grades, protocol="direct"
    )
    assert [(one.judge, one.pairs, one.battles) for one in found] == [
        (None, "all pairs", 2 * ITEMS),
        (None, "discriminative", ITEMS),
        (None, "non-discriminative", ITEMS),
        ("j", "all pairs", ITEMS),
        ("k", "all pairs", ITEMS),
    ]


def test_pairs_that_echo_by_themselves_are_left_out_of_the_contrast_of_an_echo(table: Table) -> None:
    echoes = make_grades(of("e", "echo", a=[1] * 10 + [0] * 30, b=[0] * 30 + [1] * 10))
    (one,) = edit_contrasts(edited(table), verdicts(table, 0.0, 3), Options(), grades=echoes)
    assert (one.battles, one.echoing) == (20, 20)
    longer = {("long", side): battles for (_, side), battles in edited(table).items()}
    (other,) = edit_contrasts(longer, verdicts(table, 0.0, 3), Options(), grades=echoes)
    assert (other.battles, other.echoing) == (ITEMS, 0)


@pytest.mark.parametrize("width", [80, 130])
def test_the_contrasts_are_shown(table: Table, width: int) -> None:
    found = edit_contrasts(edited(table, judges="jk"), verdicts(table, 0.0, 3, "jk"), Options())
    out = io.StringIO()
    show(Console(file=out, width=width, markup=False), edit_sections(found, 0.95, "recorded"))
    text = out.getvalue()
    assert "Edited completions: echo   verdicts: recorded" in text
    assert f"{found[0].shift:+.3f}" in text
    assert all(len(line) <= width for line in text.splitlines())
