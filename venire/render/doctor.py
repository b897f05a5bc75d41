"""Terminal output of `venire doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from venire.arena.wording import plain
from venire.doctor import HealthFinding
from venire.render.screen import FAILED

_STYLES = {"ok": "", "warning": "yellow", "problem": FAILED}


def show_health(screen: Console, found: Sequence[HealthFinding], not_asked: int = 0) -> None:
    """A line for each finding, its state first; `not_asked` counts endpoints that nobody agreed to call."""
    width = max(len(plain(one.subject)) for one in found)
    for one in found:
        screen.print(
            f"{one.state:<7}  {plain(one.subject):<{width}}  " + "\n".join(map(plain, one.says.split("\n"))),
            style=_STYLES[one.state],
        )
    if not_asked:
        endpoints = "1 endpoint was" if not_asked == 1 else f"{not_asked} endpoints were"
        screen.print(f"\n{endpoints} not asked: --yes agrees to one call of a few tokens each")
    problems = sum(one.state == "problem" for one in found)
    if problems:
        screen.print(f"\n{problems} of {len(found)} findings {'is a problem' if problems == 1 else 'are problems'}")
