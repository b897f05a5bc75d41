"""Make a board from verdicts in a store or in a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles
from venire.arena.campaigns import CampaignSettings
from venire.arena.choices import BothBad, Ties, Unranked
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_with
from venire.arena.records import EDIT, GENERATE, Origin, Shape
from venire.arena.wording import few
from venire.boards.grades import StoredGrades, graders, read_grades
from venire.configs.loading import resolve, store_of
from venire.configs.schema import Campaign
from venire.judges import PROTOCOLS
from venire.orchestrator.policies import POLICIES
from venire.ratings.data.ballots import to_battles
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.data.models import model_of_judge
from venire.ratings.data.people import split_people
from venire.ratings.data.style import FAMILY, STYLE_NAMES, same_family, style_covariates
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, ignored_options
from venire.ratings.soft_elo.soft_elo import human_elo
from venire.reports import comparison
from venire.reports.board import Board, build, with_grades
from venire.reports.chart_data import ChartSource, Cost, Costs
from venire.reports.comparison import Comparison
from venire.reports.echoes import with_echo_pairs
from venire.reports.edits import edit_contrasts
from venire.reports.figures import Figures, figures_of
from venire.reports.rank_agreement import with_rank_agreement
from venire.reports.wording import alike_text
from venire.storage.plans import plans
from venire.storage.read import frames
from venire.storage.read.judge_quality import completion_costs, judge_readability
from venire.storage.store.opening import reading
from venire.storage.store.store import Store
from venire.storage.transfer.formats import TABLE, guess, read_verdicts
from venire.storage.transfer.formats.ballots import BallotTable, has_ballots, read_ballot_table
from venire.storage.transfer.formats.battles import read_battle_table
from venire.storage.transfer.formats.judged import ImportedVerdicts
from venire.storage.transfer.formats.source import TableSource
from venire.storage.transfer.formats.tables import read_reference
from venire.storage.transfer.memory import MemoryTable, is_table, memory_table

DEFAULT_METHOD = "bradley-terry"
HUMAN_ELO = "human-elo"
ANY_PEOPLE = "people"
"""As a reference or as `--human`: the only group of people that a store has votes of."""
_CHOSEN = (
    "the policy of this campaign chose pairs by what was known of them: rated as if all had been asked alike (--method "
    "bradley-terry: as they were asked)"
)
_AS_ASKED = (
    "rated as pairs were asked, which the policy of this campaign chose by what was known of them: its looks are by "
    "--method even-pairs"
)
_BALLOTS = "ballots"
"""The format of a table of ballots, as `--format` names it."""

PLACING = "place "
"""Prefix of the names of placement campaigns, which are never chosen without being named."""

Rateable = Any
"""A store's path, the open `Store`, or its campaign; the path of a file of verdicts, or several; or a table in memory:
of pandas, polars or Arrow, a dict of columns, or a list of dicts, with the columns that a file would have."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of verdicts: a store's campaign, or files or a table in memory, and how to read them.

    `mapping` maps our column names to the files', `values` a table's words for winners to ours, `where` keeps rows by
    column and value, `cluster` names the column
    whose rows share their noise ("none": no column). `origin` is the origin of a file's verdicts, by default
    "recorded"; a store contains its own. `form` is the files' format (`storage.transfer.formats`), by default inferred
    from the columns. `both_bad` sets how a "both are bad" verdict counts, and `baseline` is the opponent of all models
    where the files do not name it. `reference` is a file of known ratings, or a group of people by its name ("people":
    the only one), whose votes are rated; it replaces the ratings of a store. `human` names the people whose votes
    judges are compared with: a group of a store, by default its only one, or a judge of a table. `unranked` sets how a
    model without a row on a ballot counts (`ratings.ballots`).
    """

    paths: tuple[TableSource, ...]
    campaign: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    cluster: str | None = None
    origin: Origin | None = None
    form: str | None = None
    both_bad: BothBad | None = None
    baseline: str | None = None
    reference: Path | None = None
    unranked: Unranked = "below"
    human: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class People:
    """A group of people by name, with its votes; `origin` is "people", or "simulated" in a rehearsal."""

    name: str
    origin: Origin
    battles: Battles

    def facts(self) -> dict[str, Any]:
        """How many they are and what they gave, as plain JSON values."""
        return {
            "name": self.name,
            "origin": self.origin.value,
            "annotators": len(self.battles.judges),
            "votes": len(self.battles.label),
        }


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts and related data; `facts` describe how a file's rows were used, `reference_facts` how its ratings were.

    `ballots` are the verdicts of ballot judges next to those of pair judges, for methods that need ballots; `note`
    reports to other methods that ballots were left out. `method` is the default method: even-pairs, as in the
    campaign's interim analyses, where a policy chose pairs by what was known of them. `grades` are those of the store,
    `edited` verdicts with an edited completion, by edit and side. `people` are those whose votes are beside the
    verdicts (`battles.people`), `groups` the names of all groups whose votes there are. `in_time` and `costs` are what
    charts read of a store (`reports.chart_data.ChartSource`); the rows of a table are in the order of the table.
    """

    battles: Battles
    origins: Collection[Origin]
    reference: Mapping[str, float] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    judge_families: Mapping[str, str] = field(default_factory=dict)
    judge_elo: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    facts: Mapping[str, Any] | None = None
    reference_facts: Mapping[str, Any] | None = None
    ballots: Battles | None = None
    note: str | None = None
    method: str = DEFAULT_METHOD
    grades: StoredGrades | None = None
    edited: Mapping[tuple[str, str], Battles] = field(default_factory=dict)
    people: People | None = None
    groups: tuple[str, ...] = ()
    in_time: Callable[[], Battles] | None = None
    costs: Callable[[], Costs] | None = None

    def board(
        self,
        method: str | None = None,
        options: Options | None = None,
        *,
        accuracy_baseline: float = 0.0,
        figures: Figures | None = None,
    ) -> Board:
        """The board by one method, with what `figures` asks for among its diagnostics.

        None: the default method of these verdicts, or Bradley-Terry if the default does not take a given option. Raises
        InputError as `reports.board.build`, `with_rank_agreement` and `figures_of` do.
        """
        options, chosen = options or Options(seed=self.seed), method is None
        method = method or (DEFAULT_METHOD if ignored_options(self.method, options) else self.method)
        self._refuse_unnamed_people(method)
        if self.people is not None and method == HUMAN_ELO:
            return self._board_of_people(self.people, options)
        needed = self.ballots is not None and method in METHODS and "ballots" in METHODS[method].needs
        battles = self.ballots if self.ballots is not None and needed else self.battles
        board = build(
            battles,
            reference=self.reference,
            origins=self.origins,
            method=method,
            options=options,
            families=self.families,
            judge_families=self.judge_families,
            judge_elo=self.judge_elo,
        )
        board = replace(board, evidence=self.evidence(battles, board.method, options))
        extra: dict[str, Any] = {"source": self.facts, "reference": self.reference_facts}
        if self.people is not None:
            extra["people"] = {**self.people.facts(), **(board.diagnostics.get("people") or {})}
        notes = [] if self.note is None or needed else [self.note]
        notes += [_CHOSEN] if chosen and method != DEFAULT_METHOD else []
        notes += [_AS_ASKED] if self.method != DEFAULT_METHOD == method else []
        if notes:
            extra["notes"] = [*board.diagnostics.get("notes", ()), *notes]
        if figures is not None:
            extra |= figures_of(battles, method, options, figures, self.reference)
        more = {name: facts for name, facts in extra.items() if facts is not None}
        board = replace(board, diagnostics={**board.diagnostics, **more}) if more else board
        if self.grades is None:
            return self._with_edits(board, options)
        board = with_grades(board, self.grades.board(options.level))
        board = with_rank_agreement(board, self.grades.grades, battles, options, accuracy_baseline=accuracy_baseline)
        return self._with_edits(with_echo_pairs(board, self.grades.grades, battles, options), options)

    def evidence(self, battles: Battles, method: str, options: Options) -> ChartSource:
        """The verdicts behind a board or an audit of `battles`, for charts."""
        source = ChartSource(battles, method, options, self.in_time, self.costs)
        if self.costs is None and self.in_time is None and battles.ballots is None:  # a table
            source = replace(source, in_time=partial(_as_they_are, battles), sequence="verdicts, in the table's order")
        return source

    def _with_edits(self, board: Board, options: Options) -> Board:
        """The board with the contrasts of edited completions, where any was judged."""
        if not self.edited:
            return board
        table = None if board.grades is None else board.grades.accuracy
        found = edit_contrasts(
            self.edited,
            self.battles,
            options,
            grades=None if self.grades is None else self.grades.grades,
            protocol=None if table is None else table.protocol,
        )
        return replace(board, edits=found)

    def _refuse_unnamed_people(self, method: str) -> None:
        """Raises InputError where a method needs people's votes, and several groups gave some."""
        needs = METHODS[method].needs if method in METHODS else ()
        if "human" in needs and self.people is None and self.battles.human is None and len(self.groups) > 1:
            raise InputError(
                f"{method} needs people's votes, and the store has several: name one with {setting('human')}: "
                f"{', '.join(self.groups)}"
            )

    def _board_of_people(self, people: People, options: Options) -> Board:
        """The board of what people said themselves, whoever else judged."""
        votes = replace(people.battles, human=0.5 + 0.5 * people.battles.label.astype(np.float64))
        board = build(
            votes,
            reference=self.reference,
            origins=[people.origin],
            method=HUMAN_ELO,
            options=options,
            families=self.families,
        )
        more = {"people": people.facts(), **({"reference": self.reference_facts} if self.reference_facts else {})}
        return replace(board, diagnostics={**board.diagnostics, **more})

    def compare(self, methods: Sequence[str], options: Options) -> Comparison:
        """Several methods on these verdicts; raises InputError as `reports.comparison.compare` does."""
        self.refuse_grades_alone()
        known: dict[str, tuple[str, Mapping[str, float]]] = {}
        if self.reference.keys() & set(self.battles.models):
            file = self.reference_facts["file"] if self.reference_facts is not None else "the store"
            known["reference"] = (f"ratings of {file}", self.reference)
        table = None if self.grades is None else self.grades.board(options.level).accuracy
        if table is not None and table.accuracy:
            known["accuracy"] = (f"grades by {table.protocol}", table.accuracy)
        notes = [*(self.facts or {}).get("notes", ()), *filter(None, [alike_text(self.battles.models)])]
        return replace(comparison.compare(self.battles, methods, options, known), notes=tuple(notes))

    def refuse_grades_alone(self) -> None:
        """Raise InputError where there are grades and no verdict that sets one model above another."""
        if self.grades is not None and not len(self.battles.status):
            raise InputError(
                f"there are grades alone, of {few(self.grades.campaigns)}, and no verdicts on pairs or lists: `venire "
                "rate` shows the accuracy of models from them"
            )


