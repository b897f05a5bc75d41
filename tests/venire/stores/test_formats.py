"""What goes out in another tool's files comes back the same, and what a command says about files is true."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import venire as product
from tests.logs import LOGS
from tests.parameters import slow_after
from venire.arena.errors import InputError
from venire.storage.store.opening import open_store
from venire.storage.transfer.exporting import export_format
from venire.storage.transfer.formats import FORMATS, with_writers
from venire.storage.transfer.formats.entry import ExportOptions, file_name
from venire.storage.transfer.importing import add_texts, answer_key
from venire.testing import check_format

Venire = Callable[..., Any]


def answers(path: Path) -> list[tuple[str, tuple[str, ...], str, str]]:
    with open_store(path, create=False) as store:
        return sorted(answer_key(store))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("campaign", ["first", pytest.param("second", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("form", "files"),
    slow_after(
        2,
        ("mt-bench", "model_judgment/*.jsonl"),
        ("llm-comparator", "*.json"),
        ("arena-hard", "model_judgment/*/*.jsonl"),
    ),
)
def test_a_board_is_the_same_from_a_store_and_from_its_files(
    kept: Path, tmp_path: Path, form: str, files: str, campaign: str
) -> None:
    export_format(kept, tmp_path / "out", form, campaign=campaign)
    mine = product.rate(kept, campaign=campaign).to_json()
    read = product.rate(sorted((tmp_path / "out").glob(files))).to_json()
    assert [(row["model"], row["elo"], row["battles"]) for row in read["models"]] == [
        (row["model"], row["elo"], row["battles"]) for row in mine["models"]
    ]
    habits = ("judge", "consistency", "decisive", "ties", "flips", "first", "matchups")
    assert [{h: j[h] for h in habits} for j in read["judges"]] == [{h: j[h] for h in habits} for j in mine["judges"]]
    for name in ("judgments", "one_order", "flips", "ties"):
        assert read["diagnostics"][name] == mine["diagnostics"][name]
    assert read["diagnostics"]["statuses"]["ok"] == mine["diagnostics"]["statuses"]["ok"]
    assert read["diagnostics"]["source"]["format"] == form


@pytest.mark.parametrize("form", ["alpaca-eval", "chatbot-arena"])
def test_files_without_orders_keep_every_verdict_as_it_was(kept: Path, tmp_path: Path, form: str) -> None:
    export_format(kept, tmp_path / "out", form, campaign="first")
    name = {"alpaca-eval": "annotations.json", "chatbot-arena": "battles.json"}[form]
    read = product.rate(tmp_path / "out" / name).to_json()
    mine = product.rate(kept, campaign="first").to_json()
    assert read["diagnostics"]["statuses"] == mine["diagnostics"]["statuses"]
    with duckdb.connect(str(kept), read_only=True) as connection:
        won = connection.execute(
            "select case winner when 'tie' then 'tie' when 'model_a' then model_a when 'model_b' then model_b end, "
            "count(*) from battle where campaign = 'first' and status = 'ok' group by 1"
        ).fetchall()
    sides = ("generator_1", "generator_2", "preference") if form == "alpaca-eval" else ("model_a", "model_b", "winner")
    found: Counter[str] = Counter()
    for row in json.loads((tmp_path / "out" / name).read_text(encoding="utf-8")):
        first, second, winner = (row[side] for side in sides)
        if winner is not None:
            found[{1.0: first, "model_a": first, 2.0: second, "model_b": second}.get(winner, "tie")] += 1
    assert found == dict(won)


@pytest.mark.parametrize(
    ("form", "files"),
    slow_after(
        2,
        ("alpaca-eval", "model_outputs/*.json"),
        ("mt-bench", "question.jsonl model_answer/*.jsonl"),
        ("arena-hard", "question.jsonl model_answer/*.jsonl"),
    ),
)
def test_texts_come_back_as_they_went_out(kept: Path, tmp_path: Path, form: str, files: str) -> None:
    out = tmp_path / "out"
    export_format(kept, out, form)
    paths = sorted({path.resolve() for pattern in files.split() for path in out.glob(pattern)})
    with open_store(tmp_path / "back.duckdb") as store:
        add_texts(store, FORMATS[form].read, paths)
    names = slice(1, None) if form == "alpaca-eval" else slice(0, None)
    assert sorted(one[names] for one in answers(tmp_path / "back.duckdb")) == sorted(
        one[names] for one in answers(kept)
    )


def test_turns_samples_and_references_survive_the_way_out_and_in(tmp_path: Path) -> None:
    questions = [
        {"question_id": 81, "category": "math", "turns": ["1+1?", "+1?"], "reference": ["2\n\n3"]},
        {"question_id": 82, "category": "", "turns": ["Hi"], "reference": None},
    ]
    said = [
        {"question_id": 81, "model_id": "org/m", "choices": [["Two.\n", "\nThree."], ["2", "[turn 2]"]]},
        {"question_id": 82, "model_id": "org/m", "choices": [["[turn 1]\nHo"]]},
    ]
    for one in said:
        one["choices"] = [{"index": n, "turns": turns} for n, turns in enumerate(one["choices"])]  # type: ignore[arg-type]
    for name, rows in (("question.jsonl", questions), ("m.jsonl", said)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with open_store(tmp_path / "s.duckdb") as store:
        add_texts(store, FORMATS["mt-bench"].read, [tmp_path / "question.jsonl", tmp_path / "m.jsonl"])
    export_format(tmp_path / "s.duckdb", tmp_path / "out", "mt-bench")
    assert lines(tmp_path / "out" / "question.jsonl") == questions
    written = lines(tmp_path / "out" / "model_answer" / "org%2Fm.jsonl")
    assert [{key: row[key] for key in said[0]} for row in written] == said


Orders = dict[tuple[str, str, str], dict[str, list[str | None]]]


def orders_of(path: Path, campaign: str) -> Orders:
    """What each judge said in both orders, by instruction and the two models."""
    found: Orders = {}
    with duckdb.connect(str(path), read_only=True) as connection:
        for name, a, b, judge, won in connection.execute(
            "select instruction_id, model_a, model_b, judge, list(winner order by swapped) from battle "
            "where campaign = ? group by all",
            [campaign],
        ).fetchall():
            found.setdefault((name, a, b), {})[judge] = won
    return found


def test_pairs_are_what_most_judges_say_in_both_orders(kept: Path, tmp_path: Path) -> None:
    """The danger: a position habit or a single judge's taste becomes what a model is trained on."""
    expected = {}
    for (name, a, b), said in orders_of(kept, "second").items():
        votes = Counter(won[0] for won in said.values() if len(won) == 2 and won[0] is not None and won[0] == won[1])
        for side, chosen, rejected in (("model_a", a, b), ("model_b", b, a)):
            if 2 * votes[side] > sum(votes.values()):
                expected[name, chosen, rejected] = votes[side] / sum(votes.values())
    (made,) = export_format(kept, tmp_path / "out", "preferences", campaign="second")
    pairs = lines(tmp_path / "out" / "preferences.jsonl")
    keys = ("instruction_id", "chosen_model", "rejected_model")
    assert {tuple(pair[key] for key in keys): pair["agreement"] for pair in pairs} == expected
    assert made.rows == len(pairs) == len(expected) > 0
    assert all(0 < pair["margin"] <= 1 for pair in pairs)
    texts = {(model, name): text for name, _, model, text in answers(kept)}
    for side in ("chosen", "rejected"):
        assert all(pair[side] == texts[pair[f"{side}_model"], pair["instruction_id"]] for pair in pairs)


