"""The engine's own cost per call, without HTTP; `make test` enforces a limit on both figures.

`python benchmarks/cost.py [--protocol binary] [--dearer TURNS]` prints as JSON:

- `counted`: the number of Python and C functions called per call, in the thread of the event loop. The interpreter's
  profile hook counts them: the count does not depend on load and hardly on the version of Python, and it shows each
  additional function call. Loops within a function are not counted.
- `ratio`: CPU time of a call, all threads, over that of a turn of a yardstick which does the same kinds of work. Both
  are measured in short alternating slices, so that disturbances affect both. It includes loops and the cost of C code.

`--dearer` adds this many turns of the yardstick to each call, to test whether a limit detects it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
from material import CAMPAIGN, REASONS, Judge, write_campaign

from venire.arena.records import Reply
from venire.configs.loading import load_campaign
from venire.judges.providers.openai import OpenAIProvider
from venire.judges.providers.replies import read_reply
from venire.session import Session

_IN_FLIGHT = 64
_WARM_UP = 500
"""Warm-up calls before the first measured call."""
_COUNTED = 500
_SLICE, _TURNS, _SLICES = 125, 1_250, 10
"""Calls per slice, turns of the yardstick after it, and the number of repetitions."""
_GROUP = 10_000
"""Rows that may wait for the disk: a random number of workers would wait for it, and their calls count too."""


def _answer(text: str) -> str:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, "refusal": None}, "finish_reason": "stop"}
    details = {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    usage = {"prompt_tokens": 1500, "completion_tokens": 400, "total_tokens": 1900, **details}
    whole = {"id": "chatcmpl-0", "model": "judge-1", "choices": [choice], "usage": usage, "system_fingerprint": "fp_0"}
    return orjson.dumps(whole).decode()


_LONG, _SHORT = _answer(REASONS), _answer("1")


class Yardstick:
    """Bare work like that of a call: encode and digest a body, parse an answer, build a row, some small calls."""

    def __init__(self) -> None:
        self._body = {"model": "judge", "messages": [{"role": "user", "content": REASONS * 4}], "max_tokens": 800}
        self._rows: list[tuple[Any, ...]] = []

    def turn(self, times: int) -> None:
        """Do the work `times` times."""
        for _ in range(times):
            body = orjson.dumps(self._body, option=orjson.OPT_SORT_KEYS)
            answer = orjson.loads(_LONG)
            fields = [self._field(answer["usage"], name) for name in ("prompt_tokens", "total_tokens", "none") * 10]
            self._rows.append((sha256(body).digest(), *fields, answer["choices"][0]["message"]["content"]))
            if len(self._rows) >= 500:
                self._rows.clear()

    def _field(self, fields: dict[str, Any], name: str) -> int:
        value = fields.get(name)
        return value if isinstance(value, int) else 0


def run(protocol: str, calls: int, sent: Callable[[int], None], dearer: int) -> None:
    """Run a campaign whose calls are answered at once; `sent` receives the number of each call."""
    number = 0
    yardstick = Yardstick()

    async def send(self: OpenAIProvider, body: bytes, idempotency_key: str) -> Reply:
        nonlocal number
        number += 1
        sent(number)
        yardstick.turn(dearer)
        await asyncio.sleep(0)
        brief = protocol != "two-stage" or b'"assistant"' in body
        return read_reply(_SHORT if brief else _LONG, body)

    async def check(self: OpenAIProvider) -> None:
        return None

    OpenAIProvider.send = send  # type: ignore[method-assign]
    OpenAIProvider.check = check  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "campaign"
        judge = Judge("judge", "http://127.0.0.1:9/v1", _IN_FLIGHT)
        write_campaign(folder, [judge], calls // 2 if protocol == "two-stage" else calls, protocol=protocol)
        with Session(load_campaign(folder / CAMPAIGN)) as session:
            session.run(group_rows=_GROUP)


def count(protocol: str, dearer: int) -> float:
    """Number of functions called for one call of the engine."""
    found = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    def sent(number: int) -> None:
        if number == _WARM_UP:
            sys.setprofile(note)
        elif number == _WARM_UP + _COUNTED:
            sys.setprofile(None)

    run(protocol, _WARM_UP + _COUNTED + 2 * _IN_FLIGHT, sent, dearer)
    return found / _COUNTED


def compare(protocol: str, dearer: int) -> float:
    """CPU time of a call over that of a turn of the yardstick."""
    yardstick = Yardstick()
    calls = turns = since = 0.0

    def sent(number: int) -> None:
        nonlocal calls, turns, since
        if number < _WARM_UP or (number - _WARM_UP) % _SLICE or number > _WARM_UP + _SLICES * _SLICE:
            return
        now = time.process_time()
        if since:
            calls += now - since
            yardstick.turn(_TURNS)
            turns += time.process_time() - now
        since = time.process_time()

    run(protocol, _WARM_UP + _SLICES * _SLICE + 2 * _IN_FLIGHT, sent, dearer)
    return (calls / _SLICE) / (turns / _TURNS)


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--protocol", default="two-stage", choices=("two-stage", "binary"))
    parser.add_argument("--dearer", type=int, default=0, metavar="TURNS")
    given = parser.parse_args()
    counted = count(given.protocol, given.dearer)
    ratio = compare(given.protocol, given.dearer)
    sys.stdout.write(json.dumps({"counted": counted, "ratio": ratio}) + "\n")


if __name__ == "__main__":
    main()
