"""`venire export`: what goes out is what the store holds, other readers open it, and nothing is replaced unasked."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import duckdb
import pytest

import venire as product
from tests.parameters import slow_after
from venire.arena.clock import VirtualClock
from venire.embedded import Embedded
from venire.session import Session
from venire.storage.transfer.formats.source import open_table

Venire = Callable[..., Any]
MODELS = ("ant", "bee|`x`", "cat")
CAMPAIGN = """
name = "small"
[data]
instructions = "instructions.jsonl"
completions = "completions.jsonl"
elo = "elo.csv"
[plan]
policy = "all-pairs"
{plan}
[[judge]]
name = "first"
model = "simulated/gpt-4-0613@1"
[[judge]]
name = "second"
model = "simulated/vicuna-13b@2"
"""


def make(folder: Path, *, plan: str = "", text: str = CAMPAIGN, run: bool = True) -> Path:
    """A store of three models, six instructions and two simulated judges."""
    questions = [
        {"instruction_id": f"q{n}", "instruction": f"{n}? {'é' * n}", "category": f"c{n % 2}"} for n in range(6)
    ]
    answers = [
        {"instruction_id": f"q{n}", "model": model, "completion": f"{model} says {n}" + " more" * place}
        for n in range(6)
        for place, model in enumerate(MODELS)
    ]
    for name, rows in (("instructions", questions), ("completions", answers)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with (folder / "elo.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("model", "elo"), *zip(MODELS, (1200, 1000, 900), strict=True)])
    (folder / "small.toml").write_text(text.replace("{plan}", plan), encoding="utf-8")
    with Session(product.load_campaign(folder / "small.toml"), clock=VirtualClock()) as session:
        if run:
            session.run(embedded=Embedded(direct=True))
    return folder / "small.duckdb"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("planned"), run=False)


@pytest.fixture
def store(judged: Path, tmp_path: Path) -> Path:
    """The store in a folder of the test's own."""
    return Path(shutil.copy(judged, tmp_path / "small.duckdb"))


