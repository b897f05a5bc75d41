"""Designs of rounds and the planned campaigns that they make up: plain records, and the JSON that the store keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from venire.arena.campaigns import JudgeSettings
from venire.arena.planning import Pick
from venire.arena.records import Matchup
from venire.judges import PROTOCOLS
from venire.storage.plans.plans import SentLately


@dataclass(frozen=True, slots=True)
class ExcludedModel:
    """A model that is in the store and not in the campaign, and why."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a plan takes of one judge's recorded judgments, and what it does not."""

    judge: str
    rows: int
    """On record."""
    trials: int
    """Of these planned; the others are of completions, pairs or repeats that the campaign does not have."""
    missing: int
    """Trials that the campaign would have, and that are not on record."""
    one_order: int
    """Battles that were judged in one order only."""


@dataclass(frozen=True, slots=True)
class RoundDesign:
    """What a round of a plan is made of: matchups and instruction ids, and which are put together."""

    matchups: tuple[Matchup, ...]
    instructions: tuple[str, ...]
    """Of the first round all that were drawn for the plan, of later ones those that battles are on."""
    models: tuple[str, ...]
    left_out: tuple[ExcludedModel, ...]
    recorded: tuple[Replayed, ...] = ()
    """What is taken of judgments on record, by judge."""
    battles: tuple[tuple[int, int], ...] | None = None
    """Places of a matchup and of its instruction; None: every matchup on every instruction."""
    why: tuple[str, ...] = ()
    """The reason for each battle, or for each matchup where these are crossed, in a word."""
    gains: tuple[float | None, ...] = ()
    """What each was ranked by; None: it was not."""
    judges: tuple[str, ...] = ()
    """Who is asked; none named: all of the campaign."""
    phase: str = "plan"

    @property
    def size(self) -> int:
        """How many battles these are, those with equal texts included."""
        return len(self.matchups) * len(self.instructions) if self.battles is None else len(self.battles)

    def matchups_on(self) -> Sequence[Sequence[Matchup]]:
        """The matchups of each instruction, in the order chosen."""
        if self.battles is None:
            return [self.matchups] * len(self.instructions)
        found: list[list[Matchup]] = [[] for _ in self.instructions]
        for matchup, instruction in self.battles:
            found[instruction].append(self.matchups[matchup])
        return found


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """One round of a plan in the store."""

    number: int
    phase: str
    policy: str
    trials: int
    equal_texts: int
    design: RoundDesign


@dataclass(frozen=True, slots=True)
class PlannedCampaign:
    """A campaign with its plan in the store: its number, judges by respondent number, and what was chosen first."""

    id: int
    judges: Mapping[int, JudgeSettings]
    design: RoundDesign
    """Of the first round; its instructions and models are those of the whole plan."""
    trials: int
    equal_texts: int
    """Battles left out because both sides have the same text."""
    rounds: tuple[PlannedRound, ...] = ()
    """Those in force, in order."""
    only: frozenset[int] | None = None
    """Trials that a run asks of it, where not all."""
    sent_elsewhere: Mapping[str, SentLately] = field(default_factory=dict)
    """What other shards, whose parts are asked by this one, sent of late, by route name."""

    @property
    def referenced(self) -> frozenset[int]:
        """Numbers of the judges that are shown reference answers too."""
        return frozenset(n for n, judge in self.judges.items() if PROTOCOLS[judge.protocol].needs_reference)


def crossed_design(
    picks: Iterable[Pick],
    elo: Mapping[str, float],
    instructions: Sequence[str],
    models: Sequence[str],
    phase: str = "plan",
) -> RoundDesign:
    """Matchups that a policy chose, each on all of some instructions; gaps by the ratings that it chose by."""
    matchups = tuple(Matchup(pick.model_a, pick.model_b, _gap(elo, pick)) for pick in picks)
    return RoundDesign(matchups, tuple(instructions), tuple(models), (), phase=phase)


def battle_design(
    picks: Iterable[Pick],
    elo: Mapping[str, float],
    instructions: Sequence[str],
    models: Sequence[str],
    phase: str = "plan",
) -> RoundDesign:
    """Battles that a policy chose, with why; every matchup and every instruction is named once."""
    places = {name: place for place, name in enumerate(instructions)}
    matchups: dict[tuple[str, str], Matchup] = {}
    numbers: dict[tuple[str, str], int] = {}
    battles, why, gains = [], [], []
    for pick in picks:
        assert pick.instruction is not None  # of a policy that chooses battles
        pair = (pick.model_a, pick.model_b)
        matchups.setdefault(pair, Matchup(*pair, _gap(elo, pick)))
        battles.append((numbers.setdefault(pair, len(numbers)), places[pick.instruction]))
        why.append(pick.why)
        gains.append(pick.gain if pick.gain is not None and math.isfinite(pick.gain) else None)
    return RoundDesign(
        tuple(matchups.values()),
        tuple(instructions),
        tuple(models),
        (),
        battles=tuple(battles),
        why=tuple(why),
        gains=tuple(gains),
        phase=phase,
    )


def _gap(elo: Mapping[str, float], pick: Pick) -> float | None:
    known = pick.model_a in elo and pick.model_b in elo
    return abs(elo[pick.model_a] - elo[pick.model_b]) if known else None


def write_design(design: RoundDesign) -> str:
    """A design as JSON."""
    return json.dumps(design, default=_fields, ensure_ascii=False, allow_nan=False)


def _fields(record: Any) -> dict[str, Any]:
    """Of one record, not of those within: `asdict` would copy each value of ten thousand battles."""
    return {one.name: getattr(record, one.name) for one in fields(record)}


def read_design(text: str) -> RoundDesign:
    """What `write_design` wrote, in this version or an earlier one."""
    known = json.loads(text)
    battles = known.get("battles")
    return RoundDesign(
        tuple(Matchup(**row) for row in known["matchups"]),
        tuple(known["instructions"]),
        tuple(known["models"]),
        tuple(ExcludedModel(**row) for row in known["left_out"]),
        tuple(Replayed(**row) for row in known.get("recorded", ())),
        None if battles is None else tuple((matchup, instruction) for matchup, instruction in battles),
        tuple(known.get("why", ())),
        tuple(known.get("gains", ())),
        tuple(known.get("judges", ())),
        known.get("phase", "plan"),
    )
