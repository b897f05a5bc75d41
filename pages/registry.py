"""The pages of a campaign: one entry a page. Routes, the menu, templates and the lists in tests are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from venire.pages.context import PageContext
from venire.pages.rendering import render
from venire.pages.views.audit import audit
from venire.pages.views.battle import battle
from venire.pages.views.calls import calls, search
from venire.pages.views.compare import begin_comparison, compare
from venire.pages.views.contestant import contestant
from venire.pages.views.instructions import instruction, instructions
from venire.pages.views.judges import judges
from venire.pages.views.leaderboard import leaderboard
from venire.pages.views.overview import begin_answer, overview


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page by its name, which is its path and that of its template; `values` are what the template shows.

    A value `title` replaces the title. A `numbered` page is that of one trial, instruction or model; others are in the
    menu unless not `in_menu`. A page that does not read single trials does not wait for the `table` of them. `begin`
    starts what the page will wait for while the table is made. A page that is shown `meanwhile` does without a board
    that is under way for more than a second, and comes again by itself. A `slow` page is made beside the others and for
    each reader anew.
    """

    name: str
    title: str
    values: Callable[[PageContext], Mapping[str, Any]]
    numbered: bool = False
    in_menu: bool = True
    table: bool = True
    begin: Callable[[PageContext], object] | None = None
    meanwhile: bool = False
    slow: bool = False

    def html(self, here: PageContext) -> str:
        """The page. Raises what its documents raise, and InputError for what is not there."""
        return render(f"{self.name}.html", {**here.values(self.name, self.title), **MENU, **self.values(here)})


PAGES: dict[str, PageEntry] = {
    one.name: one
    for one in (
        PageEntry("overview", "Overview", overview, begin=begin_answer, meanwhile=True),
        PageEntry("leaderboard", "Leaderboard", leaderboard, table=False),
        PageEntry("judges", "Judges", judges, begin=lambda here: here.board()),
        PageEntry("calls", "Calls", calls),
        PageEntry("instructions", "Instructions", instructions),
        PageEntry("audit", "Audit", audit, table=False),
        PageEntry("compare", "Side by side", compare, begin=begin_comparison),
        PageEntry("search", "Search", search, in_menu=False, slow=True),
        PageEntry("battle", "Battle", battle, numbered=True),
        PageEntry("instruction", "Instruction", instruction, numbered=True),
        PageEntry("contestant", "Model", contestant, numbered=True, begin=lambda here: here.board(), meanwhile=True),
    )
}

MENU: Mapping[str, Any] = {"pages": {one.name: one.title for one in PAGES.values() if one.in_menu and not one.numbered}}
"""The value of the templates' common parts with the pages that every other one links to, in order."""
