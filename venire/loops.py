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
    with _on_signals(lambda: loop.call_soon_threadsafe(request)):
        yield


@contextlib.contextmanager
def _on_signals(request: Callable[[], object]) -> Iterator[None]:
    """Call `request` at each SIGINT and SIGTERM in the main thread, in place of the handlers that are there."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: request()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_to_completion(
    go: Callable[[], Coroutine[Any, Any, CampaignSummary]],
    loop_factory: LoopFactory | None,
    stop: Callable[[], None],
) -> CampaignSummary:
    """Run a coroutine to its end, in a separate thread if this one already has a running loop, as in a notebook.

    Python lets the main thread alone react to signals: where that is this one, each Ctrl-C and SIGTERM calls `stop`
    until the end. The handlers are set here as well, since `asyncio.run` has one of its own, which would cancel its
    task, and that waits for this function.
    """

    def whole() -> CampaignSummary:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(go())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return whole()
    main = threading.current_thread() is threading.main_thread()
    listening = _on_signals(stop) if main else contextlib.nullcontext()
    with listening, ThreadPoolExecutor(1, thread_name_prefix="venire-run") as pool:
        return pool.submit(whole).result()
