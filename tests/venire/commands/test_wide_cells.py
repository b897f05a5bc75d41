"""Cells of `venire sql` that are wider than a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from venire.render.store import show_rows
from venire.storage.read.selecting import Selected

WIDE = Selected(("n", "design"), [[1, {"matchups": ["oak"] * 2_000}], [2, None]])


@pytest.mark.parametrize("terminal", [True, False])
def test_a_wide_cell_is_cut_with_a_mark_on_a_terminal_alone(terminal: bool) -> None:
    out = io.StringIO()
    show_rows(Console(file=out, width=80, force_terminal=terminal, no_color=True), WIDE)
    lines = out.getvalue().splitlines()
    assert ("..." in out.getvalue()) == terminal
    assert (max(map(len, lines)) < 160) == terminal
    assert ("--json" in lines[-1]) == terminal
