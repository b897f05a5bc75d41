"""A campaign as a user writes it, in a file or in Python: names, types and ranges, each with what is accepted.

The models are only a gate: `loading` resolves them to the plain records of `arena.campaigns`. Checks that concern more
than one key are in `checks`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, create_model, model_validator

from venire.arena.budgets import UNITS, BudgetUnit, Shards
from venire.arena.records import RECORDED
from venire.arena.registry import POLICIES, PROTOCOLS, PROVIDERS, PolicyName, ProtocolName, ProviderName
from venire.configs.fields import Compared, LaneKey, Shapes, Table, key, whole
from venire.configs.short_names import written_out
from venire.configs.values import (
    MONEY,
    PATH,
    TEXT,
    Address,
    Band,
    Elo,
    FilePath,
    Fraction,
    Headers,
    Indifference,
    Level,
    Long,
    Models,
    Money,
    Named,
    Number,
    OneOf,
    Points,
    Proxy,
    Seconds,
    Several,
    Share,
    Skew,
    Temperature,
    Text,
    Variable,
    Variables,
    Variants,
    between,
    decimals,
)


class Price(Table):
    """What tokens cost, in US dollars per million."""

    shards = Shards.WHOLE
    input: Money = key(MONEY, since=0)
    output: Money = key(MONEY, since=0)
    cached: Money | None = key(MONEY, since=2, default=None)
    written: Money | None = key(MONEY, since=2, default=None)


if TYPE_CHECKING:
    _Provider = ProviderName | Literal["replay"]
    _Policy = PolicyName | Literal["recorded"]
    _Protocol = ProtocolName
else:
    _Provider = Annotated[str, OneOf(PROVIDERS, also=("replay",))]
    _Policy = Annotated[str, OneOf(POLICIES, also=(RECORDED,), lead="one of ")]
    _Protocol = Annotated[Text, AfterValidator(PROTOCOLS.named)]
_URL = "an http or https URL, such as https://api.openai.com/v1"
_URL_OR_REPLICAS = f"{_URL}, or ray://NAME for replicas in a Ray cluster"
_TEMPERATURE = 'a number from 0 to 2 with at most 9 decimals, or "default" for leaving it to the model'
_VARIABLE = "the name of an environment variable"
_FLAG = "true or false"
_SECONDS = "a number of seconds above 0 and at most 86400"
_LONG = "a number of seconds above 0 and at most 2592000"
_SHARE = "a number above 0 and at most 1"
_FRACTION = "a number from 0 to 1"
_PRICE = "a table such as { input = 0.15, output = 0.60 }"


class Fallback(Table):
    """One `[[judge.fallback]]`: where else the same model is reached."""

    shards = Shards.WHOLE
    provider: _Provider | None = key(None, since=1, default=None)
    base_url: Address = key(_URL_OR_REPLICAS, since=1)
    key_variable: Variable | None = key(_VARIABLE, since=1, default=None)
    model: Text | None = key(TEXT, since=1, default=None)
    price: Price | None = key(_PRICE, since=1, default=None)
    structured_output: bool | None = key(_FLAG, since=5, default=None)

    @model_validator(mode="before")
    @classmethod
    def _at_home(cls, table: Any) -> Any:
        """The address of the vendor that stands before the model."""
        return written_out(table, fallback=True) if isinstance(table, dict) else table


class RespondentTable(Table):
    """What `[[judge]]` and `[[contestant]]` have in common: a model, the way to it, and how it is asked."""

    shards = Shards.WHOLE
    shapes = Shapes.NONE  # beside these, the respondent key says who a judge is
    name: Text | None = key(TEXT, since=0, default=None, shapes=Shapes.ALL)
    model: Text = key(TEXT, since=0, lane=LaneKey.IDENTITY, kw_only=False)
    provider: _Provider = key(None, since=0, default="openai", lane=LaneKey.IDENTITY)
    base_url: Address | None = key(_URL, since=0, default=None, lane=LaneKey.IDENTITY)
    key_variable: Variable | None = key(_VARIABLE, since=0, default=None, lane=LaneKey.IDENTITY)
    key_variables: Variables | None = key(
        "a list of at least two names of environment variables, each once", since=1, default=None, lane=LaneKey.IDENTITY
    )
    fallback: Several[Fallback] = key(
        "[[...fallback]] tables, with double brackets", since=1, default=[], lane=LaneKey.IDENTITY
    )
    temperature: Temperature = key(_TEMPERATURE, since=0, default=Decimal(0))
    max_tokens: int = whole(1, 10_000_000, since=0, default=800)
    context: int | None = whole(1, 1_000_000_000, since=1, default=None)
    system: str | None = key(TEXT, since=1, default=None, min_length=1)
    requests_per_minute: int | None = whole(1, 10_000_000, since=0, default=None, lane=LaneKey.LIMIT)
    tokens_per_minute: int | None = whole(1, 10**12, since=1, default=None, lane=LaneKey.LIMIT)
    input_tokens_per_minute: int | None = whole(1, 10**12, since=1, default=None, lane=LaneKey.LIMIT)
    output_tokens_per_minute: int | None = whole(1, 10**12, since=1, default=None, lane=LaneKey.LIMIT)
    requests_per_day: int | None = whole(1, 10**12, since=1, default=None, lane=LaneKey.LIMIT)
    share: Share = key(_SHARE, since=1, default=Decimal(1), shards=Shards.PART, lane=LaneKey.LIMIT)
    skew: Skew = key("a number of seconds from 0 to 60", since=1, default=Decimal(1), lane=LaneKey.LIMIT)
    concurrency: int = whole(1, 100_000, since=0, default=16, lane=LaneKey.LIMIT)
    timeout: Seconds = key(_SECONDS, since=0, default=Decimal(120), lane=LaneKey.LIMIT)
    connect_timeout: Seconds = key(_SECONDS, since=1, default=Decimal(15), lane=LaneKey.CONNECTION)
    read_timeout: Seconds | None = key(_SECONDS, since=1, default=None, lane=LaneKey.CONNECTION)
    headers: Headers = key(
        'a table of texts, such as { "X-Title" = "my campaign" }', since=1, default={}, lane=LaneKey.CONNECTION
    )
    proxy: Proxy | None = key(
        "an http URL, such as http://proxy.example.org:3128", since=1, default=None, lane=LaneKey.CONNECTION
    )
    proxy_variable: Variable | None = key(_VARIABLE, since=1, default=None, lane=LaneKey.CONNECTION)
    max_attempts: int = whole(1, 1000, since=0, default=5, lane=LaneKey.RETRY)
    max_elapsed: Long = key(_LONG, since=1, default=Decimal(21_600), lane=LaneKey.RETRY)
    patience: Long = key(_LONG, since=1, default=Decimal(900), lane=LaneKey.RETRY)
    elo: Elo | None = key("a finite number of Elo points, from -100000 to 100000", since=0, default=None)
    family: Text | None = key(TEXT, since=0, default=None)
    price: Price | None = key(_PRICE, since=0, default=None)
    free: bool = key(_FLAG, since=0, default=False)
    structured_output: bool | None = key(_FLAG, since=5, default=None)
    transport: Literal["live", "batch", "file"] = key(
        '"live", "batch" or "file"', since=5, default="live", compared=Compared.NOWHERE, lane=LaneKey.LIMIT
    )
    wave_size: int | None = whole(1, 1_000_000, since=5, default=None, compared=Compared.NOWHERE, lane=LaneKey.LIMIT)
    max_wait: Long | None = key(_LONG, since=5, default=None, compared=Compared.NOWHERE, lane=LaneKey.LIMIT)
    after_wait: Literal["live", "start"] = key(
        '"live" or "start"', since=5, default="live", compared=Compared.NOWHERE, lane=LaneKey.LIMIT
    )
    batch_price: Price | None = key(
        "a table such as { input = 0.075, output = 0.30 }", since=5, default=None, compared=Compared.NOWHERE
    )

    @model_validator(mode="before")
    @classmethod
    def _at_home(cls, table: Any) -> Any:
        """The address of the vendor that stands before the model, or of the only one that the provider speaks to."""
        table = written_out(table) if isinstance(table, dict) else table
        provider = table.get("provider") if isinstance(table, dict) and "base_url" not in table else None
        if isinstance(provider, str) and provider in PROVIDERS and PROVIDERS[provider].home is not None:
            return {**table, "base_url": PROVIDERS[provider].home}
        return table


class Judge(RespondentTable):
    """One `[[judge]]`."""

    base_url: Address | None = key(_URL_OR_REPLICAS, since=0, default=None, lane=LaneKey.IDENTITY)
    protocol: _Protocol = key('the name of a protocol, such as "two-stage"', since=0, default="two-stage")
    repair: bool = key(_FLAG, since=0, default=True)
    logprobs: bool = key(_FLAG, since=1, default=False)
    best: int | None = whole(1, 1000, since=1, default=None)
    too_long: Literal["error", "truncate-both", "middle"] = key(
        '"error", "truncate-both" or "middle"', since=1, default="error"
    )
    examples: FilePath | None = key(PATH, since=1, default=None)
    options: Named[str] = key('a table of texts, such as { points = "5" }', since=1, default={})
    prompts: Named[FilePath] = key('a table of files, such as { reasons = "reasons.txt" }', since=1, default={})
    recorded: FilePath | None = key(PATH, since=1, default=None, shapes=Shapes.ALL)
    map: Named[Text] = key(
        'a table of column names, such as { verdict = "winner" }', since=1, default={}, shapes=Shapes.ALL
    )
    dialect: Text | None = key('the name of a dialect, such as "mt-bench"', since=1, default=None)

    @model_validator(mode="before")
    @classmethod
    def _as_recorded(cls, table: Any) -> Any:
        """The prompts of recorded answers are unknown unless the file names a protocol."""
        if isinstance(table, dict) and "protocol" not in table and table.get("provider") == "replay":
            return {**table, "protocol": RECORDED}
        return table


class Contestant(RespondentTable):
    """One `[[contestant]]`: a model that writes completions."""

    temperature: Temperature = key(_TEMPERATURE, since=3, default=None)
    max_tokens: int = whole(1, 10_000_000, since=3, default=2048)
    samples: int = whole(1, 10_000, since=3, default=1)


class Editor(RespondentTable):
    """One `[[editor]]`: a model that writes edited copies of completions, under the name of the edit."""

    name: Text = key('the name of the edit, such as "echo"', since=4, shapes=Shapes.ALL)
    max_tokens: int = whole(1, 10_000_000, since=4, default=4096)
    prompts: Named[FilePath] = key('a table of files, such as { edit = "edit.txt" }', since=4, default={})


class ColumnNames(Table):
    """Our column names to the files' own, by kind of file."""

    shards = Shards.WHOLE
    instructions: Named[Text] = key('a table of column names, such as { instruction = "prompt" }', since=0, default={})
    completions: Named[Text] = key('a table of column names, such as { completion = "output" }', since=0, default={})
    elo: Named[Text] = key('a table of column names, such as { elo = "arena_elo" }', since=0, default={})


