"""`venire serve`, `venire run --serve` and `venire watch --open`: where pages are, and what is refused."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.venire.conftest import Done
from venire.cli.help import Verb


def address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("pages: "):
            return line.removeprefix("pages: ").strip()
    raise AssertionError("no address was printed")


def test_serve_shows_stores_until_it_is_interrupted(
    judged: Callable[..., Path], start: Callable[..., subprocess.Popen[str]]
) -> None:
    path = judged()
    process = start("-m", "venire", "serve", path, "--at", "127.0.0.1:0")
    base = address(process)
    with urlopen(base, timeout=30) as page:
        assert "<h1><bdi>small</bdi>" in page.read().decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert not path.with_name("small.duckdb.lock").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.duckdb"], "there is no store nowhere.duckdb"),
        (["STORE", "--at", "host:port"], "pages are served at HOST:PORT"),
        (["STORE", "--at", "127.0.0.1:99999"], "pages are served at HOST:PORT"),
    ],
)
def test_serve_refuses_with_a_sentence(
    judged: Callable[..., Path], venire: Callable[..., Done], words: list[str], sentence: str
) -> None:
    store = judged().with_suffix(".duckdb")
    done = venire("serve", *[str(store) if word == "STORE" else word for word in words])
    assert done.code == 2
    assert sentence in done.err


def test_a_port_that_is_taken_is_named(judged: Callable[..., Path], venire: Callable[..., Done]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = judged()
        done = venire("serve", path.with_suffix(".duckdb"), "--at", f"127.0.0.1:{port}")
        run = venire("run", path, "--yes", "--serve", f"127.0.0.1:{port}")
    for one in (done, run):
        assert one.code == 2
        assert f"be served at 127.0.0.1:{port}" in one.err


def test_packages_that_are_missing_are_named(
    judged: Callable[..., Path], venire: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "nh3" else object())
    done = venire("serve", judged().with_suffix(".duckdb"))
    assert done.code == 2
    assert "pages need nh3" in done.err
    assert "`pip install 'venire[report]'`" in done.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["f.toml", "--serve"], ["f.toml", "--serve="]),
        (["--serve", "f.toml"], ["--serve=", "f.toml"]),
        (["--serve", "--yes", "f.toml"], ["--serve=", "--yes", "f.toml"]),
        (["--serve", ":9000", "f.toml"], ["--serve", ":9000", "f.toml"]),
        (["--serve", "127.0.0.1:0"], ["--serve", "127.0.0.1:0"]),
        (["--serve", "[::1]:80"], ["--serve", "[::1]:80"]),
        (["--serve=0.0.0.0:1", "f.toml"], ["--serve=0.0.0.0:1", "f.toml"]),
    ],
)
def test_serve_may_stand_without_an_address(words: list[str], expected: list[str]) -> None:
    assert Verb.with_address(words) == expected


def test_a_run_serves_its_pages_and_watch_names_them(
    judged: Callable[..., Path],
    write_campaign: Callable[..., Path],
    start: Callable[..., subprocess.Popen[str]],
    venire: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write_campaign(judge="requests_per_minute = 60")
    process = start("-m", "venire", "run", path, "--yes", "--serve", "127.0.0.1:0")
    base = address(process)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("venire.render.status.show_run", lambda *_: True)
    assert venire("watch", path.with_suffix(".duckdb"), "--open").code == 0
    assert opened == [base.rstrip("/")]
    with urlopen(base, timeout=30) as page:
        assert 'data-events="/s/small/c/1/events"' in page.read().decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    done = venire("watch", path.with_suffix(".duckdb"), "--open")
    assert "on; its pages: venire serve" in done.out


def test_a_run_names_the_command_for_its_pages(judged: Callable[..., Path], venire: Callable[..., Done]) -> None:
    path = judged()
    assert "read every call: venire serve" in venire("run", path, "--yes").err
    assert "read every call: venire serve" in venire("rate", path.with_suffix(".duckdb")).err
