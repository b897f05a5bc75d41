"""Checks of what is missing: verdicts that were not read, whose they are, and verdicts that were never given."""

from __future__ import annotations

from typing import Any

from venire.arena.errors import InputError
from venire.ratings.diagnostics.unparsed import UnparsedShare, unparsed_replies
from venire.reports.audit.finding import Case, Finding
from venire.reports.audit.fit import CLEAR

__all__ = ["check_complete", "check_unread", "check_unread_models"]

UNREAD = 0.05
"""Share of a judge's verdicts: left out by ill luck all on one side, they move a win share by half of that."""

UNEVEN = 0.02
"""Points by which a model loses more verdicts than its judges' others."""

COMPLETE = 0.95
"""Share of the planned verdicts that are there; plans are not carried out in an order drawn by lot."""

_SHOWN = 20


def check_unread(case: Case) -> Finding:
    """Whether some judge's replies often could not be read."""
    _some(case)
    found = unparsed_replies(case.battles, level=1.0 - CLEAR)
    worst = max(found.judges, key=lambda row: (row.lo, row.share))
    says = f"{_percent(found.share)} of {found.verdicts} verdicts were not read"
    if found.share:
        says += f"; of {worst.name}'s {_percent(worst.share)} ({_statuses(worst)})" if len(found.judges) > 1 else ""
        says += f" ({_statuses(worst)})" if len(found.judges) == 1 else ""
    details = {
        "share": found.share,
        "judges_p": found.judges_p,
        "judges": [_row(row) for row in found.judges[:_SHOWN]],
    }
    return Finding("unread", worst.lo > UNREAD, worst.share, UNREAD, says, details)


def check_unread_models(case: Case) -> Finding:
    """Whether some models lose more verdicts than others do with the same judges."""
    _some(case)
    found = unparsed_replies(case.battles)
    if not found.share:
        return Finding("unread-by-model", False, 0.0, UNEVEN, "every verdict was read", {})
    if len(found.models) < 3:
        raise InputError("every verdict shows both models: which of them is behind those not read cannot be told")
    worst = max(found.models, key=lambda row: (row.share - (row.expected or 0.0), row.name))
    apart = worst.share - (worst.expected or 0.0)
    worry = found.p_value < CLEAR and apart > UNEVEN
    says = f"{worst.name} loses {_percent(worst.share)} of its verdicts ({_statuses(worst)}), "
    says += f"{_percent(worst.expected or 0.0)} expected of its judges (p of any model {found.p_value:.3f})"
    details = {"p": found.p_value, "models": [_row(row) for row in found.models[:_SHOWN]]}
    return Finding("unread-by-model", worry, apart, UNEVEN, says, details)


def check_complete(case: Case) -> Finding:
    """Whether what was planned was judged."""
    if not case.planned:
        raise InputError("how many verdicts were to be had is known of judges of pairs in a store alone")
    there = len(case.battles.label)
    share = min(1.0, there / case.planned)
    says = f"{there:,} of {case.planned:,} planned verdicts are there"
    says += ": what is missing is not a sample" if share < COMPLETE else ""
    return Finding("complete", share < COMPLETE, share, COMPLETE, says, {"there": there, "planned": case.planned})


def _some(case: Case) -> None:
    if not len(case.battles.status):
        raise InputError("there are no verdicts yet")


def _row(row: UnparsedShare) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": row.name, "verdicts": row.verdicts, "share": row.share, "statuses": row.statuses}
    return shown if row.expected is None else {**shown, "expected": row.expected, "z": row.z}


def _statuses(row: UnparsedShare) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in row.statuses.items()) or "none"


def _percent(share: float) -> str:
    return f"{share:.1%}"
