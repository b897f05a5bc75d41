"""Bad input gets a sentence that says what to do, exit code 2, and nothing is lost or spent."""

from __future__ import annotations

import gzip
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.stores import rows_of

Venire = Callable[..., Any]
Write = Callable[..., Path]

REAL = """\
[[judge]]
name = "real"
model = "{model}"
base_url = "{url}"
{more}
"""


def refused(done: Any, *words: str) -> None:
    assert done.code == 2, (done.out, done.err)
    assert done.err.startswith("venire: ") or "\nvenire: " in done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err, done.err


def real(url: str = "http://127.0.0.1:9/v1", model: str = "some-model", more: str = "free = true") -> str:
    return REAL.format(url=url, model=model, more=more)


def test_a_missing_campaign_file(venire: Venire, tmp_path: Path) -> None:
    refused(venire("run", tmp_path / "none.toml"), "none.toml")


def test_a_missing_data_file(venire: Venire, write_campaign: Write, folder: Path) -> None:
    (folder / "elo.csv").unlink()
    refused(venire("plan", write_campaign()), "elo.csv")


def test_a_missing_store(venire: Venire, tmp_path: Path) -> None:
    refused(venire("status", tmp_path / "none.duckdb"), "none.duckdb", "venire run")
    refused(venire("rate", tmp_path / "none.duckdb"), "none.duckdb")
    assert list(tmp_path.iterdir()) == []


def test_a_table_where_a_store_belongs(venire: Venire, tmp_path: Path, folder: Path) -> None:
    """DuckDB attaches a CSV as a database of its own kind."""
    refused(venire("status", folder / "elo.csv"), "elo.csv", "not a valid DuckDB database")


def test_a_misspelt_key(venire: Venire, write_campaign: Write) -> None:
    refused(venire("plan", write_campaign(more="[budget]\ncals = 3")), "budget", "cals", "calls", "small.toml")


