"""A provider on this machine: simulated judges behind an OpenAI-compatible address.

`POST /v1/chat/completions`, `GET /v1/models` and `GET /v1/models/{id}` answer as a provider would, with `stream` as
server-sent events; so do OpenAI's `/v1/files` and `/v1/batches`, and Anthropic's `POST /v1/messages` and
`/v1/messages/batches` (`wire_forms.py`, `batch_forms.py`). `GET /ledger` returns the ledger, with how often each batch
was made. A judge's model name is `simulated/<profile>@<seed>`. It identifies the completions by
the texts between the fences of the first user message that has any, their order by the order of these texts, and the
repeat by the request's `seed` (default 1): a request contains nothing that would not be sent to a real provider. A
request without fences is an instruction, and the model answers it as a contestant.

Behaviour for two stages that the profiles do not define (for the other protocols see `comparisons.py`, `grades.py` and
`contestants.py`):

- Verdict and repair are replies of one token. They take the time of a first token and one more, under the noise of
  the trial's reasons.
- A judge whose verdict is unreadable gets a repair request and answers in a readable form in half of the cases (drawn);
  it then gives the verdict from its `z` and its tie draw.
- The reasons are remarks drawn independently of the verdict, with about the formula's number of tokens (the pool has
  some 350 tokens); the tokens reported are the formula's. They state no preference.
- A request's token limit is respected: longer reasons are truncated there and end with `length`. Temperature and other
  sampling settings have no effect.
- Texts that are not in the answer key get unreadable replies.
- Two completions with the same text count as one model's: their gap is 0, and only the order matters.
- Prompt tokens are counted from the characters of all messages. Nothing is billed. Nothing is cached unless a number of
  blocks is given: then prefixes of prompts are cached, and cached tokens are reported (`prefix_cache.py`).
- Faults are drawn from the server's seed, the body and its number of requests: rate limits, server errors and a
  gateway's pages are sent at once, corrupted answers after the judge's time, late answers later. No fault changes the
  judge's answer to a repeated request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from math import isinf
from pathlib import Path
from typing import Any, Self

import orjson
from aiohttp import hdrs, web

from venire.arena.errors import InputError
from venire.simulation.answer_key import AnswerKey
from venire.simulation.batch_forms import AnthropicForm, FormReply, OpenAIForm
from venire.simulation.batches import BatchDesk, BatchFaults, BatchLine, LineOutcome, SimulatedBatch
from venire.simulation.chat_replies import (
    JudgeReply,
    error_body,
    model_body,
    models_body,
    reply_seconds,
    stream_events,
)
from venire.simulation.chat_requests import ChatRequest, RequestError
from venire.simulation.faults import FAULT_RESPONSES, FaultKind, Faults
from venire.simulation.judge import (
    load_profiles,
    model_name,
    parse_model,
    profiles_digest,
    tokens_per_character,
    uniform,
)
from venire.simulation.ledger import Ledger, LedgerEntry
from venire.simulation.prefix_cache import CacheSize, PrefixCache
from venire.simulation.rehearsal import answer_to
from venire.simulation.requests import app_runner, whole
from venire.simulation.wire_forms import CHAT, MESSAGES, AnswerFacts, WireForm

_HOST = "127.0.0.1"
_JSON = "application/json"
_INVALID = "invalid_request_error"
_NO_MODEL = "model_not_found"
_PIECES = 8
_CACHE_S = 300.0  # at the judges' own speed
_PATIENCE_S = 0.05  # grace period at shutdown for requests that are being answered


@dataclass(frozen=True, slots=True)
class _ServerDecision:
    """The outcome of a request, decided before anything is sent."""

    outcome: str
    status: int
    body: bytes
    wait_s: float = 0.0
    ask: ChatRequest | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    billed: tuple[int, int] | None = None
    content_type: str = _JSON

    @property
    def streamed(self) -> bool:
        """Whether it is an answer to be sent as server-sent events; errors and corrupted answers are not."""
        whole = self.status == 200 and self.outcome not in FAULT_RESPONSES
        return whole and self.ask is not None and self.ask.stream


class JudgeServer:
    """Simulated judges over HTTP; `async with` starts and stops it, `serve_in_thread` does so for synchronous code.

    `speed` divides every waiting time of a judge (0 or infinite: no waiting); port 0 selects a free port. `seed` is
    that of the faults. With `require_key` a request needs that key, as a bearer token or in `x-api-key`. `on_request`
    is called with a request's ordinal after it is in the ledger and before it is answered. `ledger_path` is a file to
    which the ledger is appended as JSON lines. `cache` is the size of an account's prompt cache; None: there is none.
    `batch_faults` says how batches go; `batches` has those that were made.
    """

    def __init__(
        self,
        answer_key: AnswerKey,
        *,
        port: int = 0,
        speed: float = 1.0,
        seed: int = 0,
        faults: Faults | None = None,
        ledger_path: Path | None = None,
        require_key: str | None = None,
        on_request: Callable[[int], None] | None = None,
        cache: CacheSize | None = None,
        batch_faults: BatchFaults | None = None,
    ) -> None:
        if not speed >= 0:
            raise InputError(f"speed must be 0 or more, got {speed}")
        self.ledger = Ledger(ledger_path)
        self._answer_key = answer_key
        self._port = port
        self._pace = 0.0 if speed == 0 or isinf(speed) else 1 / speed
        self._seed = seed
        self._faults = faults or Faults()
        self._required = require_key
        self._on_request = on_request
        self._cache = (
            PrefixCache(cache, characters=1 / tokens_per_character(), seconds=_CACHE_S * (self._pace or 1.0))
            if cache
            else None
        )
        self.batches = BatchDesk(
            batch_faults or BatchFaults(), seed, self._work_line, clock=time.monotonic, pace=self._pace
        )
        self._runner: web.AppRunner | None = None
        self._fingerprint = f"fp_{profiles_digest()}"
        self._models = models_body(model_name(profile, seed) for profile in load_profiles())

    @property
    def base_url(self) -> str:
        """The base URL for an OpenAI client, including `/v1`; known while the server runs."""
        if self._runner is None:
            raise RuntimeError("the server is not running")
        return f"http://{_HOST}:{self._runner.addresses[0][1]}/v1"

    async def start(self) -> None:
        """Start listening. Raises `InputError` where the address is in use or the ledger cannot be written."""
        app = web.Application(client_max_size=0, middlewares=[_in_json])
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/messages", self._write_message)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/v1/models/{id:.+}", self._show_model)
        self._add_batches(app)
        app.router.add_get("/health", self._show_health)
        app.router.add_get("/ledger", self._show_ledger)
        app.router.add_route("*", "/{path:.*}", self._no_such_path)
        runner = app_runner(app, _PATIENCE_S)
        self.ledger.open()
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, self._port).start()
        except OSError as error:
            await runner.cleanup()
            self.ledger.close()
            raise InputError(f"{_HOST}:{self._port} cannot be listened on: {error.strerror}") from error
        self._runner = runner

    def _add_batches(self, app: web.Application) -> None:
        """Routes of OpenAI's files and batches, and of Anthropic's message batches."""
        openai, anthropic = OpenAIForm(self.batches), AnthropicForm(self.batches, lambda: self.base_url)
        batches, messages = "/v1/batches", "/v1/messages/batches"
        routes: list[tuple[WireForm, str, str, Callable[[web.Request], Awaitable[FormReply]]]] = [
            (CHAT, "POST", "/v1/files", _of_upload(openai.upload)),
            (CHAT, "GET", "/v1/files/{id}/content", _about(openai.content)),
            (CHAT, "POST", batches, _of_body(openai.make)),
            (CHAT, "GET", batches, _of_query(openai.list)),
            (CHAT, "GET", f"{batches}/{{id}}", _about(openai.show)),
            (CHAT, "POST", f"{batches}/{{id}}/cancel", _about(openai.cancel)),
            (MESSAGES, "POST", messages, _of_body(anthropic.make)),
            (MESSAGES, "GET", messages, _of_query(anthropic.list)),
            (MESSAGES, "GET", f"{messages}/{{id}}", _about(anthropic.show)),
            (MESSAGES, "GET", f"{messages}/{{id}}/results", _about(anthropic.results)),
            (MESSAGES, "POST", f"{messages}/{{id}}/cancel", _about(anthropic.cancel)),
        ]
        for form, method, path, answer in routes:
            app.router.add_route(method, path, self._guarded(form, answer))

    def _guarded(
        self, form: WireForm, answer: Callable[[web.Request], Awaitable[FormReply]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """A handler that asks for the key first, and whose reply may be lost."""

        async def handle(request: web.Request) -> web.StreamResponse:
            if (refusal := self._key_refused(request, form)) is not None:
                return web.Response(status=refusal.status, body=refusal.body, content_type=_JSON)
            reply = await answer(request)
            if reply.lost:
                return _hang_up(request)
            return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)

        return handle

    def _work_line(self, batch: SimulatedBatch, line: BatchLine, outcome: LineOutcome) -> tuple[int, bytes]:
        """Answer a line of a batch, and enter it in the ledger with its id as the key; see `batches.Work`."""
        form = CHAT if batch.form == "openai" else MESSAGES
        digest = sha256(line.body).hexdigest()
        if outcome == "failed":
            rate_limited = uniform(self._seed, "batch failure", line.custom_id) < 0.5
            kind: FaultKind = "rate_limited" if rate_limited else "server_error"
            decision = _ServerDecision(kind, FAULT_RESPONSES[kind].status, form.fault(kind))
        else:
            decision = self._decide(form, line.body, digest, "", faulty=False)
        entry = self._enter(digest, line.custom_id, decision)
        if decision.status == 200:
            self.ledger.answer(entry)
        self.ledger.leave()
        return decision.status, decision.body

    async def stop(self) -> None:
        """Close every connection, answered or not, and the ledger's file."""
        if self._runner is None:
            return
        await self._runner.cleanup()
        self._runner = None
        self.ledger.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _list_models(self, request: web.Request) -> web.Response:
        if (refusal := self._key_refused(request)) is not None:
            return web.Response(status=refusal.status, body=refusal.body, content_type=_JSON)
        return web.Response(body=self._models, content_type=_JSON)

    async def _show_model(self, request: web.Request) -> web.Response:
        if (refusal := self._key_refused(request)) is not None:
            return web.Response(status=refusal.status, body=refusal.body, content_type=_JSON)
        name = request.match_info["id"]
        try:
            parse_model(name)
        except InputError as error:
            return web.Response(status=404, body=CHAT.refuse(404, str(error), _NO_MODEL, "model"), content_type=_JSON)
        return web.Response(body=model_body(name), content_type=_JSON)

    async def _show_health(self, request: web.Request) -> web.Response:
        return web.Response()  # as vLLM answers once its model is loaded

    async def _show_ledger(self, request: web.Request) -> web.Response:
        shown = {
            "totals": asdict(self.ledger.totals()),
            "entries": self.ledger.entries,
            "batches": dict(self.batches.created),
        }
        return web.Response(body=orjson.dumps(shown), content_type=_JSON)

    async def _no_such_path(self, request: web.Request) -> web.Response:
        body = error_body(f"There is nothing at {request.method} {request.path}", _INVALID)
        return web.Response(status=404, body=body, content_type=_JSON)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        return await self._judge(request, CHAT)

    async def _write_message(self, request: web.Request) -> web.StreamResponse:
        return await self._judge(request, MESSAGES)

    async def _judge(self, request: web.Request, form: WireForm) -> web.StreamResponse:
        body = await whole(request.read())
        digest = sha256(body).hexdigest()
        decision = self._key_refused(request, form) or self._decide(form, body, digest, _key_of(request) or "")
        entry = self._enter(digest, request.headers.get("Idempotency-Key"), decision)
        try:
            if self._on_request is not None:
                self._on_request(entry.ordinal)
            if decision.wait_s and not decision.streamed:
                await asyncio.sleep(decision.wait_s)
            return await self._send(request, decision, entry)
        finally:
            self.ledger.leave()

    def _enter(self, digest: str, key: str | None, decision: _ServerDecision) -> LedgerEntry:
        ask = decision.ask
        return self.ledger.enter(
            digest,
            key,
            ask.model if ask else None,
            ask.stage if ask else None,
            decision.outcome,
            quoted=sha256("\x1f".join(ask.quoted).encode()).hexdigest() if ask and ask.quoted else None,
            answer=sha256(decision.body).hexdigest() if decision.billed else None,
            billed=decision.billed,
        )

    def _key_refused(self, request: web.Request, form: WireForm = CHAT) -> _ServerDecision | None:
        if self._required is None:
            return None
        sent = _key_of(request)
        if sent == self._required:
            return None
        # The message contains the key on purpose: some providers do this, and a client must not store it anywhere.
        message = "No API key was sent" if sent is None else f"Incorrect API key provided: {sent}"
        return _ServerDecision("401", 401, form.refuse(401, message, "invalid_api_key", None))

    def _decide(
        self, form: WireForm, body: bytes, digest: str, account: str, *, faulty: bool = True
    ) -> _ServerDecision:
        try:
            ask = form.read(body)
            reply = answer_to(ask, self._answer_key)
        except RequestError as error:
            return _ServerDecision("400", 400, form.refuse(400, str(error), None, error.param))
        except InputError as error:
            return _ServerDecision("404", 404, form.refuse(404, str(error), _NO_MODEL, "model"), ask=ask)
        asked = self.ledger.asked(digest) + 1
        wait_s = reply_seconds(reply, ask.model, digest, asked) * self._pace
        fault = self._faults.draw(self._seed, digest, asked) if faulty else None
        billed = (reply.prompt_tokens, reply.tokens)
        if fault is not None and fault in FAULT_RESPONSES:
            return self._fault_decision(form, fault, ask, wait_s, billed)
        if fault == "late":
            wait_s += self._faults.late_s
        facts = AnswerFacts(
            name=f"{digest[:24]}{asked:04x}",
            created=int(time.time()),
            model=ask.model,
            fingerprint=self._fingerprint,
            counted=fault != "unpriced",
            cached=self._read_cached(ask, reply, account),
        )
        kind = "text/plain" if fault == "wrong_type" else _JSON
        answer = form.answer(reply, facts)
        return _ServerDecision(fault or "answered", 200, answer, wait_s, ask, billed=billed, content_type=kind)

    def _read_cached(self, ask: ChatRequest, reply: JudgeReply, account: str) -> int | None:
        """Number of prompt tokens in the account's cache; None without a cache."""
        if self._cache is None:
            return None
        delay = parse_model(ask.model)[0].first_token_s * self._pace
        cached = self._cache.ask(account, ask.model, ask.messages, now=time.monotonic(), delay=delay)
        return min(cached, reply.prompt_tokens)

    def _fault_decision(
        self, form: WireForm, fault: FaultKind, ask: ChatRequest, wait_s: float, billed: tuple[int, int]
    ) -> _ServerDecision:
        response = FAULT_RESPONSES[fault]
        headers = {"Retry-After": f"{self._faults.retry_after_s:g}"} if fault == "rate_limited" else {}
        if fault == "timeout":
            wait_s = self._faults.timeout_s
        elif not response.worked:
            wait_s = 0.0
        charged = billed if response.worked else None
        return _ServerDecision(
            fault, response.status, form.fault(fault), wait_s, ask, headers, charged, response.content_type
        )

    async def _send(self, request: web.Request, decision: _ServerDecision, entry: LedgerEntry) -> web.StreamResponse:
        if request.transport is None or decision.outcome == "timeout":
            return _hang_up(request)
        if decision.outcome == "cut":
            response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: _JSON})
            response.content_length = len(decision.body)
            await response.prepare(request)
            await response.write(decision.body[: len(decision.body) // 2])
            return _hang_up(request, response)
        if decision.status == 200 and decision.outcome not in FAULT_RESPONSES:
            self.ledger.answer(entry)
        if decision.streamed and decision.ask is not None:
            return await _stream(
                request, stream_events(decision.body, usage=decision.ask.stream_usage), decision.wait_s
            )
        if decision.outcome == "slow_bytes":
            return await self._trickle(request, decision.body)
        return web.Response(
            status=decision.status,
            body=decision.body,
            content_type=decision.content_type,
            headers=decision.headers or None,
        )

    async def _trickle(self, request: web.Request, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: _JSON})
        response.content_length = len(body)
        await response.prepare(request)
        size = -(-len(body) // _PIECES)
        for start in range(0, len(body), size):
            await asyncio.sleep(self._faults.slow_s / _PIECES)
            await response.write(body[start : start + size])
        return response


@web.middleware
async def _in_json(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
    """A refusal before any form has looked at a request, as a provider words it."""
    try:
        return await handler(request)
    except web.HTTPException as refused:
        return web.Response(status=refused.status, body=error_body(refused.reason, _INVALID), content_type=_JSON)


def _about(answer: Callable[[str], FormReply]) -> Callable[[web.Request], Awaitable[FormReply]]:
    """The handler of a path that ends in an id."""

    async def handle(request: web.Request) -> FormReply:
        return answer(request.match_info["id"])

    return handle


def _of_body(answer: Callable[[bytes], FormReply]) -> Callable[[web.Request], Awaitable[FormReply]]:
    async def handle(request: web.Request) -> FormReply:
        return answer(await whole(request.read()))

    return handle


def _of_upload(answer: Callable[[str, str, bytes], FormReply]) -> Callable[[web.Request], Awaitable[FormReply]]:
    """The handler of a form with a purpose and a file."""

    async def handle(request: web.Request) -> FormReply:
        if not request.content_type.startswith("multipart/"):
            return FormReply(400, error_body("A file must be sent as multipart/form-data", _INVALID))
        fields = await whole(request.post())
        file, purpose = fields.get("file"), fields.get("purpose")
        if not isinstance(file, web.FileField) or not isinstance(purpose, str):
            return FormReply(400, error_body("A form must have a purpose and a file", _INVALID))
        return answer(purpose, file.filename, file.file.read())

    return handle


def _of_query(answer: Callable[[Mapping[str, str]], FormReply]) -> Callable[[web.Request], Awaitable[FormReply]]:
    async def handle(request: web.Request) -> FormReply:
        return answer(request.query)

    return handle


async def _stream(request: web.Request, events: Sequence[bytes], seconds: float) -> web.StreamResponse:
    """Send an answer as server-sent events, spread evenly over the judge's time."""
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/event-stream", hdrs.CACHE_CONTROL: "no-cache"})
    with suppress(ConnectionError):  # the client reads no further
        await response.prepare(request)
        for event in events:
            if seconds:
                await asyncio.sleep(seconds / len(events))
            await response.write(event)
    return response


def _key_of(request: web.Request) -> str | None:
    """The key that a request was sent with, in OpenAI's header or in Anthropic's."""
    bearer = request.headers.get(hdrs.AUTHORIZATION)
    if bearer is None:
        return request.headers.get("x-api-key")
    return bearer[7:] if bearer.startswith("Bearer ") else ""


def _hang_up(request: web.Request, begun: web.StreamResponse | None = None) -> web.StreamResponse:
    """Close the connection; the returned response is never sent, but a handler must return one."""
    if request.transport is not None:
        request.transport.close()
    return web.Response() if begun is None else begun


@contextmanager
def serve_in_thread(server: JudgeServer) -> Iterator[JudgeServer]:
    """Run a server in a separate thread; it is stopped and its thread joined when the block ends.

    Raises the errors of `JudgeServer.start`.
    """
    started: Future[Callable[[], object]] = Future()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulated-judges") as pool:
        ended = pool.submit(asyncio.run, _serve(server, started))
        either: tuple[Future[Any], Future[Any]] = (started, ended)
        wait(either, return_when=FIRST_COMPLETED)
        if not started.done():
            ended.result()
        stop = started.result()
        try:
            yield server
        finally:
            if not ended.done():
                stop()
            ended.result()


async def _serve(server: JudgeServer, started: Future[Callable[[], object]]) -> None:
    async with server:
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        started.set_result(lambda: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()
