"""What values a campaign may hold: exact numbers, names of parts, addresses, and nothing that could be a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from venire.arena.campaigns import REPLICAS
from venire.arena.records import RECORDED
from venire.arena.registry import POLICIES, Registry
from venire.arena.wording import nearest

_Value = TypeVar("_Value")

_MAX_MONEY = 10**9
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*|[a-z_]+")
_CREDENTIALS = re.compile(r"auth|key|token|secret|passw|cookie|credential", re.IGNORECASE)
_CREDENTIAL = re.compile(r"\s*(bearer|basic|sk-|AIza|eyJ)", re.IGNORECASE)
_FRAMING = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_KEY_LIKE = re.compile(r"(?=.*[0-9])[A-Z0-9]{16,}")


def _number(value: object) -> object:
    """Whole numbers stand for decimal ones; a truth value is neither."""
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def between(low: int, high: int) -> Callable[[Decimal], Decimal]:
    """A check that a number lies in a range and has at most nine decimals, so that it is exact in billionths."""

    def check(value: Decimal) -> Decimal:
        if not low <= value <= high:
            raise ValueError("out of range")
        if value != 0 and _decimals(value) > 9:
            raise ValueError("more than 9 decimals")
        return value

    return check


def _decimals(value: Decimal) -> int:
    """Decimals of a finite number other than 0, without the zeros at its end."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    text = "".join(map(str, digits))
    return -int(exponent) - (len(text) - len(text.rstrip("0")))


def _positive(value: Decimal) -> Decimal:
    if value <= 0:
        raise ValueError("not positive")
    return value


def _level(value: Decimal) -> Decimal:
    if not Decimal("0.5") <= value <= Decimal("0.999"):
        raise ValueError("out of range")
    return value


def _ascending(band: list[Decimal]) -> list[Decimal]:
    if not band[0] < band[1]:
        raise ValueError("the first is not below the second")
    return band


def _text(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("empty, or with control characters")
    return value


def _temperature(value: object) -> object:
    """The word `default` means that the parameter is not sent."""
    return None if value == "default" else _number(value)


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value) or _KEY_LIKE.fullmatch(value):
        raise ValueError(
            "this looks like a key itself: put it into an environment variable and name that; accepted: the name of "
            "an environment variable, such as OPENAI_API_KEY"
        )
    return value


def _address(value: str) -> str:
    """The base URL of a server, or the name of replicas in a Ray cluster."""
    if not value.startswith(REPLICAS):
        return checked_url(value)
    if not _NAME.fullmatch(value.removeprefix(REPLICAS)):
        raise ValueError(
            "not the name of replicas in a Ray cluster, which has letters, digits, - and _ alone; accepted: such as "
            "ray://judge"
        )
    return value


def checked_url(value: str) -> str:
    """A base URL without anything that could be a secret, and without a slash at its end.

    Raises ValueError with what is wrong and what is accepted.

    >>> checked_url("http://10.0.0.5:8000/v1/")
    'http://10.0.0.5:8000/v1'
    """
    try:
        parts = urlsplit(value)
        port_is_sound = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError("not a URL; accepted: such as https://api.openai.com/v1") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("a user name or password in the URL; give the key by key_variable instead")
    if "?" in value or "#" in value:
        raise ValueError(
            "a query string or fragment in the URL; give the address up to its path, and the key by key_variable"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_sound or re.search(r"\s|\\", value):
        raise ValueError("not an http or https URL; accepted: such as https://api.openai.com/v1")
    for end in ("/chat/completions", "/messages", "/responses"):
        if parts.path.rstrip("/").endswith(end):
            raise ValueError(f"the address of single calls: leave out {end}")
    return value.rstrip("/")


def _proxy(value: str) -> str:
    """An http URL of a host, without a password: the file is kept in the store."""
    try:
        parts = urlsplit(value)
        sound = parts.scheme == "http" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if "@" in value:
        raise ValueError(
            "a user name or password in the URL; put the whole URL into an environment variable and name that in "
            "proxy_variable"
        )
    if not sound or parts.path.strip("/") or parts.query or parts.fragment or re.search(r"\s|\\", value):
        raise ValueError(
            "not the URL of a proxy; accepted: such as http://proxy.example.org:3128, also for https calls"
        )
    return value.rstrip("/")


def _headers(value: dict[str, str]) -> dict[str, str]:
    """Headers that HTTP can carry, none twice, none that is ours to send, and none that could be a secret."""
    names = [name.lower() for name in value]
    for name, content in value.items():
        if _CREDENTIALS.search(name) or _CREDENTIAL.match(content):
            raise ValueError(
                "a header that looks like a credential: put the key into an environment variable and name that in "
                "key_variable"
            )
        if name.lower() in _FRAMING:
            raise ValueError(f"the header {name.lower()}, which Venire sets by itself: leave it out")
        if not re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name) or not re.fullmatch(r"[\x20-\x7e]*", content):
            raise ValueError("a header that HTTP cannot carry: names are letters, digits and -, texts are ASCII")
        if names.count(name.lower()) > 1:
            raise ValueError("a header twice")
    return value


