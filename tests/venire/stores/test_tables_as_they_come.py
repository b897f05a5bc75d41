"""Tables as others write them: no remedy turns a board around, and what changes an interval is said beside it."""

from __future__ import annotations

import json
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.arena.errors import InputError
from venire.storage.transfer.formats import read_verdicts
from venire.storage.transfer.formats.columns import _SYNONYMS

Venire = Callable[..., Any]

PADDED = "model_a,model_b,winner\n x ,y,x\ny,x,x\n x ,y,x\nx,y,y\n x ,y,x\n"


def written(folder: Path, text: str, name: str = "verdicts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def on_questions(column: str) -> str:
    """Two verdicts of each of three pairs on twelve questions, of which each has a taste."""
    rng, rows = random.Random(3), []
    for question in range(12):
        taste = rng.random()
        for a, b in ("ab", "bc", "ca") * 2:
            rows.append(f"What is {question}?,{a},{b},{'model_a' if rng.random() < taste else 'model_b'}")
    return "\n".join([f"{column},model_a,model_b,winner", *rows]) + "\n"


def figures(board: Any) -> list[tuple[Any, ...]]:
    return [(row.model, row.elo, row.lo, row.hi, row.se, row.rank_lo, row.rank_hi) for row in board.models]


def test_spaces_around_names_make_no_other_models(venire: Venire, tmp_path: Path) -> None:
    path = written(tmp_path, PADDED)
    board = venire("rate", path, "--json").json()
    assert [row["model"] for row in board["models"]] == ["x", "y"]
    (note,) = (one for one in board["diagnostics"]["source"]["notes"] if "spaces around names" in one)
    assert "3 rows" in note
    ballots = written(tmp_path, "rater,model,rank\nann, x,1\nann,y,2\nbob,x ,1\nbob,y,2\n")
    assert [row.model for row in vn.rate(ballots).models] == ["x", "y"]


def test_one_unknown_word_leaves_the_others_known_and_its_remedy_turns_no_verdict(
    venire: Venire, tmp_path: Path
) -> None:
    rows = ["a,b,tie(all bad)", "a,b,A", "b,a,A", "b,a,B"] * 3
    path = written(tmp_path, "\n".join(["model_a,model_b,winner", *rows, "a,b,invalid", *rows, "a,b,invalid"]))
    path = written(tmp_path, path.read_text().replace("a,b", "oak,elm").replace("b,a", "elm,oak"))
    refused = venire("rate", path)
    assert refused.code == 2
    assert 'row 13: "winner" is "invalid"' in refused.err
    assert "all bad" not in refused.err
    remedy = re.search(r"--value \S+", refused.err)
    assert remedy is not None
    facts = venire("rate", path, *shlex.split(remedy[0]), "--json").json()["diagnostics"]
    assert (facts["ties"], facts["statuses"]["ok"], facts["statuses"]["unreadable"]) == (6, 24, 2)


@pytest.mark.parametrize("winner", ["OAK", "fig"])
def test_no_side_is_proposed_for_a_word_that_is_a_model(venire: Venire, tmp_path: Path, winner: str) -> None:
    path = written(tmp_path, f"model_a,model_b,winner\noak,elm,oak\nelm,fig,fig\nelm,oak,{winner}\n")
    refused = venire("rate", path)
    assert (refused.code, f'row 3: "winner" is "{winner}"' in refused.err) == (2, True)
    assert "--value" not in refused.err


def test_remedies_are_in_the_words_of_the_one_who_asked(venire: Venire, tmp_path: Path) -> None:
    unknown = written(tmp_path, "model_a,model_b,winner\noak,elm,nobody\n", "unknown.csv")
    lacking = written(tmp_path, "left,right,winner\noak,elm,left\n", "lacking.csv")
    for path, option, keyword in (
        (unknown, "--value nobody=", 'values={"nobody": ""}'),
        (lacking, "--map model_a=COLUMN", 'mapping={"model_a": "COLUMN"}'),
    ):
        assert option in venire("rate", path).err
        with pytest.raises(InputError) as refused:
            vn.rate(path)
        assert keyword in str(refused.value)
        assert "--" not in str(refused.value)


def test_what_names_a_question_is_the_instruction_and_is_said(tmp_path: Path) -> None:
    same = vn.rate(written(tmp_path, on_questions("instruction_id")))
    apart = vn.rate(written(tmp_path, on_questions("topic")))
    for column in _SYNONYMS["instruction_id"]:
        board = vn.rate(written(tmp_path, on_questions(column)))
        assert figures(board) == figures(same)
        assert figures(board) != figures(apart)
        (note,) = board.diagnostics.source.notes
        assert note.startswith(f"taken as the instruction: {column};")
    assert same.diagnostics.source.notes == ()
    assert "each row counts as independent" in apart.diagnostics.source.notes[0]


def test_orders_are_joined_within_a_question_whatever_it_is_called_and_wherever_the_table_is(tmp_path: Path) -> None:
    rows = [("oak", "elm", "first"), ("elm", "oak", "second"), ("oak", "fig", "first"), ("fig", "oak", "first")]
    columns = {name: [row[n] for row in rows * 2] for n, name in enumerate(("first", "second", "verdict"))}
    questions = [n // 4 for n in range(8)]
    expected = vn.rate({"instruction_id": questions, **columns})
    assert (expected.diagnostics.counts.merge, expected.diagnostics.counts.judgments) == ("mean", 4)
    messages = [[{"role": "user", "content": f"question {n}"}] for n in questions]
    for named in ({"sample_id": questions}, {"prompt": messages}, {"Question": [f"what is {n}?" for n in questions]}):
        assert figures(vn.rate({**named, **columns})) == figures(expected)
    lines = [
        {"prompt": message, **dict(zip(columns, row, strict=True))}
        for message, row in zip(messages, rows * 2, strict=True)
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, lines)), "verdicts.jsonl")
    assert figures(vn.rate(path)) == figures(expected)


