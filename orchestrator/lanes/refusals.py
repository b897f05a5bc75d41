"""Refusals (401, 402, 403) without a machine-readable reason: is a route's key refused, or single calls alone?"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from venire.arena.errors import CallError, Fault, InputError, KeyRefusedError
from venire.judges.providers.base import Provider

REFUSALS_IN_A_ROW = 8
"""Refusals running, without an answer between them, that are the key's: of so many instructions, or so many trials."""

_ASK_EVERY = 60.0
"""Seconds between two questions for the list of models, at least."""


@dataclass(slots=True)
class Doubt:
    """Whether the trial of a refused call has failed: open as long as a route that refused it may have a bad key."""

    undecided: int = 0
    """Refusals of the call, each by another route, whose cause is still unknown."""
    _own: bool = False
    _record: Callable[[], None] | None = None

    def decide(self, *, own: bool) -> None:
        """One of the refusals was the call's own, or else its route's, which sends no more while another one does."""
        self.undecided -= 1
        self._own = self._own or own
        if (self._own or not self.undecided) and self._record is not None:
            record, self._record = self._record, None
            record()

    def fail(self, record: Callable[[], None]) -> None:
        """Nobody else is left to ask: put the trial on record as failed, at once where a good key refused it."""
        if self._own or not self.undecided:
            record()
        else:
            self._record = record


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that a route refused with 401, 402 or 403 and no stated reason (`error.by_status`)."""

    error: CallError
    came: float
    """Seconds of the clock when it came."""
    instruction: int
    trial: int
    again: bool
    """Whether the call had been sent before; refusing it again is no new evidence about the key."""
    doubt: Doubt

    @property
    def evidence(self) -> tuple[str, int] | None:
        """What the refusal counts as; those that count as the same are counted once, None not at all.

        A filter of texts answers 403, and one text is in many trials that follow each other: all trials of an
        instruction count as one. 401 and 402 are never about a text.
        """
        if self.again:
            return None
        return ("instruction", self.instruction) if self.error.by_status == 403 else ("trial", self.trial)


class Refusals:
    """The refusals of one route since its last answer, undecided until the next one.

    An answer to a call that was sent after them shows that the key is good: then each was its call's own. Until then
    none of them is put on record as a failure, so that those which were the key's are asked again by the next run.
    They are the key's when they are several; where no call with the key was ever answered, at once, but for a 403:
    that takes a second instruction.
    """

    def __init__(self, *, accepted: bool = False) -> None:
        self.accepted = accepted
        """Whether a call with this key was ever answered, in an earlier run or in this one."""
        self.undecided: list[Refusal] = []
        self._evidence: set[tuple[str, int]] = set()
        self._ask_at = -math.inf

    def refused(self, one: Refusal) -> bool:
        """Add a refused call; returns whether the calls so far show that the key is refused."""
        self.undecided.append(one)
        one.doubt.undecided += 1
        if one.evidence is not None:
            self._evidence.add(one.evidence)
        if self.accepted:
            return len(self._evidence) >= REFUSALS_IN_A_ROW
        return one.error.by_status != 403 or len(self._evidence) > 1

    def doubt(self, one: Refusal) -> None:
        """A request was refused as a bad one before any call was answered: it may be the model or a setting of all."""
        self.undecided.append(one)
        one.doubt.undecided += 1

    def answered(self, sent: float) -> None:
        """A call was answered that was sent at this time; refusals that had come before it were their calls' own."""
        self.accepted = True
        if self.undecided:
            own = [refusal for refusal in self.undecided if refusal.came <= sent]
            self.undecided = [refusal for refusal in self.undecided if refusal.came > sent]
            self._evidence = {refusal.evidence for refusal in self.undecided if refusal.evidence is not None}
            for one in own:
                one.doubt.decide(own=True)

    def may_ask(self, now: float) -> bool:
        """Whether the list of models is worth asking for at this moment: at a refusal, at most once a minute."""
        if now < self._ask_at:
            return False
        self._ask_at = now + _ASK_EVERY
        return True

    @property
    def are_of_the_key(self) -> bool:
        """Whether what is undecided when all has been asked is the key's: more than one, or no call ever answered."""
        return not self.accepted or len(self._evidence) > 1

    def decide(self, *, own: bool) -> None:
        """All that are undecided were their calls' own, or else the key's, and calls go on by another route."""
        found = self.undecided
        self.drop()
        for one in found:
            one.doubt.decide(own=own)

    def drop(self) -> None:
        """Leave what is undecided to the next run, which asks it again."""
        self.undecided = []
        self._evidence.clear()


class Advice(NamedTuple):
    """What may help where requests fail with a message like a pattern, in the words of the campaign file."""

    fault: Fault
    pattern: re.Pattern[str]
    advice: str


def _advice(fault: Fault, *rows: tuple[str, str]) -> tuple[Advice, ...]:
    return tuple(Advice(fault, re.compile(pattern, re.IGNORECASE | re.DOTALL), advice) for pattern, advice in rows)


_UNKNOWN_MODEL = r"(model|deployment|engine)\b.*(not found|not exist|unknown|invalid)|no models? (is )?loaded"
ADVICE = (
    *_advice(
        Fault.BAD_REQUEST,
        (_UNKNOWN_MODEL, "correct model, or base_url if another vendor has it"),
        (
            rf"^HTTP 40[45]\b(?!.*(?:{_UNKNOWN_MODEL}))",
            "nothing answers at this address: correct base_url, which most often ends in /v1",
        ),
        ("temperature", 'set temperature = "default"'),
        (r"max_(completion_)?tokens|maxoutputtokens", "change max_tokens"),
        ("logprobs", "set logprobs = false"),
    ),
    *_advice(
        Fault.TRANSIENT,
        (r"loading model|model is (still )?loading|currently loading", "wait until the server has loaded its model"),
        (r"event stream", "ask it through a server that answers whole, such as LiteLLM's proxy"),
        (r"no healthy upstream|upstream connect|a web page|HTTP 50[24]\b", "see whether the server behind it runs"),
        (r"no connection", "see whether it runs, and correct base_url"),
        (r"HTTP 500\b", "the server's own log says more"),
    ),
)
"""By class of fault; of what passes by itself one row at most is said, of what is wrong in a request each that fits."""


def refusal_advice(error: CallError) -> str:
    """What to change when every request fails like this, in brackets; empty: unknown.

    >>> refusal_advice(CallError("'temperature' does not support 0", Fault.BAD_REQUEST, status=400))
    ' (set temperature = "default")'
    """
    fitting = [row.advice for row in ADVICE if row.fault is error.fault and row.pattern.search(str(error))]
    if error.fault is Fault.TRANSIENT:
        fitting = fitting[:1]
    return f" ({'; '.join(fitting)})" if fitting else ""


async def is_key_refused(provider: Provider) -> bool:
    """Whether the list of models is refused too: asked twice, for what refuses at random may refuse it as well."""
    for _ in range(2):
        try:
            await provider.check()
        except KeyRefusedError:
            continue
        except InputError:  # no answer, so no evidence about the key
            return False
        return False
    return True
