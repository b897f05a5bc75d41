"""Processes of the rig: forked from one that has everything imported, ended by their id, gone when their parent is."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tests.processes import restore_signals

T = TypeVar("T")
_DIES_WITH_ITS_PARENT = 1
"""PR_SET_PDEATHSIG of prctl."""


class Process:
    """A child of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self.descriptor = os.pidfd_open(pid)

    def send(self, number: int) -> None:
        """Signal it; it is not reaped before `wait`, so its id is its own."""
        if self.code is None:
            os.kill(self.pid, number)

    def wait(self, seconds: float, *others: int) -> int | None:
        """Its exit code (negative: the signal) once it has ended; None: time is up or one of `others` is readable."""
        if self.code is None:
            ready, _, _ = select.select([self.descriptor, *others], [], [], max(0.0, seconds))
            if self.descriptor in ready:
                _, status = os.waitpid(self.pid, 0)
                self.code = os.waitstatus_to_exitcode(status)
                os.close(self.descriptor)
        return self.code

    def end(self) -> int:
        """Kill it if it is still there; returns its exit code."""
        if self.code is None:
            self.send(signal.SIGKILL)
            while self.wait(10.0) is None:
                pass
        assert self.code is not None
        return self.code


def fork(body: Callable[[], object], out: Path | None = None, err: Path | None = None) -> Process:
    """Run a function in a process of its own; its exit code is what SystemExit says, 70 after an exception."""
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _in_child(body, parent, out, err)
    return Process(pid)


def _in_child(body: Callable[[], object], parent: int, out: Path | None, err: Path | None) -> NoReturn:
    code = 70
    try:
        os.setsid()  # Ctrl-C at the rig's terminal is for the rig
        restore_signals()
        ctypes.CDLL(None).prctl(_DIES_WITH_ITS_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(70)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        for path, descriptor in ((out, 1), (err, 2)):
            if path is not None:
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), descriptor)
        body()
        code = 0
    except SystemExit as end:
        with contextlib.suppress(KeyboardInterrupt):  # a signal that comes now comes after the product has ended
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def answer_of(body: Callable[[], T], seconds: float = 30.0) -> T:
    """What a function returns that runs in a process of its own. Raises RuntimeError when it does not return."""
    reading, writing = os.pipe()

    def tell() -> None:
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(body(), stream)

    process = fork(tell)
    os.close(writing)
    deadline, said = time.monotonic() + seconds, b""
    with os.fdopen(reading, "rb", buffering=0) as stream:
        while (left := deadline - time.monotonic()) > 0 and select.select([stream], [], [], left)[0]:
            if not (piece := stream.read(1 << 20)):
                break
            said += piece
    process.wait(max(1.0, deadline - time.monotonic()))
    if process.end() != 0:
        raise RuntimeError(f"a process of the rig ended with {process.code}")
    value: Any = pickle.loads(said)
    return value
