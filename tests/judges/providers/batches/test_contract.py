"""What the engine may rely on of a batch interface, held against the embedded server in each form that it speaks."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from venire.arena.errors import CallError, Fault, TransientError
from venire.judges.providers.batches.base import BatchAnswer, BatchState
from venire.simulation.batches import BatchForm

KEY = "sk-proj-Zx81/Qf+7mW_2d"
MODEL = "simulated/gpt-4-0613@1"


@pytest.fixture(params=get_args(BatchForm))
def form(request):
    return request.param


def test_a_wave_is_submitted_once_and_every_line_answered_as_if_asked_alone(form, opened):
    async def script():
        async with opened(form, polls=1) as desk:
            made = await desk.batches.submit("wave-1", MODEL, desk.wave(3))
            seen = [made, *[await desk.batches.status(made.id) for _ in range(4)]]
            assert [status.state for status in seen] == [BatchState.RUNNING] * 4 + [BatchState.ENDED]
            assert {status.id for status in seen} == {made.id}
            assert (seen[-1].lines, seen[-1].answered, seen[-1].failed, seen[-1].problem) == (3, 3, 0, "")
            assert made.created_at is not None
            assert abs(datetime.now(UTC) - made.created_at) < timedelta(minutes=1)
            assert made.expires_at == made.created_at + timedelta(hours=24)
            answers = await desk.answers(made.id)
            assert sorted(answer.custom_id for answer in answers) == ["line-1", "line-2", "line-3"]
            for answer in answers:
                body = desk.body(int(answer.custom_id[5:]))
                alone = await desk.provider.send(body, "alone")
                read = desk.batches.read(answer, body)
                assert (read.text, read.input_tokens, read.output_tokens) == (
                    alone.text, alone.input_tokens, alone.output_tokens,
                )  # fmt: skip
                assert read.served_model == MODEL
            assert sum(desk.server.batches.created.values()) == 1
            assert [entry.key for entry in desk.server.ledger.entries[:3]] == ["line-1", "line-2", "line-3"]
            assert await desk.answers(made.id) == answers, "they can be read again"

    asyncio.run(script())


def test_a_batch_whose_answer_was_lost_is_found_in_the_list(form, opened):
    async def script():
        async with opened(form, lost_replies=1) as desk:
            since = datetime.now(UTC)
            with pytest.raises(TransientError) as caught:
                await desk.batches.submit("wave-1", MODEL, desk.wave(2))
            assert caught.value.may_be_billed
            (found,) = await desk.batches.batches(since)
            assert found.name == ("wave-1" if desk.batches.keeps_names else "")
            assert (await desk.ended(found.id)).answered == 2
            assert len(await desk.answers(found.id)) == 2
            assert await desk.batches.batches(since + timedelta(minutes=1)) == []

    asyncio.run(script())


def test_a_long_list_is_read_to_the_wanted_time(form, opened):
    async def script():
        async with opened(form) as desk:
            since = datetime.now(UTC)
            wave = desk.wave(1)
            made = [(await desk.batches.submit(f"wave-{number}", MODEL, wave)).id for number in range(120)]
            assert [one.id for one in await desk.batches.batches(since)] == made[::-1]

    asyncio.run(script())


def test_lines_that_are_not_answered_are_of_no_status(form, opened):
    async def script():
        async with opened(form, expired=0.5, seed=3) as desk:
            status, answers = await desk.run(20)
            assert status.state is BatchState.ENDED
            assert status.problem == "expired"
            unanswered = [answer for answer in answers if answer.status is None]
            assert 0 < len(unanswered) < 20 == len(answers)
            assert all("expired" in answer.text for answer in unanswered)
            assert status.answered == 20 - len(unanswered)
            billed = [entry for entry in desk.server.ledger.entries if entry.billed]
            assert len(billed) == status.answered, "an expired line is not asked"
            with pytest.raises(TransientError):
                desk.batches.read(unanswered[0], desk.body())

    asyncio.run(script())


def test_a_cancelled_batch_keeps_what_was_answered(form, opened):
    async def script():
        async with opened(form, polls=2) as desk:
            made = await desk.batches.submit("wave-1", MODEL, desk.wave(8))
            for _ in range(4):
                await desk.batches.status(made.id)
            cancelled = await desk.batches.cancel(made.id)
            assert (cancelled.state, cancelled.cancelling) == (BatchState.RUNNING, True)
            status = await desk.ended(made.id)
            assert (status.problem, status.cancelling) == ("cancelled", False)
            answers = await desk.answers(made.id)
            assert sorted(answer.custom_id for answer in answers) == [f"line-{number}" for number in range(1, 9)]
            assert [answer.status for answer in answers].count(200) == 4 == len(desk.server.ledger.entries)
            assert [answer.status for answer in answers].count(None) == 4

    asyncio.run(script())


def test_failed_lines_say_what_a_failed_call_would(form, opened):
    async def script():
        async with opened(form, failed=0.6, seed=1) as desk:
            status, answers = await desk.run(20)
            faults = []
            for answer in answers:
                try:
                    desk.batches.read(answer, desk.body())
                except CallError as error:
                    faults.append(error.fault)
            assert {Fault.RATE_LIMITED, Fault.TRANSIENT} == set(faults)
            assert len(faults) == status.failed > 0
            assert len(answers) == 20

    asyncio.run(script())


def test_a_line_for_an_unknown_model_fails_alone(form, opened):
    async def script():
        async with opened(form) as desk:
            wave = desk.wave(1)
            wave.write_bytes(wave.read_bytes() + desk.batches.line("stranger", desk.body(model="nobody")) + b"\n")
            made = await desk.batches.submit("wave-1", MODEL, wave)
            await desk.ended(made.id)
            found = {answer.custom_id: answer for answer in await desk.answers(made.id)}
            assert desk.batches.read(found["line-1"], desk.body()).text
            with pytest.raises(CallError) as caught:
                desk.batches.read(found["stranger"], desk.body())
            assert (caught.value.fault, caught.value.status) == (Fault.BAD_REQUEST, 404)

    asyncio.run(script())


def test_answers_come_in_any_order_twice_unasked_or_not_at_all(form, opened):
    async def script():
        async with opened(form, shuffled=True, duplicated=2, unasked=3, lost=0.3, seed=2) as desk:
            _, answers = await desk.run(20)
            ids = [answer.custom_id for answer in answers]
            asked = [custom_id for custom_id in ids if custom_id.startswith("line-")]
            assert asked != sorted(asked, key=lambda custom_id: int(custom_id[5:]))
            assert len(asked) == len(set(asked)) + 2
            assert len(set(asked)) < 20, "some are lost"
            assert sorted(set(ids) - set(asked)) == ["unasked-1", "unasked-2", "unasked-3"]

    asyncio.run(script())


def test_an_answer_that_is_billed_and_in_no_file_is_counted(form, opened):
    async def script():
        async with opened(form, withheld=0.3, seed=2) as desk:
            status, answers = await desk.run(20)
            assert status.answered == 20 == len([entry for entry in desk.server.ledger.entries if entry.billed])
            assert 0 < len(answers) < 20

    asyncio.run(script())


def test_a_wrong_key_is_refused_and_nowhere_repeated(form, opened):
    async def script():
        async with opened(form, key=KEY, server_key="another") as desk:
            calls = [
                desk.batches.submit("wave-1", MODEL, desk.wave(1)),
                desk.batches.batches(datetime.now(UTC)),
                desk.batches.status("batch_1"),
                desk.batches.cancel("batch_1"),
                desk.answers("batch_1"),
            ]
            for call in calls:
                with pytest.raises(CallError) as caught:
                    await call
                assert caught.value.fault is Fault.AUTHENTICATION
                assert not caught.value.may_be_billed
                assert "[redacted]" in str(caught.value)
                assert KEY not in str(caught.value)
            assert KEY not in repr(desk.batches)
            assert desk.server.batches.batches == []

    asyncio.run(script())


def test_nobody_answers_at_the_address(form, opened):
    async def script():
        async with opened(form) as desk:
            wave = desk.wave(1)
            await desk.server.stop()
            with pytest.raises(TransientError) as caught:
                await desk.batches.submit("wave-1", MODEL, wave)
            assert not caught.value.may_be_billed

    asyncio.run(script())


def test_an_unknown_batch_is_a_bad_request(form, opened):
    async def script():
        async with opened(form) as desk:
            for call in (desk.batches.status("gone"), desk.batches.cancel("gone"), desk.answers("../models")):
                with pytest.raises(CallError) as caught:
                    await call
                assert caught.value.fault is Fault.BAD_REQUEST

    asyncio.run(script())


def test_an_answer_is_read_with_its_status(form, opened):
    cases = {
        (429, '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'): Fault.RATE_LIMITED,
        (400, '{"error":{"message":"bad","type":"invalid_request_error"}}'): Fault.BAD_REQUEST,
        (400, '{"error":{"message":"no","code":"content_filter"}}'): Fault.FILTERED,
        (401, '{"error":{"message":"who?"}}'): Fault.AUTHENTICATION,
        (429, '{"error":{"message":"pay","code":"insufficient_quota"}}'): Fault.QUOTA,
        (500, "a page"): Fault.TRANSIENT,
        (200, "{}"): Fault.TRANSIENT,
    }

    async def script():
        async with opened(form) as desk:
            for (status, text), fault in cases.items():
                with pytest.raises(CallError) as caught:
                    desk.batches.read(BatchAnswer("line-1", status, text), desk.body())
                assert caught.value.fault is fault

    asyncio.run(script())
