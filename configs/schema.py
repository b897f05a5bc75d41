"""The campaign file as pydantic models: names, types and ranges; what is accepted is said in each description.

The models are only a gate: `loading` turns them into the plain records of `arena.campaigns`. Checks that concern
more than one key stand in `checks`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = [
    "HOMES",
    "BudgetTable",
    "CampaignFile",
    "DataTable",
    "FallbackTable",
    "JudgeTable",
    "LimitsTable",
    "MapTable",
    "PlanTable",
    "PriceTable",
]

HOMES: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
"""Where a provider is reached that speaks one vendor's own protocol, as long as no base_url is given."""

_MOST_MONEY = 10**9
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


def _between(low: int, high: int) -> Callable[[Decimal], Decimal]:
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
    """A base URL without anything that could be a secret, and without a slash at its end."""
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
Number = Annotated[Decimal, BeforeValidator(_number)]
Money = Annotated[Number, AfterValidator(_between(0, _MOST_MONEY))]
Temperature = Annotated[Decimal | None, AfterValidator(lambda v: v if v is None else _between(0, 2)(v))]
Elo = Annotated[Number, AfterValidator(_between(-100_000, 100_000))]
Seconds = Annotated[Number, AfterValidator(_between(0, 86_400)), AfterValidator(_positive)]
Long = Annotated[Number, AfterValidator(_between(0, 2_592_000)), AfterValidator(_positive)]
Skew = Annotated[Number, AfterValidator(_between(0, 60))]
Share = Annotated[Number, AfterValidator(_between(0, 1)), AfterValidator(_positive)]
Variable = Annotated[str, AfterValidator(_variable)]
Address = Annotated[str, AfterValidator(_address)]
Variables = Annotated[list[Variable], Field(min_length=2), AfterValidator(_distinct)]
Proxy = Annotated[str, AfterValidator(_proxy)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
Models = Annotated[list[Text], Field(min_length=2), AfterValidator(_distinct)]

_TEXT = "a text of at least one character"
_PATH = "the path of a file, relative to the campaign file"
_MONEY = f"a number of US dollars from 0 to {_MOST_MONEY}, with at most 9 decimals"


def _whole(low: int, high: int) -> str:
    return f"a whole number from {low} to {high}"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class PriceTable(_Table):
    """What tokens cost, in US dollars per million."""

    input: Money = Field(description=_MONEY)
    output: Money = Field(description=_MONEY)
    cached: Money | None = Field(default=None, description=_MONEY)
    written: Money | None = Field(default=None, description=_MONEY)


_Provider = Literal["openai", "anthropic", "gemini", "litellm"]
_PROVIDER = '"openai", "anthropic", "gemini" or "litellm"'
_URL = "an http or https URL, such as https://api.openai.com/v1"
_LIMIT = _whole(1, 10**12)
_Limit = Annotated[int | None, Field(ge=1, le=10**12, description=_LIMIT)]


class FallbackTable(_Table):
    """One `[[judge.fallback]]`: where else the same model is reached."""

    provider: _Provider | None = Field(default=None, description=_PROVIDER)
    base_url: Address = Field(description=_URL)
    key_variable: Variable | None = Field(default=None, description="the name of an environment variable")
    model: Text | None = Field(default=None, description=_TEXT)
    price: PriceTable | None = Field(default=None, description="a table such as { input = 0.15, output = 0.60 }")


class JudgeTable(_Table):
    """One `[[judge]]`."""

    name: Text | None = Field(default=None, description=_TEXT)
    model: Text = Field(description=_TEXT)
    provider: _Provider = Field(default="openai", description=_PROVIDER)
    base_url: Address | None = Field(default=None, description=_URL)
    key_variable: Variable | None = Field(default=None, description="the name of an environment variable")
    key_variables: Variables | None = Field(
        default=None, description="a list of at least two names of environment variables, each once"
    )
    fallback: list[FallbackTable] = Field(default=[], description="[[judge.fallback]] tables, with double brackets")
    protocol: Text = Field(default="two-stage", description='the name of a protocol, such as "two-stage"')
    temperature: Annotated[Temperature, BeforeValidator(_temperature)] = Field(
        default=Decimal(0),
        description='a number from 0 to 2 with at most 9 decimals, or "default" for leaving it to the model',
    )
    max_tokens: int = Field(default=800, ge=1, le=10_000_000, description=_whole(1, 10_000_000))
    repair: bool = Field(default=True, description="true or false")
    requests_per_minute: int | None = Field(default=None, ge=1, le=10_000_000, description=_whole(1, 10_000_000))
    tokens_per_minute: _Limit = None
    input_tokens_per_minute: _Limit = None
    output_tokens_per_minute: _Limit = None
    requests_per_day: _Limit = None
    share: Share = Field(default=Decimal(1), description="a number above 0 and at most 1")
    skew: Skew = Field(default=Decimal(1), description="a number of seconds from 0 to 60")
    concurrency: int = Field(default=16, ge=1, le=100_000, description=_whole(1, 100_000))
    timeout: Seconds = Field(default=Decimal(120), description="a number of seconds above 0 and at most 86400")
    connect_timeout: Seconds = Field(default=Decimal(15), description="a number of seconds above 0 and at most 86400")
    read_timeout: Seconds | None = Field(default=None, description="a number of seconds above 0 and at most 86400")
    headers: Headers = Field(default={}, description='a table of texts, such as { "X-Title" = "my campaign" }')
    proxy: Proxy | None = Field(default=None, description="an http URL, such as http://proxy.example.org:3128")
    proxy_variable: Variable | None = Field(default=None, description="the name of an environment variable")
    max_attempts: int = Field(default=5, ge=1, le=1000, description=_whole(1, 1000))
    max_elapsed: Long = Field(default=Decimal(21_600), description="a number of seconds above 0 and at most 2592000")
    patience: Long = Field(default=Decimal(900), description="a number of seconds above 0 and at most 2592000")
    elo: Elo | None = Field(default=None, description="a finite number of Elo points, from -100000 to 100000")
    family: Text | None = Field(default=None, description=_TEXT)
    price: PriceTable | None = Field(default=None, description="a table such as { input = 0.15, output = 0.60 }")
    free: bool = Field(default=False, description="true or false")

    @model_validator(mode="before")
    @classmethod
    def _at_home(cls, table: Any) -> Any:
        """The vendor's own address where none is given and the provider has one host."""
        if isinstance(table, dict) and "base_url" not in table and table.get("provider") in ("anthropic", "gemini"):
            return {**table, "base_url": HOMES[table["provider"]]}
        return table


class MapTable(_Table):
    """Our column names to the files' own, by kind of file."""

    instructions: dict[str, Text] = Field(
        default={}, description='a table of column names, such as { instruction = "prompt" }'
    )
    completions: dict[str, Text] = Field(
        default={}, description='a table of column names, such as { completion = "output" }'
    )
    elo: dict[str, Text] = Field(default={}, description='a table of column names, such as { elo = "arena_elo" }')


class DataTable(_Table):
    """`[data]`: the files to read before planning."""

    instructions: Text | None = Field(default=None, description=_PATH)
    completions: Text | None = Field(default=None, description=_PATH)
    elo: Text | None = Field(default=None, description=_PATH)
    models: Models | None = Field(default=None, description="a list of at least two model names, each once")
    map: MapTable = Field(default_factory=MapTable, description="tables instructions, completions, elo")
    families: dict[str, Text] = Field(default={}, description="a table from model to family")


class PlanTable(_Table):
    """`[plan]`: which matchups are judged on how many instructions."""

    policy: Literal["widest-gap", "random", "all-pairs"] = Field(
        default="widest-gap", description='"widest-gap", "random" or "all-pairs"'
    )
    matchups: int = Field(default=30, ge=1, le=10_000_000, description=_whole(1, 10_000_000))
    instructions: int | None = Field(default=None, ge=1, le=1_000_000_000, description=_whole(1, 1_000_000_000))
    coverage: Share = Field(default=Decimal("0.3"), description="a number above 0 and at most 1")
    repeats: int = Field(default=1, ge=1, le=10_000, description=_whole(1, 10_000))


class LimitsTable(_Table):
    """Limits of one account."""

    calls: int | None = Field(default=None, ge=1, le=10**12, description=_whole(1, 10**12))
    money: Money | None = Field(default=None, description=_MONEY)
    tokens: int | None = Field(default=None, ge=1, le=10**15, description=_whole(1, 10**15))


class BudgetTable(LimitsTable):
    """`[budget]`: limits of the whole campaign, and of judges and models in it."""

    judge: dict[str, LimitsTable] = Field(default={}, description="tables of limits by the name of a judge")
    model: dict[str, LimitsTable] = Field(default={}, description="tables of limits by model")


class CampaignFile(_Table):
    """The whole file."""

    name: Text | None = Field(default=None, description=_TEXT)
    seed: int = Field(default=0, ge=0, le=2**63 - 1, description=_whole(0, 2**63 - 1))
    store: Text | None = Field(default=None, description=_PATH)
    durability: Literal["normal", "strict"] = Field(default="normal", description='"normal" or "strict"')
    data: DataTable = Field(default_factory=DataTable, description="a [data] table")
    plan: PlanTable = Field(default_factory=PlanTable, description="a [plan] table")
    judge: list[JudgeTable] = Field(min_length=1, description="one or more [[judge]] tables, with double brackets")
    budget: BudgetTable = Field(default_factory=BudgetTable, description="a [budget] table")
