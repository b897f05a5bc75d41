"""Run the demo anew and keep what it leaves in examples/demo: its files, its store, and the report of it.

Its answers stand in examples/answers.csv as well, as the one table that most people have.

Usage: python examples/make_demo.py

Takes the twenty seconds of the demo. The store is compacted, so that it is a megabyte, and a quarter of it in git; one
that holds the same already stays as it is, since the demo's times alone would make it another file.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from venire.storage.transfer.exporting import export_format, export_tables

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "examples" / "demo"
TABLES = ("battles", "judgments")
"""What is the same in every run of the demo, and so are preference pairs."""
_TEXTS = ("instructions", "completions")


def venire(*words: str) -> None:
    """Run a command of Venire in the root of the repository, so that no path of this machine is in what it writes."""
    subprocess.run([sys.executable, "-m", "venire", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def digests(store: Path) -> dict[str, str]:
    """SHA-256 of what is exported of a store as JSON Lines, by the file's name."""
    with tempfile.TemporaryDirectory() as scratch:
        made = export_tables(store, Path(scratch) / "tables", TABLES, form="jsonl")
        made += export_format(store, Path(scratch) / "preferences.jsonl", "preferences")
        return {Path(one.path).name: sha256(Path(one.path).read_bytes()).hexdigest() for one in made}


def same(kept: Path, made: Path) -> bool:
    """Whether a store holds what another does, and has today's schema: reading it changes nothing."""
    if not kept.exists():
        return False
    before = kept.read_bytes()
    return digests(kept) == digests(made) and kept.read_bytes() == before


def write_answers(path: Path) -> None:
    """Write the demo's answers as a table of prompt, model and response."""
    texts = {name: list(map(json.loads, (DEMO / f"{name}.jsonl").read_text("utf-8").splitlines())) for name in _TEXTS}
    prompts = {row["instruction_id"]: row["instruction"] for row in texts["instructions"]}
    rows = ((prompts[row["instruction_id"]], row["model"], row["completion"]) for row in texts["completions"])
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(("prompt", "model", "response"))
        table.writerows(rows)


def main() -> None:
    """Run the demo elsewhere, put what it leaves in place when it is whole, and write its report."""
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "demo"
        venire("demo", "--folder", str(made), "--speed", "5000")
        if same(DEMO / "campaign.duckdb", made / "campaign.duckdb"):
            (made / "campaign.duckdb").unlink()
        else:
            venire("store", "compact", str(made))
            (made / "campaign.duckdb").chmod(0o644)
        shutil.copytree(made, DEMO, dirs_exist_ok=True)
    write_answers(ROOT / "examples" / "answers.csv")
    for name in ("report.html", "report.md"):
        venire("report", "examples/demo", "-o", f"examples/demo/{name}")


if __name__ == "__main__":
    main()
