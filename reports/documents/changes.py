"""What changed from one source of verdicts to another: ratings of the models of both, with intervals of differences."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.arena.wording import few
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import select_battles
from venire.ratings.diagnostics.changes import RatingChanges, rating_changes
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, merge_selected
from venire.reports.board.rate import read
from venire.reports.board.source import VerdictSource
from venire.reports.board.stored import choose_campaign
from venire.reports.board.verdicts import HUMAN_ELO, Verdicts
from venire.reports.json_values import json_values
from venire.reports.wording import IN_TIME, DifferenceWords, counted, estimand_text
from venire.storage.read import frames
from venire.storage.store.opening import reading

_NOT_RATED: dict[str, Any] = {
    **dict.fromkeys(("before", "now", "change", "se", "lo", "hi")),
    "changed": False,
    "reference": False,
}
"""The row of a model that the two do not rate together: it won or lost every battle in one of them."""


def changes_section(source: VerdictSource, before: VerdictSource, method: str, options: Options) -> dict[str, Any]:
    """Each model of both with its Bradley-Terry ratings, the change beside the models that did not, and its interval.

    They are of judges' verdicts, or of people's votes where those are what `method` rates, merged and weighed by
    `options`, at their level. The largest comes first.
    Raises InputError for fewer than two models in common, and as `venire.rate` and `rating_changes` do.
    """
    named = Path(str(before.paths[0])).name + ("" if before.campaign is None else f", campaign {before.campaign}")
    return differences(read(before), read(source), named, method, options, asked="--against ")


def split_section(source: VerdictSource, part: str, method: str, options: Options) -> dict[str, Any]:
    """The same within one source: the verdicts of `part`, a text COLUMN=VALUE, are before, and all others now.

    Of a store the column is `judge`, `category` or `before` (a date or time, in UTC unless it says otherwise). Raises
    InputError for other columns, for values without verdicts or without others, and as `changes_section` does.
    """
    column, equals, value = part.partition("=")
    if not equals or not column:
        raise InputError(f"--split takes COLUMN=VALUE, as in --split judge=gpt-4o, and got {part!r}")
    if source.store is None:
        parts = [read(replace(source, where={**source.where, key: (value,)})) for key in (column, f"{column}!")]
    else:
        if method == HUMAN_ELO:
            raise InputError("--split parts the verdicts of judges: rate these by another --method")
        parts = _parts_of_store(source, source.store, column, value)
    return differences(parts[0], parts[1], part, method, options, asked="--split ")


def _parts_of_store(source: VerdictSource, path: Path, column: str, value: str) -> list[Verdicts]:
    """The verdicts of a store's campaign of this value, and the others."""
    verdicts = read(source)
    battles, known, there = verdicts.battles, None, ""
    with reading(path) as store:
        if column == "judge":
            there = f"; judges: {few(battles.judges)}"
            inside = np.array([name == value for name in battles.judges])[battles.judge]
        elif column == "category":
            kinds: dict[str, str] = dict(store.read("instruction_categories"))
            there = f"; categories: {few(sorted(set(kinds.values())))}" if kinds else "; it has no categories"
            wanted = {name for name, kind in kinds.items() if kind == value}
            inside = np.array([name in wanted for name in battles.instructions])[battles.instruction]
        elif column == "before":
            timed = frames.battles_in_time(store, choose_campaign(store, source.campaign).id)
            battles = replace(timed.battles, features={}, clustering=battles.clustering)
            kept = verdicts.kept(battles)
            battles, seconds = select_battles(battles, kept), timed.seconds[kept]
            inside, known = seconds < _seconds(value), np.isfinite(seconds)
        else:
            raise InputError(f"--split takes judge, category or before of a store, and got {column!r}")
    sides = [rows if known is None else rows & known for rows in (inside, ~inside)]
    if not all(rows.any() for rows in sides):
        which = "no verdict is" if not sides[0].any() else "every verdict is"
        raise InputError(f"--split {column}={value}: {which} of it, so that nothing compares{there}")
    return [replace(verdicts, battles=select_battles(battles, rows)) for rows in sides]


