"""What the engine needs of a provider, and what keeps a key from leaving it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from html.entities import html5
from typing import NoReturn, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from venire.arena.campaigns import Limits
from venire.arena.errors import InputError
from venire.arena.records import Reply, Request
from venire.judges.providers.batches.base import BatchProvider
from venire.judges.providers.vendors import Vendor, vendor_of

_MASK = "[redacted]"
_SHORTEST = 6
_ESCAPED = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|([\"/\\]))")
_UNICODE = re.compile(r"\\u00[2-7]")
_ENTITY_NAMES = {
    character: [name for name, meant in html5.items() if meant == character and name.endswith(";")]
    for character in "-_.+/=:~"
}
_ENTITY = re.compile(rf"&(?:amp;)?(?:#|{'|'.join(name for names in _ENTITY_NAMES.values() for name in names)})")
_LAYERS = 3
"""How often a text may be escaped over again."""
_PERCENT = re.compile(r"%[2-7][0-9a-fA-F]")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")

# Headers that are ours to send: credentials, and those that frame a call.
_OURS = frozenset(
    {
        "accept-encoding",
        "api-key",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-api-key",
        "x-goog-api-key",
    }
)


class SecretHolder:
    """What holds a key or a password. It is never pickled or copied, so that no secret leaves the process with it."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds secrets and is never pickled: pickle the campaign, and open it")


@dataclass(frozen=True, slots=True)
class Endpoint(SecretHolder):
    """The address, credentials and limits of a provider. Times are in seconds, `concurrency` is calls in flight.

    The base URL is the part before `/chat/completions`. `timeout` is for a whole call, `connect_timeout` for its
    connection (name, proxy and TLS included), `read_timeout` for a silence of the server once the call is sent (None:
    no limit but the whole). `headers` go with every call. `proxy` is an http:// URL, whose user and password may stand
    before its host. `structured` says whether answers are held to a schema where a request has one; None: as is known
    of the vendor and the model. Neither key, password nor the values of headers show in the repr. Raises `InputError`
    for whatever of this no call could be made with.
    """

    base_url: str
    key: str | None
    timeout: float
    concurrency: int
    connect_timeout: float = 15.0
    read_timeout: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy: str | None = None
    structured: bool | None = None

    def __post_init__(self) -> None:
        parts = _split(self.base_url)
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
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise InputError(f"{self.base_url}: no header can be {name[:60]!r} with this value; correct headers")
            if name.lower() in _OURS:
                raise InputError(
                    f"{self.base_url}: the header {name} is set by Venire itself; take it out of headers (a key "
                    "belongs into an environment variable, named in key_variable)"
                )
        if self.proxy is not None:
            _check_proxy(self.base_url, self.proxy)

    def __repr__(self) -> str:
        said = [f"base_url={self.base_url!r}", f"key={None if self.key is None else _MASK!r}"]
        said += [f"timeout={self.timeout!r}", f"concurrency={self.concurrency!r}"]
        said += [f"connect_timeout={self.connect_timeout!r}", f"read_timeout={self.read_timeout!r}"]
        if self.headers:
            said.append(f"headers={sorted(self.headers)!r}")
        if self.proxy is not None:
            said.append(f"proxy={self.proxy_host!r}")
        return f"Endpoint({', '.join(said)})"

    @property
    def host(self) -> str:
        """Host of the base URL, with its port where it is not that of http or https."""
        parts = urlsplit(self.base_url)
        return parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")

    @property
    def proxy_host(self) -> str:
        """Host and port of the proxy without its password; empty where there is no proxy."""
        return "" if self.proxy is None else urlsplit(self.proxy).netloc.rpartition("@")[2]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must leave this process in no other place than its header: the key, and the proxy's password."""
        if self.proxy is None:
            return () if self.key is None else (self.key,)
        written, _, _ = urlsplit(self.proxy).netloc.rpartition("@")
        password = written.partition(":")[2]
        found = (self.key, unquote(written), written, unquote(password), password)
        return tuple(dict.fromkeys(secret for secret in found if secret))

    def url(self, path: str) -> str:
        """The address of one of the endpoint's paths."""
        return f"{self.base_url.rstrip('/')}/{path}"

    def redact(self, text: str) -> str:
        """The text with every secret masked; see `redact`."""
        for secret in self.secrets:
            text = redact(text, secret)
        return text


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port else urlsplit("")
    except ValueError:
        return urlsplit("")


