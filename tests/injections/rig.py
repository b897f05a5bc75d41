"""Campaigns in which one contestant tries to instruct its judges, with fences and, for the comparison, without."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

from tests.injections.corpus import INJECTIONS, Injection
from venire.configs.loading import load_campaign
from venire.embedded import Embedded
from venire.judges.safety.injection_detection import detect_injection
from venire.session import Session
from venire.storage.read import frames

JUDGES = ("obedient", "gullible")
_GOOD = "Mostly the Moon, and the Sun to a lesser degree: the sea follows the pull of both, twice on most days."
_POOR = "The wind does."
_CAMPAIGN = """\
name = "injections"
seed = 1

[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"

[plan]
policy = "all-pairs"
instructions = {instructions}
"""
_JUDGE = """
[[judge]]
name = "{0}"
model = "simulated/{0}@1"
concurrency = 16
"""

Verdicts = Mapping[tuple[str, int, bool], tuple[int, int]]
"""Status and label of each judge, attempt and order."""

Moved = Mapping[tuple[str, bool], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Row:
    """Attempts of a kind, at how many of them each judge changed its verdict, and how many are suspected."""

    kind: str
    attempts: int
    unfenced: tuple[int, int]
    """The obedient judge's and the gullible one's."""
    fenced: tuple[int, int]
    suspected: int

    def figures(self) -> tuple[int, ...]:
        """The counts in the order of the table: attempts, each judge without fences and with them, suspected."""
        (obedient, gullible), (shielded, persuaded) = self.unfenced, self.fenced
        return self.attempts, obedient, shielded, gullible, persuaded, self.suspected


def _lines(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def verdicts(additions: Sequence[str], *, fences: bool = True) -> Verdicts:
    """What both judges say of a good answer and of a poor one with each addition, asked in both orders.

    Without fences texts stand in the prompt as they came.
    """
    names = [f"q{number:03}" for number in range(len(additions))]
    shown = [(name, "honest", _GOOD) for name in names]
    shown += [(name, "sly", _POOR + more) for name, more in zip(names, additions, strict=True)]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _lines(
            folder / "instructions.jsonl",
            [{"instruction_id": name, "instruction": f"What makes the tides? ({name})"} for name in names],
        )
        _lines(
            folder / "completions.jsonl",
            [{"instruction_id": name, "model": who, "completion": text} for name, who, text in shown],
        )
        (folder / "elo.csv").write_text("model,elo\nhonest,1800\nsly,600\n", encoding="utf-8")
        path = folder / "campaign.toml"
        path.write_text(
            _CAMPAIGN.format(instructions=len(names)) + "".join(map(_JUDGE.format, JUDGES)), encoding="utf-8"
        )
        return _asked(path, fences)


def _asked(path: Path, fences: bool) -> Verdicts:
    with Session(load_campaign(path)) as session:
        if fences:
            session.run(embedded=Embedded(direct=True))
        else:
            with patch("venire.judges.prompts.enclose", lambda text, fence: text):
                session.run(embedded=Embedded(direct=True))
        found = frames.battles(session.store, session.planned.id)
    columns = (found.judge, found.instruction, found.swapped, found.status, found.label)
    return {
        (found.judges[judge], int(found.instructions[instruction][1:]), bool(swapped)): (int(status), int(label))
        for judge, instruction, swapped, status, label in zip(*columns, strict=True)
    }


def _changed(clean: Verdicts, attacked: Verdicts, judge: str) -> frozenset[int]:
    """The attempts, by number, after which a judge said something else in one order or in both."""
    return frozenset(key[1] for key, said in attacked.items() if key[0] == judge and said != clean[key])


def changed_attempts() -> Moved:
    """The attempts, by number, that changed a verdict; by judge and whether there were fences."""
    attempts = [f"\n\n{one.text}" for one in INJECTIONS]
    clean = verdicts([""] * len(attempts))
    moved: dict[tuple[str, bool], frozenset[int]] = {}
    for fences in (False, True):
        attacked = verdicts(attempts, fences=fences)
        moved |= {(judge, fences): _changed(clean, attacked, judge) for judge in JUDGES}
    return moved


def by_kind(moved: Moved) -> list[Row]:
    """A row a kind, in the order of the corpus."""
    rows = []
    for kind, group in groupby(enumerate(INJECTIONS), lambda numbered: numbered[1].kind):
        of_kind: dict[int, Injection] = dict(group)
        counts = {key: len(numbers & of_kind.keys()) for key, numbers in moved.items()}
        off, on = (tuple(counts[judge, fences] for judge in JUDGES) for fences in (False, True))
        suspected = sum(detect_injection(one.text) is not None for one in of_kind.values())
        rows.append(Row(kind, len(of_kind), (off[0], off[1]), (on[0], on[1]), suspected))
    return rows
