"""Ballots with the pairs that are counted from them: those of a table, or made of judgments of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.ballots import Ballots
from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.ballots import ballots_of, incomplete, paired, select
from venire.ratings.data.comparisons import Comparisons
from venire.ratings.data.judgments import Judgments
from venire.ratings.data.merging import combine, merge_orders

__all__ = ["Counted", "counted", "lacking"]

_LACKING = (
    "ballots (columns judge, instruction_id, model, rank), or a judge that judged all pairs of three models or more on "
    "an instruction"
)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Ballots with their pairs: `data`, a row a pair, and `ballot` (rows,), the ballot that each row is of.

    The instruction of a ballot is what its errors are clustered by; there is none where each ballot is its own unit.
    """

    ballots: Ballots
    data: Comparisons
    ballot: NDArray[np.intp]
    notes: tuple[str, ...] = ()

    def among(self, models: Sequence[str]) -> Counted:
        """The ballots as they rank some models, and the rows between these."""
        codes = [self.data.models.index(name) for name in models]
        inside = np.isin(self.data.a, codes) & np.isin(self.data.b, codes)
        ballots = replace(self.ballots, models=tuple(models), rank=self.ballots.rank[:, codes])
        return Counted(ballots, self.data.select(inside), self.ballot[inside])

    def drawn(self, rows: NDArray[np.intp]) -> Ballots:
        """The ballots of drawn rows, by position, each as often as the first of its rows was drawn."""
        found, first = np.unique(self.ballot, return_index=True)
        times = np.bincount(rows, minlength=len(self.ballot))[first]
        return select(self.ballots, np.repeat(found, times))


def lacking(battles: Battles, judgments: Judgments) -> str | None:
    """What is not there to make ballots of, in words; None where there are ballots, or judgments that make some."""
    return None if battles.ballots is not None or _made(judgments) is not None else _LACKING


def _made(judgments: Judgments) -> Ballots | None:
    """Ballots of judges that judged all pairs on an instruction; None where there is none of three models or more."""
    if not judgments.instructions:
        return None
    try:
        found = ballots_of(judgments)
    except InputError:
        return None
    return found if ((~np.isnan(found.rank)).sum(axis=1) > 2).any() else None


def counted(battles: Battles, judgments: Judgments) -> Counted:
    """The ballots behind judgments, or made of them, with the models and the clusters that these have.

    Raises `InputError` where there are no ballots to be had.
    """
    given, pairs = battles.ballots, judgments
    notes: tuple[str, ...] = ()
    if given is None:
        given = _made(judgments)
        if given is None:
            raise InputError(f"there are no ballots: give {_LACKING}")
        notes, pairs = (_said(len(given), incomplete(judgments)),), merge_orders(paired(given))
    listed = [given.models.index(name) for name in judgments.models]
    ballots = replace(given, models=judgments.models, rank=given.rank[:, listed])
    row = _ballot_of(pairs, ballots)
    kept = np.unique(row)
    ballots, row = select(ballots, kept), np.searchsorted(kept, row)
    source, first = judgments.comparisons(), np.unique(_ballot_of(judgments, ballots), return_index=True)[1]
    cluster, names = source.cluster, source.clusters
    if cluster is None:
        ballots = replace(ballots, instruction=np.full(len(ballots), -1, dtype=np.int32), instructions=())
        return Counted(ballots, replace(pairs.comparisons(), cluster=row.astype(np.int32)), row, notes)
    shared = cluster[first[-len(ballots) :]]
    ballots = replace(ballots, instruction=shared, instructions=names)
    return Counted(ballots, replace(pairs.comparisons(), cluster=shared[row], clusters=names), row, notes)


def _said(made: int, incomplete: int) -> str:
    lost = f"; {incomplete} of a judge on an instruction lack a pair and are left out" if incomplete else ""
    return f"{made} ballots are made of judgments of all pairs{lost}"


def _ballot_of(rows: Judgments, ballots: Ballots) -> NDArray[np.intp]:
    """The ballot that each judgment (rows,) is of, -1 for none: that of its judge, instruction and repeat."""
    judge = {name: code for code, name in enumerate(ballots.judges)}
    asked = {name: code for code, name in enumerate(ballots.instructions)}
    judges = np.array([judge.get(name, len(judge)) for name in rows.judges], dtype=np.int64)
    instructions = np.array([*(asked.get(name, len(asked)) for name in rows.instructions), -1], dtype=np.int64)
    key = combine(
        np.concatenate([ballots.judge, judges[rows.judge]]),
        np.concatenate([ballots.instruction, instructions[rows.instruction]]) + 1,
        np.concatenate([ballots.repeat, rows.repeat]),
    )
    codes = np.unique(key, return_inverse=True)[1]
    ballot = np.full(len(codes), -1, dtype=np.intp)
    ballot[codes[: len(ballots)]] = np.arange(len(ballots))
    return ballot[codes[len(ballots) :]]
