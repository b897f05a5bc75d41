"""Faults that a simulated provider injects on purpose, drawn from a seed so that a run is reproducible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from venire.arena.errors import InputError
from venire.simulation.chat_replies import error_body
from venire.simulation.judge import uniform

# New kinds go last, so that the draws of a seed stay the same for the others and campaigns are reproducible.
FaultKind = Literal[
    "rate_limited",
    "server_error",
    "timeout",
    "cut",
    "garbage",
    "late",
    "unpriced",
    "html",
    "error_inside",
    "empty_choices",
    "wrong_type",
    "slow_bytes",
]

_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
_MAX_PER_BODY = 2


@dataclass(frozen=True, slots=True)
class Faults:
    """The rate of each kind of fault (a share of requests; their sum is 0 to 1), and settings in seconds.

    A body gets at most two faults: its third request is always answered. A fault never changes a verdict.
    """

    rate_limited: float = 0.0
    """429 with Retry-After."""
    server_error: float = 0.0
    """500."""
    timeout: float = 0.0
    """No answer for `timeout_s`, then the connection is closed."""
    cut: float = 0.0
    """The connection is closed in the middle of the answer."""
    garbage: float = 0.0
    """200 and a body that is not JSON."""
    late: float = 0.0
    """The answer comes after `late_s` more, when a client may have given up."""
    unpriced: float = 0.0
    """200 and an answer that counts no tokens."""
    html: float = 0.0
    """502 and a page, as a gateway answers."""
    error_inside: float = 0.0
    """200 and an error instead of the answer."""
    empty_choices: float = 0.0
    """200 and an answer without a choice."""
    wrong_type: float = 0.0
    """The answer with the content type of plain text."""
    slow_bytes: float = 0.0
    """The answer in small pieces, over `slow_s` seconds."""
    retry_after_s: float = 1.0
    timeout_s: float = 30.0
    late_s: float = 30.0
    slow_s: float = 1.0

    def __post_init__(self) -> None:
        rates = [getattr(self, kind) for kind in _KINDS]
        if min(rates) < 0 or sum(rates) > 1:
            raise InputError(f"rates of faults must be 0 or more and at most 1 together, got {rates}")
        if min(self.retry_after_s, self.timeout_s, self.late_s, self.slow_s) < 0:
            raise InputError("retry_after_s, timeout_s, late_s and slow_s of faults must be 0 seconds or more")

    @property
    def any(self) -> bool:
        """Whether any fault has a nonzero rate."""
        return any(getattr(self, kind) for kind in _KINDS)

    def draw(self, seed: int, body_digest: str, asked: int) -> FaultKind | None:
        """The fault of the `asked`-th request (from 1) with this body, or None where it is answered."""
        if asked > _MAX_PER_BODY:
            return None
        left = uniform(seed, "fault", body_digest, asked)
        for kind in _KINDS:
            left -= getattr(self, kind)
            if left < 0:
                return kind
        return None


@dataclass(frozen=True, slots=True)
class FaultResponse:
    """The response that is sent instead of an answer."""

    status: int
    """0: no response."""
    body: bytes
    content_type: str = "application/json"
    worked: bool = False
    """Whether the judge did its work anyway: then it takes its time, and is billed."""


_PAGE = b"<html><body>upstream connect error</body></html>"

FAULT_RESPONSES: Mapping[FaultKind, FaultResponse] = {
    "rate_limited": FaultResponse(
        429, error_body("Too many requests: wait and try again", "requests", code="rate_limit_exceeded")
    ),
    "server_error": FaultResponse(500, error_body("The server had an error", "server_error")),
    "timeout": FaultResponse(0, b""),
    "garbage": FaultResponse(200, _PAGE, worked=True),
    "html": FaultResponse(502, _PAGE, "text/html"),
    "error_inside": FaultResponse(200, error_body("The model was overloaded", "server_error"), worked=True),
    "empty_choices": FaultResponse(200, b'{"object":"chat.completion","choices":[]}', worked=True),
}
