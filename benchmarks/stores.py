"""Large stores created in seconds: planned by the product, then settled in bulk through the store's own commits."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from venire.arena.choices import TableKind
from venire.configs.loading import load_campaign
from venire.orchestrator.planning.plan import plan_campaign
from venire.storage.store.opening import open_store
from venire.storage.store.store import Store
from venire.storage.transfer import importing

CAMPAIGN = "campaign.toml"
_JUDGES, _MATCHUPS, _MODELS = 5, 100, 20
_AT_ONCE = 20_000
_CATEGORIES = ("code", "maths", "writing", "facts")
_KINDS: tuple[TableKind, ...] = ("instructions", "completions")

_ATTEMPT = {
    "campaign": "1",
    "trial": "trial",
    "step": "step",
    "number": "1",
    "lane": "1",
    "sent_at": "now()",
    "latency_ms": "900",
    "fault": "0",
    "http_status": "200",
    "wait_ms": "0",
    "finish": "'stop'",
    "input_tokens": "900",
    "cached_tokens": "0",
    "output_tokens": "80",
    "reasoning_tokens": "0",
    "reserved": "2000",
    "reserved_tokens": "1000",
    "cost": "1000",
    "served_model": "'judge'",
    "fingerprint": "''",
    "request_digest": "unhex(md5(trial::varchar))",
    "text": "case step when 2 then '1' else repeat(md5(trial::varchar) || ' tells these answers apart; ', 6) end",
    "reasoning": "''",
    "raw": "''",
    "batch": "$batch",
}
"""The columns of an attempt; columns of the store's format that are not named here stay empty."""

_VARIED = {
    "sent_at": "make_timestamptz(1760000000000000 + trial::bigint * 20000 + step * 1000000)",
    "latency_ms": "300 + hash(trial, step) % 4000",
    "cost": "800 + hash(trial, step, 'cost') % 900",
    "text": "case step when 2 then '1' else repeat(md5(trial::varchar) || ' tells these answers apart; ', 6) "
    "|| if(hash(trial, 'word') % 1000 = 0, 'heliotrope', '') end",
}
_VERDICT = "0 status, 1 label"
_VARIED_VERDICT = (
    "if(noise >= 980, 1, 0) status, case when noise >= 980 then null when noise >= 900 then 0 "
    "when noise < 450 + 12 * (model_b - model_a) then 1 else -1 end label"
)
_JOINED = "join (select id, model_a, model_b, hash(id) % 1000 noise from trial) t on t.id = trial"


def make(
    folder: Path,
    trials: int,
    base_url: str = "http://127.0.0.1:9/v1",
    concurrency: int = 16,
    *,
    models: int = _MODELS,
    matchups: int = _MATCHUPS,
    first: int = 0,
) -> Path:
    """A campaign file and its store with `trials` planned trials (a multiple of 10 times `matchups`), none settled.

    The campaign has five judges at one endpoint, `matchups` matchups of `models` models, two orders, and the required
    number of instructions in four categories, numbered from `first` on. Returns the campaign file.
    """
    instructions = instructions_of(trials, matchups)
    folder.mkdir(parents=True, exist_ok=True)
    questions = [f"q{n:04}" for n in range(first, first + instructions)]
    names = [f"model-{n:02}" for n in range(models)]
    _write(
        folder / "instructions.jsonl",
        [
            {"instruction_id": q, "instruction": f"What of {q}? " * 8, "category": _CATEGORIES[number % 4]}
            for number, q in enumerate(questions)
        ],
    )
    _write(
        folder / "completions.jsonl",
        [
            {"instruction_id": q, "model": m, "completion": f"{m} says this of {q}. " * 30}
            for m in names
            for q in questions
        ],
    )
    judges = "".join(
        f'[[judge]]\nname = "j{n}"\nmodel = "judge-{n}"\nbase_url = "{base_url}"\nfree = true\n'
        f"concurrency = {concurrency}\n\n"
        for n in range(_JUDGES)
    )
    (folder / CAMPAIGN).write_text(
        'name = "large"\nseed = 7\n\n[data]\ninstructions = "instructions.jsonl"\ncompletions = "completions.jsonl"\n\n'
        f'[plan]\npolicy = "random"\nmatchups = {matchups}\n\n{judges}',
        encoding="utf-8",
    )
    campaign = load_campaign(folder / CAMPAIGN)
    with open_store(campaign.store) as store:
        for kind in _KINDS:
            importing.add_file(store, folder / f"{kind}.jsonl", kind, {})
        assert plan_campaign(store, campaign).trials == trials
        with store.commit() as commit:
            commit.run("insert_reading", parser="bench", now=store.clock.wall())
            commit.run("insert_lane", name="bench", provider="openai", endpoint=base_url)
    return folder / CAMPAIGN