def places(source: Rateable) -> tuple[TableSource, ...]:
    """What a caller names as the source of verdicts: paths, or one table in memory; a campaign names its store.

    Raises InputError for anything else, and as `store_of` does.
    """
    if isinstance(source, Campaign | CampaignSettings):
        return (resolve(source).store,)
    if isinstance(source, str | Path):
        return (store_of(Path(source)),)
    if isinstance(source, Store):
        return (source.path,)
    if is_table(source):
        return (memory_table(source),)
    if isinstance(source, Sequence) and all(isinstance(one, str | Path) for one in source):
        return tuple(Path(one) for one in source)
    raise InputError(
        f"verdicts cannot be read from {type(source).__name__}: give the path of a store or of files, an open store, a "
        "table of pandas, polars or Arrow, a dict of columns, or a list of dicts"
    )


def is_store(path: TableSource) -> TypeGuard[Path]:
    """Whether a file is a DuckDB database, by its first bytes; a missing file is classified by its suffix.

    Raises InputError for a folder.
    """
    if isinstance(path, MemoryTable):
        return False
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a store or a table of battles")
    if not path.exists():
        return path.suffix in (".duckdb", ".db")
    with path.open("rb") as file:
        return file.read(12)[8:12] == b"DUCK"


def rate(
    source: Rateable,
    *,
    method: str | None = None,
    ridge: float | None = None,
    ties: Ties | None = None,
    anchors: Mapping[str, float] | None = None,
    level: float | None = None,
    options: Options | None = None,
    campaign: str | None = None,
    mapping: Mapping[str, str] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    cluster: str | None = None,
    origin: Origin | None = None,
    form: str | None = None,
    both_bad: BothBad | None = None,
    baseline: str | None = None,
    reference: Path | str | None = None,
    accuracy_baseline: float = 0.0,
    figures: Figures | None = None,
    human: str | None = None,
    values: Mapping[str, str] | None = None,
) -> Board:
    """The board of a store's campaign (the only one, unless named), or of verdicts in files or in a table in memory.

    `source` is the path of a store, the open `Store` (also one that this process has open for a run) or its campaign,
    the path of a file or several, or a table: of pandas, polars or Arrow, a dict of columns, or a list of dicts.
    `method` is a name of `registry.METHODS` or None (see `Verdicts`); `ridge`, `ties`, `anchors` (Elo by model) and
    `level` (0 to 1) are the options of that name, `options` all options, of which those named here are replaced; the
    other arguments are as in `Source`. `accuracy_baseline` is the share of answers that guessing gets right, which the
    filter of models by accuracy asks for, `figures` asks for more figures (`Figures`), which are among the diagnostics.
    Raises InputError for a source that cannot be read, an unknown campaign, and
    an argument that does not apply.

    >>> board = rate("campaign.duckdb")
    >>> board.verdicts, board.models[0].model, round(board.models[0].elo)
    ('simulated', 'strong', 1599)
    >>> rate([{"model_a": "oak", "model_b": "elm", "winner": "tie"}], level=0.9).models[0].elo
    1000.0
    """
    found = Source(
        places(source),
        campaign,
        mapping or {},
        where or {},
        cluster,
        origin,
        form,
        both_bad,
        baseline,
        None if reference is None else Path(reference),
        human=human,
        values=values or {},
    )
    in_order = options is not None and options.order == "given"
    verdicts = read(found, () if options is None else options.covariates, in_order=in_order)
    given = {"ridge": ridge, "ties": ties, "anchors": anchors, "level": level}
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen = replace(options or Options(seed=verdicts.seed), **named) if named else options
    return verdicts.board(method, chosen, accuracy_baseline=accuracy_baseline, figures=figures)


