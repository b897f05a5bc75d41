"""Access to a running campaign from outside: a small HTTP server on a Unix socket beside the store.

While a campaign runs, its process owns the store, and no other process can open it, not even to read. So the owner
answers:

- `GET /status`: the status document of the store
- `GET /live`: the latest counters; with `?every=SECONDS` a line at once, a line after each interval, and a line when
  the run has ended
- `POST /sql` `{"query": "...", "most": 100}`: columns and rows of a query, which the given function refuses or answers
- `POST /hold`: one line once the writer has checkpointed its log and paused; it stays paused until the client
  disconnects, at most for a minute

Answers are JSON. Errors of a request are returned as `{"error": "a sentence"}`. Separate threads do the work, two
queries and one status at a time, so that neither the run's event loop nor its counters wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiohttp import web
from yarl import URL

from venire.arena.errors import InputError, VenireError
from venire.live.answers import Answers
from venire.live.sockets import listening, socket_path
from venire.simulation.requests import app_runner, whole

if TYPE_CHECKING:
    from venire.live.pages import Pages

SQL_AT_ONCE = 2
HOLD_SECONDS = 60.0
_STATUS_SECONDS = 1.0
_PATIENCE_SECONDS = 0.5
_GLANCE_SECONDS = 0.5
"""How long a status may take until the last one is shown instead."""


@contextlib.asynccontextmanager
async def serve(
    store: Path,
    answers: Answers,
    warn: Callable[[str], None] | None = None,
    pages: Pages | None = None,
    listener: socket.socket | None = None,
) -> AsyncIterator[None]:
    """Answer on the socket beside a store. The caller holds the store's lock, so an existing socket is stale.

    With `pages` the same application has those as well, and listens where their guard says. If no socket can be made,
    `warn` is called with a sentence and it is served without. `listener` is a socket that listens there already. Raises
    InputError where the pages' address is taken.
    """
    path = socket_path(store)
    server = _SocketServer(answers, pages)
    try:
        await server.start(path, listener)
    except OSError as error:
        if warn is not None:
            warn(
                f"warning: no socket {path} ({error.strerror or error}): `venire status`, `venire watch` and "
                "`venire sql` cannot look at this run"
            )
    try:
        yield
    finally:
        await server.stop(path)


@dataclass(slots=True)
class _SocketServer:
    answers: Answers
    pages: Pages | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _sql: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(SQL_AT_ONCE, "venire-sql"))
    _status: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "venire-status"))
    _known: tuple[float, dict[str, Any]] | None = None
    _held: bool = False
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _runner: web.AppRunner | None = None
    _server: asyncio.Server | None = None

    async def start(self, path: Path, listener: socket.socket | None = None) -> None:
        """Start to listen. Raises OSError if no socket can be made."""
        app = web.Application(client_max_size=1 << 20, middlewares=[_sentences, _guarded(lambda: self.pages)])
        app.router.add_get("/status", self._show_status)
        app.router.add_get("/live", self._show_live)
        app.router.add_post("/sql", self._answer_sql)
        app.router.add_post("/hold", self._rest)
        self._runner = app_runner(app, _PATIENCE_SECONDS, _SILENT, handler_cancellation=True)
        if self.pages is not None:
            self.pages.add_to(app)
        elif self.answers.pages is not None:
            app.router.register_resource(_PagesOnDemand(self._pages_on_demand))
        await self._runner.setup()
        handler = self._runner.server
        assert handler is not None  # it exists after `setup`
        if self.pages is not None:
            await _listen(self._runner, self.pages)
        with listening(path) if listener is None else contextlib.nullcontext(listener) as mine:
            self._server = await asyncio.get_running_loop().create_unix_server(handler, sock=mine)

    async def stop(self, path: Path) -> None:
        """Notify watchers that the run has ended, cancel open requests, and wait for the threads."""
        if self._server is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            self._server.close()
        self._ended.set()
        if self.pages is not None:
            await self.pages.end()
        if self._runner is not None:
            await self._runner.cleanup()
        if self.pages is not None:
            await self.pages.close()
        for pool in (self._sql, self._status):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def _pages_on_demand(self) -> Pages:
        """The pages of this run for other processes, made at the first request. Raises as `Answers.pages`."""
        async with self._making:
            if self.pages is None:
                assert self.answers.pages is not None
                pages = await asyncio.to_thread(self.answers.pages)
                await pages.open()
                self.pages = pages
        return self.pages

    async def _show_status(self, request: web.Request) -> web.Response:
        """The document of now, or where that takes long, the last one that was made."""
        made = asyncio.get_running_loop().run_in_executor(self._status, self._recent_status)
        if self._known is None:
            return _json(await made)
        done, _ = await asyncio.wait([made], timeout=_GLANCE_SECONDS)
        return _json(await made if done else self._known[1])

    def _recent_status(self) -> dict[str, Any]:
        """The status document, computed at most once a second for any number of requests."""
        now = monotonic()
        if self._known is None or now - self._known[0] > _STATUS_SECONDS:
            self._known = now, self.answers.status()
        return self._known[1]

    async def _show_live(self, request: web.Request) -> web.StreamResponse:
        pulse = self.answers.pulse
        if "every" not in request.query:
            return _json(None if pulse is None else pulse.document())
        if pulse is None:
            raise InputError("no calls are made now: the campaign is being planned or rated; try again in a moment")
        every = _seconds(request.query["every"])
        response = _lines()
        await response.prepare(request)
        while not self._ended.is_set():
            await response.write(_line(pulse.document() | {"ended": False}))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), every)
        await response.write(_line(pulse.document() | {"ended": True}))
        return response

    async def _answer_sql(self, request: web.Request) -> web.Response:
        asked = await _body(request)
        query, most = asked.get("query"), asked.get("most")
        if not isinstance(query, str) or not isinstance(most, int) or most < 0:
            raise InputError('a query is asked as {"query": "select ...", "most": 100}')
        given_up = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._sql, self._sql_body, query, most, given_up)
        finally:
            given_up.set()  # answered, or cancelled: by a client that hung up, or by the end of the run

    def _sql_body(self, query: str, most: int, given_up: threading.Event) -> web.Response:
        if given_up.is_set():  # while the query waited for its turn
            raise InputError("the query was given up")
        found = self.answers.sql(query, most, given_up)
        rows = ",".join(json.dumps(row, allow_nan=False) for row in found.rows)  # one by one: the loop gets its turns
        text = f'{{"columns": {json.dumps(found.columns)}, "rows": [{rows}], "more": {json.dumps(found.more)}}}'
        return web.Response(body=text.encode(), content_type="application/json")

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        if self.answers.hold is None:
            raise InputError("this run cannot hold its store")
        if self._held:
            raise InputError("the store is being held for somebody else: try again in a minute")
        self._held = True
        try:
            async with self.answers.hold() as over:
                response = _lines()
                response.force_close()  # its end signals the end to the client
                await response.prepare(request)
                await response.write(_line({"held": True}))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), HOLD_SECONDS)  # cancelled when the client hangs up
            return response
        finally:
            self._held = False


@contextlib.asynccontextmanager
async def serve_pages(pages: Pages) -> AsyncIterator[None]:
    """Serve the pages of stores at rest where their guard says. Raises InputError where that address is taken."""
    app = web.Application(client_max_size=1 << 20, middlewares=[_sentences, _guarded(lambda: pages)])
    pages.add_to(app)
    runner = app_runner(app, _PATIENCE_SECONDS, _SILENT, handler_cancellation=True)
    await runner.setup()
    try:
        await _listen(runner, pages)
        yield
    finally:
        await runner.cleanup()  # whoever reads slowly is cut off before the stores are closed
        await pages.close()


async def _listen(runner: web.AppRunner, pages: Pages) -> None:
    address = pages.guard.address
    site = web.TCPSite(runner, address.host, address.port, reuse_address=True)
    try:
        await site.start()
    except OSError as error:
        raise InputError(
            f"pages cannot be served at {address.host}:{address.port}: {error.strerror or error}. Name another port, "
            "such as 127.0.0.1:0 for any that is free"
        ) from error
    pages.guard.port = runner.addresses[0][1]
    await pages.open()


def _guarded(current: Callable[[], Pages | None]) -> Any:
    """Lets requests through: over the socket all, which only this user can open; over TCP those that the guard knows.

    What the socket answers beside pages (SQL, holding the store) does not exist over TCP.
    """

    @web.middleware
    async def check(request: web.Request, handler: Any) -> web.StreamResponse:
        transport, pages = request.transport, current()
        is_own = transport is not None and isinstance(transport.get_extra_info("sockname"), str | bytes)
        if is_own and (pages is None or request.path in _SOCKET_ONLY):
            answer: web.StreamResponse = await handler(request)
            return answer
        if pages is None or transport is None or request.path in _SOCKET_ONLY:
            raise web.HTTPNotFound
        if not is_own:
            return await pages.answer(request, handler)
        if (slug := request.match_info.get("store")) is not None:
            pages.library.answer_to(slug)  # the process that passes the request on may have another name for it
        return await pages.reply(request, handler)

    return check


class _PagesOnDemand(web.AbstractResource):
    """Routes of pages that are made when one is first asked for: a run that nobody looks at imports none."""

    def __init__(self, pages: Callable[[], Awaitable[Pages]]) -> None:
        super().__init__()
        self._pages = pages
        self._router: web.UrlDispatcher | None = None

    async def resolve(self, request: web.Request) -> tuple[web.UrlMappingMatchInfo | None, set[str]]:
        """The page's own route; one that says why there are no pages, where there can be none."""
        router = self._router
        if router is None:
            router = web.UrlDispatcher()
            try:
                (await self._pages()).route(router)
                self._router = router
            except VenireError as error:
                router.add_route("*", "/{path:.*}", partial(_refuse, error))
        match = await router.resolve(request)
        return (None, set()) if match.http_exception is not None else (match, set())

    @property
    def canonical(self) -> str:
        """What all its paths begin with."""
        return "/"

    def url_for(self, **_: str) -> URL:
        """The first page."""
        return URL("/")

    def add_prefix(self, prefix: str) -> None:
        """Nothing: this application is within no other, for which aiohttp's class asks."""

    def get_info(self) -> Any:
        """Nothing beside its routes."""
        return {}

    def raw_match(self, path: str) -> bool:
        """No path is its own."""
        return False

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[web.AbstractRoute]:
        return iter(())


async def _refuse(error: VenireError, _: web.Request) -> web.Response:
    raise error


_SILENT = logging.Logger("venire.pages.requests", logging.CRITICAL + 1)
"""Where aiohttp says that a request was malformed: anybody who reaches the port could fill the terminal."""

_SOCKET_ONLY = ("/status", "/live", "/sql", "/hold")


@web.middleware
async def _sentences(request: web.Request, handler: Any) -> web.StreamResponse:
    """Return errors as JSON with a sentence, like every other answer."""
    try:
        response: web.StreamResponse = await handler(request)
    except InputError as error:
        return _json({"error": str(error)}, 400)
    except VenireError as error:
        return _json({"error": str(error)}, 500)
    except web.HTTPException as error:
        return _json({"error": f"{request.method} {request.path}: {error.reason}"}, error.status)
    return response


def _json(document: object, status: int = 200) -> web.Response:
    return web.json_response(document, status=status)


def _lines() -> web.StreamResponse:
    return web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})


def _line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise InputError(f"every takes 0.1 to 3600 seconds, and got {text!r}")
    return seconds


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await whole(request.read()))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON, or nested too deep: {error}") from error
    if not isinstance(body, dict):
        raise InputError("the request is not a JSON object")
    return body