def _seconds(text: str) -> float:
    """A date or time as seconds since 1970, in UTC unless it says otherwise."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--split before={text}: give a date or time, such as 2026-11-20 or 2026-11-20T18:00"
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def differences(
    before: Verdicts,
    after: Verdicts,
    named: str,
    method: str,
    options: Options,
    *,
    asked: str = "",
    words: DifferenceWords = IN_TIME,
) -> dict[str, Any]:
    """The same of two tables of verdicts; `named` is what the first are of, `asked` the option by which.

    Raises InputError for fewer than two models in common and for ballots.
    """
    earlier, now = (_comparisons(one, method, options) for one in (before, after))
    common = sorted(set(now.models) & set(earlier.models))
    if len(common) < 2:
        raise InputError(f"{asked}{named}: it has fewer than two models in common with what is reported")
    instructions, known, about = None, {}, None
    try:
        found = rating_changes(earlier, now, level=options.level, seed=options.seed)
    except InputError as error:  # too little was judged: the rest of the report holds
        says = f"Nothing compares with {named}: {error}."
    else:
        about = _estimand(after, earlier, now, found, method)
        says = _says(found, named, len(common), about, words)
        known = {row.model: json_values(row) for row in found.models}
        instructions = {"before": found.clusters[0], "now": found.clusters[1], "shared": found.shared}
    rows = [known.get(model, {"model": model} | _NOT_RATED) for model in common]
    rows.sort(key=lambda row: (row["change"] is None, -abs(row["change"] or 0.0), row["model"]))
    facts = {"level": options.level, "estimand": about, "instructions": instructions}
    return {"against": named, **facts, "says": says, "models": rows}


def _estimand(verdicts: Verdicts, before: Comparisons, now: Comparisons, found: RatingChanges, method: str) -> str:
    """What the intervals of changes are about."""
    clustering = verdicts.battles.clustering
    respondents = "people" if METHODS[method].of_people or set(verdicts.origins) == {Origin.PEOPLE} else "judges"
    unit = "instructions" if not verdicts.battles.clusters else "clusters"
    if clustering == "judge":
        unit = respondents
    elif now.cluster is None or before.cluster is None:
        unit = "battles"
    return estimand_text(unit, respondents, len({*before.judges, *now.judges}), crossed=found.crossed)


def _says(found: RatingChanges, named: str, common: int, about: str, words: DifferenceWords) -> str:
    changed = [row.model for row in found.models if row.changed]
    word = f"{words.some} beyond chance: {few(changed)}." if changed else f"{words.none} beyond chance."
    if changed and len(found.models) == 2:
        word = "The two models moved apart beyond chance, and of two nobody can say which one did."
    shared = f"{counted(found.shared, 'instruction')} judged in both" if found.shared else "no instruction of both"
    return (
        f"{word} {counted(common, 'model')} in common with {named}, rated by Bradley-Terry on battles of these alone, "
        f"paired by instruction ({shared}). {words.all}, and '{words.second}', are beside the mean of the "
        f"{sum(row.reference for row in found.models)} models that are not distinguished by their {words.all.lower()}. "
        f"{100 * found.level:g}% intervals ({about}) are of one model at a time; that a model {words.verb} is said "
        f"of all together: while most did not, the chance that any other is named is at most "
        f"{100 * (1 - found.level):g}%. {words.caution}"
    ).rstrip()


def _comparisons(verdicts: Verdicts, method: str, options: Options) -> Comparisons:
    """The judgments of judges, or what people said where they are rated."""
    battles = verdicts.battles
    if battles.ballots is not None:
        raise InputError("changes are shown of verdicts on pairs: ballots are rated by themselves")
    if method == HUMAN_ELO and verdicts.people is not None:
        battles = verdicts.people.battles
    judgments = merge_selected(battles, options)
    data = judgments.comparisons()
    if method == HUMAN_ELO and judgments.human is not None:
        return replace(data, y=judgments.human).select(np.isfinite(judgments.human))
    return data
