"""Simulated judges without HTTP: asked in this process, on the clock of the run.

A judge answers as the server (`simulation.server`) does to the same body: with the same text, tokens, faults and raw
answer, after the same time. Only the network is omitted: no connection is opened, no body is parsed, no thread runs. On
a virtual clock a day of waiting takes no time, and two runs of a campaign are identical to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from math import inf, isinf
from types import MappingProxyType
from typing import NamedTuple

from venire.arena.campaigns import Limits
from venire.arena.clock import Clock
from venire.arena.errors import CallError, Fault, InputError
from venire.arena.records import Reply, Request
from venire.judges.providers.base import Endpoint
from venire.judges.providers.faults import failure, refusal
from venire.judges.providers.openai import OpenAIProvider
from venire.judges.providers.replies import read_reply
from venire.judges.safety.sanitize import split_fences
from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_replies import JudgeReply, completion_body, error_body, reply_seconds
from venire.simulation.chat_requests import ChatRequest, RequestError, chat_request_of, read_request
from venire.simulation.faults import FAULT_RESPONSES, FaultKind, Faults
from venire.simulation.judge import profiles_digest
from venire.simulation.rehearsal import answer_to

ADDRESS = "http://127.0.0.1/v1"
"""Placeholder for an endpoint's address: nothing listens there, and nothing is sent."""

_PIECES = 8
_QUESTIONS = 1024
"""Cache size: the number of questions in flight between two steps; further questions are parsed again."""


class _Body(bytes):
    """An encoded request with a reference to its source, so that it need not be parsed again."""

    ask: Callable[[], ChatRequest]


class _FenceCache:
    """Cache of the fenced texts of the latest questions: each step of a trial sends the same text object as the last.

    The key is the object's identity. Hashing its text would take as long as parsing it again.
    """

    def __init__(self) -> None:
        self._latest: dict[int, tuple[str, tuple[tuple[str, ...], str]]] = {}

    def __call__(self, question: str) -> tuple[tuple[str, ...], str]:
        known = self._latest.get(id(question))
        if known is not None and known[0] is question:  # held here, so no other object can have its id
            return known[1]
        if len(self._latest) >= _QUESTIONS:
            del self._latest[next(iter(self._latest))]
        self._latest[id(question)] = (question, found := split_fences(question))
        return found


class _DirectDecision(NamedTuple):
    """The outcome of a request, decided before any wait; for an answer in pieces, the seconds between them."""

    wait_s: float
    said: Reply | CallError
    piece_s: float = 0.0


