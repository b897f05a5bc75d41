"""One measurement: an endpoint on one core, a client in a separate process on another, and the figures of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import upstream
from material import Judge, write_calls, write_campaign
from peers import Peer
from upstream import Missing

HERE = Path(__file__).parent
Certificate = tuple[Path, Path]
"""A certificate and its key."""

_CALLS = {"two-stage": 2, "binary": 1}
"""Calls per trial, by protocol."""

_UNASKED = 20
"""Maximum number of uncounted calls of a peer: its warm-up, and its own checks of the endpoint."""


class Failed(Exception):
    """An invalid measurement: rows do not equal calls, or fewer calls were in flight than requested."""


class TooFew(Failed):
    """Fewer calls in flight than requested: this can happen on a busy machine, so the run is repeated."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address for a client; `trust` is the certificate if it uses TLS."""

    url: str
    trust: Path | None = None

    def of(self, protocol: str) -> str:
        """The base URL with readable answers for a protocol: one character for a one-call protocol."""
        return self.url if protocol == "two-stage" else f"{self.url.removesuffix('/v1')}/brief-0/v1"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that make a client trust it: OpenSSL reads this variable."""
        return {} if self.trust is None else {"SSL_CERT_FILE": str(self.trust)}


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one client; seconds from its first call at the endpoint to its end, without a peer's warm-up."""

    calls: int
    seconds: float
    cpu: float
    """CPU seconds of all threads, without imports and planning."""
    most: int
    """Maximum number of calls in flight, as counted by the endpoint."""
    told: dict[str, Any]
    """The client's own report."""

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of CPU per call."""
        return 1000 * self.cpu / self.calls


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one figure."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median value."""
        return median(self.values)

    def show(self, digits: int = 2) -> str:
        """Median and range."""
        return f"{self.median:.{digits}f} ({min(self.values):.{digits}f}-{max(self.values):.{digits}f})"


class Bench:
    """A folder for measurements, and the cores: the client has the first, the endpoint and this process another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cores = cores = sorted(os.sched_getaffinity(0))
        self.client_core, self.core = cores[0], cores[-1]
        self.calls_file = folder / "calls.jsonl"
        write_calls(self.calls_file)
        self.calls_files = {"two-stage": self.calls_file, "binary": folder / "binary.jsonl"}
        write_calls(self.calls_files["binary"], protocol="binary")
        os.sched_setaffinity(0, {self.core})

    @contextmanager
    def endpoint(
        self,
        latency: float,
        *,
        spread: float = 0.0,
        tls: Certificate | None = None,
        refused: float = 0.0,
        retry_after: int | None = None,
    ) -> Iterator[Endpoint]:
        """An endpoint on its core that answers after a latency in seconds and may refuse: see `upstream.running`."""
        told = {"spread": spread, "core": self.core, "tls": tls, "refused": refused, "retry_after": retry_after}
        with upstream.running(latency, **told) as url:
            yield Endpoint(url, None if tls is None else tls[0])

    @contextmanager
    def campaign(self, judges: Sequence[Judge], trials: int, protocol: str = "two-stage") -> Iterator[Path]:
        """The folder of a new campaign with at least `trials` trials, without a store yet."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            folder = Path(scratch) / "campaign"
            write_campaign(folder, judges, trials, protocol=protocol)
            yield folder

    def start(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a client on its core, with these environment variables in addition to this process's."""
        pin: Callable[[], None] = partial(os.sched_setaffinity, 0, {self.client_core})
        words = list(map(str, command))
        variables = {**os.environ, **environment}
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, preexec_fn=pin, env=variables)

    def yardstick(
        self,
        calls: int,
        in_flight: int,
        latency: float,
        tls: Certificate | None = None,
        *,
        protocol: str = "two-stage",
        client: str = "aiohttp",
    ) -> Run:
        """One run of a bare client, aiohttp or ry. Raises Failed unless the requested number was in flight."""

        def once() -> Run:
            with self.endpoint(latency, tls=tls) as at:
                asked = (at.of(protocol), self.calls_files[protocol], str(calls), str(in_flight), client)
                words = [sys.executable, HERE / "yardstick.py", *asked]
                return full(finish(self.start(words, at.variables), at), in_flight, latency)

        return _with_patience(once)

    def engine(
        self,
        calls: int,
        in_flight: int,
        latency: float,
        without: str | None = None,
        tls: Certificate | None = None,
        *,
        protocol: str = "two-stage",
    ) -> Run:
        """One run of the engine through one lane on a new store, optionally `without` one of its parts.

        Raises Failed unless the requested number was in flight and its rows equal its calls.
        """

        def once() -> Run:
            with (
                self.endpoint(latency, tls=tls) as at,
                self.campaign(
                    [Judge("judge", at.of(protocol), in_flight)], calls // _CALLS[protocol], protocol
                ) as folder,
            ):
                words = [sys.executable, HERE / "engine.py", folder, *(("--without", without) if without else ())]
                run = finish(self.start(words, at.variables), at)
            if without != "store":
                checked(run)
            if run.calls != calls:
                raise Failed(f"the campaign has {run.calls} calls, not {calls} as the others")
            return full(run, in_flight, latency)

        return _with_patience(once)

    def peer(self, peer: Peer, calls: int, in_flight: int, latency: float) -> Run:
        """One run of a peer. Raises Missing without its environment, Failed if the version differs from its lock."""
        if not peer.python.exists():
            raise Missing(f"{peer.name} has no environment: make bench-peers")
        with self.endpoint(latency) as at, tempfile.TemporaryDirectory(dir=self.folder) as home:
            words = [peer.python, peer.driver, at.url, self.calls_file, str(calls), str(in_flight)]
            homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "CURATOR_CACHE_DIR"), home)
            run = finish(self.start(words, {**peer.settings, **homes, "PYTHONPATH": ""}), at, more=_UNASKED)
        if run.told["version"] != peer.version:
            raise Failed(f"{peer.name} is {run.told['version']} and its lock says {peer.version}: make bench-peers")
        if run.calls != calls or run.most > in_flight:
            raise Failed(f"{peer.name}: {run.calls} answers to {calls} calls, {run.most} of {in_flight} in flight")
        return run


