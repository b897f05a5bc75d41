"""Who is asked: the judges of a campaign, or its contestants, as the respondents that a store knows."""

from __future__ import annotations

from dataclasses import replace

from venire.arena.campaigns import CampaignSettings, JudgeSettings, PhaseSettings, StopSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key
from venire.arena.records import EDIT, GENERATE, Respondent
from venire.arena.wording import suggest
from venire.judges import PROTOCOLS
from venire.judges.context_window import TRUNCATIONS
from venire.judges.providers.price_table import find_context
from venire.judges.providers.token_counting import vocabulary_of
from venire.orchestrator.designs import PlannedCampaign
from venire.storage.plans import plans
from venire.storage.store.store import Store


def respondents(campaign: CampaignSettings) -> list[tuple[JudgeSettings, Respondent]]:
    """The judges of a campaign as respondents.

    Raises InputError for an unknown protocol, for options that it does not take, and for two judges that are the same
    but for their names.
    """
    found: list[tuple[JudgeSettings, Respondent]] = []
    keys: dict[bytes, str] = {}
    for judge in campaign.judges:
        writers = {GENERATE: campaign.contestants, EDIT: campaign.editors}.get(judge.protocol, ())
        if judge.protocol not in PROTOCOLS or (judge.shape.writes and judge not in writers):
            known = suggest(judge.protocol, [name for name in PROTOCOLS if not PROTOCOLS[name].shape.writes])
            raise InputError(f"{campaign.path}: judge {judge.name!r}: no protocol {judge.protocol!r}; {known}")
        entry = PROTOCOLS[judge.protocol]
        try:
            entry.check(judge.options)
        except InputError as error:
            raise InputError(f"{campaign.path}: {_who(judge)}: {error}") from None
        respondent = Respondent(
            judge.model,
            judge.protocol,
            judge.origin,
            tuple(sorted(judge.options.items())),
            entry.digests(judge.options),
        )
        twin = keys.setdefault(respondent_key(respondent), judge.name)
        if twin != judge.name:
            raise InputError(
                f"{campaign.path}: {twin!r} and {judge.name!r} are the same: same model, protocol and settings; for "
                "more verdicts of one judge use [plan] repeats, for more completions of a contestant samples"
            )
        found.append((judge, respondent))
    return found


def _who(judge: JudgeSettings) -> str:
    kind = {GENERATE: "contestant", EDIT: "editor"}.get(judge.protocol, "judge")
    return f"{kind} {judge.name!r}"


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


def editing(campaign: CampaignSettings) -> CampaignSettings:
    """The campaign in which completions of another are edited, with a name and a plan of its own.

    Its budget is that of generating completions. Raises InputError where there is no editor.
    """
    if not campaign.editors:
        raise InputError(f"{campaign.path}: names no editor: add an [[editor]] table with the name of the edit")
    return replace(
        campaign,
        name=f"{campaign.name} (edits)",
        plan=replace(campaign.plan, phases=(PhaseSettings("all-pairs"),), variants=(), repeats=1, stop=StopSettings()),
        judges=campaign.editors,
        budget=campaign.generation,
        judge_budgets={},
        model_budgets={},
        settings=campaign.editing_settings,
    )


def refuse_edited(store: Store, campaign: CampaignSettings, planned: PlannedCampaign) -> None:
    """Raises InputError where there is an edited copy from a file of what an editor would be asked and paid for."""
    for name, instruction, count in plans.edited_already(store, planned.id):
        raise InputError(
            f"{campaign.path}: the store has {count} copies edited as {name!r} that were not asked of this editor, as "
            f"for instruction {instruction!r}: give the edit another name, or use another store"
        )


def refuse_written(store: Store, campaign: CampaignSettings, planned: PlannedCampaign) -> None:
    """Raises InputError where a contestant's name has answers from a file to what it would be asked and paid for."""
    for name, instruction, count in plans.written_already(store, planned.id):
        raise InputError(
            f"{campaign.path}: {name!r} has {count} answers in the store that were not asked of this contestant, such "
            f"as to instruction {instruction!r}: give the contestant another name, or use another store"
        )


def with_contexts(campaign: CampaignSettings) -> CampaignSettings:
    """The campaign with what is known of each judge's context and vocabulary.

    A context that the file does not give is looked up where prices are. Where texts are cut, the vocabulary is one of
    the judge's options: it decides what is sent.
    """
    return replace(
        campaign,
        judges=tuple(map(_with_context, campaign.judges)),
        contestants=tuple(map(_with_context, campaign.contestants)),
        editors=tuple(map(_with_context, campaign.editors)),
    )


def _with_context(judge: JudgeSettings) -> JudgeSettings:
    context = judge.context or find_context(judge.model, judge.lane.routes[0].base_url)
    if context is None or context <= int(judge.options["max_tokens"]):
        return judge
    vocabulary = vocabulary_of(judge.model)
    options = judge.options
    if options.get("too_long") in TRUNCATIONS:
        options = dict(sorted({**options, "vocabulary": vocabulary}.items()))
    return replace(judge, context=context, vocabulary=vocabulary, options=options)
