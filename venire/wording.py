"""Money, time and names in words, for sentences on a screen and in errors; nothing here prints."""

from __future__ import annotations

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


def retries(number: int) -> str:
    """A number of retries, in words."""
    return f"{number:,} {'retry' if number == 1 else 'retries'}"


def is_reported_round(number: int) -> bool:
    """Whether a round is reported in separate lines: 1 to 10, 20 to 100 by ten, 200 to 1,000 by a hundred, and so on.

    With two hundred reported rounds, nobody would find the important line; all analyses are in the store.
    """
    step: int = 10 ** (len(str(max(1, number - 1))) - 1)
    return number % step == 0
