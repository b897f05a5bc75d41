"""Campaigns whose provider refuses single calls, the key or the account, in the middle of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.venire.running.test_routes import CALLS, KEYS, Front, fronted, judge, rows
from venire.orchestrator.lanes.refusals import REFUSALS_IN_A_ROW
from venire.simulation.server import JudgeServer

Venire = Callable[..., Any]
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[JudgeServer]]

pytestmark = pytest.mark.usefixtures("keys")

IN_FLIGHT = 4
ONE_KEY = 'key_variable = "FIRST_KEY"'
FAILED = "select count(*) from failed"


class Filter(Front):
    """Refuses each call that holds a text, or that its rule names, with an error that has no machine code."""

    text = b""
    only: str | None = None
    """The key to which the filter belongs; None: all."""
    reason = "blocked by policy 7"

    def refusal(self, key: str, body: bytes) -> tuple[int, dict[str, Any]] | None:
        if self.text and self.text in body and self.only in (None, key):
            return 403, {"message": self.reason}
        status = self.rule(key, len(self.seen) + 1)
        return None if status is None else (status, {"message": self.reason})


def a_completion(folder: Path, model: int) -> bytes:
    """Some words of a model's completion of the first instruction; of the first model: of the very first trials."""
    lines = [json.loads(line) for line in (folder / "completions.jsonl").read_text(encoding="utf-8").splitlines()]
    first = [line for line in lines if line["instruction_id"] == lines[0]["instruction_id"]]
    words = max(first[model]["completion"].splitlines(), key=len)[:40]
    assert words.isascii()
    assert sum(words in line["completion"] for line in lines) == 1
    return json.dumps(words)[1:-1].encode()


