"""The help of verbs: options in groups, the words that an option takes, examples last, no line cut."""

from __future__ import annotations

import inspect
import math
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from venire.arena import registry
from venire.arena.errors import InputError
from venire.arena.wording import plain, suggest

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
_NOT_ONE_OF = re.compile("'([^']*)' is not one of (.*)")
"""What typer says of a word that an option does not take."""
_ADDRESS = re.compile(r"\d{1,5}|[\w.-]*:\d{1,5}|\[[0-9a-fA-F:]+\](:\d{1,5})?|\d+\.\d+\.\d+\.\d+|localhost")
"""What may stand behind `--serve`; anything else is the next argument."""
OTHER_WORDS = {
    "board": "rate",
    "eval": "judge",
    "evaluate": "judge",
    "follow": "watch",
    "leaderboard": "rate",
    "list": "status",
    "new": "init",
    "query": "sql",
    "resume": "run",
    "show": "report",
    "ui": "serve",
    "view": "serve",
}
"""Verbs by the words that other tools have for them."""

_UNBROKEN = "\u2011"
"""A hyphen at which no line is broken, while help is laid out: `bradley-terry` stays one word."""


class Verb(TyperCommand):
    """A verb whose docstring may end with a paragraph `Examples:`, and whose options may name a `rich_help_panel`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; `--serve` may stand without an address. Raises InputError for nan and infinity."""
        try:
            rest = list(super().parse_args(ctx, self._with_output(ctx, self.with_address(args))))
        except typer.BadParameter as error:
            if (refused := _NOT_ONE_OF.search(error.message)) is not None:
                words = re.findall("'([^']+)'", refused[2])
                error.message = f"{refused[1]!r} is no word of this option; {suggest(refused[1], words)}"
            raise
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

    def _with_output(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments with `-o` before a last word that can only be the file to write, as in `store backup S OUT`.

        That is a word too many, or where there may be any number, the name of a file that is not there.
        """
        output = next((one for one in self.params if "-o" in one.opts), None)
        if output is None or {"-h", "--help"} & set(args):
            return args
        given, surplus, order = self.make_parser(ctx).parse_args(list(args))
        several: list[Sequence[str]] = [given.get(one.name) or () for one in order if one.nargs == -1]
        if output.name in given:
            return args
        if len(surplus) == 1:
            word = surplus[0]
        elif several and len(several[-1]) > 1 and Path(several[-1][-1]).suffix and not Path(several[-1][-1]).exists():
            word = several[-1][-1]
        else:
            return args
        index = len(args) - 1 - args[::-1].index(word)
        return [*args[:index], "-o", *args[index:]]

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
    """Lists its verbs with whole sentences, below the headings of their `rich_help_panel`; says what a slip meant."""

    def get_short_help_str(self, limit: int = _UNCUT) -> str:
        """The first sentence of the docstring, whole."""
        return super().get_short_help_str(_UNCUT)

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs that are shown: another word for one of them is hidden."""
        return [name for name, verb in self.commands.items() if not verb.hidden]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each verb with its sentence: headings in the order of their first verbs, sentences in one column."""
        names = self.list_commands(ctx)
        column = max(map(len, names))
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in names:
            verb: Any = self.get_command(ctx, name)
            panel = verb.rich_help_panel if isinstance(verb.rich_help_panel, str) else "Commands"
            groups.setdefault(panel, []).append((name.ljust(column), verb.get_short_help_str()))
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the first argument names; ends with exit code 2 and the one that was meant, if it is none."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(self._unknown(ctx, *args))
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: Any, word: str, *rest: str) -> str:
        """What is said of a word that is no verb here: the verb of this name elsewhere, or the nearest one here."""
        root = ctx.find_root()
        everywhere = [
            ("", root.command),
            *((name, one) for name, one in root.command.commands.items() if one is not self),
        ]
        paths = [f"{name} {word}".lstrip() for name, one in everywhere if word in getattr(one, "commands", ())]
        paths += [path for path in (OTHER_WORDS.get(word),) if path and self is root.command]
        if paths:
            meant = " or ".join(f"`venire {shlex.join([*path.split(), *rest])}`" for path in paths)
            return f"{ctx.command_path} has no command {word!r}; did you mean {plain(meant)}?"
        names = [*self.list_commands(ctx), *self.commands]
        return f"{plain(ctx.command_path)} has no command {word!r}; {suggest(word, names)}"


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
