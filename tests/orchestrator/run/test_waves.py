"""Judges asked in waves by batch interfaces: the verdicts of a live run, at the batch price, whatever happens."""

from __future__ import annotations

import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from tests.parameters import slow_after
from venire.arena.campaigns import TokenPrice
from venire.arena.errors import CallError, Fault, TransientError
from venire.judges.providers.batches import anthropic, openai
from venire.judges.providers.batches.base import BatchLimits
from venire.orchestrator.run import batch_download, batch_search, collector, wave_lane
from venire.simulation.batch_forms import OpenAIForm
from venire.simulation.batches import BatchDesk, SimulatedBatch
from venire.storage.plans.submissions import OpenSubmission, open_submissions
from venire.storage.store.opening import open_store

TRIALS = 30
BATCHED = 'transport = "batch"'
ROUNDS = '[plan]\npolicy = "information"\nround = 10\nbattles = 20\n'


def test_a_judge_of_two_stages_takes_two_waves_and_gives_the_verdicts_of_the_live_run(waves: Any) -> None:
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert waves.submissions(path) == [(TRIALS, "collected"), (TRIALS, "collected")]
    waves.books(path)
    assert waves.verdicts(path) == waves.live_verdicts(path)
    assert not list(path.parent.glob("*.waves")), "nothing is left beside the store"


