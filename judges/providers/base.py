"""What the engine needs of a provider, and what keeps a key from leaving it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote, urlsplit

from venire.arena.errors import InputError
from venire.arena.records import Reply, Request

__all__ = ["Endpoint", "Provider", "redact"]

_MASK = "[redacted]"
_SHORTEST = 6
_ESCAPED = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|([\"/\\]))")
_VISIBLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is reached and with what: the base URL, the key, seconds for one call, calls in flight.

    The base URL is what stands before `/chat/completions`. The key never shows in the repr. Raises `InputError` for
    a base URL that is no plain http(s) address and for a key that no header can carry.
    """

    base_url: str
    key: str | None
    timeout: float
    concurrency: int

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("a base URL must begin with http:// or https:// and name a host; correct base_url")
        if parts.username is not None or parts.query or parts.fragment:
            raise InputError(
                f"the base URL of {parts.hostname} may hold no password, query or fragment; "
                "put the key into an environment variable and name that in key_variable"
            )
        if self.key is not None and not _VISIBLE.fullmatch(self.key):
            raise InputError(
                f"the key for {self.base_url} is empty or holds a space, a line end or a character outside ASCII; "
                "set its environment variable again"
            )

    def __repr__(self) -> str:
        key = None if self.key is None else _MASK
        return (
            f"Endpoint(base_url={self.base_url!r}, key={key!r}, "
            f"timeout={self.timeout!r}, concurrency={self.concurrency!r})"
        )

    def url(self, path: str) -> str:
        """The address of one of the endpoint's paths."""
        return f"{self.base_url.rstrip('/')}/{path}"


class Provider(Protocol):
    """One account at one vendor. Methods that wait may be cancelled at any point; a cancelled call may be billed."""

    def encode(self, model: str, request: Request) -> bytes:
        """The body to send: the same bytes for the same model and request."""
        ...

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in exactly one HTTP request and read the reply.

        Raises `TransientError` where the same call may succeed later, any other `CallError` where it will not.
        """
        ...

    async def check(self) -> str | None:
        """Ask for the list of models, which costs nothing: None when all is well, else a sentence of warning.

        Raises `InputError` where no call could succeed: no connection, or a refused key.
        """
        ...

    async def close(self) -> None:
        """Let the connections go."""
        ...


def redact(text: str, key: str | None) -> str:
    """The text with every occurrence of the key masked: as it is, escaped for JSON or a URL, or in base64.

    A key of fewer than 6 characters is a placeholder for a local server ("none", "EMPTY") and is masked only after
    the word Bearer: masking it everywhere would rewrite the answers of judges.
    """
    if not key:
        return text
    forms, pattern = _forms(key)
    if any(form in view for view in _views(text) for form in forms):
        return pattern.sub(_MASK, text)
    return text


def _views(text: str) -> Iterator[str]:
    """The text, and what it says once the escapes of JSON, of a URL or of both are undone.

    Looking through these is several times quicker than the pattern that finds where.
    """
    yield text
    plain = _ESCAPED.sub(lambda found: found[2] or chr(int(found[1], 16)), text) if "\\" in text else text
    if plain != text:
        yield plain
    if "%" in text:
        yield unquote(text)
    if "%" in plain and plain != text:
        yield unquote(plain)


@lru_cache(maxsize=64)
def _forms(key: str) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """What a key can look like, and one pattern for all of it; the plain forms are for a quick look first."""
    if len(key) < _SHORTEST:
        return (key,), re.compile(rf"(?<=bearer ){_escapable(key)}", re.IGNORECASE)
    forms = (key, *_base64_cores(key))
    return forms, re.compile("|".join(_escapable(form) for form in forms))


def _escapable(form: str) -> str:
    """A pattern for a text in which any character may be escaped as JSON or a URL would."""
    patterns = []
    for character in form:
        literal = re.escape(character)
        if character in '"/\\':
            literal = rf"\\?{literal}"
        patterns.append(rf"(?:{literal}|(?i:\\u{ord(character):04x}|%{ord(character):02x}))")
    return "".join(patterns)


def _base64_cores(key: str) -> tuple[str, ...]:
    """What base64 makes of the key at each of the three places where it can begin within a longer text.

    The first and last character can mix with neighbours of the key and are left out.
    """
    cores = []
    data = key.encode()
    for shift in range(3):
        encoded = b64encode(b"\0" * shift + data).decode()
        core = encoded[-(-8 * shift // 6) : 8 * (shift + len(data)) // 6]
        cores += [core, core.translate(str.maketrans("+/", "-_"))]
    return tuple(dict.fromkeys(cores))