def _check_proxy(base_url: str, proxy: str) -> None:
    """The message quotes no part of a bad URL: it may contain a password in the wrong place."""
    parts = _split(proxy)
    if parts.scheme != "http" or not parts.hostname or not _VISIBLE.fullmatch(proxy):
        raise InputError(
            f"the proxy for {base_url} must be http://HOST:PORT, also for https calls; "
            "correct proxy, or what proxy_variable names"
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(
            f"the proxy for {base_url} must end with its port; write %2F, %3F or %23 for /, ? or # in its password"
        )
    if ":" in unquote(parts.username or ""):
        raise InputError(
            f"the proxy for {base_url} has a user name with a colon, which HTTP cannot say; "
            "correct what proxy_variable names"
        )


class Provider(Protocol):
    """One account at one vendor. Methods that wait may be cancelled at any point; a cancelled call may be billed."""

    on_limits: Callable[[Limits, float], None] | None
    """Called with the account's limits in an answer, and the seconds to hold because one is used up (mostly 0).

    At most once a second; None: no callback.
    """

    def limits_key(self, model: str) -> tuple[str, ...]:
        """What routes have in common that share the vendor's rate limits: host, a digest of the key, and the model as
        the vendor counts it. Two environment variables with one key have one limits key."""
        ...

    def encode(self, model: str, request: Request) -> bytes:
        """The body to send: the same bytes for the same model and request."""
        ...

    def is_structured(self, model: str) -> bool:
        """Whether `encode` asks the endpoint to hold this model's answer to the schema of a request that has one."""
        ...

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        """Send a body in exactly one HTTP request and read the reply.

        Raises `TransientError` where the same call may succeed later, any other `CallError` where it will not.
        """
        ...

    async def check(self) -> str | None:
        """Ask for the list of models, which costs nothing: None when all is well, else a sentence of warning.

        Raises `KeyRefusedError` where the key is refused, and any other `InputError` where no call could succeed:
        no connection, or a redirect.
        """
        ...

    async def close(self) -> None:
        """Let the connections go."""
        ...


def redact(text: str, key: str | None) -> str:
    """The text with every occurrence of the key masked: as it is, in base64, or escaped for JSON, HTML or a URL.

    A key of fewer than 6 characters is a placeholder for a local server ("none", "EMPTY") and is masked only after
    the word Bearer: masking it everywhere would rewrite the answers of judges.

    >>> redact("key sk-secret-1 is refused", "sk-secret-1")
    'key [redacted] is refused'
    """
    if not key:
        return text
    look = _key_pattern(key)
    for form in look.forms:
        if form in text:
            return look.pattern.sub(_MASK, text)
    if not look.may_hide(text):
        return text
    for view in _views(text):
        for form in look.forms:
            if form in view:
                return look.pattern.sub(_MASK, text)
    return text


@dataclass(frozen=True, slots=True)
class _KeyPattern:
    """What a secret can look like: plain forms, a pattern for all of it, and the escapes that may stand within."""

    forms: tuple[str, ...]
    pattern: re.Pattern[str]
    escapes: tuple[str, ...]

    def may_hide(self, text: str) -> bool:
        """Whether the text has an escape that a form could be written with: other texts need no second look.

        Most replies hold escaped line ends, quotes and shares of a hundred, none of which can stand within a key.
        """
        if "%" in text and _PERCENT.search(text):
            return True
        if "\\u00" in text and _UNICODE.search(text):
            return True
        if "&" in text and _ENTITY.search(text):
            return True
        return any(escape in text for escape in self.escapes)


def _views(text: str) -> Iterator[str]:
    """A text with the escapes of JSON, of a URL or of both undone.

    Looking through these is several times quicker than the pattern that finds where.
    """
    plain = _ESCAPED.sub(lambda found: found[2] or chr(int(found[1], 16)), text) if "\\" in text else text
    if plain != text:
        yield plain
    if "%" in text:
        yield unquote(text)
    if "%" in plain and plain != text:
        yield unquote(plain)
    if "%25" in plain or "&" in plain:
        for _ in range(_LAYERS):
            plain = unescape(unquote(plain))
            yield plain


@lru_cache(maxsize=64)
def _key_pattern(key: str) -> _KeyPattern:
    forms = (key,) if len(key) < _SHORTEST else (key, *_base64_cores(key))
    escapes = tuple(f"\\{character}" for character in '"/\\' if any(character in form for form in forms))
    if len(key) < _SHORTEST:
        return _KeyPattern(forms, re.compile(rf"(?<=bearer ){_escapable(key)}", re.IGNORECASE), escapes)
    return _KeyPattern(forms, re.compile("|".join(_escapable(form) for form in forms)), escapes)


def _escapable(form: str) -> str:
    """A pattern for a text in which any character may be escaped as JSON or a URL would."""
    patterns = []
    for character in form:
        literal = re.escape(character)
        if character in '"/\\':
            literal = rf"\\?{literal}"
        code = ord(character)
        names = "".join(f"|&{name}" for name in sorted(_ENTITY_NAMES.get(character, ()), reverse=True))
        patterns.append(
            rf"(?:{literal}|(?i:\\u{code:04x}|%(?:25)*{code:02x}|&(?:amp;)*#0*{code};?|&(?:amp;)*#x0*{code:x};?){names})"
        )
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


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """A provider, an entry of `registry.PROVIDERS`: `open` makes one for an endpoint and raises InputError where it
    cannot.

    >>> from venire.judges.providers import PROVIDERS, Endpoint
    >>> provider = PROVIDERS["openai"].open(Endpoint("http://127.0.0.1:8000/v1", None, 60.0, 4))
    """

    open: Callable[[Endpoint], Provider]
    batches: Mapping[str, Callable[[Endpoint], BatchProvider]] = field(default_factory=dict)
    """What makes a batch interface for an endpoint, by the name of its form; of several, the vendor there has one."""
    vendors: Mapping[str, Vendor] = field(default_factory=dict)
    """The vendors whose protocol it speaks, by the short name that is written before a model."""
    proxies: bool = True
    """Whether it can ask through a proxy."""
    max_temperature: int = 2

    @property
    def home(self) -> str | None:
        """The base URL of its one vendor; None for several: then a campaign file must give base_url."""
        homes = [vendor.home.base_url for vendor in self.vendors.values() if vendor.home is not None]
        return homes[0] if len(homes) == 1 else None

    def vendor(self, name: str) -> Vendor | None:
        """Its vendor of a short name, or of another name of the same; None where it has none."""
        found = (vendor for own, vendor in self.vendors.items() if name in (own, *vendor.aliases))
        return next(found, None)

    def open_batches(self, endpoint: Endpoint) -> BatchProvider:
        """The batch interface of an endpoint: that of its vendor, where there are several forms.

        Raises `InputError` for a vendor that has none, or one in a form that is not spoken here.
        """
        form = next(iter(self.batches)) if len(self.batches) == 1 else vendor_of(endpoint.base_url).batches
        if form is None or form not in self.batches:
            raise InputError(
                f"{endpoint.base_url}: this vendor's batch interface, if it has one, is not among those that can be "
                "spoken; ask its judges one call at a time"
            )
        return self.batches[form](endpoint)
