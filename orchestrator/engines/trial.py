"""One trial from its replies on record to its outcome, and the runner that asks trials and records them."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial

from venire.arena.campaigns import CampaignSettings, JudgeSettings, TokenPrice
from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault
from venire.arena.keys import respondent_key
from venire.arena.records import UNSENT, Conversation, Material, Outcome, Protocol, Reply, Request, Status, Trial
from venire.judges import PROTOCOLS
from venire.judges.context_window import TRUNCATIONS, context_after_refusal, fits
from venire.judges.conversation import resume
from venire.judges.orientation import orient
from venire.orchestrator.costs.budget import BudgetView
from venire.orchestrator.lanes.calls import Step
from venire.orchestrator.lanes.lane import Lane
from venire.orchestrator.lanes.routes import lane_name
from venire.orchestrator.planning.respondents import respondents
from venire.orchestrator.recording.events import Events
from venire.orchestrator.recording.recorder import Recorder
from venire.storage.plans.trial_states import PendingTrial

Ask = Callable[[int, Request], Awaitable[Reply]]
"""Asks the request of a step (1, 2, ...) and returns its reply."""

VERDICT_FAULTS = {Fault.FILTERED: Status.FILTERED, Fault.TOO_LONG: Status.TOO_LONG}
"""Faults that are an answer about the trial itself: it has a verdict of that status."""

UNSENT_OUTCOME = Outcome(Status.TOO_LONG, rule=UNSENT)
"""Of a trial whose next request was counted and would not fit."""


class UnreadableError(Exception):
    """The judge is asked no more, since its replies cannot be read, and this call was not sent."""


class TrialEnds(typing.Protocol):
    """Where it is said how trials ended: `TrialBook`, or whoever keeps one elsewhere."""

    def conclude(
        self,
        pending: PendingTrial,
        judge: JudgeSettings,
        outcome: Outcome,
        cost: int,
        seconds: float,
        reply: Reply | None = None,
    ) -> None:
        """A trial is settled, at nano-dollars for all its calls; `reply` is its last one of this run."""
        ...

    def fail(
        self, pending: PendingTrial, judge: JudgeSettings, step: int, fault: Fault, cost: int, seconds: float
    ) -> None:
        """A step of a trial used up its attempts, or was refused."""
        ...


class TrialRunner:
    """Asks the trials of a campaign one by one to their end, which goes to `ends`; `budgets` by respondent number.

    Respondents in `unreadable`, which may grow on the way, are sent no further call.
    """

    def __init__(
        self,
        campaign: CampaignSettings,
        ends: TrialEnds,
        budgets: Mapping[int, BudgetView],
        clock: Clock,
        unreadable: Container[int],
    ) -> None:
        self.ends = ends
        self._unreadable = unreadable
        self._keys = {judge.name: respondent_key(one) for judge, one in respondents(campaign)}
        self._budgets, self._clock = budgets, clock

    async def ask(self, pending: PendingTrial, judge: JudgeSettings, lane: Lane, price: TokenPrice) -> None:
        """Ask one trial to its end and record it: a verdict, or a failure.

        Raises what `Lane.ask` raises of a call that is not sent, and UnreadableError likewise.
        """
        protocol = PROTOCOLS[judge.protocol].talk
        trial, material = stage(pending, self._keys[judge.name], judge.protocol)
        start, budget = self._clock.monotonic(), self._budgets[pending.respondent]
        steps: list[Step] = []

        asked: list[Request] = []

        def ask(number: int, request: Request) -> Awaitable[Reply]:
            if pending.respondent in self._unreadable:
                raise UnreadableError
            refused = steps[-1].attempts if steps and steps[-1].number == number else 0
            attempts = refused or pending.attempts.get(number, 0)
            steps.append(Step(pending.id, pending.key, number, attempts, pending.instruction_number, judge.name))
            asked.append(request)
            return lane.ask(steps[-1], request, price, budget)

        def cost() -> int:
            return pending.cost + sum([step.cost for step in steps])

        fitted: JudgeSettings | None = judge
        replies: Sequence[Reply] = pending.replies
        while fitted is not None:
            try:
                outcome = await settle(protocol, trial, material, fitted.options, replies, ask, _fits_context(fitted))
                break
            except CallError as error:
                if error.fault not in VERDICT_FAULTS:
                    step, seconds = steps[-1].number, self._clock.monotonic() - start
                    lane.fail(error, partial(self.ends.fail, pending, judge, step, error.fault, cost(), seconds))
                    return
                outcome = Outcome(VERDICT_FAULTS[error.fault])
                fitted = _cut_more(judge, fitted, asked[-1], error)
                replies = (*pending.replies, *(step.reply for step in steps if step.reply is not None))
        seconds = self._clock.monotonic() - start
        self.ends.conclude(pending, judge, outcome, cost(), seconds, steps[-1].reply if steps else None)

    def resume(self, pending: PendingTrial, judge: JudgeSettings) -> tuple[Conversation, Request] | Outcome:
        """The conversation of a trial with the request that is next, or its outcome where there is none.

        A request that does not fit the judge's context is not asked: the trial is too long, or as the request has it.
        """
        trial, material = stage(pending, self._keys[judge.name], judge.protocol)
        found = resume(PROTOCOLS[judge.protocol].talk, trial, material, judge.options, pending.replies)
        if isinstance(found, Outcome):
            return found
        talk, request = found
        if not _fits_context(judge)(request):
            talk.close()
            return request.otherwise or UNSENT_OUTCOME
        return talk, request


class TrialBook:
    """Puts on record how trials ended, and counts that since the round was begun last.

    `on_verdict` gets every verdict's trial, status and last reply.
    """

    def __init__(self, events: Events, on_verdict: Callable[[PendingTrial, Status, Reply | None], None]) -> None:
        self._events, self._on_verdict = events, on_verdict
        self._recorder: Recorder | None = None
        self.settled = self.failed = 0
        self.by_judge: Counter[str] = Counter()
        """Settled and failed, by judge, in all rounds."""

    def begin(self, recorder: Recorder) -> None:
        """Record what comes of trials from now on with another recorder."""
        self._recorder = recorder

    def count_anew(self) -> None:
        """Begin to count, with all that was asked so far in the store."""
        self.settled = self.failed = 0

    def conclude(
        self,
        pending: PendingTrial,
        judge: JudgeSettings,
        outcome: Outcome,
        cost: int,
        seconds: float,
        reply: Reply | None = None,
    ) -> None:
        """See `TrialEnds.conclude`."""
        assert self._recorder is not None
        verdict = orient(pending.key, pending.swapped, outcome, flagged=pending.flagged)
        self._recorder.verdict(pending.id, verdict, cost)
        self.settled += 1
        self.by_judge[judge.name] += 1
        self._on_verdict(pending, outcome.status, reply)
        if self._events.active:
            self._emit_trial("trial.settled", pending, judge, cost, seconds, status=outcome.status.name.lower())

    def fail(
        self, pending: PendingTrial, judge: JudgeSettings, step: int, fault: Fault, cost: int, seconds: float
    ) -> None:
        """See `TrialEnds.fail`."""
        assert self._recorder is not None
        self._recorder.failure(pending.id, step, fault)
        self.failed += 1
        self.by_judge[judge.name] += 1
        if self._events.active:
            about = {"step": step, "fault": fault.name.lower()}
            self._emit_trial("trial.failed", pending, judge, cost, seconds, **about)

    def _emit_trial(
        self, name: str, pending: PendingTrial, judge: JudgeSettings, cost: int, seconds: float, **fields: object
    ) -> None:
        about = {"trial": pending.id, "key": pending.key.hex(), "judge": judge.name, "lane": lane_name(judge.lane)}
        self._events.emit(name, **about, cost_nano=cost, seconds=seconds, **fields)


def _fits_context(judge: JudgeSettings) -> Callable[[Request], bool]:
    """A test of whether a request fits the judge's context; any does where that is not known."""
    if judge.context is None:
        return lambda request: True
    return partial(fits, context=judge.context, vocabulary=judge.vocabulary)


