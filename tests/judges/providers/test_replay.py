"""The provider of recorded judgments asks nobody: a reply on record or a fault that no retry will mend."""

from __future__ import annotations

import asyncio

import pytest

from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers.replay import ReplayProvider

KEY = "ab" * 16


def send(provider: ReplayProvider, key: str) -> Reply:
    return asyncio.run(provider.send(provider.encode("m", Request((), 9)), key))


def test_a_trial_is_answered_by_its_key_at_no_cost() -> None:
    provider = ReplayProvider({KEY: "[[A]]"})
    reply = send(provider, f"{KEY}-1")
    assert (reply.text, reply.cost, reply.finish, reply.output_tokens) == ("[[A]]", 0, "stop", 0)
    assert asyncio.run(provider.check()) is None
    asyncio.run(provider.close())


@pytest.mark.parametrize("key", ["cd" * 16 + "-1", f"{KEY}-2", KEY])
def test_what_is_not_on_record_is_a_fault_that_no_retry_mends(key: str) -> None:
    with pytest.raises(CallError) as failed:
        send(ReplayProvider({KEY: "[[A]]"}), key)
    assert failed.value.fault is Fault.BAD_REQUEST
    assert not isinstance(failed.value, TransientError)
    assert not failed.value.may_be_billed


def test_the_same_request_has_the_same_body() -> None:
    provider = ReplayProvider({})
    bodies = {provider.encode("m", Request(({"role": "user", "content": "x"},), tokens)) for tokens in (9, 10)}
    assert bodies == {b'{"model":"m","messages":[{"role":"user","content":"x"}]}'}
