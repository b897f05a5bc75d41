"""The command that a run names to go on with holds the options that the run was given."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import venire as vn
from tests.parameters import slow_after
from venire.cli import app
from venire.cli.options import _MAY_BE_SECRET, _ONCE, again
from venire.configs.loading import load_campaign
from venire.session import Session
from venire.storage.plans.trial_states import pending_trials
from venire.storage.store.journal import Journal

Venire = Callable[..., Any]
Write = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("direct_judges")

VERBS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
GOES_ON = {"run": "run", "generate": "generate", "edit": "edit", "plan": "run"}
"""Verbs that ask, and the verb of the command that goes on."""
CLUSTER = "--engine ray:10.0.0.5:6379 --actors 4 --lease 5s"
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
    if option.name in _ONCE | _MAY_BE_SECRET:
        assert said == ""
        return
    assert said != ""
    assert given(GOES_ON[verb], shlex.split(said)).params[option.name] == first.params[option.name]


def test_a_variable_that_holds_an_address_to_notify_lasts() -> None:
    assert again(given("run", ["--notify", "env:HOOK"])) == "--notify env:HOOK"


def test_options_that_were_not_given_are_left_out() -> None:
    assert again(given("run", ["--yes"])) == ""


def test_a_run_that_ends_early_names_the_command_with_its_options(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign(more="[budget]\ncalls = 20\n")
    done = venire("run", path, "--yes", "--shard", "1/2", "--batch", "gpt-4-0613", "--retry-failed")
    assert done.code == 3, done.err
    assert "--batch gpt-4-0613 --shard 1/2 --amend" in " ".join(done.err.split())


def killed(path: Path, options: str) -> None:
    """Leave the store of a campaign as a run with some options does that is killed with one call in flight."""
    with Session(load_campaign(path)) as session:
        store, campaign = session.store, session.planned.id
        with store.commit() as commit:
            commit.run("insert_lane", name="lane", provider="openai", endpoint="http://127.0.0.1:9/v1")
            facts = {"kind": "run started", "detail": json.dumps({"missing": 1, "options": options})}
            commit.run("insert_event", now=store.clock.wall(), campaign=campaign, batch=commit.batch, **facts)
        constant, batch = store.constant, store.batch
        trial = int(pending_trials(store, campaign).trials[0])
    journal = Journal(path.with_suffix(".duckdb"), constant, campaign, datetime(2026, 1, 1, tzinfo=UTC))
    journal.mark(batch, 0)
    journal.announce(trial, 1, 1, 1, 5_000_000, 100)
    journal.close(remove=False)


def test_answers_that_actors_may_have_are_said_before_they_are_asked_again(
    venire: Venire, write_campaign: Write
) -> None:
    path = write_campaign(instructions=1)
    killed(path, CLUSTER)
    for command in (("status", path), ("plan", path), ("run", path)):
        done = venire(*command)
        assert CLUSTER in " ".join((done.out + done.err).split()), command
    said: list[str] = []
    assert vn.run(path, warn=said.append).ending is vn.Ending.COMPLETE
    assert any(CLUSTER in sentence for sentence in said)
    assert CLUSTER not in venire("status", path).out, "nothing is asked again any more"


@pytest.mark.parametrize("options", slow_after(1, "--engine ray --actors 2", "", "--shard 1/2"))
def test_where_no_actor_outlives_a_run_none_is_named(venire: Venire, write_campaign: Write, options: str) -> None:
    path = write_campaign(instructions=1)
    killed(path, options)
    assert "actors of" not in venire("status", path).out
