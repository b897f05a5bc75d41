"""A campaign as a user writes it, in a file or in Python: names, types and ranges, each with what is accepted.

The models are only a gate: `loading` resolves them to the plain records of `arena.campaigns`. Checks that concern more
than one key are in `checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from venire.arena.errors import InputError
from venire.arena.records import RECORDED
from venire.arena.registry import POLICIES, PROVIDERS
from venire.configs.problems import found_problems, lines
from venire.configs.values import (
    MONEY,
    PATH,
    TEXT,
    Address,
    Band,
    Elo,
    Fraction,
    Headers,
    Indifference,
    Level,
    Long,
    Models,
    Money,
    OneOf,
    Points,
    Proxy,
    Seconds,
    Share,
    Skew,
    Temperature,
    Text,
    Variable,
    Variables,
    Variants,
    whole,
)


class Table(BaseModel):
    """A table of the campaign file, or the same written in Python: by keywords, with the file's own keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)
    python_names: ClassVar[Mapping[str, str]] = {}
    """What a key may also be called in Python, where the file's name is that of one table of a list."""
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(self, /, **keys: Any) -> None:
        """Check one table that is written in Python. Raises InputError with a line for each thing that is wrong."""
        given = {self.python_names.get(key, key): _as_written(value) for key, value in keys.items()}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise InputError(lines(type(self).__name__, given, found_problems(error, type(self)))) from None
        self._given = given

    # The mark lets pydantic build nested tables without this constructor: a file is checked as a whole. Each table
    # declares the constructor again for type checkers, which would otherwise derive one from its fields that accepts
    # no float for a Decimal and no plural.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @property
    def given(self) -> Mapping[str, Any]:
        """The keys that were written in Python, with plain values as a file would have them."""
        return self._given


def _as_written(value: object) -> Any:
    """A value of Python as the parser of a file would give it: exact decimals, texts for paths, lists and dicts."""
    if isinstance(value, Table):
        return dict(value.given)
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _as_written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_written(one) for one in value]
    return value


class Price(Table):
    """What tokens cost, in US dollars per million."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    input: Money = Field(description=MONEY)
    output: Money = Field(description=MONEY)
    cached: Money | None = Field(default=None, description=MONEY)
    written: Money | None = Field(default=None, description=MONEY)


_Provider = Annotated[str, OneOf(PROVIDERS, also=("replay",))]
_URL = "an http or https URL, such as https://api.openai.com/v1"
_URL_OR_REPLICAS = f"{_URL}, or ray://NAME for replicas in a Ray cluster"
_TEMPERATURE = 'a number from 0 to 2 with at most 9 decimals, or "default" for leaving it to the model'
_LIMIT = whole(1, 10**12)
_Limit = Annotated[int | None, Field(ge=1, le=10**12, description=_LIMIT)]


class Fallback(Table):
    """One `[[judge.fallback]]`: where else the same model is reached."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    provider: _Provider | None = None
    base_url: Address = Field(description=_URL_OR_REPLICAS)
    key_variable: Variable | None = Field(default=None, description="the name of an environment variable")
    model: Text | None = Field(default=None, description=TEXT)
    price: Price | None = Field(default=None, description="a table such as { input = 0.15, output = 0.60 }")
    structured_output: bool | None = Field(default=None, description="true or false")


