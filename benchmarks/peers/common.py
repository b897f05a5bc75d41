"""Shared parts of the peers' drivers: arguments, a guard that allows loopback only, and one JSON line of results.

It runs in a peer's own environment, so it uses only the standard library.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Messages = list[dict[str, str]]
_WARM_UP = 16
_LOOPBACK = ("127.0.0.1", "::1", "localhost", "0.0.0.0", None, "")


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that blocks telemetry and update checks of peers during a benchmark."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if (host.decode() if isinstance(host, bytes) else host) not in _LOOPBACK:
        raise ConnectionRefusedError(f"a benchmark goes to loopback only, not to {host}")


def drive(package: str, ask: Callable[[str, list[Messages], int], int]) -> None:
    """Run `ask` once; it maps base URL, the messages of each call and the number in flight to the number of answers."""
    sys.addaudithook(_loopback_only)
    url, file, calls, in_flight = sys.argv[1:]
    known = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    messages = [known[n % len(known)] for n in range(int(calls))]
    ask(url, known[:_WARM_UP], _WARM_UP)  # imports and preparation at the first call are not counted
    started, cpu = time.time(), time.process_time()
    answered = ask(url, messages, int(in_flight))
    found = {"started": started, "ended": time.time(), "cpu": time.process_time() - cpu}
    found |= {"calls": answered, "version": version(package)}
    sys.stdout.write(f"\n{json.dumps(found)}\n")
