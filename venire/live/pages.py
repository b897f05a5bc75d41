"""The routes of the pages: what is asked for, computed in threads and other processes, guarded on its way out.

Every answer is made apart from the event loop, which in a run sends the calls: pages in two threads, boards and audits
in processes (`live.fits`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import monotonic
from typing import Any

from aiohttp import web

from venire.arena.errors import InputError, StoreHeldError, VenireError
from venire.live.downloads import Downloads
from venire.live.fits import Fits
from venire.live.following import EventStream, FollowedRun
from venire.live.guard import Guard
from venire.live.library import IDLE_SECONDS, Library, ServedStore
from venire.live.page_maker import Live, PageMaker, RenderedPage, WaitingError
from venire.live.voting import MAX_VOTE_BYTES, UnknownBattleError, Voting, read_vote
from venire.pages.registry import PAGES, PageEntry
from venire.pages.rendering import SECURITY_HEADERS, assets, render
from venire.pages.views import battle as battle_view
from venire.simulation.requests import small_body, whole

_PATIENCE_SECONDS = 1.0
"""How long a page waits for a computation before it says that it is under way."""

_TICK_SECONDS = 1.0
_LAST_SECONDS = 1.5
_QUIET_SECONDS = 1.0
_ANSWER_SECONDS = 4.0
"""Who asks as the run ends is answered, where that takes no longer."""

_LATELY_SECONDS = 5.0
"""Who asked so lately, and without a stream of events, may ask for the last state as well."""

_WANTED_SECONDS = 0.1
"""How often it is asked whether another process waits for a store that is looked at."""

_SHARED_SECONDS = 1.0
"""How long the page of a running campaign is the same for all who ask."""

_WORKER_SECONDS = 120.0
"""After so long without a fit the processes that compute boards are ended."""

_TURN_SECONDS = 3.0
"""How long a page waits for a store that another process has or that was replaced; then it says so, and asks again."""

_OWN = ("/events", "/annotate", "/annotate/battles", "/annotate/vote")
"""Ends of addresses that this process answers whoever holds the store."""

_SEVERAL = ("columns", "judge")
"""Parameters of an address that a form may send several times."""

_FOREVER = "public, max-age=31536000, immutable"
_HTML = "text/html"
_LOG = logging.getLogger("venire.pages")


@dataclass
class Pages:
    """The pages of some stores, as routes of an application; `live` where one is of a run in this process."""

    library: Library
    guard: Guard
    live: Live | None = None
    voting: Voting | None = None
    """Where people may vote on the stores, which are then written."""
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "venire-pages"))
    _searches: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "venire-search"))
    _votes: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "venire-votes"))
    _downloads: Downloads = field(default_factory=Downloads)
    _fits: Fits = field(default_factory=Fits)
    _shared: dict[str, tuple[float, asyncio.Task[RenderedPage]]] = field(default_factory=dict)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _keeper: asyncio.Task[None] | None = None
    _runs: dict[str, FollowedRun] = field(default_factory=dict)
    _streams: int = 0
    _answering: int = 0
    _asked_at: float = -_LATELY_SECONDS

    @cached_property
    def _maker(self) -> PageMaker:
        people = None if self.voting is None else self.voting.people
        return PageMaker(self.library, self._fits, self.guard.page_token, self.live, people)

    def add_to(self, app: web.Application) -> None:
        """Add the routes and what all answers carry."""
        self.route(app.router)
        app.on_response_prepare.append(_secure)

    def route(self, router: web.UrlDispatcher) -> None:
        """Add the routes; pages of a campaign are below /s/STORE/c/NUMBER."""
        campaign = "/s/{store}/c/{campaign:[0-9]{1,9}}"
        add = router.add_get
        add("/", self._front)
        add("/enter", self._enter, allow_head=False)
        add("/static/{name}", self._static)
        add("/s/{store}", self._first)
        add(campaign, self._first)
        add(campaign + "/events", self._events, allow_head=False)
        add(campaign + "/calls.{form:csv|jsonl|parquet}", self._download, allow_head=False)
        add(campaign + "/text/{trial:[0-9]{1,18}}/{kind:completion|instruction|reply}/{place:[0-9-]{1,20}}", self._text)
        for page in PAGES.values():
            add(f"{campaign}/{page.name}" + "/{number:[0-9]{1,18}}" * page.numbered, partial(self._show, page))
        if self.voting is not None:
            add("/s/{store}/annotate", self._first)
            add(campaign + "/annotate", self._voting_page)
            add(campaign + "/annotate/battles", self._battles, allow_head=False)
            router.add_post(campaign + "/annotate/vote", self._vote)
        router.add_post(campaign + "/stop", self._stop)
        router.add_post(campaign + "/cancel", self._cancel)

    def refusal(self, request: web.Request) -> web.Response | None:
        """Why a request over TCP is not answered; None: it is."""
        guard, changes = self.guard, request.method not in ("GET", "HEAD")
        if not guard.knows_host(request.headers.get("Host")):
            return self._message(
                "Another host", "This server does not answer for the name by which it was asked.", status=421
            )
        if not guard.same_origin(request.headers, changes=changes):
            return self._message("Another origin", "This came from a page of another site.", status=403)
        if (
            request.path == "/enter"
            or request.path.startswith("/static/")
            or guard.knows(request.headers, request.cookies)
        ):
            return None
        return self._message(
            "A token is needed",
            "Open the link that was printed where these pages are served, or send the token in the header "
            "Authorization: Bearer.",
            status=401,
        )

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """The answer of a route, if the guard lets it through; what goes wrong is said on a page."""
        self._asked_at = monotonic()
        self._answering += 1
        try:
            if (refusal := self.refusal(request)) is not None:
                return refusal
            return await self.reply(request, handler)
        finally:
            self._answering -= 1
            self._asked_at = monotonic()

    async def reply(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """The answer of a route, or of the run that holds the store of which it is."""
        try:
            served = self.library.stores.get(request.match_info.get("store", ""))
            if served is None or served.running is not None or request.path.endswith(_OWN):
                found: web.StreamResponse = await handler(request)
                return found
            return await self._with_store(request, handler, served)
        except VenireError as error:
            return self._message("That cannot be shown", str(error), status=404)
        except web.HTTPException as error:
            return self._message(error.reason, f"{request.method} {request.path[:200]}", status=error.status)
        except (ConnectionError, asyncio.CancelledError):
            raise  # whoever asked is gone
        except Exception as error:  # a boundary: a defect in one page ends neither the server nor the run beside it
            if isinstance(error, RuntimeError) and self._ended.is_set():  # the threads are gone
                return self._message("The run has ended", "Its pages have ended with it.", status=503)
            _LOG.warning("a page failed: %s %s", request.method, request.path[:200], exc_info=error)
            return self._message(
                "This page failed", "It is a defect of Venire; the terminal says where.", status=500, back="/"
            )

    async def _with_store(self, request: web.Request, handler: Any, served: ServedStore) -> web.StreamResponse:
        """The answer of a run that holds the store, else of this process, once it can have the store."""
        until, run = monotonic() + _TURN_SECONDS, self._runs.setdefault(served.slug, FollowedRun(served))
        while True:
            try:
                if (answer := await run.relay(request)) is not None:
                    return answer
                if await asyncio.to_thread(served.is_free) or monotonic() > until:
                    found: web.StreamResponse = await handler(request)
                    return found
            except StoreHeldError as error:
                return self._message("The store is in use", f"{error}.", status=503, again=2)
            await asyncio.sleep(_WANTED_SECONDS)

    async def open(self) -> None:
        """Begin to close what nobody looks at; without a run beside, be ready for the first board."""
        if self.live is None:
            await asyncio.to_thread(self._fits.warm)
        self._keeper = asyncio.create_task(self._keep_house())

    async def end(self) -> None:
        """Tell whoever follows the run that it has ended, and answer until they have its last state."""
        followed = self._streams > 0 or monotonic() - self._asked_at < _LATELY_SECONDS
        self._ended.set()
        self._shared.clear()
        if not followed:
            return
        await asyncio.sleep(_LAST_SECONDS)
        until = monotonic() + _ANSWER_SECONDS
        # a stretch of silence is waited for, which no event announces
        while monotonic() < until and not self._is_quiet():  # noqa: ASYNC110
            await asyncio.sleep(_QUIET_SECONDS / 4)

    def _is_quiet(self) -> bool:
        """Whether nothing is being answered, or was a moment ago."""
        return not self._answering and monotonic() - self._asked_at >= _QUIET_SECONDS

    async def close(self) -> None:
        """End streams and computations, and close stores at rest."""
        self._ended.set()
        if self._keeper is not None:
            self._keeper.cancel()
        await asyncio.to_thread(self._fits.close)
        for pool in (self._threads, self._searches, self._votes):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._downloads.close)
        self.library.close()

    async def _keep_house(self) -> None:
        cleaned_at = monotonic()
        while True:
            await asyncio.sleep(_WANTED_SECONDS)
            for served in [one for one in self.library.stores.values() if one.is_wanted()]:
                await self._give_up(served)
            if monotonic() - cleaned_at < IDLE_SECONDS / 4:
                continue
            cleaned_at = monotonic()
            await asyncio.to_thread(self._close_idle)

    async def _give_up(self, served: ServedStore) -> None:
        """Close a store that is wanted or replaced: what reads it for long, computations and downloads, is ended."""
        self._fits.cancel_all(served.path.resolve())
        self._downloads.cancel(served)
        await asyncio.to_thread(served.give_up)

    def _close_idle(self) -> None:
        self._fits.end_idle(_WORKER_SECONDS)
        for one in self.library.stores.values():
            one.close_if_idle()

    # what is asked for

    async def _front(self, request: web.Request) -> web.StreamResponse:
        stores = list(self.library.stores)
        if len(stores) == 1:
            return _redirect(f"/s/{stores[0]}")

        return await self._in_thread(request, self._maker.front)

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        value = self.guard.enter(request.query.get("key", ""))
        if value is None:
            return self._message(
                "This link was used before",
                "It works once. The command that serves these pages prints another when it is started again; a token "
                "in the header Authorization works as well.",
                status=403,
            )
        answer = self._message("Welcome", "This browser may look at the pages now.", back="/")
        answer.set_cookie(self.guard.cookie, value, httponly=True, samesite="Strict", path="/")
        return answer

    async def _static(self, request: web.Request) -> web.StreamResponse:
        found = assets().get(request.match_info["name"])
        if found is None:
            return await self._of_a_run(request) or self._message(
                "Not found", "There is no such file here.", status=404
            )
        return web.Response(body=found.body, content_type=found.content_type, headers={"Cache-Control": _FOREVER})

    async def _first(self, request: web.Request) -> web.StreamResponse:
        """The overview of the campaign that is going on, or of the only or last one; or the page to vote on it."""
        served, wanted = self.library.find(request.match_info["store"]), request.match_info.get("campaign")
        page = "annotate" if request.path.endswith("/annotate") else "overview"
        return await self._in_thread(request, partial(self._maker.first, served, wanted, page))

    async def _show(self, page: PageEntry, request: web.Request) -> web.StreamResponse:
        served = self.library.find(request.match_info["store"])
        query = _query(request)
        number, campaign = (int(request.match_info.get(name, "0")) for name in ("number", "campaign"))
        make = partial(self._maker.page, served, campaign, page, number, query)
        if served.running is not None and not page.slow:
            return _answer(await self._share(request.path_qs, make, request.path))
        return await self._in_thread(request, make, self._searches if page.slow else None)

    async def _share(self, key: str, make: Callable[[], RenderedPage], path: str) -> RenderedPage:
        """The same page for all who ask within a second: while a campaign runs ten readers cost what one does."""
        now = monotonic()
        for old in [one for one, (at, task) in self._shared.items() if now - at > _SHARED_SECONDS and task.done()]:
            del self._shared[old]
        if key not in self._shared:
            self._shared[key] = now, asyncio.ensure_future(self._ready(make, path, self._threads))
        return await asyncio.shield(self._shared[key][1])

    async def _in_thread(
        self, request: web.Request, make: Callable[[], RenderedPage], pool: ThreadPoolExecutor | None = None
    ) -> web.StreamResponse:
        return _answer(await self._ready(make, request.path, pool or self._threads))

    async def _ready(self, make: Callable[[], RenderedPage], path: str, pool: ThreadPoolExecutor) -> RenderedPage:
        """A page, with a second's patience for a fit that it needs; after that one that says how far that is."""
        loop, begun = asyncio.get_running_loop(), monotonic()
        while True:
            try:
                return await loop.run_in_executor(pool, self._maker.made, make)
            except WaitingError as waiting:
                left = begun + _PATIENCE_SECONDS - monotonic()
                if left <= 0 or not await asyncio.to_thread(waiting.fit.done.wait, left):
                    return self._maker.waiting(waiting, path)

    def _message(self, title: str, *sentences: str, status: int = 200, back: str = "", again: int = 0) -> web.Response:
        values = {"title": title, "page": "", "sentences": sentences, "command": "", "again": again, "back": back}
        return web.Response(
            body=render("message.html", values).encode(), status=status, content_type=_HTML, charset="utf-8"
        )

    async def _of_a_run(self, request: web.Request) -> web.StreamResponse | None:
        """A file that a page of a followed run names; None where none has it."""
        for run in list(self._runs.values()):
            with contextlib.suppress(StoreHeldError):
                if (answer := await run.relay(request)) is not None and answer.status == 200:
                    return answer
        return None

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: `changed` when the run has gone on, at most once a second, and `ended`.

        Those of a store at rest tell of runs of other processes, and go on from one to the next.
        """
        served = self.library.find(request.match_info["store"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        stream = EventStream(response)
        self._streams += 1
        try:
            if self.live is None:
                await self._runs.setdefault(served.slug, FollowedRun(served)).follow(stream, self._ended)
            else:
                await self._follow(self.live, stream)
        finally:
            self._streams -= 1
        return response

    async def _follow(self, live: Live, stream: EventStream) -> None:
        while not self._ended.is_set():
            await stream.show(live.document())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _TICK_SECONDS)
        with contextlib.suppress(ConnectionError):
            await stream.end(live.document()["ending"])

    async def _download(self, request: web.Request) -> web.StreamResponse:
        served = self.library.find(request.match_info["store"])
        form, campaign = request.match_info["form"], int(request.match_info["campaign"])
        try:
            return await self._downloads.send(request, served, campaign, _query(request), form)
        except VenireError as error:
            return self._message("That cannot be had", str(error), status=404)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        """A whole text, as a file: a browser never shows it as a page."""
        served = self.library.find(request.match_info["store"])
        campaign, trial = int(request.match_info["campaign"]), int(request.match_info["trial"])

        def read() -> str:
            with served.store() as store:
                here = served.context(store, campaign, token="", live=None)
                return battle_view.full_text(here.table, trial, request.match_info["kind"], request.match_info["place"])

        try:
            text = await asyncio.get_running_loop().run_in_executor(self._threads, read)
        except VenireError as error:
            return self._message("That cannot be had", str(error), status=404)
        headers = {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Disposition": 'attachment; filename="text.txt"',
            "Cache-Control": "no-store",
        }
        return web.Response(body=text.encode("utf-8", "replace"), headers=headers)

    async def _voting_page(self, request: web.Request) -> web.StreamResponse:
        served, campaign = self.library.find(request.match_info["store"]), int(request.match_info["campaign"])
        return await self._in_thread(request, partial(self._maker.voting, served, campaign))

    async def _battles(self, request: web.Request) -> web.StreamResponse:
        """What somebody of a name votes on, as JSON."""
        served, campaign = self.library.find(request.match_info["store"]), int(request.match_info["campaign"])
        assert self.voting is not None  # it has no route otherwise
        ask = partial(self.voting.battles, served, campaign, request.query.get("annotator", ""))
        return await self._as_json(ask, self._threads)

    async def _vote(self, request: web.Request) -> web.StreamResponse:
        """A vote, which only a page of this server can send: it has the token, and JSON of another site is refused."""
        if request.content_type != "application/json":
            return _json({"error": "a vote is sent as application/json"}, 415)
        if (body := await whole(small_body(request, MAX_VOTE_BYTES))) is None:
            return _json({"error": f"a vote has up to {MAX_VOTE_BYTES:,} bytes"}, 413)
        try:
            vote = read_vote(body)
        except InputError as error:
            return _json({"error": str(error)}, 400)
        if not self.guard.knows_form(vote.token):
            return _json({"error": "the vote did not come from a page of this server: load the page again"}, 403)
        served, campaign = self.library.find(request.match_info["store"]), int(request.match_info["campaign"])
        assert self.voting is not None  # it has no route otherwise
        keep = partial(self.voting.keep, served, campaign, vote)
        return await self._as_json(lambda: {"changed": keep()}, self._votes)

    async def _as_json(self, make: Callable[[], Mapping[str, Any]], pool: ThreadPoolExecutor) -> web.Response:
        """What a function returns, or a sentence of why there is nothing."""
        try:
            return _json(await asyncio.get_running_loop().run_in_executor(pool, make))
        except StoreHeldError as error:
            return _json({"error": str(error)}, 409)
        except UnknownBattleError as error:
            return _json({"error": str(error)}, 404)
        except InputError as error:
            return _json({"error": str(error)}, 400)
        except VenireError as error:
            return _json({"error": str(error)}, 500)

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        """Stop the run gently: the one thing that a page changes of a run."""
        if not self.guard.knows_form(await _form_token(request)):
            return self._message("Not from this page", "The form did not come from a page of this server.", status=403)
        if self.live is None:
            return self._message("Nothing runs", "No campaign runs in this process.", status=409)
        served = self.library.find(request.match_info["store"])
        if not self.live.document().get("ending") and not self.live.document().get("stopping"):
            self.live.stop()
        return _redirect(f"/s/{served.slug}/c/{request.match_info['campaign']}/overview")

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        """Give a computation up."""
        if not self.guard.knows_form(await _form_token(request)):
            return self._message("Not from this page", "The form did not come from a page of this server.", status=403)
        served = self.library.find(request.match_info["store"])
        with contextlib.suppress(ValueError, TypeError):
            key = json.loads(request.query.get("key", ""))
            path = served.path.resolve() if served.running is None else served.path
            self._fits.cancel((str(path), int(request.match_info["campaign"]), *key))
        return _redirect(f"/s/{served.slug}/c/{request.match_info['campaign']}/overview")


async def _form_token(request: web.Request) -> object:
    """The token of a form. Raises HTTPBadRequest for a body that is no form."""
    return (await whole(request.post())).get("token")


def _json(document: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.json_response(document, status=status, headers={"Cache-Control": "no-store"})


def _query(request: web.Request) -> dict[str, str]:
    """The parameters of an address; of those that may be there several times the values, one a line."""
    found: dict[str, str] = {}
    for key, value in request.query.items():
        found[key] = f"{found[key]}\n{value}" if key in _SEVERAL and key in found else value
    return found


def _answer(page: RenderedPage) -> web.Response:
    if page.location is not None:
        return _redirect(page.location)
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=page.body, status=page.status, content_type=_HTML, charset="utf-8", headers=headers)


def _redirect(location: str) -> web.Response:
    return web.Response(status=303, headers={"Location": location, "Cache-Control": "no-store"})


async def _secure(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in SECURITY_HEADERS.items():
        response.headers[name] = value
    response.headers.pop("Server", None)