class RespondentTable(Table):
    """What `[[judge]]` and `[[contestant]]` have in common: a model, the way to it, and how it is asked."""

    name: Text | None = Field(default=None, description=TEXT)
    model: Text = Field(description=TEXT)
    provider: _Provider = "openai"
    base_url: Address | None = Field(default=None, description=_URL)
    key_variable: Variable | None = Field(default=None, description="the name of an environment variable")
    key_variables: Variables | None = Field(
        default=None, description="a list of at least two names of environment variables, each once"
    )
    fallback: list[Fallback] = Field(default=[], description="[[...fallback]] tables, with double brackets")
    temperature: Temperature = Field(default=Decimal(0), description=_TEMPERATURE)
    max_tokens: int = Field(default=800, ge=1, le=10_000_000, description=whole(1, 10_000_000))
    context: int | None = Field(default=None, ge=1, le=1_000_000_000, description=whole(1, 1_000_000_000))
    system: str | None = Field(default=None, min_length=1, description=TEXT)
    requests_per_minute: int | None = Field(default=None, ge=1, le=10_000_000, description=whole(1, 10_000_000))
    tokens_per_minute: _Limit = None
    input_tokens_per_minute: _Limit = None
    output_tokens_per_minute: _Limit = None
    requests_per_day: _Limit = None
    share: Share = Field(default=Decimal(1), description="a number above 0 and at most 1")
    skew: Skew = Field(default=Decimal(1), description="a number of seconds from 0 to 60")
    concurrency: int = Field(default=16, ge=1, le=100_000, description=whole(1, 100_000))
    timeout: Seconds = Field(default=Decimal(120), description="a number of seconds above 0 and at most 86400")
    connect_timeout: Seconds = Field(default=Decimal(15), description="a number of seconds above 0 and at most 86400")
    read_timeout: Seconds | None = Field(default=None, description="a number of seconds above 0 and at most 86400")
    headers: Headers = Field(default={}, description='a table of texts, such as { "X-Title" = "my campaign" }')
    proxy: Proxy | None = Field(default=None, description="an http URL, such as http://proxy.example.org:3128")
    proxy_variable: Variable | None = Field(default=None, description="the name of an environment variable")
    max_attempts: int = Field(default=5, ge=1, le=1000, description=whole(1, 1000))
    max_elapsed: Long = Field(default=Decimal(21_600), description="a number of seconds above 0 and at most 2592000")
    patience: Long = Field(default=Decimal(900), description="a number of seconds above 0 and at most 2592000")
    elo: Elo | None = Field(default=None, description="a finite number of Elo points, from -100000 to 100000")
    family: Text | None = Field(default=None, description=TEXT)
    price: Price | None = Field(default=None, description="a table such as { input = 0.15, output = 0.60 }")
    free: bool = Field(default=False, description="true or false")
    structured_output: bool | None = Field(default=None, description="true or false")
    transport: Literal["live", "batch", "file"] = Field(default="live", description='"live", "batch" or "file"')
    wave_size: int | None = Field(default=None, ge=1, le=1_000_000, description=whole(1, 1_000_000))
    max_wait: Long | None = Field(default=None, description="a number of seconds above 0 and at most 2592000")
    after_wait: Literal["live", "start"] = Field(default="live", description='"live" or "start"')
    batch_price: Price | None = Field(default=None, description="a table such as { input = 0.075, output = 0.30 }")

    @model_validator(mode="before")
    @classmethod
    def _at_home(cls, table: Any) -> Any:
        """The vendor's own address where none is given and the provider speaks to one vendor alone."""
        provider = table.get("provider") if isinstance(table, dict) and "base_url" not in table else None
        if isinstance(provider, str) and provider in PROVIDERS and PROVIDERS[provider].home is not None:
            return {**table, "base_url": PROVIDERS[provider].home}
        return table


class Judge(RespondentTable):
    """One `[[judge]]`."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    base_url: Address | None = Field(default=None, description=_URL_OR_REPLICAS)
    protocol: Text = Field(default="two-stage", description='the name of a protocol, such as "two-stage"')
    repair: bool = Field(default=True, description="true or false")
    logprobs: bool = Field(default=False, description="true or false")
    best: int | None = Field(default=None, ge=1, le=1000, description=whole(1, 1000))
    too_long: Literal["error", "truncate-both", "middle"] = Field(
        default="error", description='"error", "truncate-both" or "middle"'
    )
    examples: Text | None = Field(default=None, description=PATH)
    options: dict[str, str] = Field(default={}, description='a table of texts, such as { points = "5" }')
    prompts: dict[str, Text] = Field(default={}, description='a table of files, such as { reasons = "reasons.txt" }')
    recorded: Text | None = Field(default=None, description=PATH)
    map: dict[str, Text] = Field(default={}, description='a table of column names, such as { verdict = "winner" }')
    dialect: Text | None = Field(default=None, description='the name of a dialect, such as "mt-bench"')

    @model_validator(mode="before")
    @classmethod
    def _as_recorded(cls, table: Any) -> Any:
        """The prompts of recorded answers are unknown unless the file names a protocol."""
        if isinstance(table, dict) and "protocol" not in table and table.get("provider") == "replay":
            return {**table, "protocol": RECORDED}
        return table


class Contestant(RespondentTable):
    """One `[[contestant]]`: a model that writes completions."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    temperature: Temperature = Field(default=None, description=_TEMPERATURE)
    max_tokens: int = Field(default=2048, ge=1, le=10_000_000, description=whole(1, 10_000_000))
    samples: int = Field(default=1, ge=1, le=10_000, description=whole(1, 10_000))


class Editor(RespondentTable):
    """One `[[editor]]`: a model that writes edited copies of completions, under the name of the edit."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    name: Text = Field(description='the name of the edit, such as "echo"')
    max_tokens: int = Field(default=4096, ge=1, le=10_000_000, description=whole(1, 10_000_000))
    prompts: dict[str, Text] = Field(default={}, description='a table of files, such as { edit = "edit.txt" }')


class ColumnNames(Table):
    """Our column names to the files' own, by kind of file."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    instructions: dict[str, Text] = Field(
        default={}, description='a table of column names, such as { instruction = "prompt" }'
    )
    completions: dict[str, Text] = Field(
        default={}, description='a table of column names, such as { completion = "output" }'
    )
    elo: dict[str, Text] = Field(default={}, description='a table of column names, such as { elo = "arena_elo" }')