def test_pairs_of_one_judge_of_single_orders_and_of_each_verdict(kept: Path, tmp_path: Path) -> None:
    found = orders_of(kept, "second")
    judge = min(judge for said in found.values() for judge in said)
    said = [one[judge] for one in found.values() if judge in one]
    sums = [sum({"model_a": 1, "model_b": -1}.get(str(winner), 0) for winner in won) for won in said]
    counts = {
        "agreed": sum(won in (["model_a"] * 2, ["model_b"] * 2) for won in said),
        "decided": sum(total != 0 for total in sums),
        "every": sum(winner in ("model_a", "model_b") for won in said for winner in won),
    }
    for keep, count in counts.items():
        options = ExportOptions(keep, judges=(judge,))  # type: ignore[arg-type]
        out = tmp_path / f"{keep}.jsonl"
        (made,) = export_format(kept, out, "preferences", campaign="second", options=options)
        assert made.rows == count > 0
        assert {(pair["judge"], pair["judges"], pair["agreement"]) for pair in lines(out)} == {(judge, judge, 1.0)}


def test_pairs_as_messages_say_the_same(venire: Venire, kept: Path, tmp_path: Path) -> None:
    for name, more in (("texts", ()), ("messages", ("--messages",))):
        assert venire("export", kept, "preferences", *more, "-o", tmp_path / f"{name}.jsonl").code == 0
    texts, messages = lines(tmp_path / "texts.jsonl"), lines(tmp_path / "messages.jsonl")
    for name, role in (("prompt", "user"), ("chosen", "assistant"), ("rejected", "assistant")):
        assert [pair[name] for pair in messages] == [[{"role": role, "content": pair[name]}] for pair in texts]
    refused = venire("export", kept, "preferences", "--messages", "-o", tmp_path / "messages.csv")
    assert (refused.code, "do not fit into CSV" in refused.err) == (2, True)


