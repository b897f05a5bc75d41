"""What is told of long input: what will not fit before anything is asked, and what became of it; for eyes and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console

from venire.arena.records import UNSENT
from venire.render.screen import plain
from venire.storage.read.long_input import long_input
from venire.storage.store.store import Store

if TYPE_CHECKING:
    from venire.orchestrator.costs.long_input import LongForecast  # and the engine, which no look at a store needs

__all__ = ["long_json", "show_long", "show_long_forecast"]

_DONE = {
    "error": "too_long without a call",
    "truncate-both": "their completions are cut at the end",
    "middle": "the middle of their completions is cut out",
}


def show_long_forecast(screen: Console, found: Iterable[LongForecast]) -> None:
    """A line for each judge with trials that will not fit; nothing for the others, nor where no context is known."""
    for one in found:
        if one.too_long:
            screen.print(
                f"too long for {plain(one.judge)}: about {_trials(one.too_long)} will not fit {one.context:,} tokens: "
                f"{_DONE[one.policy]}"
            )


def long_json(store: Store, campaign: int) -> list[dict[str, Any]]:
    """What was too long or cut, by judge, as plain values; judges without any are left out."""
    return [asdict(one) for one in long_input(store, campaign, UNSENT)]


def show_long(screen: Console, found: Iterable[dict[str, Any]]) -> None:
    """What was too long or cut, a line a judge: what `long_json` says."""
    for one in found:
        told = [f"{one['unsent']:,} not sent, since they do not fit its context"] if one["unsent"] else []
        told += [f"{one['refused']:,} refused by the provider as too long"] if one["refused"] else []
        if one["cut"]:
            told.append(f"{one['cut']:,} asked with texts cut to fit, by {one['most_cut']:,} characters at most")
        screen.print(f"long input of {plain(one['judge'])}: {'; '.join(told)}")


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count:,} trials"
