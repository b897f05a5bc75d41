"""What is known of a campaign's judges before anything is sent to them: their contexts, and what will not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.records import Completion, Instruction, Material, Outcome, Reply, Request, Shape, Trial
from venire.judges import PROTOCOLS
from venire.judges.context_window import CUTS, count, fits, room, size
from venire.judges.conversation import advance
from venire.judges.providers.token_counting import vocabulary_of
from venire.judges.providers.vendors import find_context
from venire.orchestrator.designs import PlannedCampaign
from venire.storage.read import lengths
from venire.storage.store.store import Store

__all__ = ["LongForecast", "fitting", "forecast_long", "with_contexts"]

_WORD = "so "
"""A token."""

_FENCE = 16 * "0"


@dataclass(frozen=True, slots=True)
class LongForecast:
    """How many of the trials left for one judge will not fit its context (None: not known), and what is done then."""

    judge: str
    context: int | None
    too_long: int | None
    policy: str


def with_contexts(campaign: CampaignSettings) -> CampaignSettings:
    """The campaign with what is known of each judge's context and vocabulary.

    A context that the file does not give is looked up where prices are. Where texts are cut, the vocabulary is one of
    the judge's options: it decides what is sent.
    """
    return replace(
        campaign,
        judges=tuple(map(_with_context, campaign.judges)),
        contestants=tuple(map(_with_context, campaign.contestants)),
    )


def _with_context(judge: JudgeSettings) -> JudgeSettings:
    context = judge.context or find_context(judge.model, judge.lane.routes[0].base_url)
    if context is None or context <= int(judge.options["max_tokens"]):
        return judge
    vocabulary = vocabulary_of(judge.model)
    options = judge.options
    if options.get("too_long") in CUTS:
        options = dict(sorted({**options, "vocabulary": vocabulary}.items()))
    return replace(judge, context=context, vocabulary=vocabulary, options=options)


def fitting(judge: JudgeSettings) -> Callable[[Request], bool]:
    """Tells of a request whether it fits the judge's context; any does where that is not known."""
    if judge.context is None:
        return lambda request: True
    return partial(fits, context=judge.context, vocabulary=judge.vocabulary)


def forecast_long(store: Store, planned: PlannedCampaign) -> tuple[LongForecast, ...]:
    """What of the trials left will not fit, by judge, if its replies are as long as is expected of its protocol.

    Texts are counted one by one and only where a trial may be too long.
    """
    found = []
    for number, judge in sorted(planned.judges.items(), key=lambda item: item[1].name):
        many = None
        if judge.context is not None:
            reference = PROTOCOLS[judge.protocol].needs_reference
            counted = partial(count, vocabulary=judge.vocabulary)
            left = _room(judge, judge.context, len(planned.design.models))
            many = lengths.longer(store, planned.id, number, left, counted, reference=reference)
        found.append(LongForecast(judge.name, judge.context, many, judge.options.get("too_long", "error")))
    return tuple(found)


def _room(judge: JudgeSettings, context: int, models: int) -> int:
    """Tokens that instruction and completions may have together, beside what is said around them.

    Told by what the judge would be asked about empty texts, after replies of the length that is expected.
    """
    entry = PROTOCOLS[judge.protocol]
    many = {Shape.NONE: 0, Shape.SINGLE: 1, Shape.PAIR: 2, Shape.LIST: models}[entry.shape]
    empty = Material(Instruction("", ("",), ""), (Completion("", "", ""),) * many, (_FENCE,) * (1 + many))
    longest = int(judge.options["max_tokens"])
    replies = [Reply(_WORD * min(longest, tokens)) for tokens in entry.expects[:-1]]
    asked = advance(entry.talk, Trial(b"", b"", judge.protocol, "", (), 1), empty, judge.options, replies)
    if isinstance(asked, Outcome):
        return -1  # too long without any text
    return room(asked, context) - size(asked, judge.vocabulary)