def test_a_judge_asked_live_and_one_asked_in_waves_share_a_campaign(waves: Any) -> None:
    path = waves.write(waves.judge("waves"), waves.judge("live", "", model="claude-3-opus"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert [lines for lines, _ in waves.submissions(path)] == [TRIALS, TRIALS]
    assert ran.summary.statistics.calls == 4 * TRIALS
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_faults_of_lines_and_answers_in_any_order_change_no_verdict_and_no_cent(waves: Any) -> None:
    waves.serve(polls=1, failed=0.1, expired=0.1, lost=0.1, duplicated=2, unasked=2, shuffled=True)
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_attempts = 9"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert len(waves.submissions(path)) > 2
    assert "nobody asked for" in ran.said("(4) that nobody asked for")
    waves.books(path)
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_what_is_answered_and_withheld_counts_at_what_was_reserved(waves: Any) -> None:
    waves.serve(withheld=0.2, seed=1)
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_attempts = 9"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert any("are lost" in one for one in ran.warnings), "and that is said"
    assert max(one["reading"] for one in ran.of("batch.incomplete")) >= 6
    withheld = [one for one in waves.server.batches.batches for one in one.results if one.outcome == "withheld"]
    ((lines, unknown),) = waves.query(
        path, "select count(*), count(*) filter (where cost is null and reserved > 0) from attempt where fault <> 0"
    )
    assert lines == unknown == len(withheld) > 0
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_a_line_that_always_fails_is_a_failed_step_after_its_attempts(waves: Any) -> None:
    first: set[str] = set()

    def failing(line: dict[str, Any]) -> dict[str, Any]:
        first.add(line["custom_id"]) if not first else None
        if line["custom_id"] in first:
            return line | {"response": {"status_code": 500, "body": {"error": {"message": "Broken."}}}}
        return line

    waves.answers = failing
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_attempts = 3"))
    ran = waves.start(path)
    assert ran.ending == "failed steps"
    assert ran.summary.progress.failed == 1
    assert ran.summary.progress.settled == TRIALS - 1
    assert waves.query(path, "select max(number) from attempt where fault <> 0") == [(3,)]


def test_wave_size_cuts_waves(waves: Any) -> None:
    path = waves.write(waves.judge(more=f"{BATCHED}\nwave_size = 8"))
    assert waves.start(path).ending == "complete"
    lines = [lines for lines, _ in waves.submissions(path)]
    assert max(lines) == 8
    assert sum(lines) == 2 * TRIALS
    waves.books(path)


def test_the_providers_bytes_cut_waves(waves: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai.OpenAIBatches, "limits", BatchLimits(lines=50_000, bytes=20_000))
    path = waves.write()
    assert waves.start(path).ending == "complete"
    sizes = waves.query(path, "select bytes, lines from submission")
    assert len(sizes) > 4
    assert max(size for size, _ in sizes) <= 20_000
    waves.books(path)


def test_a_request_larger_than_a_whole_batch_fails_alone_and_is_named(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = waves.write()
    seen: list[str] = []
    line = openai.OpenAIBatches.line

    def one_is_long(self: Any, custom_id: str, body: bytes) -> bytes:
        seen.append(custom_id)
        return line(self, custom_id, body) + (b" " * 100_000 if custom_id in seen[2:3] else b"")

    monkeypatch.setattr(openai.OpenAIBatches, "line", one_is_long)
    monkeypatch.setattr(openai.OpenAIBatches, "limits", BatchLimits(lines=50_000, bytes=90_000))
    ran = waves.start(path)
    assert ran.ending == "failed steps"
    assert ran.summary.progress.failed == 1
    assert "larger than a whole batch" in ran.said("larger than a whole batch")


@pytest.mark.parametrize("limit", slow_after(1, 0.02, 0.011))
def test_a_budget_cuts_a_wave_where_money_ends_and_is_never_exceeded(waves: Any, limit: float) -> None:
    path = waves.write(more=f"[budget]\nmoney = {limit}\n")
    ran = waves.start(path)
    assert ran.ending == "budget reached"
    nano = round(limit * 1e9)
    # Whatever was out at a time: paid before, and reserved then.
    for number, reserved in waves.query(path, "select id, reserved from submission order by id"):
        earlier = f"exists (select 1 from submission s where s.written_at = a.sent_at and s.id < {number})"
        paid = f"select coalesce(sum(a.cost), 0) from attempt a where {earlier}"
        ((before,),) = waves.query(path, paid)
        assert before + reserved <= nano
    waves.books(path)
    ((paid,),) = waves.query(path, "select sum(cost) from attempt")
    assert paid == ran.summary.statistics.spent <= nano
    assert ran.summary.progress.settled > 0, "what was begun is ended before more is begun"
    path.write_text(path.read_text().replace(f"money = {limit}", "money = 5"), encoding="utf-8")
    assert waves.start(path, amend=True).ending == "complete"
    waves.books(path)
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_a_budget_shared_with_a_live_judge_is_not_exceeded_and_nobody_waits_for_ever(waves: Any) -> None:
    judges = (waves.judge("waves"), waves.judge("live", "", model="claude-3-opus"))
    path = waves.write(*judges, more="[budget]\nmoney = 0.06\n")
    ran = waves.start(path)
    assert ran.ending == "budget reached"
    ((paid, unknown),) = waves.query(path, "select sum(cost), count(*) filter (where cost is null) from attempt")
    assert paid == ran.summary.statistics.spent <= 60_000_000
    assert unknown == 0


def test_a_live_judge_does_not_wait_for_money_that_a_detached_batch_holds(waves: Any) -> None:
    waves.serve(polls=1000)
    path = waves.write(waves.judge("waves"), more="[budget]\nmoney = 0.02\n")
    assert waves.start(path, detach=True).ending == "batches under way"
    both = path.read_text().replace("[budget]", waves.judge("live", "", model="claude-3-opus") + "[budget]")
    path.write_text(both, encoding="utf-8")
    ran = waves.start(path, detach=True, amend=True)
    assert ran.ending == "batches under way"
    assert "asks no more" in ran.said("judge 'live' asks no more")


@pytest.mark.slow
def test_two_lanes_in_waves_share_a_budget(waves: Any) -> None:
    judges = (waves.judge("one"), waves.judge("two", model="claude-3-opus"))
    path = waves.write(*judges, more="[budget]\nmoney = 0.03\n")
    ran = waves.start(path)
    assert ran.ending == "budget reached"
    waves.books(path)
    assert ran.summary.statistics.spent <= 30_000_000
    path.write_text(path.read_text().replace("0.03", "5"), encoding="utf-8")
    assert waves.start(path, amend=True).ending == "complete"
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_the_price_of_batches_is_that_of_the_file_where_it_is_given(waves: Any) -> None:
    path = waves.write(waves.judge(more=f"{BATCHED}\nbatch_price = {{ input = 0.3, output = 1.0 }}"))
    assert waves.start(path).ending == "complete"
    waves.books(path, price=TokenPrice(300_000_000, 1_000_000_000))


def error(line: dict[str, Any], status: int, code: str, message: str) -> dict[str, Any]:
    """The line of a call that was refused."""
    body = {"error": {"message": message, "code": code, "type": code}}
    return line | {"response": {"status_code": status, "request_id": "x", "body": body}}


def test_an_empty_account_closes_the_lane_and_fails_no_trial(waves: Any) -> None:
    count = iter(range(10_000))
    path = waves.write()
    waves.answers = lambda line: (
        line if next(count) < 10 else error(line, 429, "insufficient_quota", "You exceeded your quota.")
    )
    ran = waves.start(path)
    assert ran.ending == "lane closed"
    assert "You exceeded your quota" in next(iter(ran.summary.closed_lanes.values()))
    assert ran.summary.progress.failed == 0
    waves.answers = lambda line: line
    assert waves.start(path).ending == "complete"
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_a_text_that_a_filter_forbids_is_its_own_failure_and_not_the_keys(waves: Any) -> None:
    count = iter(range(10_000))
    path = waves.write()
    waves.answers = lambda line: error(line, 403, "", "Forbidden.") if next(count) == 3 else line
    ran = waves.start(path)
    assert ran.ending == "failed steps"
    assert (ran.summary.progress.failed, ran.summary.progress.settled) == (1, TRIALS - 1)


@pytest.mark.parametrize(
    ("status", "code"), slow_after(1, (403, ""), (401, "invalid_api_key"), (400, "model_not_found"))
)
def test_lines_that_are_all_refused_close_the_lane_and_fail_no_trial(waves: Any, status: int, code: str) -> None:
    path = waves.write()
    waves.answers = lambda line: error(line, status, code, "Not for you.")
    ran = waves.start(path)
    assert ran.ending == "lane closed"
    assert "Not for you." in next(iter(ran.summary.closed_lanes.values()))
    assert ran.summary.progress.failed == 0


def test_a_refused_file_says_which_line_and_why_and_closes_the_lane(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, line, count = waves.write(), openai.OpenAIBatches.line, iter(range(10_000))
    with monkeypatch.context() as broken:
        broken.setattr(
            openai.OpenAIBatches,
            "line",
            lambda self, id, body: line(self, id, body) if next(count) != 2 else b'{"custom_id":',
        )
        ran = waves.start(path)
    assert ran.ending == "lane closed"
    why = next(iter(ran.summary.closed_lanes.values()))
    assert "line 3: This line is not parseable as valid JSON." in why
    assert waves.submissions(path) == [(TRIALS, "returned")]
    assert ran.summary.progress.failed == 0
    assert ran.summary.statistics.calls == 0
    assert waves.start(path).ending == "complete"
    waves.books(path)


def test_a_queue_that_is_full_leads_to_smaller_waves(waves: Any) -> None:
    waves.serve(queue_lines=10, polls=2)
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert "Enqueued token limit" in ran.said("refused for now")
    found = waves.submissions(path)
    assert [lines for lines, kind in found if kind == "returned"][:2] == [30, 15]
    assert max(lines for lines, kind in found if kind == "collected") <= 10
    assert len(found) < 40, "nothing is sent to a queue that is known to be full"
    waves.books(path)
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_what_took_too_long_is_asked_live_at_the_live_price(waves: Any) -> None:
    waves.serve(polls=50)
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_wait = 0.02"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    ((live, batched),) = waves.query(
        path,
        "select count(*) filter (where l.submission is null), count(*) filter (where l.submission is not null) "
        "from attempt a left join submission_line l using (trial, step, number) where a.fault = 0",
    )
    assert live + batched == 2 * TRIALS
    assert live > 0
    owed = "sum(input_tokens * 1000 + output_tokens * 4000)"
    of_batch = (
        "exists (select 1 from submission_line l where (l.trial, l.step, l.number) = (a.trial, a.step, a.number))"
    )
    for is_live, rate in ((True, 1), (False, 2)):
        paid = f"select sum(cost), {owed} from attempt a where fault = 0 and {of_batch} <> {is_live}"
        ((cost, price),) = waves.query(path, paid)
        assert (cost or 0) == (price or 0) // rate
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_what_took_too_long_can_be_left_for_the_next_start(waves: Any) -> None:
    waves.serve(polls=50)
    path = waves.write(waves.judge(more=f'{BATCHED}\nmax_wait = 0.02\nafter_wait = "start"'))
    ran = waves.start(path)
    assert ran.ending == "batches under way"
    assert ran.summary.left_for_later == TRIALS
    assert ran.summary.batches == 0
    assert waves.submissions(path) == [(TRIALS, "collected")]
    waves.server.batches.faults = replace(waves.server.batches.faults, polls=0)
    assert waves.start(path).ending == "complete"
    waves.books(path)


def test_rounds_with_a_live_and_a_batched_judge_go_on_after_stops_as_if_nothing_had_happened(waves: Any) -> None:
    both = (waves.judge("waves"), waves.judge("live", "", model="claude-3-opus"))
    whole = waves.write(*both, name="whole", plan=ROUNDS)
    assert waves.start(whole).ending == "complete"
    waves.serve(polls=2)
    both = (waves.judge("waves"), waves.judge("live", "", model="claude-3-opus"))
    path = waves.write(*both, plan=ROUNDS)
    endings = [waves.start(path, detach=True).ending]
    endings.append(waves.start(path, stop_when=lambda now: now.batched and now.round == 2, longest=0.1).ending)
    endings.append(waves.start(path).ending)
    assert endings == ["batches under way", "interrupted", "complete"]
    rounds = "select number, policy, trials, design from round order by number"
    assert len(waves.query(path, rounds)) == 2
    assert waves.query(path, rounds) == waves.query(whole, rounds)
    assert waves.verdicts(path) == waves.verdicts(whole)
    assert max(waves.server.batches.created.values()) == 1


def test_detached_starts_collect_what_earlier_ones_sent_and_send_what_is_next(waves: Any) -> None:
    path = waves.write()
    first = waves.start(path, detach=True)
    assert (first.ending, first.summary.batches, first.summary.statistics.batched) == ("batches under way", 1, TRIALS)
    second = waves.start(path, detach=True)
    assert (second.ending, second.summary.statistics.answered) == ("batches under way", TRIALS)
    assert waves.submissions(path) == [(TRIALS, "collected"), (TRIALS, "sent")]
    assert waves.start(path, detach=True).ending == "complete"
    waves.books(path)


@pytest.mark.parametrize(
    ("form", "lost"), slow_after(2, ("openai", 3), ("anthropic", 1), ("openai", 1), ("anthropic", 3))
)
def test_a_batch_whose_confirmation_was_lost_is_found_and_not_sent_twice(waves: Any, form: str, lost: int) -> None:
    waves.serve(lost_replies=lost, polls=1)
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "{form}"\nwave_size = 10'))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert len(waves.server.batches.batches) == 6
    kind, how = ("sent", "by its name") if form == "openai" else ("adopted", "by its size and time")
    found = "select count(distinct submission) from submission_event where kind = ? and contains(detail, ?)"
    assert waves.query(path, found, kind, how) == [(lost,)]
    waves.books(path)
    assert len([one for one in ran.warnings if "was not confirmed" in one]) == lost


@pytest.mark.parametrize("lines", slow_after(1, 10, 11))
def test_somebody_elses_batch_of_the_same_size_is_not_taken_for_ours_for_good(waves: Any, lines: int) -> None:
    waves.serve(lost_replies=2)  # one lost reply is of the other's batch
    other = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "anthropic"\nwave_size = {lines}'), name="other")
    other.write_text(other.read_text().replace("seed = 7", "seed = 8"), encoding="utf-8")
    assert waves.start(other, detach=True).ending == "batches under way"
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "anthropic"\nwave_size = 10'))
    waves.server.batches.faults = replace(waves.server.batches.faults, lost_replies=4)
    assert waves.start(path).ending == "complete"
    mine = waves.query(path, "select lower(hex(trial_key)) from trial")
    keys = {key for (key,) in mine}
    made = [one for one in waves.server.batches.batches if one.lines[0].custom_id.rpartition("-")[0] in keys]
    assert len(made) == 6
    assert max(waves.server.batches.created.values()) == 1
    entries = waves.server.ledger.entries
    entries[:] = [one for one in entries if one.key.rpartition("-")[0] in keys]
    waves.books(path)
    waves.submissions(path)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["anthropic", "openai"])
def test_after_a_failed_create_a_strangers_batch_is_neither_taken_nor_cancelled(waves: Any, form: str) -> None:
    # Somebody else makes batches of as many requests just after each of ours.
    waves.serve(failed_creates=1, lost_replies=1, strangers=2, polls=3)
    late = 'max_wait = 0.001\nafter_wait = "start"\n'
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "{form}"\nmax_attempts = 9\n{late}'))
    for _ in range(12):  # one that may be ours is left for the next start
        assert waves.start(path).ending == "batches under way", "what is late is cancelled"
        if any(one.cancelled for one in waves.server.batches.batches):
            break
    path.write_text(path.read_text().replace(late, ""), encoding="utf-8")
    assert waves.start(path).ending == "complete"
    strangers = [one for one in waves.server.batches.batches if one.is_strange]
    assert strangers
    assert not [one for one in strangers if one.cancelled], "but not somebody else's"
    assert [one for one in waves.server.batches.batches if one.cancelled]
    adopted = "select count(*) from submission_event where kind = 'adopted'"
    mistaken = "select count(*) from submission_event where kind = 'mistaken'"
    assert (waves.query(path, adopted)[0][0] > 0) == (form == "anthropic")
    assert (waves.query(path, mistaken)[0][0] > 0) == (form == "anthropic")
    waves.books(path)


@pytest.mark.parametrize("kind", ["no results", "older"])
def test_a_strangers_batch_is_known_as_such_without_a_result_and_by_its_time(
    waves: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves.serve(failed_creates=1, strangers=1)
    if kind == "no results":
        delivered = BatchDesk.delivered
        monkeypatch.setattr(
            BatchDesk, "delivered", lambda self, batch: [] if batch.is_strange else delivered(self, batch)
        )
        monkeypatch.setattr(batch_download, "_PATIENCE", 0)
    else:
        made = SimulatedBatch.__init__

        def earlier(self: SimulatedBatch, *words: Any, is_strange: bool = False, **named: Any) -> None:
            made(self, *words, is_strange=is_strange, **named)
            self.created_at -= timedelta(minutes=2 if is_strange else 0)

        monkeypatch.setattr(SimulatedBatch, "__init__", earlier)
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "anthropic"'))
    assert waves.start(path).ending == "complete"
    ((adopted, mistaken),) = waves.query(
        path,
        "select count(*) filter (where kind = 'adopted'), count(*) filter (where kind = 'mistaken') "
        "from submission_event",
    )
    assert adopted == mistaken == (kind == "no results")
    waves.books(path)


def refusing(
    monkeypatch: pytest.MonkeyPatch, batches: type, name: str, status: int, applies: Callable[[str], bool]
) -> list[str]:
    """Have a method of batch interfaces refuse the batches that a test names; returns the list of refusals to come."""
    found: list[str] = []
    method = getattr(batches, name)

    def refuse(batch: str) -> bool:
        if applies(batch):
            found.append(batch)
            return True
        return False

    async def call(self: Any, batch: str) -> Any:
        if refuse(batch):
            raise CallError(f"HTTP {status}: no", Fault.BAD_REQUEST, status=status)
        return await method(self, batch)

    async def lines(self: Any, batch: str) -> AsyncIterator[Any]:
        if refuse(batch):
            raise CallError(f"HTTP {status}: no", Fault.BAD_REQUEST, status=status)
        async for one in method(self, batch):
            yield one

    monkeypatch.setattr(batches, name, lines if name == "answers" else call)
    return found


@pytest.mark.parametrize(("name", "status"), slow_after(1, ("answers", 404), ("status", 410), ("answers", 403)))
def test_a_batch_that_may_be_ours_and_is_refused_for_good_is_somebody_elses_and_the_search_goes_on(
    waves: Any, name: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves.serve(lost_replies=1, strangers=1)
    strange = lambda batch: waves.server.batches.find(batch).is_strange  # noqa: E731
    refused = refusing(monkeypatch, anthropic.AnthropicBatches, name, status, strange)
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "anthropic"'))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert len(refused) == 6
    assert refused[0] in ran.said("was somebody else's")
    kinds = waves.query(path, "select kind from submission_event where submission = 1 order by rowid")
    assert kinds.count(("mistaken",)) == 1
    assert kinds[-2:] == [("adopted",), ("collected",)]
    assert max(waves.server.batches.created.values()) == 1
    waves.books(path)


@pytest.mark.parametrize(
    ("form", "name", "status"),
    slow_after(
        1,
        ("anthropic", "status", 403),
        ("openai", "answers", 404),
        ("openai", "answers", 307),
        ("openai", "status", 403),
        ("openai", "status", 404),
        ("anthropic", "answers", 404),
        ("anthropic", "answers", 307),
        ("anthropic", "status", 404),
    ),
)
def test_a_batch_that_is_refused_a_few_times_is_looked_at_again_and_loses_nothing(
    waves: Any, form: str, name: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves.serve(lost_replies=1)  # at Anthropic it is not even proved to be ours
    left = iter(range(3))
    batches = anthropic.AnthropicBatches if form == "anthropic" else openai.OpenAIBatches
    refused = refusing(monkeypatch, batches, name, status, lambda batch: next(left, None) is not None)
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "{form}"'))
    assert waves.start(path, detach=True).ending == "batches under way"
    assert waves.start(path).ending == "complete"
    assert len(refused) == 3
    assert len(waves.server.batches.batches) == 2
    waves.books(path)


def test_a_cancel_that_fails_is_tried_again_after_growing_pauses_and_said(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []
    monkeypatch.setattr(wave_lane, "pause_after", lambda failures, error: pauses.append(failures) or 0.0)
    waves.serve(polls=50)
    left = iter([500, 429, 409])
    cancel = openai.OpenAIBatches.cancel

    async def failing(self: Any, batch: str) -> Any:
        if (status := next(left, None)) is not None:
            raise (CallError if status == 409 else TransientError)(f"HTTP {status}", Fault.TRANSIENT, status=status)
        return await cancel(self, batch)

    monkeypatch.setattr(openai.OpenAIBatches, "cancel", failing)
    ran = waves.start(path := waves.write(waves.judge(more=f"{BATCHED}\nmax_wait = 0.02")))
    assert ran.ending == "complete"
    assert pauses == [1, 2, 3]
    assert "HTTP 500" in ran.said("could not be cancelled yet")
    assert waves.server.batches.batches[0].cancelled
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_a_list_that_answers_with_errors_is_said_in_lines_that_grow_rarer(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves.serve(lost_replies=1)
    left, listed = iter(range(7)), openai.OpenAIBatches.batches

    async def failing(self: Any, since: Any) -> Any:
        if next(left, None) is not None:
            raise TransientError("HTTP 500: no", Fault.TRANSIENT, status=500)
        return await listed(self, since)

    monkeypatch.setattr(openai.OpenAIBatches, "batches", failing)
    ran = waves.start(waves.write())
    assert ran.ending == "complete"
    assert ["4 times" in one for one in ran.warnings if "looked at again later" in one] == [False, False, True]


def test_a_batch_of_ours_that_is_dated_a_minute_early_is_found_and_not_sent_twice(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimulatedBatch.__init__

    def earlier(self: SimulatedBatch, *words: Any, **named: Any) -> None:
        made(self, *words, **named)
        self.created_at -= timedelta(seconds=65)

    monkeypatch.setattr(SimulatedBatch, "__init__", earlier)
    waves.serve(lost_replies=1)
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "anthropic"'))
    assert waves.start(path).ending == "complete"
    assert max(waves.server.batches.created.values()) == 1
    waves.books(path)


def test_a_gateway_that_drops_names_is_noticed_and_its_batches_known_by_their_answers(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    show = OpenAIForm._show
    monkeypatch.setattr(OpenAIForm, "_show", lambda self, *words: show(self, *words) | {"metadata": None})
    waves.serve()
    path = waves.write(waves.judge(more=f"{BATCHED}\nwave_size = 10"))
    loses, made = BatchDesk.loses_reply, iter(range(100))
    monkeypatch.setattr(BatchDesk, "loses_reply", lambda self: next(made) == 1 or loses(self))
    assert waves.start(path).ending == "complete"
    assert max(waves.server.batches.created.values()) == 1
    waves.books(path)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many failures each pause was; none takes time."""
    found: list[int] = []
    monkeypatch.setattr(batch_search, "pause_after", lambda failures, error=None: found.append(failures) or 0.0)
    return found


@pytest.mark.parametrize("after", slow_after(1, "live", "start"))
def test_max_wait_leaves_a_batch_that_may_be_ours_for_the_next_start_and_asks_and_cancels_nothing(
    waves: Any, after: str, pauses: list[int]
) -> None:
    waves.serve(failed_creates=1, strangers=1, polls=10_000)
    late = f'max_wait = 0.001\nafter_wait = "{after}"\n'
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "anthropic"\n{late}'))
    ran = waves.start(path)
    assert (ran.ending, ran.summary.batches) == ("batches under way", 1)
    assert [one["candidates"] for one in ran.of("batch.doubted")] == [1]
    assert waves.query(path, "select count(*) from attempt") == [(0,)]
    assert not [one for one in waves.server.batches.batches if one.cancelled]
    waves.server.batches.faults = replace(waves.server.batches.faults, polls=0)
    path.write_text(path.read_text().replace(late, ""), encoding="utf-8")
    assert waves.start(path).ending == "complete"
    waves.books(path)


@pytest.mark.parametrize("form", slow_after(1, "openai", "anthropic"))
def test_a_create_that_always_fails_is_tried_a_few_times_after_growing_pauses_and_said(
    waves: Any, form: str, pauses: list[int]
) -> None:
    waves.serve(failed_creates=1000)
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "{form}"\nwave_size = 10\nmax_attempts = 4'))
    ran = waves.start(path)
    assert ran.ending == "lane closed"
    assert "not confirmed 4 times in a row" in next(iter(ran.summary.closed_lanes.values()))
    assert pauses == [1, 2, 3, 4]
    assert len([one for one in ran.warnings if "no other is sent for" in one]) == 4
    assert len([one for one in ran.warnings if "not in the provider's list" in one]) == 4
    assert waves.submissions(path) == [(10, "returned")] * 4
    assert ran.summary.progress.failed == 0
    waves.server.batches.faults = replace(waves.server.batches.faults, failed_creates=0)
    assert waves.start(path).ending == "complete"
    waves.books(path)


@pytest.mark.parametrize("more", slow_after(1, "", "max_elapsed = 0.000001"))
def test_a_batch_that_surely_was_not_made_is_sent_again_for_as_long_as_a_call_is(
    waves: Any, more: str, pauses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, busy = openai.OpenAIBatches.submit, [1] * 6

    async def refused(self: Any, *words: Any) -> Any:
        if busy.pop() if busy else 0:
            raise TransientError("too many batches", Fault.RATE_LIMITED, status=429)
        return await submit(self, *words)

    monkeypatch.setattr(openai.OpenAIBatches, "submit", refused)
    path = waves.write(waves.judge(more=f"{BATCHED}\n{more}\nmax_attempts = 2"))
    ran = waves.start(path)
    if more:
        assert (ran.ending, pauses) == ("lane closed", [1, 2])
        assert waves.submissions(path) == [(TRIALS, "returned")]
    else:
        assert (ran.ending, pauses) == ("complete", [1, 2, 3, 4, 5, 6])
        waves.books(path)


def test_what_is_out_is_not_asked_again_by_the_same_judge_asked_live(waves: Any) -> None:
    path = waves.write()
    assert waves.start(path, detach=True).ending == "batches under way"
    batched = path.read_text()
    path.write_text(batched.replace(BATCHED, ""), encoding="utf-8")
    ran = waves.start(path)
    assert ran.ending == "batches under way"
    assert "they are not asked again" in ran.said("sent for a judge that is not asked in batches now")
    assert (ran.summary.out_elsewhere, ran.summary.statistics.calls) == (TRIALS, 0)
    path.write_text(batched, encoding="utf-8")
    assert waves.start(path).ending == "complete"
    waves.books(path)


def test_a_judge_may_go_on_live_where_nothing_of_it_is_out(waves: Any) -> None:
    path = waves.write()
    assert waves.start(path, detach=True).ending == "batches under way"
    assert waves.start(path, stop_when=lambda now: now.answered >= TRIALS and not now.batched).ending in (
        "interrupted",
        "complete",
    )
    path.write_text(path.read_text().replace(BATCHED, ""), encoding="utf-8")
    assert waves.start(path, batch=["judge"]).ending == "complete"
    assert waves.verdicts(path) == waves.live_verdicts(path)


def test_the_money_of_a_batch_that_is_left_out_is_not_spent_twice(waves: Any) -> None:
    path = waves.write(more="[budget]\nmoney = 0.02\n")
    assert waves.start(path, detach=True).ending == "batches under way"
    ((held,),) = waves.query(path, "select sum(reserved) from submission")
    path.write_text(path.read_text().replace(BATCHED, ""), encoding="utf-8")
    ran = waves.start(path)
    assert ran.ending == "batches under way"
    assert "asks no more" in ran.said("asks no more")
    ((paid,),) = waves.query(path, "select coalesce(sum(coalesce(cost, reserved)), 0) from attempt")
    assert paid + held <= 20_000_000


def test_a_judge_whose_settings_change_pays_for_what_was_out_and_asks_anew(waves: Any) -> None:
    path = waves.write()
    assert waves.start(path, detach=True).ending == "batches under way"
    path.write_text(path.read_text().replace("price =", "temperature = 0.5\nprice ="), encoding="utf-8")
    assert waves.start(path, amend=True).ending == "complete"
    asked = waves.query(path, "select count(*) from attempt where fault = 0")
    assert asked == [(3 * TRIALS,)]
    assert waves.query(path, "select count(*) from open_submission") == [(0,)]
    waves.books(path)


def test_trials_that_left_the_plan_while_they_were_out_are_taken_in(waves: Any) -> None:
    path = waves.write(plan='[plan]\npolicy = "all-pairs"\ninstructions = 2\n')
    assert waves.start(path, detach=True).ending == "batches under way"
    assert waves.submissions(path) == [(2 * TRIALS, "sent")]
    path.write_text(path.read_text().replace("instructions = 2\n", "instructions = 1\n"), encoding="utf-8")
    ran = waves.start(path, amend=True)
    assert ran.ending == "complete"
    assert ran.summary.progress.settled == ran.summary.progress.planned
    waves.books(path)


def test_two_campaigns_of_one_store_do_not_ask_the_same_trial_twice(waves: Any) -> None:
    path = waves.write(more="")
    other = path.with_name("other.toml")
    text = path.read_text().replace('name = "waves"', 'name = "{}"\nstore = "campaign.duckdb"')
    path.write_text(text.replace("{}", "first"), encoding="utf-8")
    other.write_text(text.replace("{}", "second"), encoding="utf-8")
    assert waves.start(path, detach=True).ending == "batches under way"
    ran = waves.start(other)
    assert (ran.ending, ran.summary.out_elsewhere, ran.summary.statistics.calls) == ("batches under way", TRIALS, 0)
    assert waves.start(path).ending == "complete"
    assert waves.start(other).summary.statistics.calls == 0
    waves.books(path)


def test_a_run_that_ends_between_a_reply_and_its_verdict_asks_nothing_twice(waves: Any) -> None:
    path = waves.write()
    assert waves.start(path).ending == "complete"
    before = waves.verdicts(path)
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as store:
        store.execute("delete from verdict where trial % 2 = 0")
    ran = waves.start(path)
    assert (ran.ending, ran.summary.statistics.calls) == ("complete", 0)
    assert waves.verdicts(path) == before


def test_an_interrupted_collection_is_taken_up_and_its_lines_are_no_strays(
    waves: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "_CHUNK", 5)
    lines = openai.OpenAIBatches.lines

    async def stopping(self: Any, url: str) -> AsyncIterator[str]:
        waves.stop()
        async for line in lines(self, url):
            yield line

    path = waves.write()
    with monkeypatch.context() as patch:
        patch.setattr(openai.OpenAIBatches, "lines", stopping)
        assert waves.start(path).ending == "interrupted"
    ((taken,),) = waves.query(path, "select count(*) from attempt")
    assert 5 <= taken < TRIALS
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert ran.warnings == []
    waves.books(path)


def test_a_file_of_answers_that_breaks_off_loses_no_trial(waves: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_CHUNK", 5)
    lines, broken = openai.OpenAIBatches.lines, [1]

    async def breaking(self: Any, url: str) -> AsyncIterator[str]:
        count = 0
        async for line in lines(self, url):
            if count == 12 and broken:
                broken.pop()
                raise TransientError("the connection broke off", Fault.TRANSIENT)
            count += 1
            yield line

    monkeypatch.setattr(openai.OpenAIBatches, "lines", breaking)
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert "broke off" in ran.said("broke off")
    waves.books(path)


@pytest.mark.parametrize("form", slow_after(1, "openai", "anthropic"))
def test_a_bad_download_of_paid_answers_is_read_again_and_said_and_nothing_is_paid_twice(waves: Any, form: str) -> None:
    waves.serve(damaged=1.0, seed=2)  # each file is a page, cut or garbled twice
    path = waves.write(waves.judge(more=f'{BATCHED}\nprovider = "{form}"\nwave_size = 10'))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert len(waves.server.ledger.entries) == 2 * TRIALS
    waves.books(path)
    kinds = [kind for _, kind in waves.submissions(path)]
    assert kinds == ["collected"] * 6
    said = [one for one in ran.warnings if "were not handed out" in one]
    assert len(said) == 6 == len(ran.warnings), ran.warnings
    readings = ran.of("batch.incomplete")
    assert [one["reading"] for one in readings].count(1) == 6
    assert all(0 < one["missing"] <= 10 for one in readings)
    assert {one["strays"] for one in ran.of("batch.collected")} == {0}, "a line that is no JSON is no stray"


def test_a_detached_start_leaves_a_bad_download_for_the_next_one_and_counts_it(waves: Any) -> None:
    waves.serve(damaged=1.0)
    path = waves.write()
    for readings in range(2):
        assert waves.start(path, detach=True).ending == "batches under way"
        assert first_out(path).short_readings == readings
    kinds = "select kind from submission_event where submission = 1 order by rowid"
    assert waves.query(path, kinds) == [("sent",), ("incomplete",)]
    assert waves.start(path).ending == "complete"
    waves.books(path)


def first_out(path: Path) -> OpenSubmission:
    """The first submission of a store that is out."""
    with open_store(path.with_suffix(".duckdb"), create=False) as store:
        return open_submissions(store, 1)[0]


@pytest.mark.parametrize("first", slow_after(1, "failure", "success"))
def test_of_two_results_of_one_request_the_reply_counts_in_either_order(waves: Any, first: str) -> None:
    def twice(line: dict[str, Any]) -> bytes:
        both = [error(line, 500, "server_error", "Broken."), line]
        return b"\n".join(map(orjson.dumps, both if first == "failure" else both[::-1]))

    waves.answers = twice
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert [(one["answered"], one["failed"], one["strays"]) for one in ran.of("batch.collected")] == [
        (TRIALS, 0, TRIALS)
    ] * 2
    waves.books(path)


@pytest.mark.parametrize("detach", slow_after(1, True, False))
def test_one_batch_that_its_provider_has_lost_keeps_no_other_from_being_collected(waves: Any, detach: bool) -> None:
    path = waves.write(waves.judge(more=f"{BATCHED}\nwave_size = 10"))
    assert waves.start(path, detach=True).summary.batches == 3
    gone = waves.server.batches.batches.pop(0)
    ran = waves.start(path, detach=detach)
    assert ran.ending == "batches under way"
    why = next(iter(ran.summary.closed_lanes.values()))
    assert gone.name in why
    assert "venire batch cancel" in why
    assert "that may pass" in ran.said("HTTP 404")
    assert waves.submissions(path)[:3] == [(10, "sent"), (10, "collected"), (10, "collected")]


def test_hostile_lines_of_answers_leave_nothing_wrong(waves: Any) -> None:
    hostile: list[Callable[[dict[str, Any]], Any]] = [
        lambda line: b'{"custom_id": "' + line["custom_id"].encode() + b'", "resp',
        lambda line: {},
        lambda line: line | {"custom_id": "../../etc/passwd\x1b[31m"},
        lambda line: line | {"padding": "x" * 3_000_000},
        lambda line: line | {"response": {"status_code": "200", "body": [1, 2]}},
    ]
    count, used = iter(range(10_000)), iter(hostile * 2)
    as_it_is: Callable[[dict[str, Any]], Any] = lambda line: line  # noqa: E731
    waves.answers = lambda line: (next(used, as_it_is) if next(count) % 5 == 3 else as_it_is)(line)
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_attempts = 9"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert next(used, None) is None
    assert waves.verdicts(path) == waves.live_verdicts(path)
    assert "passwd" not in "".join(ran.warnings)
    ((numbers,),) = waves.query(
        path, "select count(*) from (select trial, step, number from attempt group by all having count(*) > 1)"
    )
    assert numbers == 0


def test_a_key_is_in_no_message_and_not_in_the_store(waves: Any) -> None:
    secret = "sk-very-secret-1234"
    waves.serve(require_key=secret, polls=1)
    keyed = f'{BATCHED}\nkey_variable = "OTHER_KEY"'
    path = waves.write(waves.judge(more=keyed))
    assert waves.start(path, detach=True).ending == "batches under way"
    waves.answers = lambda line: error(line, 401, "invalid_api_key", f"Incorrect API key provided: {secret}")
    ran = waves.start(path)
    assert ran.ending == "lane closed"
    said = [*ran.warnings, *map(str, ran.events), *ran.summary.closed_lanes.values()]
    assert not [one for one in said if secret in one]
    rows = waves.query(path, "select message from attempt where message is not null")
    assert rows
    assert not [row for row in rows if secret in row[0]]


def test_events_say_what_was_submitted_and_collected(waves: Any) -> None:
    waves.serve(duplicated=1)
    ran = waves.start(waves.write())
    first, second = ran.of("batch.submitted")
    assert first["lines"] == TRIALS
    assert first["reserved_nano"] > 0
    collected = ran.of("batch.collected")
    assert [(one["answered"], one["failed"], one["strays"]) for one in collected] == [(TRIALS, 0, 1)] * 2
    assert [one["name"] for one in collected] == [first["name"], second["name"]]


def test_what_a_killed_run_left_of_a_wave_is_removed(waves: Any) -> None:
    path = waves.write()
    left = path.parent / "campaign.duckdb.waves" / "venire-0123456789abcdef.jsonl"
    left.parent.mkdir()
    left.write_text("a prompt", encoding="utf-8")
    assert waves.start(path, detach=True).ending == "batches under way"
    assert not left.exists()


def answer_wave(folder: Path, base_url: str) -> None:
    """Answer the one wave in a folder that has no answers yet, as `vllm run-batch` does."""
    (wave,) = (
        one for one in folder.glob("venire-????????????????.jsonl") if not one.with_suffix(".answered.jsonl").exists()
    )
    with wave.with_suffix(".answered.jsonl").open("wb") as out:
        for raw in wave.read_bytes().splitlines():
            line = orjson.loads(raw)
            request = urllib.request.Request(
                base_url.removesuffix("/v1") + line["url"],
                orjson.dumps(line["body"]),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request) as answered:
                response = {"status_code": 200, "request_id": "vllm-1", "body": orjson.loads(answered.read())}
            about = {"id": "vllm-1", "custom_id": line["custom_id"], "response": response, "error": None}
            out.write(orjson.dumps(about) + b"\n")


def test_files_are_answered_by_a_script_and_taken_in_wave_by_wave(waves: Any) -> None:
    path = waves.write(waves.judge(more='transport = "file"'))
    for _ in range(2):
        assert waves.start(path, detach=True).ending == "batches under way"
        assert waves.start(path, detach=True).summary.statistics.answered == 0, "nothing is answered yet"
        answer_wave(path.parent / "campaign.duckdb.batches", waves.server.base_url)
    assert waves.start(path, detach=True).ending == "complete"
    price = waves.query(path, "select sum(cost), sum(input_tokens * 1000 + output_tokens * 4000) from attempt")
    assert price[0][0] == price[0][1], "the price of files is the judge's own"
    assert waves.verdicts(path) == waves.live_verdicts(path)


def charged(line: dict[str, Any], dollars: float) -> dict[str, Any]:
    """A line of answers that reports what it cost."""
    line["response"]["body"]["usage"]["cost"] = dollars
    return line


def test_a_cost_of_nothing_in_a_batch_is_not_believed_and_said(waves: Any) -> None:
    waves.answers = lambda line: charged(line, 0.0)
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert "not believed" in ran.said("a cost of $0.00")
    waves.books(path)


def test_what_a_batch_costs_beyond_its_price_is_said_and_reserved_from_then_on(waves: Any) -> None:
    waves.answers = lambda line: charged(line, 0.25)
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert "$0.250000" in ran.said("cannot cost more than")
    reserved = "select min(l.reserved) from submission_line l where l.submission = {}"
    first, second = (waves.query(path, reserved.format(number))[0][0] for number in (1, 2))
    assert first < second == 250_000_000


def test_calls_of_batches_are_seen_by_observers_when_they_are_sent_and_when_they_end(waves: Any) -> None:
    path = waves.write()
    ran = waves.start(path)
    sent, ended = ran.of("call.sent"), ran.of("call.ended")
    assert len(sent) == len(ended) == 2 * TRIALS
    assert {(one["trial"], one["step"]) for one in sent} == {(one["trial"], one["step"]) for one in ended}
    assert sum(one["cost_nano"] for one in ended) == ran.summary.statistics.spent


def test_calls_that_an_earlier_run_sent_are_seen_by_the_observers_of_the_one_that_collects_them(waves: Any) -> None:
    waves.serve(polls=3)
    path = waves.write()
    assert waves.start(path, detach=True).ending == "batches under way"
    ran = waves.start(path, stop_when=lambda now: now.answered > 0)
    assert len(ran.of("call.sent")) >= len(ran.of("call.ended")) >= TRIALS
