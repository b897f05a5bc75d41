"""Boards and audits for pages, computed in processes of their own: a run goes on meanwhile, and each can be cancelled.

A fit of a million verdicts takes a second or two of NumPy and 300 MB. In a thread it would hold the interpreter, and
with it the event loop that sends the calls of a running campaign. What `reports.documents.boards` has is computed here.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from venire.arena.errors import InputError, VenireError
from venire.storage.read.frames import CampaignRow
from venire.storage.store.opening import open_unchanged
from venire.storage.store.store import Store

_KEPT = 64
_AT_ONCE = 2
_GLANCE_SECONDS = 0.05
_AGAIN_SECONDS = 5.0
"""How long a fit that failed or was stopped says so, before it is made again for who asks."""
_LOG = logging.getLogger("venire.pages")
_LAST_SECONDS = 10.0
"""How long a fit may still read the store when pages are closed."""
_FITTING = "fitting"
_MEMORY = "400MB"
"""What DuckDB may use to read a store at rest."""

_NICE = 5
"""How much less pressing a fit is for the machine than a run's own process."""


@dataclass(frozen=True, slots=True)
class Work:
    """A document to be made: `read` brings what it is made of, `compute` makes it, `name` is for its key.

    `read` is called with an open store and a campaign of it (of each source) and with the `choice`, `compute` with the
    tuple that `read` returns; both are functions of a module, which a process can be sent.
    """

    name: str
    read: Callable[..., tuple[Any, ...]]
    compute: Callable[..., dict[str, Any]]
    choice: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class FitSource:
    """Where a fit reads: a campaign of a store that is open here, kept open by `holding`; and what is held `beside` it.

    A store at rest is read by the process that computes as well, which then has the memory of it; the store of a run
    can be read by its own process alone.
    """

    store: Store
    campaign: CampaignRow
    holding: Callable[[], AbstractContextManager[Any]]
    beside: FitSource | None = None

    @property
    def every(self) -> tuple[FitSource, ...]:
        """This one and what is held beside it."""
        return (self,) if self.beside is None else (self, *self.beside.every)


class _Worker:
    """A process that computes one fit after another; starting one takes a second of imports."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_compute, args=(theirs,), daemon=True, name="venire-fit")
        self._process.start()
        theirs.close()
        self.free_since = monotonic()

    def end(self) -> None:
        """End the process, whatever it is at."""
        self.pipe.close()
        self._process.terminate()
        self._process.join(5.0)


@dataclass(eq=False)
class Fit:
    """A computation under way, or its result: `document`, or the `error` in a sentence."""

    started: float = field(default_factory=monotonic)
    before: Mapping[str, Any] | None = None
    """The document that this one is to replace."""
    document: dict[str, Any] | None = None
    error: str | None = None
    ended: float | None = None
    stage: str = "reading verdicts"
    done: threading.Event = field(default_factory=threading.Event)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        """How long it has been under way, or took."""
        return (self.ended or monotonic()) - self.started

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Give it up; nothing of it is kept."""
        self._cancelled.set()

    def give_up(self) -> None:
        """End it before it was begun."""
        self.error, self.ended = "it was stopped", monotonic()
        self.done.set()

    def run(self, worker: _Worker, source: FitSource, work: Work) -> bool:
        """Have the worker compute, and keep what comes; whether the worker can go on."""
        try:
            if self._cancelled.is_set():
                self.error = "it was stopped"
                return True
            with ExitStack() as held:
                # the store that was open may have been closed and opened again
                sources = [(held.enter_context(one.holding()) or one.store, one.campaign) for one in source.every]
                if all(store.is_only_read for store, _ in sources):
                    worker.pipe.send((work, [_At.of(*one) for one in sources]))
                    return self._take(worker)
                found = work.read(*chain.from_iterable(sources), *work.choice)
            self.stage = _FITTING
            worker.pipe.send((work, found))
            del found
            return self._take(worker)
        except VenireError as error:
            self.error = str(error)
        except (EOFError, OSError):
            self.error = "its process ended before it was done"
            return False
        except Exception as error:  # a boundary: whoever waits must hear of any defect, or would wait for ever
            _LOG.warning("a fit failed", exc_info=error)
            self.error = f"it failed by a defect of Venire ({type(error).__name__}); the terminal says where"
            return False
        finally:
            self.ended = monotonic()
            self.done.set()
        return True

    def _take(self, worker: _Worker) -> bool:
        """Wait for what the worker sends; whether it can go on."""
        while True:
            while not worker.pipe.poll(_GLANCE_SECONDS):
                if self._cancelled.is_set():
                    self.error = "it was stopped"
                    return False
            kind, value = worker.pipe.recv()
            if kind == "stage":
                self.stage = value
                continue
            if kind == "document":
                self.document = value
            else:
                self.error = value
            return True


class _At(NamedTuple):
    """A campaign of a store at rest, which the sender has open as well."""

    path: Path
    constant: bytes
    scratch: Path
    campaign: CampaignRow

    @classmethod
    def of(cls, store: Store, campaign: CampaignRow) -> _At:
        """The campaign of a store that is open here."""
        assert store.scratch is not None, "a store at rest has one"
        return cls(store.path.resolve(), store.constant, Path(store.scratch.name), campaign)

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """The store. Raises InputError where another one is there by now."""
        with open_unchanged(self.path, scratch=self.scratch) as store:
            if store.constant != self.constant:
                raise InputError(f"the store {self.path} was replaced while it was looked at")
            store.limit_memory(_MEMORY)
            yield store


