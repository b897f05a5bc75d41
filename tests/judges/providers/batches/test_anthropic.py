"""Anthropic's message batches: one call with all requests, and the results of each."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from venire.arena.errors import CallError, Fault
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.batches.anthropic import read_result_line
from venire.judges.providers.batches.base import BatchAnswer

KEY = "sk-ant-Zx81/Qf+7mW_2d"
MODEL = "simulated/gpt-4-0613@1"
REPLY = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "in_progress",
    "request_counts": {"processing": 2, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": "2026-11-24T10:00:00.123456789Z",
    "expires_at": "2026-11-25T10:00:00Z",
}


@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_lines_of_a_file_are_the_requests_of_one_call(end, serving, saying, tmp_path):
    lines = [b'{"custom_id":"a","params":{"x":"1\\n2"}}', b'{"custom_id":"b","params":{"y":"' + b"z" * 200_000 + b'"}}']
    wave = tmp_path / "wave.jsonl"
    wave.write_bytes(b"\n".join(lines) + end)

    async def script():
        async with serving(saying(REPLY)) as vendor:
            batches = PROVIDERS["anthropic"].open_batches(Endpoint(vendor.url, KEY, 30.0, 4))
            made = await batches.submit("wave-1", "judge", wave)
            assert (made.id, made.lines, made.name) == ("msgbatch_1", 2, "")
            assert made.created_at.isoformat() == "2026-11-24T10:00:00.123456+00:00"
            assert vendor.body() == {"requests": [orjson.loads(line) for line in lines]}
            (headers,) = vendor.headers
            assert headers["content-length"] == str(len(vendor.bodies[0]))
            assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
            assert vendor.paths == ["/v1/messages/batches"]

    asyncio.run(script())


def test_a_line_holds_the_body_byte_for_byte(opened):
    async def script():
        async with opened("anthropic") as desk:
            body = desk.body()
            line = desk.batches.line("line-1", body)
            assert body in line
            assert orjson.loads(line) == {"custom_id": "line-1", "params": orjson.loads(body)}

    asyncio.run(script())


def test_a_call_with_a_malformed_request_makes_no_batch(opened):
    async def script():
        async with opened("anthropic") as desk:
            wave = desk.wave(1)
            wave.write_bytes(wave.read_bytes() * 2)
            with pytest.raises(CallError) as caught:
                await desk.batches.submit("wave-1", MODEL, wave)
            assert (caught.value.fault, caught.value.may_be_billed) == (Fault.BAD_REQUEST, False)
            assert "requests.1.custom_id: line-1 is not unique" in str(caught.value)
            assert desk.server.batches.batches == []

    asyncio.run(script())


def test_the_results_of_an_archived_batch_are_said_to_be_gone(serving, saying):
    async def script():
        archived = {**REPLY, "processing_status": "ended", "archived_at": "2026-12-24T10:00:00Z"}
        async with serving(saying(archived)) as vendor:
            batches = PROVIDERS["anthropic"].open_batches(Endpoint(vendor.url, KEY, 30.0, 4))
            assert (await batches.status("msgbatch_1")).problem == "its results are no longer kept"

    asyncio.run(script())


@pytest.mark.parametrize(
    ("kind", "status", "fault"),
    [
        ("invalid_request_error", 400, Fault.BAD_REQUEST),
        ("authentication_error", 401, Fault.AUTHENTICATION),
        ("billing_error", 402, Fault.QUOTA),
        ("request_too_large", 413, Fault.TOO_LONG),
        ("rate_limit_error", 429, Fault.RATE_LIMITED),
        ("overloaded_error", 529, Fault.TRANSIENT),
        ("something_new", 500, Fault.TRANSIENT),
    ],
)
def test_an_errored_request_says_what_a_failed_call_would(kind, status, fault):
    error = {"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "req_1"}
    line = orjson.dumps({"custom_id": "a", "result": {"type": "errored", "error": error}}).decode()
    answer = read_result_line(line)
    assert (answer.custom_id, answer.status) == ("a", status)
    batches = PROVIDERS["anthropic"].open_batches(Endpoint("http://127.0.0.1/v1", KEY, 30.0, 4))
    with pytest.raises(CallError) as caught:
        batches.read(answer, b"{}")
    assert caught.value.fault is fault


def test_a_line_in_no_form_is_an_answer_that_nobody_asked_for():
    assert read_result_line("<html>") == BatchAnswer("", 500, "<html>")
    assert read_result_line('{"custom_id":"a","result":{"type":"canceled"}}') == BatchAnswer("a", None, "canceled")
    assert read_result_line('{"custom_id":"a"}').status == 500