def compare(
    source: Rateable,
    *,
    methods: Sequence[str] = (),
    options: Options | None = None,
    campaign: str | None = None,
    mapping: Mapping[str, str] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    cluster: str | None = None,
    origin: Origin | None = None,
    form: str | None = None,
    both_bad: BothBad | None = None,
    baseline: str | None = None,
    reference: Path | str | None = None,
    human: str | None = None,
    values: Mapping[str, str] | None = None,
) -> Comparison:
    """Several methods side by side on the same verdicts: the named methods, or all that apply.

    Each method is also held against known ratings (`reference`, or those of a store) and against the accuracy of graded
    models. The source, the other arguments and errors are those of `rate`; `options` go to each method that takes them.

    >>> compare("campaign.duckdb", methods=("bradley-terry", "kemeny")).kendall[0]
    1.0
    """
    rest = (mapping or {}, where or {}, cluster, origin, form, both_bad, baseline)
    given = None if reference is None else Path(reference)
    verdicts = read(Source(places(source), campaign, *rest, given, human=human, values=values or {}))
    return verdicts.compare(methods, options or Options(seed=verdicts.seed))


def read(source: Source, features: Sequence[str] = (), *, in_order: bool = False) -> Verdicts:
    """The verdicts of a store's campaign or of files; `features` names the covariates to read with them.

    Those of files are in the order of their rows, those of a store in the order in which they came, if `in_order`.

    Raises InputError for a path that cannot be read, an unknown campaign, and an argument that does not apply.
    """
    found = _read(source, features, in_order)
    if source.reference is None:
        return found
    if (people := _people_as_reference(source, found)) is not None:
        ratings, facts = _ratings_by_people(people, found)
    else:
        ratings, facts = _reference_ratings(source.reference, found.battles.models, found.reference)
    return replace(found, reference=ratings, reference_facts=facts)