def test_a_question_without_a_text_is_refused_with_the_rows_to_leave_out(venire: Venire, tmp_path: Path) -> None:
    path = written(tmp_path, "prompt,model_a,model_b,winner\nwhy?,oak,elm,oak\n,elm,oak,oak\nhow?,oak,elm,elm\n")
    refused = venire("rate", path)
    assert (refused.code, 'row 2: "prompt" is empty' in refused.err) == (2, True)
    remedy = refused.err.partition("(")[2].partition(")")[0]
    assert venire("rate", path, *shlex.split(remedy), "--json").json()["diagnostics"]["judgments"] == 2


def test_every_road_says_what_was_taken_as_the_instruction(venire: Venire, tmp_path: Path) -> None:
    path = written(tmp_path, on_questions("question_id"))
    said = "taken as the instruction: question_id"
    for words in (
        ("rate",),
        ("audit", "--check", "connectivity"),
        ("rate", "--compare", "--method", "bradley-terry", "--method", "kemeny"),
        ("report", "--out", "-", "--format", "md"),
    ):
        done = venire(words[0], path, *words[1:])
        assert (done.code, said in done.out.replace("\\", "")) == (0, True), words
    venire("report", path, "--out", tmp_path / "report.html")
    assert f">{said}" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_leaderboard_is_refused_as_verdicts_and_taken_as_a_reference(venire: Venire, tmp_path: Path) -> None:
    board = written(tmp_path, "model,score,rating_q025\noak,80,78\nelm,60,58\nfig,50,48\n", "leaderboard.csv")
    for verb, option in (("rate", "--format"), ("audit", "--format"), ("report", "--file-format")):
        refused = venire(verb, board, *(("--out", "-") if verb == "report" else ()))
        assert refused.code == 2
        assert f"--reference {board}; as one" in refused.err
        assert f"is rated with {option} ballots" in refused.err
    verdicts = written(tmp_path, on_questions("uid").replace("a,b", "oak,elm").replace("c,a", "fig,oak"))
    compared = venire("rate", verdicts, "--reference", board, "--json").json()
    assert {row["model"]: row["reference"] for row in compared["models"] if "reference" in row} == {
        "oak": 80,
        "elm": 60,
        "fig": 50,
    }
    assert venire("rate", board, "--format", "ballots").code == 0


