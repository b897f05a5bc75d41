"""A small campaign on the demo's texts, and the embedded judge server it asks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.demo import demo_key
from tests.forked import Forked
from venire.arena.clock import VirtualClock
from venire.cli import app, main
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.orchestrator.recording.ending import Ending
from venire.session import Session
from venire.simulation.server import JudgeServer, serve_in_thread

Serve = Callable[..., AbstractContextManager[JudgeServer]]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


TABLES = ("instructions.jsonl", "completions.jsonl", "elo.csv")

CAMPAIGN = """\
name = "small"
seed = 5

[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"

[plan]
policy = "all-pairs"
instructions = {instructions}

{judges}
{more}
"""

_ENDED: dict[bytes, bytes] = {}
"""Stores of campaigns that have ended, by the digest of what they were made of."""

JUDGE = """\
[[judge]]
name = "{name}"
model = "simulated/{name}@1"
concurrency = 8
{more}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The demo's tables in a folder of the test's own."""
    for name in TABLES:
        shutil.copy(str(files("venire.configs.demo").joinpath(name)), tmp_path / name)
    return tmp_path


@pytest.fixture
def write_campaign(folder: Path) -> Callable[..., Path]:
    """Writes a campaign file: two simulated judges, all pairs of six models, 2 instructions unless told otherwise."""

    def write(
        *, name: str = "small.toml", instructions: int = 2, judges: str | None = None, judge: str = "", more: str = ""
    ) -> Path:
        both = "".join(JUDGE.format(name=one, more=judge) for one in ("gpt-4-0613", "claude-3-opus"))
        path = folder / name
        path.write_text(CAMPAIGN.format(instructions=instructions, judges=judges or both, more=more), encoding="utf-8")
        return path

    return write


@pytest.fixture
def serve() -> Serve:
    """Starts the embedded judge server by itself, knowing the demo's texts, without waiting."""
    return lambda **settings: serve_in_thread(JudgeServer(demo_key(), **{"speed": 0.0, **settings}))


@pytest.fixture(scope="session")
def verbs() -> Any:
    """The command line as typer makes it of all verbs: made anew at each call, it takes as long as a small verb."""
    return get_command(app)


@pytest.fixture
def venire(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verbs: Any) -> Callable[..., Done]:
    """Runs a command in this process, on asyncio's own loop, and returns how it ended."""
    monkeypatch.setattr("venire.render.outcome.fast_loop", lambda: None)
    monkeypatch.setattr("venire.cli.verbs.app", verbs)

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["venire", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def settle() -> Callable[..., Ending]:
    """Asks all that is left of a campaign file, and says how that ended.

    For tests of what comes after a run: judges are asked in this process, without HTTP, which takes half of the time.
    """

    def run(path: Path, *, amend: bool = False) -> Ending:
        with Session(load_campaign(path), amend=amend, clock=VirtualClock()) as session:
            return session.run(environ={}, embedded=Embedded(direct=True)).ending

    return run


@pytest.fixture
def settled(settle: Callable[..., Ending]) -> Callable[[Path], Path]:
    """Asks all that is left of a campaign file and returns the file.

    Each campaign is run once, by the first test that needs it; with the same file, data and store before, the others
    have a copy of its store.
    """

    def run(path: Path) -> Path:
        store = load_campaign(path).store
        data = (path.with_name(name).read_bytes() for name in TABLES if path.with_name(name).exists())
        before = store.read_bytes() if store.exists() else b""
        key = sha256(b"\0".join((path.read_bytes(), before, *data))).digest()
        if key in _ENDED:
            store.write_bytes(_ENDED[key])
        else:
            assert settle(path) is Ending.COMPLETE
            _ENDED[key] = store.read_bytes()
        return path

    return run


@pytest.fixture
def judged(write_campaign: Callable[..., Path], settled: Callable[[Path], Path]) -> Callable[..., Path]:
    """Writes a campaign file as `write_campaign` does, and beside it the store of that campaign when it has ended."""
    return lambda **settings: settled(write_campaign(**settings))


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command as a process of its own; what is left running is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*words: object, **options: Any) -> subprocess.Popen[str]:
        plain = words[0] in ("-m", "-c") and "preexec_fn" not in options
        process = (Forked if plain else subprocess.Popen)(
            [sys.executable, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
