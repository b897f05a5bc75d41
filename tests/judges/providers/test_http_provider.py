"""Slow, broken and hostile servers: each becomes one classified attempt, and no body is ever sent twice."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from traceback import walk_tb
from typing import Any

import orjson
import pytest

from tests.servers import listening
from venire.arena.errors import CallError, Fault, TransientError
from venire.arena.records import Reply, Request
from venire.judges.providers import Endpoint
from venire.judges.providers.connections import timeouts
from venire.judges.providers.openai import OpenAIProvider

REQUEST = Request(({"role": "user", "content": "1 or 2?"},), 64)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


class Heard:
    """What a server heard: the bodies of whole requests, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.heads: list[str] = []
        self.connections = 0
        self.closing: list[asyncio.Future[None]] = []
        """Of each connection that the server has ended: done when the client has closed it too."""


async def hear(reader: asyncio.StreamReader, heard: Heard) -> None:
    """Read one whole request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
    heard.heads.append(head)
    heard.bodies.append(await reader.readexactly(length))


@asynccontextmanager
async def talking(script: Script, *, hearing: bool = True, noticed: bool = False) -> AsyncIterator[Heard]:
    """A server that does as the script says on each connection, once it has heard a request (or its first byte).

    Whoever resets a connection before that may do so before the client has it. A connection whose script is over is
    closed; where this has to be `noticed`, it is ended in one direction, and closed when the client has closed it.
    """
    heard = Heard()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.connections += 1
        if hearing:
            await hear(reader, heard)
        else:
            await reader.readexactly(1)
        await script(reader, writer, heard.connections)
        if noticed:
            closed = asyncio.get_running_loop().create_future()
            heard.closing.append(closed)
            try:
                writer.write_eof()
                await reader.read()
            finally:
                closed.set_result(None)

    async with listening(serve) as address:
        heard.url = f"http://{address}/v1"
        yield heard


def saying(*parts: bytes, then: Callable[[asyncio.StreamWriter], None] | None = None) -> Script:
    """Send these bytes, do something with the connection, and close it."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then is not None:
            then(writer)

    return script


