"""What stands on the screen beside a leaderboard: the ratings that it is held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from venire.known_ratings import some
from venire.screen import plain

__all__ = ["show_reference"]


def show_reference(screen: Console, told: Mapping[str, Any]) -> None:
    """One line on the ratings of a file: how many were used, and which could not be."""
    line = f"reference: {plain(told['file'])}, {told['shared']} of its {told['ratings']} models were judged"
    line += f" (not judged: {plain(some(told['not_judged']))})" if told["not_judged"] else ""
    line += f"; no reference for {plain(some(told['not_rated']))}" if told["not_rated"] else ""
    line += f"; in place of the store's {told['replaces']} ratings" if told["replaces"] else ""
    screen.print(line, style="dim")
