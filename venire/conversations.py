"""A trial's conversation made again from the record: its requests, and what its replies say by today's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.arena.errors import Fault
from venire.arena.keys import prompt_digest, respondent_key
from venire.arena.records import UNSENT, Outcome, Reply, Respondent, Status
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.judges.prompts import choose
from venire.orchestrator.engines.trial import stage
from venire.orchestrator.recording.recorder import verdict_columns
from venire.orchestrator.run.reparse import read_again
from venire.storage.plans.trial_states import PendingTrial, pending_trial, read_logprobs
from venire.storage.read.readings import AskedJudge, AskedRespondent, asked_judges
from venire.storage.read.trial_details import AttemptDetail, TrialDetail
from venire.storage.read.trial_table import STATUSES
from venire.storage.store.store import Store

Reader = Callable[[Sequence[TrialDetail]], Mapping[int, Mapping[str, Any]]]


def conversation_reader(store: Store, campaign: int) -> Reader:
    """A function from trials with their attempts to their conversations as plain values; the judges are read once.

    `requests` holds the requests that the stored replies determine: `messages`, `settings` in words, and `how` they
    were made; `today` what the replies are read as now: `verdict` (status, label, score, places), `words`, `rule`; None
    of a trial without a reply. `error` is there alone where this version does not have the judge's protocol.
    """
    judges = {one.number: one for one in asked_judges(store, campaign)}
    is_same = {number: _has_same_prompts(one) for number, one in judges.items() if one.protocol in PROTOCOLS}

    def read(trials: Sequence[TrialDetail]) -> dict[int, Mapping[str, Any]]:
        found: dict[int, Mapping[str, Any]] = {}
        for pending, detail in zip(_pending(store, trials), trials, strict=True):
            asked = judges.get(pending.respondent)
            if asked is None:
                continue
            if asked.protocol not in PROTOCOLS:
                why = f"this Venire does not have the protocol {asked.protocol!r}, by which this was asked"
                found[pending.id] = {"error": why}
                continue
            found[pending.id] = {
                "requests": _requests(pending, asked, same=is_same[pending.respondent]),
                "today": _today(pending, asked, _last_faults(detail)) if pending.replies else None,
            }
        return found

    return read


def _pending(store: Store, trials: Sequence[TrialDetail]) -> list[PendingTrial]:
    """The trials as they would be asked, with the replies on record."""
    with store.loading:
        instructions = store.texts.instructions({one.instruction for one in trials})
        completions = store.texts.completions({number for one in trials for number in one.shown})
    return [
        pending_trial(
            (one.id, one.key, one.respondent, one.swapped, one.repeat, one.instruction, one.shown),
            instructions[one.instruction],
            [completions[number] for number in one.shown],
        )._replace(replies=_replies(one))
        for one in trials
    ]


def _replies(trial: TrialDetail) -> tuple[Reply, ...]:
    """Of the answered attempts of each step the first one, up to the first step that has none."""
    answered: dict[int, AttemptDetail] = {}
    for one in trial.attempts:
        if one.fault == Fault.NONE:
            answered.setdefault(one.step, one)
    found: list[Reply] = []
    while (reply := answered.get(len(found) + 1)) is not None:
        found.append(
            Reply(
                reply.text or "",
                reply.finish or "",
                reply.reasoning or "",
                input_tokens=reply.input_tokens or 0,
                output_tokens=reply.output_tokens or 0,
                logprobs=read_logprobs(reply.logprobs),
            )
        )
    return tuple(found)


def _last_faults(trial: TrialDetail) -> dict[tuple[int, int], int]:
    """The fault of the last attempt at each step that brought no reply."""
    last = {one.step: one for one in trial.attempts}
    return {(trial.id, step): one.fault for step, one in last.items() if one.fault != Fault.NONE}


def _has_same_prompts(asked: AskedJudge) -> bool:
    """Whether today's prompts make the key under which a judge was asked."""
    entry = PROTOCOLS[asked.protocol]
    digests = tuple(prompt_digest(choose(entry.folder, name, asked.options).template) for name in entry.prompts)
    options = tuple(sorted(asked.options.items()))
    return respondent_key(Respondent(asked.model, asked.protocol, asked.origin, options, digests)) == asked.key


def _requests(pending: PendingTrial, asked: AskedJudge, *, same: bool) -> list[dict[str, Any]]:
    trial, material = stage(pending, asked.key, asked.protocol)
    how = (
        "As the protocol made it; keys are never on record."
        if same
        else "Made by today's prompts, which have changed since this judge was asked."
    )
    found: list[dict[str, Any]] = []
    for count in range(len(pending.replies) + 1):
        request = advance(PROTOCOLS[asked.protocol].talk, trial, material, asked.options, pending.replies[:count])
        if isinstance(request, Outcome):
            break
        settings = [f"At most {request.max_tokens:,} tokens"]
        if request.temperature is not None:
            settings.append(f"temperature {request.temperature:g}")
        settings.append(f"seed {request.seed}")
        if request.schema is not None:
            settings.append("held to a JSON schema where the endpoint can")
        found.append(
            {"messages": [dict(one) for one in request.messages], "settings": ", ".join(settings) + ".", "how": how}
        )
    return found


def _today(pending: PendingTrial, asked: AskedJudge, faults: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    respondent = AskedRespondent(asked.model, asked.protocol, asked.options, asked.key)
    verdict, unasked = read_again(pending, respondent, faults)
    status, rule, label, score, _, places, answered, _ = verdict_columns(verdict)
    words = STATUSES[status].replace("_", " ")
    if unasked:
        words = "one more step would be asked"
    elif Status(status) is Status.OK and label is not None:
        words = _label_words(pending, int(label))
    elif places is not None:
        words = "ranked " + ", ".join(map(str, places))
    elif answered:
        words = "an answer"
    return {
        "verdict": (STATUSES[status], label, score, None if places is None else tuple(places)),
        "rule": None if rule == UNSENT else rule,
        "words": words,
    }


def _label_words(pending: PendingTrial, label: int) -> str:
    if pending.swapped is None:
        return {1: "yes", 0: "no"}.get(label, "not attempted")
    models = [one.model for one in pending.shown]
    a, b = reversed(models) if pending.swapped else models
    return {1: a, -1: b}.get(label, "tie")
