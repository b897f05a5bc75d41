"""The public functions: campaigns planned, run and rated from Python, and pairs judged in memory."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.arena.keywords import Count, checked, spelled_out
from venire.arena.registry import POLICIES, PROTOCOLS
from venire.configs.loading import resolve
from venire.configs.schema import Budget, Campaign, Judge
from venire.embedded import Embedded
from venire.endpoints import open_crew
from venire.orchestrator.planning.respondents import editing, generation
from venire.orchestrator.recording.ending import CampaignSummary, Ending
from venire.pairs import JudgedPair, judge_pairs
from venire.placement.settings import PlaceKeywords, PlaceSettings, nano
from venire.prices import price_warnings
from venire.session import Session

if TYPE_CHECKING:
    from venire.arena.battles import Statistics
    from venire.experiments.results import SimulationResult
    from venire.experiments.variations import Axes
    from venire.judges.parsing.verdict_formats import FormatReading
    from venire.orchestrator.costs.forecast import JudgeForecast
    from venire.placement.report import PlacementReport
    from venire.reading import ReparseSummary
    from venire.reports.board.board import Board


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """What a campaign will ask and cost, computed before any call is made. Money is in US dollars."""

    campaign: str
    models: tuple[str, ...]
    trials: int
    missing: int
    """Trials that have neither settled nor failed yet."""
    judges: tuple[JudgeForecast, ...]
    """The remaining work by judge; its money fields are in nano-dollars."""
    warnings: tuple[str, ...]
    document: Mapping[str, Any] = field(repr=False)
    """The full plan, as `venire plan --json` prints it."""

    @property
    def calls(self) -> int:
        """Expected number of remaining calls."""
        return sum(one.calls for one in self.judges)

    @property
    def expected(self) -> float:
        """Expected cost of the remaining calls, in US dollars."""
        return sum(one.expected for one in self.judges) / 1e9

    @property
    def most(self) -> float:
        """Cost of the remaining calls in US dollars if every reply has the maximum length and is asked for twice."""
        return sum(one.most for one in self.judges) / 1e9

    def to_json(self) -> dict[str, Any]:
        """The plan as plain JSON values."""
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, and what its store contains at that point."""

    summary: CampaignSummary
    store: Path
    board: Board | None
    """The ratings; None where no settled trial allows a rating, or where the run generated completions."""

    @property
    def ending(self) -> Ending:
        """Why the run ended."""
        return self.summary.ending


class RunKeywords(TypedDict, total=False):
    """The keywords of the functions that run a campaign, as fields of `RunOptions`."""

    amend: bool
    retry_failed: bool
    progress: Callable[[Statistics], None] | None
    warn: Callable[[str], None] | None
    embedded: Embedded | None
    environ: Mapping[str, str] | None


@dataclass(frozen=True)
class RunOptions:
    """How a campaign is run: see `run`."""

    amend: bool = False
    retry_failed: bool = False
    progress: Callable[[Statistics], None] | None = None
    warn: Callable[[str], None] | None = None
    embedded: Embedded | None = None
    environ: Mapping[str, str] | None = None


@checked
def plan(campaign: Campaign | CampaignSettings | Path | str, *, amend: bool = False) -> CampaignPlan:
    """Plan a campaign and forecast its cost without calling any model.

    Imports the data and writes the plan into the campaign's store, as `venire plan` does. `campaign` is an object or
    the path of a campaign file; `amend` accepts changes to a campaign that has already made calls.

    Raises InputError for any error in the campaign, data, prices or store.

    >>> found = plan("new.toml")
    >>> print(f"{found.trials} trials, {found.calls} calls, about ${found.expected:.2f}")
    60 trials, 120 calls, about $0.00
    """
    from venire.forecasts.plan import plan_document

    with Session(resolve(campaign), amend=amend, spends=True) as session:
        forecast = session.forecast()
        document = plan_document(session, forecast)
        return CampaignPlan(
            session.campaign.name,
            tuple(session.planned.design.models),
            session.planned.trials,
            forecast.progress.missing,
            forecast.judges,
            tuple(document["warnings"]),
            document,
        )


