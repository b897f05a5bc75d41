"""People whose votes are beside verdicts: by name, as a group of a store or as a judge of a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_with
from venire.arena.records import Origin
from venire.arena.wording import few
from venire.ratings.data.judgments import merge_orders
from venire.ratings.data.people import split_people
from venire.ratings.soft_elo.soft_elo import human_elo
from venire.reports.board.diagnostics import ReferenceReading, reference_reading
from venire.reports.board.source import VerdictSource
from venire.reports.board.verdicts import People, Verdicts
from venire.storage.read import frames
from venire.storage.store.opening import reading
from venire.storage.store.store import Store

ANY_PEOPLE = "people"
"""As a reference or as `--human`: the only group of people that a store has votes of."""


def people_as_reference(source: VerdictSource, found: Verdicts) -> People | None:
    """The people whom a reference names; None where it is a file. Raises InputError where several may be meant."""
    name = str(source.reference)
    if source.reference is None or source.reference.exists():
        return None
    if found.people is not None and name in (found.people.name, ANY_PEOPLE):
        return found.people
    if name not in (*found.groups, ANY_PEOPLE):
        if source.reference.suffix:
            return None
        known = f"votes are here of {few(found.groups)}" if found.groups else "there are no votes of people here"
        raise InputError(f"{setting('reference')} {name}: no file is called so, and no people; {known}")
    if not found.groups:
        raise InputError(
            f"{setting('reference')} {name}: there are no votes of people here: `venire import votes` brings them into "
            f"a store, and {setting_with('human', 'NAME')} names those of a table"
        )
    assert source.store is not None  # groups of people are in stores alone
    with reading(source.store) as store:
        return chosen_people(store, name, setting("reference"))


def chosen_people(store: Store, name: str, option: str) -> People:
    """A group of people of a store by name, or its only one. Raises InputError that lists those there are."""
    there = frames.people(store)
    named = [one for one in there if one.name == name]
    named = named or (list(there) if name == ANY_PEOPLE else [])
    if len(named) != 1:
        known = ", ".join(one.name for one in there) or "none; `venire import votes` brings some"
        raise InputError(f"{option} {name}: name one group of people whose votes are in {store.path}: {known}")
    return People(named[0].name, named[0].origin, frames.votes(store, named[0].id))


def with_people(store: Store, found: Verdicts, human: str | None) -> Verdicts:
    """The verdicts of a store beside the votes of the people named, or of its only group."""
    groups = tuple(one.name for one in frames.people(store))
    if human is None and len(groups) != 1:
        return replace(found, groups=groups)
    people = chosen_people(store, groups[0] if human is None else human, setting("human"))
    battles = replace(found.battles, people=people.battles)
    ballots = None if found.ballots is None else replace(found.ballots, people=people.battles)
    return replace(found, battles=battles, ballots=ballots, people=people, groups=groups)


def people_of_table(found: Verdicts, human: str) -> Verdicts:
    """The verdicts of a table without those of the judge `human`, who is people."""
    battles, votes = split_people(found.battles, [human])
    simulated = Origin.of_model(human) is Origin.SIMULATED
    people = People(human, Origin.SIMULATED if simulated else Origin.PEOPLE, votes)
    return replace(found, battles=replace(battles, people=votes), people=people, groups=(human,))


def ratings_by_people(people: People, found: Verdicts) -> tuple[dict[str, float], ReferenceReading]:
    """Ratings of the models that people voted on, by Bradley-Terry with a slight ridge, and how they are used."""
    votes = merge_orders(people.battles).comparisons()
    rated = human_elo(votes, votes.y, errors="none")
    elo = {name: float(value) for name, value in zip(rated.models, rated.elo, strict=True) if np.isfinite(value)}
    models = set(found.battles.models)
    if models and not elo.keys() & models:
        raise InputError(f"{setting('reference')} {people.name}: people voted on none of the models that were judged")
    return elo, reference_reading(elo, models, found.reference, people=people.counts)
