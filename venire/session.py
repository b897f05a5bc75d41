"""One campaign from its file to its board: what the commands and the public functions share."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from venire.arena.battles import Statistics
from venire.arena.campaigns import REPLICAS, CampaignSettings, JudgeSettings
from venire.arena.clock import Clock, SystemClock, VirtualClock
from venire.arena.errors import InputError
from venire.arena.keywords import checked, spelled_out
from venire.arena.planning import Estimates, Pick, Steering
from venire.arena.records import Completion, Instruction, Origin, Rating
from venire.configs.loading import difference, resolve
from venire.configs.schema import Campaign
from venire.embedded import Embedded, data_tables
from venire.live.standby import Standby
from venire.orchestrator.costs.coverage import Funds, read_funds
from venire.orchestrator.costs.forecast import Forecast, LongForecast, forecast, forecast_long
from venire.orchestrator.designs import PlannedCampaign
from venire.orchestrator.engines.ray_cluster import cluster_of
from venire.orchestrator.lanes.routes import route_name
from venire.orchestrator.planning.design_space import DesignSpace
from venire.orchestrator.planning.oversized import OversizedText
from venire.orchestrator.planning.plan import left_out, plan
from venire.orchestrator.planning.respondents import respondents, with_contexts
from venire.orchestrator.planning.rounds import Rounds, read_space
from venire.orchestrator.planning.sharding import Shard, sharded
from venire.orchestrator.policies import POLICIES
from venire.orchestrator.recording.ending import CampaignSummary
from venire.orchestrator.recording.events import Events
from venire.orchestrator.run.next_round import OnAnalysis
from venire.orchestrator.run.reparse import take_answers
from venire.orchestrator.run.run_setup import Polling
from venire.orchestrator.run.takeover import Takeover, take_over
from venire.prices import batch_price, judge_price
from venire.running import CampaignRun, HostKeywords, RunHost, RunWishes
from venire.storage.plans import plans, submissions
from venire.storage.read import frames
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing
from venire.storage.transfer.formats import tables
from venire.storage.transfer.formats.files import refuse_address
from venire.storage.transfer.formats.source import MissingColumnError
from venire.storage.transfer.importing import Added

if TYPE_CHECKING:
    from venire.orchestrator.engines.remote import Crew
    from venire.reports.board.board import Board

_SQL_MEMORY = 256 << 20
"""A quarter of DuckDB's memory, for each of two queries at a time: the rest is the writer's."""


Records = Sequence[Instruction] | Sequence[Completion] | Sequence[Rating]
"""What an import brings at once."""


@dataclass(frozen=True, slots=True)
class GivenBattles:
    """Battles to ask, and the records that they are of, which are imported as data files are."""

    battles: Sequence[Pick]
    records: Sequence[Records]


class Session:
    """An active campaign: within `with`, its store is open, its data imported and its plan written.

    Nothing is opened or written before `with` is entered. The constructor raises InputError for errors in the
    campaign itself. Entering raises it for errors in data, plan or store, and for a file that changed after calls
    were made, unless `amend` is true; with "tables" a plan is also made anew where its tables hold more than they
    did, as it is where contestants have written. A store that was created for a refused campaign is removed again.
    `steering` replaces ratings of the campaign's own verdicts in planning its rounds, and `estimates` are prior
    knowledge of the models before the first round. `spends`: refuse budgets that do not cover one battle, or one
    trial. `shard`: only a part of the plan is asked, into a store of its own, with what was taken over from others.
    `crew`: actors of a Ray cluster ask the calls. `options`: those of the command line that a command which goes on
    needs too. `given`: battles that are planned in place of what the campaign's policy would choose.

    Example:
        with Session(load_campaign(Path("campaign.toml"))) as session:
            print(session.forecast().whole)
            summary = session.run()
    """

    store: Store
    imported: Mapping[str, Added]
    """Rows that its data files added to the store, by kind."""
    planned: PlannedCampaign
    rounds: Rounds | None
    """The planner of its next rounds; None for a campaign of one round."""
    takeover: Takeover | None = None
    """What a shard has of others, too; None where the whole campaign is asked."""

    @checked
    def __init__(
        self,
        campaign: CampaignSettings | Campaign | Path | str,
        *,
        amend: bool | Literal["tables"] = False,
        clock: Clock | None = None,
        steering: Steering | None = None,
        estimates: Estimates | None = None,
        spends: bool = False,
        shard: Shard | None = None,
        crew: Crew | None = None,
        options: str = "",
        given: GivenBattles | None = None,
    ) -> None:
        campaign = resolve(campaign)
        if not campaign.judges:
            raise InputError(f"{campaign.path}: names no judge: add a [[judge]] table")
        self.whole = campaign = with_contexts(campaign)
        """The whole campaign; of a shard the session's own is a part of it, with a store beside."""
        self.shard, self.crew, self._options = shard, crew, options
        if shard is not None:
            campaign = sharded(campaign, shard)
        self.campaign = campaign
        self.clock = clock or SystemClock()
        self.prices = {judge.name: judge_price(campaign, judge) for judge in campaign.judges}
        """What each judge's calls cost, asked one by one."""
        self.batch_prices = {judge.name: batch_price(judge, self.prices[judge.name]) for judge in campaign.judges}
        batched = {judge.name for judge in campaign.judges if judge.lane.batch is not None}
        self._asked_at = {name: (self.batch_prices if name in batched else self.prices)[name] for name in self.prices}
        self._amend, self._steering, self._estimates, self._spends = bool(amend), steering, estimates, spends
        self._held = contextlib.ExitStack()
        """Locks of shards that are asked here and have no store beside."""
        self._given, self._tables_grow = given, amend == "tables"
        respondents(campaign)  # two equal judges are refused
        for judge in campaign.judges:
            if judge.origin is Origin.SIMULATED:
                from venire.simulation.judge import parse_model  # and what real judges do without
                from venire.simulation.rehearsal import check_rehearsal

                try:
                    parse_model(judge.model)
                    check_rehearsal(judge.protocol, judge.model, judge.options)
                except InputError as error:
                    raise InputError(f"{campaign.path}: {self.role} {judge.name!r}: {error}") from None
        for kind, path in data_tables(campaign.data):
            refuse_address(path)
            if not path.is_file():
                what = "which is a folder: name a file in it" if path.is_dir() else "and there is no such file"
                raise InputError(f"{campaign.path}: [data] {kind} names {path}, {what}")

    def __enter__(self) -> Session:
        made_here = not self.campaign.store.exists()
        under_way = frozenset() if self.crew is None else self.crew.under_way
        self.store = open_store(self.campaign.store, clock=self.clock, under_way=under_way)
        self._standby = Standby(self.store)
        with contextlib.ExitStack() as undo:
            undo.push(partial(self._give_up, made_here))
            self._stand_by()
            self._refuse_change()
            self.imported = self._import()
            self._refuse_unanswered()
            if self.shard is not None:
                self.takeover = take_over(self.store, self.whole, self.shard, self._held, amend=self._amend)
                self.campaign = self.takeover.campaign
            self.planned, self.rounds = plan(
                self.store,
                self.campaign,
                self._asked_at,
                self._steer,
                amend=self._amend,
                estimates=self._estimates,
                spends=self._spends,
                battles=self._battles,
                tables_grow=self._tables_grow,
            )
            if self.takeover is not None:
                mine = self.takeover.trials(self.store, self.planned.id)
                self.planned = replace(self.planned, only=mine, sent_elsewhere=self.takeover.sent)
            ways = [way for judge in self.campaign.judges for way in judge.lane.routes]
            replicas = {way.endpoint for way in ways if way.endpoint.startswith(REPLICAS)}
            routes = {route_name(way) for way in ways}
            self.tried_again = plans.clear_failures_elsewhere(self.store, self.planned.id, routes, replicas)
            self._take_answers()  # answers of a run that was killed before this step
            undo.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._standby.stop()
        self._held.close()
        self.store.close()

    def _stand_by(self) -> None:
        """Let other processes look at the store while this one plans or rates: nobody can where the clock jumps."""
        if not isinstance(self.clock, VirtualClock):
            self._standby.start()

    def _give_up(self, made_here: bool, kind: object, error: object, trace: object) -> None:
        """Close the store of a session that could not begin, and remove it if it was created for a refused campaign."""
        self._standby.stop()
        self._held.close()
        self.store.close()
        if made_here and (self.store.batch == 0 or isinstance(error, InputError)):
            self.store.path.unlink(missing_ok=True)

    def _steer(self, planned: PlannedCampaign) -> Steering:
        """The feedback between two rounds: ratings of the campaign's own verdicts, unless another was given."""
        if self._steering is not None:
            return self._steering
        from venire.feedback import RatingFeedback  # and scipy, 65 MB that a plan of one round does without

        chosen = any(POLICIES[phase.policy].adaptive for phase in self.campaign.plan.phases)
        return RatingFeedback(planned.design.models, self.campaign.plan.stop, even=chosen)

    @property
    def _battles(self) -> Sequence[Pick] | None:
        return None if self._given is None else self._given.battles

    @property
    def role(self) -> str:
        """The role of its respondents: judge, contestant where completions are generated, or editor of completions."""
        if self.campaign.asks_contestants:
            return "contestant"
        return "editor" if self.campaign.asks_editors else "judge"

    @property
    def again(self) -> str:
        """The command that goes on with this campaign, with the options that it was begun with."""
        return self._command(self._options)

    def _command(self, options: str) -> str:
        verb = {"contestant": "generate", "editor": "edit"}.get(self.role, "run")
        return f"venire {verb} {shlex.quote(os.path.relpath(self.campaign.path))} {options}".rstrip()

    @property
    def lasting(self) -> str:
        """Of its options those that say who asks what, for whoever has the store alone."""
        shard = "" if self.shard is None else self.shard.options(self.shard.taken)
        return f"{shard} {'' if self.crew is None else self.crew.options}".strip()

    @property
    def left_with_actors(self) -> str | None:
        """What actors of a cluster may have that this run is about to ask again, in a sentence; None: nothing."""
        before = plans.last_options(self.store, self.planned.id)
        there, here = cluster_of(before), cluster_of(self.lasting)
        if there is None or here in (there, "auto") or (there == "auto" and here is not None):
            return None
        if not (lost := plans.lost_since_start(self.store, self.planned.id)):
            return None
        return (
            f"{'1 call' if lost == 1 else f'{lost:,} calls'} of the last run may be answered: the actors of the Ray "
            f"cluster at {there} keep answers for twelve hours. To take them in, and not ask and pay again: "
            f"{self._command(before)}"
        )

    def forecast(self) -> Forecast:
        """What is done and paid, and the remaining work by judge, with its cost."""
        return forecast(self.store, self.planned, self._asked_at)

    def forecast_long(self) -> tuple[LongForecast, ...]:
        """The remaining prompts that are too long for the judge, by judge."""
        return forecast_long(self.store, self.planned)

    def design_space(self) -> DesignSpace:
        """The models and instructions of its plan, with all battles that there may be."""
        if self.rounds is not None:
            return self.rounds.space
        return read_space(self.store, self._known(), self.planned, self.funds())

    def funds(self) -> Funds:
        """What its judges may still spend, and what their calls take."""
        return read_funds(self.store, self._known(), self._asked_at)

    def _known(self) -> plans.KnownCampaign:
        return plans.known_campaign(self.store, self.campaign, respondents(self.campaign))

    def oversized(self) -> tuple[OversizedText, ...]:
        """The texts that the plan leaves out since no budget covers a call about them."""
        found = left_out(self.store, self.campaign, self._asked_at, self._battles)
        if self._battles is not None:  # an instruction may stand in battles that are planned, too
            return found
        return tuple(one for one in found if one.instruction not in self.planned.design.instructions)

    @property
    def progress(self) -> frames.Progress:
        """Trials planned, settled and failed."""
        return frames.progress(self.store, self.planned.id, self.planned.only)

    @property
    def asks_more(self) -> bool:
        """Whether a run asks anything: trials are missing, or a round follows."""
        return bool(self.progress.missing) or (self.rounds is not None and self.rounds.stopped is None)

    @property
    def spending(self) -> frames.CampaignSpending:
        """What the campaign has paid so far."""
        return frames.campaign_spending(self.store, self.planned.id)

    def retry_failed(self) -> int:
        """Allow steps that used up their attempts to be asked again; return how many there are."""
        return plans.clear_failures(self.store, self.planned.id)

    def board(self) -> Board:
        """The ratings of the models and the consistency of the judges, from the settled trials."""
        from venire.reports.board.stored import choose_campaign, read_campaign

        return read_campaign(self.store, choose_campaign(self.store, self.campaign.name)).board()

    @spelled_out(HostKeywords, RunHost)
    def run(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        embedded: Embedded | None = None,
        progress: Callable[[Statistics], None] | None = None,
        warn: Callable[[str], None] | None = None,
        events: Events | None = None,
        on_analysis: OnAnalysis | None = None,
        polling: Polling | None = None,
        live: bool = False,
        **host: Unpack[HostKeywords],
    ) -> CampaignSummary:
        """Run all missing and newly planned trials; return when they are settled or the run has a reason to stop.

        Keys come from `environ` (None: this process's). Ctrl-C or SIGTERM stops the run gently, a second signal at
        once. Endpoints are tested before any money is spent: InputError for an unusable endpoint. Raises StoreError
        when the store fails. With a virtual clock, the run uses that clock's event loop and does not serve live
        queries. `ready` is called once with a function that stops the run gently and may be called from any thread.
        With `guard` the run serves its pages where that says, and `announce` gets their address. `polling` says how
        batches are waited for; `live` asks their calls one by one instead.
        """
        campaign_run = CampaignRun(
            self.store,
            self.campaign,
            self.planned,
            self.rounds,
            self.clock,
            self._judges_left(),
            prices=self.prices,
            batch_prices=self.batch_prices,
            crew=self.crew,
            lasting=self.lasting,
            wishes=RunWishes(environ, embedded or Embedded(), progress, warn, events, on_analysis, polling, live),
            host=RunHost(**host),
            listens=self._standby.stop,
        )
        try:
            summary = campaign_run.run()
        finally:
            self._stand_by()
        self.planned = self.planned if self.rounds is None else self.rounds.planned
        self._take_answers()
        return summary

    def _take_answers(self) -> None:
        """Turn the contestants' answers into completions, and those of editors into edited copies."""
        if self.campaign.writes:
            take_answers(self.store, self.campaign, self.planned)

    def _refuse_unanswered(self) -> None:
        """Refuse to judge before the file's contestants were asked: they would be left out silently."""
        if self.campaign.asks_contestants:
            return
        there = {one.model for one in importing.contestants(self.store)}
        if left := [one.name for one in self.campaign.contestants if one.name not in there]:
            raise InputError(
                f"{self.campaign.path}: contestant {left[0]!r} has no completions yet: ask it first with "
                f"`venire generate {self.campaign.path.name}`"
            )

    def _judges_left(self) -> list[JudgeSettings]:
        """The judges that have calls left, or may have some in a later round."""
        standing = frames.judge_progress(self.store, self.planned.id)
        left = {name for name, one in standing.items() if one.missing}
        if self.rounds is not None and (left or self.rounds.stopped is None):
            left |= set(self.campaign.pair_judges)
        if submissions.open_submissions(self.store, self.planned.id):  # what is out is collected, whoever asked for it
            left |= {judge.name for judge in self.campaign.judges if judge.lane.batch is not None}
        return [judge for judge in self.campaign.judges if judge.name in left]

    def _refuse_change(self) -> None:
        known = plans.find_campaign(self.store, self.campaign.name)
        if known is None or known.settings == self.campaign.settings or self._amend or known.calls == 0:
            return
        changed = difference(known.text, self.campaign.text)
        raise InputError(
            f"{self.campaign.path}{'' if changed else ' or a file that it names'} has changed since campaign "
            f"{self.campaign.name!r} made {known.calls} calls:\n\n"
            f"{changed or 'its own text is the same: look at the tables and texts that its judges name'}\n\n"
            "Put the file back, give the changed campaign another name, or go on with the changes with --amend."
        )

    def _import(self) -> Mapping[str, Added]:
        data = self.campaign.data
        asked = self.store.read("counts")[0][4] > 0
        found: dict[str, Added] = {}
        for kind, path in data_tables(data):
            columns = (data.maps or {}).get(kind, {})
            try:
                if kind == "elo":
                    records = tables.read(path, kind, columns)
                    found[kind] = importing.add(self.store, records, change_ratings=self._amend or not asked)
                else:
                    found[kind] = importing.add_file(self.store, path, kind, columns)
            except MissingColumnError as error:
                raise InputError(
                    f"{error.sentence}. Where another column holds it, write below [data.map] in {self.campaign.path}: "
                    f'{kind} = {{ {error.ours} = "{error.hint}" }}'
                ) from None
        for given in () if self._given is None else self._given.records:
            importing.add(self.store, given)
        ratings = [Rating(one.name, one.elo) for one in self.campaign.contestants if one.elo is not None]
        importing.add(self.store, ratings, change_ratings=self._amend or not asked)
        importing.set_families(self.store, data.families or {})
        return found