@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("model", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_a_completion_that_a_filter_always_refuses_fails_in_its_trials_and_all_others_are_judged(
    venire: Venire, write_campaign: Write, serve: Serve, concurrency: int, model: int
) -> None:
    with serve() as server, fronted(server, kind=Filter) as front:
        one = judge(front.url, ONE_KEY).replace("concurrency = 4", f"concurrency = {concurrency}")
        path = write_campaign(instructions=2, judges=one)
        front.text = a_completion(path.parent, model)
        done = venire("run", path, "--yes")
        assert done.code == 4, done.err
        assert "10 trials failed: HTTP 403: blocked by policy 7 (10); try them again" in " ".join(done.err.split())
        assert "lane closed" not in done.err
        assert "trials are missing" not in done.err
        assert rows(path, FAILED) == [(10,)], "five other models, in both orders"
        assert rows(path, "select count(*) from settled") == [(50,)]
        asked = len(front.seen)
        again = venire("run", path, "--yes")
        assert (again.code, len(front.seen)) == (4, asked), "a failure is on record, and not asked again"
        assert "HTTP 403: blocked by policy 7 (10)" in " ".join(
            venire("status", path.with_suffix(".duckdb")).out.split()
        )
        retried = venire("run", path, "--yes", "--retry-failed")
        assert (retried.code, len(front.seen)) == (4, asked + 10), "and they are nobody's reason to give up the others"
        front.text = b""
        assert venire("run", path, "--yes", "--retry-failed").code == 0
    assert len(server.ledger.entries) == CALLS, "nothing was answered twice"


@pytest.mark.slow
@pytest.mark.parametrize(
    "status", [pytest.param(401, marks=pytest.mark.slow), pytest.param(402, marks=pytest.mark.slow), 403]
)
def test_a_refusal_now_and_then_leaves_nothing_else_unasked(
    venire: Venire, write_campaign: Write, serve: Serve, status: int
) -> None:
    with serve() as server, fronted(server, lambda key, nth: status if nth % 25 == 20 else None, Filter) as front:
        path = write_campaign(instructions=2, judges=judge(front.url, ONE_KEY))
        done = venire("run", path, "--yes")
        assert done.code == 4, done.err
        refused = front.statuses[status]
        assert refused >= 4
        assert rows(path, FAILED) == [(refused,)]
        assert rows(path, "select count(*) from settled") == [(60 - refused,)]
        front.rule = lambda key, nth: None
        assert venire("run", path, "--yes", "--retry-failed").code == 0
    assert len(server.ledger.entries) == CALLS


def revoke(front: Front, after: int, status: int, *, listed: bool) -> None:
    """Refuse the key from a call on, and its list of models from then on where that is not public."""

    def rule(key: str, nth: int) -> int | None:
        if nth <= after:
            return None
        if not listed:
            front.unlisted = KEYS["FIRST_KEY"]
        return status

    front.rule = rule


@pytest.mark.parametrize(
    ("status", "listed", "most"),
    [
        (401, False, REFUSALS_IN_A_ROW + IN_FLIGHT),
        pytest.param(401, True, REFUSALS_IN_A_ROW + IN_FLIGHT, marks=pytest.mark.slow),
        pytest.param(402, True, REFUSALS_IN_A_ROW + IN_FLIGHT, marks=pytest.mark.slow),
        pytest.param(403, False, 30, marks=pytest.mark.slow),
        pytest.param(403, True, 60, marks=pytest.mark.slow),
    ],
)
def test_a_key_that_is_refused_in_the_middle_closes_its_lane_and_no_trial_fails_for_it(
    venire: Venire, write_campaign: Write, serve: Serve, status: int, listed: bool, most: int
) -> None:
    with serve() as server, fronted(server, kind=Filter) as front:
        revoke(front, 30, status, listed=listed)
        path = write_campaign(instructions=2, judges=judge(front.url, ONE_KEY))
        done = venire("run", path, "--yes")
        assert done.code == 1, done.err
        assert f"HTTP {status}: blocked by policy 7" in " ".join(done.err.split())
        assert "lane closed" in done.err
        assert "are missing" in done.err
        assert 1 <= front.statuses[status] <= most
        assert front.statuses[200] == 30
        assert rows(path, "select count(*) from failure") == [(0,)]
        front.rule, front.unlisted = (lambda key, nth: None), None
        assert venire("run", path, "--yes").code == 0
    assert len(server.ledger.entries) == CALLS, "nothing was answered twice"


class Explained(Filter):
    """Says in a machine code why."""

    def refusal(self, key: str, body: bytes) -> tuple[int, dict[str, Any]] | None:
        found = super().refusal(key, body)
        return found and (found[0], {**found[1], "code": {401: "invalid_api_key", 402: "insufficient_quota"}[found[0]]})


@pytest.mark.parametrize("status", [401, pytest.param(402, marks=pytest.mark.slow)])
def test_a_refusal_that_says_that_it_is_the_keys_closes_the_lane_at_once(
    venire: Venire, write_campaign: Write, serve: Serve, status: int
) -> None:
    with serve() as server, fronted(server, kind=Explained) as front:
        revoke(front, 30, status, listed=True)
        path = write_campaign(instructions=2, judges=judge(front.url, ONE_KEY))
        done = venire("run", path, "--yes")
        assert done.code == 1, done.err
        assert 1 <= front.statuses[status] <= IN_FLIGHT
        assert rows(path, "select count(*) from failure") == [(0,)]


@pytest.mark.parametrize("status", [401, pytest.param(402, marks=pytest.mark.slow)])
def test_a_key_that_was_never_answered_is_given_up_with_what_is_in_flight(
    venire: Venire, write_campaign: Write, serve: Serve, status: int
) -> None:
    with serve() as server, fronted(server, lambda key, nth: status, Filter) as front:
        path = write_campaign(instructions=2, judges=judge(front.url, ONE_KEY))
        for _ in range(2):
            done = venire("run", path, "--yes")
            assert done.code == 1, done.err
            assert "lane closed" in done.err
        assert front.statuses[status] <= 2 * IN_FLIGHT
        assert rows(path, "select count(*) from failure") == [(0,)]


def test_what_the_filter_of_one_route_refuses_goes_by_the_other(
    venire: Venire, write_campaign: Write, serve: Serve
) -> None:
    with serve() as server, fronted(server, kind=Filter) as front:
        path = write_campaign(
            instructions=2, judges=judge(front.url, 'key_variables = ["FIRST_KEY", "SECOND_KEY"]\nmax_attempts = 1')
        )
        front.text = a_completion(path.parent, 0)
        front.only = KEYS["FIRST_KEY"]
        done = venire("run", path, "--yes")
        assert done.code == 0, done.err
        assert "takes no more calls" not in done.err
        assert rows(path, "select count(*) from failure") == [(0,)]
    assert len(server.ledger.entries) == CALLS
