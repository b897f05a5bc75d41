"""PuLP with CBC: Kemeny-Young as one program over pairs with all three-cycle constraints, the usual formulation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pulp
from common import Battles, Call, drive


def kemeny(battles: Battles) -> Call:
    weight = battles.column("weight")
    return lambda: _order(weight, battles.options["limit"])


def _order(weight: Any, limit: float) -> Any:
    size = len(weight)
    program = pulp.LpProblem("order", pulp.LpMinimize)
    above = {pair: pulp.LpVariable(f"x{pair[0]}_{pair[1]}", cat="Binary") for pair in combinations(range(size), 2)}
    program += pulp.lpSum((weight[j, i] - weight[i, j]) * x for (i, j), x in above.items())
    for i, j, k in combinations(range(size), 3):
        program += above[i, j] + above[j, k] - above[i, k] <= 1
        program += above[i, j] + above[j, k] - above[i, k] >= 0
    program.solve(pulp.PULP_CBC_CMD(msg=0, threads=1, timeLimit=limit))
    wins = np.zeros(size)
    for (i, j), x in above.items():
        wins[i if (x.value() or 0.0) > 0.5 else j] += 1
    return np.argsort(-wins, kind="stable")


if __name__ == "__main__":
    drive("pulp", {"kemeny": kemeny})