def rows(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(sql, list(values)).fetchall()


def of_store(store: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(store), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def verdicts(store: Path) -> list[dict[str, Any]]:
    names = ("judge", "instruction_id", "model_a", "model_b", "swapped", "winner")
    found = of_store(store, f"select {', '.join(names)} from battle")
    return [dict(zip(names, row, strict=True)) for row in found]


@pytest.mark.parametrize("what", slow_after(2, "battles", "preferences", "ratings"))
def test_no_cell_of_csv_is_a_formula_and_our_reader_gives_the_texts_back(
    venire: Venire, store: Path, what: str
) -> None:
    with duckdb.connect(str(store)) as connection:
        connection.execute("update model set name = '=1+1' where name = 'ant'")
    for name, words in (("x.csv", ()), ("raw.csv", ("--raw",)), ("x.parquet", ())):
        assert venire("export", store, what, "-o", store.parent / name, *words).code == 0
    with (store.parent / "x.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "'=1+1" in cells
    assert "=1+1" not in cells
    with closing((table := open_table(store.parent / "x.parquet")).connection):
        texts = [name for name, kind in table.columns.items() if kind == "VARCHAR"]
    read = [texts_of(store.parent / name, texts) for name in ("x.csv", "raw.csv", "x.parquet")]
    assert read[0] == read[1] == read[2]


def texts_of(path: Path, columns: list[str]) -> list[tuple[Any, ...]]:
    with closing((table := open_table(path)).connection):
        return table.execute(f"select {', '.join(map(table.text, columns))} from {{table}}").fetchall()


@pytest.mark.parametrize("table", slow_after(2, "battles", "replies", "judgments"))
def test_one_table_is_the_same_in_every_form_by_the_ending_of_its_file(venire: Venire, store: Path, table: str) -> None:
    out = store.parent / "deep" / "folder"
    for ending in ("parquet", "csv", "jsonl"):
        made = venire("export", store, table, "-o", out / f"x.{ending}", "--json").json()["files"]
        assert [(one["table"], Path(one["path"]).stat().st_size) for one in made] == [(table, made[0]["bytes"])]
    shown = "columns(*)::varchar"
    if table == "replies":
        shown = "* exclude (sent_at, latency_ms)"  # a time is a text with a Z in CSV
    parquet = rows(f"select {shown} from read_parquet(?)", str(out / "x.parquet"))
    assert len(parquet) == made[0]["rows"] > 0
    with duckdb.connect() as connection:
        kinds = {
            name: kind
            for name, kind, *_ in connection.execute(
                "describe select * from read_parquet(?)", [str(out / "x.parquet")]
            ).fetchall()
        }
    kinds |= {"sent_at": "TIMESTAMP WITH TIME ZONE"} if "sent_at" in kinds else {}
    read = (
        f"select {shown} from read_csv(?, columns = {kinds!r}, header = true, nullstr = '', allow_quoted_nulls = false)"
    )
    assert rows(read, str(out / "x.csv")) == parquet
    assert rows(f"select {shown} from read_json(?, columns = {kinds!r})", str(out / "x.jsonl")) == parquet


def test_battles_and_replies_are_those_of_the_store(venire: Venire, store: Path) -> None:
    for table, source in (("battles", "battle"), ("replies", "reply")):
        assert venire("export", store, table, "-o", store.parent / f"{table}.parquet").code == 0
        count = rows("select count(*) from read_parquet(?)", str(store.parent / f"{table}.parquet"))
        assert count == of_store(store, f"select count(*) from {source}")
    texts = rows("select text from read_parquet(?) order by 1", str(store.parent / "replies.parquet"))
    assert texts == of_store(store, "select text from reply order by 1")


def test_a_judgment_says_what_both_orders_say(venire: Venire, store: Path) -> None:
    assert venire("export", store, "judgments", "-o", store.parent / "j.jsonl").code == 0
    said: dict[tuple[str, ...], list[Any]] = {}
    for one in verdicts(store):
        key = tuple(one[name] for name in ("judge", "instruction_id", "model_a", "model_b"))
        said.setdefault(key, [None, None])[one["swapped"]] = one["winner"]
    found = [json.loads(line) for line in (store.parent / "j.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(found) == len(said)
    for one in found:
        both = said[one["judge"], one["instruction_id"], one["model_a"], one["model_b"]]
        assert [one["winner_a_first"], one["winner_b_first"]] == both
        assert one["agreed"] == (None if None in both else both[0] == both[1])
        points = [{"model_a": 1, "model_b": -1, "tie": 0}[winner] for winner in both if winner]
        assert one["mean_verdict"] == (mean(points) if points else None)


def test_ratings_are_those_of_the_board_to_the_last_digit(venire: Venire, store: Path) -> None:
    board = product.rate(store)
    assert venire("export", store, "ratings", "-o", store.parent / "r.csv").code == 0
    with (store.parent / "r.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [(row["model"], float(row["elo"]), float(row["se"])) for row in found] == [
        (row.model, row.elo, row.se) for row in board.models
    ]
    assert {(row["method"], row["verdicts"]) for row in found} == {("bradley-terry", "simulated")}
    assert venire("export", store, "ratings", "--method", "kemeny", "-o", store.parent / "k.jsonl").code == 0
    words = ("--level", "0.8", "--pairs", "given", "-o", store.parent / "l.csv")
    assert venire("export", store, "ratings", *words).code == 0
    narrower = product.rate(store, options=product.Options(level=0.8, pairs="given"))
    with (store.parent / "l.csv").open(encoding="utf-8", newline="") as file:
        assert [float(row["lo"]) for row in csv.DictReader(file)] == [row.lo for row in narrower.models]


def test_a_leaderboard_has_alpaca_eval_s_columns_and_counts_each_instruction_once(venire: Venire, store: Path) -> None:
    out = store.parent / "leaderboard.csv"
    assert venire("export", store, "alpaca-eval", "--baseline", "cat", "-o", out).code == 0
    with out.open(encoding="utf-8", newline="") as file:
        head, *found = list(csv.reader(file))
    names = ",win_rate,standard_error,n_wins,n_wins_base,n_draws,n_total,discrete_win_rate,mode,avg_length"
    assert head == names.split(",")
    assert {row[0] for row in found} == set(MODELS) - {"cat"}
    for model, *figures in found:
        shares: dict[str, list[float]] = {}
        for one in verdicts(store):
            if {one["model_a"], one["model_b"]} == {model, "cat"} and one["winner"]:
                won = one["winner"] if one["winner"] == "tie" else one[one["winner"]]
                shares.setdefault(one["instruction_id"], []).append({"tie": 0.5, model: 1.0}.get(won, 0.0))
        each = [mean(values) for values in shares.values()]
        counts = [sum(p > 0.5 for p in each), sum(p < 0.5 for p in each), sum(p == 0.5 for p in each), len(each)]
        assert float(figures[0]) == pytest.approx(100 * mean(each))
        assert float(figures[1]) == pytest.approx(100 * stdev(each) / math.sqrt(len(each)))
        assert [int(one) for one in figures[2:6]] == counts
        assert float(figures[6]) == pytest.approx(100 * (counts[0] + counts[2] / 2) / counts[3])
        place = MODELS.index(model)
        assert figures[7:] == ["community", str(len(f"{model} says 0" + " more" * place))]


def test_one_report_of_llm_comparator_holds_the_verdicts_of_its_pair(venire: Venire, store: Path) -> None:
    out = store.parent / "report.json"
    assert venire("export", store, "llm-comparator", "--pair", "cat", "ant", "-o", out).code == 0
    mine = [one for one in verdicts(store) if {one["model_a"], one["model_b"]} == {"ant", "cat"}]
    (report,) = rows("select models::json, examples::json from read_json(?)", str(out))
    assert [one["name"] for one in json.loads(report[0])] == ["ant", "cat"]
    marks = {None: None, "model_a": 1.0, "model_b": -1.0, "tie": 0.0}
    found = [
        (
            rating["custom_fields"]["judge"],
            one["custom_fields"]["instruction_id"],
            rating["is_flipped"],
            rating["score"],
        )
        for one in json.loads(report[1])
        for rating in one["individual_rater_scores"]
    ]
    assert sorted(found, key=str) == sorted(
        ((one["judge"], one["instruction_id"], one["swapped"], marks[one["winner"]]) for one in mine), key=str
    )
    board = venire("rate", out, "--bootstrap", "0", "--json").json()
    assert board["diagnostics"]["source"]["format"] == "llm-comparator"
    read = sum(one["winner"] is not None for one in mine)
    assert sum(judge["verdicts"] for judge in board["judges"]) == read


def test_a_dataset_has_a_card_that_says_where_its_verdicts_are_from(venire: Venire, store: Path) -> None:
    out = store.parent / "data set"
    made = venire("export", store, "dataset", "-o", out, "--json").json()["files"]
    card = (out / "README.md").read_text(encoding="utf-8")
    front, _, text = card.removeprefix("---\n").partition("\n---\n")
    assert "license: unknown" in front
    assert "- n<1K" in front
    assert "- simulated-verdicts" in front
    files = {one["table"]: one["rows"] for one in made}
    for name in ("battles", "judgments", "instructions", "completions", "preferences", "ratings"):
        assert f"- config_name: {name}\n" in front
        assert f"    path: data/{name}.parquet" in front
        ((count,),) = rows("select count(*) from read_parquet(?)", str(out / "data" / f"{name}.parquet"))
        assert count == files[f"data/{name}.parquet"] > 0
        assert f"| `{name}` | {count:,} |" in text
    ((count,),) = of_store(store, "select count(*) from battle")
    assert f"- {count:,} verdicts are simulated:" in text
    assert "bee\\|\\`x\\`" in text  # a name is no markup
    assert "Unknown: the store" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("battles", "-o", "b.xlsx"), "the ending says what is written: .parquet, .csv, .jsonl, .arrow"),
        (("battles", "-o", "."), "is a folder: name a file in it"),
        (("battles", "--campaign", "no", "-o", "b.csv"), "no campaign 'no'; there is: small"),
        (("battles", "--judge", "first", "-o", "b.csv"), "tables do not take --judge"),
        (("nothing", "-o", "b.csv"), "no table or view 'nothing'; there are: battles,"),
        (
            ("preferences", "--judge", "bob", "-o", "p.csv"),
            "no verdict is of the judge 'bob'; there are: first, second",
        ),
        (("preferences", "-o", "p.json"), "name a file that ends with .jsonl or .csv or .parquet, or a folder"),
        (("preferences", "--baseline", "ant", "-o", "p.csv"), "preferences does not take --baseline"),
        (("preferences", "--format", "csv", "-o", "p"), "--format is for tables"),
        (("dataset", "-o", "d.parquet"), "dataset is not written as .parquet: name a folder"),
        (("llm-comparator", "-o", "r.json"), "3 pairs met: name one with --pair A B"),
        (("llm-comparator", "--pair", "ant", "eel", "-o", "r.json"), "no verdict is of the model 'eel'"),
        (("llm-comparator", "--pair", "ant", "ant", "-o", "r.json"), "ant and ant never met"),
        (("alpaca-eval", "-o", "l.csv"), "name it with --baseline; there are: ant,"),
        (("alpaca-eval", "--baseline", "eel", "-o", "l.csv"), "no verdict is of the model 'eel'"),
        (("ratings", "battles", "--keep", "every", "-o", "x"), "tables do not take --keep"),
        (("battles", "--method", "elo", "-o", "b.csv"), "--method is for ratings and dataset"),
        (("battles", "--bootstrap", "20", "-o", "b.csv"), "--bootstrap is for ratings and dataset"),
    ],
)
def test_what_cannot_be_written_is_said_and_leaves_no_file(
    venire: Venire, store: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(store.parent)
    before = sorted(store.parent.iterdir())
    done = venire("export", store, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert sorted(store.parent.iterdir()) == before


@pytest.mark.parametrize(
    "what", slow_after(4, "battles", "preferences", "dataset", "llm-comparator", "judgments", "replies")
)
def test_a_store_without_verdicts_says_so(venire: Venire, planned: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / {"dataset": "out", "llm-comparator": "out.json"}.get(what, "out.csv")
    done = venire("export", planned, what, "-o", out)
    assert done.code == 2
    assert "run the campaign first" in done.err
    assert not out.exists()


SAID = {
    "q0": ("AA", "AA"),
    "q1": ("AA", "=="),
    "q2": ("AA", "AB"),
    "q3": ("AA", "BB"),
    "q4": ("B=", "??"),
    "q5": ("==", "=="),
}
"""What the first and the second judge say of ant and cat with ant first, and with cat first: ?: not read."""


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("agreed", {("q0", "ant"): (1.0, 1.0, "first, second"), ("q2", "ant"): (1.0, 1.0, "first")}),
        (
            "decided",
            {
                ("q0", "ant"): (1.0, 1.0, "first, second"),
                ("q1", "ant"): (0.5, 0.5, "first, second"),
                ("q2", "ant"): (0.5, 0.5, "first, second"),
                ("q4", "cat"): (0.5, 1.0, "first"),
            },
        ),
    ],
)
def test_a_pair_needs_the_majority_of_judges_and_ties_are_votes_for_neither(
    venire: Venire, store: Path, keep: str, expected: dict[tuple[str, str], tuple[float, float, str]]
) -> None:
    labels = {"A": "1", "B": "-1", "=": "0", "?": "null"}
    with duckdb.connect(str(store)) as connection:
        found = connection.execute(
            "select trial, judge, instruction_id, swapped from battle where model_a = 'ant' and model_b = 'cat'"
        ).fetchall()
        trials = {(judge, name, swapped): trial for trial, judge, name, swapped in found}
        for name, said in SAID.items():
            for judge, orders in zip(("first", "second"), said, strict=True):
                for swapped, mark in zip((False, True), orders, strict=True):
                    connection.execute(
                        f"update verdict set label = {labels[mark]}, status = {int(mark == '?')} where trial = ?",
                        [trials[judge, name, swapped]],
                    )
    out = store.parent / "p.jsonl"
    assert venire("export", store, "preferences", "--keep", keep, "-o", out).code == 0
    pairs = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {
        (one["instruction_id"], one["chosen_model"]): (one["margin"], one["agreement"], one["judges"])
        for one in pairs
        if {one["chosen_model"], one["rejected_model"]} == {"ant", "cat"}
    } == expected
    assert {one["judge"] for one in pairs} == {"majority"}


def test_a_store_of_grades_alone_names_them(venire: Venire, tmp_path: Path) -> None:
    store = make(tmp_path, text=CAMPAIGN.replace("[[judge]]", '[[judge]]\nprotocol = "direct"'))
    for what in ("battles", "preferences"):
        done = venire("export", store, what, "-o", tmp_path / "x.csv")
        assert (done.code, "there are others: grade" in done.err) == (2, True)
    assert venire("export", store, "grade", "-o", tmp_path / "grade.csv").code == 0


def test_single_orders_make_no_pairs_unless_they_are_asked_for(venire: Venire, tmp_path: Path) -> None:
    store = make(tmp_path, plan='orders = "random"')
    refused = venire("export", store, "preferences", "-o", tmp_path / "p.jsonl")
    assert refused.code == 2
    assert "none of 36 judgments" in refused.err
    assert "--keep decided" in refused.err
    assert venire("export", store, "preferences", "--keep", "decided", "-o", tmp_path / "p.jsonl").code == 0


def test_nothing_is_written_where_one_file_of_several_is_there(venire: Venire, store: Path) -> None:
    """The danger: half of a folder is new and half of it old."""
    for words, name in ((("dataset",), "README.md"), (("battles", "judgments"), "judgments.parquet")):
        out = store.parent / name.partition(".")[0]
        out.mkdir()
        (out / name).write_text("mine", encoding="utf-8")
        refused = venire("export", store, *words, "-o", out)
        assert (refused.code, f"{name} is there already" in refused.err) == (2, True)
        assert [(one.name, one.read_text(encoding="utf-8")) for one in out.iterdir()] == [(name, "mine")]
    assert venire("export", store, *words, "-o", out, "--force").code == 0
    assert {one.name for one in out.iterdir()} == {"battles.parquet", "judgments.parquet"}


@pytest.mark.slow
def test_hugging_face_datasets_loads_every_configuration_of_a_folder(venire: Venire, store: Path) -> None:
    datasets = pytest.importorskip("datasets")
    out = store.parent / "set"
    made = venire("export", store, "dataset", "-o", out, "--json").json()["files"]
    sizes = {Path(one["table"]).stem: one["rows"] for one in made if one["table"].startswith("data/")}
    assert sorted(datasets.get_dataset_config_names(str(out))) == sorted(sizes)
    for name, count in sizes.items():
        assert len(datasets.load_dataset(str(out), name, split="train", cache_dir=str(out / "cache"))) == count
    by_default = datasets.load_dataset(str(out), split="train", cache_dir=str(out / "cache"))
    assert len(by_default) == sizes["battles"]


@pytest.mark.slow
@pytest.mark.parametrize("messages", [False, True])
def test_pairs_have_the_columns_and_shapes_that_trl_documents(venire: Venire, store: Path, messages: bool) -> None:
    datasets = pytest.importorskip("datasets")
    for ending, reader in (("parquet", "parquet"), ("jsonl", "json")):
        path = store.parent / f"p.{ending}"
        assert venire("export", store, "preferences", *["--messages"] * messages, "-o", path).code == 0
        found = datasets.load_dataset(
            reader, data_files=str(path), split="train", cache_dir=str(store.parent / "cache")
        )
        assert {"prompt", "chosen", "rejected", "margin"} <= set(found.column_names)
        for name in ("prompt", "chosen", "rejected"):
            for value in found[name]:
                if messages:
                    assert [set(one) for one in value] == [{"role", "content"}]
                else:
                    assert isinstance(value, str)
        assert all(isinstance(value, float) for value in found["margin"])


@pytest.mark.slow
@pytest.mark.parametrize("messages", [False, True])
def test_trl_takes_pairs_for_what_they_are(venire: Venire, store: Path, messages: bool) -> None:
    datasets, _ = pytest.importorskip("datasets"), pytest.importorskip("trl")
    from trl.data_utils import is_conversational, maybe_extract_prompt, unpair_preference_dataset

    path = store.parent / "p.parquet"
    assert venire("export", store, "preferences", *["--messages"] * messages, "-o", path).code == 0
    found = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(store.parent / "cache"))
    assert is_conversational(found[0]) == messages
    assert maybe_extract_prompt(found[0]) == found[0]
    assert len(unpair_preference_dataset(found.select_columns(["prompt", "chosen", "rejected"]))) == 2 * len(found)


@pytest.mark.slow
def test_pandas_and_pyarrow_read_tables_and_the_leaderboard(venire: Venire, store: Path) -> None:
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    folder = store.parent
    for ending in ("parquet", "csv", "jsonl", "arrow"):
        assert venire("export", store, "battles", "-o", folder / f"b.{ending}").code == 0
    table = parquet.read_table(folder / "b.parquet")
    frames = [pandas.read_csv(folder / "b.csv"), pandas.read_json(folder / "b.jsonl", lines=True)]
    frames += [pandas.read_parquet(folder / "b.parquet"), pandas.read_feather(folder / "b.arrow")]
    for frame in frames:
        assert list(frame.columns) == table.column_names
        assert frame["model_b"].tolist() == table["model_b"].to_pylist()
        winners = frame["winner"].astype(object)
        assert winners.where(winners.notna(), None).tolist() == table["winner"].to_pylist()
    assert venire("export", store, "alpaca-eval", "--baseline", "ant", "-o", folder / "l.csv").code == 0
    board = pandas.read_csv(folder / "l.csv", index_col=0)  # as AlpacaEval reads it
    assert sorted(board.index) == sorted(set(MODELS) - {"ant"})
    assert (board["n_wins"] + board["n_wins_base"] + board["n_draws"] == board["n_total"]).all()
