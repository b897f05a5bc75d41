"""What changed from one source of verdicts to another: ratings of the models of both, with intervals of differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from venire.arena.errors import InputError
from venire.arena.wording import few
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.diagnostics.changes import RatingChanges, rating_changes
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import merge_selected
from venire.reports.board.rate import read
from venire.reports.board.source import VerdictSource
from venire.reports.board.verdicts import HUMAN_ELO, Verdicts
from venire.reports.json_values import json_values
from venire.reports.wording import counted

_NOT_RATED: dict[str, Any] = {
    **dict.fromkeys(("before", "now", "change", "se", "lo", "hi")),
    "changed": False,
    "reference": False,
}
"""The row of a model that the two do not rate together: it won or lost every battle in one of them."""


def changes_section(source: VerdictSource, before: VerdictSource, method: str, level: float) -> dict[str, Any]:
    """Each model of both with its Bradley-Terry ratings, the change beside the models that did not, and its interval.

    They are of judges' verdicts, or of people's votes where those are what `method` rates. The largest comes first.
    Raises InputError for fewer than two models in common, and as `venire.rate` and `rating_changes` do.
    """
    named = _named(before)
    verdicts = read(source), read(before)
    now, earlier = (_comparisons(one, method) for one in verdicts)
    common = sorted(set(now.models) & set(earlier.models))
    if len(common) < 2:
        raise InputError(f"--against {named}: it has fewer than two models in common with what is reported")
    try:
        found = rating_changes(earlier, now, level=level, seed=verdicts[0].seed)
    except InputError as error:
        raise InputError(f"--against {named}: {error}") from None
    known = {row.model: json_values(row) for row in found.models}
    rows = [known.get(model, {"model": model} | _NOT_RATED) for model in common]
    rows.sort(key=lambda row: (row["change"] is None, -abs(row["change"] or 0.0), row["model"]))
    instructions = {"before": found.clusters[0], "now": found.clusters[1], "shared": found.shared}
    says = _says(found, named, len(common))
    return {"against": named, "level": level, "instructions": instructions, "says": says, "models": rows}


def _says(found: RatingChanges, named: str, common: int) -> str:
    changed = [row.model for row in found.models if row.changed]
    word = f"Changed beyond chance: {few(changed)}." if changed else "None changed beyond chance."
    if changed and len(found.models) == 2:
        word = "The two models moved apart beyond chance, and of two nobody can say which one did."
    shared = f"{counted(found.shared, 'instruction')} judged in both" if found.shared else "no instruction of both"
    return (
        f"{word} {counted(common, 'model')} in common with {named}, rated by Bradley-Terry on battles of these alone, "
        f"paired by instruction ({shared}). Changes, and 'now', are beside the mean of the "
        f"{sum(row.reference for row in found.models)} models that are not told apart by their changes. "
        f"{100 * found.level:g}% intervals are of one model at a time; that a model changed is said of all together: "
        f"while most did not, the chance that any other is named is at most {100 * (1 - found.level):g}%. Judges, "
        "prompts or instructions that changed change ratings too."
    )


def _named(source: VerdictSource) -> str:
    """The file of a source and, where one was asked for, its campaign."""
    return Path(str(source.paths[0])).name + ("" if source.campaign is None else f", campaign {source.campaign}")


def _comparisons(verdicts: Verdicts, method: str) -> Comparisons:
    """The judgments of judges, or what people said where they are rated."""
    battles = verdicts.battles
    if battles.ballots is not None:
        raise InputError("--against compares verdicts on pairs: ballots are rated by themselves")
    if method == HUMAN_ELO and verdicts.people is not None:
        battles = verdicts.people.battles
    judgments = merge_selected(battles, Options(seed=verdicts.seed))
    data = judgments.comparisons()
    if method == HUMAN_ELO and judgments.human is not None:
        return replace(data, y=judgments.human).select(np.isfinite(judgments.human))
    return data
