"""Covariates of a store's verdicts: what the answers look like, and whose family they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.style import STYLE_NAMES, same_family, style_covariates
from venire.storage.read import frames
from venire.storage.store.store import Store

__all__ = ["FAMILY", "battles_with_covariates"]

FAMILY = "same-family"
"""The covariate for answers of the judge's own family."""


def battles_with_covariates(
    store: Store,
    campaign: int,
    names: Sequence[str],
    *,
    families: Mapping[str, str],
    judge_families: Mapping[str, str],
) -> Battles:
    """The verdicts of a campaign with the covariates named: of style, from the texts that were shown, and of family.

    `position` is known from the order shown and needs no column. Raises InputError for another name.
    """
    known = (*STYLE_NAMES, FAMILY, "position")
    if strange := [name for name in names if name not in known]:
        raise InputError(f"a store knows no covariate {strange[0]!r}; it knows {', '.join(known)}")
    battles, text_a, text_b = frames.battles_and_texts(store, campaign)
    found = {}
    if set(names) & set(STYLE_NAMES):
        table = style_covariates(text_a, text_b)
        found = {name: table[:, STYLE_NAMES.index(name)] for name in names if name in STYLE_NAMES}
    if FAMILY in names:
        own = [judge_families.get(judge, families.get(judge)) for judge in battles.judges]
        of_model = [families.get(model) for model in battles.models]
        sides = ([of_model[code] for code in side.tolist()] for side in (battles.model_a, battles.model_b))
        found[FAMILY] = same_family([own[code] for code in battles.judge.tolist()], *sides)
    return replace(battles, features=found)
