"""Rate the models of a source of verdicts, or compare methods on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from venire.arena.choices import Ties
from venire.arena.errors import InputError
from venire.arena.keywords import spelled_out
from venire.arena.wording import few
from venire.ratings.inference.options import Options
from venire.reports.board.board import Board
from venire.reports.board.diagnostics import ReferenceReading, reference_reading
from venire.reports.board.files import read_files
from venire.reports.board.people import people_as_reference, people_of_table, ratings_by_people, with_people
from venire.reports.board.source import Rateable, SourceKeywords, VerdictSource, verdict_source
from venire.reports.board.stored import choose_campaign, in_order_of, read_campaign
from venire.reports.board.verdicts import Verdicts
from venire.reports.comparison import Comparison
from venire.reports.figures import Figures
from venire.storage.read import frames
from venire.storage.store.store import Store
from venire.storage.transfer.formats.tables import read_reference


@spelled_out(SourceKeywords, VerdictSource)
def rate(
    source: Rateable,
    *,
    method: str | None = None,
    ridge: float | None = None,
    ties: Ties | None = None,
    anchors: Mapping[str, float] | None = None,
    level: float | None = None,
    options: Options | None = None,
    reference: Path | str | None = None,
    accuracy_baseline: float | Sequence[float] = 0.0,
    figures: Figures | None = None,
    **reading: Unpack[SourceKeywords],
) -> Board:
    """The board of a store's campaign (the only one, unless named), or of verdicts in files or in a table in memory.

    `source` is the path of a store, the open `Store` (also one that this process has open for a run) or its campaign,
    the path of a file or several, or a table: of pandas, polars or Arrow, a dict of columns, or a list of dicts.
    `method` is a name of `registry.METHODS` or None (see `Verdicts`); `ridge`, `ties`, `anchors` (Elo by model) and
    `level` (0 to 1) are the options of that name, `options` all options, of which those named here are replaced; the
    other arguments are as in `VerdictSource`. `accuracy_baseline` is the share of answers that guessing gets right,
    which the filter of models by accuracy asks for, or several, each for a filter of its own; `figures` asks for more
    figures (`Figures`), which are among the diagnostics. Raises InputError for a source that cannot be read, an unknown
    campaign, and an argument that does not apply.

    >>> board = rate("campaign.duckdb")
    >>> board.verdicts, board.models[0].model, round(board.models[0].elo)
    ('simulated', 'strong', 1599)
    >>> rate([{"model_a": "oak", "model_b": "elm", "winner": "tie"}], level=0.9).models[0].elo
    1000.0
    """
    in_order = options is not None and options.order == "given"
    features = () if options is None else options.covariates
    verdicts = read(verdict_source(source, reference, **reading), features, in_order=in_order)
    given = {"ridge": ridge, "ties": ties, "anchors": anchors, "level": level}
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen = replace(options or Options(seed=verdicts.seed), **named) if named else options
    return verdicts.board(method, chosen, accuracy_baseline=accuracy_baseline, figures=figures)


@spelled_out(SourceKeywords, VerdictSource)
def compare(
    source: Rateable,
    *,
    methods: Sequence[str] = (),
    options: Options | None = None,
    reference: Path | str | None = None,
    **reading: Unpack[SourceKeywords],
) -> Comparison:
    """Several methods side by side on the same verdicts: the named methods, or all that apply.

    Each method is also held against known ratings (`reference`, or those of a store) and against the accuracy of graded
    models. The source, the other arguments and errors are those of `rate`; `options` go to each method that takes them.

    >>> compare("campaign.duckdb", methods=("bradley-terry", "kemeny")).kendall[0]
    1.0
    """
    verdicts = read(verdict_source(source, reference, **reading))
    return verdicts.compare(methods, options or Options(seed=verdicts.seed))


def read(source: VerdictSource, features: Sequence[str] = (), *, in_order: bool = False) -> Verdicts:
    """The verdicts of a store's campaign or of files; `features` names the covariates to read with them.

    Those of files are in the order of their rows, those of a store in the order in which they came, if `in_order`.

    Raises InputError for a path that cannot be read, an unknown campaign, and an argument that does not apply.
    """
    with source.opened() as store:
        found = _of_files(source, features) if store is None else _of_store(store, source, features, in_order)
        if source.unattempted == "drop":
            found = found.attempted()
        if source.reference is None:
            return found
        if (people := people_as_reference(source, found)) is not None:
            ratings, reading = ratings_by_people(people, found)
        else:
            ratings, reading = _reference_ratings(source.reference, found.battles.models, found.reference)
    return replace(found, reference=ratings, reference_reading=reading)


def _of_files(source: VerdictSource, features: Sequence[str]) -> Verdicts:
    verdicts = read_files(source, features)
    return verdicts if source.human is None else people_of_table(verdicts, source.human)


def _of_store(store: Store, source: VerdictSource, features: Sequence[str], in_order: bool) -> Verdicts:
    campaign = choose_campaign(store, source.campaign)
    found = read_campaign(store, campaign, features)
    if in_order and found.battles.ballots is None:
        timed = frames.battles_in_time(store, campaign.id)
        found = replace(found, battles=in_order_of(timed.battles, timed.seconds, found.battles.peers))
    return with_people(store, found, source.human).clustered(source.clustering)


def _reference_ratings(
    path: Path, models: Collection[str], known: Mapping[str, float]
) -> tuple[dict[str, float], ReferenceReading]:
    """The ratings of a file, and how they are used beside `models`; `known` are those of a store, which they replace.

    Raises `InputError` where the file rates none of `models`, and as `read_reference` does.
    """
    found = read_reference(path)
    if models and not found.keys() & set(models):
        raise InputError(
            f"{path} rates none of the models that were judged; it rates {few(sorted(found))}; judged were "
            f"{few(sorted(models))}: give both the same names"
        )
    return found, reference_reading(found, models, known, file=str(path))
