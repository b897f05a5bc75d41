"""Make a board: rate the models and measure the judges of one table of verdicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import Origin
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.result import Rated
from venire.ratings.inference.options import Options
from venire.ratings.judges.consistency import consistency
from venire.ratings.methods.methods import merge_selected, rate, select_verdicts
from venire.ratings.pairwise.components import unrated
from venire.reports.board.board import Board
from venire.reports.board.diagnostics import (
    agreement_facts,
    agreement_with,
    coin_facts,
    count_facts,
    elo_facts,
    error_facts,
    pair_facts,
    peer_facts,
    people_facts,
)
from venire.reports.board.model_rows import model_rows, outside_ratings
from venire.reports.chart_data import ChartSource
from venire.reports.wording import alike_text


def build(
    battles: Battles,
    *,
    reference: Mapping[str, float] | None = None,
    origins: Collection[Origin],
    method: str = "bradley-terry",
    options: Options | None = None,
    families: Mapping[str, str] | None = None,
    judge_families: Mapping[str, str] | None = None,
    judge_elo: Mapping[str, float] | None = None,
) -> Board:
    """Rate the models and measure the judges of one table of verdicts.

    `reference` holds known Elo points by model, `origins` the origins of the verdicts, `families` and
    `judge_families` the family of each model and judge, `judge_elo` the known Elo of the judges themselves. Where
    no common estimate exists, each group of models is rated separately and the diagnostics name the groups; a model
    alone in its group has no Elo. Raises `InputError` for verdicts of several origins or of none, for an unknown
    method, an option that it does not take or a column that it lacks, and for a table that cannot be read.
    """
    chosen = options or Options()
    origin = _one_origin(battles, origins)
    judgments = merge_selected(battles, chosen)
    rated = rate(battles, method, chosen) if len(judgments) else _nothing(judgments)
    judges = consistency(
        battles,
        families=families,
        judge_families=judge_families,
        elo=reference,
        level=chosen.level,
    )
    met = agreement_with(rated, reference, chosen.level)
    measured = judges.judges if len(battles.status) else ()
    return Board(
        method=method,
        gauge=rated.ratings.gauge,
        verdicts=origin,
        models=model_rows(judgments, rated, reference or {}, outside_ratings(judgments, rated, chosen.level)),
        judges=measured,
        judge_figures=_judge_figures(rated, [row.judge for row in measured]),
        ordered=rated.position is not None,
        evidence=ChartSource(battles, method, chosen),
        diagnostics={
            "reason": None if len(judgments) else "there is no readable verdict to rate from",
            **count_facts(battles, judgments, rated, chosen),
            **error_facts(rated, chosen, judges, judgments),
            "groups": [list(group) for group in rated.groups],
            "pairs": pair_facts(judgments),
            "fits": list(rated.fits),
            "no_estimate": dict(rated.reasons),
            **_with_notes(rated.diagnostics, alike_text(battles.models)),
            "agreement": agreement_facts(met, origin, rated),
            "agreement_reason": met.reason,
            **elo_facts(judges, judge_elo or {}, origin),
            **people_facts(judgments, battles.people, chosen),
            **coin_facts(battles, chosen),
            **peer_facts(judgments, select_verdicts(battles, chosen).ballots, battles.peers, chosen.level),
        },
    )


def _with_notes(facts: Mapping[str, Any], *notes: str | None) -> dict[str, Any]:
    """A method's diagnostics with more notes before its own."""
    found = [note for note in notes if note]
    return {**facts, "notes": [*found, *facts.get("notes", ())]} if found else dict(facts)


def _one_origin(battles: Battles, origins: Collection[Origin]) -> str | None:
    words = sorted({origin.value for origin in origins})
    if len(words) > 1:
        raise InputError(f"the verdicts are of several origins ({', '.join(words)}); rate one origin at a time")
    if not words and len(battles.status):
        raise InputError("the origin of the verdicts is not given; name it: real, simulated, recorded or people")
    return words[0] if words else None


def _nothing(judgments: Judgments) -> Rated:
    return unrated(judgments.comparisons(), dict.fromkeys(judgments.models, "took part in no readable judgment"))


def _judge_figures(rated: Rated, judges: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """The method's figures of judges, by figure and by judge; infinite values stay distinct from unknown values."""
    return {
        name: dict.fromkeys(judges)
        | {
            judge: None if math.isnan(value) else value
            for judge, value in zip(rated.judges, column.tolist(), strict=True)
            if judge in set(judges)
        }
        for name, column in rated.judge_figures.items()
    }