def _people_as_reference(source: Source, found: Verdicts) -> People | None:
    """The people whom a reference names; None where it is a file. Raises InputError where several may be meant."""
    name = str(source.reference)
    if source.reference is None or source.reference.exists():
        return None
    if found.people is not None and name in (found.people.name, ANY_PEOPLE):
        return found.people
    if name not in (*found.groups, ANY_PEOPLE):
        if source.reference.suffix:
            return None
        known = f"votes are here of {few(found.groups)}" if found.groups else "there are no votes of people here"
        raise InputError(f"{setting('reference')} {name}: no file is called so, and no people; {known}")
    if not found.groups:
        raise InputError(
            f"{setting('reference')} {name}: there are no votes of people here: `venire import votes` brings them into "
            f"a store, and {setting_with('human', 'NAME')} names those of a table"
        )
    with reading(_store_path(source)) as store:
        return _chosen_people(store, name, setting("reference"))


def _store_path(source: Source) -> Path:
    (path,) = source.paths
    assert isinstance(path, Path)  # groups of people are in stores alone
    return path


def _chosen_people(store: Store, name: str, option: str) -> People:
    """A group of people of a store by name, or its only one. Raises InputError that lists those there are."""
    there = frames.people(store)
    named = [one for one in there if one.name == name]
    named = named or (list(there) if name == ANY_PEOPLE else [])
    if len(named) != 1:
        known = ", ".join(one.name for one in there) or "none; `venire import votes` brings some"
        raise InputError(f"{option} {name}: name one group of people whose votes are in {store.path}: {known}")
    return People(named[0].name, named[0].origin, frames.votes(store, named[0].id))


