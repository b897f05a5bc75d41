"""Designs of rounds: from what a policy chose, and to and from the JSON that the store keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from venire.arena.planning import Pick
from venire.arena.records import Matchup
from venire.orchestrator.planning.expand import Design, LeftOut
from venire.orchestrator.planning.recorded import Replayed

__all__ = ["battles_of", "crossed_of", "read_design", "write_design"]

Elo = Mapping[str, float]


def crossed_of(
    picks: Iterable[Pick], elo: Elo, instructions: Sequence[str], models: Sequence[str], phase: str = "plan"
) -> Design:
    """Matchups that a policy chose, each on all of some instructions; gaps by the ratings that it chose by."""
    chosen = tuple(picks)
    matchups = tuple(Matchup(one.model_a, one.model_b, _gap(elo, one)) for one in chosen)
    return Design(matchups, tuple(instructions), tuple(models), (), phase=phase)


def battles_of(
    picks: Iterable[Pick], elo: Elo, instructions: Sequence[str], models: Sequence[str], phase: str = "plan"
) -> Design:
    """Battles that a policy chose, with why; every matchup and every instruction is named once."""
    places = {name: place for place, name in enumerate(instructions)}
    matchups: dict[tuple[str, str], int] = {}
    found: list[Matchup] = []
    battles, why, gains = [], [], []
    for one in picks:
        assert one.instruction is not None  # of a policy that chooses battles
        pair = (one.model_a, one.model_b)
        if pair not in matchups:
            matchups[pair] = len(found)
            found.append(Matchup(*pair, _gap(elo, one)))
        battles.append((matchups[pair], places[one.instruction]))
        why.append(one.why)
        gains.append(one.gain if one.gain is not None and math.isfinite(one.gain) else None)
    return Design(
        tuple(found),
        tuple(instructions),
        tuple(models),
        (),
        battles=tuple(battles),
        why=tuple(why),
        gains=tuple(gains),
        phase=phase,
    )


def _gap(elo: Elo, pick: Pick) -> float | None:
    known = pick.model_a in elo and pick.model_b in elo
    return abs(elo[pick.model_a] - elo[pick.model_b]) if known else None


def write_design(design: Design) -> str:
    """A design as JSON."""
    return json.dumps(asdict(design), ensure_ascii=False, allow_nan=False)


def read_design(text: str) -> Design:
    """What `write_design` wrote, in this version or an earlier one."""
    found = json.loads(text)
    battles = found.get("battles")
    return Design(
        tuple(Matchup(**one) for one in found["matchups"]),
        tuple(found["instructions"]),
        tuple(found["models"]),
        tuple(LeftOut(**one) for one in found["left_out"]),
        tuple(Replayed(**one) for one in found.get("recorded", ())),
        None if battles is None else tuple((matchup, instruction) for matchup, instruction in battles),
        tuple(found.get("why", ())),
        tuple(found.get("gains", ())),
        tuple(found.get("judges", ())),
        found.get("phase", "plan"),
    )
