"""How a remedy names a setting: as the option of a command, or in Python as the keyword of a function."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal

_OPTIONS = {
    "mapping": "--map",
    "values": "--value",
    "form": "--format",
    "policies": "--policy",
    "protocols": "--protocol",
    "budgets": "--budget",
    "stand_ins": "--as",
}
"""Options that are not called as their keywords."""

_command: ContextVar[Mapping[str, str] | None] = ContextVar("command", default=None)
"""Within a command its options by keyword that only it calls so."""


@contextmanager
def command_words(**options: str) -> Iterator[None]:
    """Within it remedies name the options of a command; `options` are those that only this command calls so."""
    token = _command.set(options)
    try:
        yield
    finally:
        _command.reset(token)


def setting(keyword: str) -> str:
    """The name of a keyword's setting.

    >>> setting("both_bad")
    'both_bad'
    >>> with command_words():
    ...     setting("both_bad"), setting("mapping")
    ('--both-bad', '--map')
    """
    options = _command.get()
    return keyword if options is None else options.get(keyword) or option_name(keyword)


def option_name(keyword: str) -> str:
    """The option of the command line for a keyword.

    >>> option_name("both_bad"), option_name("mapping")
    ('--both-bad', '--map')
    """
    return _OPTIONS.get(keyword, f"--{keyword.replace('_', '-')}")


def setting_with(keyword: str, value: str | Decimal | int) -> str:
    """A setting with its value.

    >>> setting_with("form", "ballots"), setting_with("models", 20)
    ('form="ballots"', 'models=20')
    """
    if _command.get() is not None:
        return f"{setting(keyword)} {shlex.quote(str(value))}"
    return f'{keyword}="{value}"' if isinstance(value, str) else f"{keyword}={value}"


def setting_of(keyword: str, key: str, value: str, *more: tuple[str, str]) -> str:
    """A setting with a key and its value, and perhaps more of them.

    >>> setting_of("values", "not read", "")
    'values={"not read": ""}'
    >>> with command_words():
    ...     setting_of("values", "not read", "")
    "--value 'not read='"
    """
    pairs = [(key, value), *more]
    if _command.get() is None:
        listed = ", ".join(f'"{key}": "{value}"' for key, value in pairs)
        return f"{keyword}={{{listed}}}"
    return " ".join(f"{setting(keyword)} {shlex.quote(f'{key}={value}')}" for key, value in pairs)