def test_pairs_that_were_written_are_battles_that_the_chosen_won(venire: Venire, kept: Path, tmp_path: Path) -> None:
    assert venire("export", kept, "preferences", "-o", tmp_path / "out").code == 0
    board = venire("rate", tmp_path / "out" / "preferences.jsonl", "--bootstrap", "0", "--json").json()
    assert board["diagnostics"]["source"]["format"] == "preferences"
    assert board["diagnostics"]["ties"] == 0
    assert [row["judge"] for row in board["judges"]] == ["majority"]


WRITTEN = sorted(with_writers())


@pytest.mark.parametrize("form", [WRITTEN[0], *(pytest.param(one, marks=pytest.mark.slow) for one in WRITTEN[1:])])
def test_files_that_are_there_are_kept_unless_forced(venire: Venire, kept: Path, tmp_path: Path, form: str) -> None:
    words = ("export", kept, form, "-o", tmp_path / "out")
    done = venire(*words, "--json")
    assert done.code == 0
    for one in done.json()["files"]:
        assert Path(one["path"]).stat().st_size == one["bytes"]
    again = venire(*words)
    assert again.code == 2
    assert "is there already" in again.err
    assert venire(*words, "--force").code == 0


def test_tables_are_not_named_with_another_tool_s_format(venire: Venire, kept: Path, tmp_path: Path) -> None:
    done = venire("export", kept, "mt-bench", "battles", "-o", tmp_path / "o")
    assert (done.code, "mt-bench has files" in done.err) == (2, True)
    with pytest.raises(InputError, match="there are: agreed, decided, every"):
        export_format(kept, tmp_path / "o", "preferences", options=ExportOptions("all"))  # type: ignore[arg-type]
    assert not (tmp_path / "o").exists()


def test_a_model_s_name_makes_no_folder_and_two_names_stay_two() -> None:
    hostile = ["a/b", "a_b", "a%2Fb", "..", "../x", ".", "a\\b", "a\0b", "é"]
    names = [file_name(name) for name in hostile]
    assert len(set(names)) == len(hostile)
    assert not any({"/", "\\", "\0"} & set(name) or name.startswith(".") for name in names)


def test_the_board_says_what_the_files_were_taken_for(venire: Venire, tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    path.write_text("model_a,model_b,winner\na,b,model_a\na,b,model_b\na,b,tie (bothbad)\n", encoding="utf-8")
    shown = venire("rate", path, "--bootstrap", "0")
    assert "format: chatbot-arena" in shown.out
    assert "another: --format); 3 verdicts" in shown.out
    assert "both bad: 1, counted" in shown.out
    assert "--both-bad drop" in shown.out
    dropped = venire(
        "rate", path, "--both-bad", "drop", "--format", "chatbot-arena", "--json", "--bootstrap", "0"
    ).json()
    assert (dropped["diagnostics"]["judgments"], dropped["diagnostics"]["source"]["both_bad"]) == (2, 1)
    assert dropped["diagnostics"]["source"]["guessed"] is False


def test_what_does_not_apply_to_a_store_or_to_several_files_is_refused(
    venire: Venire, kept: Path, tmp_path: Path
) -> None:
    table = tmp_path / "b.csv"
    table.write_text("model_a,model_b,winner\na,b,model_a\n", encoding="utf-8")
    for words in ((kept, table), (kept, "--format", "mt-bench"), (table, table), (table, "--format", "x")):
        done = venire("rate", *words)
        assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)