def test_an_unknown_model_in_the_plan(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    text = path.read_text(encoding="utf-8").replace("[plan]", 'models = ["strong", "stong"]\n[plan]')
    path.write_text(text, encoding="utf-8")
    refused(venire("plan", path), "'stong'", "strong")


def test_a_named_model_without_elo_is_refused_and_an_unnamed_one_left_out(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    table = folder / "elo.csv"
    kept = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("terse")]
    table.write_text("\n".join(kept) + "\n", encoding="utf-8")
    path = write_campaign()
    widest = path.read_text(encoding="utf-8").replace('"all-pairs"', '"widest-gap"\nmatchups = 6')
    path.write_text(widest, encoding="utf-8")
    plan = venire("plan", path, "--json").json()
    assert plan["left_out"] == [{"model": "terse", "reason": "no Elo"}]
    path.write_text(widest.replace("[plan]", 'models = ["strong", "terse"]\n[plan]'), encoding="utf-8")
    refused(venire("plan", path), "'terse'", "Elo")


def test_fewer_than_two_models(venire: Venire, write_campaign: Write, folder: Path) -> None:
    table = folder / "completions.jsonl"
    kept = [line for line in table.read_text(encoding="utf-8").splitlines() if '"strong"' in line]
    table.write_text("\n".join(kept) + "\n", encoding="utf-8")
    refused(venire("plan", write_campaign()), "two models")


def test_no_instruction_in_common(venire: Venire, write_campaign: Write, folder: Path) -> None:
    (folder / "completions.jsonl").write_text(
        '{"model": "strong", "instruction_id": "explain-tides", "completion": "a"}\n'
        '{"model": "terse", "instruction_id": "explain-padlock", "completion": "b"}\n',
        encoding="utf-8",
    )
    refused(venire("plan", write_campaign()), "in common")


def test_two_judges_that_are_the_same(venire: Venire, write_campaign: Write) -> None:
    twins = "".join(f'[[judge]]\nname = "{name}"\nmodel = "simulated/bard@1"\n' for name in ("one", "two"))
    refused(venire("plan", write_campaign(judges=twins)), "'one'", "'two'", "repeats")


def test_a_plan_that_cannot_be_connected(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    text = path.read_text(encoding="utf-8").replace('"all-pairs"', '"widest-gap"\nmatchups = 3')
    path.write_text(text, encoding="utf-8")
    refused(venire("plan", path), "matchups = 3", "at least 5")


def test_a_missing_key_variable(venire: Venire, write_campaign: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENIRE_TEST_KEY", raising=False)
    path = write_campaign(judges=real(more='free = true\nkey_variable = "VENIRE_TEST_KEY"'))
    refused(venire("run", path, "--yes"), "VENIRE_TEST_KEY", "export")


def test_a_model_without_a_price(venire: Venire, write_campaign: Write) -> None:
    refused(venire("plan", write_campaign(judges=real(more=""))), "some-model", "price", "free = true")


def test_an_endpoint_that_refuses_the_connection(venire: Venire, write_campaign: Write) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = write_campaign(judges=real(f"http://127.0.0.1:{port}/v1"))
    refused(venire("run", path, "--yes"), f"127.0.0.1:{port}", "'real'")
    assert venire("status", path.with_suffix(".duckdb"), "--json").json()["campaigns"][0]["accounts"]["calls"] == 0


def test_an_endpoint_that_refuses_the_key(
    venire: Venire, write_campaign: Write, serve: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENIRE_TEST_KEY", "wrong-key-0123456789")
    with serve(require_key="right-key-0123456789") as server:
        path = write_campaign(judges=real(server.base_url, more='free = true\nkey_variable = "VENIRE_TEST_KEY"'))
        done = venire("run", path, "--yes")
    refused(done, "401", "VENIRE_TEST_KEY")
    assert "wrong-key" not in done.err + done.out


def test_a_store_of_a_newer_format(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    assert venire("plan", path).code == 0
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as connection:
        connection.execute("update store set format = 99")
    refused(venire("status", path.with_suffix(".duckdb")), "format 99", "newer Venire")
    refused(venire("run", path, "--yes"), "format 99")


HOLD = """
import sys
from pathlib import Path
from venire.storage.store.opening import open_store
with open_store(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_store_that_another_process_holds(venire: Venire, write_campaign: Write) -> None:
    path = write_campaign()
    command = [sys.executable, "-c", HOLD, str(path.with_suffix(".duckdb"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        refused(venire("run", path, "--yes"), "is held by process", "since", "on host")
        refused(venire("status", path.with_suffix(".duckdb")), "is held by process")
        refused(venire("rate", path.with_suffix(".duckdb")), "is held by process")
        holder.communicate()
    assert venire("plan", path).code == 0


def test_a_file_that_is_no_store(venire: Venire, tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_bytes(b"not a database at all" * 50)
    refused(venire("status", tmp_path / "x.duckdb"), "x.duckdb")


def test_an_import_that_is_bad_in_one_row_brings_nothing(venire: Venire, tmp_path: Path, folder: Path) -> None:
    store = tmp_path / "s.duckdb"
    assert (
        venire("import", "table", folder / "instructions.jsonl", "--kind", "instructions", "--store", store).code == 0
    )
    bad = tmp_path / "bad.csv"
    bad.write_text("model,instruction_id,completion\na,explain-tides,x\na,explain-tydes,y\n", encoding="utf-8")
    refused(venire("import", "table", bad, "--kind", "completions", "--store", store), "explain-tydes", "2")
    assert venire("status", store, "--json").json()["holds"]["completions"] == 0


def test_a_missing_column_says_which_map_would_help(venire: Venire, tmp_path: Path) -> None:
    table = tmp_path / "elo.csv"
    table.write_text("model,arena_elo\na,1000\n", encoding="utf-8")
    store = tmp_path / "s.duckdb"
    refused(venire("import", "table", table, "--kind", "elo", "--store", store), "--map elo=arena_elo")
    words = ("import", "table", table, "--kind", "elo", "--map", "elo=arena_elo", "--store", store)
    assert venire(*words).code == 0


def test_an_unknown_verb_or_option(venire: Venire) -> None:
    for words in (["rum"], ["run", "--faster"], ["run"]):
        done = venire(*words)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_a_battles_table_with_a_bad_winner_names_the_row(venire: Venire, tmp_path: Path) -> None:
    table = tmp_path / "battles.csv"
    table.write_text("model_a,model_b,winner\na,b,model_a\na,b,nobody\n", encoding="utf-8")
    refused(venire("rate", table), "nobody", "2")


def test_a_column_that_a_campaign_calls_otherwise_is_mapped_in_its_file(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    lines = (folder / "completions.jsonl").read_text(encoding="utf-8").replace('"model":', '"model_label":')
    (folder / "completions.jsonl").write_text(lines, encoding="utf-8")
    file = write_campaign()
    done = venire("plan", file)
    refused(done, "completions.jsonl", "small.toml", "[data.map]", 'completions = { model = "model_label" }')
    assert "--map" not in done.err
    mapped = file.read_text(encoding="utf-8").replace(
        "[plan]", '[data.map]\ncompletions = { model = "model_label" }\n[plan]'
    )
    file.write_text(mapped, encoding="utf-8")
    assert venire("plan", file).code == 0


def test_a_line_that_is_no_json_is_named_by_its_number(venire: Venire, write_campaign: Write, folder: Path) -> None:
    lines = (folder / "instructions.jsonl").read_text(encoding="utf-8").splitlines()
    broken = "\n".join([*lines[:2], "", lines[2], '{"instruction_id": broken}', *lines[3:]])
    (folder / "instructions.jsonl").write_text(broken, encoding="utf-8")
    refused(venire("plan", write_campaign()), "instructions.jsonl", "line 5: no JSON")


def test_a_completion_of_an_instruction_that_is_not_there_names_its_file(
    venire: Venire, write_campaign: Write, folder: Path
) -> None:
    with (folder / "completions.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"model": "terse", "instruction_id": "nowhere", "completion": "x"}\n')
    refused(venire("plan", write_campaign()), "completions.jsonl", "completion 97", "'nowhere'", "leave the row out")


def test_no_identifier_is_proposed_for_a_model(venire: Venire, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("model_id,battle_id,b,winner\nx,1,y,a\n", encoding="utf-8")
    refused(venire("rate", tmp_path / "b.csv"), "b.csv", 'no column "model_a"', "--map model_a=COLUMN")
    (tmp_path / "c.csv").write_text("model,model_b,winner\nx,y,model_a\n", encoding="utf-8")
    refused(venire("rate", tmp_path / "c.csv"), "--map model_a=COLUMN")


def test_more_matchups_than_there_are_pairs_are_not_silently_fewer(venire: Venire, write_campaign: Write) -> None:
    file = write_campaign()
    text = file.read_text(encoding="utf-8").replace('policy = "all-pairs"', 'policy = "random"\nmatchups = 999')
    file.write_text(text, encoding="utf-8")
    done = venire("plan", file)
    assert "999 matchups were asked" in done.out + done.err
    assert "6 models have 15 pairs" in done.out + done.err


def test_a_placement_on_free_judges_without_a_limit_leaves_nothing_behind(
    venire: Venire, write_campaign: Write, judged: Callable[..., Path], folder: Path
) -> None:
    store = judged().with_suffix(".duckdb")
    before = rows_of(store, "from campaign")
    refused(venire("place", "terse", "--on", store, "--yes"), "give --battles or --half-width")
    done = venire("place", "terse", "--on", store, "--budget", "1", "--yes")
    refused(done, "cost nothing", "--battles or --half-width")
    assert rows_of(store, "from campaign") == before


def test_a_store_of_a_format_that_no_version_wrote(venire: Venire, judged: Callable[..., Path]) -> None:
    store = judged().with_suffix(".duckdb")
    with duckdb.connect(str(store)) as connection:
        connection.execute("update store set format = 0")
    for verb in ("status", "rate"):
        refused(venire(verb, store), "has format 0, which no Venire wrote")


def _truncated(folder: Path) -> str:
    rows = "model_a,model_b,winner\n" + "a,b,model_a\n" * 500
    (folder / "b.csv.gz").write_bytes(gzip.compress(rows.encode())[:-20])
    return "b.csv.gz"


def _text(name: str, text: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / name).write_text(text, encoding="utf-8")
        return name

    return write


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_truncated, r"b\.csv\.gz: cannot be read: Unexpected end of GZIP stream; it ends too early: copy it again"),
        (
            _text("b.parquet", "hello"),
            r"b\.parquet: cannot be read: .* too small .*; write it as Parquet again",
        ),
        (_text("b.jsonl", '[{"model_a": "a"}]'), r"b\.jsonl: its values are no JSON objects: write one on each line"),
        (
            _text("b.jsonl", '{"model_a": "a"}\n{"model_a":\n'),
            r"line 2: no JSON .*; write one whole object",
        ),
        (_text("b.csv", "model_a,model_b,winner\n"), r"b\.csv: the table has no rows: write at least one"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_to_do(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = venire("rate", make(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert re.search(said, done.err), done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "simulated/gpt-4-0613@1",
            "simulated/gpt-9@1",
            r"small\.toml: judge 'gpt-4-0613': .* names no profile",
        ),
        ("simulated/gpt-4-0613@1", "simulated/gpt-4-0613", r"small\.toml: judge 'gpt-4-0613': .* write simulated/"),
        ('"instructions.jsonl"', '"."', r"small\.toml: \[data\] instructions names .*, which is a folder: name a file"),
    ],
)
def test_a_value_that_cannot_be_meant_is_named_with_its_file_and_judge(
    venire: Venire, write_campaign: Callable[..., Path], old: str, new: str, said: str
) -> None:
    path = write_campaign()
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    done = venire("plan", path)
    assert (done.code, done.out) == (2, "")
    assert re.search(said, done.err), done.err
