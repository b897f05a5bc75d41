"""Judges in this process say what the server says: the same replies, tokens, faults and times, without a wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, get_args

import orjson
import pytest

from venire.arena.clock import SystemClock, VirtualClock
from venire.arena.errors import CallError, InputError
from venire.arena.keys import fence
from venire.arena.records import Completion, Instruction, Material, Outcome, Reply, Request, Trial
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.judges.providers.base import Endpoint, Provider
from venire.judges.providers.openai import OpenAIProvider
from venire.simulation.chat_replies import reply_seconds
from venire.simulation.chat_requests import chat_request_of, read_request
from venire.simulation.direct import ADDRESS, DirectJudges
from venire.simulation.faults import FaultKind, Faults
from venire.simulation.judge import parse_model
from venire.simulation.rehearsal import answer_to
from venire.simulation.server import JudgeServer

STEADY = "simulated/gpt-4-0613@1"
CARELESS = "simulated/vicuna-13b@1"
OPTIONS = {"max_tokens": "400", "temperature": "0", "logprobs": "1"}
SHOWN = {"direct": 1, "direct-reference": 1, "echo": 1, "listwise": 3, "generate": 0}
JUDGED = [name for name in PROTOCOLS if name != "recorded"]

Ask = Callable[[str, Request], Awaitable[Reply]]


def material(field: Any, protocol: str, instruction: str, *, known: bool = True) -> Material:
    models = ("cat", "ant", "bee")[: SHOWN.get(protocol, 2)]
    texts = [field.completion(model, instruction) if known else "Nobody wrote this." for model in models]
    asked = field.instructions[instruction]
    fences = tuple(fence(text, b"constant") for text in (asked, *texts))
    shown = tuple(Completion(model, instruction, text) for model, text in zip(models, texts, strict=True))
    return Material(Instruction(instruction, (asked,), reference="The reference."), shown, fences)


def conversation(protocol: str, shown: Material, replies: list[Reply]) -> Request | Outcome:
    trial = Trial(bytes(16), bytes(16), protocol, "i", (), 2)
    return advance(PROTOCOLS[protocol].talk, trial, shown, OPTIONS, replies)


async def everything(field: Any, protocol: str, ask: Ask) -> list[Any]:
    """What is said in some trials of a protocol, by a steady and by a careless judge, and of texts nobody knows."""
    heard: list[Any] = []
    for model in (STEADY, CARELESS):
        for number in range(12):
            shown, replies = material(field, protocol, f"q-{number}", known=number > 0), []
            while isinstance(request := conversation(protocol, shown, replies), Request):
                replies.append(await ask(model, request))
            heard += [*map(without_time, replies), request]
    return heard


def without_time(reply: Reply) -> Reply:
    """A reply whose raw text does not tell when it was given."""
    return reply._replace(raw=orjson.dumps({**orjson.loads(reply.raw), "created": 0}).decode())


def compare(script: Callable[[Provider], Awaitable[Any]], server: JudgeServer, judges: DirectJudges) -> tuple[Any, Any]:
    """What comes of a script with a client of the server, and with judges in this process."""

    async def both() -> tuple[Any, Any]:
        async with server:
            client = OpenAIProvider(Endpoint(server.base_url, None, 5.0, 4))
            try:
                return await script(client), await script(judges.provider(Endpoint(ADDRESS, None, 5.0, 4)))
            finally:
                await client.close()

    return asyncio.run(both())


@pytest.fixture
def make_judges(field: Any) -> Callable[..., DirectJudges]:
    """Judges of the field in this process that wait for nothing."""

    def make(**options: Any) -> DirectJudges:
        return DirectJudges(field.key(), **{"clock": SystemClock(), "speed": 0.0, **options})

    return make


@pytest.mark.parametrize("protocol", JUDGED)
def test_a_judge_says_the_same_here_and_over_http(
    protocol: str, field: Any, make_server: Any, make_judges: Any
) -> None:
    async def script(provider: Provider) -> list[Any]:
        return await everything(field, protocol, lambda model, asked: provider.send(provider.encode(model, asked), "k"))

    over_http, here = compare(script, make_server(), make_judges())
    assert here == over_http
    assert len(here) >= 48


@pytest.mark.parametrize("protocol", JUDGED)
@pytest.mark.parametrize("structured", [True, False])
def test_a_request_is_understood_without_its_body_as_with_it(protocol: str, structured: bool, field: Any) -> None:
    provider = OpenAIProvider(Endpoint(ADDRESS, None, 5.0, 4, structured=structured))
    requests: list[Request] = []

    async def note(model: str, request: Request) -> Reply:
        requests.append(request)
        said = answer_to(read_request(provider.encode(model, request)), field.key())
        return Reply(said.text, said.finish, raw="{}", logprobs=said.logprobs)

    asyncio.run(everything(field, protocol, note))
    dressed = [replace(one, messages=({"role": "system", "content": "Be fair."}, *one.messages)) for one in requests]
    for request in (*requests, *dressed, replace(requests[0], seed=None, temperature=None, top_logprobs=30)):
        assert chat_request_of(STEADY, request, structured=structured) == read_request(provider.encode(STEADY, request))


@pytest.mark.parametrize("kind", get_args(FaultKind))
def test_a_fault_is_met_here_as_over_http(kind: str, field: Any, make_server: Any, make_judges: Any) -> None:
    faults = Faults(**{kind: 1.0}, retry_after_s=0.25, timeout_s=0.01, late_s=0.01, slow_s=0.01)
    request = conversation("two-stage", material(field, "two-stage", "q-1"), [])
    assert isinstance(request, Request)

    async def script(provider: Provider) -> list[Any]:
        return [await outcome(provider, request) for _ in range(3)]

    over_http, here = compare(script, make_server(faults=faults, seed=3), make_judges(faults=faults, seed=3))
    assert here == over_http
    assert isinstance(here[2], Reply)


async def outcome(provider: Provider, request: Request) -> Any:
    """A reply, or what there is to know of an error but for the server's port."""
    try:
        return without_time(await provider.send(provider.encode(STEADY, request), "k"))
    except CallError as error:
        said = str(error).partition("/v1: ")[2] or str(error)
        return type(error), said, error.fault, error.status, error.retry_after, error.may_be_billed


