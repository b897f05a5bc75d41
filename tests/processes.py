"""Processes that a test started, children of children too, found by their environment (on Linux)."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path


def restore_signals() -> None:
    """Ctrl-C and SIGTERM as a terminal gives them, for this process and those that it starts.

    A shell ignores Ctrl-C for what it starts with `&`, and what is ignored is inherited.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Number and command of each process, this one apart, whose environment has the line NAME=VALUE `mark`."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found = mark.encode() in (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it has ended, or is another user's
            continue
        if found and int(folder.name) != os.getpid():
            yield int(folder.name), command


def listening(numbers: Collection[int]) -> list[str]:
    """The address of each TCP socket on which these processes listen, in the kernel's hexadecimal form."""
    found = []
    handles = {handle for number in numbers for handle in handles_of(number)}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in handles:
                found.append(local.partition(":")[0])
    return found


def handles_of(number: int) -> Iterator[str]:
    """What the open files of a process are."""
    with suppress(OSError):  # it has ended
        for file in Path(f"/proc/{number}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                yield os.readlink(file)


def still_running(mark: str, seconds: float) -> list[str]:
    """Commands of marked processes that have not ended `seconds` after each was found."""
    return [command for number, command in marked(mark) if not ends(number, seconds)]


def ends(number: int, seconds: float) -> bool:
    """Whether a process ends within `seconds`."""
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