_EDITED = Compared.JUDGING | Compared.EDITING


class Data(Table):
    """`[data]`: the files to read before planning."""

    shards = Shards.WHOLE
    compared = Compared.JUDGING
    instructions: FilePath | None = key(PATH, since=0, default=None, compared=Compared.ALL)
    completions: FilePath | None = key(PATH, since=0, default=None, compared=_EDITED)
    elo: FilePath | None = key(PATH, since=0, default=None)
    models: Models | None = key(
        "a list of at least two model names, each once", since=0, default=None, compared=_EDITED
    )
    map: ColumnNames = key("tables instructions, completions, elo", since=0, default_factory=ColumnNames)
    families: Named[Text] = key("a table from model to family", since=0, default={}, shapes=Shapes.NONE)


_POINTS = "a number of Elo points above 0 and at most 100000"


class PhaseTable(Table):
    """One `[[plan.phase]]`: a part of the plan with a policy of its own."""

    shards = Shards.WHOLE
    policy: _Policy = key(None, since=0, default="widest-gap", shapes=Shapes.PHASE)
    matchups: int = whole(1, 10_000_000, since=0, default=30, shapes=Shapes.PHASE)
    coverage: Share = key(_SHARE, since=0, default=Decimal("0.3"), shapes=Shapes.PHASE)
    band: Band = key(
        "two numbers of Elo points, the lower first, such as [60, 200]",
        since=1,
        default=[Decimal(60), Decimal(200)],
        shapes=Shapes.PHASE,
    )
    battles: int | None = whole(1, 1_000_000_000, since=1, default=None, shapes=Shapes.NONE)
    round: int = whole(1, 1_000_000, since=1, default=100, shapes=Shapes.NONE)
    purpose: Literal["mean", "boundary", "place"] = key(
        '"mean", "boundary" or "place"', since=1, default="mean", shapes=Shapes.PHASE
    )
    top: int = whole(1, 100_000, since=1, default=3, shapes=Shapes.PHASE)
    place: Text | None = key("the name of a model", since=1, default=None, shapes=Shapes.PHASE)