@spelled_out(RunKeywords, RunOptions)
def run(
    campaign: Campaign | CampaignSettings | Path | str,
    *,
    engine: str = "local",
    actors: Count | None = None,
    **options: Unpack[RunKeywords],
) -> RunResult:
    """Run a campaign, or resume it. This spends money without a confirmation prompt: see `plan` first.

    `progress` is called with counters a few times a second, `warn` with sentences that describe problems. The first
    Ctrl-C stops gently, the second at once; a paid call is never repeated. `embedded` sets how simulated judges
    answer, `environ` holds the API keys (None: this process's environment). With `engine` "ray" or "ray:ADDRESS" so
    many actors of a Ray cluster send the calls (`docs/scaling.md`). Also works in a notebook, where an event loop is
    already running.

    Raises InputError for unusable input, before any money is spent; StoreError when the store fails.

    >>> result = run("new.toml", warn=print)
    >>> print(result.ending, result.summary.progress.settled, result.board.models[0].model)
    complete 60 strong
    """
    return _run(resolve(campaign), RunOptions(**options), engine=engine, actors=actors)


@spelled_out(RunKeywords, RunOptions)
async def arun(campaign: Campaign | CampaignSettings | Path | str, **options: Unpack[RunKeywords]) -> RunResult:
    """`run` for a program with its own event loop: the campaign runs in a separate thread.

    When the task is cancelled, the run stops gently, as with Ctrl-C; the cancellation is raised once the calls in
    flight have ended and are stored. `progress` and `warn` are called in the other thread.

    >>> import asyncio
    >>> print(asyncio.run(arun("new.toml")).ending)
    complete
    """
    settings, given = resolve(campaign), RunOptions(**options)
    requests: list[Callable[[], None]] = []
    cancelled = False

    def ready(stop: Callable[[], None]) -> None:
        requests.append(stop)
        if cancelled:
            stop()

    whole = asyncio.ensure_future(asyncio.to_thread(_run, settings, given, ready))
    try:
        return await asyncio.shield(whole)
    except asyncio.CancelledError:
        cancelled = True
        for stop in requests:
            stop()
        await asyncio.wait([whole])
        whole.exception()  # it is cancelled either way; an error of its end is not raised twice
        raise


def _run(
    settings: CampaignSettings,
    given: RunOptions,
    ready: Callable[[Callable[[], None]], None] | None = None,
    *,
    engine: str = "local",
    actors: int | None = None,
) -> RunResult:
    warn, environ = given.warn, given.environ
    with (
        open_crew(engine, settings, settings.store, environ, actors=actors, warn=warn) as (crew, campaign),
        Session(campaign, amend=given.amend, spends=True, crew=crew) as session,
    ):
        if given.retry_failed:
            session.retry_failed()
        if warn is not None:
            _say_prices(session, warn)
            if (held := session.left_with_actors) is not None:
                warn(f"warning: {held}")
        summary = session.run(environ=environ, embedded=given.embedded, progress=given.progress, warn=warn, ready=ready)
        rated = not session.campaign.writes and summary.progress.settled > 0
        return RunResult(summary, settings.store, _board(session) if rated else None)


def _say_prices(session: Session, warn: Callable[[str], None]) -> None:
    for sentence in price_warnings(session.campaign.judges):
        warn(sentence)


def _board(session: Session) -> Board | None:
    try:
        return session.board()
    except InputError:  # too few readable verdicts for any rating: the summary says what was settled
        return None


@spelled_out(RunKeywords, RunOptions)
def generate(campaign: Campaign | CampaignSettings | Path | str, **options: Unpack[RunKeywords]) -> RunResult:
    """Ask a campaign's contestants to answer its instructions, so that `run` has completions to judge.

    Everything else is as in `run`; `board` in the result is None.

    >>> print(generate("writers.toml").ending)
    complete
    """
    return _run(generation(resolve(campaign)), RunOptions(**options))


@spelled_out(RunKeywords, RunOptions)
def edit(campaign: Campaign | CampaignSettings | Path | str, **options: Unpack[RunKeywords]) -> RunResult:
    """Ask a campaign's editors for edited copies of completions, so that `run` can judge what each edit does.

    Everything else is as in `run`; `board` in the result is None.

    >>> print(edit("edits.toml").ending)
    complete
    """
    return _run(editing(resolve(campaign)), RunOptions(**options))


