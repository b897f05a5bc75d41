"""What a plain table may say beside who won: the order shown, shares, weights, scores, people, covariates, clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest

from venire.arena.battles import Battles
from venire.arena.errors import InputError
from venire.ratings.data.judgments import merge_orders
from venire.storage.transfer.formats import read_verdicts
from venire.storage.transfer.formats.battles import read_battles

Read = Callable[..., Battles]

SHOWN = "first,second,verdict,judge,instruction_id"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a table that is given as text."""

    def reading(
        text: str,
        mapping: Mapping[str, str] = {},
        where: Mapping[str, str | Sequence[str]] = {},
        features: Sequence[str] = (),
        cluster: str | None = None,
    ) -> Battles:
        path = tmp_path / "b.csv"
        path.write_text(text, encoding="utf-8")
        return read_battles(path, mapping, where=where, features=features, cluster=cluster)

    return reading


def test_first_and_second_say_the_order_shown(read: Read) -> None:
    found = read(f"{SHOWN}\na,b,first,j,i\nb,a,second,j,i\nb,a,first,k,i\na,b,tie,k,i\n")
    assert found.ordered
    merged = merge_orders(found)
    assert (merged.y.tolist(), merged.readable.tolist(), merged.flips) == ([1.0, 0.25], [2, 2], 0)


def test_a_judge_that_is_asked_again_is_numbered_in_the_order_of_the_file(read: Read) -> None:
    text = f"{SHOWN}\na,b,first,j,i\na,b,tie,j,i\nb,a,first,j,i\na,b,,j,i\na,b,first,k,i\na,b,first,j,h\n"
    found = read(text)
    assert found.repeat.tolist() == [1, 2, 1, 3, 1, 1]
    assert merge_orders(found).flips == 1


def test_repeats_of_the_file_stand_and_doubles_among_them_are_refused(read: Read) -> None:
    found = read(f"{SHOWN},repeat\na,b,first,j,i,2\nb,a,second,j,i,2\na,b,tie,j,i,1\n")
    assert found.repeat.tolist() == [2, 2, 1]
    with pytest.raises(InputError, match="in one order and one repeat"):
        merge_orders(read(f"{SHOWN},repeat\na,b,first,j,i,1\na,b,tie,j,i,1\n"))


def test_a_share_stands_for_the_winner(read: Read) -> None:
    found = read("model_a,model_b,score\na,b,1\na,b,0.5\nb,a,0.9\na,b,\n")
    assert found.outcome is not None
    assert np.array_equal(found.outcome, [1.0, 0.5, 0.9, np.nan], equal_nan=True)
    assert (found.label.tolist(), found.status.tolist()) == ([1, 0, 1, 0], [0, 0, 0, 1])
    assert merge_orders(found).y.tolist() == pytest.approx([0.1, 0.5, 1.0])


def test_a_share_that_is_no_number_in_a_typed_file_was_not_read(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            "select 'a' as model_a, 'b' as model_b, unnest([0.25, 'nan'::double, null]) as score"
        ).write_parquet(str(path))
    found = read_battles(path)
    assert (found.label.tolist(), found.status.tolist()) == ([-1, 0, 0], [0, 1, 1])


def test_a_score_beside_a_winner_is_left_alone_unless_it_is_mapped(read: Read) -> None:
    text = "model_a,model_b,winner,score\na,b,model_a,7\n"
    assert read(text).outcome is None
    with pytest.raises(InputError, match=r'row 1: "score" is "7"; accepted: a number from 0 to 1'):
        read(text, {"score": "score"})


