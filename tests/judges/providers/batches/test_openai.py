"""OpenAI's batch interface: refused files, its lines, uploads from disk and answers as a stream."""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson
import pytest
from aiohttp import web

from tests.servers import site
from venire.arena.errors import CallError, TransientError
from venire.judges.providers import PROVIDERS, Endpoint
from venire.judges.providers.batches.base import BatchAnswer, BatchState
from venire.judges.providers.batches.openai import read_answer_line

KEY = "sk-proj-Zx81/Qf+7mW_2d"
MODEL = "simulated/gpt-4-0613@1"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"{oops}", "line 2: This line is not parseable as valid JSON."),
        (b'{"custom_id":"x","method":"POST","url":"/v1/embeddings","body":{}}',
         "line 2: The method and url of a line must be POST /v1/chat/completions."),
    ],
)  # fmt: skip
def test_a_refused_file_names_its_line(bad, problem, opened):
    async def script():
        async with opened("openai") as desk:
            wave = desk.wave(1)
            wave.write_bytes(wave.read_bytes() + bad + b"\n")
            made = await desk.batches.submit("wave-1", MODEL, wave)
            assert made.state is BatchState.RUNNING
            status = await desk.ended(made.id)
            assert (status.state, status.problem, status.may_pass) == (BatchState.REFUSED, problem, False)
            assert desk.server.ledger.entries == []

    asyncio.run(script())


def test_a_file_with_many_bad_lines_names_the_first_and_counts_the_rest(opened):
    async def script():
        async with opened("openai") as desk:
            wave = desk.wave(2)
            wave.write_bytes(wave.read_bytes() * 2)
            status = await desk.ended((await desk.batches.submit("wave-1", MODEL, wave)).id)
            assert status.problem == "line 3: The custom_id 'line-1' has been used before in this file. (and 1 more)"

    asyncio.run(script())


def test_a_file_that_the_queue_has_no_room_for_may_pass_later(opened):
    async def script():
        async with opened("openai", queue_lines=3, polls=1) as desk:
            wave = desk.wave(2)
            first = await desk.batches.submit("wave-1", MODEL, wave)
            second = await desk.batches.submit("wave-2", MODEL, wave)
            refused = await desk.ended(second.id)
            assert (refused.state, refused.may_pass) == (BatchState.REFUSED, True)
            assert refused.problem == "Enqueued token limit reached: try again later."
            await desk.ended(first.id)
            assert (await desk.ended((await desk.batches.submit("wave-3", MODEL, wave)).id)).answered == 2

    asyncio.run(script())


def test_a_line_holds_the_body_byte_for_byte(opened):
    async def script():
        async with opened("openai") as desk:
            body = desk.body()
            line = desk.batches.line("line-1", body)
            assert body in line
            assert b"\n" not in line
            assert orjson.loads(line) == {
                "custom_id": "line-1", "method": "POST", "url": "/v1/chat/completions", "body": orjson.loads(body),
            }  # fmt: skip

    asyncio.run(script())


def test_a_line_that_failed_without_an_answer_has_a_status_or_none():
    def line(error, **fields):
        return read_answer_line(orjson.dumps({"custom_id": "a", "response": None, "error": error, **fields}).decode())

    assert line({"code": "batch_cancelled", "message": ""}) == BatchAnswer("a", None, "batch_cancelled")
    assert line({"code": "request_timeout", "message": "late"}).status == 408
    assert line({"code": "server_error", "message": "oops"}).status == 500
    assert line(None).status == 500
    assert line(None, response={"status_code": 0, "body": {}}).status == 500
    assert line(None, response={"body": {"id": "x"}}) == BatchAnswer("a", 200, '{"id":"x"}')
    assert read_answer_line('{"custom_id": "a", "resp') == BatchAnswer("", 500, '{"custom_id": "a", "resp')
    assert read_answer_line("[]").custom_id == ""


