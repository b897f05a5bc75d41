"""Stores for pages, and the commands that serve them, as processes of their own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import urlopen

import duckdb
from playwright.sync_api import Page

from tests.browser.conftest import Visit
from venire.arena.clock import VirtualClock
from venire.configs.loading import load_campaign
from venire.embedded import Embedded, even_faults
from venire.orchestrator.recording.ending import Ending
from venire.pages import registry
from venire.session import Session

T = TypeVar("T")

PATIENCE_SECONDS = 30.0
"""How long a command has for what a test waits for."""
_LOOK_SECONDS = 0.05

NUMBERED = tuple(one.name for one in registry.PAGES.values() if one.numbered)
PAGES = tuple(name for name in registry.PAGES if name not in NUMBERED)
"""Pages of a campaign that take no number."""


class Command:
    """A verb of Venire in a process of its own; `url` is where its pages are."""

    def __init__(self, *words: object) -> None:
        # Ctrl-C of the terminal is for the tests, which then end what they started.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "venire", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        self.said: list[str] = []
        self._url: str | None = None
        self._told = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def url(self) -> str:
        """The address of the first page, without the slash at its end."""
        self._told.wait(PATIENCE_SECONDS)
        assert self._url is not None, "".join(self.said)
        return self._url

    def wait(self) -> int:
        """The exit code, once the command has ended by itself."""
        code = self.process.wait(PATIENCE_SECONDS)
        self._listener.join(PATIENCE_SECONDS)
        return code

    def end(self) -> None:
        """End it as Ctrl-C does, and by force if it does not listen."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        assert self.is_alone(), "what the command started has outlived it"
        if self.process.stderr is not None:
            self.process.stderr.close()

    def is_alone(self) -> bool:
        """Whether, once the command has ended, nobody else writes where it did: its own processes ended with it."""
        self._listener.join(PATIENCE_SECONDS)
        return not self._listener.is_alive()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.match(r"pages: (http://\S+?)/?$", line.strip()):
                self._url = found[1]
                self._told.set()
        self._told.set()


@contextmanager
def command(*words: object) -> Iterator[Command]:
    """A command, ended with the block."""
    one = Command(*words)
    try:
        yield one
    finally:
        one.end()
        sys.stderr.write("".join(one.said))  # shown beside a test that failed


def serving(*stores: Path) -> Any:
    """Pages of stores at rest: a context with the command that serves them."""
    return command("serve", *stores, "--at", "127.0.0.1:0")


def demo(folder: Path, change: Callable[[str], str] = lambda text: text) -> Path:
    """The demo's tables and its campaign file in a folder, changed; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    room = files("venire.configs.demo")
    for name in ("instructions.jsonl", "completions.jsonl", "elo.csv", "campaign.toml"):
        shutil.copy(str(room.joinpath(name)), folder / name)
    file = folder / "campaign.toml"
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    return file


def settled(file: Path, *, faults: float = 0.0) -> Path:
    """Asks all that a campaign file plans, on a virtual clock, and returns its store.

    In a thread of its own: where a browser is open, an event loop runs in this one.
    """

    def run() -> Ending:
        with Session(load_campaign(file), clock=VirtualClock()) as session:
            embedded = Embedded(direct=True, faults=even_faults(faults))
            return session.run(environ={}, embedded=embedded).ending

    assert aside(run) is Ending.COMPLETE
    return load_campaign(file).store


def aside(run: Callable[[], T]) -> T:
    """What a function returns or raises, called in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def ask(store: Path, sql: str, *values: object) -> Any:
    """The first value of a query on a store that nobody has open for writing."""
    return rows(store, sql, *values)[0][0]


def rows(store: Path, sql: str, *values: object) -> list[Any]:
    """The rows of a query on a store that nobody has open for writing."""
    with duckdb.connect(str(store), read_only=True) as connection:
        return connection.execute(sql, list(values)).fetchall()


def eventually(page: Page, what: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether something comes to be so, while the page goes on."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        page.wait_for_timeout(_LOOK_SECONDS * 1000)
    return True


def opened(visit: Visit, url: str, *arguments: Any, **options: Any) -> Page:
    """A page that may need a computation: opened when that is done."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (there := answered(url))[0] == 202:  # it waits a second itself
        assert time.monotonic() < end, url
    assert there[0] == options.get("status", 200), there
    return visit.open(url, *arguments, **options)


def answered(url: str) -> tuple[int, str]:
    """The status of an answer, and where it is none of success what it says."""
    try:
        with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status), ""
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def there(page: Page) -> None:
    """Waits until what the page computes is there."""
    page.locator("#waiting[data-again]").wait_for(state="detached", timeout=PATIENCE_SECONDS * 1000)
