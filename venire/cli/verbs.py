"""The verbs of the command line, and what becomes of their errors.

What a verb needs is imported when it runs, so that `venire --help` and mistakes in typing answer at once.
"""

from __future__ import annotations

import errno
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

import typer

from venire.arena.errors import InputError, VenireError
from venire.arena.hints import command_words
from venire.cli import (
    annotate,
    audit,
    batch,
    bring,
    demo,
    doctor,
    export,
    generate,
    init,
    judge,
    mock_provider,
    parse,
    parts,
    place,
    plan,
    prices,
    prompts,
    rate,
    report,
    run,
    serve,
    simulate,
    sql,
    status,
    store,
)
from venire.cli.help import HELP, Verb, VerbGroup
from venire.cli.signals import INTERRUPTED, interruptible

_MANY_FILES = 10_240
"""Open files where the system names no limit: macOS allows no more."""
_OUTPUT_ENDED = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF})


class _Verbs(VerbGroup):
    """Knows `help VERB`; ends with 130 on Ctrl-C; typer, by its version, would say "Aborted!" and end with 1."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs in the order of `VERBS`: typer has groups of verbs behind all others."""
        return [name for members in VERBS.values() for name in members]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; `help VERB` is `VERB --help`."""
        return list(super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args))

    def invoke(self, ctx: Any) -> Any:
        try:
            interruptible()
            return super().invoke(ctx)
        except (KeyboardInterrupt, typer.Abort):
            _print_error("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="venire",
    cls=_Verbs,
    help="Judge language models with language models.",
    no_args_is_help=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and a key may be one
    rich_markup_mode=None,
)

VERBS: Mapping[str, Mapping[str, Callable[..., None] | typer.Typer]] = {
    "Start": {"judge": judge.judge, "init": init.init, "demo": demo.demo, "doctor": doctor.doctor},
    "Ask models": {
        "plan": plan.plan,
        "run": run.run,
        "generate": generate.generate,
        "edit": generate.edit,
        "batch": batch.app,
        "place": place.place,
        "watch": status.watch,
        "status": status.status,
    },
    "Look at results": {
        "serve": serve.serve,
        "report": report.report,
        "rate": rate.rate,
        "audit": audit.audit,
        "annotate": annotate.annotate,
    },
    "Tables and stores": {
        "import": bring.app,
        "export": export.export,
        "parse": parse.parse,
        "reparse": parse.reparse,
        "sql": sql.sql,
        "store": store.app,
    },
    "Try with simulated judges": {"simulate": simulate.simulate, "mock-provider": mock_provider.mock_provider},
    "Look up": {"methods": parts.methods, "formats": parts.formats, "prices": prices.prices, "prompts": prompts.app},
}
"""Every verb, in the groups and the order of `venire --help`."""

for heading, members in VERBS.items():
    for name, verb in members.items():
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name, rich_help_panel=heading)
        else:
            app.command(name, cls=Verb, rich_help_panel=heading)(verb)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"venire {version('venire')}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Judge language models with language models."""


def run_verb() -> None:
    """Run the verb that the arguments name; ends the process with the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None where it was closed, something else under a test
            stream.reconfigure(errors="backslashreplace")
    _raise_file_limit()
    try:
        with command_words():
            app()
    except InputError as error:
        _print_error(str(error))
        raise SystemExit(2) from None
    except VenireError as error:
        _print_error(str(error))
        raise SystemExit(1) from None
    except OSError as error:
        where = error.filename or ("standard output" if error.errno in _OUTPUT_ENDED else None)
        reason = error.strerror or str(error)
        if error.errno in (errno.EMFILE, errno.ENFILE):
            where, reason = None, f"{reason.lower()} (at {where}): raise `ulimit -n`"
        _print_error(reason if where is None else f"{where}: {reason}")
        raise SystemExit(2) from None
    except MemoryError:
        _print_error("out of memory: what was answered is on disk, and the same command goes on; close other programs")
        raise SystemExit(1) from None
    except RuntimeError as error:
        if not str(error).startswith("Query interrupted"):  # what DuckDB makes of Ctrl-C under a query
            raise
        _print_error("interrupted")
        raise SystemExit(INTERRUPTED) from None


def _raise_file_limit() -> None:
    """Use all the open files that this process may have: a call in flight needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _print_error(message: str) -> None:
    from venire.arena.wording import plain

    if sys.stderr is not None:
        sys.stderr.write("venire: " + "\n".join(plain(line) for line in message.split("\n")) + "\n")
