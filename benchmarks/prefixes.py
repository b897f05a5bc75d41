"""Savings by a provider's prompt cache, by the order of trials: `python benchmarks/prefixes.py`.

A campaign of two judges runs against the embedded server, which caches prefixes of prompts as vendors do: in blocks of
128 tokens, from the moment at which the answer to a prompt begins, for five minutes at the judges' own speed. Runs
differ only in the order of pending trials.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from venire.arena.campaigns import TokenPrice
from venire.configs.loading import load_campaign
from venire.embedded import answer_key
from venire.session import Session
from venire.simulation.prefix_cache import CacheSize
from venire.simulation.server import JudgeServer, serve_in_thread
from venire.storage.plans import trial_states
from venire.storage.plans.trial_states import PendingTrials
from venire.storage.store.store import Store

_JUDGES = ("gpt-4-0613", "claude-3-opus")
_WORDS = (
    "the",
    "of",
    "answer",
    "question",
    "because",
    "under",
    "several",
    "light",
    "water",
    "number",
    "stone",
    "often",
)
_PRICE = "{ input = 1.00, output = 4.00, cached = 0.10 }"
_NANO = TokenPrice(10**9, 4 * 10**9, 10**8)
_SHOWN = """
select id, respondent, instruction, shown[1] as first, shown[2] as second, repeat from trial order by id
"""
_HITS = """
select j.name, sum(a.cached_tokens)::bigint, sum(a.input_tokens)::bigint,
  (sum(a.cached_tokens) filter (where step = 1))::bigint, (sum(a.input_tokens) filter (where step = 1))::bigint,
  sum(a.output_tokens)::bigint
  from attempt a join trial t on t.id = a.trial join campaign_judge j on j.respondent = t.respondent
  where a.fault = 0 group by j.name order by j.name
"""

Order = Callable[[PendingTrials, dict[str, np.ndarray]], np.ndarray]


def write(folder: Path, url: str, given: argparse.Namespace) -> Path:
    """Write tables and a campaign file: completions of a given number of words, all pairs of the models."""
    drawn = random.Random(7)

    def text(words: int) -> str:
        return " ".join(drawn.choice(_WORDS) for _ in range(words))

    models = [f"m{number:02}" for number in range(given.models)]
    questions = [f"q{number:03}" for number in range(given.instructions)]
    rows = [{"instruction_id": q, "instruction": f"{q} {text(40)}"} for q in questions]
    _lines(folder / "instructions.jsonl", rows)
    rows = [{"instruction_id": q, "model": m, "completion": text(given.words)} for m in models for q in questions]
    _lines(folder / "completions.jsonl", rows)
    elo = "".join(f"{model},{1000 + 20 * number}\n" for number, model in enumerate(models))
    (folder / "elo.csv").write_text(f"model,elo\n{elo}", encoding="utf-8")
    judges = "".join(
        f'[[judge]]\nname = "{name}"\nmodel = "simulated/{name}@1"\nbase_url = "{url}"\nprice = {_PRICE}\n'
        f"concurrency = {given.concurrency}\n\n"
        for name in _JUDGES
    )
    path = folder / "campaign.toml"
    path.write_text(
        'name = "prefixes"\n\n[data]\ninstructions = "instructions.jsonl"\ncompletions = "completions.jsonl"\n'
        f'elo = "elo.csv"\n\n[plan]\npolicy = "all-pairs"\nrepeats = {given.repeats}\n\n{judges}',
        encoding="utf-8",
    )
    return path


def as_handed_out(left: PendingTrials, shown: dict[str, np.ndarray]) -> np.ndarray:
    """The plan's order: by instruction, and within it every battle once before repeats."""
    return left.trials


def as_sorted(left: PendingTrials, shown: dict[str, np.ndarray]) -> np.ndarray:
    """The order with the longest shared prefixes: by instruction, first text, second text."""
    rows = left.trials - 1
    keys = (shown["repeat"][rows], shown["second"][rows], shown["first"][rows], shown["instruction"][rows])
    return left.trials[np.lexsort(keys)]


