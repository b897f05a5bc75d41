"""Faults can be repeated, end after two a body, and never change what a judge says."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from typing import Any, get_args

import aiohttp
import orjson
import pytest

from venire.arena.errors import InputError
from venire.simulation.faults import FaultKind, Faults

MODEL = "simulated/gemini-pro@2"
KINDS = ("rate_limited", "server_error", "timeout", "cut", "garbage")
OFTEN = Faults(**dict.fromkeys(KINDS, 0.18), retry_after_s=7, timeout_s=0.001)


def digest(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def test_faults_are_drawn_from_seed_body_and_ask_alone() -> None:
    drawn = [OFTEN.draw(3, digest(number), asked) for number in range(50) for asked in (1, 2)]
    assert drawn == [OFTEN.draw(3, digest(number), asked) for number in range(50) for asked in (1, 2)]
    assert drawn != [OFTEN.draw(4, digest(number), asked) for number in range(50) for asked in (1, 2)]
    assert drawn[::2] != drawn[1::2]


def test_each_kind_is_drawn_at_its_rate() -> None:
    rates = {"rate_limited": 0.1, "server_error": 0.05, "timeout": 0.02, "cut": 0.2, "garbage": 0.15}
    n = 5000
    drawn = Counter(Faults(**rates).draw(1, digest(number), 1) for number in range(n))
    assert {kind: drawn[kind] / n for kind in rates} == pytest.approx(rates, abs=0.02)
    assert drawn[None] / n == pytest.approx(0.48, abs=0.02)


def test_the_third_ask_of_a_body_is_always_answered() -> None:
    always = Faults(server_error=1.0)
    assert [always.draw(0, digest(1), asked) for asked in range(1, 6)] == ["server_error"] * 2 + [None] * 3


@pytest.mark.parametrize("rates", [{"cut": -0.1}, {"cut": 0.6, "garbage": 0.6}, {"timeout_s": -1}])
def test_impossible_faults_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Faults(**rates)


async def insist(client: Any, body: dict[str, Any]) -> tuple[Any, list[str]]:
    """Ask until answered, three times at most; the answer, and what each failed ask looked like from outside."""
    seen: list[str] = []
    while len(seen) < 3:
        try:
            answer = await client.chat(body)
        except aiohttp.ClientPayloadError:
            seen.append("cut")
            continue
        except aiohttp.ServerDisconnectedError:
            seen.append("timeout")
            continue
        if answer.status == 200 and answer.raw.startswith(b"{"):
            return answer, seen
        seen.append({429: "rate_limited", 500: "server_error", 200: "garbage"}[answer.status])
        if answer.status == 429:
            assert answer.headers["Retry-After"] == "7"
        if answer.status == 200:
            with pytest.raises(orjson.JSONDecodeError):
                _ = answer.json
        else:
            assert set(answer.json["error"]) == {"message", "type", "code", "param"}
    raise AssertionError(f"a third ask was not answered: {seen}")


def test_every_kind_is_met_over_http_as_the_ledger_says_and_no_verdict_changes(
    field: Any, ask: Any, talk: Any, make_server: Any
) -> None:
    bodies = [
        ask(MODEL, field.prompt("ant", "cat", name), stage)
        for name in field.instructions
        for stage in ("reasons", "verdict")
    ]
    calm: list[Any] = []
    rough: list[Any] = []
    met: Counter[str] = Counter()

    async def calmly(client: Any) -> None:
        calm.extend([await insist(client, body) for body in bodies])

    async def roughly(client: Any) -> None:
        rough.extend([await insist(client, body) for body in bodies])
        met.update(kind for _, seen in rough for kind in seen)
        totals = client.server.ledger.totals()
        assert totals.faults == {kind: met[kind] for kind in get_args(FaultKind)}
        assert totals.answered == len(bodies)
        assert totals.requests == len(bodies) + met.total()

    talk(make_server(), calmly)
    talk(make_server(faults=OFTEN, seed=9), roughly)
    assert not any(seen for _, seen in calm)
    assert min(met[kind] for kind in KINDS) > 5
    assert max(len(seen) for _, seen in rough) == 2
    for (one, _), (other, _) in zip(calm, rough, strict=True):
        assert (one.text, one.usage) == (other.text, other.usage)


def test_the_same_seed_makes_the_same_faults_and_another_seed_others(
    field: Any, ask: Any, talk: Any, make_server: Any
) -> None:
    met: list[list[str]] = []

    async def script(client: Any) -> None:
        for name in field.instructions:
            await insist(client, ask(MODEL, field.prompt("bee", "cat", name)))
        met.append([entry.outcome for entry in client.server.ledger.entries])

    for seed in (1, 1, 2):
        talk(make_server(faults=OFTEN, seed=seed), script)
    assert met[0] == met[1] != met[2]


def test_an_unpriced_answer_counts_no_tokens_and_is_billed_all_the_same(
    field: Any, ask: Any, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        bare, priced = [], []
        for name in field.instructions:
            for into in (bare, bare, priced):
                into.append(await client.chat(ask(MODEL, field.prompt("bee", "cat", name))))
        assert all("usage" not in answer.json for answer in bare)
        assert all(answer.usage for answer in priced)
        assert [one.text for one in bare[::2]] == [one.text for one in priced]
        entries = client.server.ledger.entries
        assert [entry.outcome for entry in entries[:3]] == ["unpriced", "unpriced", "answered"]
        assert [entry.answered for entry in entries[:3]] == [1, 2, 3]
        used = [(one.usage["prompt_tokens"], one.usage["completion_tokens"]) for one in priced]
        assert [entry.billed for entry in entries[::3]] == [entry.billed for entry in entries[2::3]] == used

    talk(make_server(faults=Faults(unpriced=1.0)), script)


def test_a_late_answer_is_whole_and_comes_after_the_judge_s_time(
    field: Any, ask: Any, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        question = ask(MODEL, field.prompt("bee", "cat"))
        began = asyncio.get_running_loop().time()
        late = await client.chat(question)
        assert asyncio.get_running_loop().time() - began >= 0.05
        assert late.usage
        (entry,) = client.server.ledger.entries
        assert (entry.outcome, entry.answered) == ("late", 1)
        assert entry.answer == hashlib.sha256(late.raw).hexdigest()

    talk(make_server(faults=Faults(late=1.0, late_s=0.05)), script)


def test_what_a_judge_said_is_billed_whether_it_arrives_or_not(
    field: Any, ask: Any, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        for name in field.instructions:
            await insist(client, ask(MODEL, field.prompt("ant", "bee", name)))
        for entry in client.server.ledger.entries:
            worked = entry.outcome in ("answered", "cut", "garbage")
            assert (entry.billed is not None) == (entry.answer is not None) == worked

    talk(make_server(faults=OFTEN, seed=9), script)


def test_a_seed_draws_what_it_always_drew() -> None:
    """Campaigns are repeated by their seed: a new kind of fault may not move the others."""
    some = Faults(*[0.1] * 7)
    drawn = [some.draw(3, digest(number), 1) or "-" for number in range(12)]
    assert " ".join(drawn) == "rate_limited rate_limited server_error - server_error - - cut - server_error unpriced -"


@pytest.mark.parametrize(
    ("kind", "status", "content_type", "billed"),
    [
        ("html", 502, "text/html", False),
        ("error_inside", 200, "application/json", True),
        ("empty_choices", 200, "application/json", True),
    ],
)
def test_an_answer_can_be_spoilt_in_more_ways(
    field: Any, ask: Any, talk: Any, make_server: Any, kind: str, status: int, content_type: str, billed: bool
) -> None:
    async def script(client: Any) -> None:
        question = ask(MODEL, field.prompt("bee", "cat"))
        spoilt = [await client.chat(question) for _ in range(2)]
        whole = await client.chat(question)
        for one in spoilt:
            assert (one.status, one.headers["Content-Type"].split(";")[0]) == (status, content_type)
        body = spoilt[0].raw
        assert {"html": b"<html>", "error_inside": b'{"error":{', "empty_choices": b'"choices":[]'}[kind] in body
        assert whole.usage
        entries = client.server.ledger.entries
        assert [entry.outcome for entry in entries] == [kind, kind, "answered"]
        assert [entry.billed is not None for entry in entries] == [billed, billed, True]
        assert [entry.answered for entry in entries] == [None, None, 1]
        assert client.server.ledger.totals().faults[kind] == 2

    talk(make_server(faults=Faults(**{kind: 1.0})), script)


@pytest.mark.parametrize("kind", ["wrong_type", "slow_bytes"])
def test_an_answer_that_is_only_odd_is_an_answer(field: Any, ask: Any, talk: Any, make_server: Any, kind: str) -> None:
    async def script(client: Any) -> None:
        question = ask(MODEL, field.prompt("bee", "cat"))
        began = asyncio.get_running_loop().time()
        odd = await client.chat(question)
        assert asyncio.get_running_loop().time() - began >= (0.04 if kind == "slow_bytes" else 0)
        await client.chat(question)
        plain = await client.chat(question)
        assert (odd.text, odd.usage) == (plain.text, plain.usage)
        assert odd.headers["Content-Type"].startswith("text/plain" if kind == "wrong_type" else "application/json")
        assert [(entry.outcome, entry.answered) for entry in client.server.ledger.entries] == [
            (kind, 1),
            (kind, 2),
            ("answered", 3),
        ]

    talk(make_server(faults=Faults(**{kind: 1.0}, slow_s=0.04)), script)