def _distinct(values: list[str]) -> list[str]:
    if len(set(values)) < len(values):
        raise ValueError("a name twice")
    return values


Text = Annotated[str, AfterValidator(_text)]

# In Python more may be written than is kept, and type checkers are shown what may be written.
if TYPE_CHECKING:
    FilePath = str | Path
    Named = Mapping[str, _Value]
    Number = float | Decimal
    Several = Sequence
    _Temperature = Number | Literal["default"] | None
else:
    FilePath = Text
    Named = dict[str, _Value]
    Number = Annotated[Decimal, BeforeValidator(_number)]
    Several = list
    _Temperature = Decimal | None

Money = Annotated[Number, AfterValidator(between(0, _MAX_MONEY))]
Temperature = Annotated[
    _Temperature,
    AfterValidator(lambda v: v if v is None else between(0, 2)(v)),
    BeforeValidator(_temperature),
]
Elo = Annotated[Number, AfterValidator(between(-100_000, 100_000))]
Seconds = Annotated[Number, AfterValidator(between(0, 86_400)), AfterValidator(_positive)]
Long = Annotated[Number, AfterValidator(between(0, 2_592_000)), AfterValidator(_positive)]
Points = Annotated[Number, AfterValidator(between(0, 100_000)), AfterValidator(_positive)]
Indifference = Annotated[Number, AfterValidator(between(0, 100_000))]
Level = Annotated[Number, AfterValidator(_level)]
Band = Annotated[Several[Points], Field(min_length=2, max_length=2), AfterValidator(_ascending)]
Skew = Annotated[Number, AfterValidator(between(0, 60))]
Fraction = Annotated[Number, AfterValidator(between(0, 1))]
Share = Annotated[Number, AfterValidator(between(0, 1)), AfterValidator(_positive)]
Variable = Annotated[str, AfterValidator(_variable)]
Address = Annotated[str, AfterValidator(_address)]
Variables = Annotated[Several[Variable], Field(min_length=2), AfterValidator(_distinct)]
Proxy = Annotated[str, AfterValidator(_proxy)]
Headers = Annotated[Named[str], AfterValidator(_headers)]
Models = Annotated[Several[Text], Field(min_length=2), AfterValidator(_distinct)]
Variants = Annotated[Several[Text], AfterValidator(_distinct)]

TEXT = "a text of at least one character"
PATH = "the path of a file, relative to the campaign file"


def decimals(of: str, low: int, high: int) -> str:
    """What is accepted: a number of something, exact in billionths."""
    return f"a number of {of} from {low} to {high}, with at most 9 decimals"


MONEY = decimals("US dollars", 0, _MAX_MONEY)


@dataclass(frozen=True)
class OneOf:
    """A text that must be a name of a registry, or one of `also`; `lead` precedes the names in a message."""

    registry: Registry[Any]
    also: tuple[str, ...] = ()
    lead: str = ""

    @property
    def accepted(self) -> str:
        """The names in words, those of installed packages included."""
        *most, last = (f'"{name}"' for name in (*self.registry, *self.also))
        return f"{self.lead}{', '.join(most)} or {last}"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The names as suggestions: what a package adds elsewhere is right too."""
        rest = {name: value for name, value in handler(schema).items() if name != "type"}
        return rest | {"anyOf": [{"enum": [*self.registry, *self.also]}, {"type": "string"}]}

    def _known(self, value: str) -> str:
        value = value if value in self.also else self.registry.named(value)
        if value not in self.registry and value not in self.also:
            near = nearest(value, (*self.registry, *self.also))
            if near is not None:
                raise PydanticCustomError("unknown_name", 'did you mean "{near}"?', {"near": near})
            raise PydanticCustomError("unknown_name", "there is nothing of this name")
        return value


def chooses_battles(policy: str) -> bool:
    """Whether a policy plans battles, not matchups for all instructions."""
    return policy in POLICIES and not POLICIES[policy].crossed


def needless_matchups(policy: str) -> str:
    """Why no number of matchups is given for a policy; empty where one is, and for an unknown policy."""
    if policy == RECORDED:
        return "takes every pair that is on record"
    if policy not in POLICIES:
        return ""
    if not POLICIES[policy].crossed:
        return "chooses battles, one pair on one instruction each"
    return "takes every pair of models" if POLICIES[policy].every_pair else ""


def policies_with(setting: str) -> tuple[str, ...]:
    """Policies that take a key of a phase which others do not."""
    return tuple(name for name, policy in POLICIES.items() if setting in policy.settings)
