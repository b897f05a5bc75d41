"""The demo's texts, which most campaigns of the tests are about."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from venire.configs.loading import load_campaign
from venire.embedded import answer_key
from venire.simulation.answer_key import AnswerKey

DEMO = Path(__file__).resolve().parents[1] / "configs" / "demo"
DATA = f"""
[data]
instructions = "{DEMO / "instructions.jsonl"}"
completions = "{DEMO / "completions.jsonl"}"
elo = "{DEMO / "elo.csv"}"
"""
"""The table of a campaign file that is about them."""


@cache
def demo_key() -> AnswerKey:
    """What simulated judges know of these texts."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.toml"
        judge = '[[judge]]\nname = "judge"\nmodel = "simulated/gpt-4-0613@1"\n'
        path.write_text(f'{DATA}[plan]\npolicy = "all-pairs"\ninstructions = 1\n{judge}', encoding="utf-8")
        return answer_key(load_campaign(path))
