"""Taking over other shards of a campaign: what they spent and sent lately is the taker's, together with their trials.

The stores of all shards of a campaign form groups: one of each may spend, the others were claimed by it, directly or
through one that it claimed, and are only read. A claim is in the claimed store, which no two can open at once, before
the taker spends anything; it brings all that the claimed one had claimed, so groups only ever grow together. The one
that spends counts what all of its group spent against the parts of all of them. So no sequence of claims, kills and
starts passes the whole. Of a shard whose store is not here nobody knows what it spent, or whether it still does: its
trials can be asked, but its part of budgets and limits stays its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from venire.arena.campaigns import CampaignSettings
from venire.arena.errors import InputError
from venire.orchestrator.costs.budget import without_spent
from venire.orchestrator.lanes.routes import route_name
from venire.orchestrator.planning.amending import rounds_stay
from venire.orchestrator.planning.respondents import respondents
from venire.orchestrator.planning.sharding import Shard, shard_trials, sharded
from venire.storage.plans import claims, plans, submissions
from venire.storage.plans.plans import SentLately
from venire.storage.read import frames
from venire.storage.store.files import StoreLock
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store


@dataclass(frozen=True, slots=True)
class Takeover:
    """What a shard asks and may spend, with all that it has taken over; money in nano-dollars."""

    campaign: CampaignSettings
    """With its parts of budgets, less what the others spent of them, and its parts of limits."""
    shard: Shard
    taken: tuple[int, ...] = ()
    """The shards whose parts are its own now."""
    absent: tuple[int, ...] = ()
    """Shards whose trials are asked within its own parts, since their stores are not here."""
    accounts: Mapping[int, frames.CampaignSpending] = field(default_factory=lambda: MappingProxyType({}))
    """What each of those that were taken spent, by its number."""
    sent: Mapping[str, SentLately] = field(default_factory=lambda: MappingProxyType({}))
    """What those that were taken sent of late, by route name."""
    settled: frozenset[bytes] = frozenset()
    """Keys of the trials that those that were taken have settled."""

    @property
    def part(self) -> Fraction:
        """Its part of budgets and limits."""
        return Fraction(1 + len(self.taken), self.shard.of)

    @property
    def spent(self) -> int:
        """By those that were taken, what is set aside for calls without an answer included."""
        return sum(one.nano for one in self.accounts.values())

    def trials(self, store: Store, campaign: int) -> frozenset[int]:
        """Numbers of the trials that it asks: those of its parts, but what others have settled."""
        elsewhere = {trial for (trial,) in store.read("trials_of_keys", keys=list(self.settled))}
        asked = (self.shard.number, *self.taken, *self.absent)
        return shard_trials(store, campaign, self.shard.of, asked) - elsewhere


def take_over(
    store: Store, campaign: CampaignSettings, shard: Shard, held: ExitStack, *, amend: bool = False
) -> Takeover:
    """Claim the shards that are to be taken over, and all that they or this one had claimed before.

    `store` is the shard's own and `campaign` the whole one, beside whose store those of all shards lie. Shards whose
    stores are not there are held by `held`, so that nobody else takes them meanwhile. `amend`: a file that changed
    since another made calls is accepted for it.

    Raises InputError where this shard was itself taken over, or another by a third, where batches of one are out, and
    where a store that was claimed is gone; StoreHeldError where one is in use.
    """
    name, own = campaign.name, claims.owner(store, campaign.name)
    if not shard.taken:
        _refuse_own_claimed(shard, own, [shard.number])
    with ExitStack() as stack:
        opened, absent = _open_group(store, campaign, shard, stack)
        _drop_returned(opened, name, shard)
        _refuse_own_claimed(shard, own, [shard.number, *opened])
        _refuse_claimed(opened, name, shard)
        for number in absent:
            held.callback(StoreLock.acquire(shard.store(campaign.store, number)).release)
        for number, other in opened.items():
            _refuse_batches(other, name, shard, number)
            if not amend and claims.owner(other, name) != shard.number:
                _refuse_change(other, campaign, shard, number)
        for other in opened.values():
            if claims.owner(other, name) != shard.number:
                claims.assign(other, name, shard.number)
        if opened.keys() - claims.taken_over(store, name):
            claims.note_taken(store, name, sorted(opened))
        if own not in (None, shard.number):  # taken back, with all that its taker had
            claims.assign(store, name, shard.number)
        for other in opened.values():
            _amend(other, campaign)
        return _brought(campaign, shard, opened, absent)


def _open_group(
    store: Store, campaign: CampaignSettings, shard: Shard, stack: ExitStack
) -> tuple[dict[int, Store], tuple[int, ...]]:
    """The stores of all shards that come with this one, by number, and the shards to be taken that have none here."""
    opened: dict[int, Store] = {}
    absent: list[int] = []
    noted = set(claims.taken_over(store, campaign.name))
    left = deque((*shard.taken, *sorted(noted)))
    while left:
        number = left.popleft()
        if number == shard.number or number in opened or number in absent:
            continue
        path = shard.store(campaign.store, number)
        if path.exists():
            opened[number] = stack.enter_context(open_store(path, create=False, clock=store.clock))
            more = claims.taken_over(opened[number], campaign.name)
            noted |= more
            left.extend(sorted(more))
        elif number in noted:
            raise InputError(
                f"shard {number} of {shard.of} was taken over, and its store {path}, which says what it spent, is not "
                "there any more: put it back"
            )
        else:
            absent.append(number)
    return opened, tuple(absent)


def _drop_returned(opened: dict[int, Store], name: str, shard: Shard) -> None:
    """Drop shards that came along and are not this group's any more: another took them, with all that it took."""
    owners = {number: claims.owner(other, name) for number, other in opened.items()}
    while True:
        group = {shard.number, *opened}
        gone = [
            number
            for number in opened.keys() - set(shard.taken)
            if owners[number] in (None, number) or owners[number] not in group
        ]
        if not gone:
            return
        for number in gone:
            del opened[number]


