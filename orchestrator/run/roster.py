"""Which judges are still asked: one that cannot pay, or whose replies cannot be read, is left out of the rest."""

from __future__ import annotations

import asyncio
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping

from venire.arena.campaigns import JudgeSettings, QualitySettings
from venire.arena.records import Reply, Status
from venire.orchestrator.recording.events import Events
from venire.orchestrator.run.readability import ReadabilityMonitor
from venire.storage.plans.trial_states import PendingTrial


class Roster:
    """The respondents of a run, and why some are asked no further trial; `recent` as of `ReadabilityMonitor`."""

    def __init__(
        self,
        quality: QualitySettings,
        recent: Iterable[tuple[int, int, int]],
        events: Events,
        warn: Callable[[str], None],
    ) -> None:
        self._monitor = ReadabilityMonitor(quality, recent)
        self._events, self._warn = events, warn
        self._judges: Mapping[int, JudgeSettings] = {}
        self._asked: frozenset[int] = frozenset()
        self.out_of_budget: dict[int, str] = {}
        """Respondents whose next call a budget does not cover, and a sentence that names the budget."""
        self.unreadable: dict[int, str] = {}
        """Respondents whose replies cannot be read, and the sentence that says why."""
        self.done_asking: ChainMap[int, str] = ChainMap(self.out_of_budget, self.unreadable)
        """Respondents that are asked no further trial."""
        self.examples: dict[str, tuple[Status, Reply]] = {}
        """By judge, the last verdict of this run that is not ok, with the reply that led to it."""
        self.nobody_left = asyncio.Event()
        """No further trial of the round is begun; those that were are asked to their end, as far as can be paid."""

    def begin(self, judges: Mapping[int, JudgeSettings], respondents: Iterable[int]) -> None:
        """Begin a round of these judges, in which some respondents have trials left."""
        self.nobody_left.clear()
        self._judges, self._asked = judges, frozenset(respondents)
        for respondent in sorted(self._asked):
            self._close_unreadable(respondent)

    def names(self, sentences: Mapping[int, str]) -> dict[str, str]:
        """Sentences by the name of the judge, in place of its number."""
        return {self._judges[number].name: sentence for number, sentence in sentences.items()}

    def cannot_pay(self, respondent: int, why: str) -> None:
        """A judge asks no more; the others go on with what they can pay."""
        if respondent not in self.out_of_budget:
            name = self._judges[respondent].name
            self._warn(f"judge {name!r} asks no more: {why}")
            if self._events.active:
                self._events.emit("judge.unaffordable", judge=name, why=why)
            self.out_of_budget[respondent] = why
            if self._ask_nobody_if_all_done() and self._events.active:
                self._events.emit("budget.reached", why=why)

    def verdict(self, pending: PendingTrial, status: Status, reply: Reply | None) -> None:
        """Count a verdict; where too few can be read, the judge asks no more, and calls in flight are its last."""
        self._monitor.add(pending.respondent, pending.instruction_number, status)
        if status is not Status.OK and reply is not None:
            self.examples[self._judges[pending.respondent].name] = status, reply
        if status is not Status.OK and pending.respondent not in self.unreadable:
            self._close_unreadable(pending.respondent, reply)

    def _close_unreadable(self, respondent: int, reply: Reply | None = None) -> None:
        if not self._monitor.is_unreadable(respondent):
            return
        name = self._judges[respondent].name
        why = self._monitor.explain(respondent, reply)
        self.unreadable[respondent] = why
        self._warn(f"judge {name!r} is asked no more: {why}")
        if self._events.active:
            self._events.emit("judge.unreadable", judge=name, why=why)
        self._ask_nobody_if_all_done()

    def _ask_nobody_if_all_done(self) -> bool:
        """Begin no further trial where none of the judges with trials left is asked any more."""
        if self._asked <= self.done_asking.keys():
            self.nobody_left.set()
        return self.nobody_left.is_set()
