"""What a judge is sent for one trial, message by message, as the run itself would make it; nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from venire.arena.campaigns import CampaignSettings, JudgeSettings
from venire.arena.errors import InputError
from venire.arena.keys import respondent_key
from venire.arena.records import Outcome, Request, Respondent
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.orchestrator.planning.respondents import respondents
from venire.orchestrator.recording.trial import stage
from venire.render.prompts import lines_of
from venire.session import Session
from venire.storage.plans import plans
from venire.storage.plans.plans import PendingTrial
from venire.storage.read.readings import asked_judges, find_trial
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.wording import plain

__all__ = ["Rendered", "render", "show_rendered"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """One request of a trial, and where in its conversation it stands."""

    judge: JudgeSettings
    trial: PendingTrial
    request: Request
    step: int
    steps: int
    """Requests that can be told from the replies on record."""
    outcome: Outcome | None
    """How the conversation ended; None where its next reply is not on record."""
    planned_now: bool
    """Whether there was no plan of these settings in the store, so that it was made."""

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


def render(campaign: CampaignSettings, wanted: str | None, step: int | None) -> Rendered:
    """The request of a step (1, 2, ...; None: the last that can be told) of a planned trial (None: the first).

    A plan of these settings that the store has is only read; otherwise the data is imported and the plan written, as
    `venire plan` does. Raises InputError where there is no such trial or step, and where the trial was planned with
    other prompts than these.
    """
    judges = respondents(campaign)
    with _planned(campaign) as (store, number, planned_now):
        trial = plans.load(store, np.array([find_trial(store, number, wanted)], dtype=np.int64))[0]
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
    return Rendered(judge, trial, requests[chosen - 1], chosen, len(requests), outcome, planned_now)


@contextmanager
def _planned(campaign: CampaignSettings) -> Iterator[tuple[Store, int, bool]]:
    """A store with the campaign's plan, the campaign's number, and whether the plan was made now."""
    if campaign.store.exists():
        with open_store(campaign.store, create=False) as store:
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
    """The judge of a trial; raises InputError where today's prompts are not those of its plan."""
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
    """Every request that follows from the replies on record, and how it ended."""
    staged, material = stage(trial, respondent_key(respondent), judge.protocol)
    requests: list[Request] = []
    for count in range(len(trial.replies) + 1):
        found = advance(PROTOCOLS[judge.protocol].talk, staged, material, judge.options, trial.replies[:count])
        if isinstance(found, Outcome):
            return requests, found
        requests.append(found)
    return requests, None


def show_rendered(screen: Console, found: Rendered) -> None:
    """What was asked for in a few lines, then each message under a line with its role."""
    for line in _heading(found):
        screen.print(plain(line), soft_wrap=True, style="dim")
    messages = found.request.messages
    for number, message in enumerate(messages, 1):
        screen.print(f"\n----- message {number} of {len(messages)}: {message['role']} -----", style="bold")
        # On a screen nothing of a text may be obeyed; elsewhere it is wanted as it is.
        for line in lines_of(message["content"]) if screen.is_terminal else message["content"].split("\n"):
            screen.print(line, soft_wrap=True)
    if not messages:
        screen.print("\nnothing: this judgment was made elsewhere, and how the judge was asked is not on record")


def _heading(found: Rendered) -> Iterator[str]:
    trial, judge, request = found.trial, found.judge, found.request
    if found.planned_now:
        yield "the store had no plan of this file: the data was imported and the plan written, as by `venire plan`"
    shown = ", ".join(one.model for one in trial.shown) or "none"
    model = "" if judge.model == judge.name else f" ({judge.model})"
    yield f"trial {trial.id}, key {trial.key.hex()}: judge {judge.name}{model}, protocol {judge.protocol}"
    yield f"instruction {trial.instruction.id}; completions in the order shown: {shown}; repeat {trial.repeat}"
    if found.outcome is not None:
        status = found.outcome.status.name.lower().replace("_", " ")
        yield f"step {found.step} of {found.steps}; the trial is settled: {status}"
    elif found.step < found.steps:
        yield f"step {found.step}, which is answered; step {found.steps} is the next to be asked"
    else:
        yield f"step {found.step}, the next to be asked"
    asked = [f"max_tokens {request.max_tokens}", f"seed {request.seed}"]
    asked += [] if request.temperature is None else [f"temperature {request.temperature:g}"]
    asked += ["an answer by a JSON schema (--json shows it)"] if request.schema is not None else []
    asked += [f"log-probabilities of the {request.top_logprobs} likeliest tokens"] if request.top_logprobs else []
    yield f"with {', '.join(asked)}, where the provider takes them"
