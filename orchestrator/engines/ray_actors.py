"""Actors of a Ray cluster that ask for a campaign: started, found again by name, spoken to, and ended.

They are detached: one whose coordinator is killed keeps its reports, and the next coordinator of the same store
goes on with it. Ray restarts an actor whose process ends, and repeats no call of its own accord: a repeated call would
be paid twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from venire.arena.campaigns import CampaignSettings
from venire.arena.clock import Clock
from venire.arena.errors import InputError, VenireError
from venire.orchestrator.engines.asker import Asker
from venire.orchestrator.engines.messages import Begun, Down, Link, LinkLostError, Setup, Up
from venire.orchestrator.engines.ray_cluster import NAMESPACE, Connection, EngineChoice, connection
from venire.orchestrator.engines.ray_replicas import with_replicas
from venire.orchestrator.engines.remote import LEASE_SECONDS, OpenProviders, RemoteEngine
from venire.orchestrator.recording.events import Events
from venire.storage.store.files import StoreLock
from venire.storage.store.journal import read_journal

_STAND_BY_SECONDS = 5.0
"""For which an actor of a coordinator that is gone may take to answer; then it is ended."""
_STARTS = 10
"""For how often a run starts its own cluster again: each time the calls in flight are lost."""
_PREFIX = "asker"
_FORGOTTEN_SECONDS = 43_200.0
"""After which an actor ends that no coordinator speaks to."""


class RayCrew:
    """The actors that ask for one store. Made by `ray_crew`."""

    def __init__(
        self, connected: Connection, choice: EngineChoice, campaign: str, number: int | None, lease_seconds: float
    ) -> None:
        self._connection, self.ray, self._choice, self._campaign = connected, connected.ray, choice, campaign
        self.lease_seconds = lease_seconds
        self._links: list[_RayLink] = []
        self._survivors: dict[Link, Begun] = {}
        self._given = number
        self.number = number or max(1, sum(bool(node["Alive"]) for node in self.ray.nodes()))
        """How many actors there are to be."""
        self._starts = 0
        self._starting = asyncio.Lock()
        self._warn: Callable[[str], None] = lambda sentence: None

    @property
    def address(self) -> str | None:
        """Where the cluster is; None for one that ends with this process, and its actors with it."""
        return self._choice.address

    @property
    def options(self) -> str:
        """The options of a command that has these actors ask."""
        number = "" if self._given is None else f" --actors {self._given}"
        lease = "" if self.lease_seconds == LEASE_SECONDS else f" --lease {self.lease_seconds:g}s"
        return f"--engine {self._choice}{number}{lease}"

    @property
    def survivors(self) -> Mapping[Link, Begun]:
        """Actors of a coordinator that is gone, with what they have."""
        return self._survivors

    @property
    def under_way(self) -> frozenset[tuple[int, int, int]]:
        """Trial, step and number of every call that these have in flight, or an answer to."""
        found: set[tuple[int, int, int]] = set()
        for begun in self._survivors.values():
            found.update((one.trial, one.step, one.number) for one in begun.out.values())
            said = [one.record for one in begun.unacknowledged]
            found.update((record.trial, record.step, record.number) for record in said)
        return frozenset(found)

    @property
    def description(self) -> str:
        """How many actors ask, where, and what they have of a run before, in a sentence."""
        nodes = sum(bool(node["Alive"]) for node in self.ray.nodes())
        said = f"{_counted(self.number, 'actor')} of a Ray cluster of {_counted(nodes, 'node')} will ask"
        if self._survivors:
            calls = sum(len(begun.out) + len(begun.unacknowledged) for begun in self._survivors.values())
            said += f"; {len(self._survivors):,} are left of the last run, with {_counted(calls, 'call')} under way"
        return said

    def with_replicas(self, campaign: CampaignSettings, warn: Callable[[str], None] | None = None) -> CampaignSettings:
        """The campaign with a route to each replica in this cluster; see `ray_replicas.with_replicas`."""
        return with_replicas(campaign, self.ray, warn)

    def find(self, store_id: bytes) -> None:
        """Tell all actors of a store that are not known yet to stand by; one that does not answer is ended."""
        prefix = f"{_PREFIX}-{store_id.hex()}-"
        known = {link.full_name for link in self._links}
        for found in self.ray.util.list_named_actors(all_namespaces=True):
            name = found["name"]
            if found["namespace"] != NAMESPACE or not name.startswith(prefix) or name in known:
                continue
            with suppress(ValueError):  # it ended meanwhile
                link = _RayLink(self, self.ray.get_actor(name, namespace=NAMESPACE), name)
                begun = link.stand_by(_STAND_BY_SECONDS)
                if begun is None or begun.campaign not in (None, self._campaign):
                    link.end()  # what it had of another campaign counts there, from the journal
                else:
                    self._links.append(link)
                    self._survivors[link] = begun

    def hire(self, store_id: bytes) -> Sequence[Link]:
        """All actors of a store: those that are there, and as many new ones as are wanted."""
        self.find(store_id)
        while len(self._links) < self.number:
            name = f"{_PREFIX}-{store_id.hex()}-{uuid4().hex[:8]}"
            self._links.append(_RayLink(self, self._actor(name), name))
        return tuple(self._links)

    def _actor(self, name: str) -> Any:
        remote = self.ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)(RayAsker)
        options = {"lifetime": "detached", "namespace": NAMESPACE, "scheduling_strategy": "SPREAD"}
        return remote.options(name=name, **options).remote()

    async def start_again(self) -> None:
        """Start the cluster again where it is ours, is broken, and no actor answers; else do nothing.

        As long as one actor answers it goes on alone: to end the cluster would lose its calls in flight.
        """
        async with self._starting:
            lost = all(link.lost for link in self._links)
            if not lost or self._starts == _STARTS or not self._connection.is_broken:
                return
            self._starts += 1
            self._warn("warning: a process of the Ray cluster that this run started has ended: it is started again")
            try:
                await asyncio.to_thread(self._connection.start)
            except InputError as error:
                self._warn(f"warning: {error}")
                return
            for link in self._links:
                link.handle, link.lost = self._actor(link.full_name), False

    def engine(
        self,
        store_id: bytes,
        campaign: CampaignSettings,
        open_providers: OpenProviders,
        *,
        clock: Clock,
        events: Events,
        warn: Callable[[str], None] | None,
    ) -> RemoteEngine:
        """The engine that has these actors ask."""
        links = self.hire(store_id)
        self._warn = warn or self._warn
        survivors, self._survivors = self._survivors, {}
        return RemoteEngine(
            links,
            campaign,
            open_providers,
            clock=clock,
            events=events,
            warn=warn,
            lease_seconds=self.lease_seconds,
            survivors=survivors,
        )

    def close(self) -> None:
        """End all actors that a run had ask; of those that only stand by, what they have is for the next run."""
        for link in self._links:
            if link not in self._survivors:
                link.end()


@contextmanager
def ray_crew(
    choice: EngineChoice,
    store: Path,
    campaign: str,
    *,
    number: int | None = None,
    lease_seconds: float = LEASE_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> Iterator[RayCrew]:
    """Actors of a cluster for a store, while the context lasts; those that a killed run of it left are found first.

    Those of another campaign in the store are ended. `number` None: one a node. `environ` are variables for the
    processes of a cluster that is started here. Raises as `cluster` does, and StoreHeldError where another process owns
    the store.
    """
    with connection(choice, environ) as connected:
        crew = RayCrew(connected, choice, campaign, number, lease_seconds)
        if store.exists():
            lock = StoreLock.acquire(store)  # those of a run that goes on are not to be disturbed
            try:
                if (left := read_journal(store)) is not None:
                    crew.find(left.store_id)
            finally:
                lock.release()
        try:
            yield crew
        finally:
            crew.close()


class RayAsker(Asker):
    """An asker in an actor, which ends by itself where no coordinator comes back for long."""

    def __init__(self) -> None:
        super().__init__()
        self._last_call = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    async def begin(self, lease: int, setup: Setup | None) -> Begun:
        """See `Asker.begin`."""
        self._last_call = time.monotonic()
        if self._watch is None:
            self._watch = asyncio.create_task(self._end_when_forgotten())
        return await super().begin(lease, setup)

    async def exchange(self, down: Down) -> Up:
        """See `Asker.exchange`."""
        self._last_call = time.monotonic()
        return await super().exchange(down)

    async def _end_when_forgotten(self) -> None:
        import ray

        left = _FORGOTTEN_SECONDS
        while left > 0:
            await asyncio.sleep(left)
            left = self._last_call + _FORGOTTEN_SECONDS - time.monotonic()
        ray.kill(ray.get_runtime_context().current_actor)


class _RayLink:
    """The way to one actor of a cluster; see `messages.Link`."""

    def __init__(self, crew: RayCrew, handle: Any, name: str) -> None:
        self._crew, self._ray = crew, crew.ray
        self.handle = handle
        self.lost = False
        """Whether its last call was."""
        self.full_name = name
        """In the cluster."""
        self.name = name.rpartition("-")[2]

    async def begin(self, lease: int, setup: Setup | None) -> Begun:
        """See `Link.begin`."""
        if self.lost:
            await self._crew.start_again()
        begun: Begun = await self._answer(lambda: self.handle.begin.remote(lease, setup))
        return begun

    async def exchange(self, down: Down) -> Up:
        """See `Link.exchange`."""
        up: Up = await self._answer(lambda: self.handle.exchange.remote(down))
        return up

    async def _answer(self, call: Callable[[], Any]) -> Any:
        exceptions = self._ray.exceptions
        try:
            answer = await call()
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, VenireError):
                raise error.cause from None
            raise
        except exceptions.RayError as error:
            self.lost = True
            raise LinkLostError(_reason(error)) from None
        self.lost = False
        return answer

    def stand_by(self, seconds: float) -> Begun | None:
        """Have the actor end its lease; None where it does not answer in time."""
        try:
            begun: Begun = self._ray.get(self.handle.begin.remote(0, None), timeout=seconds)
        except (self._ray.exceptions.RayError, AttributeError, ImportError):  # or it is of another version of Venire
            return None
        return begun

    async def kill(self) -> None:
        """See `Link.kill`; Ray starts another process for it."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self.handle, no_restart=False)

    def end(self) -> None:
        """End the actor for good."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(self.handle)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _reason(error: Exception) -> str:
    """What happened to an actor, in few words."""
    name = type(error).__name__
    if name == "ActorUnavailableError":
        return "cannot be reached, or its process has ended"
    return "was lost: its process or its node has ended" if name == "ActorDiedError" else f"was lost ({name})"