def _with_patience(once: Callable[[], Run], most: int = 3) -> Run:
    for _ in range(most - 1):
        try:
            return once()
        except TooFew:
            continue
    return once()


def finish(client: subprocess.Popen[str], at: Endpoint, more: int = 0) -> Run:
    """Wait for a client and read its endpoint's counts.

    Raises Failed for a client that failed, and where the endpoint's number of calls is less than the client's or
    exceeds it by more than `more`.
    """
    try:
        said, complaint = client.communicate()
    finally:
        client.kill()  # also when this process is interrupted
    name = Path(client.args[1]).name  # type: ignore[index]
    if client.returncode:
        raise Failed(f"{name} ended with {client.returncode}:\n{complaint[-2000:]}")
    told = json.loads(said.splitlines()[-1])
    seen = upstream.counts(at.url, at.trust)
    if not told["calls"] <= seen["calls"] <= told["calls"] + more:
        raise Failed(f"{name}: {told['calls']} calls by its own count, {seen['calls']} at the endpoint")
    told |= {"client": name, "lanes": seen["lanes"], "first": seen["first"], "bytes": seen["bytes"] / seen["calls"]}
    return Run(told["calls"], told["ended"] - told.get("started", seen["first"]), told["cpu"], seen["most"], told)


def full(run: Run, in_flight: int, latency: float) -> Run:
    """The run, if it had about the requested number of calls in flight. Raises TooFew otherwise.

    From a latency of 0.1 s on, the client must have counted nine tenths, and the endpoint half: a client that opens a
    thousand connections gets the first answers before the last call is sent. At lower latencies answers that the
    endpoint has sent wait for a busy client, and workers wait for their turn; then the client must have counted a
    quarter. A client that sends calls nearly one by one has only a few.
    """
    wanted = min(in_flight, run.calls)
    sent, seen = (0.9, 0.5) if latency >= 0.1 else (0.25, 0.0)
    if run.most > in_flight or run.told["most_sent"] < sent * wanted or run.most < seen * wanted:
        raise TooFew(
            f"{run.told['client']}: {run.told['most_sent']} calls were in flight at the most by its own count, "
            f"{run.most} by the endpoint's, not {in_flight}"
        )
    return run


def checked(run: Run, ending: str = "COMPLETE") -> Run:
    """The run, if its rows equal its calls and every trial has its verdict. Raises Failed otherwise.

    If `ending` is not COMPLETE, verdicts may be missing.
    """
    told = run.told
    settled = told["verdict"] == told["plan"] or ending != "COMPLETE"
    if (told["attempt"], told["ending"]) != (run.calls, ending) or not settled:
        raise Failed(
            f"{run.calls} calls at the endpoint and {told['plan']} trials, but {told['attempt']} attempts and "
            f"{told['verdict']} verdicts in the store; the run ended {told['ending']}"
        )
    return run
