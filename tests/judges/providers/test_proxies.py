"""Calls through a proxy: plain and in a tunnel, with and without a password, and with a proxy that refuses."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.servers import listening
from venire.arena.errors import CallError, Fault, InputError
from venire.arena.records import Reply, Request
from venire.judges.providers import Endpoint
from venire.judges.providers.openai import OpenAIProvider

TLS = Path(__file__).parent / "tls"
REQUEST = Request(({"role": "user", "content": "1 or 2?"},), 64)
KEY = "sk-proj-Zx81/Qf+7mW_2d"
PASSWORD = "pass/word"
LOGIN = "me:pass%2Fword@"
BASIC = "Basic " + b64encode(b"me:pass/word").decode()


class Proxy:
    """A proxy on loopback: what it heard, and what it says where it does not pass calls on."""

    def __init__(self, refusal: bytes = b"", password: str | None = None) -> None:
        self.refusal = refusal
        self.password = password
        self.heads: list[str] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if self.password is not None and field(head, "proxy-authorization") != self.password:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif self.refusal:
            writer.write(self.refusal)
        else:
            await self.connect(head, reader, writer)

    async def connect(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = head.split("\r\n")[0].split(" ")
        host, _, port = target.removeprefix("http://").partition("/")[0].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(head.replace(f"http://{host}:{port}", "", 1).encode())
        await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer))


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def proxying(proxy: Proxy) -> AsyncIterator[Proxy]:
    async with listening(proxy.serve) as proxy.address:
        yield proxy


@asynccontextmanager
async def vendor(payload: Any, *, tls: bool) -> AsyncIterator[tuple[str, list[str]]]:
    """The base URL of a server that answers everything with this, and the heads of the requests that it heard."""
    heads: list[str] = []
    body = orjson.dumps(payload)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = [int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:")]
            await reader.readexactly(sum(length))
            heads.append(head)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "server.pem")
    async with listening(serve, context) as address:
        yield f"{'https' if tls else 'http'}://{address}/v1", heads


def field(head: str, name: str) -> str | None:
    """The value of a header, whose name is written in any case."""
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    return {written.lower(): value for written, value in fields.items()}.get(name)


async def ask(url: str, proxy: str | None, calls: int = 1) -> list[Reply | CallError]:
    provider = OpenAIProvider(Endpoint(url, KEY, 10.0, 4, proxy=proxy))
    outcomes: list[Reply | CallError] = []
    try:
        for number in range(calls):
            try:
                outcomes.append(await provider.send(provider.encode("judge", REQUEST), f"{number}"))
            except CallError as error:
                outcomes.append(error)
    finally:
        await provider.close()
    return outcomes


def leaks(error: BaseException) -> bool:
    told = "".join((str(error), repr(error), repr(vars(error)), repr(error.__cause__), repr(error.__context__)))
    return any(secret in told for secret in (KEY, PASSWORD, LOGIN, BASIC, BASIC.removeprefix("Basic ")))


@pytest.mark.parametrize("login", ["", LOGIN])
def test_a_plain_call_goes_through_the_proxy(good: Any, login: str) -> None:
    async def go() -> None:
        async with vendor(good, tls=False) as (url, heads), proxying(Proxy(password=BASIC if login else None)) as proxy:
            replies = await ask(url, f"http://{login}{proxy.address}", calls=2)
        assert all(isinstance(reply, Reply) for reply in replies)
        assert len(heads) == 2
        assert len(proxy.heads) == 1  # the connection is kept
        assert proxy.heads[0].startswith(f"POST {url}/chat/completions HTTP/1.1\r\n")
        assert field(proxy.heads[0], "proxy-authorization") == (BASIC if login else None)
        assert field(heads[0], "authorization") == f"Bearer {KEY}"

    asyncio.run(go())


SCRIPT = """
import asyncio, os, sys, uvloop
from tests.judges.providers import test_proxies as here
run = {"uvloop": uvloop.run, "asyncio": asyncio.run}[sys.argv[1]]
for outcome in run(here.ask(sys.argv[2], os.environ["OUR_PROXY"], 2)):
    print(type(outcome).__name__, getattr(outcome, "text", outcome))
