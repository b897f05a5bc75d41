"""What every page of a campaign needs: the store, its table of trials, addresses, and the run, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from venire.arena.errors import InputError
from venire.pages.addresses import Links
from venire.storage.read.frames import CampaignRow
from venire.storage.read.trial_details import TrialDetail
from venire.storage.read.trial_table import TrialTable
from venire.storage.store.store import Store

T = TypeVar("T")


def _absent(*choice: str) -> Any:
    raise InputError("it is not computed here")


class Kept(NamedTuple):
    """A value that was read of a store, with the batch that was the last one then, and when that was."""

    batch: int
    at: float
    value: Any


class ServedCampaign(NamedTuple):
    """A campaign of a store that is served: `address` names it among all of them, as STORE/NUMBER."""

    address: str
    name: str
    store: str
    judges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageContext:
    """A campaign of an open store, as a page shows it, and what of it is asked for.

    `number` is that of the trial, instruction or model where the page is of one; `query` the parameters of its address.
    `board` (by a method, of some judges, a line each, and of one category; the campaign's without) and `audit` make
    documents, and raise where these are not there yet; those at hand are None then. A page that is shown `meanwhile`
    gets an empty board for one that is under way.
    `compared` is the document of this campaign beside another of those `served` (some judge of this one, the address of
    the other, a judge of that), each by one judge or by all.
    `live` is the document of the run that is going on (`live.server.Pulse.whole_document`), None of a store at rest.
    `token` goes with every form that changes anything. `conversations` makes the requests of trials again from the
    record, and reads their replies by today's rules; `plan` and `forecast` are the documents of the status
    (`venire.status`). `kept` holds what pages read of the whole store, for all of them.
    """

    store: Store
    campaign: CampaignRow
    campaigns: Sequence[CampaignRow]
    table: TrialTable
    links: Links
    number: int = 0
    query: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    live: Mapping[str, Any] | None = None
    conversations: Callable[[Sequence[TrialDetail]], Mapping[int, Mapping[str, Any]]] = field(default=lambda trials: {})
    plan: Callable[[], Mapping[str, Any]] = field(default=lambda: {"looks": [], "stops_when": []})
    forecast: Callable[[], Mapping[str, Any] | None] = field(default=lambda: None)
    board: Callable[..., Mapping[str, Any]] = _absent
    board_at_hand: Callable[[], Mapping[str, Any] | None] = field(default=lambda: None)
    compared: Callable[..., Mapping[str, Any]] = _absent
    served: Callable[[], Sequence[ServedCampaign]] = field(default=lambda: ())
    audit: Callable[[], Mapping[str, Any]] = _absent
    audit_at_hand: Callable[[], Mapping[str, Any] | None] = field(default=lambda: None)
    audit_under_way: Callable[[], bool] = field(default=lambda: False)
    kept: dict[tuple[int, str], Kept] = field(default_factory=dict)
    holding: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Keeps the store open for longer than the page takes."""
    votable: bool = False
    """Whether people may vote on this server."""
    follows: bool = False
    """Whether pages at rest are told of a run that begins."""

    def memo(self, name: str, read: Callable[[], T], seconds: float = 0.0) -> T:
        """What `read` brings: the same again while nothing was committed, or for so many seconds of a run."""
        key, now = (self.campaign.id, name), monotonic()
        if self.live is not None and self.live.get("ending"):
            seconds = 0.0  # nobody will look again
        kept = self.kept.get(key)
        if kept is not None and (kept.batch == self.store.batch or now - kept.at < seconds):
            found: T = kept.value
            return found
        batch = self.store.batch
        found = read()
        self.kept[key] = Kept(batch, now, found)
        return found

    def values(self, page: str, title: str) -> dict[str, Any]:
        """What the templates' common parts show."""
        made_at = self.table.made_at
        return {
            "page": page,
            "title": title,
            "links": self.links,
            "store_name": self.store.path.name,
            "store_path": str(self.store.path),
            "campaign": self.campaign,
            "campaigns": self.campaigns,
            "live": self.live,
            "votable": self.votable,
            "follows": self.follows or self.live is not None,
            "token": self.token,
            "as_of": None if made_at is None else made_at.strftime("%H:%M:%S"),
            "is_current": self.table.is_current,
        }
