"""What a board was asked for beyond its defaults, and what it says beside its ratings, as sentences of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from venire.arena.hints import option_name
from venire.arena.wording import few, interval_text
from venire.ratings.inference.options import Options, option_flag
from venire.reports.board.source import VerdictSource
from venire.reports.wording import counted, open_intervals_text, pairs_asked_text

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


def board_notes(board: Mapping[str, Any]) -> list[str]:
    """What the diagnostics of a board's document say that its tables do not: doubts, errors, what was left out."""
    facts = board["diagnostics"]
    found = [open_intervals_text(facts), *([] if not facts.get("pairs") else [pairs_asked_text(facts)])]
    found += [*facts.get("notes", ()), *(fit.get("errors_reason") for fit in facts.get("fits", ()))]
    if (boot := facts.get("bootstrap") or {}).get("replicates"):
        found.append(f"intervals are by {counted(boot['replicates'], 'bootstrap replicate')}")
    if facts.get("own_left_out"):
        found.append(f"{counted(facts['own_left_out'], 'verdict')} of judges on themselves were left out")
    if weights := facts.get("judge_weights"):
        found.append(f"judges weigh {few([f'{name} {weight:g}' for name, weight in weights.items()], _MAX_NAMED)}")
    found += [f"left out: {one['judge']}: {one['reason']}" for one in facts.get("dropped", ())[:_MAX_NAMED]]
    found += (facts.get("conformal") or {}).get("warnings", ())
    found += [
        f"covariate {one['name']}: {_signed(one['coefficient'])} log odds a unit"
        + (f", {between}" if (between := interval_text(one["lo"], one["hi"], ".3f")) else "")
        for one in facts.get("covariates") or ()
    ]
    if agreement := facts.get("agreement"):
        found.append(_agreement(agreement))
    elif facts.get("agreement_reason") and any(one.get("reference") is not None for one in board["models"]):
        found.append(f"no agreement with the ratings known before is given: {facts['agreement_reason']}")
    return list(dict.fromkeys(one for one in found if one))


def _signed(value: float | None) -> str:
    return "none" if value is None else f"{value:+.3f}"


def _agreement(found: Mapping[str, Any]) -> str:
    """How far ratings agree with those known before."""
    parts = []
    for name in ("pearson", "spearman", "kendall"):
        if found.get(name) is not None:
            lo, hi = (found.get("intervals") or {}).get(name, (None, None))
            between = interval_text(lo, hi, ".2f")
            parts.append(f"{name.capitalize()} {found[name]:.2f}" + (f" ({between})" if between else ""))
    if found.get("mae") is not None:
        parts.append(f"mean absolute difference {found['mae']:.0f} Elo")
    return f"agreement with the ratings known before, over {counted(found['models'], 'model')}: {', '.join(parts)}"
