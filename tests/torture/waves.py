"""Waves under torture: `python -m tests.torture.waves` kills campaigns at each step of a batch, and checks the books.

The provider is the embedded server in the rig's own process: it goes on while the campaign's process is killed, and its
ledger says what was asked. Five lines of a hundred fail, some expire, some are in no file, one answer of each batch
comes twice and one was asked by nobody; answers come in any order.

Two more troubles are played without these: each download of answers is damaged at first (a web page, cut at a line's
end, a line cut within), and somebody else makes batches of as many requests on the same account, while calls that make
ours fail or lose their reply; `venire batch cancel` is then asked for before the campaign goes on. Nothing is asked
twice then, and nobody else's batch is cancelled.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import duckdb

from tests.demo import DATA, demo_key
from venire.arena.campaigns import BATCH_PART, TokenPrice
from venire.simulation.answer_key import AnswerKey
from venire.simulation.batches import BatchFaults, BatchForm
from venire.simulation.server import JudgeServer, serve_in_thread

ROOT = Path(__file__).resolve().parent.parent.parent
FORMS: tuple[BatchForm, ...] = get_args(BatchForm)
_TRIALS_A_REPEAT = 480
_INSTRUCTIONS = 16
_PRICE = TokenPrice(1_000_000_000, 4_000_000_000)
_MOST_STARTS = 10

FAULTS = BatchFaults(polls=1, failed=0.05, expired=0.02, lost=0.01, duplicated=1, unasked=1, shuffled=True)


@dataclass(frozen=True, slots=True)
class Trouble:
    """How batches go at a provider, and the step of the second batch at which the campaign is killed meanwhile."""

    step: str
    faults: BatchFaults
    once: bool = True
    """Whether no line is lost or fails, so that nothing may be asked twice."""
    cancels: bool = False
    """Whether `venire batch cancel` is asked for after the kill."""


TROUBLES = {
    "bad downloads": Trouble("in collecting", BatchFaults(polls=1, damaged=1.0, shuffled=True)),
    "strangers": Trouble(
        "after it was found",
        BatchFaults(polls=1, strangers=2, failed_creates=1, lost_replies=2),
        cancels=True,
    ),
}


@dataclass(slots=True)
class WaveRound:
    """One campaign that was killed at a step and went on: what was seen, and the promises that were not kept."""

    form: str
    step: str
    trials: int
    killed: bool = False
    starts: int = 0
    batches: int = 0
    requests: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)


def campaign_file(folder: Path, form: str, address: str, *, trials: int, batched: bool, wave_size: int) -> Path:
    """A campaign of one judge and so many trials (or a few more), in a folder of its own."""
    folder.mkdir(parents=True)
    provider = "" if form == "openai" else 'provider = "anthropic"\n'
    transport = f'transport = "batch"\nwave_size = {wave_size}\n' if batched else ""
    path = folder / "campaign.toml"
    path.write_text(
        f"""
