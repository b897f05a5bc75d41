"""Runs a campaign many times with simulated judges, in several variations, to compare the benefit of each choice.

The planner, the engine and the estimators are those of `venire run`; the clock is virtual and the stores are deleted.
A run is a pure function of the campaign, the variation and its number, so the table does not depend on the number of
processes, nor on where these are: on this machine, or on those of a Ray cluster, which have none of its files.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Statistics
from venire.arena.campaigns import CampaignSettings
from venire.arena.clock import VirtualClock
from venire.arena.errors import VenireError
from venire.embedded import Embedded
from venire.experiments.contestants import INSTRUCTIONS, ContestantField, fill, made_up, read_field
from venire.experiments.figures import LongRunJudge, figures, known_slope, long_run
from venire.experiments.variations import StandIn, Variation, campaign_of
from venire.orchestrator.engines.ray_cluster import LOCAL, EngineChoice
from venire.orchestrator.engines.ray_tasks import ray_executor
from venire.orchestrator.recording.ending import Ending
from venire.session import Session
from venire.simulation.judge import parse_model
from venire.storage.store.opening import open_store


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one variation: figures by name (`figures.FIGURES`), None for a figure that does not exist."""

    variation: int
    number: int
    ending: str
    figures: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Simulation:
    """All runs, by variation and then by number; `wall` is the total time in seconds."""

    runs: tuple[Run, ...]
    wall: float
    workers: int

    @property
    def simulated(self) -> float:
        """Seconds that all runs together would have taken."""
        return sum(run.figures["seconds"] or 0.0 for run in self.runs)


class StoppedSimulationError(KeyboardInterrupt):
    """Ctrl-C after some runs: `simulation` has those of the seeds that every variation was run with."""

    def __init__(self, simulation: Simulation, planned: int) -> None:
        super().__init__()
        self.simulation = simulation
        self.planned = planned
        """Runs there would have been."""
        self.result: Any = None
        """The same as `venire.simulate` returns it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    variation: int
    number: int
    campaign: CampaignSettings
    field: ContestantField
    template: Path | None
    """The store with the data of the file; None: the field is generated."""
    truth: NDArray[np.float64] | None
    slopes: Mapping[str, float]
    folder: Path


def field_of(
    campaign: CampaignSettings, folder: Path, models: int | None, instructions: int | None
) -> tuple[ContestantField, Path | None]:
    """The contestants, and the path of a store with their texts (within `folder`); None for a generated field.

    A generated field is used if its size is given, or if the file names no completions. Raises InputError as
    `contestants.made_up` and `read_field` do.
    """
    if models is None and instructions is None and campaign.data.completions is not None:
        path = folder / "data.duckdb"
        return read_field(campaign, path), path
    return made_up(
        20 if models is None else models, instructions or max(INSTRUCTIONS, campaign.plan.instructions or 0)
    ), None


def simulate(
    campaign: CampaignSettings,
    judges: Sequence[StandIn],
    rows: Sequence[Variation],
    field: ContestantField,
    template: Path | None,
    *,
    seeds: int,
    workers: int | None = None,
    battles: int | None = None,
    engine: EngineChoice = LOCAL,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Run every variation with every seed, `workers` at a time; `progress` receives the finished runs and the total.

    `workers` None is one on this machine, and one for each processor of a cluster.

    Raises InputError for an impossible variation, as `venire plan` would, before any run starts, and for an engine
    that is not there; and KeyboardInterrupt, with no files left behind: StoppedSimulationError once every variation was
    run with a seed.
    """
    start = time.monotonic()
    found: list[Run] = []
    try:
        with tempfile.TemporaryDirectory(prefix="venire-simulate-") as name:
            jobs = [*_jobs(campaign, judges, rows, field, template, Path(name), seeds, battles)]
            with _pool(engine, None if workers is None else min(workers, len(jobs)), template) as pool:
                for run in pool.runs(jobs):
                    found.append(run)
                    if progress is not None:
                        progress(len(found), len(jobs))
                workers = pool.workers
    except KeyboardInterrupt:
        if not (whole := _whole_seeds(found, len(rows))):
            raise
        part = Simulation(whole, time.monotonic() - start, workers or 1)
        raise StoppedSimulationError(part, seeds * len(rows)) from None
    return Simulation(_sorted(found), time.monotonic() - start, workers)