def test_numbers_beside_the_winner_are_read_with_their_gaps(read: Read) -> None:
    found = read(
        "model_a,model_b,winner,weight,score_difference,human_winner,repeat\n"
        "a,b,model_a,2,-1.5,model_b,1\nb,a,tie,0,,b,2\na,b,tie,1e3,nan,,3\n"
    )
    assert found.weight is not None
    assert found.score is not None
    assert found.human is not None
    assert found.weight.tolist() == [2.0, 0.0, 1000.0]
    assert np.array_equal(found.score, [-1.5, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(found.human, [0.0, 1.0, np.nan], equal_nan=True)
    assert found.repeat.tolist() == [1, 2, 3]


def test_a_column_without_any_number_is_as_if_it_were_not_there(read: Read) -> None:
    found = read("model_a,model_b,winner,score_difference,human_winner\na,b,tie,,\n")
    assert (found.score, found.human) == (None, None)


@pytest.mark.parametrize(
    ("column", "cell", "accepted"),
    [
        ("weight", "-1", "a number, 0 or more"),
        ("weight", "inf", "a number, 0 or more"),
        ("weight", "", "a number, 0 or more"),
        ("repeat", "0", "a whole number from 1 on"),
        ("repeat", "1.5", "a whole number from 1 on"),
        ("repeat", "", "a whole number from 1 on"),
        ("score_difference", "big", "a number, or nothing"),
        ("human_winner", "nobody", "model_a, model_b, tie"),
    ],
)
def test_a_cell_that_cannot_be_meant_is_named(read: Read, column: str, cell: str, accepted: str) -> None:
    good = {"weight": "1", "repeat": "1", "score_difference": "", "human_winner": "tie"}[column]
    with pytest.raises(InputError, match=rf'b\.csv: row 2: "{column}" is "{cell}"; accepted: {accepted}'):
        read(f"model_a,model_b,winner,{column}\na,b,tie,{good}\na,b,tie,{cell}\n")


def test_a_winner_may_be_called_by_its_own_name_unless_that_is_a_word_for_the_other(read: Read) -> None:
    found = read("model_a,model_b,winner\nx,y,x\nx,y,y\ntie,x,x\n")
    assert found.label.tolist() == [1, -1, -1]
    with pytest.raises(InputError, match='row 1: "winner" is "tie", a word for a winner and the name'):
        read("model_a,model_b,winner\ntie,x,tie\n")


@pytest.mark.parametrize("sides", [("a", "b"), ("first", "second")])
def test_a_covariate_of_two_columns_is_their_relative_difference_by_its_deviation(
    read: Read, sides: tuple[str, str]
) -> None:
    one, two = (f"length_{side}" for side in sides)
    found = read(f"model_a,model_b,winner,{one},{two}\na,b,tie,3,1\na,b,tie,0,0\na,b,,0,9\n", features=["length"])
    relative = np.array([0.5, 0.0, -1.0])  # the last row has no winner: it is not in the deviation
    assert found.features["length"] == pytest.approx(relative / np.sqrt(0.25 / 2))
    with pytest.raises(InputError, match=rf'row 2: "{two}" is "-1"'):
        read(f"model_a,model_b,winner,{one},{two}\na,b,tie,3,1\na,b,tie,0,-1\n", features=["length"])


def test_a_covariate_of_one_column_is_taken_as_it_stands(read: Read) -> None:
    text = "model_a,model_b,winner,kin\na,b,tie,-1\nb,a,tie,0\n"
    assert read(text, features=["kin"]).features["kin"].tolist() == [-1.0, 0.0]
    assert not read(text).features
    with pytest.raises(InputError, match='no columns "size_a" and "size_b" and no column "size"'):
        read(text, features=["size"])


def test_another_column_may_say_what_belongs_together(read: Read) -> None:
    text = f"{SHOWN},topic\na,b,first,j,1,z\nb,a,first,j,1,z\na,b,tie,j,2,y\n"
    merged = merge_orders(read(text, cluster="topic"))
    assert (merged.clusters, merged.comparisons().clusters) == (("y", "z"), ("y", "z"))
    assert merged.comparisons(cluster="instruction").clusters == ("1", "2")
    assert merged.comparisons(cluster="none").cluster is None
    with pytest.raises(InputError, match='cluster names the column "subject"; columns found: first'):
        read(text, cluster="subject")
    with pytest.raises(InputError, match="in two clusters"):
        merge_orders(read(text, cluster="first"))


def test_rows_are_kept_by_their_values(read: Read) -> None:
    text = "kind,model_a,model_b,winner\nhuman,a,b,model_a\n,a,b,model_b\nllm,b,c,tie\n7,c,a,tie\n"
    assert read(text, where={"kind": "human"}).label.tolist() == [1]
    assert read(text, where={"kind": ["human", "7"]}).label.tolist() == [1, 0]
    assert read(text, where={"kind!": "llm"}).label.tolist() == [1, -1, 0]
    assert read(text, where={"kind": ""}).label.tolist() == [-1]
    assert read(text, where={"kind!": "", "winner": "tie"}).models == ("a", "b", "c")


def test_rows_keep_their_numbers_when_others_are_left_out(read: Read) -> None:
    with pytest.raises(InputError, match=r'row 3: "winner" is "\?"'):
        read("kind,model_a,model_b,winner\nx,a,b,?\ny,a,b,tie\ny,a,b,?\n", where={"kind": "y"})


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"sort": "human"}, 'where names the column "sort"; columns found: kind, model_a'),
        ({"kind": "person"}, '"kind" is "person" in no row; it holds: human, llm'),
        ({"kind": ["human", "person"]}, '"kind" is "person" in no row'),
        ({"kind": ""}, '"kind" is empty in no row'),
        ({"kind": "llm", "winner": "model_a"}, "no row has kind=llm and winner=model_a;"),
        ({"kind!": ["llm", "human"]}, "no row has kind!=llm or human"),
    ],
)
def test_a_condition_that_no_row_meets_is_refused(read: Read, where: dict[str, str | list[str]], words: str) -> None:
    with pytest.raises(InputError) as caught:
        read("kind,model_a,model_b,winner\nhuman,a,b,model_a\nhuman,a,b,tie\nllm,a,b,tie\n", where=where)
    assert words in str(caught.value)