def test_a_judgment_line_that_stands_twice_counts_once_and_nothing_else_is_lost(venire: Venire, tmp_path: Path) -> None:
    def line(uid: str, games: object) -> str:
        return json.dumps({"uid": uid, "judge": "j", "model": "m", "baseline": "base", "games": games})

    games = [{"score": "A>B", "judgment": "x"}, {"score": "B>>A", "judgment": "y"}]
    lines = [line("u1", games), line("u2", [{"score": None}, {"score": "A=B"}]), line("u3", [None, games[0]])]
    path = written(tmp_path, "\n".join([*lines, line("u1", games), line("u4", None)]), "judgments.jsonl")
    board = venire("rate", path, "--json").json()["diagnostics"]
    assert (board["source"]["verdicts"], board["statuses"]["unreadable"]) == (8, 4)
    taken, repeated = board["source"]["notes"]
    assert (taken.partition(";")[0], repeated[:19]) == ("taken as the instruction: uid", "1 line stands again")
    again = written(tmp_path, line("u1", games), "again.jsonl")
    assert venire("rate", path, again, "--json").json()["diagnostics"]["source"]["verdicts"] == 8
    other = written(tmp_path, line("u1", [games[0], {"score": "B>>A", "judgment": "z"}]), "other.jsonl")
    assert venire("rate", path, other, "--json").json()["diagnostics"]["source"]["verdicts"] == 10


def test_names_that_differ_in_form_only_are_noted_on_every_board(venire: Venire, tmp_path: Path) -> None:
    composed, combined = "caf\u00e9", "cafe\u0301"
    rows = [("GPT-4.1", composed), ("gpt-4.1", combined), (composed, "gpt-4.1"), (combined, "GPT-4.1")] * 2
    text = "".join(f"{n % 4},{a},{b},model_a\n" for n, (a, b) in enumerate(rows))
    path = written(tmp_path, "instruction_id,model_a,model_b,winner\n" + text)
    for done in (
        venire("rate", path),
        venire("rate", path, "--compare", "--method", "bradley-terry", "--method", "kemeny"),
        venire("report", path, "--out", "-", "--format", "md"),
    ):
        assert "GPT-4.1 and gpt-4.1" in done.out
        assert "cafe" in done.out
    (note,) = (one for one in vn.rate(path).diagnostics.notes if "Unicode" in one)
    assert ascii(composed) in note
    assert ascii(combined) in note


def test_grades_of_single_answers_are_read_or_their_columns_are_named(venire: Venire, tmp_path: Path) -> None:
    rows = [(1, "oak", 7), (1, "elm", 5), (2, "oak", 4), (2, "elm", 9), (2, "fig", 8)]
    scores = [{"session_id": one, "model_test": model, "score": str(score)} for one, model, score in rows]
    scores.append({"session_id": 1, "model_test": "fig", "score": "N/A"})
    wild = vn.rate(written(tmp_path, json.dumps(scores), "scores.json"))
    assert wild.diagnostics.source.format == "wildbench"
    assert wild.diagnostics.counts.statuses == {**wild.diagnostics.counts.statuses, "ok": 4, "unreadable": 2}
    table = "\n".join(["question_id,model_name,the_score", *(f"{one},{model},{score}" for one, model, score in rows)])
    path = written(tmp_path, table)
    refused = venire("rate", path)
    remedy = refused.err.partition("are read with ")[2]
    assert remedy.strip() == "--map model=model_name --map score=the_score"
    assert venire("rate", path, *shlex.split(remedy)).code == 0
    unscored = venire("rate", written(tmp_path, "question_id,model,text\n1,oak,a\n1,elm,b\n", "texts.csv")).err
    assert unscored.strip().endswith("--map score=COLUMN")


def test_votes_of_label_studio_are_read_with_who_gave_them_and_what_was_cancelled_is_none(tmp_path: Path) -> None:
    def vote(by: Any, selected: str | None, **more: Any) -> dict[str, Any]:
        result = [] if selected is None else [{"type": "pairwise", "value": {"selected": selected}}]
        return {"completed_by": by, "result": result, **more}

    data = {"prompt": "p", "model_a": "oak", "model_b": "elm"}
    votes = [
        vote(1, "left"),
        vote({"id": 2, "email": "bob"}, "right"),
        vote(3, "left", was_cancelled=True),
        vote(1, None),
    ]
    tasks = [
        {"id": 1, "data": data, "annotations": votes},
        {"id": 2, "data": {**data, "model_a": "elm", "model_b": "oak"}, "annotations": [vote(1, "right")]},
    ]
    found = read_verdicts([written(tmp_path, json.dumps(tasks), "project.json")], None)
    assert found is not None
    battles = found.battles
    judges, winners = [battles.judges[one] for one in battles.judge], battles.label * (1 - 2 * battles.status)
    a = [battles.models[one] for one in battles.model_a]
    assert list(zip(judges, a, winners.tolist(), strict=True)) == [
        ("1", "oak", 1),
        ("bob", "oak", -1),
        ("1", "oak", 0),
        ("1", "elm", -1),
    ]
    assert (len(battles.instructions), battles.ordered) == (1, True)
