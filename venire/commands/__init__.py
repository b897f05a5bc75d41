"""The command line: one file a verb, errors as sentences, exit codes as documented in the README.

What a verb needs is imported when it runs, so that `venire --help` and mistakes in typing answer at once.
"""

from __future__ import annotations

import sys

import typer

from venire.arena.errors import InputError, VenireError
from venire.commands import bring, demo, init, mock_provider, plan, rate, run, status

__all__ = ["app", "main"]

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
    try:
        app()
    except InputError as error:
        sys.stderr.write(f"venire: {error}\n")
        raise SystemExit(2) from None
    except VenireError as error:
        sys.stderr.write(f"venire: {error}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        sys.stderr.write("venire: interrupted\n")
        raise SystemExit(130) from None
