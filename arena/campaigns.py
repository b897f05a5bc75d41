"""A campaign as the user wrote it, in plain records: what `configs.load_campaign` returns and the engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Literal

from venire.arena.budgets import NO_LIMITS, BudgetSettings
from venire.arena.records import EDIT, GENERATE, RECORDED, Origin
from venire.arena.registry import POLICIES, PROTOCOLS
from venire.arena.shapes import Shape

BATCH_PART = Fraction(1, 2)
"""The part of a live call's price that the batch interfaces of all vendors here charge, unless the file gives one."""


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """What tokens cost, in nano-dollars per million tokens (1 US dollar per million is 1,000,000,000)."""

    input: int
    output: int
    cached: int | None = None
    """Of input tokens that the provider reads from its cache; None: as other input."""
    written: int | None = None
    """Of input tokens that the provider writes to its cache, where that costs more; None: as other input."""

    def cost(
        self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int | None = None
    ) -> int:
        """The cost of these tokens in nano-dollars, rounded up; cached and written tokens are part of the input.

        `written_tokens` None: not reported; all input that was not read from a cache is then charged as written where
        that is dearer. So the cost without reported cache use is an upper bound.
        """
        cached = min(cached_tokens, input_tokens)
        rest = input_tokens - cached
        dearer = max(self.input, self.input if self.written is None else self.written)
        written = rest if written_tokens is None else min(written_tokens, rest)
        nano = (rest - written) * self.input + written * dearer + output_tokens * self.output
        nano += cached * (self.input if self.cached is None else self.cached)
        return -(-nano // 1_000_000)

    def times(self, part: Fraction) -> TokenPrice:
        """A part of this price, each rate rounded up to whole nano-dollars per million tokens.

        >>> TokenPrice(150, 601).times(BATCH_PART)
        TokenPrice(input=75, output=301, cached=None, written=None)
        """
        rates = (self.input, self.output, self.cached, self.written)
        return TokenPrice(*(None if rate is None else ceil(rate * part) for rate in rates))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Limits:
    """The rate limits of an account at its vendor; None: no limit is known."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Of requests and replies together."""
    input_tokens_per_minute: int | None = None
    output_tokens_per_minute: int | None = None
    requests_per_day: int | None = None


REPLICAS = "ray://"
"""Begins a base URL that stands for several servers: `ray://NAME` are the replicas of that name in a Ray cluster."""

Identity = tuple[str, str | None, str | None, str]
"""What identifies a route: provider, base URL, key variable and the model's name there."""


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """One way to a judge's model: an endpoint and one key."""

    provider: str
    base_url: str | None
    """None: the provider's own address, or the embedded server for a simulated model."""
    key_variable: str | None
    """Name of the environment variable that holds the key; the key itself is never part of a record."""
    model: str
    """The model's name at this endpoint."""
    rank: int = 0
    """Routes of a higher rank are used only while no route of a lower rank can be used."""
    price: TokenPrice | None = None
    """What tokens cost here; None: the judge's own price."""
    structured: bool | None = None
    """Whether to send a protocol's JSON Schema as response format here; None: if the vendor is known to support it."""
    replica_of: str | None = None
    """The `ray://NAME` that the campaign file gives, where this is one of its replicas."""

    @property
    def replicas(self) -> str | None:
        """The name of the replicas that this route stands for, until a route to each of them takes its place."""
        url = self.base_url or ""
        return url.removeprefix(REPLICAS) if url.startswith(REPLICAS) else None

    @property
    def endpoint(self) -> str:
        """The base URL that the campaign file gives; empty for none."""
        return self.replica_of or self.base_url or ""

    @property
    def identity(self) -> Identity:
        """The fields that are equal in two routes exactly when they are the same route."""
        return (self.provider, self.base_url, self.key_variable, self.model)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How a lane asks by its provider's batch interface, in waves; see `docs/batch.md`."""

    form: Literal["batch", "file"] = "batch"
    """The provider's batch interface, or a file that is written for a server's batch command and read when answered."""
    wave_size: int | None = None
    """Requests of one submission at most; None: as many as the provider takes."""
    max_wait: float | None = None
    """Seconds after which a submission is given up; None: as long as the provider takes."""
    after_wait: Literal["live", "start"] = "live"
    """What becomes of requests that were given up: they are asked live, or left for the next start."""
    price: TokenPrice | None = None
    """What tokens cost by this interface; None: `BATCH_PART` of the live price."""


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """How judges of one model send calls: the routes, the limits of each, and how long to retry.

    Judges that share all routes share a lane.
    """

    routes: tuple[RouteSettings, ...]
    limits: Limits = Limits()
    """Of each account behind a route, as the vendor gives them; None: learnt from its rate-limit headers."""
    share: float = 1.0
    """The part of every limit that this campaign may use."""
    skew: float = 1.0
    """Seconds by which one call may overtake another on its way to the vendor."""
    concurrency: int = 16
    """Calls in flight on each route."""
    timeout: float = 120.0
    """Seconds for one call, answer included."""
    max_attempts: int = 5
    """Failed attempts allowed for one step, without rate-limit responses."""
    max_elapsed: float = 21_600.0
    """Seconds from a step's first failure to its last attempt."""
    patience: float = 900.0
    """Seconds to keep trying a lane that never answers, once all other lanes are done."""
    connect_timeout: float = 15.0
    """Seconds to open a connection, with name lookup and TLS."""
    read_timeout: float | None = None
    """Seconds that the server may send nothing; None: as long as the whole call."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every call."""
    proxy: str | None = None
    proxy_variable: str | None = None
    """Name of the environment variable that holds the proxy's URL, password included."""
    batch: BatchSettings | None = None
    """How calls go in waves; None: one by one."""

    @property
    def identity(self) -> tuple[Identity, ...]:
        """Two judges share this lane and its limits exactly when this is equal for both."""
        return tuple(route.identity for route in self.routes)

    @property
    def workers(self) -> int:
        """Calls in flight at most."""
        return self.concurrency * sum(route.rank == self.routes[0].rank for route in self.routes)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A table of judgments made elsewhere (absolute path), and a map from our column names to the file's."""

    path: Path
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """One judge of a campaign under a name that is only a label; or one contestant, whose name its completions have."""

    name: str
    model: str
    protocol: str
    options: Mapping[str, str]
    """Options that affect its answers: temperature (absent if not wanted), max_tokens, repair, its own prompts, ..."""
    lane: LaneSettings
    price: TokenPrice | None = None
    """None: not given in the file; it is looked up in the price table."""
    free: bool = False
    elo: float | None = None
    """The model's own Elo by people's votes, where known."""
    family: str | None = None
    repeats: int | None = None
    """How often each trial is repeated; None: as often as the plan sets."""
    recorded: Recorded | None = None
    """The table with its recorded answers; None: the model is called."""
    context: int | None = None
    """Tokens that prompt and reply may have together; None: unknown, and prompts are not counted before sending."""
    vocabulary: str = "estimate"
    """The vocabulary to count these tokens in: see `judges.providers.token_counting`."""

    @property
    def origin(self) -> Origin:
        """Where its answers come from."""
        return Origin.of_model(self.model) if self.recorded is None else Origin.RECORDED

    @property
    def shape(self) -> Shape:
        """What its protocol shows it at once, and how it judges that."""
        shape: Shape = PROTOCOLS[self.protocol].shape
        return shape


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Files to read before planning (absolute paths); None: already in the store."""

    instructions: Path | None = None
    completions: Path | None = None
    elo: Path | None = None
    maps: Mapping[str, Mapping[str, str]] | None = None
    """By kind, our column name to the file's: `{"elo": {"elo": "arena_elo"}}`."""
    models: tuple[str, ...] | None = None
    """The contestants; None: every model with what the policy needs."""
    families: Mapping[str, str] | None = None
    """Model to family, for leaving a judge's own family out of its consistency."""


@dataclass(frozen=True, slots=True)
class PhaseSettings:
    """One part of a plan, with its own policy; a plan without named phases has a single phase.

    A crossed policy judges every matchup that it chooses on all instructions of the plan; `matchups` is how many it
    chooses. Other policies choose battles, each one pair on one instruction: `battles` is how many in this phase (None:
    until a rule stops the campaign), `round` how many are planned at once before the verdicts are analysed.
    """

    policy: str = "widest-gap"
    name: str = "plan"
    matchups: int | None = 30
    battles: int | None = None
    round: int = 100
    coverage: float = 0.3
    """No model in more than this share of the matchups."""
    band: tuple[float, float] = (60.0, 200.0)
    """Least and largest gap in Elo points, for the policy that chooses by it."""
    purpose: Literal["mean", "boundary", "place"] = "mean"
    """What `information` is about: all ratings, the boundary of the best, or one model."""
    top: int = 3
    """How many are the best, for the purpose "boundary"."""
    place: str | None = None
    """The model that is placed, for the purpose "place"."""

    @property
    def crosses(self) -> bool:
        """Whether its policy chooses matchups, judged on all instructions of the plan, and not single battles."""
        return self.policy == RECORDED or bool(POLICIES[self.policy].crossed)

    @property
    def needs_elo(self) -> bool:
        """Whether its policy chooses by the models' Elo."""
        return self.policy != RECORDED and bool(POLICIES[self.policy].needs_elo)


@dataclass(frozen=True, slots=True)
class StopSettings:
    """Stopping rules; the first that is met ends the campaign. None and False: no rule. Budgets are set elsewhere.

    `battles` is a number of judged battles, `half_width` that of every model's interval in Elo points. `top` stops when
    the best `top` models are known, `ranks` when the whole order is, both up to `indifference` Elo points.
    """

    battles: int | None = None
    half_width: float | None = None
    top: int | None = None
    ranks: bool = False
    indifference: float = 15.0
    level: float = 0.95

    @property
    def has_rules(self) -> bool:
        """Whether any rule may end a campaign before its plan does."""
        return self.battles is not None or self.half_width is not None or self.top is not None or self.ranks


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What is judged on which instructions, in which phases, and when that is enough."""

    phases: tuple[PhaseSettings, ...] = (PhaseSettings(),)
    instructions: int | None = None
    """How many are drawn; None: all that every contestant answered."""
    repeats: int = 1
    orders: Literal["both", "random"] = "both"
    """Whether a battle is shown in both orders, or in one order drawn at random."""
    variants: tuple[str, ...] = ()
    """Edits of completions: each battle is judged again with A's completion edited, and with B's."""
    stop: StopSettings = StopSettings()

    def is_planned_at_once(self, phase: PhaseSettings) -> bool:
        """Whether the battles of a phase are chosen without any verdict between them: its rounds are then one."""
        return phase.battles is not None and not POLICIES[phase.policy].adaptive and not self.stop.has_rules

    def round_size(self, phase: PhaseSettings, planned: int = 0, judged: int = 0) -> int:
        """How many battles the next round of a phase has.

        `planned` of the phase are planned already, `judged` are judged in the whole campaign. What needs to see no
        verdict in between is planned at once.
        """
        left = None if phase.battles is None else phase.battles - planned
        at_once = self.is_planned_at_once(phase)
        number = phase.round if left is None else left if at_once else min(phase.round, left)
        return number if self.stop.battles is None else min(number, max(1, self.stop.battles - judged))


@dataclass(frozen=True, slots=True)
class QualitySettings:
    """What is asked of every judge's verdicts, as shares from 0 to 1; None: nothing.

    A campaign that is complete with less than `readable`, or more than `flips`, has missed a gate. A judge is asked no
    more when less than `give_up` of its last verdicts could be read; 0: never.
    """

    readable: float | None = None
    flips: float | None = None
    give_up: float = 0.1


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """A plan, its judges and its budget. `settings` is the file as canonical JSON, for telling whether it changed."""

    name: str
    seed: int
    path: Path
    store: Path
    data: DataSettings
    plan: PlanSettings
    judges: tuple[JudgeSettings, ...]
    budget: BudgetSettings
    text: str
    """The file as written."""
    settings: str
    judge_budgets: Mapping[str, BudgetSettings] = field(default_factory=dict)
    """By judge name, beside the campaign's own."""
    model_budgets: Mapping[str, BudgetSettings] = field(default_factory=dict)
    """By model, for all its judges together."""
    contestants: tuple[JudgeSettings, ...] = ()
    """Models that are asked for completions before there is something to judge."""
    generation: BudgetSettings = NO_LIMITS
    """Limits of asking them."""
    generation_settings: str = ""
    """What of the file concerns the contestants, as `settings`."""
    editors: tuple[JudgeSettings, ...] = ()
    """Who writes edited copies of completions; their names are those of the edits."""
    editing_settings: str = ""
    """What of the file concerns the editors, as `settings`."""
    quality: QualitySettings = QualitySettings()
    strict: bool = False
    """Whether a call is on the disk itself before it is sent, and its reply before its trial goes on."""

    @property
    def pair_judges(self) -> tuple[str, ...]:
        """The judges that are shown pairs, by name; where there is none, no matchups are chosen."""
        return tuple(sorted(judge.name for judge in self.judges if judge.shape.pairwise))

    @property
    def rates_models(self) -> bool:
        """Whether any judge sets one model above another, so that models can be rated."""
        return any(judge.shape.rates for judge in self.judges)

    @property
    def has_board(self) -> bool:
        """Whether its verdicts say anything of models: they rate them, or grade what they wrote."""
        return any(not judge.shape.writes for judge in self.judges)

    @property
    def asks_contestants(self) -> bool:
        """Whether its respondents write completions, as those of `<name> (completions)` do, and judge nothing."""
        return all(judge.protocol == GENERATE for judge in self.judges)

    @property
    def asks_editors(self) -> bool:
        """Whether its respondents edit completions, as those of `<name> (edits)` do, and judge nothing."""
        return bool(self.judges) and all(judge.protocol == EDIT for judge in self.judges)

    @property
    def writes(self) -> bool:
        """Whether its respondents write completions or edited copies of them."""
        return self.asks_contestants or self.asks_editors

    @property
    def in_rounds(self) -> bool:
        """Whether more may be planned once the first round is judged."""
        plan = self.plan
        several = len(plan.phases) > 1 or plan.stop.has_rules or not plan.phases[0].crosses
        return bool(self.pair_judges) and several
