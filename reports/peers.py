"""What a board says of judges that are models themselves: how they stand by their own verdicts, and by the others'."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from venire.arena.battles import Ballots
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.models import model_of_judge
from venire.ratings.peers.peer_evaluation import PeerRow, peer_evaluation
from venire.ratings.voting.kemeny import kemeny_young

__all__ = ["peer_facts"]

_SECONDS = 1.0
"""Time that a board has for each of its two orders of all models; what is not proved by then, it says."""


def peer_facts(judgments: Judgments, ballots: Ballots | None, peers: Mapping[str, str], level: float) -> dict[str, Any]:
    """`peers` as plain JSON values, where two judges or more are models and one of them judged itself; else nothing."""
    own = model_of_judge(judgments.judges, judgments.models, peers)
    there = own[np.unique(judgments.judge)]
    judge = own[judgments.judge]
    itself = (judge == judgments.model_a) | (judge == judgments.model_b)
    if np.count_nonzero(there >= 0) < 2 or not itself.any():
        return {}
    given = judgments if ballots is None else ballots
    found = peer_evaluation(given, partial(kemeny_young, seconds=_SECONDS), peers=peers, micro=False, level=level)
    return {
        "peers": {
            "unit": found.unit,
            "level": found.level,
            "left_out": found.left_out,
            "models": [_row(one) for one in found.models],
            "warnings": list(found.warnings),
        }
    }


def _row(one: PeerRow) -> dict[str, Any]:
    gap, odds = one.gap, one.odds
    return {
        "model": one.model,
        "judges": list(one.judges),
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
