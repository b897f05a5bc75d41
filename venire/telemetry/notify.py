"""Notifications of a run to somebody who is away: a POST, or a command, for the few events that matter.

They are of money (50, 80 and 100 % of the campaign's limit, where this run passes it), of a lane that closes, and of
the end. A thread sends them, so that no call waits; who cannot be reached is said once, and waited for some seconds.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import shutil
import signal
import ssl
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from venire.arena.errors import InputError
from venire.arena.wording import money, plain
from venire.configs.env_file import environment, read_env_file
from venire.judges.providers.base import SecretHolder
from venire.orchestrator.recording.ending import EXIT_CODES
from venire.orchestrator.recording.events import Event

NOTIFY_VARIABLE = "VENIRE_NOTIFY"
"""Environment variable with the URL to notify where the command line names none."""

_FROM_VARIABLE = "env:"
_ANSWER_SECONDS = 5.0
_COMMAND_SECONDS = 10.0
_TRIES = 2
_RETRY_SECONDS = 1.0
_CLOSING_SECONDS = 12.0
"""How long a run waits in the end for what is not sent yet."""

_MAX_TEXT = 300
_DOLLAR = 10**9


@dataclass(frozen=True, slots=True)
class NotifyTarget(SecretHolder):
    """Where notifications go: a URL, which may hold a token and shows nowhere, and the words of a command."""

    url: str | None = field(default=None, repr=False)
    command: tuple[str, ...] = field(default=(), repr=False)
    option: str = "--notify"
    """What gave the URL, in place of which it is named: its host may be the secret too."""
    withheld: frozenset[str] = frozenset()
    """Variables of this process that the command has not."""

    @classmethod
    def of(
        cls,
        url: str | None,
        command: str | None,
        environ: Mapping[str, str] | None,
        campaign: Path,
        withheld: Collection[str] = (),
    ) -> NotifyTarget | None:
        """From the options `--notify` and `--notify-command`; None where nobody is to be notified.

        A URL may be `env:NAME`: a variable of `environ` (None: this process's), or of `.env` beside the campaign file.
        Raises InputError, which never shows the URL.
        """
        words, option = () if command is None else _words(command), "--notify"
        if url is None:
            option = NOTIFY_VARIABLE
            url = environment(environ).get(NOTIFY_VARIABLE, "").strip() or None
        elif url.startswith(_FROM_VARIABLE):
            url = _variable(url.removeprefix(_FROM_VARIABLE), environment(environ), campaign.parent / ".env")
        if url is not None:
            _refuse_bad(url)
        return cls(url, words, option, frozenset(withheld)) if url or words else None


def _words(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InputError(f"--notify-command cannot be read: {error}; it is a program and its arguments") from error
    if not words or shutil.which(words[0]) is None:
        raise InputError(
            f"--notify-command: there is no program {plain(words[0]) if words else 'in it'!r}; no shell runs it: for "
            "what a shell reads give sh -c '...'"
        )
    return words


def _variable(name: str, environ: Mapping[str, str], beside: Path) -> str:
    found = environ.get(name, "").strip()
    if not found and beside.is_file():
        found = read_env_file(beside).get(name, "").strip()
    if not found:
        raise InputError(f"--notify env:{plain(name)}: that variable is not set, and not in {beside} either")
    return found


def _refuse_bad(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        good = False
    if not good or not url.isprintable() or not url.isascii() or " " in url:
        raise InputError(
            "--notify takes an address that begins with http:// or https:// and names a host, without a user or a "
            f"password before that, or env:NAME for a variable that holds one ({NOTIFY_VARIABLE} is asked without)"
        )


class Notifier:
    """An observer that notifies somebody; `warn` is called with a sentence when it first cannot be done."""

    def __init__(self, target: NotifyTarget, warn: Callable[[str], None]) -> None:
        self._target = target
        self._warn = warn
        self._warned = False
        self._standing: dict[str, Any] = {}
        self._spent = self._before = 0
        self._budget: int | None = None
        self._percent_sent = 0
        self._ended: dict[str, Any] | None = None
        self._leader: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="venire-notify", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        """Take in an event, and have the thread send what is to be notified."""
        take = _TAKEN.get(event.name)
        if take is not None:
            take(self, event)

    def close(self) -> None:
        """Send the end of the run, and wait for the thread for at most some seconds."""
        if self._ended is not None:
            self._send(self._ended | {"leader": self._leader})
        self._waiting.put(None)
        self._thread.join(_CLOSING_SECONDS)
        if self._thread.is_alive():
            self._report(f"at the end of the run: no answer within {_CLOSING_SECONDS:g} s")
            self._end_command()

    # what is notified

    def _started(self, event: Event) -> None:
        now = event.fields
        self._standing = {
            "campaign": now["campaign"],
            "done": _whole(now["settled"]) + _whole(now["failed"]),
            "of": _whole(now["planned"]),
            "pages": None,
        }
        self._spent = self._before = _whole(now["spent_nano"])
        budget = now["budget_nano"]
        self._budget = None if budget is None else _whole(budget)

    def _served(self, event: Event) -> None:
        self._standing["pages"] = event.fields["address"]

    def _trial(self, event: Event) -> None:
        self._standing["done"] += 1

    def _round(self, event: Event) -> None:
        self._standing["of"] += _whole(event.fields["trials"])

    def _call(self, event: Event) -> None:
        self._spent += _whole(event.fields["cost_nano"])

    def _passed(self, event: Event) -> None:
        self._spent = _whole(event.fields["spent_nano"])
        self._percent(event, _whole(event.fields["percent"]))

    def _reached(self, event: Event) -> None:
        self._percent(event, 100, _clipped(event.fields["why"]))

    def _percent(self, event: Event, percent: int, why: str | None = None) -> None:
        if percent > self._percent_sent:  # of a short run that all is spent may be known first
            self._percent_sent = percent
            self._send({"event": "budget", "percent": percent, "why": why} | _at(event))

    def _closed(self, event: Event) -> None:
        facts = {name: _clipped(event.fields[name]) for name in ("lane", "why")}
        self._send({"event": "lane closed"} | facts | _at(event))

    def _end(self, event: Event) -> None:
        now = event.fields
        if now["settled"] is not None:
            self._standing["done"] = _whole(now["settled"]) + _whole(now["failed"])
            self._standing["of"] = self._standing["done"] + _whole(now["missing"])
            self._spent = self._before + _whole(now["cost_nano"])
        ending = str(now["ending"])
        self._ended = {"event": "ended", "ending": ending, "exit_code": EXIT_CODES.get(ending, 1)} | _at(event)

    def _rated(self, event: Event) -> None:
        self._leader = str(event.fields["leader"])

    def _send(self, facts: dict[str, Any]) -> None:
        """Hand the thread the document of an event: its facts, and where the campaign stands."""
        budget = None if self._budget is None else self._budget / _DOLLAR
        absent = dict.fromkeys(("percent", "lane", "why", "ending", "exit_code", "leader"))
        document: dict[str, Any] = {**absent, **facts, **self._standing}
        document |= {"spent": self._spent / _DOLLAR, "budget": budget}
        text = self._sentence(document)
        self._waiting.put({"text": text} | document)

    def _sentence(self, document: Mapping[str, Any]) -> str:
        limit = "" if self._budget is None else f" of {money(self._budget)}"
        what = {
            # a limit may not cover the next call long before all of it is spent: then the reason says so
            "budget": document["why"] or f"{document['percent']} % of the budget is spent",
            "lane closed": f"lane {document['lane']} takes no more calls" + _because(document["why"]),
            "ended": f"ended ({document['ending']})",
        }[document["event"]]
        leads = f", {document['leader']} is rated highest" if document["leader"] else ""
        standing = f"{document['done']:,} of {document['of']:,} trials, {money(self._spent)}{limit}{leads}"
        where = f"; {document['pages']}" if document["pages"] and document["event"] != "ended" else ""
        sentence = plain(f"{document['campaign']}: {what}; {standing}{where}")
        return sentence.replace("<", "‹").replace(">", "›")

    # how it is sent

    def _run(self) -> None:
        while (document := self._waiting.get()) is not None:
            # of Slack's webhooks `text` is shown, of Discord's `content`, where no name shall call anybody
            shown = {"content": document["text"], "allowed_mentions": {"parse": []}}
            body = json.dumps(document | shown, ensure_ascii=False).encode("utf-8", "replace")
            if self._target.url is not None:
                self._post(self._target.url, body)
            if self._target.command:
                self._command(self._target.command, body, document)

    def _post(self, url: str, body: bytes) -> None:
        why: str | None = None
        for number in range(1 if self._warned else _TRIES):  # who did not answer before is not waited for twice
            if number:
                threading.Event().wait(_RETRY_SECONDS)
            if (why := _posted(url, body)) is None:
                return
        self._report(f"at the address of {self._target.option}: {why}")

    def _command(self, words: tuple[str, ...], body: bytes, document: Mapping[str, Any]) -> None:
        variables = {name: value for name, value in os.environ.items() if name not in self._target.withheld}
        variables |= {f"VENIRE_{name.upper()}": _variable_text(value) for name, value in document.items()}
        try:
            process = self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C of the terminal is for the run
                env=variables,
            )
        except OSError as error:
            self._report(f"by the command: {error.strerror or type(error).__name__}")
            return
        why = None
        try:
            process.communicate(body, timeout=_COMMAND_SECONDS)
            why = f"it ended with exit code {process.returncode}" if process.returncode else None
        except subprocess.TimeoutExpired:
            why = f"it did not end within {_COMMAND_SECONDS:g} s"
        finally:
            self._end_command()
        if why is not None:
            self._report(f"by the command: {why}")

    def _end_command(self) -> None:
        """End the command, and what it started, if it goes on."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _report(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"warning: nobody could be notified {plain(why)}; the run does not depend on it")


_TAKEN: Mapping[str, Callable[[Notifier, Event], None]] = {
    "run.started": Notifier._started,
    "run.ended": Notifier._end,
    "pages.served": Notifier._served,
    "trial.settled": Notifier._trial,
    "trial.failed": Notifier._trial,
    "round.planned": Notifier._round,
    "call.ended": Notifier._call,
    "budget.passed": Notifier._passed,
    "budget.reached": Notifier._reached,
    "lane.closed": Notifier._closed,
    "board.rated": Notifier._rated,
}
"""What is done with an event, by its name; others are not for somebody who is away."""


class _NoRedirects(HTTPRedirectHandler):
    """An address that holds a token sends nothing on to another."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _posted(url: str, body: bytes) -> str | None:
    """Send a document; None, or in words that hold nothing of the URL why it did not arrive.

    It is sent on a thread of its own, since the time limit of a socket holds for each part of an answer alone, and for
    the look-up of a name not at all.
    """
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_answer(url, body)), name="venire-post", daemon=True).start()
    try:
        return answers.get(timeout=_ANSWER_SECONDS)
    except queue.Empty:
        return f"no answer within {_ANSWER_SECONDS:g} s"


def _answer(url: str, body: bytes) -> str | None:
    """What `_posted` says, however slowly an answer drips."""
    request = Request(url, body, {"Content-Type": "application/json", "User-Agent": "venire"}, method="POST")
    try:
        with build_opener(_NoRedirects).open(request, timeout=_ANSWER_SECONDS):
            return None
    except HTTPError as error:
        with error:
            return f"it answered {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            return f"no answer within {_ANSWER_SECONDS:g} s"
        if isinstance(reason, ssl.SSLError):  # whose text may name the host
            return type(reason).__name__
        return (isinstance(reason, OSError) and reason.strerror) or type(reason).__name__


def _at(event: Event) -> dict[str, str]:
    return {"at": event.at.isoformat("T", "seconds")}


def _whole(value: object) -> int:
    """A count of an event; 0 for one that is not known."""
    return value if isinstance(value, int) else 0


def _clipped(text: object) -> str:
    words = plain(str(text))
    return words if len(words) <= _MAX_TEXT else words[: _MAX_TEXT - 1] + "…"


def _because(why: object) -> str:
    return f" ({why})" if why else ""


def _variable_text(value: object) -> str:
    """A value of the document as an environment variable: nothing for null."""
    return "" if value is None else plain(str(value))
