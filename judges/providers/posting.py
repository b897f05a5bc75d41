"""One POST of a call, and the error for whatever comes back that is no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import aiohttp

from venire.arena.errors import CallError, Fault
from venire.judges.providers.base import Endpoint, redact
from venire.judges.providers.faults import failure, refusal
from venire.judges.providers.sessions import connection_failure

__all__ = ["post"]

_LONGEST_ANSWER = 32 * 2**20


async def post(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    wall: Callable[[], datetime],
    refuse: Callable[[int, Mapping[str, str], str, datetime], CallError] = refusal,
) -> str:
    """The text of a 2xx answer, without the key; no redirect is followed.

    Raises the `CallError` that `refuse` makes of any other answer, and one for a connection that brought no answer.
    """
    failed: CallError | None = None
    data = bytearray()
    try:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            async for chunk in response.content.iter_any():
                data += chunk
                if len(data) > _LONGEST_ANSWER:
                    break
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        failed = connection_failure(error, endpoint)
    if failed is not None:
        raise failed
    if len(data) > _LONGEST_ANSWER:
        raise failure("the answer is larger than 32 MiB", Fault.BAD_REQUEST, status=response.status, may_be_billed=True)
    raw = redact(data.decode(errors="replace"), endpoint.key)
    if not 200 <= response.status < 300:
        raise refuse(response.status, response.headers, raw, wall())
    return raw
