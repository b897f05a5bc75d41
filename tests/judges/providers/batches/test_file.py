"""Batches as files in a folder: what whoever answers them writes, and what is taken in."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from venire.arena.errors import CallError, Fault, TransientError
from venire.judges.providers.batches.base import BatchAnswer, BatchState
from venire.judges.providers.batches.file import FileBatches

BODY = b'{"messages":[],"model":"judge"}'
COMPLETION = {
    "id": "chatcmpl-1",
    "model": "judge",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "The first."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 3},
}


def vllm(number, **fields):
    """A line as `vllm run-batch` writes it (vllm/entrypoints/openai/run_batch.py at 0056ae7, read 2026-11-24)."""
    response = {"status_code": 200, "request_id": f"vllm-batch-{number}", "body": COMPLETION}
    line = {"id": f"vllm-{number}", "custom_id": f"line-{number}", "response": response, "error": None, **fields}
    return orjson.dumps(line) + b"\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "waves"


@pytest.fixture
def wave(tmp_path):
    path = tmp_path / "wave.jsonl"
    batches = FileBatches(tmp_path)
    path.write_bytes(b"".join(batches.line(f"line-{number}", BODY) + b"\n" for number in (1, 2, 3)))
    return path


def answers_of(batches, name):
    async def read():
        return [answer async for answer in batches.answers(name)]

    return asyncio.run(read())


def test_a_wave_is_put_into_the_folder_and_ends_when_every_line_is_answered(folder, wave):
    batches = FileBatches(folder)
    since = datetime.now(UTC)
    made = asyncio.run(batches.submit("wave-1", "judge", wave))
    assert (made.id, made.name, made.state, made.lines) == ("wave-1", "wave-1", BatchState.RUNNING, 3)
    assert sorted(os.listdir(folder)) == ["wave-1.jsonl"]
    assert (folder / "wave-1.jsonl").read_bytes() == wave.read_bytes()
    assert wave.exists()
    assert abs(made.created_at - since) < timedelta(minutes=1)
    answered = folder / "wave-1.answered.jsonl"
    answered.write_bytes(vllm(1) + vllm(2) + vllm(3)[:-40])
    assert asyncio.run(batches.status("wave-1")).state is BatchState.RUNNING, "it is still being written"
    answered.write_bytes(vllm(1) + vllm(2) + vllm(3))
    ended = asyncio.run(batches.status("wave-1"))
    assert (ended.state, ended.answered) == (BatchState.ENDED, 3)
    found = answers_of(batches, "wave-1")
    assert [answer.custom_id for answer in found] == ["line-1", "line-2", "line-3"]
    assert batches.read(found[0], BODY).text == "The first."
    assert answers_of(batches, "wave-1") == found


def test_a_last_line_without_its_end_counts_where_it_is_whole(folder, wave):
    batches = FileBatches(folder)
    asyncio.run(batches.submit("wave-1", "judge", wave))
    (folder / "wave-1.answered.jsonl").write_bytes((vllm(1) + vllm(2) + vllm(3)).removesuffix(b"\n"))
    assert asyncio.run(batches.status("wave-1")).state is BatchState.ENDED


def test_the_list_has_waves_and_cancelled_ones_and_no_answers(folder, wave):
    batches = FileBatches(folder)
    since = datetime.now(UTC)
    assert asyncio.run(batches.batches(since)) == []
    for name in ("wave-1", "wave-2"):
        asyncio.run(batches.submit(name, "judge", wave))
    (folder / "wave-1.answered.jsonl").write_bytes(vllm(1))
    (folder / "notes.txt").write_text("mine")
    asyncio.run(batches.cancel("wave-2"))
    assert {one.name for one in asyncio.run(batches.batches(since))} == {"wave-1", "wave-2"}
    os.utime(folder / "wave-1.jsonl", (1, 1))
    assert [one.name for one in asyncio.run(batches.batches(since))] == ["wave-2"]


def test_a_wave_is_never_written_over(folder, wave):
    batches = FileBatches(folder)
    asyncio.run(batches.submit("wave-1", "judge", wave))
    asyncio.run(batches.cancel("wave-1"))
    with pytest.raises(CallError, match="is there already") as caught:
        asyncio.run(batches.submit("wave-1", "judge", wave))
    assert (caught.value.fault, caught.value.may_be_billed) == (Fault.BAD_REQUEST, False)


def test_a_cancelled_wave_leaves_the_folder_and_keeps_its_answers(folder, wave):
    batches = FileBatches(folder)
    asyncio.run(batches.submit("wave-1", "judge", wave))
    (folder / "wave-1.answered.jsonl").write_bytes(vllm(1) + b'{"custom_id":"line-2"')
    status = asyncio.run(batches.cancel("wave-1"))
    assert (status.state, status.problem, status.lines) == (BatchState.ENDED, "cancelled", 3)
    assert sorted(os.listdir(folder)) == ["wave-1.answered.jsonl", "wave-1.cancelled"]
    assert [answer.custom_id for answer in answers_of(batches, "wave-1")] == ["line-1"]
    assert asyncio.run(batches.cancel("wave-1")).problem == "cancelled"


def test_a_cancelled_wave_without_answers_has_none(folder, wave):
    batches = FileBatches(folder)
    asyncio.run(batches.submit("wave-1", "judge", wave))
    asyncio.run(batches.cancel("wave-1"))
    assert answers_of(batches, "wave-1") == []


def test_a_refused_wave_says_why(folder, wave):
    batches = FileBatches(folder)
    asyncio.run(batches.submit("wave-1", "judge", wave))
    (folder / "wave-1.refused.txt").write_text("no model of that name\nis served here\n")
    status = asyncio.run(batches.status("wave-1"))
    assert (status.state, status.problem) == (BatchState.REFUSED, "no model of that name is served here")


def test_failed_lines_of_vllm_are_faults(folder, wave):
    batches = FileBatches(folder)
    asyncio.run(batches.submit("wave-1", "judge", wave))
    refused = {"status_code": 400, "request_id": "vllm-batch-2", "body": None}
    inner = {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}}
    (folder / "wave-1.answered.jsonl").write_bytes(
        vllm(1) + vllm(2, response=refused, error=inner) + vllm(3, response=refused, error="not in stream mode")
    )
    _, second, third = answers_of(batches, "wave-1")
    assert (second.status, orjson.loads(second.text)) == (400, {"error": inner["error"]})
    assert (third.status, orjson.loads(third.text)) == (400, {"error": {"message": "not in stream mode"}})
    for answer in (second, third):
        with pytest.raises(CallError) as caught:
            batches.read(answer, BODY)
        assert caught.value.fault is Fault.BAD_REQUEST


def test_what_is_not_there_and_cannot_be_is_said(folder, wave, tmp_path):
    batches = FileBatches(folder)
    for name in ("../wave", "a.b", "", "x" * 200):
        with pytest.raises(CallError, match="cannot be the name"):
            asyncio.run(batches.submit(name, "judge", wave))
    with pytest.raises(CallError, match=r"wave-9.jsonl: No such file") as caught:
        asyncio.run(batches.status("wave-9"))
    assert (caught.value.fault, caught.value.status) == (Fault.BAD_REQUEST, 404)
    (tmp_path / "plain").write_text("")
    with pytest.raises(CallError, match=r"plain: File exists"):
        asyncio.run(FileBatches(tmp_path / "plain").submit("wave-1", "judge", wave))
    with pytest.raises(TransientError):
        batches.read(BatchAnswer("line-1", None, "cancelled"), BODY)
    assert str(folder) in repr(batches)
    asyncio.run(batches.close())


def test_a_second_process_sees_no_half_written_wave(folder, wave, monkeypatch):
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (seen.append(sorted(os.listdir(folder))), replace(*paths)))
    asyncio.run(FileBatches(folder).submit("wave-1", "judge", wave))
    assert seen == [["wave-1.draft"]]