def _with_people(store: Store, found: Verdicts, human: str | None) -> Verdicts:
    """The verdicts of a store beside the votes of the people named, or of its only group."""
    groups = tuple(one.name for one in frames.people(store))
    if human is None and len(groups) != 1:
        return replace(found, groups=groups)
    people = _chosen_people(store, groups[0] if human is None else human, setting("human"))
    battles = replace(found.battles, people=people.battles)
    ballots = None if found.ballots is None else replace(found.ballots, people=people.battles)
    return replace(found, battles=battles, ballots=ballots, people=people, groups=groups)


def _people_of_table(found: Verdicts, human: str) -> Verdicts:
    """The verdicts of a table without those of the judge `human`, who is people."""
    battles, votes = split_people(found.battles, [human])
    simulated = Origin.of_model(human) is Origin.SIMULATED
    people = People(human, Origin.SIMULATED if simulated else Origin.PEOPLE, votes)
    return replace(found, battles=replace(battles, people=votes), people=people, groups=(human,))


def _ratings_by_people(people: People, found: Verdicts) -> tuple[dict[str, float], dict[str, Any]]:
    """Ratings of the models that people voted on, by Bradley-Terry with a slight ridge, and facts about them."""
    votes = merge_orders(people.battles).comparisons()
    rated = human_elo(votes, votes.y, errors="none")
    elo = {name: float(value) for name, value in zip(rated.models, rated.elo, strict=True) if np.isfinite(value)}
    models = set(found.battles.models)
    shared = elo.keys() & models
    if models and not shared:
        raise InputError(f"{setting('reference')} {people.name}: people voted on none of the models that were judged")
    return elo, {
        "file": None,
        "people": people.facts(),
        "ratings": len(elo),
        "shared": len(shared),
        "not_judged": sorted(elo.keys() - shared),
        "not_rated": sorted(models - shared),
        "replaces": len(found.reference),
    }


def _read(source: Source, features: Sequence[str], in_order: bool) -> Verdicts:
    if not source.paths:
        raise InputError("nothing was named: name a store or files of verdicts")
    stores = [one for one in source.paths if is_store(one)]
    if stores and len(source.paths) > 1:
        raise InputError(f"{stores[0]} is a store: rate it by itself, or `venire store merge` several")
    if not stores:
        read_files = _read_files(source, features)
        return read_files if source.human is None else _people_of_table(read_files, source.human)
    _refuse_for_store(source)
    if source.cluster not in (None, "none", "instruction_id"):
        raise InputError(
            f"{source.paths[0]} is a store: {setting('cluster')} takes instruction_id, the default, or none"
        )
    with reading(stores[0]) as store:
        found = read_campaign(store, choose_campaign(store, source.campaign), features)
        if in_order and found.battles.ballots is None:
            timed = frames.battles_in_time(store, choose_campaign(store, source.campaign).id)
            found = replace(found, battles=in_order_of(timed.battles, timed.seconds, found.battles.peers))
        found = _with_people(store, found, source.human)
    clustered = source.cluster != "none"
    grades = None if found.grades is None else found.grades.clustered(clustered)
    ballots = None if found.ballots is None else replace(found.ballots, clustered=clustered)
    edited = {key: replace(one, clustered=clustered) for key, one in found.edited.items()}
    battles = replace(found.battles, clustered=clustered)
    return replace(found, battles=battles, ballots=ballots, grades=grades, edited=edited)


def _refuse_for_store(source: Source) -> None:
    given = {
        "mapping": source.mapping,
        "values": source.values,
        "where": source.where,
        "origin": source.origin,
        "form": source.form,
        "both_bad": source.both_bad,
        "baseline": source.baseline,
        "unranked": source.unranked != "below",
    }
    if said := [setting(name) for name, value in given.items() if value]:
        raise InputError(
            f"{source.paths[0]} is a store, which knows its columns and origins: leave {', '.join(said)} out"
        )


