"""The command line: one file a verb, errors as sentences, exit codes as documented in the README.

What a verb needs is imported when it runs, so that `venire --help` and mistakes in typing answer at once.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

import typer

from venire.arena.errors import InputError, VenireError
from venire.commands import bring, demo, init, mock_provider, plan, rate, run, status

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    name="venire",
    help="Judge language models with language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and a key may be one
    rich_markup_mode=None,
)

for name, verb in (
    ("demo", demo.demo),
    ("init", init.init),
    ("plan", plan.plan),
    ("run", run.run),
    ("status", status.status),
    ("rate", rate.rate),
    ("mock-provider", mock_provider.mock_provider),
):
    app.command(name)(verb)
app.add_typer(bring.app, name="import")


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


def main() -> None:
    """Run the command line; ends the process with the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None where it was closed, something else under a test
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _tell("interrupted")
        raise
    except InputError as error:
        _tell(str(error))
        raise SystemExit(2) from None
    except VenireError as error:
        _tell(str(error))
        raise SystemExit(1) from None
    except OSError as error:
        _tell(f"{error.filename or 'a file'}: {error.strerror or error}")
        raise SystemExit(2) from None
    except RuntimeError as error:
        if not str(error).startswith("Query interrupted"):  # what DuckDB makes of Ctrl-C under a query
            raise
        _tell("interrupted")
        raise SystemExit(INTERRUPTED) from None


def _tell(sentence: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"venire: {sentence}\n")