def test_an_import_says_what_is_new_and_what_was_left_out(venire: Venire, tmp_path: Path) -> None:
    rows = [{"question_id": 1, "turns": ["Hi"]}]
    rows += [{"question_id": 1, "model_id": f"m{n}", "choices": [{"turns": ["$ERROR$"]}]} for n in range(5)]
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = venire("import", "mt-bench", path, "--store", tmp_path / "s.duckdb")
    assert "1 instructions" in done.out
    assert "0 completions new, 0 known" in done.out
    assert "row 2:" in done.out
    assert "answer of m0 is $ERROR$" in done.out
    assert "2 more rows" in done.out
    told = venire("import", "mt-bench", path, "--store", tmp_path / "s.duckdb", "--json").json()
    assert (told["instructions"], told["known"], len(told["skipped"])) == (0, 1, 5)
    assert venire("import", "alpaca-eval", path, "--store", tmp_path / "other.duckdb").code == 2
    assert not (tmp_path / "other.duckdb").exists()


FILES = {
    "alpaca-eval": ("model_outputs/*.json", "annotations.json"),
    "arena-hard": ("question.jsonl model_answer/*.jsonl", "model_judgment/*/*.jsonl"),
    "mt-bench": ("question.jsonl model_answer/*.jsonl", "model_judgment/*.jsonl"),
    "chatbot-arena": ("battles.json", "battles.json"),
    "llm-comparator": ("*.json", "*.json"),
    "preferences": ("preferences.jsonl", "preferences.jsonl"),
}
"""Of each format that is read and written: its files of texts and of verdicts."""


TABLE_OF_VERDICTS = "model_a,model_b,winner,judge,judge_winner,score_difference\nant,bee,model_a,j,model_a,1.5\n"
READ_ALONE = {
    "argilla": json.dumps(
        [
            {
                "id": str(number),
                "fields": {"prompt": f"p{number}", "response_a": "x", "response_b": "y"},
                "metadata": {"model_a": "ant", "model_b": "bee"},
                "responses": {
                    "preference": [{"value": "response_a", "user_id": "u"}, {"value": "tie", "user_id": "v"}],
                    "why": [{"value": "It is short.", "user_id": "u"}],
                    "order": [{"value": ["response_b", "response_a"], "user_id": "w"}],
                },
                "suggestions": {},
            }
            for number in range(2)
        ]
    ),
    "wildbench": json.dumps(
        [{"session_id": "s", "model_test": one, "score": n} for n, one in enumerate(("ant", "bee"))]
    ),
    "label-studio": json.dumps(
        [
            {
                "id": 1,
                "data": {"model_a": "ant", "model_b": "bee", "prompt": "p"},
                "annotations": [{"completed_by": 3, "result": [{"type": "pairwise", "value": {"selected": "left"}}]}],
            }
        ]
    ),
}
"""Of formats that are read and not written, a file where it is no table of pairs."""


@pytest.mark.parametrize("form", [name for name, one in FORMATS.items() if one.read or one.dialects])
def test_every_format_of_ours_keeps_the_contract(kept: Path, tmp_path: Path, form: str) -> None:
    if form in LOGS:
        paths = LOGS[form](tmp_path)
        check_format(form, texts=paths, verdicts=paths)
        return
    if FORMATS[form].write is None:
        path = tmp_path / ("verdicts.json" if form in READ_ALONE else "verdicts.csv")
        path.write_text(READ_ALONE.get(form, TABLE_OF_VERDICTS), encoding="utf-8")
        check_format(form, verdicts=[path])
        return
    export_format(kept, tmp_path / "out", form, campaign="first")
    texts, verdicts = (
        sorted(path for pattern in patterns.split() for path in (tmp_path / "out").glob(pattern))
        for patterns in FILES[form]
    )
    check_format(form, texts=texts, verdicts=verdicts)
    with pytest.raises(AssertionError, match="give `texts`, files with instructions and completions"):
        check_format(form)