def instructions_of(trials: int, matchups: int = _MATCHUPS) -> int:
    """How many instructions a campaign of so many trials has."""
    return trials // (_JUDGES * matchups * 2)


def settled_first(trials: int, seed: int = 7) -> np.ndarray:
    """Numbers of trials in the order in which they are settled, so that any share of them is a seeded sample."""
    return np.random.default_rng(seed).permutation(trials) + 1


def settle(
    store: Store,
    trials: np.ndarray,
    until_log: int | None = None,
    *,
    varied: bool = False,
    steps: Sequence[int] = (1, 2),
) -> None:
    """Add an answered attempt for each of `steps` and a verdict for each trial, in plan order, 20,000 trials a commit.

    All verdicts are for A, unless `varied`: then they follow the numbers of the models with chance, a few trials are
    unreadable, calls differ in time and price, and one reply in a thousand has the word "heliotrope".

    With `until_log` commits have 200 trials, which go through the write-ahead log as in a run, until the log has that
    many bytes; large commits bypass the log.
    """
    at_once = _AT_ONCE if until_log is None else 200
    names = [row[0] for row in store.connection.execute("select column_name from (describe attempt)").fetchall()]
    columns = _ATTEMPT | (_VARIED if varied else {})
    attempts = ", ".join(f"{columns.get(name, 'null')} as {name}" for name in names)
    cost = " + ".join(columns["cost"].replace("step", str(step)) for step in steps)
    trials = np.sort(trials)
    for start in range(0, len(trials), at_once):
        chosen = {"trials": trials[start : start + at_once].tolist()}
        with store.commit() as commit:
            taken = "(select unnest($trials) as trial)"
            store.connection.execute(
                f"insert into attempt select {attempts} from {taken}, (select unnest({list(steps)}) as step) "
                "order by trial, step",
                {**chosen, "batch": commit.batch},
            )
            store.connection.execute(
                f"insert into verdict by name select trial, 1 reading, {_VARIED_VERDICT if varied else _VERDICT}, "
                "'bench' as rule, false answered, false flagged, "
                f"{cost} as cost, $batch batch from {taken} {_JOINED if varied else ''} order by trial",
                {**chosen, "batch": commit.batch},
            )
            commit.written += (len(steps) + 1) * len(chosen["trials"])
        if until_log is not None and store.log_bytes >= until_log:
            return
        if until_log is None and store.log_bytes > 64 << 20:
            store.checkpoint()


def shapes(folder: Path, trials: int) -> dict[str, Path]:
    """Stores of one size in all shapes: nothing, half, 98 % and all settled, and half with a log left by a kill.

    Each is a folder with its campaign file; existing folders are reused unchanged.
    """
    order = settled_first(trials)
    shares = {"none": 0.0, "half": 0.5, "98 %": 0.98, "all": 1.0}
    found = {name: folder / f"{trials}-{name.replace(' %', '')}" for name in (*shares, "killed")}
    done = 0
    last: Path | None = None
    for name, share in shares.items():
        upto = round(trials * share)
        if not found[name].exists():
            made = found[name].with_suffix(".part")
            shutil.rmtree(made, ignore_errors=True)
            if last is None:
                make(made, trials)
            else:
                shutil.copytree(last, made)
                with open_store(load_campaign(made / CAMPAIGN).store) as store:
                    settle(store, order[done:upto])
            made.rename(found[name])
        done, last = upto, found[name]
    if not found["killed"].exists():
        shutil.copytree(found["half"], found["killed"])
        killed = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, str(found["killed"]), str(trials)])
        assert killed == -signal.SIGKILL
    return found


def readdress(folder: Path, base_url: str, calls: int | None = None) -> Path:
    """Change the judges' address, and their concurrency to `calls`, as if it had been planned this way."""
    path = folder / CAMPAIGN
    text = re.sub(r'base_url = "[^"]*"', f'base_url = "{base_url}"', path.read_text(encoding="utf-8"))
    if calls is not None:
        text = re.sub(r"concurrency = \d+", f"concurrency = {calls // _JUDGES}", text)
    path.write_text(text, encoding="utf-8")
    campaign = load_campaign(path)
    with open_store(campaign.store) as store, store.commit() as commit:
        store.connection.execute("update campaign set text = ?, settings = ?", [campaign.text, campaign.settings])
        commit.written += 1
    return path


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":  # a separate process, to be killed before its log is folded in
    folder, trials = Path(sys.argv[1]), int(sys.argv[2])
    held = open_store(load_campaign(folder / CAMPAIGN).store)
    settle(held, settled_first(trials)[trials // 2 : trials * 98 // 100], until_log=32 << 20)
    os.kill(os.getpid(), signal.SIGKILL)
