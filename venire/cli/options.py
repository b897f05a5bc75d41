"""What several verbs share: declarations of options, readers of their values, the question before money is spent.

Where an option has a few words to choose from, they are those of `arena.choices`, which the library takes too.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from venire.arena.errors import InputError
from venire.cli.help import INTERVALS, JUDGMENTS, READ, verdict_formats

if TYPE_CHECKING:
    from venire.arena.choices import BothBad, VerdictOrigin
    from venire.live.guard import Guard
    from venire.reports.board.source import Source
    from venire.session import Session

FILE = typer.Argument(..., help="The campaign file.")

ENV_FILE = typer.Option(
    None, "--env-file", help="File of NAME=value lines for keys that the environment lacks; then .env is looked at."
)


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
SERVE = typer.Option(
    None, "--serve", metavar="[HOST:PORT]", help="Serve pages of the run, to this machine alone unless a host is given."
)
YES = typer.Option(False, "--yes", "-y", help="Do not ask before spending.")

# Of verdicts to rate or to audit: where they are, how they are read, and how two orders make one judgment.
CAMPAIGN = typer.Option(None, "--campaign", rich_help_panel=READ, help="Which campaign of a store that has several.")
MAPPING = typer.Option(
    [], "--map", rich_help_panel=READ, help="OURS=THEIRS: a column that is called otherwise in the table."
)
VALUE = typer.Option(
    [],
    "--value",
    rich_help_panel=READ,
    metavar="THEIRS=OURS",
    help="What a table's word for a winner means: model_a, model_b, tie, or nothing.",
)
WHERE = typer.Option([], "--where", rich_help_panel=READ, help="COLUMN=VALUE: keep these rows of a table.")
CLUSTER = typer.Option(
    None,
    "--cluster",
    rich_help_panel=INTERVALS,
    help="Column whose rows share their noise; default instruction_id, or none.",
)
ORIGIN = typer.Option(
    None, "--origin", rich_help_panel=READ, help="Where a table's verdicts come from; default: recorded."
)
FORMAT = typer.Option(
    None,
    "--format",
    autocompletion=verdict_formats,
    rich_help_panel=READ,
    help="What the files are; default: guessed from their columns. `venire formats` describes them.",
)
BOTH_BAD = typer.Option(
    None, "--both-bad", rich_help_panel=READ, help="What a verdict that both are bad counts as; default: tie."
)
BASELINE = typer.Option(
    None, "--baseline", rich_help_panel=READ, help="Whom all models met, where the files do not say."
)
HUMAN = typer.Option(
    None,
    "--human",
    metavar="NAME",
    rich_help_panel=READ,
    help="People whose votes judges are compared with: a group that `venire import votes` named, default the only one; "
    "of a table a judge.",
)
MERGE = typer.Option(
    "mean", "--merge", rich_help_panel=JUDGMENTS, help="A tie and a win of both orders: half a win, or a tie."
)
FLIPS = typer.Option("tie", "--flips", rich_help_panel=JUDGMENTS, help="Orders with opposite winners.")
SEED = typer.Option(
    None, "--seed", rich_help_panel=INTERVALS, help="Of all random draws; default: the campaign's own, or 0."
)


def verdict_source(
    paths: list[Path],
    campaign: str | None,
    mapping: list[str],
    values: list[str],
    conditions: list[str],
    cluster: str | None,
    origin: VerdictOrigin | None,
    form: str | None,
    both_bad: BothBad | None,
    baseline: str | None,
) -> Source:
    """What these options name: a store's campaign, or files and how to read them."""
    from venire.arena.records import Origin
    from venire.reports.board.source import Source

    return Source(
        tuple(paths),
        campaign=campaign,
        mapping=column_map(mapping),
        values=value_map(values),
        where=where(conditions),
        cluster=cluster,
        origin=None if origin is None else Origin(origin),
        form=form,
        both_bad=both_bad,
        baseline=baseline,
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


def again(context: typer.Context) -> str:
    """The options of a command that the one which goes on with it needs too, as they were given."""
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if name in _ONCE or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
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


def anchors(pairs: list[str]) -> dict[str, float]:
    """`--anchor MODEL=ELO` options as Elo points by model; the name may hold an equals sign."""
    return _numbers(pairs, "--anchor", "MODEL=ELO", "gpt-4=1250", " Elo points")


def judge_weights(pairs: list[str]) -> dict[str, float]:
    """`--judge-weight JUDGE=WEIGHT` options as weights by judge; the name may hold an equals sign."""
    return _numbers(pairs, "--judge-weight", "JUDGE=WEIGHT", "gpt-4=0.5", "")


def _numbers(pairs: list[str], option: str, form: str, example: str, unit: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise InputError(f"{option} takes {form}, as in {option} {example}, and got {pair!r}")
        if found.setdefault(name, number) != number:
            raise InputError(f"{option} gives {name} both {found[name]:g} and {number:g}{unit}; give it one")
    return found


def where(pairs: list[str]) -> dict[str, tuple[str, ...]]:
    """`--where COLUMN=VALUE` options as values by column; a column of `COLUMN!=VALUE` ends in an exclamation mark."""
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        column, equals, value = pair.partition("=")
        if not equals or not column.removesuffix("!"):
            raise InputError(f"--where takes COLUMN=VALUE or COLUMN!=VALUE, as in --where kind=human, and got {pair!r}")
        found[column] = (*found.get(column, ()), value)
    return found


def column_map(pairs: list[str]) -> dict[str, str]:
    """`--map OURS=THEIRS` options as a mapping from our column names to the file's."""
    found: dict[str, str] = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not equals or not ours or not theirs:
            raise InputError(f"--map takes OUR_COLUMN=THEIR_COLUMN, as in --map elo=arena_elo, and got {pair!r}")
        found[ours] = theirs
    return found


def value_map(pairs: list[str]) -> dict[str, str]:
    """`--value THEIRS=OURS` options as a table's words for winners and ours; a word may hold an equals sign."""
    found: dict[str, str] = {}
    for pair in pairs:
        theirs, equals, ours = pair.rpartition("=")
        if not equals or not theirs:
            raise InputError(f"--value takes THEIR_WORD=OUR_WORD, as in --value left=model_a, and got {pair!r}")
        if found.setdefault(theirs, ours) != ours:
            raise InputError(f"--value gives {theirs} both as {found[theirs]!r} and as {ours!r}; give it one meaning")
    return found


def agree(session: Session, *, yes: bool) -> None:
    """Ask the person at the terminal before anything is spent; `yes`: they agreed already.

    Raises InputError where nobody is there to ask, and as `confirm` does.
    """
    if yes or not session.progress.missing:
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
