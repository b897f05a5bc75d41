"""The stores that pages are made of: opened when somebody looks, read only, and closed when nobody does any more."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from venire.arena.errors import InputError, StoreHeldError, VenireError
from venire.conversations import conversation_reader
from venire.live.client import Owner
from venire.pages.addresses import Links
from venire.pages.context import Kept, PageContext
from venire.status import spending_document
from venire.storage.plans.rounds import rounds_document
from venire.storage.read import frames
from venire.storage.read.trial_details import TrialDetail
from venire.storage.read.trial_table import TrialTable
from venire.storage.store.opening import open_store, open_unchanged
from venire.storage.store.store import Store

IDLE_SECONDS = 30.0
"""How long a store at rest stays open after the last look."""

_RESPITE_SECONDS = 1.0
"""How long a store that was given up for another process is left to it."""

_LAST_SECONDS = 10.0
"""How long whoever still reads a store is waited for when pages end."""

_MEMORY = "400MB"
"""What DuckDB may use of a store that is only looked at."""


class NotYetError(InputError):
    """There is nothing to show, and there is going to be when a run has begun."""


class ServedStore:
    """One store and what pages keep of it: the one of a run in this process, or one at rest."""

    def __init__(self, path: Path, slug: str, running: Store | None = None) -> None:
        self.path, self.slug = path, slug
        self.running = running
        self._door = threading.Condition(threading.RLock())
        self._open: ExitStack | None = None
        self._store: Store | None = running
        self._users = 0
        self._reopening = False
        self._left_at = monotonic()
        self._given_up_at = -_RESPITE_SECONDS
        self._tables: dict[int, TrialTable] = {}
        self._readers: dict[int, Callable[[Sequence[TrialDetail]], Mapping[int, Mapping[str, Any]]]] = {}
        self._kept: dict[tuple[int, str], Kept] = {}
        self._campaigns_of: tuple[int, Sequence[frames.CampaignRow]] = -1, ()

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The open store, which stays open at least as long as it is used.

        Raises InputError and StoreHeldError as `open_unchanged` does, NotYetError without a file, and StoreHeldError
        where another file has come to its place, until nobody reads from the one that was opened.
        """
        with self._door:
            self._door.wait_for(lambda: not self._reopening)
            if self._is_replaced():
                if self._users:
                    raise StoreHeldError(f"the store {self.path} was replaced, and what was there is still being read")
                self._close()
            if self._store is None:
                if monotonic() - self._given_up_at < _RESPITE_SECONDS:
                    raise StoreHeldError(f"the store {self.path} was just given to another process")
                if not self.path.exists():
                    raise NotYetError(f"there is no store {self.path} yet: `venire run FILE` makes one")
                self._open = ExitStack()
                self._store = self._open.enter_context(open_unchanged(self.path))
                self._store.limit_memory(_MEMORY)
            self._users += 1
            store = self._store
        try:
            yield store
        finally:
            with self._door:
                self._users -= 1
                self._left_at = monotonic()
                self._door.notify_all()

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """The store opened to be written, from now on for whoever looks as well, and until it is idle.

        A store that is open to be read alone is closed first, once nobody reads from it; who comes meanwhile waits.
        Raises StoreHeldError where another process has it, or where it is read for longer than some seconds, and
        InputError as `open_store` does and for the store of a run in this process.
        """
        if self.running is not None:
            raise InputError("people cannot vote while the campaign runs in this process")
        with ExitStack() as stack:
            with self._door:
                if self._store is not None and (self._store.is_only_read or self._store.is_elsewhere()):
                    self._close_after_readers()
                if self._store is None:
                    opened = ExitStack()
                    store = opened.enter_context(open_store(self.path.resolve(), create=False, shows=True))
                    store.limit_memory(_MEMORY)
                    self._open, self._store = opened, store
                store = stack.enter_context(self.store())
            yield store

    def _close_after_readers(self) -> None:
        """Close the store when its last reader has left."""
        self._reopening = True
        try:
            if not self._door.wait_for(lambda: not self._users, _LAST_SECONDS):
                raise StoreHeldError(f"the store {self.path} is being read for a page: try again in a moment")
            self._close()
        finally:
            self._reopening = False
            self._door.notify_all()

    def is_free(self) -> bool:
        """Whether no other process holds the store: opened here, it stays open for whoever looks next."""
        try:
            with self.store():
                return True
        except StoreHeldError:
            return False
        except VenireError:
            return True

    def is_wanted(self) -> bool:
        """Whether another process waits for this store, which is open to be looked at, or whoever asks for the file
        that came to its place; asked without waiting.
        """
        store = self._store
        return store is not None and self.running is None and (store.is_wanted() or store.is_elsewhere())

    def give_up(self) -> None:
        """Close a store that is wanted, once nobody reads from it."""
        with self._door, suppress(StoreHeldError):  # it is asked again as long as it is wanted
            if self.is_wanted():
                was_replaced = self._is_replaced()
                self._close_after_readers()
                if not was_replaced:
                    self._given_up_at = monotonic()

    def _is_replaced(self) -> bool:
        """Whether the path names another file than the one that is open, or none."""
        return self._store is not None and self.running is None and self._store.is_elsewhere()

    def close_if_idle(self, seconds: float = IDLE_SECONDS) -> None:
        """Close a store at rest that nobody has looked at for so long."""
        with self._door:
            if self._open is not None and not self._users and monotonic() - self._left_at >= seconds:
                self._close()

    def close(self) -> None:
        """Close a store at rest once nobody reads from it any more; that of a run is its own affair."""
        with self._door:
            self._door.wait_for(lambda: not self._users, _LAST_SECONDS)
            self._close()

    def _close(self) -> None:
        self._tables, self._readers, self._kept = {}, {}, {}
        self._campaigns_of = -1, ()
        if self._open is not None:
            opened, self._open, self._store = self._open, None, None
            opened.close()

    def _campaigns(self, store: Store) -> Sequence[frames.CampaignRow]:
        """The campaigns of the store, read again when anything was committed."""
        batch, there = self._campaigns_of
        if batch != store.batch:
            batch = store.batch
            there = frames.campaigns(store)
            self._campaigns_of = batch, there
        return there

    def context(
        self, store: Store, campaign: int, *, token: str, live: Mapping[str, Any] | None, votable: bool = False
    ) -> PageContext:
        """What a page of a campaign needs; its table is to be refreshed before it is read.

        Raises InputError for a campaign that is not there, StoreError where the store cannot be read.
        """
        campaigns = self._campaigns(store)
        chosen = next((one for one in campaigns if one.id == campaign), None)
        if chosen is None:
            raise InputError(f"the store {store.path} has no campaign number {campaign}")
        with self._door:
            table = self._tables.setdefault(campaign, TrialTable(store, campaign))
            reader = self._readers.get(campaign)
            if reader is None:
                reader = self._readers[campaign] = conversation_reader(store, campaign)
        mine = live if live is not None and live.get("campaign") == chosen.name else None
        return PageContext(
            store,
            chosen,
            campaigns,
            table,
            Links(self.slug, campaign),
            token=token,
            live=mine,
            conversations=reader,
            plan=partial(rounds_document, store, campaign),
            forecast=partial(spending_document, store, campaign),
            kept=self._kept,
            holding=self.store,
            votable=votable,
            follows=self.running is None,
        )


