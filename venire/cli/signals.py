"""Ctrl-C and SIGTERM of a command: an end while it starts, KeyboardInterrupt once its verb has begun.

This module imports nothing that takes time: a signal while the others are imported has to be no traceback either.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
_AFTER_CALLBACK_SECONDS = 0.02
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the process at once, until `interruptible`: there is nothing yet to be put right."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    for number in _SIGNALS:
        if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:  # a shell ignores it with `&`
            signal.signal(number, _end)
    hook, sys.unraisablehook = sys.unraisablehook, _raise_again
    try:
        yield
    finally:
        interruptible()
        sys.unraisablehook = hook


def interruptible() -> None:
    """From now on Ctrl-C and SIGTERM are a KeyboardInterrupt, where they were made an end."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"venire: interrupted\n")
    os._exit(INTERRUPTED)


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """A Ctrl-C in a callback, of which imports have some, would be printed and forgotten: it comes again after it."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        threading.Timer(_AFTER_CALLBACK_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)
