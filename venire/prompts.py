"""The prompts of judges: their list, a campaign's differences from ours and from the stored ones, and the requests."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import prompt_digest, respondent_key
from venire.arena.records import Outcome, Request, Respondent
from venire.judges import PROTOCOLS, ProtocolEntry
from venire.judges.conversation import advance
from venire.judges.prompts import OVERRIDE, choose, header, load, source
from venire.orchestrator.engines.trial import stage
from venire.orchestrator.planning.respondents import respondents
from venire.session import Session
from venire.storage.plans import plans, trial_states
from venire.storage.plans.trial_states import PendingTrial
from venire.storage.read.readings import AskedJudge, asked_judges, find_trial, prompt_texts
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store

_FRONT = ("system", "examples")
"""Options whose texts precede those of the protocol."""


def known_prompts() -> list[dict[str, Any]]:
    """Every prompt of every protocol, as plain values."""
    found = []
    for protocol, entry in PROTOCOLS.items():
        for name in entry.prompts:
            template, facts = load(entry.folder, name), header(entry.folder, name)
            found.append(
                {
                    "protocol": protocol,
                    "prompt": name,
                    "digest": prompt_digest(template.template).hex(),
                    "variables": template.get_identifiers(),
                    "purpose": facts.get("purpose", ""),
                    "expected_answer": facts.get("expected answer", ""),
                }
            )
    return found


def prompt_sources(wanted: str) -> dict[str, str]:
    """The files of a protocol's prompts, or of the named prompt, header included, by PROTOCOL/NAME.

    Raises InputError for an unknown protocol or prompt.
    """
    protocol, slash, name = wanted.partition("/")
    protocol = protocol.replace("_", "-")
    entry = PROTOCOLS.find(protocol)
    if not entry.prompts:
        raise InputError(f"protocol {protocol!r} has no prompt of its own")
    name = name.removesuffix(".txt")
    if slash and name not in entry.prompts:
        raise InputError(f"protocol {protocol!r} has no prompt {name!r}; it sends: {', '.join(entry.prompts)}")
    return {f"{protocol}/{one}": source(entry.folder, one) for one in ([name] if slash else entry.prompts)}


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """A prompt of one judge that differs from ours ("default"), or from the one in the plan ("store")."""

    judge: str
    prompt: str
    against: str
    diff: str
    """Unified diff."""


def prompt_differences(campaign: CampaignSettings) -> tuple[list[PromptDifference], list[str]]:
    """A campaign's prompts against the defaults and against its store, and sentences about the comparison.

    The store is only read; sentences report a missing store, or a store without the campaign.
    """
    judges = respondents(campaign)
    found = [one for judge, _ in judges for one in _from_defaults(judge)]
    if not campaign.store.exists():
        return found, [f"there is no store {campaign.store.name} yet to compare with"]
    with open_store(campaign.store, create=False, to_read=True) as store:
        known = plans.find_campaign(store, campaign.name)
        if known is None or not known.planned:
            return found, [f"{campaign.store.name} has no plan of campaign {campaign.name!r} to compare with"]
        notes: list[str] = []
        return found + list(_from_store(store, known.id, judges, notes)), notes


def _from_defaults(judge: JudgeSettings) -> Iterator[PromptDifference]:
    entry = PROTOCOLS[judge.protocol]
    for name in entry.prompts:
        ours, theirs = load(entry.folder, name).template, choose(entry.folder, name, judge.options).template
        if ours != theirs:
            yield _difference(judge, name, "default", ours, theirs)


def _from_store(
    store: Store, campaign: int, judges: Sequence[tuple[JudgeSettings, Respondent]], notes: list[str]
) -> Iterator[PromptDifference]:
    texts = prompt_texts(store)
    before = {one.name: one for one in asked_judges(store, campaign)}
    for judge, respondent in judges:
        asked = before.pop(judge.name, None)
        if asked is None:
            notes.append(f"judge {judge.name!r} is not in the plan of {store.path.name}")
        elif asked.key != respondent_key(respondent):
            sent = _sent(asked, texts)
            if sent is None:
                notes.append(f"what judge {judge.name!r} was planned with cannot be told from {store.path.name}")
                continue
            yield from _from_sent(judge, sent)
            notes += _other_settings(judge, asked)
    notes += [f"judge {name!r} is in the plan of {store.path.name} and not in the file" for name in before]


def _sent(asked: AskedJudge, texts: Mapping[str, tuple[str, ...]]) -> Mapping[str, str] | None:
    """The texts sent to a stored judge, by name: the stored texts that produce its key; None if none do."""
    entry = PROTOCOLS.get(asked.protocol)
    if entry is None:
        return None
    candidates = [_candidates(entry, name, asked.options, texts) for name in entry.prompts]
    options = tuple(sorted(asked.options.items()))
    for chosen in product(*candidates):
        digests = tuple(map(prompt_digest, chosen))
        if respondent_key(Respondent(asked.model, asked.protocol, asked.origin, options, digests)) == asked.key:
            return dict(zip(entry.prompts, chosen, strict=True)) | {
                name: asked.options.get(name, "") for name in _FRONT
            }
    return None


def _candidates(
    entry: ProtocolEntry, name: str, options: Mapping[str, str], texts: Mapping[str, tuple[str, ...]]
) -> Sequence[str]:
    """Possible texts of one prompt of a stored judge: its own override, or any stored text that was once our default.

    A text that several protocols share is in the store once, under the name of one of them.
    """
    own = options.get(OVERRIDE + name)
    if own is not None:
        return (own,)
    kept = [text for known, those in texts.items() if known.endswith(f"/{name}") for text in those]
    return tuple(dict.fromkeys((load(entry.folder, name).template, *kept)))


def _from_sent(judge: JudgeSettings, sent: Mapping[str, str]) -> Iterator[PromptDifference]:
    entry = PROTOCOLS[judge.protocol]
    now = {name: choose(entry.folder, name, judge.options).template for name in entry.prompts}
    now |= {name: judge.options.get(name, "") for name in _FRONT}
    for name in dict.fromkeys((*now, *sent)):
        if now.get(name, "") != sent.get(name, ""):
            yield _difference(judge, name, "store", sent.get(name, ""), now.get(name, ""))


def _other_settings(judge: JudgeSettings, asked: AskedJudge) -> Iterator[str]:
    """Settings other than texts in which a judge differs from the planned judge."""
    before = {"model": asked.model, "protocol": asked.protocol, **asked.options}
    now = {"model": judge.model, "protocol": judge.protocol, **judge.options}
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name) and name not in _FRONT and not name.startswith(OVERRIDE):
            yield (
                f"judge {judge.name!r}: {name} was {before.get(name, 'not given')!r} and is "
                f"{now.get(name, 'not given')!r}"
            )


def _difference(judge: JudgeSettings, name: str, against: str, before: str, now: str) -> PromptDifference:
    prompt = f"{judge.protocol}/{name}"
    was = "Venire's own" if against == "default" else "as planned"
    diff = difflib.unified_diff(
        before.splitlines(), now.splitlines(), f"{prompt} ({was})", f"{prompt} (judge {judge.name})", lineterm=""
    )
    return PromptDifference(judge.name, prompt, against, "\n".join(diff))


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """One request of a trial, and its position in the conversation."""

    judge: JudgeSettings
    trial: PendingTrial
    request: Request
    step: int
    steps: int
    """Number of requests that the stored replies determine."""
    outcome: Outcome | None
    """How the conversation ended; None where its next reply is not stored."""
    planned_now: bool
    """Whether the store had no plan of these settings, so that the plan was made now."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        trial, request = self.trial, self.request
        return {
            "trial": trial.id,
            "key": trial.key.hex(),
            "judge": self.judge.name,
            "model": self.judge.model,
            "protocol": self.judge.protocol,
            "instruction_id": trial.instruction.id,
            "shown": [one.model for one in trial.shown],
            "repeat": trial.repeat,
            "step": self.step,
            "steps": self.steps,
            "replies_on_record": len(trial.replies),
            "status": None if self.outcome is None else self.outcome.status.name.lower(),
            "messages": [dict(one) for one in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "schema": None if request.schema is None else dict(request.schema),
            "top_logprobs": request.top_logprobs,
            "planned_now": self.planned_now,
        }


def render_request(campaign: CampaignSettings, wanted: str | None, step: int | None) -> RenderedRequest:
    """The request of a step (1, 2, ...; None: the last known step) of a planned trial (None: the first).

    If the store has a plan of these settings, it is only read; otherwise the data is imported and the plan written, as
    `venire plan` does. Raises InputError for an unknown trial or step, and for a trial that was planned with different
    prompts.
    """
    judges = respondents(campaign)
    with _planned(campaign) as (store, number, planned_now):
        trial = trial_states.load(store, np.array([find_trial(store, number, wanted)], dtype=np.int64))[0]
        judge, respondent = _judge(campaign, judges, store, number, trial)
    requests, outcome = _conversation(judge, respondent, trial)
    chosen = len(requests) if step is None else step
    if chosen > len(requests):
        why = (
            f"the reply to step {len(requests)} is not on record, and what follows depends on it"
            if outcome is None
            else f"its conversation ended after {len(requests)}"
        )
        raise InputError(f"--step {chosen}: trial {trial.id} has no such step to show: {why}")
    return RenderedRequest(judge, trial, requests[chosen - 1], chosen, len(requests), outcome, planned_now)


@contextmanager
def _planned(campaign: CampaignSettings) -> Iterator[tuple[Store, int, bool]]:
    """A store with the campaign's plan, the campaign's number, and whether the plan was made now."""
    if campaign.store.exists():
        with open_store(campaign.store, create=False, to_read=True) as store:
            known = plans.find_campaign(store, campaign.name)
            if known is not None and known.planned and known.settings == campaign.settings:
                yield store, known.id, False
                return
    with Session(campaign) as session:
        yield session.store, session.planned.id, True


def _judge(
    campaign: CampaignSettings,
    judges: list[tuple[JudgeSettings, Respondent]],
    store: Store,
    number: int,
    trial: PendingTrial,
) -> tuple[JudgeSettings, Respondent]:
    """The judge of a trial; raises InputError if the current prompts differ from those of its plan."""
    asked = next(one for one in asked_judges(store, number) if one.number == trial.respondent)
    for judge, respondent in judges:
        if respondent_key(respondent) == asked.key:
            return judge, respondent
    raise InputError(
        f"{campaign.path}: judge {asked.name!r} was planned with other prompts than this version of Venire has: "
        f"`venire prompts diff {campaign.path.name}` shows the difference"
    )


def _conversation(
    judge: JudgeSettings, respondent: Respondent, trial: PendingTrial
) -> tuple[list[Request], Outcome | None]:
    """Every request that the stored replies determine, and how the conversation ended."""
    staged, material = stage(trial, respondent_key(respondent), judge.protocol)
    requests: list[Request] = []
    for count in range(len(trial.replies) + 1):
        found = advance(PROTOCOLS[judge.protocol].talk, staged, material, judge.options, trial.replies[:count])
        if isinstance(found, Outcome):
            return requests, found
        requests.append(found)
    return requests, None
