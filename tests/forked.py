"""Commands as processes of their own, forked from one that has imported Venire: to import it takes more than a second.

A worker of the tests starts one such process when it first needs it. What that forks becomes the worker's own child, to
be signalled and waited for like any other. A test of the interpreter's own start (its encodings, what is imported)
starts Python itself.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import os
import pickle
import runpy
import signal
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.processes import restore_signals

ROOT = Path(__file__).resolve().parents[1]
_ADOPTS_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl."""
_MOST_BYTES = 1 << 17
_ENVIRON = os.environ.copy()
"""As it was before any test: what is forked later has the environment of its own request."""


def import_everything() -> None:
    """Import what commands would import when they come to need it; raises RuntimeError where that begins a thread."""
    for name in (
        "duckdb",
        "scipy.optimize",
        "uvloop",
        "venire.cli",
        "venire.reports.board.build",
        "venire.render.outcome",
        "venire.session",
    ):
        import_module(name)
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    if threads > 1:  # a forked process could then wait for a lock for ever
        raise RuntimeError(f"{threads} threads have begun before anything is forked")


class Forked(subprocess.Popen[Any]):
    """`[sys.executable, "-m", module, ...]` or `[sys.executable, "-c", code, ...]`, in a process that is forked."""

    def _execute_child(self, *words: Any, **named: Any) -> None:
        asked = inspect.signature(subprocess.Popen._execute_child).bind(self, *words, **named).arguments
        pipes = [asked[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        handles = [standard if handle == -1 else handle for standard, handle in enumerate(pipes)]
        command = [os.fspath(word) for word in asked["args"]]
        assert command[0] == sys.executable, "a Python as this one"
        assert asked["preexec_fn"] is None, "which nothing is done to before it starts"
        environ = os.environ.copy() if asked["env"] is None else dict(asked["env"])
        request = pickle.dumps(
            (command[1:], os.fspath(asked["cwd"] or os.getcwd()), environ, asked["start_new_session"])
        )
        parent = _parent()
        libc = ctypes.CDLL(None)
        libc.prctl(_ADOPTS_ORPHANS, 1)
        try:
            socket.send_fds(parent, [request], handles)
            self.pid = int(parent.recv(100))
        finally:
            libc.prctl(_ADOPTS_ORPHANS, 0)
            self._close_pipe_fds(*(asked[name] for name in _PIPES))
        self._child_created = True


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def run_forked(command: list[Any], *, timeout: float = 100.0, check: bool = False, **options: Any) -> Any:
    """As `subprocess.run` with what it prints caught as text: the exit code, what it printed, and its errors."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with Forked([str(word) for word in command], **{**streams, **options}) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()  # where it did not end: one that ended is not signalled
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


@cache
def _parent() -> socket.socket:
    """The way to the process that forks."""
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    code = f"from tests.forked import _serve; _serve({other.fileno()})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=_ENVIRON | single,
        pass_fds=[other.fileno()],
        stdin=subprocess.DEVNULL,
    )
    other.close()

    def end() -> None:
        mine.close()
        process.wait()

    atexit.register(end)
    return mine


def _serve(handle: int) -> None:
    """Fork what is asked for, until nobody is left who could ask; in a forked process this returns at its end."""
    asked = socket.socket(fileno=handle)
    import_everything()
    while True:
        request, handles, _, _ = socket.recv_fds(asked, _MOST_BYTES, 3)
        if not request:
            return
        reading, writing = os.pipe()
        gate, opens = os.pipe()
        between = os.fork()
        if between == 0:
            # When its parent has ended, it is a child of the process that asked.
            if pid := os.fork():
                os.write(writing, str(pid).encode())
                os._exit(0)
            for one in (asked.detach(), reading, writing, opens):
                os.close(one)
            os.read(gate, 1)
            os.close(gate)
            _become(*pickle.loads(request), handles)
            return
        os.waitpid(between, 0)
        asked.send(os.read(reading, 100))
        for one in (reading, writing, gate, opens, *handles):
            os.close(one)


def _become(words: list[str], folder: str, environ: dict[str, str], alone: bool, handles: list[int]) -> None:
    """Be the Python that was started with these words."""
    restore_signals()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if alone:
        os.setsid()
    for standard, handle in enumerate(handles):
        os.dup2(handle, standard)
    for handle in handles:
        os.close(handle)
    for standard, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        lines = 1 if name == "stderr" or os.isatty(standard) else -1
        errors = "backslashreplace" if name == "stderr" else "strict"
        stream = open(standard, mode, lines, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115 - kept
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    how, what, *arguments = words
    if how == "-m":
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert how == "-c"
        sys.argv = ["-c", *arguments]
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)
