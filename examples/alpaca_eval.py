"""Write a campaign over the published completions of AlpacaEval 2, judged by two simulated judges.

Usage: python examples/alpaca_eval.py DATA FOLDER

DATA holds alpaca_eval/instructions.parquet, completions.parquet and models.parquet; FOLDER gets campaign.toml, to be
run with `venire run FOLDER/campaign.toml --yes`. Of the systems that have completions and the human Elo of 2024-02-02,
sorted by that Elo, it takes twenty at even steps: 50 matchups with wide gaps x 10 instructions x 2 orders x 2 judges.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

ELO = "arena_elo_2024_02_02"
SYSTEMS = 20


def write_campaign(data: Path, folder: Path) -> Path:
    """Write FOLDER/campaign.toml and return its path."""
    source = (data / "alpaca_eval").resolve()
    rows = duckdb.execute(
        f"select model from read_parquet(?) where has_completions and {ELO} is not null order by {ELO}, model",
        [str(source / "models.parquet")],
    ).fetchall()
    names = [rows[round((len(rows) - 1) * step / (SYSTEMS - 1))][0] for step in range(SYSTEMS)]
    listed = "".join(f"  {name!r},\n" for name in names)
    text = f"""\
name = "alpaca-eval"
seed = 1

[data]
instructions = '{source / "instructions.parquet"}'
completions = '{source / "completions.parquet"}'
elo = '{source / "models.parquet"}'
models = [
{listed}]

[data.map]
elo = {{ elo = "{ELO}" }}

[plan]
policy = "widest-gap"
matchups = 50
instructions = 10

[[judge]]
name = "gpt-4-0613"
model = "simulated/gpt-4-0613@1"
concurrency = 32

[[judge]]
name = "claude-3-opus"
model = "simulated/claude-3-opus@1"
concurrency = 32
"""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.stdout.write(f"{write_campaign(Path(sys.argv[1]), Path(sys.argv[2]))}\n")
