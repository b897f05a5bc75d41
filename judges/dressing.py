"""What a user puts in front of a protocol's own messages: a system text, and worked examples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from venire.arena.errors import InputError
from venire.arena.records import Conversation, Material, Outcome, Protocol, Trial
from venire.judges.fitting import fitted

__all__ = ["dress", "front"]

_SIDES = ("user", "assistant")


def front(options: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """The messages that go before every request: the option `system`, then the `examples`.

    `examples` is a JSON list of objects with the texts `user` and `assistant`. Raises InputError for another form.
    """
    system = options.get("system")
    opening = () if system is None else ({"role": "system", "content": system},)
    return (*opening, *_read_examples(options.get("examples", "[]")))


@lru_cache(maxsize=256)
def _read_examples(text: str) -> tuple[Mapping[str, str], ...]:
    try:
        given = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"examples: this is not JSON ({error}): write a list of user and assistant texts") from error
    if not isinstance(given, list):
        raise InputError('examples: write a list, such as [{"user": "...", "assistant": "..."}]')
    said: list[Mapping[str, str]] = []
    for number, one in enumerate(given, 1):
        if not isinstance(one, dict) or set(one) != set(_SIDES) or not all(isinstance(one[side], str) for side in one):
            raise InputError(f"examples: number {number} must have the texts user and assistant, and nothing else")
        said += [{"role": side, "content": one[side]} for side in _SIDES]
    return tuple(said)


def dress(talk: Protocol, steps: int = 1) -> Protocol:
    """The same protocol with what its judge's options put in front of each of its requests, and cut to fit.

    `steps` is how many replies a trial has that needs no repair.
    """

    def dressed(trial: Trial, material: Material, options: Mapping[str, str]) -> Conversation:
        before, conversation = front(options), talk(trial, material, options)
        return _put_before(before, conversation) if before else conversation

    return fitted(dressed, steps)


def _put_before(before: tuple[Mapping[str, str], ...], conversation: Conversation) -> Conversation:
    try:
        request = next(conversation)
        while True:
            reply = yield replace(request, messages=(*before, *request.messages))
            request = conversation.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        conversation.close()
