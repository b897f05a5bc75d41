"""Each system left out in turn and placed for a notional dollar by `venire place` itself, on a separate board.

VENIRE_DATA=... python benchmarks/placing/command.py --seeds 1 --out commands.csv
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import POLICIES_TRIED, Row, all_of, board_of, study
from field import Field

from venire.arena.records import Completion, Instruction, Rating
from venire.configs.loading import campaign_of
from venire.embedded import Embedded
from venire.judges.providers.price_table import find_price
from venire.orchestrator.recording.ending import Ending
from venire.placement.backtest import joined
from venire.placement.board import prepare
from venire.placement.settings import PlaceSettings
from venire.ratings.data.judgments import merge_orders, select_battles
from venire.ratings.design.placement import place_model
from venire.render.place import run_placement
from venire.render.screen import console
from venire.session import Session
from venire.storage.store.opening import open_store
from venire.storage.transfer import importing

_FILE = """
name = "board"
store = "board.duckdb"
seed = {seed}
[data]
models = {models}
[plan]
policy = "balanced"
battles = {battles}
round = {battles}
[[judge]]
name = "judge"
model = "simulated/{profile}@{seed}"
price = {{ input = {input}, output = {output} }}
"""
_JUDGES = Embedded(speed=0.0, direct=True)


def fill(field: Field, path: Path) -> None:
    """Create a store with texts of the systems: filler of the recorded lengths, all that a simulated judge uses."""
    with open_store(path) as store:
        importing.add(
            store,
            (
                Instruction(name, (_text(name, int(size)),))
                for name, size in zip(field.names, field.instructions.tolist(), strict=True)
            ),
        )
        importing.add(store, _completions(field))
        importing.add(store, [Rating(model, elo) for model, elo in zip(field.models, field.elo.tolist(), strict=True)])


def _completions(field: Field) -> Iterator[Completion]:
    for model, row in zip(field.models, field.completions.tolist(), strict=True):
        for name, size in zip(field.names, row, strict=True):
            yield Completion(model, name, _text(f"{model} {name}", int(size)))


def _text(head: str, size: int) -> str:
    return (head + " as long as it was" * (size // 18 + 1))[: max(size, len(head))]


def judge_board(field: Field, store: Path, given: argparse.Namespace, seed: int, left_out: str) -> None:
    """Have the board without one system judged, by the engine and without HTTP."""
    price = find_price(given.row)
    assert price is not None, given.row
    size = len(field.models)
    text = _FILE.format(
        seed=seed,
        models=json.dumps([one for one in field.models if one != left_out]),
        battles=given.board * (size - 2) // size,
        profile=given.profile,
        input=price.input / 1e9,
        output=price.output / 1e9,
    )
    campaign = campaign_of(store.parent / "board.toml", text)
    with Session(campaign) as session:
        summary = session.run(environ={}, embedded=_JUDGES)
    assert summary.ending is Ending.COMPLETE, summary.ending


def place(store: Path, policy: str, model: str, given: argparse.Namespace) -> dict[str, Any]:
    """The output of `venire place MODEL --on STORE --budget 1 --json`, judged without HTTP."""
    settings = PlaceSettings.of(
        model, store, budget=given.dollars, policy=policy, round_size=given.round, campaign="board"
    )
    log = io.StringIO()
    with contextlib.redirect_stderr(log):
        report, code = run_placement(
            console(stderr=True), prepare(settings), agree=lambda session: None, embedded=_JUDGES
        )
    assert report is not None, log.getvalue()
    assert code == 0, log.getvalue()
    return report.to_json()


def placements(field: Field, seed: int, given: argparse.Namespace) -> Iterator[Row]:
    """Every system placed on a board of the others, by each policy; the truth by the judge is as in `bench.py`."""
    reference = board_of(field, given.board, given.profile, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(field, folder / "data.duckdb")
        for code in range(given.first, len(field.models) if given.last is None else given.last):
            model = field.models[code]
            others = select_battles(reference, (reference.model_a != code) & (reference.model_b != code))
            every = merge_orders(joined(others, all_of(field, code, given.profile, seed)))
            truth = place_model(every.comparisons(), model).held.elo
            store = folder / "board.duckdb"
            shutil.copy(folder / "data.duckdb", store)
            judge_board(field, store, given, seed, model)
            for policy in POLICIES_TRIED:
                start = time.perf_counter()
                own = folder / "place.duckdb"
                shutil.copy(store, own)
                found = place(own, policy, model, given)
                own.unlink()
                held, people = found["held"], found["people"]
                yield Row(
                    given.profile, policy, seed, model, float(field.elo[code]), people["elo"], people["low"],
                    people["high"], held["elo"], held["se"], held["low"], held["high"], truth,
                    people["points_per_point_of_the_judge"], found["battles"], found["readable_verdicts"],
                    found["cost_dollars"], people["calibrated_on"], time.perf_counter() - start,
                )  # fmt: skip
            store.unlink()


if __name__ == "__main__":
    study(__doc__, placements, [1], Path("commands.csv"))