class DirectJudges:
    """The judges of a campaign in this process: the counterpart of `simulation.server.JudgeServer` without HTTP.

    `speed` divides every waiting time of a judge (0 or infinite: no waiting); `seed` is that of the faults. One
    provider is created for each route; all share the history of requests. Raises `InputError` for a speed below 0.
    """

    def __init__(
        self,
        answer_key: AnswerKey,
        *,
        clock: Clock,
        speed: float = 1.0,
        seed: int = 0,
        faults: Faults | None = None,
    ) -> None:
        if not speed >= 0:
            raise InputError(f"speed must be 0 or more, got {speed}")
        self._clock = clock
        self._answer_key = answer_key
        self._pace = 0.0 if speed == 0 or isinf(speed) else 1 / speed
        self._seed = seed
        self._faults = faults if faults is not None and faults.any else None
        self._asked: dict[str, int] = {}
        self.split_fences = _FenceCache()
        self._fingerprint = f"fp_{profiles_digest()}"

    def provider(self, endpoint: Endpoint) -> DirectProvider:
        """A route to these judges, with the timeouts of an endpoint."""
        return DirectProvider(self, endpoint, self._clock)

    def decide(self, body: bytes, address: str) -> _DirectDecision:
        """The outcome of a request to an address: a reply or an error, and the seconds until it."""
        try:
            ask = body.ask() if isinstance(body, _Body) else read_request(body)
            reply = answer_to(ask, self._answer_key)
        except RequestError as error:
            return self._refused(400, error_body(str(error), "invalid_request_error", param=error.param))
        except InputError as error:
            unknown = error_body(str(error), "invalid_request_error", code="model_not_found", param="model")
            return self._refused(404, unknown)
        digest = sha256(body).hexdigest()
        self._asked[digest] = asked = self._asked.get(digest, 0) + 1
        wait_s = reply_seconds(reply, ask.model, digest, asked) * self._pace
        fault = None if self._faults is None else self._faults.draw(self._seed, digest, asked)
        name = f"{digest[:24]}{asked:04x}"
        if fault is not None:
            return self._faulted(fault, ask, reply, body, name, address, wait_s)
        return _DirectDecision(wait_s, self._reply(ask, reply, name))

    def _faulted(
        self, fault: FaultKind, ask: ChatRequest, reply: JudgeReply, body: bytes, name: str, address: str, wait_s: float
    ) -> _DirectDecision:
        """The client's result of a fault, where the answer would arrive after the given seconds."""
        faults = self._faults or Faults()
        match fault:
            case "timeout":
                broke = "the connection broke before the answer"
                return _DirectDecision(faults.timeout_s, _broken_connection(address, broke))
            case "cut":
                return _DirectDecision(
                    wait_s, _broken_connection(address, "the answer broke off, or its body is not what its headers say")
                )
            case "unpriced":
                return _DirectDecision(wait_s, _read(self._raw(ask, reply, name, counted=False), body))
            case "late" | "wrong_type" | "slow_bytes":
                late_s = faults.late_s if fault == "late" else 0.0
                piece_s = faults.slow_s / _PIECES if fault == "slow_bytes" else 0.0
                return _DirectDecision(wait_s + late_s, self._reply(ask, reply, name), piece_s)
        spoilt = FAULT_RESPONSES[fault]
        if spoilt.status == 200:
            return _DirectDecision(wait_s, _read(spoilt.body.decode(), body))
        headers = {"Retry-After": f"{faults.retry_after_s:g}"} if fault == "rate_limited" else {}
        return self._refused(spoilt.status, spoilt.body, headers)

    def _refused(self, status: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> _DirectDecision:
        return _DirectDecision(0.0, refusal(status, headers, body.decode(), self._clock.wall()))

    def _raw(self, ask: ChatRequest, reply: JudgeReply, name: str, *, counted: bool = True) -> str:
        """The body of an answer as the server writes it."""
        return completion_body(
            reply,
            id=f"chatcmpl-{name}",
            created=int(self._clock.wall().timestamp()),
            model=ask.model,
            fingerprint=self._fingerprint,
            counted=counted,
        ).decode()

    def _reply(self, ask: ChatRequest, reply: JudgeReply, name: str) -> Reply:
        """The reply that a client parses from the answer, built without parsing."""
        return Reply(
            text=reply.text,
            finish=reply.finish,
            input_tokens=reply.prompt_tokens,
            output_tokens=reply.tokens,
            served_model=ask.model,
            fingerprint=self._fingerprint,
            raw=self._raw(ask, reply, name),
            logprobs=reply.logprobs,
        )


def _read(raw: str, body: bytes) -> Reply | CallError:
    """The client's result of an answer with status 200."""
    try:
        return read_reply(raw, body)
    except CallError as error:
        return error


def _broken_connection(address: str, what: str) -> CallError:
    """The client's error for a connection without a complete answer."""
    return failure(f"{address}: {what}", Fault.TRANSIENT, may_be_billed=True)


class DirectProvider:
    """A route to judges in this process; see `judges.providers.base.Provider`.

    Bodies are those of OpenAI's protocol, byte for byte, so that a store records the same. Of the endpoint only its
    timeouts and its support for structured answers are used.
    """

    def __init__(self, judges: DirectJudges, endpoint: Endpoint, clock: Clock) -> None:
        self.on_limits: Callable[[Limits, float], None] | None = None
        self._judges = judges
        self._clock = clock
        self._dialect = OpenAIProvider(endpoint)
        self._address = endpoint.base_url
        self._longest = endpoint.timeout
        read = endpoint.read_timeout
        self._silence = read if read is not None and read < endpoint.timeout else inf

    def limits_key(self, model: str) -> tuple[str, ...]:
        """The model only: judges in this process have neither host nor key."""
        return ("direct", "", model)

    def encode(self, model: str, request: Request) -> bytes:
        """The body that would be sent, with a reference to its source."""
        body = _Body(self._dialect.encode(model, request))
        body.ask = partial(
            chat_request_of, model, request, structured=self.is_structured(model), split=self._judges.split_fences
        )
        return body

    def is_structured(self, model: str) -> bool:
        """As for an endpoint of OpenAI's protocol; see `Provider`."""
        return self._dialect.is_structured(model)

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """The judge's reply after its time; see `Provider`. Raises the client's error for a fault."""
        wait_s, said, piece_s = self._judges.decide(body, self._address)
        whole_s = wait_s + _PIECES * piece_s
        if whole_s > self._longest or wait_s + piece_s > self._silence:
            whole_s, said = self._timed_out(wait_s + piece_s)
        await self._clock.sleep(whole_s)
        if isinstance(said, CallError):
            raise said
        return said

    def _timed_out(self, first_s: float) -> tuple[float, CallError]:
        """The time after which the client gives up, if its answer begins after `first_s` seconds, and its error."""
        if first_s > self._silence:
            message = f"the server was silent for {self._silence:g} s (read_timeout)"
            return self._silence, _broken_connection(self._address, message)
        return self._longest, _broken_connection(self._address, f"no whole answer within {self._longest:g} s (timeout)")

    async def check(self) -> str | None:
        """Nothing to check: there is no endpoint."""
        return None

    async def close(self) -> None:
        """Nothing to release."""
