"""Verdicts with what is known of their models and judges: one record, whatever they were read from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Clustering, Grades
from venire.arena.choices import Merge
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_with
from venire.arena.records import Origin
from venire.arena.wording import few
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.diagnostics.accuracy import PAIR_KINDS
from venire.ratings.inference.options import Options
from venire.ratings.methods.methods import METHODS, ignored_options, select_verdicts
from venire.reports import comparison
from venire.reports.board.board import Board, with_grades
from venire.reports.board.build import build
from venire.reports.board.diagnostics import PeopleVotes, ReferenceReading, UnattemptedPairs
from venire.reports.board.stored_grades import StoredGrades
from venire.reports.chart_data import ChartSource, Costs
from venire.reports.comparison import Comparison
from venire.reports.echoes import with_echo_pairs
from venire.reports.edits import edit_contrasts
from venire.reports.figures import Figures, figures_of
from venire.reports.graded_pairs import kinds_of_pairs
from venire.reports.rank_agreement import with_rank_agreement
from venire.reports.wording import alike_text
from venire.storage.transfer.formats.source import ImportReading, TableReading

DEFAULT_METHOD = "bradley-terry"


HUMAN_ELO = "human-elo"


_CHOSEN = (
    "the policy of this campaign chose pairs by what was known of them: rated as if all had been asked alike (--method "
    "bradley-terry: as they were asked)"
)


_AS_ASKED = (
    "rated as pairs were asked, which the policy of this campaign chose by what was known of them: its looks are by "
    "--method even-pairs"
)


_UNATTEMPTED = PAIR_KINDS.index("unattempted")


@dataclass(frozen=True, slots=True)
class LeftOutPairs:
    """Verdicts that were left out since an answer was not attempted by the grades of `protocol`, or has none."""

    protocol: str
    unattempted: Battles
    ungraded: Battles

    def count(self, options: Options, merge: Merge) -> UnattemptedPairs:
        """How many judgments they make, merged as those of a board."""
        each = (select_verdicts(rows, options) for rows in (self.unattempted, self.ungraded))
        return UnattemptedPairs(self.protocol, *(len(merge_orders(rows, merge, flips=options.flips)) for rows in each))


@dataclass(frozen=True, slots=True)
class People:
    """A group of people by name, with its votes; `origin` is "people", or "simulated" in a rehearsal.

    `left_out` are those that were left out.
    """

    name: str
    origin: Origin
    battles: Battles
    left_out: LeftOutPairs | None = None

    @property
    def counts(self) -> PeopleVotes:
        """How many they are and what they gave."""
        return PeopleVotes(self.name, self.origin, len(self.battles.judges), len(self.battles.label))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts and related data; `source` says how a file's rows were read, `reference_reading` how its ratings were.

    `ballots` are the verdicts of ballot judges next to those of pair judges, for methods that need ballots; `note`
    reports to other methods that ballots were left out. `method` is the default method: even-pairs, as in the
    campaign's interim analyses, where a policy chose pairs by what was known of them. `grades` are those of the store,
    `edited` verdicts with an edited completion, by edit and side. `people` are those whose votes are beside the
    verdicts (`battles.people`), `groups` the names of all groups whose votes there are. `in_time` and `costs` are what
    charts read of a store (`reports.chart_data.ChartSource`); the rows of a table are in the order of the table.
    `left_out` are verdicts that were left out.
    """

    battles: Battles
    origins: Collection[Origin]
    reference: Mapping[str, float] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    judge_families: Mapping[str, str] = field(default_factory=dict)
    judge_elo: Mapping[str, float] = field(default_factory=dict)
    judge_models: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    source: TableReading | ImportReading | None = None
    reference_reading: ReferenceReading | None = None
    ballots: Battles | None = None
    note: str | None = None
    method: str = DEFAULT_METHOD
    grades: StoredGrades | None = None
    edited: Mapping[tuple[str, str], Battles] = field(default_factory=dict)
    people: People | None = None
    groups: tuple[str, ...] = ()
    in_time: Callable[[], Battles] | None = None
    costs: Callable[[], Costs] | None = None
    left_out: LeftOutPairs | None = None

    def clustered(self, clustering: Clustering) -> Verdicts:
        """The same with rows that share their noise so; those of grades by instruction at least, or not at all."""

        def of(battles: Battles) -> Battles:
            return replace(battles, clustering=clustering, people=battles.people and of(battles.people))

        return replace(
            self,
            battles=of(self.battles),
            ballots=self.ballots and of(self.ballots),
            grades=self.grades and self.grades.clustered(clustering),
            edited={key: of(one) for key, one in self.edited.items()},
            people=self.people and replace(self.people, battles=of(self.people.battles)),
        )

    def attempted(self) -> Verdicts:
        """The same from pairs of which both answers were attempted, by the grades that accuracy is taken from.

        Ballots count as their pairs. Raises InputError where no answer was graded, and where no pair is left.
        """
        drop = setting_with("unattempted", "drop")
        table = None if self.grades is None else self.grades.board(level=0.95).accuracy
        if self.grades is None or table is None:
            raise InputError(f"{drop} takes grades of answers, and there are none here: leave it out")
        grades, protocol = self.grades.grades, table.protocol

        def of(battles: Battles) -> Battles:
            people = battles.people and of(battles.people)
            kept = _both_attempted(grades, protocol, battles)
            return replace(select_battles(battles, kept), ballots=None, people=people)

        def without(battles: Battles) -> LeftOutPairs:
            kind = kinds_of_pairs(grades, protocol, battles)
            return LeftOutPairs(protocol, *(select_battles(battles, kind == code) for code in (_UNATTEMPTED, -1)))

        kept, in_time, people = of(self.battles), self.in_time, self.people
        if not len(kept.label):
            raise InputError(f"{drop}: of no pair were both answers attempted ({protocol}): leave it out")
        return replace(
            self,
            battles=kept,
            ballots=None,
            people=people and replace(people, battles=of(people.battles), left_out=without(people.battles)),
            in_time=None if in_time is None else lambda: of(in_time()),
            left_out=without(self.battles),
        )

    def kept(self, battles: Battles) -> NDArray[np.bool_]:
        """Which verdicts (rows,) of the same campaign, read in another way, are not among those left out."""
        if self.left_out is None or self.grades is None:
            return np.ones(len(battles.label), dtype=np.bool_)
        return _both_attempted(self.grades.grades, self.left_out.protocol, battles)

    def left_out_texts(self, options: Options) -> tuple[str, ...]:
        """How many judgments were left out and why, where any were."""
        return () if self.left_out is None else self.left_out.count(options, options.merge).texts

    def board(
        self,
        method: str | None = None,
        options: Options | None = None,
        *,
        accuracy_baseline: float | Sequence[float] = 0.0,
        figures: Figures | None = None,
    ) -> Board:
        """The board by one method, with what `figures` asks for among its diagnostics.

        None: the default method of these verdicts, or Bradley-Terry if the default does not take a given option. Raises
        InputError as `reports.board.build`, `with_rank_agreement` and `figures_of` do.
        """
        options, chosen = options or Options(seed=self.seed), method is None
        method = METHODS.named(method or (DEFAULT_METHOD if ignored_options(self.method, options) else self.method))
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
        remarks = [] if self.note is None or needed else [self.note]
        remarks += [_CHOSEN] if chosen and method != DEFAULT_METHOD else []
        remarks += [_AS_ASKED] if self.method != DEFAULT_METHOD == method else []
        counts = board.diagnostics.counts
        found = replace(
            board.diagnostics,
            source=self.source,
            reference=self.reference_reading,
            people=None if self.people is None else self.people.counts,
            remarks=tuple(remarks),
            unattempted=self.left_out.count(options, counts.merge) if self.left_out is not None else None,
        )
        if figures is not None:
            found = replace(found, figures=figures_of(battles, method, options, figures, self))
        board = replace(board, evidence=self.evidence(battles, board.method, options), diagnostics=found)
        if self.grades is None:
            return self._with_edits(board, options)
        board = with_grades(board, self.grades.board(options.level))
        board = with_rank_agreement(
            board,
            self.grades.grades,
            battles,
            options,
            accuracy_baseline=accuracy_baseline,
            judge_models=self.judge_models,
        )
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
        counts = board.diagnostics.counts
        found = replace(
            board.diagnostics,
            people=people.counts,
            reference=self.reference_reading,
            unattempted=people.left_out.count(options, counts.merge) if people.left_out is not None else None,
        )
        return replace(board, diagnostics=found)

    def compare(self, methods: Sequence[str], options: Options) -> Comparison:
        """Several methods on these verdicts; raises InputError as `reports.comparison.compare` does."""
        self.refuse_grades_alone()
        known = self.outside_orders(options.level)
        notes = [
            *self.left_out_texts(options),
            *(self.source.notes if self.source else ()),
            *filter(None, [alike_text(self.battles.models)]),
        ]
        named = [METHODS.named(method) for method in methods]
        return replace(comparison.compare(self.battles, named, options, known), notes=tuple(notes))

    def outside_orders(self, level: float) -> dict[str, tuple[str, Mapping[str, float]]]:
        """Values by model that verdicts are held against, with where they are from: the reference, and accuracy."""
        known: dict[str, tuple[str, Mapping[str, float]]] = {}
        if self.reference.keys() & set(self.battles.models):
            file = self.reference_reading.file if self.reference_reading is not None else "the store"
            known["reference"] = (f"ratings of {file}", self.reference)
        table = None if self.grades is None else self.grades.board(level).accuracy
        if table is not None and table.accuracy:
            known["accuracy"] = (f"grades by {table.protocol}", table.accuracy)
        return known

    def refuse_grades_alone(self) -> None:
        """Raise InputError where there are grades and no verdict that sets one model above another."""
        if self.grades is not None and not len(self.battles.status):
            raise InputError(
                f"there are grades alone, of {few(self.grades.campaigns)}, and no verdicts on pairs or lists: `venire "
                "rate` shows the accuracy of models from them"
            )


def _both_attempted(grades: Grades, protocol: str, battles: Battles) -> NDArray[np.bool_]:
    """Which verdicts (rows,) are on pairs of which both answers were graded and attempted."""
    kind = kinds_of_pairs(grades, protocol, battles)
    return np.asarray((kind >= 0) & (kind != _UNATTEMPTED))


def _as_they_are(battles: Battles) -> Battles:
    return battles
