"""The owner of a store answers on a socket beside it, and its run does not feel it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from venire.arena.battles import Statistics
from venire.arena.errors import InputError, StoreError
from venire.live.answers import Answers, Pulse
from venire.live.server import serve
from venire.live.sockets import socket_path
from venire.storage.read.selecting import Selected

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATIENCE = 20.0


def nothing(query: str, most: int, given_up: threading.Event) -> Selected:
    return Selected(("n",), [[1], [2]], more=True)


@pytest.fixture
def answers() -> Answers:
    return Answers(Pulse("small", NOW), lambda: {"store": "s"}, nothing)


@contextlib.asynccontextmanager
async def client(store: Path) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.UnixConnector(path=str(socket_path(store)))
    timeout = aiohttp.ClientTimeout(total=PATIENCE)
    async with aiohttp.ClientSession("http://venire", connector=connector, timeout=timeout) as session:
        yield session


def talk(store: Path, answers: Answers, act: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with serve(store, answers), client(store) as session:
            return await act(session)

    return asyncio.run(go())


async def get(session: aiohttp.ClientSession, path: str) -> tuple[int, Any]:
    async with session.get(path) as response:
        return response.status, await response.json()


async def post(session: aiohttp.ClientSession, path: str, body: Any) -> tuple[int, Any]:
    async with session.post(path, data=body if isinstance(body, str) else json.dumps(body)) as response:
        return response.status, await response.json()


def test_the_socket_is_for_its_owner_alone_and_goes_with_the_run(tmp_path: Path, answers: Answers) -> None:
    store = tmp_path / "a.duckdb"

    async def go() -> None:
        async with serve(store, answers):
            mode = os.stat(socket_path(store)).st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o600
            assert os.listdir(tmp_path) == ["a.duckdb.sock"]

    asyncio.run(go())
    assert list(tmp_path.iterdir()) == []


def test_a_dead_socket_is_replaced(tmp_path: Path, answers: Answers) -> None:
    store = tmp_path / "a.duckdb"
    for left in range(2):
        socket_path(store).write_text("left by a kill", encoding="utf-8")
        assert talk(store, answers, lambda session: get(session, "/status")) == (200, {"store": "s"}), left
        assert not socket_path(store).exists()


def test_two_stores_in_one_folder_answer_for_themselves(tmp_path: Path, answers: Answers) -> None:
    async def go() -> None:
        other = replace(answers, status=lambda: {"store": "t"})
        async with serve(tmp_path / "s", answers), serve(tmp_path / "t", other):
            for name in "st":
                async with client(tmp_path / name) as session:
                    assert await get(session, "/status") == (200, {"store": name})

    asyncio.run(go())


def test_a_socket_that_cannot_be_made_is_a_warning_and_stops_nothing(tmp_path: Path, answers: Answers) -> None:
    store = tmp_path / "a.duckdb"
    socket_path(store).mkdir()
    told: list[str] = []

    async def go() -> str:
        async with serve(store, answers, told.append):
            return "ran"

    assert asyncio.run(go()) == "ran"
    assert len(told) == 1
    assert str(socket_path(store)) in told[0]
    assert [one.name for one in tmp_path.iterdir()] == ["a.duckdb.sock"]


def test_an_error_of_the_run_leaves_through_the_server(tmp_path: Path, answers: Answers) -> None:
    async def go() -> None:
        async with serve(tmp_path / "a", answers):
            raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        asyncio.run(go())
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_request_is_told_in_a_sentence(tmp_path: Path, answers: Answers) -> None:
    def refuse(query: str, most: int, given_up: threading.Event) -> Selected:
        raise InputError(f"not {query}")

    async def act(session: aiohttp.ClientSession) -> list[tuple[int, Any]]:
        return [
            await post(session, "/sql", {"query": "this", "most": 1}),
            await post(session, "/sql", "{"),
            await post(session, "/sql", []),
            await post(session, "/sql", {"query": 1, "most": 1}),
            await post(session, "/sql", {"query": "this"}),
            await get(session, "/nowhere"),
            await get(session, "/sql"),
            await get(session, "/live?every=never"),
            await post(session, "/hold", {}),
        ]

    found = talk(tmp_path / "a", replace(answers, sql=refuse), act)
    assert [status for status, _ in found] == [400, 400, 400, 400, 400, 404, 405, 400, 400]
    assert all(isinstance(body["error"], str) and body["error"] for _, body in found)
    assert found[0][1] == {"error": "not this"}


def test_a_query_has_columns_rows_and_says_whether_there_are_more(tmp_path: Path, answers: Answers) -> None:
    found = talk(tmp_path / "a", answers, lambda session: post(session, "/sql", {"query": "q", "most": 2}))
    assert found == (200, {"columns": ["n"], "rows": [[1], [2]], "more": True})


def test_two_queries_at_once_and_the_run_goes_on_beside_them(tmp_path: Path, answers: Answers) -> None:
    at_once, most_at_once = 0, 0
    counting = threading.Lock()
    both = threading.Event()
    let_go = threading.Event()

    def slow(query: str, most: int, given_up: threading.Event) -> Selected:
        nonlocal at_once, most_at_once
        with counting:
            at_once += 1
            most_at_once = max(most_at_once, at_once)
            if at_once == 2:
                both.set()
        assert let_go.wait(PATIENCE)
        with counting:
            at_once -= 1
        return Selected(("n",), [])

    async def act(session: aiohttp.ClientSession) -> None:
        asked = [asyncio.ensure_future(post(session, "/sql", {"query": "q", "most": 1})) for _ in range(6)]
        await asyncio.to_thread(both.wait, PATIENCE)
        answers.pulse.feed(Statistics(calls=7))
        assert (await get(session, "/live"))[1]["calls"] == 7
        assert (await get(session, "/status"))[0] == 200
        let_go.set()
        assert [status for status, _ in await asyncio.gather(*asked)] == [200] * 6

    talk(tmp_path / "a", replace(answers, sql=slow), act)
    assert most_at_once == 2


def test_a_query_whose_client_has_gone_is_given_up(tmp_path: Path, answers: Answers) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(query: str, most: int, given_up: threading.Event) -> Selected:
        begun.set()
        assert given_up.wait(PATIENCE)
        ended.set()
        return Selected((), [])

    async def act(session: aiohttp.ClientSession) -> bool:
        asked = asyncio.ensure_future(post(session, "/sql", {"query": "q", "most": 1}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        asked.cancel()
        return await asyncio.to_thread(ended.wait, PATIENCE)

    assert talk(tmp_path / "a", replace(answers, sql=endless), act)


def test_the_end_of_a_run_waits_for_no_query(tmp_path: Path, answers: Answers) -> None:
    begun = threading.Event()
    given = []

    def endless(query: str, most: int, given_up: threading.Event) -> Selected:
        begun.set()
        given.append(given_up.wait(PATIENCE))
        return Selected((), [])

    async def go() -> None:
        async with client(tmp_path / "a") as session:
            async with serve(tmp_path / "a", replace(answers, sql=endless)):
                asked = asyncio.ensure_future(post(session, "/sql", {"query": "q", "most": 1}))
                await asyncio.to_thread(begun.wait, PATIENCE)
            await asyncio.wait([asked])
            asked.exception()

    asyncio.run(go())
    assert given == [True]


def test_many_readers_make_one_status_a_second(tmp_path: Path, answers: Answers) -> None:
    made: list[int] = []

    def status() -> dict[str, Any]:
        made.append(len(made))
        return {"n": len(made)}

    async def act(session: aiohttp.ClientSession) -> None:
        found = await asyncio.gather(*(get(session, "/status") for _ in range(50)))
        assert {code for code, _ in found} == {200}

    talk(tmp_path / "a", replace(answers, status=status), act)
    assert 1 <= len(made) < 25


def test_a_watcher_is_told_of_the_end(tmp_path: Path, answers: Answers) -> None:
    async def go() -> list[Any]:
        async with client(tmp_path / "a") as session:
            async with serve(tmp_path / "a", answers):
                response = await session.get("/live?every=3000")
                first = json.loads(await response.content.readline())
                answers.pulse.feed(Statistics(planned=4, settled=4, calls=9))
                answers.pulse.ending = "complete"
            rest = [json.loads(line) async for line in response.content]
            return [first, *rest]

    first, last = asyncio.run(go())
    assert (first["ended"], first["ending"], first["calls"]) == (False, None, 0)
    assert (last["ended"], last["ending"], last["calls"]) == (True, "complete", 9)
    assert (first["campaign"], first["since"]) == ("small", "2026-01-02T03:04:05+00:00")


class Writer:
    """Stands for the writer of a store: rests while it is held."""

    def __init__(self) -> None:
        self.resting = False
        self.released = asyncio.Event()
        self.ending = asyncio.Event()

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[asyncio.Event]:
        self.resting = True
        try:
            yield self.ending
        finally:
            self.resting = False
            self.released.set()


def held(tmp_path: Path, answers: Answers, act: Callable[[Writer, aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        writer = Writer()
        async with client(tmp_path / "a") as session, serve(tmp_path / "a", replace(answers, hold=writer.hold)):
            return await act(writer, session)

    return asyncio.run(go())


def test_a_writer_rests_until_the_one_who_holds_the_store_hangs_up(tmp_path: Path, answers: Answers) -> None:
    async def act(writer: Writer, session: aiohttp.ClientSession) -> None:
        response = await session.post("/hold")
        assert await response.content.readline() == b'{"held": true}\n'
        assert writer.resting
        assert (await post(session, "/hold", {}))[0] == 400  # one at a time
        assert (await get(session, "/status"))[0] == 200
        response.close()
        await asyncio.wait_for(writer.released.wait(), PATIENCE)
        assert not writer.resting
        again = await session.post("/hold")
        assert await again.content.readline() == b'{"held": true}\n'
        again.close()

    held(tmp_path, answers, act)


def test_a_writer_rests_no_longer_than_it_may(
    tmp_path: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.live.server.HOLD_SECONDS", 0.05)

    async def act(writer: Writer, session: aiohttp.ClientSession) -> None:
        response = await session.post("/hold")
        assert await response.content.readline() == b'{"held": true}\n'
        assert await response.content.readline() == b""  # the end of the connection tells the client
        assert not writer.resting

    held(tmp_path, answers, act)


def test_who_holds_the_store_is_told_when_the_run_ends(tmp_path: Path, answers: Answers) -> None:
    async def act(writer: Writer, session: aiohttp.ClientSession) -> None:
        response = await session.post("/hold")
        assert await response.content.readline() == b'{"held": true}\n'
        writer.ending.set()
        assert await response.content.readline() == b""

    held(tmp_path, answers, act)


def test_the_pace_is_that_of_the_last_minute_and_what_is_left_is_said_until_the_end() -> None:
    pulse = Pulse("c", NOW)
    assert pulse.document()["calls_per_second"] == 0
    pulse.feed(Statistics(planned=1000, settled=400))  # settled by an earlier run
    assert (pulse.document()["seconds_left"], pulse.document()["left"]) == (None, "")
    for second in range(1, 201):
        pace = 10 if second <= 100 else 2
        before = pulse.document()
        for part in (0.2, 0.0):
            pulse.feed(
                Statistics(1000, before["settled"] + pace // 2, 0, before["calls"] + pace, elapsed=second - part)
            )
    found = pulse.document()
    assert found["calls_per_second"] == pytest.approx(2, abs=0.1)
    pulse.feed(Statistics(seconds_left=600.0, elapsed=300.0))
    assert (pulse.document()["seconds_left"], pulse.document()["left"]) == (600.0, "about 10 min left")
    pulse.ending = "complete"
    assert pulse.document()["left"] == ""