class Phase(PhaseTable):
    """The same with a name that distinguishes it from other phases."""

    name: Text = key(TEXT, since=1, shapes=Shapes.NONE)


class Stop(Table):
    """`[plan.stop]`: when enough is known, whichever comes first."""

    shards = Shards.WHOLE
    battles: int | None = whole(1, 1_000_000_000, since=1, default=None)
    half_width: Points | None = key(_POINTS, since=1, default=None)
    top: int | None = whole(1, 100_000, since=1, default=None)
    ranks: bool = key(_FLAG, since=1, default=False)
    indifference: Indifference = key("a number of Elo points from 0 to 100000", since=1, default=Decimal(15))
    level: Level = key("a number from 0.5 to 0.999", since=1, default=Decimal("0.95"))


class Plan(PhaseTable):
    """`[plan]`: which matchups or battles are judged, on which instructions, in which phases and until when."""

    compared = Compared.JUDGING
    instructions: int | None = whole(1, 1_000_000_000, since=0, default=None, compared=Compared.ALL)
    repeats: int = whole(1, 10_000, since=0, default=1)
    orders: Literal["both", "random"] = key('"both" or "random"', since=1, default="both")
    variants: Variants = key('a list of names of edits, each once, such as ["echo"]', since=4, default=[])
    stop: Stop = key("a [plan.stop] table", since=1, default_factory=Stop, shapes=Shapes.NONE)
    phase: Several[Phase] = key(
        "[[plan.phase]] tables, with double brackets", since=1, default=[], shapes=Shapes.NONE, alias="phases"
    )