@pytest.mark.parametrize(("model", "fields"), [("simulated/nobody@1", {}), ("", {}), (STEADY, {"max_tokens": 0})])
def test_a_request_that_is_refused_is_refused_alike(
    model: str, fields: dict[str, Any], field: Any, make_server: Any, make_judges: Any
) -> None:
    request = conversation("binary", material(field, "binary", "q-1"), [])
    assert isinstance(request, Request)

    async def script(provider: Provider) -> tuple[str, int | None]:
        with pytest.raises(CallError) as met:
            await provider.send(provider.encode(model, replace(request, **fields)), "k")
        return str(met.value), met.value.status

    over_http, here = compare(script, make_server(), make_judges())
    assert here == over_http


def test_a_body_of_other_hands_is_read(field: Any, make_server: Any, make_judges: Any) -> None:
    request = conversation("two-stage", material(field, "two-stage", "q-1"), [])
    assert isinstance(request, Request)

    async def script(provider: Provider) -> Reply:
        return without_time(await provider.send(bytes(provider.encode(STEADY, request)), "k"))

    over_http, here = compare(script, make_server(), make_judges())
    assert here == over_http


def waits(make_judges: Any, field: Any, *, timeout: float = 600.0, read: float | None = None, **options: Any) -> Any:
    """Virtual seconds that one call takes, and what comes of it."""
    clock = VirtualClock()
    endpoint = Endpoint(ADDRESS, None, timeout, 4, read_timeout=read)
    provider = make_judges(clock=clock, **options).provider(endpoint)
    request = conversation("two-stage", material(field, "two-stage", "q-1"), [])
    assert isinstance(request, Request)
    with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
        said = runner.run(outcome(provider, request))
    return clock.monotonic(), said


@pytest.fixture
def latency(field: Any) -> float:
    """Seconds that the judge of `waits` takes."""
    request = conversation("two-stage", material(field, "two-stage", "q-1"), [])
    assert isinstance(request, Request)
    return answer_to(chat_request_of(STEADY, request, structured=False), field.key()).latency_s


@pytest.mark.parametrize("speed", [1.0, 4.0, 0.0])
def test_a_judge_takes_its_time_on_the_clock_it_is_given(
    speed: float, field: Any, make_judges: Any, latency: float
) -> None:
    took, said = waits(make_judges, field, speed=speed)
    assert took == pytest.approx(latency / speed if speed else 0.0)
    assert isinstance(said, Reply)
    assert latency > parse_model(STEADY)[0].first_token_s / 10


def test_a_client_does_not_wait_longer_than_it_would_over_http(field: Any, make_judges: Any, latency: float) -> None:
    took, (_, said, _, _, _, billed) = waits(make_judges, field, speed=1.0, timeout=latency / 2)
    assert (took, billed) == (pytest.approx(latency / 2), True)
    assert said == f"no whole answer within {latency / 2:g} s (timeout)"
    took, (_, said, _, _, _, billed) = waits(make_judges, field, speed=1.0, read=latency / 2)
    assert (took, billed) == (pytest.approx(latency / 2), True)
    assert said == f"the server was silent for {latency / 2:g} s (read_timeout)"
    pieces = Faults(slow_bytes=1.0, slow_s=80.0)
    took, (_, said, *_) = waits(make_judges, field, speed=0.0, faults=pieces, timeout=50.0, read=20.0)
    assert (took, said) == (50.0, "no whole answer within 50 s (timeout)")
    took, (_, said, *_) = waits(make_judges, field, speed=0.0, faults=pieces, timeout=50.0, read=5.0)
    assert (took, said) == (5.0, "the server was silent for 5 s (read_timeout)")


def test_a_repeat_takes_a_time_of_its_own(field: Any, make_judges: Any, latency: float) -> None:
    request = conversation("two-stage", material(field, "two-stage", "q-1"), [])
    assert isinstance(request, Request)
    body = bytes(OpenAIProvider(Endpoint(ADDRESS, None, 600.0, 4)).encode(STEADY, request))
    judges = make_judges(speed=1.0)
    took = [judges.decide(body, ADDRESS).wait_s for _ in range(6)]
    assert took[0] == pytest.approx(latency)
    assert len(set(took)) == 6
    assert min(took) < latency / 2
    reply = answer_to(read_request(body), field.key())
    digest = sha256(body).hexdigest()
    assert took == pytest.approx([reply_seconds(reply, STEADY, digest, asked) for asked in range(1, 7)])


@pytest.mark.parametrize("speed", [-1.0, float("nan")])
def test_a_speed_below_zero_is_refused(speed: float, make_judges: Any) -> None:
    with pytest.raises(InputError, match="speed"):
        make_judges(speed=speed)
