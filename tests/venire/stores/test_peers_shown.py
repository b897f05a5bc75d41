"""`venire rate` where judges are models: a short table of what each says of itself."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from venire.ratings.data.ballots import ballots
from venire.ratings.peers.peer_evaluation import PeerEvaluation, PeerRow, SelfPeerGap
from venire.ratings.peers.self_preference import SelfPreferenceOdds
from venire.ratings.voting.rules import median_rank
from venire.render.sections import show
from venire.reports.board.judge_sections import peer_sections

Venire = Callable[..., Any]


def test_models_that_judge_have_a_table_of_their_own(venire: Venire, tmp_path: Path) -> None:
    rows = [
        f"{a},{b},{a if (item + len(judge + a)) % 3 else b},{judge},q{item}"
        for item in range(6)
        for judge in ("a", "b", "c")
        for a, b in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    table = tmp_path / "peers.csv"
    table.write_text("model_a,model_b,winner,judge,instruction_id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    shown = venire("rate", table).out
    assert "Judges on themselves   verdicts: recorded" in shown
    assert "below 0 to the better" in shown
    people = tmp_path / "people.csv"
    people.write_text(table.read_text(encoding="utf-8").replace(",a,q", ",ann,q").replace(",b,q", ",bob,q"))
    assert "Judges on themselves" not in venire("rate", people).out


@pytest.mark.parametrize(("width", "wide"), [(80, False), (120, True)])
def test_a_narrow_terminal_has_the_figures_that_matter(width: int, wide: bool) -> None:
    gap, odds = SelfPeerGap(-0.5, 0.2, -0.9, -0.1, 6), SelfPreferenceOdds(reason="it won all")
    row = PeerRow("a[b]\x1b", ("x",), 1.5, 2.0, gap, odds, None, None, -1e-9, None)
    order = median_rank(ballots(["x"], None, ["a"], [1]))
    facts = PeerEvaluation((row,), "positions", 0.9, 0, ("length",), order, order, ("a stands better",))
    out = io.StringIO()
    show(Console(file=out, width=width, markup=False, highlight=False), peer_sections(facts, "simulated"))
    shown = " ".join(out.getvalue().split())
    assert ("by others  " in out.getvalue()) is wide
    assert "-0.50 -0.90 to -0.10 0.00" in shown  # what rounds to 0 has no sign
    assert "90 %" in shown
    assert "own odds  " not in out.getvalue()
    assert "own odds: a[b]\\x1b: it won" in shown
    assert "note: a stands better" in shown
    assert all(len(line) <= width for line in out.getvalue().splitlines())
