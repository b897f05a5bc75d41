"""Ray clusters of a few nodes on this machine, for tests: on loopback, in processes that end with the test.

Every process carries a mark in its environment, by which a test finds those that it may kill.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.processes import marked

LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where this variable is 0, Ray keeps to 127.0.0.1, and to one node; its own default elsewhere than on Linux."""
_MARK = "VENIRE_TEST_CLUSTER"
_UP_SECONDS = 60.0
HELPERS = {
    "log monitor": "/log_monitor.py",
    "autoscaler's monitor": "/monitor.py",
    "dashboard": "/dashboard.py",
    "dashboard agent": "ray::DashboardAgent",
    "runtime environment agent": "ray::RuntimeEnvAgent",
    "raylet": "/raylet/raylet ",
    "control service": "/gcs_server ",
}
"""Ray's own processes on a machine, and what tells the command of each; those that it has not are passed over."""


@dataclass(frozen=True)
class RayCluster:
    """A cluster that runs: its address, and the mark of its processes."""

    address: str
    mark: str
    several: bool

    @property
    def environ(self) -> dict[str, str]:
        """Variables of whoever speaks to it: its token, and whether it keeps to loopback."""
        if not self.address:
            return {_MARK: self.mark}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.mark}
        return token | {LOOPBACK: "1" if self.several else "0"}

    def processes(self) -> list[int]:
        """All processes of the cluster."""
        return [pid for pid, _ in marked(f"{_MARK}={self.mark}")]

    def actors(self) -> list[int]:
        """The processes in which actors ask."""
        return [pid for pid, command in marked(f"{_MARK}={self.mark}") if command.startswith("ray::RayAsker")]

    def helpers(self, kind: str) -> list[int]:
        """Ray's own processes of one kind, but for the raylet of the first of several nodes.

        Agents write their title over their environment: they are known by the raylet that started them.
        """
        mine = dict(marked(f"{_MARK}={self.mark}"))
        mine |= {pid: command for pid, command, parent in _titled() if parent in mine}
        found = [pid for pid, command in mine.items() if HELPERS[kind] in f"{command} "]
        return [pid for pid in found if not self.several or " --head" not in mine[pid]]

    def memory(self, *others: int) -> int:
        """Bytes that the cluster and some other processes have for themselves, shared pages divided among them."""
        return sum(_proportional(pid) for pid in {*self.processes(), *others})


def own_cluster() -> RayCluster:
    """The cluster that a command will start itself, known by its mark alone."""
    return RayCluster("", uuid4().hex, several=False)


@contextmanager
def ray_nodes(number: int = 1) -> Iterator[RayCluster]:
    """A cluster of so many nodes on this machine.

    One node listens on 127.0.0.1 alone. Several listen on all addresses: make them in a network of their own.
    """
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="venire-torture-", dir="/tmp")  # sockets have short paths
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = RayCluster(f"127.0.0.1:{_free_port()}", uuid4().hex, number > 1)
        stack.callback(_end, cluster)
        head = ["--head", "--port", cluster.address.rpartition(":")[2], "--temp-dir", folder]
        head += ["--include-dashboard", "false"]
        for node in range(number):
            words = head if node == 0 else ["--address", cluster.address]
            stack.enter_context(_node(cluster, words))
        yield cluster


@contextmanager
def _node(cluster: RayCluster, words: list[str]) -> Iterator[None]:
    """A node that is up."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--node-ip-address", "127.0.0.1"]
    command += ["--num-cpus", "1", "--object-store-memory", str(80 << 20), "--disable-usage-stats", *words]
    environ = os.environ | cluster.environ | {_MARK: cluster.mark}
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    said, up = [], threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        with process.stdout as lines:  # other processes of the node hold it open until these are killed
            for line in lines:
                said.append(line)
                if "Ray runtime started" in line:
                    up.set()
        up.set()  # or it has ended

    threading.Thread(target=listen, daemon=True).start()
    try:
        if not up.wait(_UP_SECONDS) or "Ray runtime started" not in "".join(said):
            raise RuntimeError(f"a node of the cluster did not start: {''.join(said)}")
        host, _, port = cluster.address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=5).close()
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end(cluster: RayCluster) -> None:
    """Kill what is left of a cluster, and nothing else."""
    for pid in cluster.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _titled() -> Iterator[tuple[int, str, int]]:
    """Number, title and parent of each process that Ray has given a title."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if command.startswith("ray::"):
                yield int(folder.name), command, int((folder / "stat").read_text().rpartition(")")[2].split()[1])


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _proportional(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))
