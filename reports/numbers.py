"""Figures as words: money, times, shares and counts as every page writes them."""

from __future__ import annotations

import math
from datetime import datetime

from venire.arena.budgets import UNITS


def dollars(nano: float | None) -> str:
    """Nano-dollars as dollars, with as many digits as say something.

    >>> dollars(1_234_000), dollars(12_500_000_000), dollars(0)
    ('$0.0012', '$12.50', '$0.00')
    """
    if nano is None:
        return "–"
    value = nano / 1e9
    if value == 0 or abs(value) >= 0.995:
        return f"${value:,.2f}"
    digits = min(9, max(2, 1 - math.floor(math.log10(abs(value)))))
    return f"${value:.{digits}f}"


def of_budget(value: int, unit: str) -> str:
    """So much of what a budget limits, without its noun.

    >>> of_budget(12_500_000_000, "money"), of_budget(1200, "calls")
    ('$12.50', '1,200')
    """
    return dollars(value) if unit == "money" else UNITS[unit].number(value)


def seconds(value: float | None) -> str:
    """A span of time in its two largest units.

    >>> seconds(0.42), seconds(75), seconds(8000), seconds(200000)
    ('0.42 s', '1 min 15 s', '2 h 13 min', '2 d 7 h')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value < 10:
        return f"{value:.2g} s"
    whole = round(value)
    for unit, length, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            rest = whole % length // part
            return f"{whole // length} {unit} {rest} {smaller}" if rest else f"{whole // length} {unit}"
    return f"{whole} s"


def share(value: float | None, digits: int = 1) -> str:
    """A share as a percentage.

    >>> share(0.125)
    '12.5%'
    """
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}%"


def count(value: float | None) -> str:
    """A whole number with separators.

    >>> count(12345)
    '12,345'
    """
    return "–" if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many digits after the point.

    >>> number(0.5), number(None)
    ('0.50', '–')
    """
    return "–" if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def figure(value: float | None) -> str:
    """A number of any size in three digits, as `venire audit` writes it.

    >>> figure(137.034), figure(0.00138), figure(80.0), figure(0.0)
    ('137', '0.00138', '80', '0')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if (float(value).is_integer() and abs(value) >= 1.0) or value == 0 else f"{value:.3g}"


def elo(value: float | None) -> str:
    """A rating in Elo points.

    >>> elo(1234.56)
    '1235'
    """
    return number(value, 0).replace(",", "")


def moment(value: datetime | str | None) -> str:
    """A time in UTC to the second.

    >>> moment("2026-11-23 19:05:44.186718+00")
    '2026-11-23 19:05:44'
    """
    if value is None:
        return "–"
    return str(value)[:19].replace("T", " ")
