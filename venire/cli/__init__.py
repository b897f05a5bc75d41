"""The command line: one file a verb, errors as sentences, exit codes as documented in docs/campaigns.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venire.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from venire.cli.verbs import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; ends the process with the exit code."""
    with ended_by_signals():
        from venire.cli.verbs import run_verb

        run_verb()


def __getattr__(name: str) -> Any:
    if name == "app":
        from venire.cli.verbs import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