def as_paired(left: PendingTrials, shown: dict[str, np.ndarray]) -> np.ndarray:
    """Matchup by matchup within an instruction, both orders and all repeats side by side."""
    rows = left.trials - 1
    low, high = np.minimum(shown["first"], shown["second"])[rows], np.maximum(shown["first"], shown["second"])[rows]
    keys = (shown["repeat"][rows], shown["first"][rows], shown["respondent"][rows], high, low)
    return left.trials[np.lexsort((*keys, shown["instruction"][rows]))]


def at_random(left: PendingTrials, shown: dict[str, np.ndarray]) -> np.ndarray:
    """A random order, from a seed."""
    return np.random.default_rng(7).permutation(left.trials)


ORDERS: dict[str, Order] = {
    "handed out": as_handed_out,
    "by matchup": as_paired,
    "side by side": as_sorted,
    "random": at_random,
}


def run(order: Order, given: argparse.Namespace) -> dict[str, Any]:
    """Cache hit shares of input tokens by judge, and total cost in nano-dollars, with and without a cached price."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        key = answer_key(load_campaign(write(folder, "http://127.0.0.1:9/v1", given)))
        size = CacheSize(given.blocks, given.least)
        with serve_in_thread(JudgeServer(key, cache=size, speed=given.speed)) as server:
            found = trial_states.pending_trials

            def ordered(store: Store, campaign: int) -> PendingTrials:
                left = found(store, campaign)
                shown = {name: np.ma.getdata(column) for name, column in _columns(store).items()}
                trials = order(left, shown)
                return PendingTrials(trials, shown["respondent"][trials - 1].astype(np.int16))

            campaign = load_campaign(write(folder, server.base_url, given))
            with Session(campaign) as session, patch.object(trial_states, "pending_trials", ordered):
                summary = session.run()
                judges = session.store.connection.execute(_HITS).fetchall()
        whole, cached, output = (sum(row[column] for row in judges) for column in (2, 1, 5))
        return {
            "judges": {row[0]: (row[1] / row[2], row[3] / row[4]) for row in judges},
            "share": cached / whole,
            "nano": (_NANO.cost(whole, output, cached, 0), _NANO.cost(whole, output)),
            "rate": summary.statistics.calls / summary.statistics.elapsed,
        }


def _columns(store: Store) -> dict[str, np.ndarray]:
    return store.connection.execute(_SHOWN).fetchnumpy()


def _lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    """Run each order against a fresh server and print a row for it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--instructions", type=int, default=8)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--words", type=int, default=330, help="words of a completion")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--speed", type=float, default=80.0)
    parser.add_argument("--blocks", type=int, default=1_200, help="blocks of 128 tokens in an account's cache")
    parser.add_argument("--least", type=int, default=0, help="tokens under which nothing is read")
    parser.add_argument("--orders", nargs="+", default=list(ORDERS), choices=list(ORDERS))
    given = parser.parse_args()
    sys.stdout.write(
        "share of input tokens read from the cache, of all calls and of first steps, by judge; dollars with cached\n"
        "tokens at a tenth of the input's price, and the share of the bill that this saves\n"
        f"order         {'  '.join(f'{name:>15}' for name in _JUDGES)}      all  dollars  saved  calls/s\n"
    )
    for name in given.orders:
        done = run(ORDERS[name], given)
        shares = "  ".join(f"{done['judges'][judge][0]:7.1%} {done['judges'][judge][1]:7.1%}" for judge in _JUDGES)
        paid, plain = (nano / 1e9 for nano in done["nano"])
        sys.stdout.write(
            f"{name:<13} {shares} {done['share']:8.1%} {paid:8.2f} {1 - paid / plain:6.1%} {done['rate']:8.0f}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