def answer(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """An HTTP answer with a length, right or wrong."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def reset(writer: asyncio.StreamWriter) -> None:
    """Close the connection in the rudest way there is."""
    held = writer.get_extra_info("socket")
    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def call(
    script: Script, *, calls: int = 1, hearing: bool = True, scheme: str = "http:", **options: Any
) -> tuple[Any, Heard]:
    """What came of the last of so many calls, one after the other, and what the server heard of all."""

    async def go() -> tuple[Any, Heard]:
        async with talking(script, hearing=hearing, noticed=calls > 1) as heard:
            address = heard.url.replace("http:", scheme)
            provider = OpenAIProvider(Endpoint(address, None, options.pop("timeout", 20.0), 4, **options))
            outcome: Any = None
            try:
                for number in range(calls):
                    try:
                        outcome = await provider.send(provider.encode("judge", REQUEST), f"{number}")
                    except CallError as error:
                        outcome = error
                    await asyncio.gather(*heard.closing)  # the next call finds no connection that only seems open
            finally:
                await provider.close()
            return outcome, heard

    return asyncio.run(asyncio.wait_for(go(), 30))


@pytest.fixture
def body(good) -> bytes:
    return orjson.dumps(good)


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
    await reader.read()


def stalled(head: bytes) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(head)
        await reader.read()

    return script


def test_a_connection_that_is_not_made_in_time_costs_nothing() -> None:
    """TCP connects, TLS never answers: the call was not sent."""
    error, heard = call(silence, hearing=False, scheme="https:", connect_timeout=0.05)
    assert (error.fault, error.status, error.may_be_billed) == (Fault.TRANSIENT, None, False)
    assert "no connection within 0.05 s (connect_timeout)" in str(error)
    assert heard.bodies == []


def test_the_time_for_connecting_ends_before_the_whole_time() -> None:
    """Else a call that was never sent would be taken for one that may be billed."""
    error, _ = call(silence, hearing=False, scheme="https:", timeout=1.0)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, False)
    assert "connect_timeout" in str(error)


def test_a_limit_on_silence_does_not_make_a_call_that_was_never_sent_one_that_may_be_billed() -> None:
    error, _ = call(silence, hearing=False, scheme="https:", read_timeout=0.5)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, False)
    assert "connect_timeout" in str(error)


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\nContent-Len", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"]
)
def test_silence_ends_a_call_by_the_read_timeout(said: bytes) -> None:
    error, heard = call(stalled(said), read_timeout=0.05)
    assert isinstance(error, TransientError)
    assert (error.fault, error.status, error.may_be_billed) == (Fault.TRANSIENT, None, True)
    assert "silent for 0.05 s (read_timeout)" in str(error)
    assert len(heard.bodies) == 1


def trickle(head: bytes, piece: bytes) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await asyncio.sleep(0)

    return script


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n", b" "),
        (CHUNKED, b"1\r\n \r\n"),
    ],
)
def test_an_answer_that_trickles_ends_by_the_whole_timeout(head: bytes, piece: bytes) -> None:
    error, heard = call(trickle(head, piece), timeout=0.2, read_timeout=0.15)
    assert isinstance(error, TransientError)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, True)
    assert "no whole answer within 0.2 s (timeout)" in str(error)
    assert len(heard.bodies) == 1


def test_an_interim_answer_is_no_sign_of_life() -> None:
    error, _ = call(trickle(b"", b"HTTP/1.1 102 Processing\r\n\r\n"), timeout=20.0, read_timeout=0.05)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, True)
    assert "silent for 0.05 s (read_timeout)" in str(error)


def half_closed(writer: asyncio.StreamWriter) -> None:
    writer.write_eof()


@pytest.mark.parametrize("hearing", [True, False])
@pytest.mark.parametrize("end", [reset, half_closed, None])
@pytest.mark.parametrize("kept", [0, 10, 40, 500])
def test_a_connection_that_ends_at_any_stage_may_be_billed(body: bytes, hearing: bool, end: Any, kept: int) -> None:
    error, heard = call(saying(answer(body + b" " * 500)[:kept], then=end), hearing=hearing)
    assert isinstance(error, TransientError)
    assert (error.fault, error.status, error.may_be_billed) == (Fault.TRANSIENT, None, True)
    assert len(heard.bodies) == hearing
    assert heard.connections == 1


BROKEN = [
    ("JSON cut short", lambda body: answer(body[:-20]), "no JSON object"),
    ("length too short", lambda body: answer(body, length=len(body) - 20), ""),
    ("length too long", lambda body: answer(body, length=len(body) + 20), "broke off"),
    ("length no number", lambda body: b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n" + body, "no HTTP answer"),
    ("gzip cut short", lambda body: answer(gzip.compress(body)[:-60], "Content-Encoding: gzip"), "broke off"),
    ("gzip that is none", lambda body: answer(body, "Content-Encoding: gzip"), "not what its headers say"),
    (
        "deflate that is none",
        lambda body: answer(b"\xff" * 99, "Content-Encoding: deflate"),
        "not what its headers say",
    ),
    ("unknown coding", lambda body: answer(b"\x28\xb5\x2f\xfd\x04", "Content-Encoding: zstd"), ""),
    (
        "bad chunk",
        lambda body: CHUNKED + b"zz\r\n" + body,
        "",
    ),
    ("many headers", lambda body: answer(body, *(f"X-{n}: 1" for n in range(5000))), "no HTTP answer"),
    ("long header", lambda body: answer(body, f"X-Long: {'x' * 2_000_000}"), "no HTTP answer"),
    ("no HTTP", lambda body: b"SSH-2.0-OpenSSH_9.6\r\n", "no HTTP answer"),
    ("HTML", lambda body: answer(b"<html>Welcome</html>", "Content-Type: text/html"), "no JSON object"),
    ("error inside", lambda body: answer(b'{"error": {"message": "overloaded"}}'), "error inside: overloaded"),
    ("no choice", lambda body: answer(b'{"choices": []}'), "without a choice"),
    ("choice of null", lambda body: answer(b'{"choices": [null]}'), "without a choice"),
    ("empty", lambda body: answer(b""), "no JSON object"),
    ("no content", lambda body: b"HTTP/1.1 204 No Content\r\n\r\n", "no JSON object"),
    ("UTF-16", lambda body: answer(body.decode().encode("utf-16")), "no JSON object"),
]


@pytest.mark.parametrize(("make", "words"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_an_answer_that_is_broken_is_transient_and_may_be_billed(body: bytes, make: Any, words: str) -> None:
    error, heard = call(saying(make(body)))
    assert isinstance(error, TransientError)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, True)
    assert words in str(error)
    assert len(heard.bodies) == 1


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        ("429 Too Many Requests", Fault.RATE_LIMITED),
        ("502 Bad Gateway", Fault.TRANSIENT),
        ("407 X", Fault.AUTHENTICATION),
    ],
)
def test_a_page_of_html_counts_by_its_status(status: str, fault: Fault) -> None:
    error, _ = call(saying(answer(b"<html>rate limit 429</html>", "Retry-After: 7", status=status)))
    assert (error.fault, error.status, error.retry_after, error.may_be_billed) == (fault, int(status[:3]), 7.0, False)
    assert "proxy" not in str(error)


FINE = [
    ("another type", lambda body: answer(body, "Content-Type: text/plain")),
    ("gzip", lambda body: answer(gzip.compress(body), "Content-Encoding: gzip")),
    ("deflate", lambda body: answer(zlib.compress(body), "Content-Encoding: deflate")),
    ("HTTP/1.0", lambda body: b"HTTP/1.0 200 OK\r\n\r\n" + body),
    ("no length", lambda body: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body),
    (
        "chunked",
        lambda body: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    ),
    ("100 first", lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" + answer(body)),
    ("103 first", lambda body: b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + answer(body)),
    ("byte by byte", lambda body: [bytes([byte]) for byte in answer(body)]),
    ("pretty", lambda body: answer(orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2))),
]


@pytest.mark.parametrize("make", [case[1] for case in FINE], ids=[case[0] for case in FINE])
def test_an_answer_that_is_only_odd_is_read(body: bytes, make: Any) -> None:
    made = make(body)
    reply, heard = call(saying(*(made if isinstance(made, list) else [made])))
    assert isinstance(reply, Reply), reply
    assert reply.text == "The first is better."
    assert (reply.input_tokens, reply.output_tokens) == (120, 9)
    assert len(heard.bodies) == 1


@pytest.mark.parametrize(
    ("name", "charset", "text"),
    [
        (b"f\xfcrst", "Latin-1", "fürst"),
        (b"f\xfcrst", '"iso-8859-1"; x=y', "fürst"),
        (b"f\xc3\xbcrst", "latin-1", "fürst"),
        (b"f\xfcrst", "klingon", "f\ufffdrst"),
        (b"f\xfcrst", "utf-8", "f\ufffdrst"),
    ],
)
def test_a_text_is_utf_8_and_else_what_it_says_that_it_is(body: bytes, name: bytes, charset: str, text: str) -> None:
    reply, _ = call(saying(answer(body.replace(b"first", name), f"Content-Type: application/json; charset={charset}")))
    assert reply.text == f"The {text} is better."


def test_connecting_ends_before_any_other_limit_and_a_longer_silence_has_none_of_its_own() -> None:
    endpoint = Endpoint("http://host/v1", None, 6.0, 1, read_timeout=5.0)
    assert timeouts(endpoint, 6.0) == (6.0, pytest.approx(4.5), 5.0)
    assert timeouts(endpoint, 5.0) == (5.0, pytest.approx(4.5), None)


def test_no_text_at_all_is_a_reply_without_text(good) -> None:
    good["choices"][0]["message"] = {"role": "assistant", "content": None}
    reply, _ = call(saying(answer(orjson.dumps(good))))
    assert (reply.text, reply.finish, reply.output_tokens) == ("", "stop", 9)


def test_a_long_answer_is_read_to_its_end(good) -> None:
    good["choices"][0]["message"]["content"] = "word " * 6_000_000
    reply, _ = call(saying(answer(orjson.dumps(good))))
    assert len(reply.text) == 30_000_000


def spaces(megabytes: int) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    block = b" " * 2**20
    return b"".join([*(packer.compress(block) for _ in range(megabytes)), packer.flush()])


@pytest.mark.parametrize("bomb", [True, False])
def test_an_answer_that_is_too_long_is_left_before_it_fills_the_memory(bomb: bool) -> None:
    packed = spaces(300)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if bomb:
            writer.write(answer(packed, "Content-Encoding: gzip"))
            return
        writer.write(CHUNKED)
        for _ in range(300):
            writer.write(b"100000\r\n" + b" " * 2**20 + b"\r\n")
            await writer.drain()

    tracemalloc.start()
    try:
        error, heard = call(script)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert type(error) is CallError
    assert (error.fault, error.status, error.may_be_billed) == (Fault.BAD_REQUEST, 200, True)
    assert "larger than 32 MiB" in str(error)
    assert len(heard.bodies) == 1
    assert peak < 60 * 2**20


def test_a_connection_that_was_closed_between_two_calls_is_not_used_again(body: bytes) -> None:
    reply, heard = call(saying(answer(body)), calls=3)
    assert isinstance(reply, Reply)
    assert (heard.connections, len(heard.bodies)) == (3, 3)


def test_a_call_that_a_kept_connection_swallows_is_not_sent_again(body: bytes) -> None:
    """The server may have done the work: a library that sends it once more makes a call that nobody has paid for."""
    more = Heard()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(answer(body))
        await hear(reader, more)

    error, heard = call(script, calls=2)
    assert isinstance(error, TransientError)
    assert error.may_be_billed
    assert (heard.connections, len(heard.bodies) + len(more.bodies)) == (1, 2)


def test_bytes_behind_an_answer_are_no_answer_to_the_next_call(body: bytes, good) -> None:
    good["choices"][0]["message"]["content"] = "forged"
    forged = answer(orjson.dumps(good))

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(answer(body) + (forged if number == 1 else b""))
        await reader.read()

    reply, heard = call(script, calls=2)
    assert reply.text == "The first is better."
    assert len(heard.bodies) == 2


def test_a_body_of_many_megabytes_is_sent_without_a_warning(body: bytes) -> None:
    request = Request(({"role": "user", "content": "x" * 3_000_000},), 64)

    async def go() -> tuple[Reply, Heard]:
        async with talking(saying(answer(body))) as heard:
            provider = OpenAIProvider(Endpoint(heard.url, None, 20.0, 4))
            try:
                return await provider.send(provider.encode("judge", request), "1"), heard
            finally:
                await provider.close()

    _, heard = asyncio.run(go())
    assert orjson.loads(heard.bodies[0])["messages"][0]["content"] == "x" * 3_000_000


@pytest.mark.parametrize("end", [half_closed, None])
def test_a_refusal_that_comes_before_the_body_was_heard_is_read(end: Any) -> None:
    """A gateway that refuses a long prompt by its length does not read it first."""
    request = Request(({"role": "user", "content": "x" * 30_000_000},), 64)
    refusal = answer(b'{"error": {"message": "too long"}}', "Connection: close", status="413 Payload Too Large")

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        if end is not None:
            end(writer)
        while await reader.read(2**16):
            pass

    async def go() -> Any:
        async with talking(script, hearing=False) as heard:
            provider = OpenAIProvider(Endpoint(heard.url, None, 20.0, 4))
            try:
                return await provider.send(provider.encode("judge", request), "1")
            except CallError as error:
                return error
            finally:
                await provider.close()

    error = asyncio.run(asyncio.wait_for(go(), 30))
    assert (error.fault, error.status, error.may_be_billed) == (Fault.TOO_LONG, 413, False), error


@pytest.mark.parametrize("said", [b"", CHUNKED + b"5\r\n{    \r\n"])
def test_a_connection_of_a_call_that_was_given_up_is_not_used_again(body: bytes, said: bytes) -> None:
    """The rest of the answer that nobody waits for would be read as the next one."""

    async def go() -> tuple[Any, Heard]:
        begun = asyncio.Event()

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
            writer.write(said if number == 1 else answer(body))
            begun.set()
            await reader.read()

        async with talking(script) as heard:
            provider = OpenAIProvider(Endpoint(heard.url, None, 20.0, 1))
            encoded = provider.encode("judge", REQUEST)
            try:
                given_up = asyncio.create_task(provider.send(encoded, "1"))
                await begun.wait()
                for _ in range(20):
                    await asyncio.sleep(0)
                given_up.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await given_up
                return await provider.send(encoded, "2"), heard
            finally:
                await provider.close()

    reply, heard = asyncio.run(asyncio.wait_for(go(), 30))
    assert reply.text == "The first is better."
    assert (heard.connections, len(heard.bodies)) == (2, 2)


@pytest.mark.parametrize("said", [b"", CHUNKED + b"5\r\n{    \r\n"])
def test_a_call_that_is_cancelled_closes_its_connection(said: bytes) -> None:
    """Else the server would go on with an answer that nobody waits for, and the connection with it."""

    async def go() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
            writer.write(said)
            begun.set()
            await reader.read()
            ended.set()

        async with talking(script) as heard:
            provider = OpenAIProvider(Endpoint(heard.url, None, 60.0, 1))
            call = asyncio.create_task(provider.send(provider.encode("judge", REQUEST), "1"))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await ended.wait()  # while the provider is still open, and long before the timeout
            await provider.close()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_a_provider_that_was_closed_has_no_connection_left(body: bytes) -> None:
    async def go() -> None:
        ended = asyncio.Event()

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
            writer.write(answer(body))
            await reader.read()
            ended.set()

        async with talking(script) as heard:
            provider = OpenAIProvider(Endpoint(heard.url, None, 60.0, 1))
            await provider.send(provider.encode("judge", REQUEST), "1")
            await provider.close()
            await ended.wait()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_no_call_is_heard_twice_though_the_server_closes_its_connections_under_calls(body: bytes) -> None:
    """Kept connections end while the next calls are on their way; some of these fail, and none is repeated unasked."""

    async def go() -> tuple[list[str], int, int]:
        keys: list[str] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard = Heard()
            await hear(reader, heard)
            keys.append(re.findall(r"(?i)idempotency-key: (\S+)", heard.heads[0])[0])
            writer.write(answer(body))

        async with listening(serve) as address:
            provider = OpenAIProvider(Endpoint(f"http://{address}/v1", None, 20.0, 16))
            encoded = provider.encode("judge", REQUEST)

            async def ask(worker: int) -> int:
                answered = 0
                for number in range(40):
                    with suppress(TransientError):
                        await provider.send(encoded, f"{worker}-{number}")
                        answered += 1
                return answered

            answered = sum(await asyncio.gather(*(ask(worker) for worker in range(16))))
            await provider.close()
        return keys, answered, len(set(keys))

    keys, answered, different = asyncio.run(asyncio.wait_for(go(), 60))
    assert len(keys) == different
    assert 0 < answered <= different <= 640


def test_a_header_that_is_not_ascii_harms_nothing() -> None:
    said = b"HTTP/1.1 429 Slow\r\nX-Name: f\xfcrst\r\nX-Name: \xff\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}"
    error, _ = call(saying(said))
    assert (error.fault, error.retry_after) == (Fault.RATE_LIMITED, 7.0)


def test_no_local_variable_of_a_failed_call_shows_the_key_or_the_password(body: bytes) -> None:
    """Some tools print or send away the local variables of a traceback."""
    endpoint = Endpoint("http://127.0.0.1:1/v1", "sk-secret-1", 5.0, 4, proxy="http://me:password-1@127.0.0.1:1")
    provider = OpenAIProvider(endpoint)
    with pytest.raises(TransientError) as caught:
        asyncio.run(provider.send(body, "1"))
    frames = [frame for frame, _ in walk_tb(caught.value.__traceback__) if "providers" in frame.f_code.co_filename]
    shown = [repr(value) for frame in frames for value in frame.f_locals.values() if value is not endpoint]
    assert len(frames) >= 2
    assert any("Connections" in one for one in shown)
    assert not any("sk-secret-1" in one or "password-1" in one for one in shown)


APART = """
import asyncio, resource, sys
from venire.arena.errors import CallError, InputError
from venire.arena.records import Request
from venire.judges.providers import Endpoint
from venire.judges.providers.openai import OpenAIProvider

async def go(url):
    provider = OpenAIProvider(Endpoint(url, None, 5.0, 4))
    body = provider.encode("judge", Request(({"role": "user", "content": "1 or 2?"},), 64))
    await provider.send(body, "1")
    await provider.close()
    if sys.argv[2] == "full":
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    else:
        provider = OpenAIProvider(Endpoint("https" + url[4:], None, 5.0, 4))
    await provider.send(body, "2")

try:
    asyncio.run(go(sys.argv[1]))
except (CallError, InputError) as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("how", "variables", "words"),
    [
        ("full", {}, "OutOfFilesError http://{address}/v1: no connection (too many open files; raise `ulimit -n`"),
        (
            "https",
            {"SSL_CERT_FILE": "", "SSL_CERT_DIR": "/nonexistent"},
            "InputError https://{address}/v1: no TLS connection can be made, since this machine has no",
        ),
        (
            "https",
            {"SSL_CERT_FILE": "/nonexistent"},
            "InputError SSL_CERT_FILE names /nonexistent, which holds no certificate that can be read",
        ),
    ],
)
def test_a_machine_without_files_or_authorities_is_told_so(body: bytes, how: str, variables: Any, words: str) -> None:
    """Plain HTTP needs no authorities. In a process of its own: both belong to the whole process."""

    async def go() -> tuple[str, str, str]:
        async with talking(saying(answer(body))) as heard:
            environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
            command = [sys.executable, "-c", APART, heard.url, how]
            done = await asyncio.to_thread(
                subprocess.run, command, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            return heard.url[7:-3], done.stdout, done.stderr

    address, told, complaint = asyncio.run(asyncio.wait_for(go(), 60))
    assert told.startswith(words.format(address=address)), complaint


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
@pytest.mark.parametrize("authority", ["TRUE", "FALSE"])
def test_a_certificate_that_a_server_signed_itself_is_trusted_unless_it_is_an_authoritys(
    good: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: str
) -> None:
    shown, key = tmp_path / "shown.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    extensions = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", f"basicConstraints=critical,CA:{authority}"]
    subprocess.run(
        [*command.split(), *extensions, "-out", str(shown), "-keyout", str(key)], check=True, capture_output=True
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(shown))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hear(reader, Heard())
        writer.write(answer(orjson.dumps(good)))

    async def go() -> Any:
        async with listening(serve, context) as address:
            provider = OpenAIProvider(Endpoint(f"https://{address}/v1", None, 10.0, 4))
            return await provider.send(provider.encode("judge", REQUEST), "1")

    if authority == "FALSE":
        assert asyncio.run(go()).text == "The first is better."
        return
    with pytest.raises(TransientError, match="an authority's; a server needs one made with basicConstraints=CA:FALSE"):
        asyncio.run(go())


def test_these_tests_ask_nobody_beyond_this_machine() -> None:
    """Sockets of a library in Rust are none that pytest-socket sees."""
    provider = OpenAIProvider(Endpoint("http://192.0.2.1/v1", None, 5.0, 1))
    with pytest.raises(RuntimeError, match=r"192\.0\.2\.1, which is not this machine"):
        asyncio.run(provider.send(provider.encode("judge", REQUEST), "1"))