"""


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("login", ["", LOGIN])
def test_a_tunnel_is_opened_and_only_the_vendor_sees_the_key(good: Any, login: str, loop: str) -> None:
    """With an authority of one's own, which SSL_CERT_FILE names."""

    async def go() -> None:
        async with vendor(good, tls=True) as (url, heads), proxying(Proxy(password=BASIC if login else None)) as proxy:
            environment = {
                **os.environ,
                "SSL_CERT_FILE": str(TLS / "authority.pem"),
                "OUR_PROXY": f"http://{login}{proxy.address}",
                "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", ""))),
            }
            command = [sys.executable, "-c", SCRIPT, loop, url]
            done = await asyncio.to_thread(
                subprocess.run, command, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
        assert done.stdout == "Reply The first is better.\n" * 2, done.stderr
        assert len(heads) == 2
        assert [head.split("\r\n")[0] for head in proxy.heads] == [f"CONNECT {url[8:-3]} HTTP/1.1"]
        assert field(proxy.heads[0], "proxy-authorization") == (BASIC if login else None)
        assert KEY not in proxy.heads[0]
        assert field(heads[0], "authorization") == f"Bearer {KEY}"
        assert field(heads[0], "proxy-authorization") is None

    asyncio.run(go())


def refused(proxy: Proxy, *, tls: bool, login: str = LOGIN) -> tuple[CallError, str]:
    async def go() -> tuple[CallError, str]:
        async with vendor({}, tls=tls) as (url, heads), proxying(proxy):
            (error,) = await ask(url, f"http://{login}{proxy.address}")
        assert isinstance(error, CallError)
        assert heads == []
        return error, proxy.address

    return asyncio.run(go())


def test_an_authority_that_nobody_trusts_is_said_to_be_so() -> None:
    error, _ = refused(Proxy(), tls=True)
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, False)
    assert "the TLS certificate or handshake failed: its authority is not trusted" in str(error)
    assert not leaks(error)


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("login", ["", "me:wrong-password@"])
def test_a_proxy_that_refuses_the_password_is_named_and_closes_the_lane(tls: bool, login: str) -> None:
    error, address = refused(Proxy(password=BASIC), tls=tls, login=login)
    assert (error.fault, error.status, error.may_be_billed) == (Fault.AUTHENTICATION, 407, False)
    assert f"the proxy {address} refused the call (407): its user or password" in str(error)
    assert "wrong-password" not in str(error)
    assert not leaks(error)


@pytest.mark.parametrize("status", [502, 503, 403])
def test_a_proxy_that_opens_no_tunnel_is_named_and_nothing_was_sent(status: int) -> None:
    said = f"HTTP/1.1 {status} {BASIC} {KEY}\r\nContent-Length: 0\r\n\r\n".encode()
    error, address = refused(Proxy(refusal=said), tls=True)
    assert (error.fault, error.status, error.may_be_billed) == (Fault.TRANSIENT, None, False)
    assert f"the proxy {address} refused the call: it opened no tunnel" in str(error)
    assert not leaks(error)


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_a_proxy_that_is_none_is_an_error_without_secrets(tls: bool, said: bytes) -> None:
    error, _ = refused(Proxy(refusal=said or b" "), tls=tls)
    assert error.fault is Fault.TRANSIENT
    assert not leaks(error)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_proxies_of_the_environment_are_not_used(good: Any, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    async def go() -> None:
        async with vendor(good, tls=False) as (url, heads), proxying(Proxy()) as proxy:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, f"http://{proxy.address}")
            (reply,) = await ask(url.replace("127.0.0.1", host), None)
        assert isinstance(reply, Reply)
        assert (len(heads), proxy.heads) == (1, [])

    asyncio.run(go())


def test_a_proxy_that_is_not_there_is_named() -> None:
    async def go() -> CallError:
        async with proxying(Proxy()) as proxy:
            gone = proxy.address
        (error,) = await ask("https://127.0.0.1:1/v1", f"http://{LOGIN}{gone}")
        assert isinstance(error, CallError)
        assert f"no connection to the proxy {gone} (refused)" in str(error)
        return error

    error = asyncio.run(go())
    assert (error.fault, error.may_be_billed) == (Fault.TRANSIENT, False)
    assert not leaks(error)


@pytest.mark.parametrize("password", [None, BASIC])
def test_check_says_that_the_proxy_is_the_reason(password: str | None) -> None:
    async def go() -> str:
        proxy = Proxy(password="another" if password else None, refusal=b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        async with proxying(proxy):
            provider = OpenAIProvider(
                Endpoint("https://127.0.0.1:1/v1", KEY, 5.0, 4, proxy=f"http://{LOGIN}{proxy.address}")
            )
            try:
                with pytest.raises(InputError, match=f"the proxy {proxy.address} refused") as caught:
                    await provider.check()
            finally:
                await provider.close()
        assert not leaks(caught.value)
        return str(caught.value)

    assert ("user or password" in asyncio.run(go())) == (password is not None)
