"""Who may ask for a page over TCP: the right host, the right origin, and where it is not this machine alone, a token.

A page on another site can send requests to this machine (DNS rebinding makes them look as if they were for a name of
its own). So a request must name this server as its host, come from no other origin, and whatever changes anything must
carry a token that only pages hold.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest

from venire.arena.errors import InputError
from venire.configs.env_file import environment
from venire.judges.providers.base import SecretHolder

TOKEN_VARIABLE = "VENIRE_SERVE_TOKEN"
"""Environment variable with the token to be asked for; without it one is drawn, and only the link brings it."""

DEFAULT_PORT = 8377
_MIN_TOKEN = 16
_PORT_DIGITS = 5


@dataclass(frozen=True, slots=True)
class DoorAddress:
    """Host and port to listen on; `given`: others than this machine can come, so a token is asked for."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    given: bool = False

    def url(self, port: int) -> str:
        """The address of the first page, with the port that was bound."""
        host = self.host
        if host in ("0.0.0.0", "::"):  # everywhere: from here it is reached so
            host = socket.gethostname()
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def parse_address(text: str | None) -> DoorAddress:
    """HOST:PORT, HOST, :PORT or PORT; None: this machine alone. Raises InputError for anything else.

    >>> parse_address("0.0.0.0:8000").given
    True
    >>> parse_address("8000").host
    '127.0.0.1'
    """
    if text is None or not text.strip():
        return DoorAddress()
    text = text.strip()
    if text.isdigit():
        host, port = "", text
    elif text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.rpartition(":") if text.count(":") == 1 else (text, "", "")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise InputError(f"pages are served at HOST:PORT, such as 127.0.0.1:{DEFAULT_PORT}, not at {text!r}")
    if not host:
        return DoorAddress(port=int(port) if port else DEFAULT_PORT)
    if any(character in host for character in "/@?# "):
        raise InputError(f"pages are served at HOST:PORT, such as 127.0.0.1:{DEFAULT_PORT}, not at {text!r}")
    return DoorAddress(host, int(port) if port else DEFAULT_PORT, given=not _is_loopback(host))


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine alone; a name that is not an address is looked up by nobody here."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class Guard(SecretHolder):
    """Decides on requests over TCP; `token` is asked for where it is not None."""

    address: DoorAddress
    port: int = 0
    token: str | None = field(default=None, repr=False)
    page_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Goes with every form of a page."""
    _entry: str | None = field(default=None, repr=False)
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """In the cookie of who came by the link."""

    @classmethod
    def of(cls, address: DoorAddress, environ: Mapping[str, str] | None = None) -> Guard:
        """The guard of an address, with the token of the environment. Raises InputError for a token that is short."""
        if not address.given:
            return cls(address)
        token = environment(environ).get(TOKEN_VARIABLE, "").strip() or secrets.token_urlsafe(32)
        if len(token) < _MIN_TOKEN:
            raise InputError(f"{TOKEN_VARIABLE} has {len(token)} characters: a token has at least {_MIN_TOKEN}")
        return cls(address, token=token, _entry=secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Name of the cookie; ports of one host share cookies."""
        return f"venire-{self.port}"

    def link(self) -> str:
        """The address to open: with a key that works once, where a token is asked for."""
        base = self.address.url(self.port)
        return base + "/" if self._entry is None else f"{base}/enter?key={self._entry}"

    def page(self, path: str) -> str:
        """The address of a page, for who has come by the link or brings the token."""
        return self.address.url(self.port) + path

    def enter(self, key: str) -> str | None:
        """The cookie's value for the key of the link, which then works no more; None for another key."""
        if self._entry is None or not _same(key, self._entry):
            return None
        self._entry = None
        return self._session

    def knows_host(self, host: str | None) -> bool:
        """Whether a `Host` header names this server: by an address, by `localhost`, or by the name it was given."""
        if not host:
            return False
        name, port = _split_host(host)
        if port != self.port and not (port is None and self.port == 80):
            return False
        if name in ("localhost", self.address.host.lower()):
            return True
        try:
            ip = ipaddress.ip_address(name)
        except ValueError:
            everywhere = self.address.host in ("0.0.0.0", "::")
            return everywhere and name in {socket.gethostname().lower(), socket.getfqdn().lower()}
        return ip.is_loopback or self.address.given

    def same_origin(self, headers: Mapping[str, str], *, changes: bool) -> bool:
        """Whether a request comes from a page of this server, or from no page at all.

        Requests that change something must say where they come from.
        """
        origin, host = headers.get("Origin"), headers.get("Host", "")
        if origin is not None and origin != f"http://{host}":
            return False
        site = headers.get("Sec-Fetch-Site")
        if changes:
            return origin is not None or site == "same-origin"
        return site in (None, "same-origin", "none") or headers.get("Sec-Fetch-Mode") == "navigate"

    def knows(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
        """Whether a request brings the token, in its header or by the cookie of the link."""
        if self.token is None:
            return True
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self.token):
            return True
        return _same(cookies.get(self.cookie, ""), self._session)

    def knows_form(self, token: object) -> bool:
        """Whether a form came from a page of this server."""
        return isinstance(token, str) and _same(token, self.page_token)


def _split_host(host: str) -> tuple[str, int | None]:
    """Name and port of a `Host` header, in lower case."""
    name, _, port = host.rpartition(":")
    if not name or (host.startswith("[") and host.endswith("]")):
        name, port = host, ""
    name = name.strip("[]").lower().rstrip(".")
    return name, int(port) if port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS else None


def _same(given: str, known: str) -> bool:
    """Whether two secrets are equal, in a time that says nothing of them."""
    return compare_digest(given.encode("utf-8", "surrogateescape"), known.encode("utf-8", "surrogateescape"))