seed = 7
{DATA}
[plan]
policy = "all-pairs"
repeats = {-(-trials // _TRIALS_A_REPEAT)}
instructions = {min(_INSTRUCTIONS, -(-trials // (_TRIALS_A_REPEAT // _INSTRUCTIONS)))}
[[judge]]
name = "judge"
model = "simulated/gpt-4-0613@1"
base_url = "{address}"
max_attempts = 20
price = {{ input = 1.0, output = 4.0 }}
{provider}{transport}"""
    )
    return path


def play(
    key: AnswerKey, folder: Path, form: str, name: str, *, trials: int, wave_size: int, broken: str | None = None
) -> WaveRound:
    """Kill a campaign at a step of its second batch, or in a trouble, go on to its end, and compare its books."""
    trouble = TROUBLES.get(name) or Trouble(name, FAULTS, once=False)
    found = WaveRound(form, name, trials)
    begun = time.monotonic()
    with serve_in_thread(JudgeServer(key, speed=0.0, seed=3, batch_faults=trouble.faults)) as server:
        path = campaign_file(
            folder / "batched", form, server.base_url, trials=trials, batched=True, wave_size=wave_size
        )
        found.killed = _start(path, trouble.step, broken) == -signal.SIGKILL
        if trouble.cancels:
            _venire("batch", "cancel", str(path.with_suffix(".duckdb")))
        code = None
        while code != 0 and found.starts < _MOST_STARTS:
            code = _start(path, None, broken)
            found.starts += 1
        if code != 0:
            found.broken.append(f"a campaign that ends: exit {code} after {found.starts} starts")
        found.broken += _at_provider(server, trouble)
        entries = list(server.ledger.entries)
        made = sum(server.batches.created.values())
    found.batches, found.requests = made, len(entries)
    with serve_in_thread(JudgeServer(key, speed=0.0)) as server:
        live = campaign_file(folder / "live", form, server.base_url, trials=trials, batched=False, wave_size=1)
        if (code := _start(live, None, None)) != 0:
            found.broken.append(f"the same campaign asked live: exit {code}")
    with duckdb.connect(str(path.with_suffix(".duckdb")), read_only=True) as store:
        found.broken += _books(store, entries, made)
        mine = store.execute(_VERDICTS).fetchall()
    with duckdb.connect(str(live.with_suffix(".duckdb")), read_only=True) as store:
        other = store.execute(_VERDICTS).fetchall()
    if mine != other:
        unlike = len({*mine} ^ {*other})
        found.broken.append(f"the verdicts of the same campaign asked live: {unlike} rows differ of {len(other)}")
    found.seconds = time.monotonic() - begun
    return found


def _at_provider(server: JudgeServer, trouble: Trouble) -> Iterator[str]:
    """What was done at the provider that should not have been."""
    # Without a name a batch is known by its lines, and lines that failed may be sent again with just the same
    # others: there the ledger alone says whether one was sent twice.
    named = {one.name for one in server.batches.batches}
    twice = {name: times for name, times in server.batches.created.items() if name in named and times > 1}
    if twice:
        yield f"a submission is sent once: {twice}"
    asked = Counter(entry.key for entry in server.ledger.entries)
    again = sum(times > 1 for times in asked.values())
    if trouble.once and again:
        yield f"no answer that was paid is asked again: {again} of {len(asked)} were"
    strangers = [one for one in server.batches.batches if one.is_strange]
    cancelled = sum(one.cancelled for one in strangers)
    if cancelled:
        yield f"nobody else's batch is cancelled: {cancelled} of {len(strangers)} were"


_VERDICTS = (
    "select instruction_id, model_a, model_b, swapped, repeat, status, winner, score_difference from battle "
    "order by all"
)
_ASKED = (
    "select lower(hex(t.trial_key)) || '-' || a.step, count(*) from attempt a join trial t on t.id = a.trial "
    "where a.http_status is not null or a.fault = 0 group by all"
)


def _books(store: duckdb.DuckDBPyConnection, entries: list[Any], made: int) -> Iterator[str]:
    """What of the store's account is not what the provider's ledger says."""
    ((planned,),) = store.execute("select count(*) from plan").fetchall()
    verdicts = store.execute("select count(*), count(distinct trial) from verdict").fetchall()
    if verdicts != [(planned, planned)]:
        yield f"one verdict for each of {planned} trials: {verdicts}"
    ledger = Counter(entry.key for entry in entries)
    asked = dict(store.execute(_ASKED).fetchall())
    if asked != ledger:
        unlike = {
            key: (asked.get(key, 0), ledger[key]) for key in {*asked, *ledger} if asked.get(key, 0) != ledger[key]
        }
        yield f"calls on record are those of the ledger: {len(unlike)} differ, such as {list(unlike.items())[:2]}"
    price = _PRICE.times(BATCH_PART)
    owed = sum(price.cost(*entry.billed) for entry in entries if entry.billed is not None)
    ((paid, unknown),) = store.execute("select sum(cost), count(*) filter (where cost is null) from attempt").fetchall()
    if (paid, unknown) != (owed, 0):
        yield f"money is exact: {paid} nano-dollars and {unknown} unknown costs on record, {owed} owed"
    ((collected, still_out),) = store.execute(
        "select count(*) filter (where kind = 'collected'), (select count(*) from open_submission) "
        "from submission_event"
    ).fetchall()
    if (collected, still_out) != (made, 0):
        yield f"{made} batches are each collected once: {collected} were, {still_out} are out"


def _start(path: Path, step: str | None, broken: str | None) -> int:
    """Run the campaign in a process of its own; returns its exit code."""
    words = ["--child", str(path)]
    words += ["--step", step] if step else []
    words += ["--broken", broken] if broken else []
    return _python("-m", "tests.torture.waves", *words)


def _venire(*words: str) -> int:
    return _python("-m", "venire", *words)


def _python(*words: str) -> int:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANTHROPIC_API_KEY": "none", "ANTHROPIC_KEY": "none"},
    )
    if done.returncode not in (0, -signal.SIGKILL):
        sys.stderr.write(done.stdout + done.stderr)
    return done.returncode


# In the campaign's process. The product has no hooks for this: functions are wrapped where they are looked up.


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(function: Callable[..., Any], number: int, *, after: bool = False) -> Callable[..., Any]:
    """The function, but that its call of that number ends the process: before it does anything, or when it returns."""
    calls = [0]

    def wrapped(*words: Any, **named: Any) -> Any:
        calls[0] += 1
        mine = calls[0] == number
        if mine and not after:
            _die()
        value = function(*words, **named)
        if not mine:
            return value

        async def ended() -> Any:
            await value
            _die()

        return ended() if hasattr(value, "__await__") else _die()

    return wrapped


def _before_the_row() -> None:
    from venire.orchestrator.recording.recorder import Recorder

    Recorder.submission = _dying(Recorder.submission, 2)  # type: ignore[method-assign]


def _after_the_row() -> None:
    from venire.orchestrator.run.wave_lane import WaveLane

    WaveLane._send_file = _dying(WaveLane._send_file, 2)  # type: ignore[method-assign]


def _after_the_upload() -> None:
    from venire.judges.providers.batches.http_batches import HttpBatches

    HttpBatches.upload_form = _dying(HttpBatches.upload_form, 2, after=True)  # type: ignore[method-assign]


def _after_the_create_call() -> None:
    from venire.orchestrator.run.batch_search import BatchSearch

    BatchSearch.sent = _dying(BatchSearch.sent, 2)  # type: ignore[method-assign]


def _in_collecting() -> None:
    from venire.orchestrator.run.collector import Collector

    Collector._take_line = _dying(Collector._take_line, 30, after=True)  # type: ignore[method-assign]


def _in_the_commit() -> None:
    """Between the rows of a group that has attempts and its commit."""
    from venire.storage.store.store import Commit

    append, calls = Commit.append, [0]

    def wrapped(self: Commit, appender: Any, rows: list[Any]) -> None:
        append(self, appender, rows)
        if rows and len(rows[0]) > 20:  # attempts
            calls[0] += 1
            if calls[0] == 2:
                _die()

    Commit.append = wrapped  # type: ignore[method-assign]


def _before_the_end_is_noted() -> None:
    """All lines are on record, and that the batch was collected is not."""
    from venire.orchestrator.run.waves_out import WavesOut

    note = WavesOut.note

    async def wrapped(self: WavesOut, wave: Any, kind: str, *words: Any, **named: Any) -> None:
        if kind == "collected":
            assert self.recorder is not None
            await self.recorder.safe()
            _die()
        await note(self, wave, kind, *words, **named)

    WavesOut.note = wrapped  # type: ignore[method-assign]


def _after_it_was_found() -> None:
    """It is on record that a batch was found in the list, and not yet whose it is."""
    from venire.orchestrator.run.waves_out import WavesOut

    note = WavesOut.note

    async def wrapped(self: WavesOut, wave: Any, kind: str, id: str | None = None, detail: str = "") -> None:
        await note(self, wave, kind, id, detail)
        if kind == "adopted" or (kind == "sent" and detail):
            _die()

    WavesOut.note = wrapped  # type: ignore[method-assign]


STEPS: dict[str, Callable[[], None]] = {
    "before the row": _before_the_row,
    "after the row": _after_the_row,
    "after the upload": _after_the_upload,
    "after the create call": _after_the_create_call,
    "in collecting": _in_collecting,
    "in the commit": _in_the_commit,
    "before its end is noted": _before_the_end_is_noted,
}


IN_TROUBLE = {"after it was found": _after_it_was_found}
"""Steps that come only in a trouble."""


def _unwritten() -> None:
    """Submissions are put on record when they were sent, not before."""
    from venire.orchestrator.recording.recorder import Recorder
    from venire.orchestrator.run.wave_lane import WaveLane

    put, send_file, late = Recorder.submission, WaveLane._send_file, []

    def submission(self: Recorder, *words: Any) -> None:
        late.append((self, words))

    async def wrapped(self: WaveLane, wave: Any) -> list[int]:
        status = await self.out.batches.submit(wave.submission.name, self._route.settings.model, wave.path)
        for recorder, words in late:
            put(recorder, *words)
        late.clear()
        await self._search.sent(wave, status)
        return []

    del send_file
    Recorder.submission = submission  # type: ignore[method-assign]
    WaveLane._send_file = wrapped  # type: ignore[method-assign]


def _impatient() -> None:
    """What a download of answers lacks is taken for lost at once."""
    from venire.orchestrator.run.batch_download import BatchDownload

    BatchDownload._is_patient = lambda *_: False  # type: ignore[method-assign]


BROKEN: dict[str, Callable[[], None]] = {"submission-unwritten": _unwritten, "download-trusted": _impatient}


def _child(path: Path, step: str | None, broken: str | None) -> None:
    from venire.cli import app

    if broken:
        BROKEN[broken]()
    if step:
        (STEPS | IN_TROUBLE)[step]()
    app(["run", str(path), "--yes", "--poll", "0.05s"])


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="venire-waves-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Play a round for each form and step; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.waves", description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--wave-size", type=int, default=700)
    parser.add_argument("--form", choices=FORMS)
    parser.add_argument(
        "--step", choices=(*STEPS, *IN_TROUBLE, *TROUBLES), help="a step at which to kill, or a trouble"
    )
    parser.add_argument("--broken", choices=BROKEN, help="a build with a promise broken on purpose")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _child(asked.child, asked.step, asked.broken)
        return 0
    key, bad = demo_key(), 0
    for form in FORMS if asked.form is None else (asked.form,):
        for step in (*STEPS, *TROUBLES) if asked.step is None else (asked.step,):
            if form == "anthropic" and step == "after the upload":  # requests are sent with the batch
                continue
            with _folder() as folder:
                one = play(key, folder, form, step, trials=asked.trials, wave_size=asked.wave_size, broken=asked.broken)
            outcome = "kept" if not one.broken else "BROKEN"
            sys.stdout.write(
                f"{form:10} {step:24} {'killed' if one.killed else 'NOT KILLED':10} {one.starts} starts, "
                f"{one.batches:3} batches, {one.requests:6,} requests, {one.seconds:5.1f} s  {outcome}\n"
            )
            for problem in one.broken:
                sys.stdout.write(f"     expected {problem}\n")
            sys.stdout.flush()
            bad += bool(one.broken) or not one.killed
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
