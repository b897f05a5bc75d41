"""What a reader needs to doubt a board: a record for each diagnostic, and the one document of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from venire.arena.choices import Merge
from venire.arena.records import Origin
from venire.arena.wording import few
from venire.ratings.agreement.chance_corrected import Coefficient
from venire.ratings.agreement.people_agreement import JudgeAndPeople, PeopleAgreement
from venire.ratings.data.result import Record, record_of
from venire.ratings.judges.elo_from_consistency import EloFromConsistency
from venire.ratings.judges.order_agreement import OrderAgreement
from venire.ratings.methods.findings import MethodNotes
from venire.ratings.peers.peer_evaluation import PeerEvaluation, PeerRow
from venire.reports.figures import FigureResults
from venire.reports.json_values import OPTIONAL, flat_values, json_values
from venire.reports.wording import coins_text, counted, open_intervals_text, pairs_asked_text
from venire.storage.transfer.formats.source import ImportReading, TableReading


@dataclass(frozen=True, slots=True)
class InputCounts:
    """Counts of the ratings' input: judgments, or verdicts where a method counts a flip as two; flips in both cases.

    `statuses` counts all verdicts by status. `ballots` is None where there are none, `own_left_out` where judges' votes
    on themselves were not left out, `judge_weights` where every judge has the same.
    """

    merge: Merge
    flips_as: str
    judgments: int
    statuses: Mapping[str, int]
    ties: int
    flips: int
    one_order: int
    unreadable: int
    ballots: int | None = field(default=None, metadata=OPTIONAL)
    own_left_out: int | None = field(default=None, metadata=OPTIONAL)
    judge_weights: Mapping[str, float] | None = field(default=None, metadata=OPTIONAL)

    @property
    def verdicts(self) -> int:
        """All verdicts, those that could not be read too."""
        return sum(self.statuses.values())


@dataclass(frozen=True, slots=True)
class BootstrapDraws:
    """Replicates drawn for intervals, and those of them without a finite estimate."""

    replicates: int
    without_estimate: int
    seed: int


@dataclass(frozen=True, slots=True)
class JudgeJackknife:
    """What intervals of judges leave out in turn."""

    unit: str
    units: int
    level: float


@dataclass(frozen=True, slots=True)
class PairsAsked:
    """How many pairs were asked of how many, and their coverage: 1 where all were asked equally often."""

    asked: int
    possible: int
    coverage: float | None


@dataclass(frozen=True, slots=True)
class ReferenceAgreement:
    """Agreement with known ratings, of the largest `group` where there are several; figures in another unit are None.

    `intervals` are at `level`, by the name of the figure.
    """

    pearson: float | None
    spearman: float | None
    kendall: float | None
    mae: float | None
    mae_line: float | None
    spread: float | None
    models: int
    intervals: Mapping[str, tuple[float, float]]
    level: float
    group: int | None = field(metadata=OPTIONAL)
    verdicts: str | None


@dataclass(frozen=True, slots=True)
class PeopleVotes:
    """A group of people by name, how many they are and what they gave."""

    name: str
    origin: Origin
    annotators: int
    votes: int


@dataclass(frozen=True, slots=True)
class UnattemptedPairs:
    """How many judgments were left out since an answer was not attempted by `protocol`, and since one has no grade."""

    protocol: str
    judgments: int
    ungraded: int

    @property
    def texts(self) -> tuple[str, ...]:
        """What was left out, in sentences."""
        unattempted = f"{counted(self.judgments, 'judgment')} left out: an answer was not attempted ({self.protocol})"
        ungraded = f"{counted(self.ungraded, 'judgment')} left out: an answer has no grade by {self.protocol}"
        return (unattempted, *([ungraded] if self.ungraded else []))


@dataclass(frozen=True, slots=True)
class ReferenceReading:
    """How known ratings of a file, or of `people`, were used: those shared with the judged models, and the others."""

    file: str | None
    people: PeopleVotes | None = field(metadata=OPTIONAL)
    ratings: int
    shared: int
    not_judged: tuple[str, ...]
    not_rated: tuple[str, ...]
    replaces: int


def reference_reading(
    ratings: Mapping[str, float],
    models: Collection[str],
    known: Mapping[str, float],
    *,
    file: str | None = None,
    people: PeopleVotes | None = None,
) -> ReferenceReading:
    """How `ratings` of a file or of people are used beside the judged `models`; they replace those `known`."""
    return ReferenceReading(
        file=file,
        people=people,
        ratings=len(ratings),
        shared=len(ratings.keys() & set(models)),
        not_judged=tuple(sorted(ratings.keys() - set(models))),
        not_rated=tuple(sorted(set(models) - ratings.keys())),
        replaces=len(known),
    )


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What was counted, how errors were computed, what the method found, and what judges agree with.

    `errors` names how those of ratings were computed, over which `cluster`, with `degrees` of freedom (None: infinite
    or unknown); `estimand` says what their intervals are about, None without any; `level` is that of all intervals.
    `groups` are models that were rated together, `fits` the facts of the fit of each group, `no_estimate` why a model
    has no rating. `findings` are the method's own records (`ratings.methods.findings`). `agreement` is that with known
    ratings, None with an `agreement_reason`. None, or empty, is what does not apply: `alike` is a note on names of
    models, `coins` are judges not better than a coin, `people` those whose votes are beside the verdicts and
    `people_agreement` what they agree on, `peers` are judges that are models, `source` and `reference` say how files
    were used. `remarks` are notes of the reading of verdicts, `unattempted` are pairs that were left
    out, `figures` what was asked for beside the board.
    """

    reason: str | None
    counts: InputCounts
    errors: str
    cluster: str
    estimand: str | None
    level: float
    degrees: float | None
    bootstrap: BootstrapDraws
    jackknife: JudgeJackknife
    groups: tuple[tuple[str, ...], ...]
    pairs: PairsAsked
    fits: tuple[Mapping[str, Any], ...]
    no_estimate: Mapping[str, str]
    findings: tuple[object, ...]
    alike: str | None
    agreement: ReferenceAgreement | None
    agreement_reason: str | None
    elo_from_consistency: tuple[EloFromConsistency, ...] = ()
    people_agreement: PeopleAgreement | None = None
    coins: tuple[OrderAgreement, ...] = ()
    peers: PeerEvaluation | None = None
    source: TableReading | ImportReading | None = None
    reference: ReferenceReading | None = None
    people: PeopleVotes | None = None
    remarks: tuple[str, ...] = ()
    unattempted: UnattemptedPairs | None = None
    figures: FigureResults = field(default_factory=FigureResults)

    def finding(self, kind: type[Record]) -> Record | None:
        """The method's record of a kind, None where it has none."""
        return record_of(self.findings, kind)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the ratings, in sentences."""
        own = self.finding(MethodNotes)
        return (*([self.alike] if self.alike else []), *(own.notes if own else ()), *self.remarks)

    @property
    def coins_text(self) -> str | None:
        """What is said of judges not better than a coin; None without any."""
        return coins_text(self.coins)

    @property
    def open_intervals_text(self) -> str | None:
        """What is said of bootstrap replicates without a finite estimate; None without any."""
        return open_intervals_text(self.bootstrap.without_estimate, self.bootstrap.replicates)

    @property
    def pairs_asked_text(self) -> str | None:
        """What is said of pairs that were not asked; None where all were."""
        pairs = self.pairs
        return pairs_asked_text(pairs.asked, pairs.possible, pairs.coverage, self.fits)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a reader must know of the ratings and of their intervals, in sentences, each once."""
        reasons = (fit.get("errors_reason") for fit in self.fits)
        every = (self.open_intervals_text, self.pairs_asked_text, *self.notes, *reasons)
        return tuple(dict.fromkeys(text for text in every if text))

    @property
    def selection(self) -> tuple[str, ...]:
        """What of the verdicts was left out or weighed, as it was asked for, in sentences."""
        own, weights = self.counts.own_left_out, self.counts.judge_weights
        texts = [f"{counted(own, 'verdict')} of judges on themselves were left out"] if own else []
        weighed = few([f"{name} {weight:g}" for name, weight in weights.items()]) if weights else ""
        texts += self.unattempted.texts if self.unattempted is not None else ()
        return (*texts, *([f"judges weigh {weighed}"] if weighed else []))

    @property
    def unbounded_text(self) -> str | None:
        """What is said of coefficients of agreement with people that have no interval; None where all have one."""
        found = self.people_agreement
        if found is None:
            return None
        each = [one.kappa for one in (*found.judges, *found.annotators, *([found.together] if found.together else ()))]
        unbounded = any(one.value is not None and None in (one.lo, one.hi) for one in (*each, found.alpha, found.among))
        return _UNBOUNDED if unbounded else None

    @property
    def people_document(self) -> dict[str, Any]:
        """People's votes, and how far judges and they agree, as plain JSON values."""
        people = json_values(self.people) if self.people is not None else {}
        return {
            **people,
            **(self._people_agreement(self.people_agreement) if self.people_agreement is not None else {}),
        }

    def to_json(self, verdicts: str | None) -> dict[str, Any]:
        """The diagnostics as plain JSON values; `verdicts` is the origin of the verdicts."""
        return dict(self._entries(verdicts))

    def _entries(self, verdicts: str | None) -> Iterator[tuple[str, Any]]:
        """Keys with values in the document's order; those of what does not apply are left out."""
        yield "reason", self.reason
        yield from json_values(self.counts).items()
        for name in ("errors", "cluster", "estimand", "level", "degrees", "bootstrap", "jackknife"):
            yield name, json_values(getattr(self, name))
        for name in ("groups", "pairs", "fits", "no_estimate"):
            yield name, json_values(getattr(self, name))
        yield from flat_values(self.findings).items()
        of_method = self.alike is not None or self.finding(MethodNotes) is not None
        if of_method:
            yield "notes", list(self.notes)
        yield "agreement", json_values(self.agreement)
        yield "agreement_reason", self.agreement_reason
        if self.elo_from_consistency:
            yield (
                "elo_from_consistency",
                [{**json_values(one), "verdicts": verdicts} for one in self.elo_from_consistency],
            )
        if self.people_agreement is not None:
            yield "people", self.people_document
        if self.coins:
            yield "coins", {"judges": json_values(self.coins), "says": self.coins_text}
        if self.peers is not None:
            yield "peers", _peers(self.peers)
        if self.source is not None:
            yield "source", json_values(self.source)
        if self.reference is not None:
            yield "reference", json_values(self.reference)
        if self.people is not None and self.people_agreement is None:
            yield "people", self.people_document
        if self.unattempted is not None:
            yield "unattempted", json_values(self.unattempted)
        if self.remarks and not of_method:
            yield "notes", list(self.notes)
        yield from json_values(self.figures).items()

    def _people_agreement(self, found: PeopleAgreement) -> dict[str, Any]:
        note = self.unbounded_text
        return {
            "judges": [{"judge": one.judge, **_beside_people(one)} for one in found.judges],
            "each": [{"annotator": one.judge, **_beside_people(one)} for one in found.annotators],
            "together": None if found.together is None else _beside_people(found.together),
            "alpha": _coefficient(found.alpha),
            "alpha_among_people": _coefficient(found.among),
            **({"note": note} if note else {}),
        }