class Library:
    """Stores by the short name that addresses use."""

    def __init__(self, stores: Sequence[ServedStore]) -> None:
        self.stores = {one.slug: one for one in stores}

    @classmethod
    def of_paths(cls, paths: Sequence[Path]) -> Library:
        """The stores at some paths; a path that is named twice is served once."""
        found: dict[Path, ServedStore] = {}
        taken: set[str] = set()
        for path in paths:
            real = path.resolve()
            if real not in found:
                found[real] = ServedStore(path, _slug(path, taken))
        return cls(tuple(found.values()))

    @classmethod
    def of_run(cls, store: Store) -> Library:
        """The store of a run in this process."""
        return cls((ServedStore(store.path, _slug(store.path, set()), store),))

    def answer_to(self, slug: str) -> None:
        """Let the store of a run be asked for by a name that another process gave it."""
        for served in [one for one in self.stores.values() if one.running is not None and slug not in self.stores]:
            self.stores[slug] = ServedStore(served.path, slug, served.running)

    def find(self, slug: str) -> ServedStore:
        """A store by its short name. Raises InputError for another name."""
        if slug not in self.stores:
            raise InputError("there is no such store here")
        return self.stores[slug]

    def overview(self, live: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        """Every store with its campaigns, or why it cannot be opened."""
        found = []
        for one in self.stores.values():
            facts: dict[str, Any] = {"slug": one.slug, "path": str(one.path), "problem": None, "live": live is not None}
            try:
                with one.store() as store:
                    counts = store.read("counts")[0]
                    facts |= {"campaigns": frames.campaigns(store), "verdicts": counts[5]}
            except StoreHeldError as error:
                facts |= _held_facts(one.path, str(error))
            except VenireError as error:
                facts |= {"problem": str(error), "campaigns": (), "verdicts": None}
            found.append(facts)
        return found

    def close(self) -> None:
        """Close all stores at rest."""
        for one in self.stores.values():
            one.close()


def _held_facts(path: Path, problem: str) -> dict[str, Any]:
    """What the list of stores says of one that another process holds: of a run, its campaign."""
    try:
        live = Owner(path).live()
    except VenireError:
        live = None
    if live is None:
        return {"problem": problem, "campaigns": (), "verdicts": None}
    return {"live": True, "campaigns": ({"id": None, "name": live["campaign"]},), "verdicts": live["settled"]}


def _slug(path: Path, taken: set[str]) -> str:
    """A short name for a path: its stem, or its folder's where that says more."""
    stem = path.stem if path.stem != "campaign" or not path.resolve().parent.name else path.resolve().parent.name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:40] or "store"
    slug, number = plain, 1
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    taken.add(slug)
    return slug