def _read_files(source: Source, features: Sequence[str]) -> Verdicts:
    if source.campaign is not None:
        raise InputError(
            f"{source.paths[0]} is a table of battles and has no campaigns: leave {setting('campaign')} out"
        )
    origins = [source.origin or Origin.RECORDED]
    given = {
        "values": source.values,
        "both_bad": source.both_bad,
        "baseline": source.baseline,
        "covariate": features,
        "cluster": source.cluster not in (None, "none", "instruction_id"),
    }
    voted = _file_ballots(
        source.paths, source.form, mapping=source.mapping, where=source.where, unranked=source.unranked, given=given
    )
    if voted is not None:
        pairs = to_battles(voted.ballots)
        return Verdicts(replace(pairs, clustered=source.cluster != "none"), origins, facts=voted.facts())
    form = TABLE if source.cluster not in (None, "none") or features else source.form
    found: ImportedVerdicts | None = read_verdicts(
        source.paths,
        form,
        mapping=source.mapping,
        values=source.values,
        baseline=source.baseline,
        where=source.where,
    )
    if found is not None:
        both_bad = source.both_bad or "tie"
        battles = replace(found.fitted(both_bad), clustered=source.cluster is None)
        return Verdicts(battles, origins, facts=found.facts(both_bad))
    if len(source.paths) > 1:
        raise InputError(f"{source.paths[1]}: a plain table is rated by itself; put the tables together into one")
    if source.both_bad is not None or source.baseline is not None:
        raise InputError(
            f"{source.paths[0]} is a plain table, which names both models and knows no both-bad verdicts: leave "
            f"{setting('both_bad')} and {setting('baseline')} out"
        )
    table = read_battle_table(
        source.paths[0],
        source.mapping,
        values=source.values,
        where=source.where,
        cluster=source.cluster,
        features=[name for name in features if name != "position"],
    )
    return Verdicts(table.battles, origins, facts=table.facts())


def read_campaign(store: Store, campaign: frames.CampaignRow, features: Sequence[str] = ()) -> Verdicts:
    """The verdicts of one campaign of an open store, with the store's data on its models and judges.

    Ballots become pairs; if there are judges of pairs as well, ballots are kept separate. A campaign whose judges
    grade single completions has no battles. Raises InputError for a campaign without judges of any kind, and for
    covariates of ballots.
    """
    judges = frames.judges(store, campaign.id)
    shapes = {judge.name: PROTOCOLS[judge.protocol].shape for judge in judges if judge.protocol in PROTOCOLS}
    of_lists = [judge for judge in judges if shapes.get(judge.name) is Shape.LIST]
    pairs = not shapes or Shape.PAIR in shapes.values()
    if not pairs and not of_lists and not graders(judges):
        raise InputError(f"campaign {campaign.name!r} has no judge whose verdicts say anything of models")
    if features and not pairs:
        kind = "ballots" if of_lists else "grades"
        raise InputError(f"campaign {campaign.name!r} has {kind} alone, which have no covariates: leave them out")
    families = frames.families(store)
    judge_families = {judge.name: judge.family for judge in judges if judge.family is not None}
    ballots = _campaign_ballots(store, campaign) if of_lists else None
    if ballots is not None and not pairs:
        battles = ballots
        peers = _judging_models(store, judges, battles.models)
    else:
        battles, shown = frames.battles_shown(store, campaign.id)
        peers = _judging_models(store, judges, battles.models)
        itself = (model_of_judge(battles.judges, battles.models, peers) >= 0).any()
        names = features or (STYLE_NAMES if itself else ())  # what a judge likes in its own answers besides itself
        known = families, judge_families
        battles = replace(battles, features=_covariates(store, campaign.id, battles, shown, names, *known))
    origins = {judge.origin for judge in judges}
    return Verdicts(
        replace(battles, peers=peers),
        origins=origins,
        reference=frames.elos(store),
        families=families,
        judge_families=judge_families,
        judge_elo={judge.name: judge.elo for judge in judges if judge.elo is not None},
        seed=campaign.seed,
        ballots=replace(ballots, peers=_judging_models(store, judges, ballots.models))
        if ballots is not None and pairs
        else None,
        note=_ballots_left_out(of_lists) if of_lists and pairs else None,
        method="even-pairs" if pairs and _chose(store, campaign) else DEFAULT_METHOD,
        grades=read_grades(store, campaign, origins, battles.models),
        edited=frames.edited_battles(store, campaign.id) if pairs else {},
        in_time=partial(_in_time, store.path.resolve(), campaign.id, peers) if pairs else None,
        costs=partial(_costs, store.path.resolve(), campaign.id),
    )


def _as_they_are(battles: Battles) -> Battles:
    return battles


def _in_time(path: Path, campaign: int, peers: Mapping[str, str]) -> Battles:
    """The verdicts of a store's campaign in the order in which they were given."""
    with reading(path) as store:
        timed = frames.battles_in_time(store, campaign)
    return in_order_of(timed.battles, timed.seconds, peers)


