"""Ballots of a file or of a store's campaign, as verdicts on pairs; and which of the models a judge is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.arena.records import GENERATE
from venire.ratings.data.ballots import Unranked, to_battles
from venire.storage.read import frames
from venire.storage.store.store import Store
from venire.storage.transfer.formats.ballots import has_ballots, read_ballots

__all__ = ["BALLOTS", "campaign_ballots", "file_ballots", "left_out", "peers_of"]

BALLOTS = "ballots"
"""The format of a table of ballots, as `--format` names it."""


def file_ballots(
    paths: Sequence[Path],
    form: str | None,
    *,
    mapping: Mapping[str, str] = {},
    where: Mapping[str, str | Sequence[str]] = {},
    unranked: Unranked = "below",
    given: Mapping[str, object] = {},
) -> Battles | None:
    """The ballots of a file as pairs; None where it is none of ballots, by `form` or, without one, by its columns.

    `given` are options by name that mean nothing to ballots. Raises InputError for one of them that was given, for
    several files, and as `read_ballots` does.
    """
    if form not in (None, BALLOTS) or (form is None and not has_ballots(paths[0], mapping)):
        if unranked != "below":
            raise InputError(f"{paths[0]} holds no ballots (columns model and rank): leave --unranked out")
        return None
    if len(paths) > 1:
        raise InputError(f"{paths[1]}: a table of ballots is rated by itself; put the tables together into one")
    if said := [name for name, value in given.items() if value]:
        raise InputError(f"{paths[0]} is a table of ballots: leave {', '.join(said)} out")
    return to_battles(read_ballots(paths[0], mapping, where=where, below=unranked == "below"))


def campaign_ballots(store: Store, campaign: frames.CampaignRow) -> Battles:
    """The ballots of a campaign as pairs; pairs of a ballot that was not read have its status."""
    return to_battles(*frames.ballots(store, campaign.id))


def left_out(judges: Collection[frames.JudgeRow]) -> str:
    """What to say of judges of ballots in a campaign that judges pairs as well."""
    names = sorted(judge.name for judge in judges)
    more = " and others" if len(names) > 5 else ""
    return (
        f"pairs are rated here, and the ballots of {', '.join(names[:5])}{more} left out: methods that need ballots "
        "take those alone"
    )


def peers_of(store: Store, judges: Collection[frames.JudgeRow], models: Collection[str]) -> dict[str, str]:
    """Which of the models a judge is, by the judge's name: the one that its own model is or wrote the answers of."""
    writers: dict[str, set[str]] = {}
    for one in frames.campaigns(store):
        for row in frames.judges(store, one.id):
            if row.protocol == GENERATE and row.name in models:
                writers.setdefault(row.model, set()).add(row.name)
    found = {}
    for judge in judges:
        if judge.model in models:
            found[judge.name] = judge.model
        elif len(wrote := writers.get(judge.model, set())) == 1:  # of several settings of one model nobody knows which
            found[judge.name] = next(iter(wrote))
    return {judge: model for judge, model in found.items() if judge != model}