_UNBOUNDED = (
    "no interval of a kappa or an alpha over a single instruction, nor where without one of the instructions all votes "
    "are of one side, which leaves it undefined"
)


def _beside_people(one: JudgeAndPeople) -> dict[str, Any]:
    figures = {name: json_values(getattr(one, name)) for name in ("battles", "votes", "decided")}
    figures |= {name: json_values(getattr(one, name)) for name in ("agreement", "agreement_lo", "agreement_hi")}
    return {**figures, "kappa": _coefficient(one.kappa)}


def _coefficient(found: Coefficient) -> dict[str, Any]:
    return {name: json_values(getattr(found, name)) for name in ("value", "lo", "hi", "items")}


def _peers(found: PeerEvaluation) -> dict[str, Any]:
    known = {name: json_values(getattr(found, name)) for name in ("unit", "level", "left_out", "held")}
    return {**known, "models": [json_values(_peer(one)) for one in found.models], "warnings": list(found.warnings)}


def _peer(one: PeerRow) -> dict[str, Any]:
    gap, odds = one.gap, one.odds
    return {
        "model": one.model,
        "judges": one.judges,
        "self_evaluation": one.self_evaluation,
        "peer_evaluation": one.peer_evaluation,
        "se_minus_pe": gap.value,
        "se_minus_pe_se": gap.se,
        "se_minus_pe_lo": gap.lo,
        "se_minus_pe_hi": gap.hi,
        "instructions": gap.instructions,
        "own_odds": odds.value,
        "own_odds_se": odds.se,
        "own_odds_lo": odds.lo,
        "own_odds_hi": odds.hi,
        "own_odds_reason": odds.reason,
        "slope": odds.slope,
        "sie": one.sie,
        "sfe": one.sfe,
        "sie_minus_sfe": one.moved,
    }