def in_order_of(battles: Battles, seconds: NDArray[np.float64], peers: Mapping[str, str]) -> Battles:
    """Verdicts in the order of their times (rows,), without covariates; those without a time are last."""
    rows = select_battles(battles, np.argsort(seconds, kind="stable"))
    return replace(rows, features={}, peers=peers)


def _costs(path: Path, campaign: int) -> Costs:
    """What a campaign's verdicts cost by judge, and completions that contestants wrote for the store by model."""
    with reading(path) as store:
        models = [Cost(one.model, one.nano, one.completions, one.deviation) for one in completion_costs(store)]
        judges = tuple(Cost(one.judge, one.cost, one.settled) for one in judge_readability(store, campaign))
    return Costs(judges, tuple(models))


def read_stored(store: Store, campaign: frames.CampaignRow, human: str | None = None) -> Verdicts:
    """The verdicts of one campaign of an open store, with the votes of the people named, or of its only group.

    Raises InputError for a group that the store does not have, with those that it has.
    """
    return _with_people(store, read_campaign(store, campaign), human)


def select_verdicts(
    store: Store, verdicts: Verdicts, *, judges: Collection[str] = (), category: str | None = None
) -> Verdicts:
    """The verdicts of some judges (none named: of all), or on the instructions of one category, of a store's campaign.

    Raises InputError where there are none.
    """
    battles = verdicts.battles
    if battles.ballots is not None:
        raise InputError("ballots are rated together: leave judge and category out")
    rows = np.ones(len(battles.label), dtype=np.bool_)
    if judges:
        rows &= np.array([name in judges for name in battles.judges], dtype=np.bool_)[battles.judge]
    if category is not None:
        wanted = {name for name, kind in store.read("instruction_categories") if kind == category}
        rows &= np.array([name in wanted for name in battles.instructions], dtype=np.bool_)[battles.instruction]
    if not rows.any():
        raise InputError("no verdict is of these judges and this category")
    kept = select_battles(battles, rows)
    return replace(verdicts, battles=kept, grades=None, edited={}, ballots=None, note=None, in_time=None)


