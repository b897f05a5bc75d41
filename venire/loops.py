"""The event loop of a run, and the signals that request its stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from venire.orchestrator.recording.ending import GRACE_SECONDS, CampaignSummary, StopRequest

__all__ = ["LoopFactory", "run_to_completion", "stop_on_signals"]

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@contextlib.contextmanager
def stop_on_signals(stop: StopRequest, warn: Callable[[str], None] | None) -> Iterator[None]:
    """Ctrl-C and SIGTERM request a stop while a campaign runs; only the main thread can listen for them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def request() -> None:
        if warn is not None and not stop.gently.is_set():
            warn(f"stopping: calls in flight have {GRACE_SECONDS:.0f} s to finish; Ctrl-C again gives them up")
        stop.request()

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, request)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)  # this leaves the system default in place
            signal.signal(number, handler)


def run_to_completion(
    go: Callable[[], Coroutine[Any, Any, CampaignSummary]],
    loop_factory: LoopFactory | None,
    stop: Callable[[], None],
) -> CampaignSummary:
    """Run a coroutine to its end, in a separate thread if this one already has a running loop, as in a notebook.

    That thread hears no signal: each Ctrl-C here calls `stop`, and the end is waited for all the same.
    """

    def whole() -> CampaignSummary:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(go())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return whole()
    with ThreadPoolExecutor(1, thread_name_prefix="venire-run") as pool:
        running = pool.submit(whole)
        while True:
            try:
                return running.result()
            except KeyboardInterrupt:
                stop()
