"""Pages of a store that a run of another process holds: asked of that run, through the socket beside the store."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from venire.arena.errors import StoreHeldError
from venire.live.library import ServedStore
from venire.live.sockets import short_path, socket_path
from venire.simulation.requests import small_body, whole

_CONNECT_SECONDS = 2.0
_SILENCE_SECONDS = 10.0
"""How long a run may take to say anything: it answers a page that computes within a second, that it is computing."""

_COUNTERS_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
_ENDING_SECONDS = 300.0
"""How long a run that has ended may take to rate its verdicts and close its store."""

_HEARTBEAT_SECONDS = 10.0
_MAX_FORM = 1 << 16
_PASSED_ON = ("Content-Type", "Content-Disposition", "Cache-Control", "Location")
_AS_DATA = ("application/json", "application/x-ndjson")


class SilentRunError(StoreHeldError):
    """The run that holds a store takes too long to answer."""


class RefusedError(StoreHeldError):
    """The run that holds a store answers, and shows no pages."""


class EventStream:
    """Server-sent events about a run: `changed` when it has gone on, and `ended`."""

    def __init__(self, response: web.StreamResponse) -> None:
        self._response = response
        self._state: Any = None
        self._written_at = monotonic()

    async def show(self, now: Mapping[str, Any]) -> None:
        """Send `changed` where the counters are others than before, else a sign of life now and then."""
        state = tuple(now[name] for name in ("settled", "failed", "calls", "in_flight", "round", "ending"))
        if state == self._state:
            await self.live_on()
            return
        self._state = state
        await self._write("changed", {"settled": now["settled"]})

    async def live_on(self) -> None:
        """Send a sign of life if nothing was sent for some seconds."""
        if monotonic() - self._written_at > _HEARTBEAT_SECONDS:
            self._written_at = monotonic()
            await self._response.write(b": still there\n\n")

    async def end(self, ending: str | None, *, follows: bool = False) -> None:
        """Send `ended`; `follows`: the stream goes on, for another run may begin."""
        self._state = None
        await self._write("ended", {"ending": ending, "follows": follows})

    async def _write(self, name: str, data: Mapping[str, Any]) -> None:
        self._written_at = monotonic()
        await self._response.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


class FollowedRun:
    """The run that holds a store which is served here, whenever there is one."""

    def __init__(self, served: ServedStore) -> None:
        self._served = served
        self._socket = socket_path(served.path)

    async def relay(self, request: web.Request) -> web.StreamResponse | None:
        """The run's answer to a request for a page; None where no run listens that has any, or it ended meanwhile.

        Raises SilentRunError where it does not answer in time, and RefusedError with its words where it has no pages.
        """
        body = await whole(small_body(request, _MAX_FORM)) if request.can_read_body else b""
        if body is None:
            raise web.HTTPRequestEntityTooLarge(_MAX_FORM, request.content_length or _MAX_FORM)
        headers = {name: request.headers[name] for name in ("Content-Type",) if name in request.headers}
        try:
            async with self._ask(request.method, request.path_qs, body, headers) as answer:
                if answer.content_type in _AS_DATA and answer.status == 404:
                    return None  # it plans or rates, or is of a version without pages
                if answer.content_type in _AS_DATA and answer.status >= 400:
                    raise RefusedError(str((await answer.json())["error"]))
                kept = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
                if "Content-Disposition" not in answer.headers:
                    return web.Response(body=await answer.read(), status=answer.status, headers=kept)
                return await _stream(request, answer, kept)
        except TimeoutError as error:
            raise SilentRunError(
                f"the run that holds the store {self._served.path} does not answer now: it is planning or rating, or "
                "was stopped"
            ) from error
        except (OSError, aiohttp.ClientError):
            return None

    async def follow(self, stream: EventStream, over: asyncio.Event) -> None:
        """Tell how the run goes on, that it has ended, and how the next one goes on, until `over` is set."""
        is_first = True
        while not over.is_set():
            last: Mapping[str, Any] | None = None
            with contextlib.suppress(TimeoutError):  # it is silent, and still there
                async for last in self._counters():
                    await stream.show(last)
                    if over.is_set():
                        return
                if last is not None:
                    await self._wait_for_store(over)
                if last is not None or is_first:
                    await stream.end(None if last is None else last["ending"], follows=True)
            is_first = False
            await stream.live_on()
            await _pause(over, _COUNTERS_SECONDS)

    async def _counters(self) -> AsyncIterator[Mapping[str, Any]]:
        """The counters of the run, every second until it ends; none where there is no run.

        Raises TimeoutError where it does not answer any more.
        """
        path = f"/live?every={_COUNTERS_SECONDS:g}"
        with contextlib.suppress(OSError, aiohttp.ClientError, ValueError):  # it ended without notice
            async with self._ask("GET", path) as answer:
                while answer.status == 200 and (line := await answer.content.readline()):
                    document: dict[str, Any] = json.loads(line)
                    yield document

    async def _is_running(self) -> bool:
        """Whether calls are made now: the process that plans or rates answers without counters."""
        try:
            async with self._ask("GET", "/live") as answer:
                return answer.status == 200 and await answer.json() is not None
        except (OSError, aiohttp.ClientError, ValueError):
            return False

    async def _wait_for_store(self, over: asyncio.Event) -> None:
        """Wait until the store of a run that has ended can be opened, or another run has it."""
        until = monotonic() + _ENDING_SECONDS
        while monotonic() < until and not over.is_set():
            if await self._is_running() or await asyncio.to_thread(self._served.is_free):
                return
            await _pause(over, _PAUSE_SECONDS)

    @contextlib.asynccontextmanager
    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The run's answer. Raises OSError and ClientError where there is none, TimeoutError after a long silence."""
        patience = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
        url = URL(f"http://venire{path}", encoded=True)
        async with contextlib.AsyncExitStack() as stack:
            connector = aiohttp.UnixConnector(path=stack.enter_context(short_path(self._socket)))
            session = aiohttp.ClientSession(connector=connector, timeout=patience, auto_decompress=False)
            await stack.enter_async_context(session)
            asked = session.request(method, url, data=body or None, headers=headers, allow_redirects=False)
            yield await stack.enter_async_context(asked)


async def _stream(
    request: web.Request, answer: aiohttp.ClientResponse, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Hand a download on, part by part; one that breaks off there breaks off here."""
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        async for part in answer.content.iter_any():
            await response.write(part)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ConnectionAbortedError("the run has ended") from error
    await response.write_eof()
    return response


async def _pause(over: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(over.wait(), seconds)