def _read(places: Sequence[_At], work: Work) -> tuple[Any, ...]:
    """What a document is made of; a store named twice is opened once. Raises InputError as `_At.opened` does."""
    stores: dict[Path, Store] = {}
    with ExitStack() as opened:
        for one in places:
            if one.path not in stores:
                stores[one.path] = opened.enter_context(one.opened())
        return work.read(*chain.from_iterable((stores[one.path], one.campaign) for one in places), *work.choice)


def _compute(pipe: Connection) -> None:
    """The whole of a worker's process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever serves the pages, who then ends this
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    import venire.reports.board.rate  # noqa: F401  scipy and all, before the first fit is asked for

    is_nice = False
    while True:
        try:
            work, found = pipe.recv()
            if isinstance(found, list):
                found = _read(found, work)
                pipe.send(("stage", _FITTING))
            elif not is_nice:  # it is of a run, which has the first right to the machine
                with suppress(OSError):
                    os.nice(_NICE)
                is_nice = True
            pipe.send(("document", work.compute(*found)))
            del found
        except VenireError as error:
            pipe.send(("error", str(error)))
        except MemoryError:
            pipe.send(("error", "it needs more memory than there is"))
        except (EOFError, OSError):
            return


class Fits:
    """Fits by key: one for all who ask, the latest kept; a key names all that the result depends on.

    A fit of a store that is written is stale as soon as it is there, and made again for who asks. One that was made
    again is shown all the same, `patience` seconds or so many `times` as long as it took: those who wait for it would
    else never see any while others write.
    """

    def __init__(self) -> None:
        self._door = threading.Lock()
        self._turn = threading.Semaphore(_AT_ONCE)
        self._free: list[_Worker] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._known: OrderedDict[tuple[Any, ...], tuple[tuple[int, ...], Fit]] = OrderedDict()

    def get(
        self, key: tuple[Any, ...], source: FitSource, work: Work, *, patience: float = 2.0, times: float = 0.0
    ) -> Fit:
        """The fit of a key: the one that is there or under way, else begun now, where it is stale for too long too."""
        batch = tuple(one.store.batch for one in source.every)
        with self._door:
            there, before = self._known.get(key), None
            if there is not None:
                made_of, fit = there
                before = fit.document or fit.before
                age = 0.0 if fit.ended is None else monotonic() - fit.ended
                failed = fit.error is not None and age > _AGAIN_SECONDS
                stale = fit.before is None or age >= max(patience, times * fit.seconds)
                old = fit.done.is_set() and made_of != batch and stale
                if not (failed or old):
                    self._known.move_to_end(key)
                    return fit
            fit = Fit(before=before)
            self._known[key] = batch, fit
            while len(self._known) > _KEPT:
                _, (_, gone) = self._known.popitem(last=False)
                gone.cancel()
        thread = threading.Thread(target=self._run, args=(fit, source, work), name="venire-fit", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()
        return fit

    def _run(self, fit: Fit, source: FitSource, work: Work) -> None:
        with self._turn:
            if fit.is_cancelled:
                fit.give_up()
                return
            with self._door:
                worker = self._free.pop() if self._free else None
            worker = worker or _Worker()
            if not fit.run(worker, source, work) or self._closed:
                worker.end()
                return
            worker.free_since = monotonic()
            with self._door:
                self._free.append(worker)

    def warm(self) -> None:
        """Start a worker for the first fit that is asked for."""
        with self._door:
            if not self._free:
                self._free.append(_Worker())

    def end_idle(self, seconds: float) -> None:
        """End workers that had nothing to do for so long: each holds 100 MB."""
        with self._door:
            old = [one for one in self._free if monotonic() - one.free_since > seconds]
            self._free = [one for one in self._free if one not in old]
        for one in old:
            one.end()

    def known(self, key: tuple[Any, ...]) -> Mapping[str, Any] | None:
        """The document of a key where it is at hand; while it is made again, the one before."""
        with self._door:
            there = self._known.get(key)
        return None if there is None else there[1].document or there[1].before

    def is_under_way(self, key: tuple[Any, ...]) -> bool:
        """Whether the document of a key is being made."""
        with self._door:
            there = self._known.get(key)
        return there is not None and not there[1].done.is_set()

    def cancel(self, key: tuple[Any, ...]) -> None:
        """Give the fit of a key up; for some seconds it says that it was stopped, then it can be asked for again."""
        with self._door:
            there = self._known.get(key)
        if there is not None:
            there[1].cancel()

    def cancel_all(self, store: Path) -> None:
        """Give up the fits of a store that are under way; who asks again has them begun again."""
        with self._door:
            mine = [key for key, (_, fit) in self._known.items() if key[0] == str(store) and not fit.done.is_set()]
            given_up = [self._known.pop(key)[1] for key in mine]
        for fit in given_up:
            fit.cancel()

    def close(self) -> None:
        """Give all fits up, and end the workers."""
        self._closed = True
        with self._door:
            known, self._known = list(self._known.values()), OrderedDict()
        for _, fit in known:
            fit.cancel()
        until = monotonic() + _LAST_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))
        self.end_idle(-1.0)
