"""Completions for a campaign to judge: its contestants are asked like judges, and their replies become completions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key
from venire.arena.records import Answer, Completion, Outcome
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.planning.plan import respondents
from venire.orchestrator.recording.trial import stage
from venire.storage.plans import plans
from venire.storage.store.store import Store
from venire.storage.transfer import importing
from venire.storage.transfer.importing import Added

__all__ = ["generation", "refuse_written", "take_answers"]

_CHUNK = 500


def generation(campaign: CampaignSettings) -> CampaignSettings:
    """The campaign in which the contestants of another are asked, with a name, a budget and a plan of its own.

    Raises InputError where there are none.
    """
    if not campaign.contestants:
        raise InputError(f"{campaign.path}: names no contestant: add a [[contestant]] table for each model to be asked")
    return replace(
        campaign,
        name=f"{campaign.name} (completions)",
        data=replace(campaign.data, completions=None, elo=None, models=None),
        judges=campaign.contestants,
        budget=campaign.generation,
        judge_budgets={},
        model_budgets={},
        settings=campaign.generation_settings,
    )


def refuse_written(store: Store, campaign: CampaignSettings, planned: PlannedCampaign) -> None:
    """Raises InputError where a contestant's name has answers from a file to what it would be asked and paid for."""
    for name, instruction, count in plans.written_already(store, planned.id):
        raise InputError(
            f"{campaign.path}: {name!r} has {count} answers in the store that were not asked of this contestant, such "
            f"as to instruction {instruction!r}: give the contestant another name, or use another store"
        )


def take_answers(store: Store, campaign: CampaignSettings, planned: PlannedCampaign) -> Added:
    """Make completions of what the contestants of a planned generation have answered so far.

    Nothing is made twice, whenever it is called: a completion is known by its model, instruction and sample.
    """
    keys = {judge.name: respondent_key(who) for judge, who in respondents(campaign)}
    added = Added()
    trials = plans.answered(store, planned.id)
    for start in range(0, len(trials), _CHUNK):
        found = importing.add(store, _completions(store, planned, keys, trials[start : start + _CHUNK]))
        added = Added(completions=added.completions + found.completions, known=added.known + found.known)
    return added


def _completions(
    store: Store, planned: PlannedCampaign, keys: dict[str, bytes], trials: list[int]
) -> Iterator[Completion]:
    for pending in plans.load(store, np.asarray(trials, dtype=np.int64)):
        contestant = planned.judges[pending.respondent]
        trial, material = stage(pending, keys[contestant.name], contestant.protocol)
        conversation = PROTOCOLS[contestant.protocol].talk
        outcome = advance(conversation, trial, material, contestant.options, pending.replies)
        if isinstance(outcome, Outcome) and isinstance(outcome.reading, Answer):
            yield Completion(contestant.name, pending.instruction.id, outcome.reading.text, pending.repeat)
