"""Serve a judge's model by vLLM on the nodes of a Ray cluster, as replicas that a campaign finds by their name.

Usage:
  python examples/ray_vllm.py start MODEL --name judge --replicas 4 --gpus 1 --address 10.0.0.5:6379
  venire run FOLDER/campaign.toml --engine ray:10.0.0.5:6379     # its judge has base_url = "ray://judge"
  python examples/ray_vllm.py stop --name judge --address 10.0.0.5:6379

`start` makes the actors judge-0, judge-1, ... in the Ray namespace "venire". They are detached: they go on when this
script has ended, until `stop`. Each reserves its GPUs, starts a server on its node, answers once that is ready, and
ends it when it ends itself, also where its process is killed (on Linux). A server that ends by itself, or with its
node, is started again by Ray, where possible at the address that it had.

The address is that by which the nodes know each other; the server listens on it alone. `--command` replaces vLLM:
any server that answers GET /health with 200 when it is ready, and has its API below /v1. In it {model}, {name},
{host} and {port} are filled in, so this adds options: --command "vllm serve {model} --host {host} --port {port}
--max-model-len 8192 --enable-prefix-caching". With --gpus above 1 add --tensor-parallel-size. For a key set
VLLM_API_KEY on all nodes before `ray start`, and give the judge key_variable = "VLLM_API_KEY".

This needs Ray, and vLLM on the nodes; a replica's actor needs nothing of Venire.
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import ray

NAMESPACE = "venire"
"""In which Venire looks for replicas."""
COMMAND = "vllm serve {model} --host {host} --port {port}"

KEEPER = """
import ctypes, os, signal, subprocess, sys
def tie():  # PR_SET_PDEATHSIG: SIGTERM when the parent ends, however it does
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
tie()
if os.getppid() != int(sys.argv[1]):
    sys.exit("the actor has ended")
sys.exit(subprocess.Popen(sys.argv[2:], preexec_fn=tie).wait())
"""
"""Stands between an actor and its server: Ray kills the children of an actor that it ends, which would leave the
server's own children behind. So it kills this, and the server has SIGTERM, by which it ends in order."""


class Replica:
    """A server of one model, on the node where this actor is."""

    def __init__(self, name: str, model: str, command: str, port: int, seconds: float) -> None:
        self.host = ray.util.get_node_ip_address()
        self.port = free_port(self.host, port)
        words = shlex.split(command)
        for field, value in (("model", model), ("name", name), ("host", self.host), ("port", str(self.port))):
            words = [word.replace(f"{{{field}}}", value) for word in words]
        self.server = subprocess.Popen([sys.executable, "-c", KEEPER, str(os.getpid()), *words])
        deadline = time.monotonic() + seconds
        while not self.is_healthy():
            if self.server.poll() is not None:
                raise RuntimeError(f"{shlex.join(words)} ended with exit code {self.server.returncode}; see Ray's logs")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{shlex.join(words)} was not ready within {seconds:g} s")
            time.sleep(0.2)
        threading.Thread(target=self.end_with_server, daemon=True).start()

    def base_url(self) -> str:
        """The address for an OpenAI client: what Venire asks for."""
        return f"http://{self.host}:{self.port}/v1"

    def is_healthy(self) -> bool:
        """Whether the server is ready."""
        try:
            with urlopen(f"http://{self.host}:{self.port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def end_with_server(self) -> None:
        """End the actor where its server has ended, so that Ray starts both again."""
        self.server.wait()
        os._exit(1)


def free_port(host: str, wanted: int) -> int:
    """The port that is wanted, or where that is taken another one."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, wanted))
        except OSError:
            one.bind((host, 0))
        return int(one.getsockname()[1])


def start(options: argparse.Namespace) -> None:
    """Start the replicas and wait until all of them answer."""
    made = ray.remote(num_cpus=0, num_gpus=options.gpus, max_restarts=-1)(Replica)
    replicas: dict[str, Any] = {}
    for number in range(options.replicas):
        name = f"{options.name}-{number}"
        place = {"name": name, "namespace": NAMESPACE, "lifetime": "detached", "scheduling_strategy": "SPREAD"}
        port = options.port and options.port + number
        replicas[name] = made.options(**place).remote(name, options.model, options.command, port, options.wait)
    for name, replica in replicas.items():
        try:
            print(f"{name}  {ray.get(replica.base_url.remote(), timeout=options.wait + 60)}", flush=True)
        except ray.exceptions.RayActorError as error:
            sys.exit(f"{name} has not started: {error}\n`stop` ends the others.")
        except ray.exceptions.GetTimeoutError:
            sys.exit(
                f"{name} has not started: no node may have {options.gpus:g} GPUs free (`ray status`). `stop` ends all."
            )
    print(f'Give the judge base_url = "ray://{options.name}".')


def stop(options: argparse.Namespace) -> None:
    """End all replicas of a name, and their servers."""
    for one in ray.util.list_named_actors(all_namespaces=True):
        base, _, number = one["name"].rpartition("-")
        if one["namespace"] == NAMESPACE and base == options.name and number.isdigit():
            ray.kill(ray.get_actor(one["name"], namespace=NAMESPACE))
            print(f"{one['name']} ended")


def read_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    starting = verbs.add_parser("start", help="start replicas, and wait until they answer")
    starting.set_defaults(do=start)
    starting.add_argument("model", help="the model, as the command takes it; the judge's model has the same name")
    starting.add_argument("--replicas", type=int, default=1)
    starting.add_argument("--gpus", type=float, default=1, help="of each replica")
    starting.add_argument("--command", default=COMMAND, help=f"starts a server; default: {COMMAND}")
    starting.add_argument("--port", type=int, default=8100, help="of the first replica, where it is free; 0: any")
    starting.add_argument("--wait", type=float, default=1800, help="seconds until a server must be ready")
    stopping = verbs.add_parser("stop", help="end all replicas of a name")
    stopping.set_defaults(do=stop)
    for verb in (starting, stopping):
        verb.add_argument("--name", default="judge", help="of the replicas, as in ray://NAME")
        verb.add_argument("--address", default="auto", help="of the cluster, HOST:PORT as `ray start` prints it")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = read_options()
    ray.init(address=chosen.address, namespace=NAMESPACE, log_to_driver=False)
    chosen.do(chosen)
