"""The command that a run names to go on with holds the options that the run was given."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from venire.cli import app
from venire.cli.options import _ONCE, again

Venire = Callable[..., Any]
Write = Callable[..., Path]

VERBS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
GOES_ON = {"run": "run", "generate": "generate", "edit": "edit", "plan": "run"}
"""Verbs that ask, and the verb of the command that goes on."""
OPTIONS = [
    pytest.param(verb, option, id=f"{verb} {option.opts[0]}")
    for verb in GOES_ON
    for option in VERBS[verb].params
    if option.name != "file"
]


def words_of(option: Any) -> list[str]:
    """An option with a value that it takes, and that a shell would take apart."""
    if option.is_flag or option.name == "serve":
        return [option.opts[-1]]
    value = "it's 2" if option.min is None else "1"
    return [option.opts[0], value] * (2 if option.multiple else 1)


def given(verb: str, words: list[str]) -> Any:
    return VERBS[verb].make_context(verb, ["campaign.toml", *words])


@pytest.mark.parametrize(("verb", "option"), OPTIONS)
def test_every_option_that_lasts_is_in_the_command_that_goes_on(verb: str, option: Any) -> None:
    first = given(verb, words_of(option))
    said = again(first)
    if option.name in _ONCE:
        assert said == ""
        return
    assert said != ""
    assert given(GOES_ON[verb], shlex.split(said)).params[option.name] == first.params[option.name]


def test_options_that_were_not_given_are_left_out() -> None:
    assert again(given("run", ["--yes"])) == ""


def test_a_run_that_ends_early_names_the_command_with_its_options(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(more="[budget]\ncalls = 20\n")
    done = venire("run", path, "--yes", "--shard", "1/2", "--batch", "gpt-4-0613", "--retry-failed")
    assert done.code == 3, done.err
    assert "--batch gpt-4-0613 --shard 1/2 --amend" in " ".join(done.err.split())
