"""The contract of a provider, tested against a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers import PROVIDERS, Endpoint, Provider
from venire.testing.batches import check_form
from venire.testing.loopback import KEY, ScriptedServer, serving

_QUESTION = Request(({"role": "user", "content": "1 or 2? \N{SNOWMAN}"},), max_tokens=64, temperature=0.0, seed=7)
_FAULTS: tuple[tuple[int, dict[str, str], Fault], ...] = (
    (429, {"Retry-After": "7"}, Fault.RATE_LIMITED),
    (401, {}, Fault.AUTHENTICATION),
    (500, {}, Fault.TRANSIENT),
    (503, {}, Fault.TRANSIENT),
)
_SECONDS = 20.0


def check_provider(
    name: str, body: Callable[[str], bytes], *, model: str = "judge", replays: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Check that a registered provider keeps its contract. Raises AssertionError with the broken rule.

    `body` makes the vendor's response body for a text. Equal requests give equal bytes; one call is one HTTP request
    with the key in a header, and returns text, tokens and the raw answer. Statuses map to their faults, Retry-After is
    read, and an unreadable answer is a transient fault. The key is in no error. A cancelled call ends at once, and a
    closed provider leaves no connection. Each form of its batch interfaces needs one of the `replays`: what its vendor
    is sent and answers, as `venire.testing.batches` describes it, which the server plays.

    >>> import json
    >>> from dataclasses import replace
    >>> def body(text):
    ...     choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    ...     return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}).encode()
    >>> PROVIDERS.register("mine", replace(PROVIDERS["openai"], batches={}))
    >>> check_provider("mine", body)
    >>> PROVIDERS.unregister("mine")
    """
    asyncio.run(asyncio.wait_for(_check(name, body, model), 4 * _SECONDS))
    for form in PROVIDERS[name].batches:
        known = [replay for replay in replays if replay.get("form") == form]
        assert known, f"{name}: no replay shows what the vendor of its batch interface {form!r} is sent and answers"
        for replay in known:
            asyncio.run(asyncio.wait_for(check_form(name, form, replay), 4 * _SECONDS))


async def _check(name: str, body: Callable[[str], bytes], model: str) -> None:
    async with serving() as server:
        provider = PROVIDERS[name].open(Endpoint(server.url, KEY, _SECONDS, 4))
        assert KEY not in repr(provider), f"{name}: the key is in its repr"
        assert KEY not in repr(provider.limits_key(model)), f"{name}: the key is in its limits_key"
        sent = provider.encode(model, _QUESTION)
        assert sent == provider.encode(model, _QUESTION), f"{name}: one request gives different bytes"
        assert KEY.encode() not in sent, f"{name}: the key is in the body, which is kept"
        try:
            await _check_reply(name, provider, server, sent, body)
            for status, headers, fault in _FAULTS:
                server.answer = (status, headers, KEY.encode())
                await _check_fault(name, provider, sent, fault, f"status {status}")
            server.answer = (200, {}, b"<html>It works!</html>")
            await _check_fault(name, provider, sent, Fault.TRANSIENT, "an answer that is no JSON")
            await _check_cancelled(name, provider, server, sent)
        finally:
            await provider.close()


async def _check_reply(
    name: str, provider: Provider, server: ScriptedServer, sent: bytes, body: Callable[[str], bytes]
) -> None:
    server.answer = (200, {}, body("2 \N{SNOWMAN}"))
    reply = await provider.send(sent, "step-1")
    assert isinstance(reply, Reply)
    assert reply.text == "2 \N{SNOWMAN}", f"{name}: the text of the answer is {reply.text!r}"
    assert reply.raw, f"{name}: the raw answer is not kept"
    assert reply.input_tokens or reply.estimated, f"{name}: no tokens are counted, and it does not say so"
    assert len(server.received) == 1, f"{name}: one call is {len(server.received)} requests"
    head, got = server.received[0]
    assert KEY in head, f"{name}: the key is in no header"
    assert KEY not in head.splitlines()[0], f"{name}: the key is in the address"
    assert "1 or 2?" in got.decode(), f"{name}: the question is not in the body"


async def _check_fault(name: str, provider: Provider, sent: bytes, fault: Fault, what: str) -> None:
    found: Reply | CallError
    try:
        found = await provider.send(sent, "step-1")
    except CallError as error:
        found = error
    assert isinstance(found, CallError), f"{name}: {what} is taken for a reply"
    assert found.fault is fault, f"{name}: {what} is {found.fault.name}, not {fault.name}"
    again = isinstance(found, TransientError)
    assert again == (fault in (Fault.TRANSIENT, Fault.RATE_LIMITED)), f"{name}: {what} is tried again: {again}"
    assert KEY not in str(found) + repr(found), f"{name}: the key is in the error of {what}"
    asked = found.retry_after if isinstance(found, TransientError) else None
    assert fault is not Fault.RATE_LIMITED or asked == 7, f"{name}: Retry-After: 7 is read as {asked}"


async def _check_cancelled(name: str, provider: Provider, server: ScriptedServer, sent: bytes) -> None:
    server.answer = None
    call = asyncio.create_task(provider.send(sent, "step-1"))
    await server.asked.wait()
    call.cancel()
    done, _ = await asyncio.wait([call], timeout=_SECONDS / 4)
    assert done, f"{name}: a cancelled call goes on"
    assert call.cancelled(), f"{name}: a cancelled call ends otherwise than by CancelledError"