@asynccontextmanager
async def served(lines, upload=None):
    """The endpoint of a server that has one batch with a file of answers."""

    async def content(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines():
            await response.write(line)
        return response

    async def show(request):
        return web.json_response({"id": "b-1", "status": "completed", "output_file_id": "f-1", "created_at": 1})

    async def take(request):
        return await upload(request)

    application = web.Application(client_max_size=0)
    application.router.add_get("/v1/batches/b-1", show)
    application.router.add_get("/v1/files/f-1/content", content)
    application.router.add_post("/v1/files", take)
    application.router.add_post("/v1/batches", show)
    async with site(application) as address:
        yield PROVIDERS["openai"].open_batches(Endpoint(f"{address}/v1", KEY, 30.0, 4))


def test_a_secret_in_an_answer_is_masked_in_whatever_form():
    escaped = KEY.replace("/", "\\/").encode()

    def lines():
        for key in (KEY.encode(), escaped):
            yield (
                b'{"custom_id":"' + key + b'","response":{"status_code":200,"body":{"said":"' + key + b'"}}}\n'
                b'{"custom_id":"b","response":null,"error":{"code":"batch_expired","message":"' + key + b'"}}\n'
            )
        yield b"no JSON at all: " + KEY.encode()  # and no line end

    async def script():
        async with served(lines) as batches:
            answers = [answer async for answer in batches.answers("b-1")]
        assert len(answers) == 5
        assert all("[redacted]" in answer.text for answer in answers)
        assert KEY not in repr(answers)

    asyncio.run(script())


def test_an_answer_file_that_breaks_off_is_a_transient_fault_after_its_whole_lines():
    async def script():
        def lines():
            yield b'{"custom_id":"a","response":{"status_code":200,"body":{}}}\n{"custom_id":"b"'
            raise ConnectionResetError

        async with served(lines) as batches:
            stream = batches.answers("b-1")
            assert (await anext(stream)).custom_id == "a"
            with pytest.raises(TransientError):
                await anext(stream)

    asyncio.run(script())


def test_a_redirect_takes_a_file_from_elsewhere_without_the_key():
    heard = []

    async def handle(request):
        heard.append((request.path, request.headers.get("Authorization")))
        if request.path == "/v1/batches/b-1":
            return web.json_response({"id": "b-1", "status": "completed", "output_file_id": "f-1"})
        if request.path == "/v1/files/f-1/content":
            return web.Response(status=302, headers={"Location": "/store/f-1?signed=yes"})
        return web.Response(text='{"custom_id":"a","response":{"status_code":200,"body":{}}}\n')

    async def script():
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handle)
        async with site(application) as address:
            batches = PROVIDERS["openai"].open_batches(Endpoint(f"{address}/v1", KEY, 30.0, 4))
            assert [answer.custom_id async for answer in batches.answers("b-1")] == ["a"]
        assert heard[-1] == ("/store/f-1", None)
        assert heard[0][1] == heard[1][1] == f"Bearer {KEY}"

    asyncio.run(script())


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_server_s_error_leaves_open_whether_a_batch_was_made(status, serving, tmp_path):
    wave = tmp_path / "wave.jsonl"
    wave.write_bytes(b"{}\n")

    async def answer(request):
        if request.path == "/v1/files":
            return web.json_response({"id": "f-1"})
        return web.Response(status=status, text="<html>")

    async def script():
        async with serving(answer) as vendor:
            batches = PROVIDERS["openai"].open_batches(Endpoint(vendor.url, KEY, 30.0, 4))
            with pytest.raises(TransientError) as caught:
                await batches.submit("wave-1", "judge", wave)
            assert caught.value.may_be_billed
            with pytest.raises(TransientError) as caught:
                await batches.batches(datetime.now(UTC))
            assert not caught.value.may_be_billed

    asyncio.run(script())


def test_a_refused_creation_makes_no_batch(serving, tmp_path):
    wave = tmp_path / "wave.jsonl"
    wave.write_bytes(b"{}\n")

    async def answer(request):
        if request.path == "/v1/files":
            return web.json_response({"id": "f-1"})
        return web.json_response({"error": {"code": "billing_hard_limit_reached", "message": "pay"}}, status=400)

    async def script():
        async with serving(answer) as vendor:
            batches = PROVIDERS["openai"].open_batches(Endpoint(vendor.url, KEY, 30.0, 4))
            with pytest.raises(CallError) as caught:
                await batches.submit("wave-1", "judge", wave)
            assert not caught.value.may_be_billed
            assert vendor.paths == ["/v1/files", "/v1/batches"]
            assert vendor.body() == {
                "input_file_id": "f-1",
                "endpoint": "/v1/chat/completions",
                "completion_window": "24h",
                "metadata": {"venire": "wave-1"},
            }

    asyncio.run(script())


@pytest.mark.slow
def test_a_file_of_200_mb_is_sent_from_disk_and_50_000_answers_are_read_as_a_stream(tmp_path):
    wave = tmp_path / "wave.jsonl"
    with wave.open("wb") as file:
        for _ in range(200):
            file.write(b"x" * 999_999 + b"\n")
    reply = b'","response":{"status_code":200,"body":{"text":"' + b"so it is " * 400 + b'"}}}\n'

    def lines():
        for number in range(50_000):
            yield b'{"custom_id":"' + str(number).encode() + reply

    received = 0

    async def take(request):
        nonlocal received
        assert int(request.headers["Content-Length"]) > 200_000_000
        async for piece in request.content.iter_any():
            received += len(piece)
        return web.json_response({"id": "f-0"})

    async def script():
        async with served(lines, take) as batches:
            tracemalloc.start()
            try:
                await batches.submit("wave-1", "judge", wave)
                count = 0
                async for _ in batches.answers("b-1"):
                    count += 1
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert received > 200_000_000
        assert count == 50_000
        assert peak < 40 * 2**20, "of 200 MB sent and 180 MB received"

    asyncio.run(script())
