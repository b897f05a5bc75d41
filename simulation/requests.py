"""Requests that are broken, or never come to their end, at every server of this product.

Nobody waits for a request for ever: a head that is not there `IDLE_SECONDS` after the connection, or after the request
before, closes the connection, as does a body that takes longer than `BODY_SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from logging import Logger, LogRecord, getLogger
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_Read = TypeVar("_Read")

BODY_SECONDS = 60.0
IDLE_SECONDS = 120.0
"""Longer than clients keep an unused connection (90 s by default in ry), so that none is closed under a call."""

_MALFORMED = (HttpProcessingError, web.RequestPayloadError)
_BROKEN = (*_MALFORMED, ValueError, LookupError, RuntimeError, AssertionError)
"""What aiohttp raises of a body that is not what its head says: parts, encodings, compression, chunks."""


async def whole(reading: Awaitable[_Read]) -> _Read:
    """What is read of a request's body. Raises HTTPBadRequest for a broken one, HTTPRequestTimeout for a slow one."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await reading
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="The body did not come to its end") from None
    except _BROKEN:
        raise web.HTTPBadRequest(reason="The body is not what the head of the request says") from None


async def small_body(request: web.Request, most: int) -> bytes | None:
    """The body of a request; None of one that is longer, which is read no further than that."""
    body = bytearray()
    async for part in request.content.iter_chunked(most):
        body += part
        if len(body) > most:
            return None
    return bytes(body)


def app_runner(
    app: web.Application, shutdown_seconds: float, logger: Logger | None = None, **how: Any
) -> web.AppRunner:
    """A runner of an application whose connections end where no request comes; broken heads are not logged."""
    return web.AppRunner(
        app,
        access_log=None,
        logger=_DEFECTS if logger is None else logger,
        keepalive_timeout=IDLE_SECONDS,
        shutdown_timeout=shutdown_seconds,
        **how,
    )


def _is_a_defect(record: LogRecord) -> bool:
    """Not of a malformed request, of which anybody who reaches the port could fill the terminal."""
    return record.exc_info is None or not isinstance(record.exc_info[1], _MALFORMED)


_DEFECTS = getLogger("venire.requests")
_DEFECTS.addFilter(_is_a_defect)
