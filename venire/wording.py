"""Money, time and names in words, for sentences on a screen and in errors; nothing here prints."""

from __future__ import annotations

from venire.arena.battles import Statistics
from venire.arena.wording import money


def set_aside(nano: int, tokens: int) -> str:
    """What is set aside for calls without an answer, "" where it is nothing.

    >>> set_aside(2_500_000, 1200), set_aside(0, 1200)
    ('$0.0025 and 1,200 tokens', '1,200 tokens')
    """
    return " and ".join([money(nano)] * (nano > 0) + [f"{tokens:,} tokens"] * (tokens > 0))


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(4.2), duration(600), duration(9000)
    ('4.2 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def time_left(now: Statistics) -> str:
    """What is left of the whole plan of a run, in words: empty where nothing is, or it is not known yet of one round.

    >>> time_left(Statistics(seconds_left=600.0))
    'about 10 min left'
    >>> time_left(Statistics(seconds_left=9000.0, round=3, rounds=12, at_most=True))
    'at most about 2.5 h left of the whole plan (round 3 of at most 12)'
    """
    several = now.rounds > 0
    which = f" (round {now.round} of {'at most' if now.at_most else 'about'} {now.rounds:,})" if several else ""
    if now.seconds_left is None:
        return f"time left of the whole plan is not known yet{which}" if several else ""
    if not now.seconds_left and not several:
        return ""
    most = "at most " if now.at_most else ""
    until = " until the budget is spent" if now.until_budget else " left of the whole plan" if several else " left"
    return f"{most}about {duration(now.seconds_left)}{until}{which}"


def retries(number: int) -> str:
    """A number of retries, in words."""
    return f"{number:,} {'retry' if number == 1 else 'retries'}"


def is_reported_round(number: int) -> bool:
    """Whether a round is reported in separate lines: 1 to 10, 20 to 100 by ten, 200 to 1,000 by a hundred, and so on.

    With two hundred reported rounds, nobody would find the important line; all analyses are in the store.
    """
    step: int = 10 ** (len(str(max(1, number - 1))) - 1)
    return number % step == 0