def _chose(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether a policy chose pairs of the board by what was known of the models."""
    if campaign.name.startswith(PLACING):
        return False
    return any(POLICIES[one.policy].adaptive for one in plans.rounds(store, campaign.id) if one.policy in POLICIES)


def _generates(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether a campaign asks contestants or editors and has no judges."""
    asked = frames.judges(store, campaign.id)
    return bool(asked) and all(one.protocol in (GENERATE, EDIT) for one in asked)


def _rates_models(store: Store, campaign: frames.CampaignRow) -> bool:
    """Whether any judge of a campaign sets one model above another, and does not grade each by itself."""
    judges = frames.judges(store, campaign.id)
    return len(graders(judges)) < len(judges)


def choose_campaign(store: Store, name: str | None) -> frames.CampaignRow:
    """The named campaign, or the only one that judges and does not place a model on another campaign's board.

    A campaign that rates models comes before those that only grade completions, whose grades its board shows too.
    Raises InputError that lists the existing campaigns.
    """
    there = [one for one in frames.campaigns(store) if not _generates(store, one)]
    if not there:
        raise InputError(f"the store {store.path} has no campaign yet: `venire run FILE` starts one")
    names = ", ".join(one.name for one in there)
    if name is None:
        boards = [one for one in there if not one.name.startswith(PLACING)]
        rated = [one for one in boards if _rates_models(store, one)]
        there = next((those for those in (boards, rated) if len(those) == 1), there)
        if len(there) > 1:
            raise InputError(f"the store {store.path} has several campaigns, name one with --campaign: {names}")
        return there[0]
    for one in there:
        if one.name == name:
            return one
    raise InputError(f"the store {store.path} has no campaign {name!r}; there are: {names}")


def _covariates(
    store: Store,
    campaign: int,
    battles: Battles,
    shown: tuple[NDArray[np.int64], NDArray[np.int64]],
    names: Sequence[str],
    families: Mapping[str, str],
    judge_families: Mapping[str, str],
) -> dict[str, NDArray[np.float64]]:
    """The named covariates of battles (rows,): of style, from the texts that were shown, and of family.

    `position` follows from the order shown and needs no column. Raises InputError for any other name.
    """
    known = (*STYLE_NAMES, FAMILY, "position")
    if strange := [name for name in names if name not in known]:
        raise InputError(f"a store knows no covariate {strange[0]!r}; it knows {', '.join(known)}")
    found: dict[str, NDArray[np.float64]] = {}
    if set(names) & set(STYLE_NAMES):
        table = styles(store, campaign, shown)
        found = {name: table[name] for name in names if name in STYLE_NAMES}
    if FAMILY in names:
        own = [judge_families.get(judge, families.get(judge)) for judge in battles.judges]
        of_model = [families.get(model) for model in battles.models]
        sides = ([of_model[code] for code in side.tolist()] for side in (battles.model_a, battles.model_b))
        found[FAMILY] = same_family([own[code] for code in battles.judge.tolist()], *sides)
    return found


def styles(
    store: Store, campaign: int, shown: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> dict[str, NDArray[np.float64]]:
    """The covariates of style of battles (rows,), by name, from the completions of A and of B that were `shown`."""
    texts = frames.battle_texts(store, campaign)
    table = style_covariates(*([texts[one] for one in side.tolist()] for side in shown))
    return {name: table[:, place] for place, name in enumerate(STYLE_NAMES)}


def _file_ballots(
    paths: Sequence[TableSource],
    form: str | None,
    *,
    mapping: Mapping[str, str] = {},
    where: Mapping[str, str | Sequence[str]] = {},
    unranked: Unranked = "below",
    given: Mapping[str, object] = {},
) -> BallotTable | None:
    """The ballots of a file; None if it is not a file of ballots, by `form` or, by default, by its columns.

    `given` are options by name that do not apply to ballots. Raises InputError if one of them was given, for several
    files, and as `read_ballots` does.
    """
    other = form is None and not mapping and guess(paths[0]) != TABLE  # grades of MT-bench have a model and a score too
    if other or form not in (None, _BALLOTS) or (form is None and not has_ballots(paths[0], mapping)):
        if unranked != "below":
            raise InputError(f"{paths[0]} holds no ballots (columns model and rank): leave {setting('unranked')} out")
        return None
    if len(paths) > 1:
        raise InputError(f"{paths[1]}: a table of ballots is rated by itself; put the tables together into one")
    if said := [setting(name) for name, value in given.items() if value]:
        raise InputError(f"{paths[0]} is a table of ballots: leave {', '.join(said)} out")
    return read_ballot_table(paths[0], mapping, where=where, below=unranked == "below")


def _campaign_ballots(store: Store, campaign: frames.CampaignRow) -> Battles:
    """The ballots of a campaign as pairs; pairs of an unreadable ballot have its status."""
    return to_battles(*frames.ballots(store, campaign.id))


def _ballots_left_out(judges: Collection[frames.JudgeRow]) -> str:
    """The note on ballot judges in a campaign that also judges pairs."""
    names = sorted(judge.name for judge in judges)
    more = " and others" if len(names) > 5 else ""
    return (
        f"pairs are rated here, and the ballots of {', '.join(names[:5])}{more} left out: methods that need ballots "
        "take those alone"
    )


def _judging_models(store: Store, judges: Collection[frames.JudgeRow], models: Collection[str]) -> dict[str, str]:
    """The model that each judge is, by the judge's name: the same model, or the one whose answers it wrote."""
    writers: dict[str, set[str]] = {}
    for one in frames.campaigns(store):
        for row in frames.judges(store, one.id):
            if row.protocol == GENERATE and row.name in models:
                writers.setdefault(row.model, set()).add(row.name)
    found = {}
    for judge in judges:
        if judge.model in models:
            found[judge.name] = judge.model
        elif len(wrote := writers.get(judge.model, set())) == 1:  # several settings of one model are ambiguous
            found[judge.name] = next(iter(wrote))
    return {judge: model for judge, model in found.items() if judge != model}


def _reference_ratings(
    path: Path, models: Collection[str], known: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, Any]]:
    """The ratings of a file, and facts about them: how many of `models` they cover, and which other models they name.

    `known` are the ratings of a store, which these replace. Raises `InputError` where the file rates none of `models`,
    and as `read_reference` does.
    """
    found = read_reference(path)
    shared = found.keys() & set(models)
    if models and not shared:
        raise InputError(
            f"{path} rates none of the models that were judged; it rates {few(sorted(found))}; judged were "
            f"{few(sorted(models))}: give both the same names"
        )
    facts = {
        "file": str(path),
        "ratings": len(found),
        "shared": len(shared),
        "not_judged": sorted(found.keys() - shared),
        "not_rated": sorted(set(models) - shared),
        "replaces": len(known),
    }
    return found, facts
