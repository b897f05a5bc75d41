"""Logs of evaluation tools: answers are judged and imported, grades rated, and a wrong file is explained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duckdb
import pytest

from tests import logs
from tests.logs import ANSWERS, LOGS, MODELS, PROMPTS
from tests.venire.stores.test_formats import READ_ALONE
from venire.storage.store.opening import open_store
from venire.storage.transfer.answers import read_answers
from venire.storage.transfer.formats import FORMATS
from venire.storage.transfer.importing import answer_key

Venire = Callable[..., Any]

ZSTANDARD = (93).to_bytes(2, "little")
"""The number of this compression in a zip archive."""


def models_of(form: str) -> list[str]:
    return [f"lab/{one}" if form == "lm-eval" else one for one in MODELS]


def test_every_format_of_logs_has_a_file_here() -> None:
    assert {name for name, form in FORMATS.items() if form.samples is not None} <= LOGS.keys()


@pytest.mark.parametrize("form", LOGS)
def test_answers_of_a_log_are_imported_with_their_prompts(venire: Venire, tmp_path: Path, form: str) -> None:
    paths = LOGS[form](tmp_path)
    told = venire("import", form, *paths, "--store", tmp_path / "s.duckdb", "--json").json()
    assert (told["instructions"], told["completions"], told["skipped"]) == (2, 4, [])
    with open_store(tmp_path / "s.duckdb") as store:
        stored = {(turns[0], model.removeprefix("lab/"), text) for _, turns, model, text in answer_key(store)}
    assert stored == {(prompt, model, text) for prompt, said in ANSWERS.items() for model, text in said.items()}


@pytest.mark.parametrize("form", LOGS)
def test_a_log_is_known_by_its_columns_as_a_table_of_answers(tmp_path: Path, form: str) -> None:
    table = read_answers(LOGS[form](tmp_path))
    assert sorted(table.models) == models_of(form)
    assert table.common == 2


@pytest.mark.parametrize("form", [name for name in LOGS if FORMATS[name].dialects])
def test_grades_of_a_log_are_rated(venire: Venire, tmp_path: Path, form: str) -> None:
    told = venire("rate", *LOGS[form](tmp_path), "--json").json()
    assert [row["model"] for row in told["models"]] == models_of(form)
    source = told["diagnostics"]["source"]
    assert (source["format"], source["verdicts"], source["not_read"]) == (form, 2, 0)


def test_scores_are_rated_where_promptfoo_selected_none(venire: Venire, tmp_path: Path) -> None:
    told = venire("rate", *logs.promptfoo(tmp_path, select=False)).out
    assert "made from grades" in told
    assert "promptfoo" in told


def test_prompts_compete_where_promptfoo_tried_several(tmp_path: Path) -> None:
    (path,) = logs.promptfoo(tmp_path)
    whole = json.loads(path.read_text())
    results = whole["results"]["results"]
    whole["results"]["results"] = [
        {**one, "provider": {"id": "openai:ant"}, "prompt": {"raw": f"{label} {one['prompt']['raw']}", "label": label}}
        for one in results
        for label in ("Short:", "Long:")
    ][: 2 * len(PROMPTS)]
    path.write_text(json.dumps(whole))
    table = read_answers([path])
    assert table.models == ("openai:ant (Short:)", "openai:ant (Long:)")
    assert table.instructions[0].turns == (PROMPTS[0],)


def test_both_kinds_of_inspect_logs_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "json").mkdir()
    assert read_answers(logs.inspect_json(tmp_path / "json")).completions == (
        read_answers(logs.inspect_eval(tmp_path)).completions
    )


def test_an_inspect_archive_of_zstandard_is_read(tmp_path: Path) -> None:
    """Inspect writes it by default, and Python reads it from 3.14 on; the members are marked here as what they are."""
    expected = read_answers(logs.inspect_eval(tmp_path))
    for path in tmp_path.glob("*.eval"):
        with ZipFile(path) as archive:
            members = {name: archive.read(name).decode() for name in archive.namelist()}
        with ZipFile(path, "w") as archive, duckdb.connect() as connection:
            for name, text in members.items():
                packed = tmp_path / "packed.zst"
                how = "format csv, compression zstd, header false, quote '', escape ''"
                connection.execute(f"copy (select $text) to '{packed}' ({how})", {"text": text})
                archive.writestr(name, packed.read_bytes())
        marked = re.sub(rb"(PK\x03\x04.{4})..", lambda found: found[1] + ZSTANDARD, path.read_bytes(), flags=re.DOTALL)
        path.write_bytes(re.sub(rb"(PK\x01\x02.{6})..", lambda found: found[1] + ZSTANDARD, marked, flags=re.DOTALL))
    assert read_answers(sorted(tmp_path.glob("*.eval"))) == expected


def test_an_inspect_archive_that_cannot_be_unpacked_names_the_way_out(venire: Venire, tmp_path: Path) -> None:
    (path, _) = logs.inspect_eval(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    done = venire("judge", path, "--judge", "simulated")
    assert done.code == 2
    assert f"inspect log dump {path}" in done.err
    with ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "x")
    assert "no log of Inspect" in venire("rate", path).err


def test_multiple_choice_of_lm_eval_has_grades_and_no_answers(venire: Venire, tmp_path: Path) -> None:
    paths = logs.lm_eval(tmp_path)
    for path in paths:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row["resps"] = [[["-1.25", "False"]], [["-3.5", "True"]]]
            row["arguments"] = {
                "gen_args_0": {"arg_0": "?", "arg_1": " a"},
                "gen_args_1": {"arg_0": "?", "arg_1": " b"},
            }
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    told = venire("import", "lm-eval", *paths, "--store", tmp_path / "s.duckdb", "--json").json()
    assert (told["completions"], len(told["skipped"])) == (0, 4)
    assert "likelihoods" in told["skipped"][0]["why"]
    assert venire("rate", *paths, "--json").json()["models"][0]["model"] == "lab/ant"


def test_results_of_a_batch_need_its_requests(venire: Venire, tmp_path: Path) -> None:
    *results, _ = logs.batch(tmp_path)
    done = venire("judge", *results, "--judge", "simulated")
    assert done.code == 2
    assert "the requests of a batch" in done.err


def test_other_forms_of_batches_are_read(tmp_path: Path) -> None:
    text = [{"type": "text", "text": "Blue."}]
    rows: list[dict[str, Any]] = [
        {"custom_id": "a", "params": {"system": "Be brief.", "messages": [{"role": "user", "content": "?"}]}},
        {"custom_id": "a", "result": {"type": "succeeded", "message": {"model": "one", "content": text}}},
        {"custom_id": "a", "response": {"body": {"model": "two", "output": [
            {"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "Green."}]},
        ]}}},
        {"custom_id": "a", "result": {"type": "errored", "error": {"message": "overloaded"}}},
    ]  # fmt: skip
    path = tmp_path / "all.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    table = read_answers([path])
    assert [(one.model, one.text) for one in table.completions] == [("one", "Blue."), ("two", "Green.")]
    assert table.instructions[0].turns == ("[turn 1]\n[system]\nBe brief.\n\n[turn 2]\n?",)
    assert any("overloaded" in note for note in table.notes)


def test_a_log_without_grades_or_of_one_model_is_refused(venire: Venire, tmp_path: Path) -> None:
    (path, _) = logs.lm_eval(tmp_path)
    assert "all grades are of one model, 'lab/ant'" in venire("rate", path).err
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "metrics": []}) + "\n" for row in rows))
    assert "no answer has a grade" in venire("rate", path).err


@pytest.mark.parametrize("choice", ["left", '{"selected": "left"}', '[{"selected": "left"}]'])
def test_pairwise_exports_of_label_studio_as_csv_are_rated(venire: Venire, tmp_path: Path, choice: str) -> None:
    cell = choice.replace('"', '""')
    head = "annotation_id,annotator,created_at,id,lead_time,model_a,model_b,prompt,pairwise\n"
    rows = [f'{n},{n % 2},2026,{n},3.5,ant,bee,p{n},"{cell}"\n' for n in range(3)]
    path = tmp_path / "export.csv"
    path.write_text(head + "".join(rows) + "4,1,2026,4,3.5,ant,bee,p4,\n")
    told = venire("rate", path, "--json").json()
    source = told["diagnostics"]["source"]
    assert (source["format"], source["verdicts"], source["not_read"]) == ("label-studio", 4, 1)
    assert told["models"][0]["model"] == "ant"


def test_a_score_that_judgelm_did_not_give_is_not_read(venire: Venire, tmp_path: Path) -> None:
    (path,) = logs.judgelm(tmp_path)
    path.write_text(path.read_text().replace("9, 2", "I cannot say"))
    assert venire("rate", path, "--json").json()["diagnostics"]["source"]["not_read"] == 1


def test_a_generated_number_of_lm_eval_is_a_text_and_a_chat_a_prompt(tmp_path: Path) -> None:
    paths = logs.lm_eval(tmp_path)
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Pi?"}]
    for path in paths:
        row = json.loads(path.read_text().splitlines()[0])
        row["arguments"]["gen_args_0"]["arg_0"] = [json.dumps(said)]
        path.write_text(json.dumps({**row, "resps": [["3.14"]]}) + "\n")
    table = read_answers(paths)
    assert [one.text for one in table.completions] == ["3.14", "3.14"]
    assert table.instructions[0].turns == ("[turn 1]\n[system]\nBe brief.\n\n[turn 2]\nPi?",)


def test_choices_in_argilla_are_rated_and_other_answers_left_aside(venire: Venire, tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text(READ_ALONE["argilla"])
    told = venire("rate", path, "--json").json()
    source = told["diagnostics"]["source"]
    assert (source["format"], source["verdicts"], source["not_read"]) == ("argilla", 6, 0)
    assert {row["judge"] for row in told["judges"]} == {"u", "v", "w"}