def _limit(unit: BudgetUnit) -> tuple[Any, Any]:
    """Type and key of a limit, as its unit declares them."""
    declared: Named[Any] = {"since": unit.since, "default": None, "shards": unit.shards}
    if not unit.of:
        return int | None, whole(unit.low, unit.high, **declared)
    number = Annotated[Number, AfterValidator(between(unit.low, unit.high))]
    return number | None, key(decimals(unit.of, unit.low, unit.high), **declared)


if TYPE_CHECKING:

    class _Limits(Table):
        calls: int | None = key(None, since=0, default=None)
        money: Number | None = key(None, since=0, default=None)
        tokens: int | None = key(None, since=0, default=None)

else:
    _Limits = create_model("_Limits", __base__=Table, **{name: _limit(unit) for name, unit in UNITS.items()})


class BudgetLimits(_Limits):
    """Limits of a campaign, of a judge or of a model."""


class Budget(BudgetLimits):
    """`[budget]`: limits of the whole campaign, of judges and models in it, and of generating completions."""

    shards = Shards.WHOLE
    judge: Named[BudgetLimits] = key("tables of limits by the name of a judge", since=1, default={})
    model: Named[BudgetLimits] = key("tables of limits by model", since=1, default={})
    generation: BudgetLimits = key(
        "a table of limits", since=3, default_factory=BudgetLimits, compared=Compared.NOWHERE
    )


class Quality(Table):
    """`[quality]`: what is asked of every judge's verdicts, and when a judge is asked no more."""

    shards = Shards.WHOLE
    readable: Share | None = key(_SHARE, since=1, default=None)
    flips: Fraction | None = key(_FRACTION, since=1, default=None)
    give_up: Fraction = key(_FRACTION, since=1, default=Decimal("0.1"))


class Campaign(Table):
    """The whole file: what to judge, by whom, in which plan and for how much."""

    shards = Shards.WHOLE
    name: Text | None = key(TEXT, since=0, default=None, compared=Compared.JUDGING)
    seed: int = whole(0, 2**63 - 1, since=0, default=0)
    store: FilePath | None = key(PATH, since=0, default=None, compared=Compared.JUDGING, shapes=Shapes.NONE)
    durability: Literal["normal", "strict"] = key('"normal" or "strict"', since=1, default="normal", shapes=Shapes.NONE)
    data: Data = key("a [data] table", since=0, default_factory=Data)
    plan: Plan = key("a [plan] table", since=0, default_factory=Plan)
    judge: Several[Judge] = key(
        "one or more [[judge]] tables, with double brackets",
        since=0,
        default=[],
        compared=Compared.JUDGING,
        alias="judges",
    )
    contestant: Several[Contestant] = key(
        "[[contestant]] tables, with double brackets",
        since=3,
        default=[],
        compared=Compared.GENERATION,
        alias="contestants",
    )
    editor: Several[Editor] = key(
        "[[editor]] tables, with double brackets", since=4, default=[], compared=Compared.EDITING, alias="editors"
    )
    budget: Budget = key(
        "a [budget] table", since=0, default_factory=Budget, compared=Compared.JUDGING, shapes=Shapes.NONE
    )
    quality: Quality = key("a [quality] table", since=1, default_factory=Quality, compared=Compared.NOWHERE)
