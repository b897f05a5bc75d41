"""A connection to a Ray cluster: one that runs elsewhere, or one of this machine that ends with this process.

Ray is an extra (`pip install "venire[ray]"`) and is imported here, when it is asked for, and nowhere else at start.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp
from typing import Any

from venire.arena.errors import InputError
from venire.arena.hints import setting

NAMESPACE = "venire"
"""Of all actors that Venire starts in a cluster."""

_OBJECT_STORE = 80 << 20
"""Bytes of shared memory of a cluster that is started here: messages go from process to process without it."""

_CONNECT_SECONDS = 5.0

_HTTP2_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""A frame without settings: Ray speaks gRPC, and each side of that begins with one."""
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _HTTP2_SETTINGS

_VITAL = frozenset({"raylet", "gcs_server"})
"""Ray's names of the processes without which it starts no other; the raylet ends with either of its agents."""

_TEMPORARY = "/tmp"
"""For the files of a cluster that is started here, unless RAY_TMPDIR says otherwise.

TMPDIR may be too long for the path of a Unix socket.
"""

_ADDRESS = re.compile(r"(auto|(ray://)?[^\s/:]+:\d{1,5})")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Where work is done: `local`, or `ray` with the address of a cluster; without one a cluster is started here."""

    name: str = "local"
    address: str | None = None

    @staticmethod
    def read(text: str) -> EngineChoice:
        """An engine as written on the command line. Raises InputError for one that there is not.

        >>> EngineChoice.read("ray:10.0.0.5:6379")
        EngineChoice(name='ray', address='10.0.0.5:6379')
        """
        name, colon, address = text.partition(":")
        if name not in ("local", "ray") or (colon and name == "local"):
            raise InputError(
                f"{setting('engine')} {text}: take local, ray, or ray:ADDRESS for a cluster that is running"
            )
        if colon and not _ADDRESS.fullmatch(address):
            raise InputError(
                f"{setting('engine')} {text}: the address of a cluster is HOST:PORT, as `ray start` prints it, or "
                "auto for that of this machine"
            )
        return EngineChoice(name, address or None)

    @property
    def is_ray(self) -> bool:
        """Whether work is done by a Ray cluster."""
        return self.name == "ray"

    def __str__(self) -> str:
        return self.name if self.address is None else f"{self.name}:{self.address}"


LOCAL = EngineChoice()


def cluster_of(options: str) -> str | None:
    """The address of the cluster that some options of a command name; None where they name none.

    >>> cluster_of("--engine ray:10.0.0.5:6379 --actors 4")
    '10.0.0.5:6379'
    """
    named = re.search(r"--engine ray:(\S+)", options)
    return None if named is None else named[1]


class Connection:
    """A connection to Ray. Made by `connection`.

    `start` starts the cluster while its context lasts; None: the cluster is not this process's.
    """

    def __init__(self, ray: Any, start: Callable[[], AbstractContextManager[None]] | None = None) -> None:
        self.ray, self._start = ray, start
        self._running = ExitStack()

    @property
    def is_broken(self) -> bool:
        """Whether a process has ended without which no actor of a cluster that was started here comes back."""
        if self._start is None:
            return False
        from ray._private import worker

        node = worker._global_node
        return node is None or any(kind in _VITAL for kind, _ in node.dead_processes())

    def start(self) -> None:
        """Start the cluster, again where it is started: all of its actors are gone then. Raises InputError."""
        assert self._start is not None
        self._running.close()
        try:
            self._running.enter_context(self._start())
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            first = str(error).strip().partition("\n")[0]
            raise InputError(f"no Ray cluster can be started here: {first}") from None

    def close(self) -> None:
        """End a cluster that was started."""
        self._running.close()


@contextmanager
def cluster(choice: EngineChoice, environ: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The module `ray`, connected while the context lasts: see `connection`."""
    with connection(choice, environ) as connected:
        yield connected.ray


