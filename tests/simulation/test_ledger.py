"""The provider's books: every request is in them before it is answered."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any, get_args

import aiohttp
import orjson
import pytest

from tests.ledgers import read_ledger
from venire.arena.errors import InputError
from venire.simulation.faults import FaultKind, Faults

MODEL = "simulated/bard@1"


def test_an_entry_is_in_memory_and_in_the_file_before_the_answer(
    field: Any, ask: Any, talk: Any, make_server: Any, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    seen: list[tuple[int, Any, Any]] = []
    body = orjson.dumps(ask(MODEL, field.prompt("ant", "cat")))

    def look(ordinal: int) -> None:
        entry = server.ledger.entries[ordinal - 1]
        seen.append((ordinal, entry.answered, read_ledger(path)[-1].answered))
        assert entry == read_ledger(path)[-1]
        assert entry.body == hashlib.sha256(body).hexdigest()
        assert (entry.model, entry.stage, entry.outcome) == (MODEL, "reasons", "answered")

    server = make_server(ledger_path=path, on_request=look)

    async def script(client: Any) -> None:
        for _ in range(3):
            assert (await client.chat(body)).status == 200
        assert [entry.answered for entry in read_ledger(path)] == [1, 2, 3]

    talk(server, script)
    assert seen == [(1, None, None), (2, None, None), (3, None, None)]
    assert read_ledger(path) == server.ledger.entries


def test_bodies_and_idempotency_keys_are_counted(field: Any, ask: Any, talk: Any, make_server: Any) -> None:
    one, two = (ask(MODEL, field.prompt("ant", "cat"), stage) for stage in ("reasons", "verdict"))

    async def script(client: Any) -> None:
        await client.chat(one, {"Idempotency-Key": "k-1"})
        await client.chat(one, {"Idempotency-Key": "k-2"})
        await client.chat(two, {"Idempotency-Key": "k-1"})
        await client.chat(two)
        counted = [(e.stage, e.body_asked, e.key, e.key_asked) for e in client.server.ledger.entries]
        assert counted == [
            ("reasons", 1, "k-1", 1),
            ("reasons", 2, "k-2", 1),
            ("verdict", 1, "k-1", 2),
            ("verdict", 2, None, None),
        ]

    talk(make_server(), script)


def test_the_ledger_can_be_read_over_http_and_holds_no_key(field: Any, ask: Any, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        await client.chat(ask(MODEL, field.prompt("ant", "cat")), {"Authorization": "Bearer sk-secret"})
        await client.chat(ask("gpt-4", "x"), {"Authorization": "Bearer sk-secret"})
        async with client.session.get(client.server.base_url.removesuffix("/v1") + "/ledger") as response:
            raw = await response.read()
        shown = orjson.loads(raw)
        assert b"sk-secret" not in raw
        assert shown["totals"]["requests"] == 2
        assert (shown["totals"]["answered"], shown["totals"]["refused"]) == (1, {"404": 1})
        assert set(shown["totals"]["faults"]) == set(get_args(FaultKind))
        assert [entry["outcome"] for entry in shown["entries"]] == ["answered", "404"]

    talk(make_server(), script)


def test_requests_in_flight_together_are_counted(field: Any, ask: Any, talk: Any, make_server: Any) -> None:
    all_here = asyncio.Event()

    async def script(client: Any) -> None:
        body = ask(MODEL, field.prompt("ant", "cat"))
        held = [asyncio.create_task(client.chat({**body, "seed": repeat})) for repeat in range(5)]
        await all_here.wait()
        totals = client.server.ledger.totals()
        assert (totals.in_flight, totals.most_in_flight) == (5, 5)
        await client.server.stop()
        lost = await asyncio.gather(*held, return_exceptions=True)
        assert all(isinstance(one, aiohttp.ClientError) for one in lost)
        totals = client.server.ledger.totals()
        assert (totals.in_flight, totals.most_in_flight) == (0, 5)

    def count(ordinal: int) -> None:
        if ordinal == 5:
            all_here.set()

    talk(make_server(faults=Faults(timeout=1.0, timeout_s=60), on_request=count), script)


def test_faults_are_never_marked_answered(field: Any, ask: Any, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        for _ in range(3):
            await client.chat(ask(MODEL, field.prompt("ant", "cat")))
        marked = [(entry.outcome, entry.answered) for entry in client.server.ledger.entries]
        assert marked == [("garbage", None), ("garbage", None), ("answered", 1)]

    talk(make_server(faults=Faults(garbage=1.0)), script)


def test_an_answer_whose_client_has_left_is_not_marked_answered(
    field: Any, ask: Any, talk: Any, make_server: Any
) -> None:
    arrived = asyncio.Event()

    async def script(client: Any) -> None:
        asked = asyncio.create_task(client.chat(ask(MODEL, field.prompt("ant", "cat"))))
        await arrived.wait()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        ledger = client.server.ledger
        while ledger.totals().in_flight:
            await client.get("/models")
        assert [(entry.outcome, entry.answered) for entry in ledger.entries] == [("answered", None)]

    talk(make_server(speed=40, on_request=lambda _: arrived.set()), script)


def test_a_line_cut_off_by_a_crash_spoils_neither_what_is_before_nor_what_comes_after(
    field: Any, ask: Any, talk: Any, make_server: Any, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"

    async def script(client: Any) -> None:
        await client.chat(ask(MODEL, field.prompt("ant", "cat")))

    talk(make_server(ledger_path=path), script)
    path.write_bytes(path.read_bytes() + b'{"ordinal":2,"bo')
    talk(make_server(ledger_path=path), script)
    assert [(entry.ordinal, entry.answered) for entry in read_ledger(path)] == [(1, 1), (1, 1)]


def test_a_ledger_that_cannot_be_written_stops_the_start(make_server: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-folder"):
        asyncio.run(make_server(ledger_path=tmp_path / "no-such-folder" / "ledger.jsonl").start())


def test_an_entry_says_which_replies_the_request_quotes(field: Any, ask: Any, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        for stage in ("reasons", "verdict"):
            await client.chat(ask(MODEL, field.prompt("ant", "cat"), stage))
        first, second = client.server.ledger.entries
        said = [turn["content"] for turn in ask(MODEL, field.prompt("ant", "cat"), "verdict")["messages"]]
        assert first.quoted is None
        assert second.quoted == hashlib.sha256(said[1].encode()).hexdigest()

    talk(make_server(), script)
