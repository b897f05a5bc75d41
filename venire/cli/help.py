"""The help of verbs: options in groups, the words that an option takes, examples last, no line cut."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from venire.arena import registry
from venire.arena.errors import InputError

HELP = {"help_option_names": ["-h", "--help"]}
"""Settings of the whole command line, which every verb inherits."""

READ = "What is read"
JUDGMENTS = "How verdicts make judgments"
METHOD = "Method"
INTERVALS = "Intervals"
OF_ONE_METHOD = "Of one method alone"
FIGURES = "More figures"

_EXAMPLES = "\n\nExamples:\n"
_UNCUT = 10_000
_ADDRESS = re.compile(r"\d{1,5}|[\w.-]*:\d{1,5}|\[[0-9a-fA-F:]+\](:\d{1,5})?|\d+\.\d+\.\d+\.\d+|localhost")
"""What may stand behind `--serve`; anything else is the next argument."""
_UNBROKEN = "\u2011"
"""A hyphen at which no line is broken, while help is laid out: `bradley-terry` stays one word."""


class Verb(TyperCommand):
    """A verb whose docstring may end with a paragraph `Examples:`, and whose options may name a `rich_help_panel`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; `--serve` may stand without an address. Raises InputError for nan and infinity."""
        rest = list(super().parse_args(ctx, self.with_address(args)))
        for option in self.params:
            value = ctx.params.get(option.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"{option.opts[0]} {value}: give a number")
        return rest

    @staticmethod
    def with_address(args: list[str]) -> list[str]:
        """The arguments with `--serve=` for a `--serve` that no address follows: an option takes a value or none."""
        for place, one in enumerate(args):
            if one == "--serve" and not (place + 1 < len(args) and _ADDRESS.fullmatch(args[place + 1])):
                return [*args[:place], "--serve=", *args[place + 1 :]]
        return args

    def get_short_help_str(self, limit: int = _UNCUT) -> str:
        """The first sentence of the docstring, whole."""
        return super().get_short_help_str(_UNCUT)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the docstring without its examples."""
        whole = self.help
        self.help, _ = self._parts()
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options by group, in the order of their first options; those of no group come last."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        rest: list[tuple[str, str]] = []
        for one in self.get_params(ctx):
            if (record := one.get_help_record(ctx)) is None:
                continue
            row = (record[0], (record[1] + _words(one, ctx)).replace("-", _UNBROKEN))
            group = getattr(one, "rich_help_panel", None)
            if one.param_type_name == "argument":
                groups["Arguments"].append(row)
            elif group is None:
                rest.append(row)
            else:
                groups.setdefault(group, []).append(row)
        for heading, rows in [*groups.items(), ("Options", rest)]:
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        formatter.buffer[:] = [text.replace(_UNBROKEN, "-") for text in formatter.buffer]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they stand in the docstring."""
        if examples := self._parts()[1]:
            formatter.write_paragraph()
            formatter.write("Examples:\n" + examples + "\n")

    def _parts(self) -> tuple[str, str]:
        text, _, examples = inspect.cleandoc(self.help or "").partition(_EXAMPLES)
        return text, examples.rstrip()


class VerbGroup(TyperGroup):
    """A group that lists its verbs with whole sentences."""

    def get_short_help_str(self, limit: int = _UNCUT) -> str:
        """The first sentence of the docstring, whole."""
        return super().get_short_help_str(_UNCUT)


def _words(option: Any, ctx: Any) -> str:
    """What an option that completes words takes, for its help: all that completion proposes for nothing typed."""
    if getattr(option, "_custom_shell_complete", None) is None:
        return ""
    return f"  [one of: {', '.join(one.value for one in option.shell_complete(ctx, ''))}]"


def names_of(parts: registry.Registry[Any]) -> Callable[[str], list[str]]:
    """Completes the names of a registry, those of installed packages too; no part is loaded."""
    return lambda incomplete: [name for name in parts if name.startswith(incomplete)]


def verdict_formats(incomplete: str) -> list[str]:
    """Completes formats of verdicts that `venire rate` and `venire audit` read."""
    from venire.storage.transfer.formats import TABLE, with_dialects

    return [name for name in (TABLE, *with_dialects()) if name.startswith(incomplete)]


def exported_names(incomplete: str) -> list[str]:
    """Completes what `venire export` writes."""
    from venire.storage.transfer.exporting import RATINGS, TABLES
    from venire.storage.transfer.formats import with_writers

    return [name for name in (*TABLES, RATINGS, *with_writers()) if name.startswith(incomplete)]


def battle_policies(incomplete: str) -> list[str]:
    """Completes policies that choose battle by battle, as `venire place` needs them."""
    from venire.arena.registry import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete) and not POLICIES[name].crossed]


def check_names(incomplete: str) -> list[str]:
    """Completes the checks of `venire audit`."""
    from venire.reports.audit.audit import CHECKS

    return [name for name in CHECKS if name.startswith(incomplete)]


def dialect_names(incomplete: str) -> list[str]:
    """Completes the dialects of `venire parse`."""
    from venire.reading import dialect_list

    return [one["name"] for one in dialect_list() if one["name"].startswith(incomplete)]