@contextmanager
def connection(choice: EngineChoice, environ: Mapping[str, str] | None = None) -> Iterator[Connection]:
    """A connection to Ray while the context lasts.

    A cluster that is started here binds to loopback, has no dashboard, sends no usage statistics, and its processes
    find `environ` beside their own environment; at the end its files and the processes of Ray are gone, its actors'
    within seconds. Raises InputError where Ray is not installed or no cluster answers.

    Example:
        with connection(EngineChoice("ray")) as connected:
            print(len(connected.ray.nodes()))
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A cluster that is gone is the engine's to report: Ray itself would end this process after a minute.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
    if choice.address is not None and _has_token():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # a cluster asks for the token where it found one at its start
    os.environ.setdefault(
        "RAY_ENABLE_AUTO_CONNECT", "0"
    )  # or a call would start a cluster that listens on all addresses
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or a warning about accelerators
    try:
        import ray
    except ImportError:
        raise InputError('--engine ray needs Ray: pip install "venire[ray]"') from None
    if ray.is_initialized():
        yield Connection(ray)
        return
    settings: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": logging.ERROR}
    with _quiet():
        if choice.address is not None:
            with _join(choice.address, settings):
                yield Connection(ray)
            return
        home = os.environ.get("RAY_TMPDIR", _TEMPORARY)
        # One folder for all starts: what outlives a killed process by seconds still writes into that of its own start.
        with TemporaryDirectory(prefix="venire-ray-", dir=home, ignore_cleanup_errors=True) as folder:
            own = Connection(ray, lambda: _start(environ or {}, settings, mkdtemp(dir=folder, prefix="")))
            try:
                own.start()
                yield own
            finally:
                own.close()


@contextmanager
def _start(environ: Mapping[str, str], settings: Mapping[str, Any], folder: str) -> Iterator[None]:
    """A cluster of this machine, on loopback, with its files in a folder.

    Ray takes an address that others reach, and listens on all of them, even if it is given 127.0.0.1, unless it is set
    to have no clusters of several machines, as it is by default on macOS. The setting is read at its first import, and
    by the processes that it starts.
    """
    import ray
    from ray._private import ray_constants

    may_be_reached = ray_constants.ENABLE_RAY_CLUSTER
    try:
        ray_constants.ENABLE_RAY_CLUSTER = False
        temporary = Path(folder, "tmp")  # what a killed process leaves goes with the cluster
        temporary.mkdir()
        always = {ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR: "0", "TMPDIR": str(temporary)}
        gettempdir()  # this process keeps its own
        with _environment(environ, always):
            _connect(
                address="local",
                num_cpus=os.cpu_count(),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE,
                _temp_dir=folder,
                **settings,
            )
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = may_be_reached
        ray.shutdown(wait_for_processes=True)


@contextmanager
def _join(address: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """A cluster that runs elsewhere, which goes on when this process leaves."""
    import ray

    _refuse_unreachable(address)
    try:
        _connect(address=address, **settings)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(_no_cluster(address, first)) from None
    try:
        yield
    finally:
        ray.shutdown()


def _has_token() -> bool:
    """Whether this user has a token for clusters, which Ray itself reads."""
    named = "RAY_AUTH_TOKEN" in os.environ or "RAY_AUTH_TOKEN_PATH" in os.environ
    return named or (Path.home() / ".ray" / "auth_token").is_file()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray's news of killed processes off the standard output; errors say what matters of them."""
    from ray._private import worker

    shown = worker.print_to_stdstream
    worker.print_to_stdstream = lambda data, ignore_prefix: None
    try:
        yield
    finally:
        worker.print_to_stdstream = shown


def _connect(**settings: Any) -> None:
    """Call `ray.init`, and keep this process's answer to SIGTERM: Ray's own ends the process without a word."""
    import ray
    from ray._private import utils

    answered = utils.set_sigterm_handler
    utils.set_sigterm_handler = lambda handler: None
    try:
        ray.init(**settings)
    finally:
        utils.set_sigterm_handler = answered


def _no_cluster(address: str, why: str) -> str:
    return (
        f"no Ray cluster answers at {address} ({why}): start one with `ray start --head`, set RAY_AUTH_TOKEN if it "
        "asks for a token, or leave the address out"
    )


def _refuse_unreachable(address: str) -> None:
    """Raises InputError within seconds where no server of gRPC answers: Ray itself would try for two minutes."""
    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS) as probe:
            probe.settimeout(_CONNECT_SECONDS)
            if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
                return  # it answers to nothing but a handshake
            probe.sendall(_HTTP2_PREFACE)
            answer = probe.recv(len(_HTTP2_SETTINGS), socket.MSG_WAITALL)
    except (OSError, OverflowError) as error:
        raise InputError(_no_cluster(address, str(error))) from None
    if answer[3:4] != _HTTP2_SETTINGS[3:4]:
        raise InputError(_no_cluster(address, "who listens there is no Ray"))


@contextmanager
def _environment(more: Mapping[str, str], always: Mapping[str, str]) -> Iterator[None]:
    """Let processes that are started meanwhile find `more`, where that is not set already, and `always`."""
    added = {name: value for name, value in more.items() if name not in os.environ} | dict(always)
    before = {name: os.environ[name] for name in added if name in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        os.environ.update(before)