def test_conditions_take_our_name_of_a_mapped_column(read: Read) -> None:
    text = "who,model_a,model_b,winner\nx,a,b,tie\ny,a,b,model_a\n"
    found = read(text, {"judge": "who"}, where={"judge": "y"})
    assert (found.judges, found.label.tolist()) == (("y",), [1])


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"winner": "w", "score": "s"}, "mapping names both winner and score"),
        ({"model_a": "x", "second": "y"}, "mapping names both model_a and second"),
    ],
)
def test_a_mapping_of_two_forms_is_refused(read: Read, mapping: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read("w,s,x,y\n1,1,a,b\n", mapping)


def test_people_of_soft_elo_are_turned_as_its_judge_is(tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    rows = ["0.1,0.0,1,2", "0.9,1,2,1", "0.5,0.52,1,1", "0.2,,2,2"]
    lines = [
        f"a,b,{judge},{people},{{'x': {one}}},{{'x': {two}}}"
        for judge, people, one, two in (r.split(",") for r in rows)
    ]
    path.write_text("\n".join(["model_a,model_b,judge_pref,human_pref,scores_a,scores_b", *lines]), encoding="utf-8")
    found = read_verdicts([path], None)
    assert found is not None
    assert found.format == "soft-elo"
    assert found.battles.label.tolist() == [1, -1, 0, 1]
    assert found.battles.human is not None
    assert np.array_equal(found.battles.human, [1.0, 0.0, 0.5, np.nan], equal_nan=True)


def test_softelo_keeps_scores_and_people_as_a_format_and_as_a_table(shared_data: Path) -> None:
    path = shared_data / "softelo_sample/battles.parquet"
    as_table = read_battles(path, {"winner": "judge_winner"})
    judged = read_verdicts([path], None)
    assert judged is not None
    for found in (as_table, judged.battles):
        assert found.score is not None
        assert found.human is not None
        assert [int((found.human == value).sum()) for value in (1.0, 0.0, 0.5)] == [330, 309, 361]
        assert np.array_equal(found.score, judged.score)
        assert [int((found.label == value).sum()) for value in (1, -1, 0)] == [380, 368, 252]
    kept = read_verdicts([path], None, where={"language": "en"})
    assert kept is not None
    assert 0 < len(kept.battles.label) < 1000


def test_rows_of_a_file_may_come_in_any_order_and_name_either_model_first(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    turned = {"model_a": "model_b", "model_b": "model_a", "tie": "tie", "": ""}
    given, other = [], []
    for number in range(80):
        a, b = rng.permutation(["w", "x", "y", "z"])[:2]
        winner, human = rng.choice([*turned], 2)
        weight, score, one, two = rng.integers(0, 5, 4)
        shared = (f"i{number % 7}", f"j{number % 3}", f"{weight}")
        given.append((*shared, a, b, winner, human, f"{score}", f"{one}", f"{two}"))
        mirrored = (*shared, b, a, turned[winner], turned[human], f"{-score}", f"{two}", f"{one}")
        other.append(mirrored if rng.random() < 0.5 else given[-1])
    header = "instruction_id,judge,weight,model_a,model_b,winner,human_winner,score_difference,words_a,words_b"
    merged = []
    for name, rows in (("one", given), ("other", [other[row] for row in rng.permutation(80)])):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([header, *(",".join(row) for row in rows)]), encoding="utf-8")
        merged.append(merge_orders(read_battles(path, features=["words"])))
    one, two = merged
    for column in ("model_a", "model_b", "judge", "instruction", "y", "weight", "score", "human"):
        np.testing.assert_array_equal(getattr(one, column), getattr(two, column), err_msg=column)
    np.testing.assert_allclose(one.features["words"], two.features["words"], rtol=0, atol=1e-14)
    assert (one.models, one.judges, one.unreadable) == (two.models, two.judges, two.unreadable)


def test_a_table_whose_people_always_tie_is_read(tmp_path: Path) -> None:
    """Checks of a column that holds one word once met an error of DuckDB's own."""
    path = tmp_path / "ties.csv"
    path.write_text("model_a,model_b,winner,judge,human_winner\na,b,model_a,x,tie\n", encoding="utf-8")
    human = read_battles(path).human
    assert human is not None
    assert human.tolist() == [0.5]