@checked
def judge(
    pairs: Any,
    *,
    judge: Judge | str | Sequence[Judge | str],
    protocol: str = "two-stage",
    budget: Budget | float | Decimal | None = None,
    store: Path | str | None = None,
    mapping: Mapping[str, str] = {},
    elo: Mapping[str, float] | None = None,
    progress: Callable[[Statistics], None] | None = None,
    warn: Callable[[str], None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[JudgedPair]:
    """Judge pairs of texts, each in both orders.

    `pairs` is a list of `{"instruction": ..., "a": ..., "b": ...}`, with `"reference"` where the protocol shows one,
    or of the three texts in this order; or a table of these columns: of pandas, polars or Arrow, a dict of columns, or
    the path of a file; the instruction may be called `prompt` or `question`. `mapping` names columns that are called
    otherwise, as `{"a": "left"}`. A judge is a `Judge`, or the name of a model whose vendor is known, with the vendor's
    usual variable for the key: `"gpt-4o-mini"`, `"groq/llama-3.3-70b-versatile"`. `protocol` is any that shows two
    answers; a `Judge` may name another. Simulated judges need the Elo of both sides in `elo`. Returns one row per pair
    and judge, in the order of the pairs.

    With `store`, a file that is made where it is not there, every paid reply is kept, and no answered question is paid
    again: after a kill, or with more pairs, the same call asks what is missing. A changed text, judge or prompt is
    another question. Without it nothing is kept. `budget` is a cap in US dollars, or a `Budget`: all calls of the store
    count, of earlier times too. Where it is reached, or calls failed, verdicts are None, and `warn` (else a warning of
    Python) says how many and why. Ctrl-C lets calls in flight end, then raises KeyboardInterrupt.

    Raises InputError for pairs, judges, keys or a store that cannot be used; VenireError where no judge could be asked.

    >>> from venire import Judge
    >>> pair = {"instruction": "Name a prime number.", "a": "Seven is a prime number.", "b": "Nine."}
    >>> expert = Judge(model="simulated/gpt-4-0613@1")
    >>> [row] = judge([pair], judge=expert, elo={"a": 1400, "b": 800})
    >>> row.winner
    'a'
    """
    return judge_pairs(
        pairs,
        judge,
        protocol,
        budget=budget,
        store=None if store is None else Path(store),
        mapping=mapping,
        elo=elo,
        progress=progress,
        warn=warn,
        environ=environ,
    )


@checked
def parse(replies: Iterable[str | None], *, dialect: str | None = None) -> list[FormatReading]:
    """Parse verdicts from replies that judges of any tool wrote, without calling any model.

    `dialect` names the reply format, as `venire parse --list` shows; None selects the dialect that reads the most
    replies. A reading has `verdict` ("first", "second", "tie" or None), `status` and the `rule` that read it. A reply
    that names no verdict, or two, is unreadable; None means a missing reply.

    Raises InputError for an unknown dialect, and where two dialects read the replies differently.

    >>> [one.verdict for one in parse(["I prefer the first. [[A]]", "[[B]]", "No idea."])]
    ['first', 'second', None]
    """
    from venire.reading import read_replies  # and ratings with scipy, which no run needs before its end

    return read_replies(replies, dialect)[1]


@checked
def reparse(store: Path | str, *, campaign: str | None = None, dry_run: bool = False) -> ReparseSummary:
    """Parse the replies in a store again with the current parsers, without any call or cost.

    Readings that differ are appended, and earlier readings are kept; `dry_run` writes nothing. Raises InputError for a
    store or a campaign that does not exist.

    >>> reparse("campaign.duckdb", dry_run=True).to_json()["same"]
    60
    """
    from venire.reading import read_again

    return read_again(Path(store), campaign, dry=dry_run)


@spelled_out(PlaceKeywords, PlaceSettings)
def place(
    model: str,
    *,
    on: Path | str,
    retry_failed: bool = False,
    progress: Callable[[Statistics], None] | None = None,
    warn: Callable[[str], None] | None = None,
    embedded: Embedded | None = None,
    environ: Mapping[str, str] | None = None,
    **placing: Unpack[PlaceKeywords],
) -> PlacementReport | None:
    """Place a model on the judged board of a store, by battles with the most informative opponents.

    Spends up to `budget` US dollars without confirmation, earlier calls of the same placement included. The other
    arguments are as in `venire place`: stopping rules (`battles`, `half_width` in Elo points), `judges` to restrict
    the board's judges, the `level` of the judge's interval, `alpha` of the interval on people's scale, and `elo`, the
    model's own by people's votes. The ratings of the other models do not change. Returns None where no verdict about
    the model could be read.

    Raises InputError for anything that prevents the placement, including a budget below one battle.

    >>> found = place("terse", on="campaign.duckdb", battles=20)
    >>> round(found.to_json()["held"]["elo"])
    865
    """
    from venire.placement.board import prepare  # and scipy, which no run needs before its end
    from venire.placement.report import place_result
    from venire.placement.run import forecast_placement, placement_session

    settings = PlaceSettings.of(model, on, **placing)
    prepared = prepare(settings)
    with placement_session(prepared) as session:
        if retry_failed:
            session.retry_failed()
        forecast_placement(session, prepared)  # refuses a budget below one battle
        if warn is not None:
            _say_prices(session, warn)
        session.run(environ=environ, embedded=embedded, progress=progress, warn=warn)
        return place_result(session.store, session.planned.id, prepared.campaign.name, prepared.board, settings)


class VariedKeywords(TypedDict, total=False):
    """The settings that `simulate` varies, as fields of `VariedSettings`."""

    policies: Sequence[str]
    protocols: Sequence[str]
    judges: Sequence[Count]
    orders: Sequence[Literal["both", "random"]]
    budgets: Sequence[float | Decimal]
    calls: Sequence[Count]


@dataclass(frozen=True)
class VariedSettings:
    """The settings that `simulate` varies; `budgets` in US dollars."""

    policies: Sequence[str] = ()
    protocols: Sequence[str] = ()
    judges: Sequence[int] = ()
    orders: Sequence[Literal["both", "random"]] = ()
    budgets: Sequence[float | Decimal] = ()
    calls: Sequence[int] = ()

    def axes(self) -> Axes:
        """The same as axes, whose values are crossed."""
        from venire.experiments.variations import Axes

        limits: list[tuple[int | None, int | None]] = [(None, nano(dollars)) for dollars in self.budgets]
        limits += [(count, None) for count in self.calls]
        policies, protocols = map(POLICIES.named, self.policies), map(PROTOCOLS.named, self.protocols)
        return Axes(tuple(policies), tuple(protocols), tuple(self.judges), tuple(self.orders), tuple(limits))


@spelled_out(VariedKeywords, VariedSettings)
def simulate(
    campaign: Campaign | CampaignSettings | Path | str,
    *,
    battles: Count | None = None,
    seeds: Count = 20,
    stand_ins: Sequence[str] = (),
    models: Count | None = None,
    instructions: Count | None = None,
    workers: Count | None = None,
    engine: str = "local",
    progress: Callable[[int, int], None] | None = None,
    **varied: Unpack[VariedKeywords],
) -> SimulationResult:
    """Run a campaign and variations of it many times with simulated judges; no real model is called.

    Every combination of `policies`, `protocols`, numbers of `judges`, `orders`, `budgets` (US dollars) and `calls` is
    run `seeds` times; the default is the campaign's own plan and a balanced plan. `stand_ins` are profiles for
    real judges, as `PROFILE` or `JUDGE=PROFILE`; `models` and `instructions` generate a field of that size. `progress`
    receives the number of finished runs and the total. The campaign's own store is never touched.

    `workers` run at once, by default one. More of them are processes: then call this function below
    `if __name__ == "__main__"`. With the engine `ray`, or `ray:HOST:PORT` for a cluster that is running, runs are tasks
    of a Ray cluster, and `workers` is by default its number of processors. Results depend on neither.

    Raises InputError for a variation that is impossible, before any run starts, and for an engine that is not there.

    >>> found = simulate("campaign.toml", policies=["random", "balanced"], battles=30, seeds=2)
    >>> [one["name"] for one in found.to_json()["variations"]]
    ['random', 'balanced']
    """
    from venire.experiments.experiment import StoppedSimulationError, field_of
    from venire.experiments.experiment import simulate as simulate_field
    from venire.experiments.results import SimulationResult
    from venire.experiments.variations import cross, simulated
    from venire.orchestrator.engines.ray_cluster import EngineChoice

    place = EngineChoice.read(engine)
    settings = resolve(campaign)
    rows, seats = cross(VariedSettings(**varied).axes(), settings), simulated(settings, stand_ins)
    with tempfile.TemporaryDirectory(prefix="venire-simulate-") as folder:
        field, template = field_of(settings, Path(folder), models, instructions)
        try:
            found = simulate_field(
                settings,
                seats,
                rows,
                field,
                template,
                seeds=seeds,
                workers=workers,
                battles=battles,
                engine=place,
                progress=progress,
            )
        except StoppedSimulationError as stopped:
            stopped.result = SimulationResult(stopped.simulation, rows, field, seats)
            raise
    return SimulationResult(found, rows, field, seats)
