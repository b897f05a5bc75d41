"""Judges asked in waves by batch interfaces: the verdicts of a live run, at the batch price, whatever happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from venire.arena.campaigns import TokenPrice
from venire.judges.providers.batches import openai
from venire.judges.providers.batches.base import BatchLimits

TRIALS = 30
BATCHED = 'transport = "batch"'
ROUNDS = '[plan]\npolicy = "information"\nround = 10\nbattles = 30\n'


def test_a_judge_of_two_stages_takes_two_waves_and_gives_the_verdicts_of_the_live_run(waves: Any) -> None:
    path = waves.write()
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert waves.submissions(path) == [(TRIALS, "collected"), (TRIALS, "collected")]
    waves.books(path)
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))
    assert not list(path.parent.glob("*.waves")), "nothing is left beside the store"


def test_a_judge_asked_live_and_one_asked_in_waves_share_a_campaign(waves: Any) -> None:
    path = waves.write(waves.judge("waves"), waves.judge("live", "", model="claude-3-opus"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert [lines for lines, _ in waves.submissions(path)] == [TRIALS, TRIALS]
    assert ran.summary.statistics.calls == 4 * TRIALS
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


def test_faults_of_lines_and_answers_in_any_order_change_no_verdict_and_no_cent(waves: Any) -> None:
    waves.serve(polls=1, failed=0.1, expired=0.1, lost=0.1, duplicated=2, unasked=2, shuffled=True)
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_attempts = 9"))
    ran = waves.start(path)
    assert ran.ending == "complete"
    assert len(waves.submissions(path)) > 2
    assert "nobody asked for" in ran.said("(4) that nobody asked for")
    waves.books(path)
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


def test_what_is_answered_and_withheld_counts_at_what_was_reserved(waves: Any) -> None:
    waves.serve(withheld=0.2, seed=1)
    path = waves.write(waves.judge(more=f"{BATCHED}\nmax_attempts = 9"))
    assert waves.start(path).ending == "complete"
    withheld = [one for one in waves.server.batches.batches for one in one.results if one.outcome == "withheld"]
    ((lines, unknown),) = waves.query(
        path, "select count(*), count(*) filter (where cost is null and reserved > 0) from attempt where fault <> 0"
    )
    assert lines == unknown == len(withheld) > 0
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


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


@pytest.mark.parametrize("limit", [0.011, 0.02])
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
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


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


def test_two_lanes_in_waves_share_a_budget(waves: Any) -> None:
    judges = (waves.judge("one"), waves.judge("two", model="claude-3-opus"))
    path = waves.write(*judges, more="[budget]\nmoney = 0.03\n")
    ran = waves.start(path)
    assert ran.ending == "budget reached"
    waves.books(path)
    assert ran.summary.statistics.spent <= 30_000_000
    path.write_text(path.read_text().replace("0.03", "5"), encoding="utf-8")
    assert waves.start(path, amend=True).ending == "complete"
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


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
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


def test_a_text_that_a_filter_forbids_is_its_own_failure_and_not_the_keys(waves: Any) -> None:
    count = iter(range(10_000))
    path = waves.write()
    waves.answers = lambda line: error(line, 403, "", "Forbidden.") if next(count) == 3 else line
    ran = waves.start(path)
    assert ran.ending == "failed steps"
    assert (ran.summary.progress.failed, ran.summary.progress.settled) == (1, TRIALS - 1)


@pytest.mark.parametrize(("status", "code"), [(403, ""), (401, "invalid_api_key"), (400, "model_not_found")])
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
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


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
    assert waves.verdicts(path) == waves.verdicts(waves.live(path))


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
