"""A key leaves the environment for the provider and for nowhere else, whatever the provider does with it."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.servers import site

KEY = "sk-planted-4f1c0b7e9a2d4c55"
ENVIRONMENT = {**os.environ, "PLANTED_KEY": KEY, "PYTHONMALLOC": "pymalloc"}
"""`-X dev` is for what asyncio and the warnings say then; its checks of memory take twice the time."""


@pytest.fixture
def careless() -> Iterator[str]:
    """A provider that quotes the key it was sent: first in cut answers and errors, then in a 401."""
    seen = 0

    async def complete(request: web.Request) -> web.StreamResponse:
        nonlocal seen
        seen += 1
        sent = request.headers["Authorization"]
        if seen % 4 == 1:
            response = web.StreamResponse(headers={"Content-Length": "5000", "X-Key": sent})
            await response.prepare(request)
            await response.write(f'{{"echo": "{sent}", "choices": ['.encode())
            assert request.transport is not None
            request.transport.abort()
            return response
        if seen % 4 == 2:
            return web.Response(text=f"<html>{sent} {base64.b64encode(KEY.encode()).decode()}</html>", status=200)
        if seen % 4 == 3:
            message = {"role": "assistant", "content": f"Your key is {KEY}; the first is better."}
            usage = {"prompt_tokens": 5, "completion_tokens": 5}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return web.json_response({"choices": [choice], "usage": usage, "model": KEY, "system_fingerprint": sent})
        error = {"message": f"Incorrect API key provided: {sent}", "code": "invalid_api_key", "type": KEY}
        return web.json_response({"error": error}, status=500 if seen < 12 else 401)

    application = web.Application()
    application.router.add_post("/v1/chat/completions", complete)  # and no /models: a 404, which is only a warning
    started: Future[tuple[str, Callable[[], None]]] = Future()

    async def serve() -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        async with site(application, shutdown_timeout=0.1) as address:
            started.set_result((address, lambda: loop.call_soon_threadsafe(ended.set)))
            await ended.wait()

    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(asyncio.run, serve())
        address, end = started.result(timeout=30)
        yield f"{address}/v1"
        end()
        serving.result()


@pytest.mark.parametrize("provider", ["openai", pytest.param("litellm", marks=pytest.mark.slow)])
def test_no_byte_of_store_log_or_output_is_the_key(
    provider: str, careless: str, write_campaign: Callable[..., Path], start: Callable[..., Any], folder: Path
) -> None:
    judge = (
        f'[[judge]]\nname = "careless"\nmodel = "{"openai/" if provider == "litellm" else ""}some-model"\n'
        f'provider = "{provider}"\nbase_url = "{careless}"\nkey_variable = "PLANTED_KEY"\nfree = true\n'
        "concurrency = 1\nmax_attempts = 4\n"
    )
    path = write_campaign(judges=judge)
    process = start("-X", "dev", "-m", "venire", "run", path, "--yes", env=ENVIRONMENT)
    out, err = process.communicate(timeout=100)
    assert process.returncode in (1, 4), err
    assert "lane closed" in err, "the 401 was met during the run, with the key in it"
    assert "[redacted]" in err
    forms = [KEY.encode(), base64.b64encode(KEY.encode()).rstrip(b"="), KEY[8:].encode()]
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".duckdb" for file in files)
    for name, content in [(file.name, file.read_bytes()) for file in files] + [
        ("standard output", out.encode()),
        ("standard error", err.encode()),
    ]:
        for form in forms:
            assert form not in content, name


@pytest.mark.slow
def test_a_store_that_is_cut_short_keeps_no_key_in_its_log(
    careless: str, write_campaign: Callable[..., Path], start: Callable[..., Any], folder: Path
) -> None:
    judge = (
        f'[[judge]]\nname = "careless"\nmodel = "m"\nbase_url = "{careless}"\nkey_variable = "PLANTED_KEY"\n'
        "free = true\nconcurrency = 1\nmax_attempts = 3\n"
    )
    path = write_campaign(judges=judge)
    script = (
        "import os, signal, sys, pathlib, venire\n"
        "session = venire.Session(venire.load_campaign(pathlib.Path(sys.argv[1])))\n"
        "session.__enter__().run(group_rows=1)  # never left: it is killed\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = start("-c", script, path, env={**os.environ, "PLANTED_KEY": KEY})
    out, err = process.communicate(timeout=60)
    assert process.returncode == -9, err
    log = folder / "small.duckdb.wal"
    assert log.stat().st_size > 0, "the replies are in the log"
    assert KEY.encode() not in log.read_bytes() + (folder / "small.duckdb").read_bytes() + (out + err).encode()