def _refuse_own_claimed(shard: Shard, owner: int | None, group: Collection[int]) -> None:
    if owner is not None and owner not in group:
        raise InputError(
            f"shard {shard.number} of {shard.of} was taken over by shard {owner}, which has its part and asks what is "
            f"left: go on with{Shard(owner, shard.of).options()}; to have all of that here:{shard.options([owner])}"
        )


def _refuse_claimed(opened: Mapping[int, Store], name: str, shard: Shard) -> None:
    """Raises InputError where one that is to be taken is another's that does not come with it."""
    for number, other in opened.items():
        owner = claims.owner(other, name)
        if owner is not None and owner not in (number, shard.number, *opened):
            raise InputError(
                f"shard {number} of {shard.of} was taken over by shard {owner} already: take that one, which has its "
                f"part:{shard.options([owner])}"
            )


def _refuse_batches(store: Store, name: str, shard: Shard, number: int) -> None:
    known = plans.find_campaign(store, name)
    if known is not None and (out := submissions.open_submissions(store, known.id)):
        calls = sum(one.lines for one in out)
        raise InputError(
            f"shard {number} of {shard.of} has {calls:,} calls out in batches, which only it can collect: run it with "
            f"--shard {number}/{shard.of} until they are, then take what it has left"
        )


def _refuse_change(store: Store, campaign: CampaignSettings, shard: Shard, number: int) -> None:
    known = plans.find_campaign(store, campaign.name)
    if known is not None and known.calls and known.settings != campaign.settings:
        raise InputError(
            f"{campaign.path} has changed since shard {number} of {shard.of} made {known.calls:,} calls: put the file "
            "back, or take that shard with the changes with --amend"
        )


def _amend(store: Store, campaign: CampaignSettings) -> None:
    """Bring a store that was claimed to the file that its taker goes on with, or they could not be merged."""
    known = plans.find_campaign(store, campaign.name)
    if known is None or known.settings == campaign.settings:
        return
    begun = [one.phase for one in plans.rounds(store, known.id)]
    stays = rounds_stay(known.settings, campaign.settings, begun)
    plans.register(store, campaign, respondents(campaign), (), plan_stays=stays)


def _brought(campaign: CampaignSettings, shard: Shard, opened: Mapping[int, Store], absent: Sequence[int]) -> Takeover:
    """What the stores that were claimed bring along, read while nobody else can open them."""
    judges = respondents(campaign)
    mine = sharded(campaign, shard, parts=1 + len(opened))
    routes = {route_name(route) for judge in campaign.judges for route in judge.lane.routes}
    accounts: dict[int, frames.CampaignSpending] = {}
    sent: dict[str, SentLately] = {}
    settled: set[bytes] = set()
    for number, other in opened.items():
        known = plans.find_campaign(other, campaign.name)
        if known is None:
            continue
        accounts[number] = frames.campaign_spending(other, known.id)
        mine = without_spent(mine, other, judges)
        for name in routes:
            sent[name] = sent.get(name, SentLately()) + plans.sent_lately(other, [name])
        settled |= {bytes(key) for (key,) in other.read("settled_keys")}
    taken = tuple(sorted(opened))
    return Takeover(mine, shard, taken, tuple(absent), accounts, sent, frozenset(settled))
