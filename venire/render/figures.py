"""What is shown below a board on request: prediction, robustness, a contrast, places, and people's order."""

from __future__ import annotations

from rich.console import Console

from venire.arena.wording import plain
from venire.render.screen import tabulate
from venire.reports.figure_tables import figure_tables
from venire.reports.figures import FigureResults


def show_figures(screen: Console, figures: FigureResults) -> None:
    """A table for each of the figures beside a board that were asked for."""
    for one in figure_tables(figures):
        screen.print()
        for line in one.says:
            screen.print(plain(line))
        if one.heads:
            rows = [[plain(cell) for cell in row] for row in one.rows]
            tabulate(screen, [plain(head) for head in one.heads], rows, name=one.name, title=one.title)
        for line in one.notes:
            screen.print(plain(line), style="dim")