def _sorted(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple(sorted(runs, key=lambda run: (run.variation, run.number)))


def _whole_seeds(found: Sequence[Run], variations: int) -> tuple[Run, ...]:
    """The runs of the first seeds, as far as every variation was run with them: they compare the same contestants."""
    often = Counter(run.number for run in found)
    whole = next(number for number in count() if often[number] < variations)
    return _sorted(run for run in found if run.number < whole)


def _jobs(
    campaign: CampaignSettings,
    judges: Sequence[StandIn],
    rows: Sequence[Variation],
    field: ContestantField,
    template: Path | None,
    folder: Path,
    seeds: int,
    battles: int | None,
) -> Iterator[_Job]:
    """The jobs with seeds as the outermost loop, so that early results cover every variation."""
    truths: dict[int, NDArray[np.float64] | None] = {}
    for number in range(seeds):
        for place, row in enumerate(rows):
            varied = campaign_of(campaign, judges, field, row, number, battles)
            profiles = {one.name: parse_model(one.model)[0] for one in varied.judges}
            if place not in truths:
                truths[place] = long_run(field, [_long_run_judge(varied, one.name) for one in varied.judges])
            slopes = {name: known_slope(profile) for name, profile in profiles.items()}
            yield _Job(place, number, varied, field, template, truths[place], slopes, folder)


def _long_run_judge(campaign: CampaignSettings, name: str) -> LongRunJudge:
    judge = next(one for one in campaign.judges if one.name == name)
    profile = parse_model(judge.model)[0]
    unread = profile.invalid * (0.5 if judge.options.get("repair") == "1" else 1.0)
    return LongRunJudge(profile, judge.protocol, 1.0 - (unread if campaign.plan.orders == "random" else unread**2))


@dataclass(frozen=True, slots=True)
class _Pool:
    """Where jobs are run: `workers` of them at once by an executor, or one after another in this process."""

    executor: Executor | None
    workers: int
    run: Callable[[_Job], Run]

    def runs(self, jobs: Sequence[_Job]) -> Iterator[Run]:
        """Runs in the order in which they end."""
        return map(self.run, jobs) if self.executor is None else self._spread(self.executor, jobs)

    def _spread(self, executor: Executor, jobs: Sequence[_Job]) -> Iterator[Run]:
        """Queue only a few more jobs than run at once: each carries its field, and stopping must not wait for many."""
        waiting = iter(jobs)
        under_way: set[Future[Run]] = set()
        while True:
            for job in waiting:
                under_way.add(executor.submit(self.run, job))
                if len(under_way) >= 2 * self.workers:
                    break
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in done:
                yield one.result()


@contextmanager
def _pool(engine: EngineChoice, workers: int | None, template: Path | None) -> Iterator[_Pool]:
    """A pool, whose processes and files are gone when the context ends."""
    if engine.is_ray:
        run = partial(_run_without_files, None if template is None else template.read_bytes())
        with ray_executor(engine, workers) as executor:
            yield _Pool(executor, executor.workers, run)
    elif workers is None or workers == 1:
        yield _Pool(None, 1, _run)
    else:
        with _processes(workers) as executor:
            yield _Pool(executor, workers, _run)


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    context = multiprocessing.get_context("spawn")  # threads of DuckDB do not survive a fork
    stop = context.Event()
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(stop,)) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise VenireError(
                "a worker process of the simulation ended before its time, perhaps for want of memory: try --workers 1"
            ) from None
        finally:  # a consumer that stops early stops the workers too
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


_stop: Event | None = None


def _begin(stop: Event) -> None:
    """Initialise a worker: Ctrl-C is handled by the parent process, which signals it through `stop`."""
    global _stop  # the only way for a pool to hand an event to its workers
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _look(now: Statistics) -> None:
    if _stop is not None and _stop.is_set():
        os.kill(os.getpid(), signal.SIGINT)  # like a user's Ctrl-C: calls in flight end, no new call begins


def _run(job: _Job) -> Run:
    """Run one campaign in a separate store and delete the store. Raises KeyboardInterrupt if it was stopped."""
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt
    with tempfile.TemporaryDirectory(dir=job.folder) as name:
        path = Path(name) / "store.duckdb"
        shutil.copy(job.template or _filled(job, Path(name)), path)
        clock = VirtualClock()
        with Session(replace(job.campaign, store=path), clock=clock) as session:
            summary = session.run(environ={}, embedded=Embedded(direct=True), progress=_look)
            if summary.ending is Ending.INTERRUPTED:
                raise KeyboardInterrupt
            found = figures(session, job.field.elo, job.truth, job.slopes)
        return Run(job.variation, job.number, summary.ending.value, found | {"seconds": summary.statistics.elapsed})


def _run_without_files(template: bytes | None, job: _Job) -> Run:
    """Run one campaign on a machine that has no file of the one where the simulation was started."""
    with tempfile.TemporaryDirectory(prefix="venire-simulate-") as name:
        data = None if template is None else Path(name) / "data.duckdb"
        if data is not None and template is not None:
            data.write_bytes(template)
        return _run(replace(job, template=data, folder=Path(name)))


def _filled(job: _Job, own: Path) -> Path:
    """A store with the generated field of this run's number, the starting point of all its variations."""
    path = job.folder / f"field-{job.number}.duckdb"
    if not path.exists():
        with open_store(own / "field.duckdb") as store:
            fill(store, job.field, job.campaign.seed)
        (own / "field.duckdb").replace(path)  # atomic, even if another worker made it too
    return path
