"""A connection to Ray: an engine that is not there gets a sentence, and a cluster of this machine leaves nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from venire.arena.errors import InputError
from venire.orchestrator.engines import ray_cluster
from venire.orchestrator.engines.ray_cluster import EngineChoice, cluster


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("local", EngineChoice()),
        ("ray", EngineChoice("ray")),
        ("ray:auto", EngineChoice("ray", "auto")),
        ("ray:10.0.0.5:6379", EngineChoice("ray", "10.0.0.5:6379")),
        ("ray:ray://head:10001", EngineChoice("ray", "ray://head:10001")),
    ],
)
def test_an_engine_is_read_as_written(text: str, choice: EngineChoice) -> None:
    assert EngineChoice.read(text) == choice
    assert choice.is_ray == (text != "local")


@pytest.mark.parametrize("text", ["spark", "", "local:8", "ray:", "ray:nowhere", "ray:host:port", "ray:a b:1", "Ray"])
def test_an_engine_that_is_not_there_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(InputError, match=f"engine {text}: (take local, ray|the address of a cluster is HOST:PORT)"):
        EngineChoice.read(text)


def test_without_ray_the_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "venire\[ray\]"'), cluster(EngineChoice("ray")):
        pass


@pytest.mark.ray
def test_an_address_where_nobody_listens_is_refused_at_once() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert f"no Ray cluster answers at {address}" in driven(JOIN, address)


@pytest.mark.ray
@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", None])
def test_a_port_of_something_else_than_ray_is_refused_within_seconds(
    answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve() -> socket.socket:
            client, _ = server.accept()
            if answer is not None:
                client.recv(100)
                client.sendall(answer)
                with suppress(OSError):  # who has read the answer may be gone
                    client.shutdown(socket.SHUT_WR)
            return client

        client = pool.submit(serve)
        with (
            pytest.raises(InputError, match=f"^no Ray cluster answers at {address} "),
            cluster(EngineChoice("ray", address)),
        ):
            pass
        client.result().close()


@pytest.mark.ray
def test_a_cluster_of_this_machine_listens_on_loopback_and_ends(nothing_left_of_ray: None) -> None:
    """By default Ray listens on all addresses: whoever reaches one of them can run what they like."""
    node, workers, *listening = driven(START).splitlines()
    assert node == "127.0.0.1"
    assert int(workers) > 0
    assert len(listening) > 5
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.mark.ray
def test_who_is_connected_stays_so(ray_cluster: Any) -> None:
    with cluster(EngineChoice("ray")) as ray:
        assert ray.get(ray.put(3)) == 3
    assert ray_cluster.is_initialized()


JOIN = """
import sys
from venire.arena.errors import InputError
from venire.orchestrator.engines.ray_cluster import EngineChoice, cluster
try:
    with cluster(EngineChoice("ray", sys.argv[1])):
        pass
except InputError as error:
    print(error)
"""
START = """
import os
from tests.processes import listening, marked
from venire.orchestrator.engines.ray_cluster import EngineChoice, cluster
with cluster(EngineChoice("ray")) as ray:
    print(ray.nodes()[0]["NodeManagerAddress"])
    found = dict(marked("VENIRE_TEST_MARK=" + os.environ["VENIRE_TEST_MARK"]))
    print(len([command for command in found.values() if command.startswith("ray::")]))
    print(*listening({*found, os.getpid()}), sep="\\n")
"""


def driven(script: str, *words: str) -> str:
    """What a script prints in a process of its own, since a process has one connection to Ray."""
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    return done.stdout
