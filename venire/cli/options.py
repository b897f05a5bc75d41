"""What several verbs share: records of options, single options, and the question before money is spent."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from venire.arena.errors import InputError

if TYPE_CHECKING:
    from venire.arena.campaigns import CampaignSettings
    from venire.live.guard import Guard
    from venire.session import Session
    from venire.telemetry.notify import NotifyTarget

_R = TypeVar("_R")


def with_options(**after: str) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Give a verb the options of each record that a parameter of it names, and the verb the record with their values.

    An option is a field of the record: `name: Annotated[type, typer.Option(...)] = default`. Options stand in the help
    where the verb has the record; one named in `after` follows that parameter.
    """

    def decorate(verb: Callable[..., _R]) -> Callable[..., _R]:
        hints, records = get_type_hints(verb, include_extras=True), records_of(verb)
        shown: dict[str, inspect.Parameter] = {}
        for name, one in inspect.signature(verb).parameters.items():
            shown |= _options_of(records[name]) if name in records else {name: one.replace(annotation=hints[name])}
        for name, earlier in after.items():
            moved, names = shown.pop(name), list(shown)
            behind = names[names.index(earlier) + 1 :]
            shown[name] = moved
            shown |= {other: shown.pop(other) for other in behind}

        @wraps(verb)
        def call(**given: Any) -> _R:
            made = {
                name: record(**{one.name: given.pop(one.name) for one in fields(record)})
                for name, record in records.items()
            }
            return verb(**given, **made)

        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown.values()]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        return call

    return decorate


def records_of(verb: Callable[..., Any]) -> dict[str, Any]:
    """The records of options that a verb takes, by parameter."""
    hints = get_type_hints(inspect.unwrap(verb), include_extras=True)
    return {name: hint for name, hint in hints.items() if is_dataclass(hint)}


def _options_of(record: Any) -> dict[str, inspect.Parameter]:
    """The options of a record, by the names of its fields."""
    hints = get_type_hints(record, include_extras=True)
    return {
        one.name: inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default if one.default_factory is MISSING else one.default_factory(),
            annotation=hints[one.name],
        )
        for one in fields(record)
    }


FILE = typer.Argument(..., help="The campaign file.")

EnvFile = Annotated[
    Path | None,
    typer.Option(
        "--env-file", help="File of NAME=value lines for keys that the environment lacks; then .env is looked at."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Try steps that used up their attempts again.")]
Serve = Annotated[
    str | None,
    typer.Option(
        "--serve", metavar="[HOST:PORT]", help="Serve pages of the run, to this machine alone unless a host is given."
    ),
]


Notify = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="URL",
        help="POST a line of JSON there at 50, 80 and 100 % of the money, when a lane closes and at the end; env:NAME "
        "takes the URL from a variable.",
    ),
]
NotifyCommand = Annotated[
    str | None,
    typer.Option(
        "--notify-command", metavar="CMD", help="Run this program then, with the JSON on its standard input; no shell."
    ),
]


def notify_target(
    notify: str | None, command: str | None, environ: Mapping[str, str] | None, file: Path, campaign: CampaignSettings
) -> NotifyTarget | None:
    """Who is notified of a run of a campaign file; None: nobody. Raises InputError as `NotifyTarget.of` does."""
    from venire.telemetry.notify import NotifyTarget

    asked = (*campaign.judges, *campaign.contestants, *campaign.editors)
    keys = {name for one in asked for route in one.lane.routes if (name := route.key_variable) is not None}
    return NotifyTarget.of(notify, command, environ, file, keys)


def environment(env_file: Path | None) -> Mapping[str, str] | None:
    """The variables of this process, and those of `--env-file` that it lacks; None without such a file.

    Raises as `read_env_file` does.
    """
    if env_file is None:
        return None
    from venire.configs.env_file import read_env_file

    return read_env_file(env_file) | {name: value for name, value in os.environ.items() if value.strip()}


def seconds_of(text: str, option: str) -> float:
    """The seconds of a time such as 30s, 5m or 1h; a number alone is seconds. Raises InputError for anything else."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise InputError(f"{option} is {text!r}: give a time such as 30s, 5m or 1h, a day at most")
    return seconds


def named_store(path: Path) -> Path:
    """The store that a path on the command line names, which may be a campaign file or its folder."""
    if path.suffix != ".toml" and not path.is_dir():
        return path
    from venire.configs.loading import store_of

    return store_of(path)


def named_stores(paths: list[Path]) -> list[Path]:
    """The same of several paths; files that are no stores stay as they are."""
    return [named_store(path) for path in paths]


STORE = typer.Argument(..., help="The store, its campaign file or the folder of that file.", callback=named_store)
JSON = typer.Option(False, "--json", help="Print JSON on standard output and nothing else.")
RAW = typer.Option(
    False, "--raw", help="In CSV: texts that begin like formulas as they are, without an apostrophe before them."
)

_ONCE = frozenset(
    {
        "file",
        "yes",
        "amend",
        "retry_failed",
        "detach",
        "pilot",
        "explain",
        "print_config",
        "as_json",
    }
)
"""Options that hold for one start: a decision, or what is printed."""

_MAY_BE_SECRET = frozenset({"notify", "notify_command"})
"""Options that are not written down, in the store or as the command to go on with: a URL may hold a token."""


def again(context: typer.Context) -> str:
    """The options of a command that the one which goes on with it needs too, as they were given."""
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        value = context.params[name]
        secret = name in _MAY_BE_SECRET and not str(value).startswith("env:")
        if name in _ONCE or secret or source is None or source.name != "COMMANDLINE":
            continue
        if isinstance(value, bool):
            words.append((option.opts if value else option.secondary_opts)[0])
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [option.opts[0], str(one)] if str(one) else [option.opts[0]]
    return shlex.join(words)


def page_guard(serve: str | None) -> Guard | None:
    """Who may see the pages that `--serve` asks for; None: nobody asked. Raises InputError for another address."""
    if serve is None:
        return None
    from venire.live.guard import Guard, parse_address

    return Guard.of(parse_address(serve))


def agree(session: Session, *, yes: bool) -> None:
    """Ask the person at the terminal before anything is spent; `yes`: they agreed already.

    Raises InputError where nobody is there to ask, and as `confirm` does.
    """
    if yes or not session.asks_more:
        return
    if not sys.stdin.isatty():
        raise InputError("nobody is there to agree to the plan: check it and add --yes")
    confirm("Run it?")


def confirm(question: str) -> None:
    """Ask a question on standard error. Raises typer.Exit(130) where the answer is no, Ctrl-C or the end of input."""
    from venire.render.screen import console

    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        console(stderr=True).print("nothing was asked")
        raise typer.Exit(130)


def write_json(value: object) -> None:
    """One JSON document on standard output, and nothing else there."""
    import json

    if sys.stdout is not None:  # None where it was closed
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        sys.stdout.flush()  # what cannot be written is told of here, not while Python ends
