"""A sampling CPU profiler: lighter than a tracing profiler, which makes small functions look expensive.

A timer on the process's CPU time interrupts the main thread and records its stack. C code is attributed to its Python
caller. The timer also counts other threads; `threads` reports them separately.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

_TICK = os.sysconf("SC_CLK_TCK")


class Sampler:
    """Samples from construction to `stop`, every millisecond of CPU; main thread only."""

    def __init__(self) -> None:
        self.lines: Counter[tuple[CodeType, int]] = Counter()
        self.within: Counter[CodeType] = Counter()
        self.samples = 0
        signal.signal(signal.SIGPROF, self._note)
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.samples += 1
        if frame is not None:
            self.lines[frame.f_code, frame.f_lineno] += 1
        seen = set()
        while frame is not None:
            seen.add(frame.f_code)
            frame = frame.f_back
        self.within.update(seen)

    def stop(self) -> str:
        """Stop, and report in percent of the samples: functions with callees, functions alone, and lines."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        alone: Counter[CodeType] = Counter()
        for (code, _), number in self.lines.items():
            alone[code] += number
        tables = (
            ("with what they call", [(_place(code), n) for code, n in self.within.most_common(60)]),
            ("alone", [(_place(code), n) for code, n in alone.most_common(40)]),
            ("lines", [(f"{_place(code)} line {line}", n) for (code, line), n in self.lines.most_common(40)]),
        )
        text = f"{self.samples} samples\n"
        for title, rows in tables:
            text += f"\n{title}\n" + "".join(f"{100 * n / self.samples:6.1f} %  {place}\n" for place, n in rows)
        return text


def _place(code: CodeType) -> str:
    return f"{'/'.join(Path(code.co_filename).parts[-2:])} {code.co_qualname}"


def threads() -> dict[str, float]:
    """CPU seconds of this process's live threads, by name; threads with equal or without names are summed."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    found: dict[str, float] = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        name = names.get(int(task.name), "others").rstrip("0123456789_-")
        found[name] = found.get(name, 0.0) + (int(fields[11]) + int(fields[12])) / _TICK
    return found