class Data(Table):
    """`[data]`: the files to read before planning."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    instructions: Text | None = Field(default=None, description=PATH)
    completions: Text | None = Field(default=None, description=PATH)
    elo: Text | None = Field(default=None, description=PATH)
    models: Models | None = Field(default=None, description="a list of at least two model names, each once")
    map: ColumnNames = Field(default_factory=ColumnNames, description="tables instructions, completions, elo")
    families: dict[str, Text] = Field(default={}, description="a table from model to family")


_Policy = Annotated[str, OneOf(POLICIES, also=(RECORDED,), lead="one of ")]
_BATTLES = whole(1, 1_000_000_000)
_POINTS = "a number of Elo points above 0 and at most 100000"


class PhaseTable(Table):
    """One `[[plan.phase]]`: a part of the plan with a policy of its own."""

    policy: _Policy = "widest-gap"
    matchups: int = Field(default=30, ge=1, le=10_000_000, description=whole(1, 10_000_000))
    coverage: Share = Field(default=Decimal("0.3"), description="a number above 0 and at most 1")
    band: Band = Field(
        default=[Decimal(60), Decimal(200)], description="two numbers of Elo points, the lower first, such as [60, 200]"
    )
    battles: int | None = Field(default=None, ge=1, le=1_000_000_000, description=_BATTLES)
    round: int = Field(default=100, ge=1, le=1_000_000, description=whole(1, 1_000_000))
    purpose: Literal["mean", "boundary", "place"] = Field(default="mean", description='"mean", "boundary" or "place"')
    top: int = Field(default=3, ge=1, le=100_000, description=whole(1, 100_000))
    place: Text | None = Field(default=None, description="the name of a model")


class Phase(PhaseTable):
    """The same with a name that distinguishes it from other phases."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    name: Text = Field(description=TEXT)


class Stop(Table):
    """`[plan.stop]`: when enough is known, whichever comes first."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    battles: int | None = Field(default=None, ge=1, le=1_000_000_000, description=_BATTLES)
    half_width: Points | None = Field(default=None, description=_POINTS)
    top: int | None = Field(default=None, ge=1, le=100_000, description=whole(1, 100_000))
    ranks: bool = Field(default=False, description="true or false")
    indifference: Indifference = Field(default=Decimal(15), description="a number of Elo points from 0 to 100000")
    level: Level = Field(default=Decimal("0.95"), description="a number from 0.5 to 0.999")


class Plan(PhaseTable):
    """`[plan]`: which matchups or battles are judged, on which instructions, in which phases and until when."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    python_names = {"phases": "phase"}
    instructions: int | None = Field(default=None, ge=1, le=1_000_000_000, description=whole(1, 1_000_000_000))
    repeats: int = Field(default=1, ge=1, le=10_000, description=whole(1, 10_000))
    orders: Literal["both", "random"] = Field(default="both", description='"both" or "random"')
    variants: Variants = Field(default=[], description='a list of names of edits, each once, such as ["echo"]')
    stop: Stop = Field(default_factory=Stop, description="a [plan.stop] table")
    phase: list[Phase] = Field(default=[], description="[[plan.phase]] tables, with double brackets")


class BudgetLimits(Table):
    """Limits of a campaign, of a judge or of a model."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    calls: int | None = Field(default=None, ge=1, le=10**12, description=whole(1, 10**12))
    money: Money | None = Field(default=None, description=MONEY)
    tokens: int | None = Field(default=None, ge=1, le=10**15, description=whole(1, 10**15))


class Budget(BudgetLimits):
    """`[budget]`: limits of the whole campaign, of judges and models in it, and of generating completions."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    judge: dict[str, BudgetLimits] = Field(default={}, description="tables of limits by the name of a judge")
    model: dict[str, BudgetLimits] = Field(default={}, description="tables of limits by model")
    generation: BudgetLimits = Field(default_factory=BudgetLimits, description="a table of limits")


class Quality(Table):
    """`[quality]`: what is asked of every judge's verdicts, and when a judge is asked no more."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    readable: Share | None = Field(default=None, description="a number above 0 and at most 1")
    flips: Fraction | None = Field(default=None, description="a number from 0 to 1")
    give_up: Fraction = Field(default=Decimal("0.1"), description="a number from 0 to 1")


class Campaign(Table):
    """The whole file: what to judge, by whom, in which plan and for how much."""

    if TYPE_CHECKING:  # see Table

        def __init__(self, /, **keys: Any) -> None: ...

    python_names = {"judges": "judge", "contestants": "contestant", "editors": "editor"}
    name: Text | None = Field(default=None, description=TEXT)
    seed: int = Field(default=0, ge=0, le=2**63 - 1, description=whole(0, 2**63 - 1))
    store: Text | None = Field(default=None, description=PATH)
    durability: Literal["normal", "strict"] = Field(default="normal", description='"normal" or "strict"')
    data: Data = Field(default_factory=Data, description="a [data] table")
    plan: Plan = Field(default_factory=Plan, description="a [plan] table")
    judge: list[Judge] = Field(default=[], description="one or more [[judge]] tables, with double brackets")
    contestant: list[Contestant] = Field(default=[], description="[[contestant]] tables, with double brackets")
    editor: list[Editor] = Field(default=[], description="[[editor]] tables, with double brackets")
    budget: Budget = Field(default_factory=Budget, description="a [budget] table")
    quality: Quality = Field(default_factory=Quality, description="a [quality] table")
