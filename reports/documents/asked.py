"""What a board was asked for beyond its defaults, and what it says beside its ratings, as sentences of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from venire.arena.hints import option_name
from venire.arena.wording import few, interval_text
from venire.ratings.inference.options import Options, option_flag
from venire.ratings.methods.findings import CovariateEffect, CovariateEffects, DroppedJudges, SoftEloByPeople
from venire.reports.board.board import Board
from venire.reports.board.diagnostics import ReferenceAgreement
from venire.reports.board.source import VerdictSource
from venire.reports.wording import counted

_OTHERS_SAY = frozenset({"paths", "campaign"})
_MAX_NAMED = 5


def asked_options(source: VerdictSource, options: Options | None) -> list[str]:
    """The options that are not at their defaults, as the command line spells them; the seed stands elsewhere.

    >>> asked_options(VerdictSource((Path("votes.csv"),), where={"kind": ("human",)}), Options(level=0.9))
    ['--where kind=human', '--level 0.9']
    """
    plain = VerdictSource(())
    found = [
        _spelt(option_name(one.name), getattr(source, one.name))
        for one in fields(VerdictSource)
        if one.name not in _OTHERS_SAY and getattr(source, one.name) != getattr(plain, one.name)
    ]
    if options is not None:
        names = [name for name in options.changed() if name != "seed"]
        found += [_spelt(option_flag(name), getattr(options, name)) for name in names]
    return found


def _spelt(flag: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{flag} {few([f'{key}={_word(one)}' for key, one in value.items()], _MAX_NAMED)}"
    return flag if value is True else f"{flag} {_word(value)}"


def _word(value: Any) -> str:
    if isinstance(value, Path):
        return value.name
    if isinstance(value, Sequence) and not isinstance(value, str):
        return few([_word(one) for one in value], _MAX_NAMED)
    return f"{value:g}" if isinstance(value, float) else str(value)


def board_notes(board: Board) -> list[str]:
    """What the diagnostics of a board say that its tables do not: doubts, errors, what was left out."""
    facts = board.diagnostics
    found = list(facts.doubts)
    if facts.bootstrap.replicates:
        found.append(f"intervals are by {counted(facts.bootstrap.replicates, 'bootstrap replicate')}")
    found += facts.selection
    if (left_out := facts.finding(DroppedJudges)) is not None:
        found += [f"left out: {one.judge}: {one.reason}" for one in left_out.dropped[:_MAX_NAMED]]
    if (by_people := facts.finding(SoftEloByPeople)) is not None and by_people.conformal is not None:
        found += by_people.conformal.warnings
    if (effects := facts.finding(CovariateEffects)) is not None:
        found += [_effect(one) for one in effects.covariates]
    if facts.agreement is not None:
        found.append(_agreement(facts.agreement))
    elif facts.agreement_reason and any(row.reference is not None for row in board.models):
        found.append(f"no agreement with the ratings known before is given: {facts.agreement_reason}")
    return list(dict.fromkeys(found))


def _effect(one: CovariateEffect) -> str:
    between = interval_text(one.lo, one.hi, ".3f")
    worth = "none" if one.coefficient is None else f"{one.coefficient:+.3f}"
    return f"covariate {one.name}: {worth} log odds a unit" + (f", {between}" if between else "")


def _agreement(found: ReferenceAgreement) -> str:
    """How far ratings agree with those known before."""
    parts = []
    for name, value in (("pearson", found.pearson), ("spearman", found.spearman), ("kendall", found.kendall)):
        if value is not None:
            lo, hi = found.intervals.get(name, (None, None))
            between = interval_text(lo, hi, ".2f")
            parts.append(f"{name.capitalize()} {value:.2f}" + (f" ({between})" if between else ""))
    if found.mae is not None:
        parts.append(f"mean absolute difference {found.mae:.0f} Elo")
    return f"agreement with the ratings known before, over {counted(found.models, 'model')}: {', '.join(parts)}"
