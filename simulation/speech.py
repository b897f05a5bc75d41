"""From a chat request to what a simulated model answers, whatever it is asked for. Pure: no network, no clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from venire.judges import PROTOCOLS
from venire.simulation.answers import AnswerKey
from venire.simulation.dialect import Ask
from venire.simulation.recognition import Asked, recognise
from venire.simulation.replies import JudgeReply

__all__ = ["Rehearse", "answer_to"]

Rehearse = Callable[[Ask, Asked, AnswerKey], JudgeReply]
"""What a protocol's entry refers to: from a request, what it was recognised as, and what is known of its texts."""


def answer_to(ask: Ask, answer_key: AnswerKey) -> JudgeReply:
    """What the simulated model named in a request answers, by the protocol that its words ask for.

    Raises `InputError` for a model that is not simulated.
    """
    asked = recognise(ask)
    return _rehearsal(asked.protocol, PROTOCOLS.changes)(ask, asked, answer_key)


@lru_cache(maxsize=64)
def _rehearsal(protocol: str, changes: int) -> Rehearse:
    """What the entry refers to, looked up once while the registry does not change."""
    found: Rehearse | None = PROTOCOLS[protocol].rehearsal
    assert found is not None  # nothing else is recognised
    return found
