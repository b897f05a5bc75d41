"""corankco: its exact program over pairs that are above, below or tied, solved by PuLP with CBC; from ballots.

Ties in its order have a cost, so for ballots without ties its order has none. Its prior partition of the models
requires CPLEX in this release and fails with a `NameError` without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Battles, Call, drive
from corankco.algorithms.exact.exactalgorithmpulp import ExactAlgorithmPulp
from corankco.dataset import Dataset
from corankco.scoringscheme import ScoringScheme


def kemeny(battles: Battles) -> Call:
    ballots = battles.column("ballots")
    data = Dataset.from_raw_list([[{int(code)} for code in ballot] for ballot in ballots])
    scheme = ScoringScheme.get_unifying_scoring_scheme()

    def call() -> Any:
        found = ExactAlgorithmPulp().compute_consensus_rankings(data, scheme)
        return np.array([int(str(one)) for bucket in found.consensus_rankings[0] for one in bucket])

    return call


if __name__ == "__main__":
    drive("corankco", {"kemeny": kemeny})
