"""Faults that a simulated provider makes on purpose, drawn so that a run can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from venire.arena.errors import InputError
from venire.simulation.judge import uniform

__all__ = ["FaultKind", "Faults"]

FaultKind = Literal["rate_limited", "server_error", "timeout", "cut", "garbage", "late", "unpriced"]

_KINDS: tuple[FaultKind, ...] = ("rate_limited", "server_error", "timeout", "cut", "garbage", "late", "unpriced")
_MOST_PER_BODY = 2


@dataclass(frozen=True, slots=True)
class Faults:
    """How often each kind of fault is made (a share of the asks, 0 to 1 in sum), and its settings in seconds.

    A body is met by two faults at most: its third ask is always answered. A fault never changes a verdict.
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
    retry_after_s: float = 1.0
    timeout_s: float = 30.0
    late_s: float = 30.0

    def __post_init__(self) -> None:
        rates = [getattr(self, kind) for kind in _KINDS]
        if min(rates) < 0 or sum(rates) > 1:
            raise InputError(f"rates of faults must be 0 or more and at most 1 together, got {rates}")
        if min(self.retry_after_s, self.timeout_s, self.late_s) < 0:
            raise InputError("retry_after_s, timeout_s and late_s of faults must be 0 seconds or more")

    def draw(self, seed: int, body_digest: str, asked: int) -> FaultKind | None:
        """The fault that meets the `asked`-th ask (from 1) of this body, or None where it is answered."""
        if asked > _MOST_PER_BODY:
            return None
        left = uniform(seed, "fault", body_digest, asked)
        for kind in _KINDS:
            left -= getattr(self, kind)
            if left < 0:
                return kind
        return None
