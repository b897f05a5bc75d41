"""Ratings by several methods side by side, where their orders disagree, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from venire.arena.errors import InputError
from venire.arena.wording import few
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, missing_data
from venire.reports.board.verdicts import Verdicts
from venire.reports.comparison import Comparison
from venire.reports.documents.sentences import WHY, short

_CHOSEN = (
    "bradley-terry",
    "even-pairs",
    "m-elo",
    "am-elo",
    "soft-elo",
    "human-elo",
    "elo",
    "win-rate-balanced",
    "win-rate",
    "borda",
    "kemeny",
)
"""Methods that answer within a second or two for fifty models and a hundred thousand verdicts."""

_KEMENY_SECONDS = 3.0
_MAX_TURNED = 4


def methods_section(verdicts: Verdicts, method: str, options: Options, tied: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The comparison's document, and of each method in words where its order differs and why.

    `tied` are the sets of models that the board's own method does not distinguish. Where fewer than two methods can
    rate these verdicts the section has a `reason` and nothing else.
    """
    kemeny = min(options.seconds, _KEMENY_SECONDS)
    # Anchors and a prior change the scale and not what is compared, and most methods take neither.
    asked = replace(options, anchors={}, ridge=None, errors=None, replicates=0, seconds=kemeny)
    found, left_out = _compared(verdicts, method, asked)
    defaults = Options(seed=options.seed, level=options.level, seconds=kemeny)
    if found is None and asked != defaults:
        found, left_out = _compared(verdicts, method, defaults)
    if found is None:
        return {"reason": "fewer than two methods can rate these verdicts", "left_out": left_out}
    document = found.to_json()
    document["left_out"] = left_out
    sets = [set(one) for one in tied]
    document["differences"] = [_difference(document, name, sets) for name in document["methods"][1:]]
    document["differences"].sort(key=lambda one: -len(one["turned"]))
    return document


def _compared(verdicts: Verdicts, method: str, options: Options) -> tuple[Comparison | None, dict[str, str]]:
    """The board's method beside those that can rate these verdicts with these options, and why others cannot."""
    names = [method] if method in METHODS and METHODS[method].rates else []
    for one in _CHOSEN:
        if one not in names and one in METHODS and not missing_data(verdicts.battles, one, options):
            names.append(one)
    try:
        return verdicts.compare(names, options), {}
    except InputError:  # a method may refuse these verdicts or options: each is tried beside the first
        kept, left_out = names[:1], {}
    for one in names[1:]:
        try:
            verdicts.compare([names[0], one], options)
            kept.append(one)
        except InputError as error:
            left_out[one] = str(error).splitlines()[0]
    return (verdicts.compare(kept, options) if len(kept) > 1 else None), left_out


def _difference(document: Mapping[str, Any], name: str, tied: Sequence[set[str]]) -> dict[str, Any]:
    """The neighbours of the first order that a method turns round, and whether the first distinguishes them."""
    ranked = [one for one in document["models"] if one["rank"][document["methods"][0]] is not None]
    turned = [
        [upper["model"], lower["model"]]
        for upper, lower in pairwise(ranked)
        if upper["rank"][name] is not None
        and lower["rank"][name] is not None
        and upper["rank"][name] > lower["rank"][name]
    ]
    close = sum(any(set(pair) <= one for one in tied) for pair in turned)
    return {"method": name, "turned": turned, "close": close, "says": _says(document, name, turned, close)}


def _says(document: Mapping[str, Any], name: str, turned: Sequence[Sequence[str]], close: int) -> str:
    first = document["methods"][0]
    why = WHY.get(name, METHODS[name].purpose)
    if not turned:
        return f"{name} agrees with {first} on every two neighbours. It {why}."
    pairs = few([f"{short(lower)} above {short(upper)}" for upper, lower in turned], _MAX_TURNED)
    if close == len(turned):
        weight = f"{first} does not distinguish these models, so either order is within chance"
    elif close:
        weight = f"{close} of {len(turned)} are of models that {first} does not distinguish"
    else:
        weight = f"{first} distinguishes these models, so the order depends on the method"
    return f"{name} puts {pairs}: it {why}; {weight}."