def _cut_more(judge: JudgeSettings, fitted: JudgeSettings, request: Request, error: CallError) -> JudgeSettings | None:
    """The judge with so small a context that a request fits which its server refused as too long; None: it is too long.

    Its tokenizer makes more of the texts than is counted here. `fitted` is the judge as the request was made for it.
    """
    if error.fault is not Fault.TOO_LONG or judge.context is None or fitted.context is None:
        return None
    if judge.options.get("too_long", "error") not in TRUNCATIONS:
        return None
    context = context_after_refusal(request, judge.context, judge.vocabulary, error.size)
    if context >= fitted.context:
        return None
    return replace(fitted, context=context, options={**judge.options, "context": str(context)})


def stage(pending: PendingTrial, respondent: bytes, protocol: str) -> tuple[Trial, Material]:
    """A pending trial, and what its names stand for."""
    trial = Trial(pending.key, respondent, protocol, pending.instruction.id, pending.shown_keys, pending.repeat)
    return trial, Material(pending.instruction, pending.shown, pending.fences)


async def settle(
    protocol: Protocol,
    trial: Trial,
    material: Material,
    options: Mapping[str, str],
    replies: Sequence[Reply],
    ask: Ask,
    fits: Callable[[Request], bool] = lambda request: True,
) -> Outcome:
    """Go on with a trial from the replies on record until it has an outcome; whatever `ask` raises passes through.

    A request that does not fit is not asked, and the trial is too long, or as the request has it otherwise.
    """
    found = resume(protocol, trial, material, options, replies)
    if isinstance(found, Outcome):
        return found
    talk, request = found
    number = len(replies)
    try:
        while True:
            number += 1
            if not fits(request):
                return request.otherwise or UNSENT_OUTCOME
            reply = await ask(number, request)
            request = talk.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        talk.close()
