"""choix: iterative Luce spectral ranking on a list of wins; a tie is a win of each, so a win is two of one."""

from __future__ import annotations

import choix
from common import Battles, Call, drive


def fit(battles: Battles) -> Call:
    sides = zip(battles.column("a").tolist(), battles.column("b").tolist(), battles.column("y").tolist(), strict=True)
    wins = []
    for a, b, y in sides:
        wins += [(a, b)] * round(2.0 * y) + [(b, a)] * round(2.0 - 2.0 * y)
    return lambda: choix.ilsr_pairwise(len(battles.models), wins, alpha=0.0)


if __name__ == "__main__":
    drive("choix", {"fit": fit})
