"""From a table of answers to a leaderboard by one command, whatever the table looks like, or a sentence that helps."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.configs.loading import load_campaign
from venire.embedded import answer_key
from venire.simulation.faults import Faults
from venire.simulation.server import JudgeServer, serve_in_thread
from venire.storage.transfer.formats import files

Venire = Callable[..., Any]

PROMPTS = [f"Say hello in the language number {n}, in one sentence." for n in range(4)]
MODELS = ("gpt-4.1", "claude-haiku-4-5", "llama 3.3")
Rows = list[tuple[str, str, str]]


def answers() -> Rows:
    """Prompt, model and answer."""
    return [(prompt, model, f"Hello {prompt[-14:-1]}, says {model}.") for prompt in PROMPTS for model in MODELS]


def delimited(rows: Iterator[list[str]] | list[list[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def long(delimiter: str = ",", head: tuple[str, str, str] = ("prompt", "model", "response")) -> str:
    return delimited([list(head), *map(list, answers())], delimiter)


def wide(head: str = "question") -> str:
    by = {(prompt, model): text for prompt, model, text in answers()}
    rows = [[str(n), prompt, *(by[prompt, model] for model in MODELS)] for n, prompt in enumerate(PROMPTS)]
    return delimited([["id", head, *MODELS], *rows])


def alpaca_eval() -> str:
    return lines([{"instruction": p, "output": text, "generator": m, "dataset": "x"} for p, m, text in answers()])


def conversations() -> str:
    system = {"role": "system", "content": "Be kind."}
    return lines(
        [
            {
                "model": m,
                "messages": [system, {"role": "user", "content": p}, {"role": "assistant", "content": text}],
            }
            for p, m, text in answers()
        ]
    )


def gathered() -> str:
    return lines(
        [
            {"instruction": p, "completions": [{"model": m, "response": t} for q, m, t in answers() if q == p]}
            for p in PROMPTS
        ]
    )


def label_studio() -> str:
    by = {(prompt, model): text for prompt, model, text in answers()}
    return json.dumps(
        [
            {"id": n, "data": {"prompt": p, **{m: by[p, m] for m in MODELS}}, "annotations": []}
            for n, p in enumerate(PROMPTS)
        ]
    )


def parquet(path: Path) -> None:
    """As a DataFrame is written, whose ids were numbers with gaps."""
    with duckdb.connect() as connection:
        rows = ", ".join("(?, ?, ?, ?)" for _ in answers())
        cells = [cell for p, m, text in answers() for cell in (p, m, text, float(PROMPTS.index(p)))]
        table = f"select * from (values {rows}) as t(prompt, model_name, output, id)"
        connection.execute(f"create table t as {table}", cells)
        connection.sql("from t").write_parquet(str(path))


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "long": ("answers.csv", long),
    "wide": ("answers.csv", wide),
    "semicolons": ("answers.csv", lambda: long(";", ("Frage", "Modell", "Antwort"))),
    "tabs in .csv": ("answers.csv", lambda: long("\t", ("Instruction", "Model Name", "Completion"))),
    "alpaca_eval": ("outputs.jsonl", alpaca_eval),
    "messages": ("chats.jsonl", conversations),
    "gathered": ("ultra.jsonl", gathered),
    "Label Studio": ("export.json", label_studio),
    "UTF-16": ("answers.csv", long),
    "Parquet": ("answers.parquet", str),
    "standard input": ("-", wide),
    "a file each": ("answers/*.csv", str),
}


def write(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Writes a table of this kind into the folder; returns what names it on the command line."""
    name, text = TABLES[kind]
    if kind == "Parquet":
        parquet(folder / name)
    elif kind == "standard input":
        files._standard_input.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text().encode())))
    elif kind == "a file each":
        (folder / "answers").mkdir()
        for model in MODELS:
            rows = [[prompt, text] for prompt, other, text in answers() if other == model]
            (folder / "answers" / f"{model.replace('.', '-')}.csv").write_text(
                delimited([["prompt", "response"], *rows]), encoding="utf-8"
            )
    else:
        (folder / name).write_text(text(), encoding="utf-16" if kind == "UTF-16" else "utf-8")
    return name


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_comes_to_a_rehearsed_leaderboard_by_one_command(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write(kind, tmp_path, monkeypatch)
    german = ["prompt=Frage", "model=Modell", "response=Antwort"] if kind == "semicolons" else []
    done = venire("judge", table, "--judge", "simulated", "--yes", *(f"--map={pair}" for pair in german))
    assert done.code == 0, done.err
    assert " leads with " in done.out
    assert "simulated" in done.out
    assert "models:   3 " in done.err
    assert "4 prompts" in done.err
    folder = {"-": "answers", "answers/*.csv": "answers"}.get(table, table.partition(".")[0])
    assert (tmp_path / f"{folder}.venire" / "rehearsal.toml").is_file()


def test_the_same_command_again_asks_nothing(venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("judge", write("wide", tmp_path, monkeypatch), "--judge", "simulated", "--yes")
    first, again = venire(*words), venire(*words)
    assert again.code == 0
    assert "nothing was asked in this run" in again.err
    assert again.out == first.out


def test_a_rehearsal_does_not_shrink_what_follows(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    table = write("wide", tmp_path, monkeypatch)
    assert venire("judge", table, "--judge", "simulated", "--yes").code == 0
    asked = venire("judge", table, "--judge", "openai:gpt-4.1-mini")
    assert "battles:  12, every pair on every prompt" in asked.err


def test_who_declines_keeps_the_rehearsal_as_what_the_folder_names(
    rehearse: Callable[..., Any], venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert rehearse(answers()).code == 0
    assert venire("judge", "answers.csv", "--judge", "openai:gpt-4.1-mini").code == 2
    assert [one.name for one in (tmp_path / "answers.venire").glob("*.duckdb")] == ["rehearsal.duckdb"]
    assert venire("rate", "answers.venire").out == venire("rate", "answers.venire/rehearsal.toml").out != ""


def test_equal_answers_are_not_asked_and_no_budget_is_blamed(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    rows = [(prompt, model, "Hello." if prompt == PROMPTS[0] else text) for prompt, model, text in answers()]
    asked = rehearse(rows)
    assert "battles:  9 of 12; in 3 both answers are the same text, and are not asked\n" in asked.err
    assert "budget pays" not in asked.err


def test_equal_answers_alone_are_refused(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    refused = rehearse([(prompt, model, prompt) for prompt, model, _ in answers()])
    assert refused.code == 2
    assert "check which column was read as the answers" in refused.err
    assert not (tmp_path / "answers.venire").exists()


@pytest.fixture
def rehearse(venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes rows of answers and rehearses their judging."""
    monkeypatch.chdir(tmp_path)

    def run(rows: Rows, *more: str) -> Any:
        (tmp_path / "answers.csv").write_text(
            delimited([["prompt", "model", "response"], *map(list, rows)]), encoding="utf-8"
        )
        return venire("judge", "answers.csv", "--judge", "simulated", "--yes", *more)

    return run


def verdicts(folder: Path) -> int:
    with duckdb.connect(str(folder / "rehearsal.duckdb"), read_only=True) as store:
        return len(store.sql("from settled").fetchall())


def test_a_longer_table_is_judged_as_far_as_it_is_new(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    assert rehearse(answers()).code == 0
    assert verdicts(tmp_path / "answers.venire") == 4 * 3 * 2
    whole = [(prompt, model) for prompt in (*PROMPTS, "One more?") for model in ("new", *MODELS)]
    more = [(prompt, model, f"{model} says {prompt}") for prompt, model in whole]
    rows = {(prompt, model): (prompt, model, text) for prompt, model, text in (*more, *answers())}
    again = rehearse(list(rows.values()))
    assert again.code == 0
    assert "models new in the table: new" in again.err
    assert "1 prompt new in the table" in again.err
    assert "battles:  30, every pair on every prompt; 40% of them are judged" in again.err
    assert verdicts(tmp_path / "answers.venire") == 5 * 6 * 2


def test_a_budget_keeps_what_it_paid_for_when_a_table_grows(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "answers.venire" / "rehearsal.toml"
    assert rehearse(answers()[:6]).code == 0  # one battle a pair and prompt: 6 of 2 prompts
    file.write_text(file.read_text(encoding="utf-8") + "\n[budget]\ncalls = 36\n", encoding="utf-8")
    grown = rehearse([*answers(), *((prompt, "new", f"New: {prompt}") for prompt in PROMPTS)])
    assert "battles:  9 of 24, as many as the budget pays for; 67% of them are judged" in grown.err


def test_a_model_that_is_gone_is_compared_no_more(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    assert rehearse(answers()).code == 0
    two = [row for row in answers() if row[1] != "llama 3.3"]
    left = rehearse(two)
    assert left.code == 0
    assert "models gone from the table: llama 3.3" in left.err
    assert "models:   2 (claude-haiku-4-5, gpt-4.1)" in rehearse(two, "--judge", "simulated:bard").err


def test_a_changed_answer_is_refused_and_the_way_out_works(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    assert rehearse(answers()).code == 0
    before = (tmp_path / "answers.venire" / "completions.csv").read_text(encoding="utf-8")
    changed = [*answers()[:-1], (PROMPTS[-1], MODELS[-1], "Something else.")]
    refused = rehearse(changed)
    assert refused.code == 2
    assert "1 answer of 'llama 3.3' changed" in refused.err
    assert (tmp_path / "answers.venire" / "completions.csv").read_text(encoding="utf-8") == before
    assert "-o answers-2.venire" in refused.err
    assert rehearse(changed, "-o", "answers-2.venire").code == 0


def test_a_further_judge_is_added_and_what_people_wrote_stays(rehearse: Callable[..., Any], tmp_path: Path) -> None:
    assert rehearse(answers()).code == 0
    file = tmp_path / "answers.venire" / "rehearsal.toml"
    own = file.read_text(encoding="utf-8").replace("battles = 12", "battles = 6") + "concurrency = 3\n# mine\n"
    file.write_text(own, encoding="utf-8")
    done = rehearse(answers(), "--judge", "simulated:claude-3-opus")
    assert done.code == 0
    assert "judge simulated:claude-3-opus is new" in done.err
    assert file.read_text(encoding="utf-8").startswith(own)
    assert "by 2 judges" in done.out


def test_what_is_spent_is_raised_by_the_same_command(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    words = ("judge", write("wide", tmp_path, monkeypatch), "--judge", "openai:gpt-4.1-mini")
    few = venire(*words, "--budget", "0.01")
    assert "of 12, as many as the budget pays for" in few.err
    paid = re.search(r"battles:  (\d+) of 12", few.err)
    assert paid
    assert f"points with the {paid[1]} battles that the budget pays for (+-" in few.err
    assert f"{paid[1]} battles x 2 orders x 2 (reasons, then a verdict) = {int(paid[1]) * 4}" in few.err
    planned = venire("plan", "answers.venire/campaign.toml").out
    assert f"covers about {paid[1]} of the 12 battles" in planned
    assert re.search(rf"as the budget covers +{paid[1]} ", planned)
    assert "none: no board is possible of 3 models with the 1 battle" in venire(*words, "--budget", "0.003").err
    assert "in all, never more than $0.0100" in few.err
    assert "--yes" in few.err
    more = venire(*words, "--budget", "5")
    assert "budget: $5" in more.err
    assert "battles:  12, every pair on every prompt" in more.err


def test_what_is_set_aside_for_calls_without_an_answer_is_said_at_the_end(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write("long", tmp_path, monkeypatch)
    assert venire("init", "made", "--from", table, "--judge", "openai:gpt-4.1-mini").code == 0
    path = tmp_path / "made" / "campaign.toml"
    text = path.read_text("utf-8").replace('model = "openai:gpt-4.1-mini"', 'model = "simulated/bard@1"')
    path.write_text(text, encoding="utf-8")
    with serve_in_thread(JudgeServer(answer_key(load_campaign(path)), speed=0.0, faults=Faults(cut=0.5))) as server:
        moved = f'@1"\nbase_url = "{server.base_url}"\nprice = {{ input = 1.0, output = 1.0 }}\nmax_attempts = 1'
        path.write_text(text.replace('@1"', moved), encoding="utf-8")
        done = venire("judge", table, "-o", "made", "--yes")
    assert "without an answer count" in done.err
    assert "venire store release-unanswered made/campaign.duckdb" in done.err
    assert "reserved for calls without a known cost" in done.out


def test_a_missing_key_says_its_variable_and_where_to_get_one(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    done = venire("judge", write("wide", tmp_path, monkeypatch), "--judge", "anthropic:claude-haiku-4-5", "--yes")
    assert done.code == 2
    assert "ANTHROPIC_API_KEY" in done.err
    assert "Get a key at https://" in done.err


def test_init_writes_what_judge_does_and_run_runs_it(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write("long", tmp_path, monkeypatch)
    assert venire("init", "mine", "--from", table, "--judge", "simulated").code == 0
    assert not list((tmp_path / "mine").glob("*.duckdb"))
    assert venire("run", "mine/rehearsal.toml", "--yes").code == 0
    assert venire("judge", table, "--judge", "simulated", "--yes").code == 0
    for name in ("rehearsal.toml", "instructions.csv", "completions.csv"):
        assert (tmp_path / "mine" / name).read_bytes() == (tmp_path / "answers.venire" / name).read_bytes()
    assert venire("init", "dear", "--from", table, "--judge", "openrouter:some/new-model").code == 0
    assert "\n# price = { input = 1.0, output = 4.0 }" in (tmp_path / "dear" / "campaign.toml").read_text("utf-8")
    again = venire("init", "mine", "--from", table)
    assert again.code == 2
    assert "rehearsal.toml is there already" in again.err


BAD: dict[str, tuple[str, str, str]] = {
    "one model": ("a.csv", "prompt,model,response\np,a,x\nq,a,y\n", "add the answers of another model"),
    "no model": ("a.csv", "prompt,response\np,x\nq,y\n", "add a column model"),
    "two answers": ("a.csv", "prompt,model,response\np,a,x\np,b,y\np,a,z\n", "row 3: another answer of 'a'.*row 1"),
    "no common prompt": ("a.csv", "prompt,model,response\np,a,x\nq,b,y\n", "no prompt has an answer of every model"),
    "no prompt": ("a.csv", "prompt,model,response\np,a,x\n,b,y\n", 'row 2: "prompt" is empty'),
    "no answer": ("a.csv", "prompt,a,b\np,,\n", "holds no answer"),
    "no rows": ("a.csv", "prompt,model,response\n", "the table has no rows"),
    "nothing": ("a.csv", "", "the file is empty; a header and rows are needed"),
    "verdicts": ("a.csv", "model_a,model_b,winner\na,b,model_a\n", "venire rate a.csv"),
    "other columns": ("a.csv", "foo,bar\n1,2\n", "--map prompt=COLUMN"),
    "other words": (
        "a.csv",
        "Frage,KI,Antwort 1\nf,a,x\n",
        "--map prompt=Frage --map model=KI --map 'response=Antwort 1'",
    ),
    "no header": ("a.csv", "f,a,x\nf,b,y\n", "put prompt,model,response above it"),
    "no JSON": ("a.jsonl", '{"prompt": "p"}\n{oops\n', "line 2: no JSON"),
    "no table": ("a.xml", "<a/>", "accepted: .parquet, .csv"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_table_that_cannot_be_judged_is_a_sentence_with_a_remedy(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name, text, said = BAD[kind]
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = venire("judge", name, "--judge", "simulated", "--yes")
    assert (done.code, done.out) == (2, "")
    assert re.search(rf"^venire: {re.escape(name)}: .*{said}", done.err, re.MULTILINE), done.err
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["some/*.csv"], r"some/\*.csv: no file has such a name"),
        (["https://example.org/a.csv"], "curl -fsSL https://example.org/a.csv | venire"),
        (["."], 'a folder.*"./\\*.csv"'),
        (["a.csv", "--judge", "openai:gpt-4o"], "not put on one board with real ones"),
        (["a.csv", "--judge", "simulated:nobody"], "claude-3-opus"),
        (["a.csv", "--protocol", "tree-stage"], "two-stage"),
        (["a.csv", "--budget", "much"], "such as 2 or 0.50"),
        (["a.csv", "--budget", "nan"], "such as 2 or 0.50"),
        (["a.csv", "--budget", "sNaN"], "such as 2 or 0.50"),
        (["a.csv", "--map", "prommt=x"], "prompt, model, response"),
    ],
)
def test_words_that_cannot_be_meant_are_a_sentence(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("prompt,a,b\np,x,y\n", encoding="utf-8")
    done = venire("judge", *words, "--judge", "simulated")
    assert done.code == 2
    assert re.search(said, done.err), done.err
    assert not list(tmp_path.glob("*.venire"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--map", "model=KI"], "--map prompt=Frage --map response=Antwort"),
        (["--map", "prompt=Frage", "--map", "response=KI"], "no column says whose the answers are"),
        (["--map", "prompt=Frage", "--map", "question=KI"], 'names the column prompt twice: "Frage" and "KI"'),
    ],
)
def test_a_mapping_is_never_read_as_a_column_for_each_model(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("Frage,KI,Antwort\nf,a,x\nf,b,y\n", encoding="utf-8")
    done = venire("judge", "a.csv", "--judge", "simulated", *words)
    assert done.code == 2
    assert said in done.err


def test_a_wide_table_says_which_columns_were_read_as_what(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "prompt,expected,author,gpt,claude\np,e,z,1,y\nq,e,zz,2,yy\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    said = venire("judge", "a.csv", "--judge", "simulated").err.replace("\n", " ")
    assert (
        "reference answers: expected; models: author, claude; left aside: gpt, for its numbers: if gpt is a model"
        in said
    )
    assert "leave it out of the table" in said
    assert "--map reference" not in said


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("opnai:gpt-4o", "did you mean openai:gpt-4o"),
        ("openai:gpt4.1-mini", "did you mean openai:gpt-4.1-mini"),
        ("nobody", "write its vendor before it"),
    ],
)
def test_a_judge_that_is_mistyped_is_a_sentence_and_leaves_nothing(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = venire("judge", write("long", tmp_path, monkeypatch), "--judge", judge)
    assert done.code == 2
    assert said in done.err
    assert not list(tmp_path.glob("*.venire"))


@pytest.mark.parametrize(
    "words",
    [
        ["rate", "answers.csv"],
        ["import", "table", "answers.csv", "--kind", "instructions", "--map=instruction_id=prompt",
         "--map=instruction=prompt", "--store", "s.duckdb"],
    ],
)  # fmt: skip
def test_other_commands_send_a_table_of_answers_here(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write("long", tmp_path, monkeypatch)
    done = venire(*words)
    assert done.code == 2
    assert "`venire judge answers.csv`" in done.err
    assert "keep one of them" not in done.err


def test_a_folder_of_a_dataset_is_its_tables(venire: Venire, tmp_path: Path) -> None:
    folder = tmp_path / "dataset"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    (folder / "dataset_infos.json").write_text("{}")
    parquet(folder / "data" / "train-00000-of-00001.parquet")
    done = venire("init", tmp_path / "mine", "--from", folder, "--judge", "simulated")
    assert done.code == 0
    assert len((tmp_path / "mine" / "completions.csv").read_text().splitlines()) == 1 + len(answers())


def test_a_dataset_without_tables_says_what_to_do(venire: Venire, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "state.json").write_text("{}")
    assert "without a table in it" in venire("judge", folder, "--judge", "simulated").err
    (folder / "data-00000-of-00001.arrow").write_bytes(b"x")
    done = venire("judge", folder, "--judge", "simulated")
    assert done.code == 2
    assert "to_parquet(" in done.err


def test_a_model_that_comes_back_to_the_table_is_compared_again(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "answers.csv"
    words = ("judge", table, "--judge", "simulated", "--yes")
    for kept in (MODELS, MODELS[:2], MODELS):
        rows = [list(row) for row in answers() if row[1] in kept]
        table.write_text(delimited([["prompt", "model", "response"], *rows]), encoding="utf-8")
        assert venire(*words).code == 0
    assert "3 models" in venire("status", tmp_path / "answers.venire").out
    assert "llama 3.3" in venire(*words).out


@pytest.mark.parametrize("model", ["openai:gpt-4.1-mini", "gpt-4.1-mini"])
def test_a_judge_whose_address_was_changed_is_not_asked_at_its_vendor_as_well(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table, judge = write("long", tmp_path, monkeypatch), ("--judge", "openai:gpt-4.1-mini")
    assert venire("init", "made", "--from", table, *judge).code == 0
    path = tmp_path / "made" / "campaign.toml"
    moved = f'model = "{model}"\nbase_url = "http://127.0.0.1:9/v1"\nfree = true'
    path.write_text(path.read_text("utf-8").replace('model = "openai:gpt-4.1-mini"', moved), encoding="utf-8")
    done = venire("judge", table, *judge, "-o", "made")
    assert "api.openai.com" not in done.err
    assert path.read_text("utf-8").count("[[judge]]") == 1


def test_a_name_of_a_file_is_no_part_of_the_campaign(
    venire: Venire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = 'a\n[[judge]]\nmodel = "x"\n#.csv'
    (tmp_path / name).write_text(long(), encoding="utf-8")
    assert venire("init", "made", "--from", name, "--judge", "simulated").code == 0
