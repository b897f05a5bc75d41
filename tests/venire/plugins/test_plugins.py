"""The example packages: installed as a user installs them, held to their contracts, and used by commands."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest

PACKAGES = sorted((Path(__file__).parents[3] / "examples" / "plugins").glob("venire-*"))
MOST_LINES = 60
MODELS = 4
CONTRACTS = """
import json, sys
from pathlib import Path
from venire.testing import check_format, check_method, check_policy, check_protocol, check_provider

check_protocol("scale")
check_provider("plain", lambda text: json.dumps({"output": text, "tokens": [9, 1]}).encode())
check_policy("swiss")
check_method("glicko")
files = [Path(sys.argv[1])]
check_format("sides", texts=files, verdicts=files)
"""

TURNED = """
import venire_scale
from dataclasses import replace
from venire.simulation.rehearsal import pairwise
from venire.testing import check_protocol

wrong = pairwise(lambda verdict: str(max(-2, min(2, round(-verdict.z)))))
venire_scale.SCALE = replace(venire_scale.SCALE, rehearse=wrong)
check_protocol("scale")
"""
UNREHEARSED = """
import venire_scale
from dataclasses import replace
from venire.cli import main

venire_scale.SCALE = replace(venire_scale.SCALE, rehearse=None)
main()
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all example packages, made by pip."""
    target = tmp_path_factory.mktemp("installed")
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target"]
    pip = [sys.executable, "-m", "pip", "install", *words, str(target), *map(str, PACKAGES)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Runs Python with the packages, in a folder of its own."""

    def go(*words: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "120"}
        return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, cwd=tmp_path, env=env)

    return go


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[[str], Path]:
    """A campaign file with four models and eight instructions, and these lines."""

    def write(more: str) -> Path:
        with (tmp_path / "i.jsonl").open("w") as asked, (tmp_path / "c.jsonl").open("w") as said:
            for n in range(8):
                asked.write(json.dumps({"instruction_id": f"q{n}", "instruction": f"Question {n}?"}) + "\n")
                for model in range(MODELS):
                    row = {"instruction_id": f"q{n}", "model": f"m{model}", "completion": f"Answer {n} of {model}."}
                    said.write(json.dumps(row) + "\n")
        elo = "".join(f"m{model},{700 + 200 * model}\n" for model in range(MODELS))
        (tmp_path / "e.csv").write_text(f"model,elo\n{elo}")
        data = '[data]\ninstructions = "i.jsonl"\ncompletions = "c.jsonl"\nelo = "e.csv"\n'
        (tmp_path / "tried.toml").write_text(data + more)
        return tmp_path / "tried.toml"

    return write


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    """A file of the example format."""
    path = tmp_path / "sides.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "left", "right", "left_model", "right_model", "chosen", "rater"])
        for n in range(6):
            rows.writerow([f"Question {n}?", f"a{n}", f"b{n}", "ant", "bee", ("left", "right", "both")[n % 3], "me"])
    return path


@pytest.fixture
def plain_server() -> Iterator[str]:
    """An endpoint of the example's wire form, which prefers the first answer."""

    class Handler(BaseHTTPRequestHandler):
        def _say(self, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self._say({"data": [{"id": "judge"}]})

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._say({"output": "1" if "number" in sent["prompt"] else "Reasons.", "tokens": [50, 1]})

        def log_message(self, format: str, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_they_are_short() -> None:
    assert len(PACKAGES) == 5
    for package in PACKAGES:
        source = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
        assert len(source.splitlines()) < MOST_LINES, package.name


def test_they_keep_their_contracts(run: Run, sides: Path) -> None:
    done = run("-c", CONTRACTS, sides)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_scale_that_is_rehearsed_the_wrong_way_round_does_not_keep_its_contract(run: Run) -> None:
    done = run("-c", TURNED)
    assert done.returncode == 1
    assert "much better models win" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_protocol_that_cannot_be_rehearsed_is_refused_before_anything_is_made(
    run: Run, campaign: Callable[[str], Path]
) -> None:
    judge = '[[judge]]\nname = "judge"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "scale"\n'
    path = campaign(f'[plan]\npolicy = "all-pairs"\n{judge}')
    done = run("-c", UNREHEARSED, "run", path, "--yes")
    assert done.returncode == 2, done.stderr
    assert "protocol 'scale' cannot be rehearsed" in done.stderr
    assert "venire-scale 0.1" in done.stderr
    assert not path.with_suffix(".duckdb").exists()


@pytest.mark.slow
def test_prompts_that_a_simulated_judge_takes_for_another_protocol_s_are_refused(
    run: Run, campaign: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text("Rank these: $instruction $first $second", encoding="utf-8")
    judge = '[[judge]]\nname = "judge"\nmodel = "simulated/bard@1"\nprompts = { reasons = "own.txt" }\n'
    done = run("-m", "venire", "plan", campaign(f'[plan]\npolicy = "all-pairs"\n{judge}'))
    assert done.returncode == 2, done.stderr
    assert "those of protocol 'listwise'" in done.stderr


@pytest.mark.slow
def test_a_rehearsal_reads_the_scale_the_right_way_round_under_a_policy_of_another_package(
    run: Run, campaign: Callable[[str], Path]
) -> None:
    judge = '[[judge]]\nname = "judge"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "scale"\n'
    path = campaign(f'[plan]\npolicy = "swiss"\nbattles = 30\nround = 10\n{judge}')
    done = run("-m", "venire", "run", path, "--yes")
    assert done.returncode == 0, done.stderr
    rated = run("-m", "venire", "rate", "tried.duckdb", "--method", "glicko", "--json")
    assert rated.returncode == 0, rated.stderr
    board = sorted(json.loads(rated.stdout)["models"], key=lambda row: -row["elo"])
    assert next(row["model"] for row in board) == "m3"
    assert [row["model"] for row in board][-1] == "m0"
    shown = run("-m", "venire", "prompts", "show", "scale/question")
    assert "from -2 to 2" in shown.stdout + shown.stderr


@pytest.mark.slow
def test_a_provider_of_another_package_is_asked(run: Run, campaign: Callable[[str], Path], plain_server: str) -> None:
    judge = (
        f'[[judge]]\nname = "judge"\nmodel = "judge"\nprovider = "plain"\nbase_url = "{plain_server}"\nfree = true\n'
        'protocol = "scale"\n'
    )
    path = campaign(f'[plan]\npolicy = "all-pairs"\n{judge}')
    done = run("-m", "venire", "run", path, "--yes")
    assert done.returncode == 0, done.stderr
    with duckdb.connect(str(path.with_suffix(".duckdb")), read_only=True) as store:
        firsts = store.execute("select count(*) from battle where (winner = 'model_a') != swapped").fetchall()
    assert firsts == [(96,)]  # 6 pairs, 8 instructions, both orders


@pytest.mark.slow
def test_a_format_of_another_package_is_imported_and_rated(run: Run, sides: Path) -> None:
    done = run("-m", "venire", "import", "sides", sides, "--store", "s.duckdb")
    assert (done.returncode, "6 instructions and 12 completions" in done.stdout) == (0, True), done.stderr
    rated = run("-m", "venire", "rate", sides, "--json")
    assert json.loads(rated.stdout)["diagnostics"]["source"]["format"] == "sides"
    assert "sides" in run("-m", "venire", "import", "--help").stdout


def test_without_the_packages_their_names_are_refused_with_those_that_are_there(
    campaign: Callable[[str], Path], venire: Any
) -> None:
    path = campaign('[plan]\npolicy = "swiss"\n[[judge]]\nname = "j"\nmodel = "simulated/bard@1"\nprotocol = "scale"\n')
    done = venire("plan", path)
    assert done.code == 2
    assert '"swiss"; accepted: one of "widest-gap"' in done.err
