"""`venire rate` by every method: one document, one interface, and a sentence for whatever does not fit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.ratings.methods.methods import METHODS

Venire = Callable[..., Any]

MODEL = ["model", "elo", "logit", "lo", "hi", "se", "rank_lo", "rank_hi", "battles", "tier", "best"]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five models on forty instructions in both orders: verdicts, scores, people's votes and lengths."""
    rng = np.random.default_rng(5)
    strength = dict(zip("abcde", (0.8, 0.4, 0.0, -0.4, -0.8), strict=True))
    rows = ["first,second,verdict,judge,instruction_id,score_difference,human_winner,length_first,length_second,kind"]
    for item in range(40):
        votes = {
            (a, b): bool(rng.random() < 1.0 / (1.0 + math.exp(strength[b] - strength[a])))
            for a in "abcde"
            for b in "abcde"
            if a < b
        }
        for a in "abcde":
            for b in "abcde":
                if a == b:
                    continue
                score = 2.0 * (strength[a] - strength[b]) + rng.normal(0.0, 1.5)
                verdict = "tie" if abs(score) < 0.3 else "first" if score > 0 else "second"
                won = votes[a, b] if a < b else not votes[b, a]
                lengths = rng.integers(50, 400, 2)
                kind = "odd" if item % 2 else "even"
                rows.append(
                    f"{a},{b},{verdict},j,q{item},{score:.3f},{'first' if won else 'second'},"
                    f"{lengths[0]},{lengths[1]},{kind}"
                )
    path = tmp_path_factory.mktemp("rate") / "scored.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


RATING = [name for name, one in METHODS.items() if one.rates and not one.orders]


@pytest.fixture
def board_of(venire: Venire, scored: Path) -> Callable[..., Any]:
    """The JSON document of a board by a method; that without more options is made once for all tests."""

    def made(method: str, *more: object) -> Any:
        if more or method not in BOARDS:
            extra = ("--covariate", "length", "--covariate", "position") if method == "covariates" else ()
            board = venire("rate", scored, "--method", method, *extra, *more, "--json").json()
            return board if more else BOARDS.setdefault(method, board)
        return BOARDS[method]

    return made


BOARDS: dict[str, Any] = {}


@pytest.mark.parametrize("method", [*RATING, "consistency"])
def test_every_method_prints_one_document_of_one_interface(board_of: Callable[..., Any], method: str) -> None:
    board = board_of(method)
    assert list(board) == ["method", "gauge", "verdicts", "models", "judges", "diagnostics"]
    assert (board["method"], board["gauge"]) == (method, "mean 1000")
    assert {"judge", "consistency", "decisive", "ties", "discrimination", "readable"} <= set(board["judges"][0])
    assert sorted(row["model"] for row in board["models"]) == ([] if method == "consistency" else list("abcde"))
    for row in board["models"]:
        assert list(row)[: len(MODEL)] == MODEL
        assert row["elo"] == pytest.approx(1000.0 + 400.0 / math.log(10.0) * row["logit"], abs=1e-3)
    if board["models"]:
        assert np.mean([row["elo"] for row in board["models"]]) == pytest.approx(1000.0, abs=1e-4)


@pytest.mark.parametrize("method", RATING)
def test_every_method_draws_instructions_again_where_asked(board_of: Callable[..., Any], method: str) -> None:
    board = board_of(method, "--bootstrap", 8, "--seed", 3)
    if method == RATING[0]:  # that each repeats itself is part of `check_method`
        assert board == board_of(method, "--bootstrap", 8, "--seed", 3)
    assert board["diagnostics"]["errors"] == "bootstrap over 40 instructions"
    for row in board["models"]:
        assert row["lo"] <= row["hi"]
        assert 1 <= row["rank_lo"] <= row["rank_hi"] <= 5


@pytest.mark.parametrize("method", RATING)
def test_one_anchor_shifts_any_method_and_has_no_error(board_of: Callable[..., Any], method: str) -> None:
    free, held = board_of(method), board_of(method, "--anchor", "c=1234.5")
    assert held["gauge"] == "anchored: c = 1234.5"
    elo, other = ({row["model"]: row["elo"] for row in board["models"]} for board in (free, held))
    assert other["c"] == pytest.approx(1234.5)
    # A ridge draws ratings to the mean, wherever the gauge is: the rest is a shift.
    assert {name: other[name] - other["c"] for name in other} == pytest.approx(
        {name: elo[name] - elo["c"] for name in elo}, abs=1e-3
    )
    row = next(row for row in held["models"] if row["model"] == "c")
    assert row["se"] in (None, pytest.approx(0.0, abs=1e-6))


def test_several_anchors_hold_bradley_terry_and_are_refused_elsewhere(venire: Venire, scored: Path) -> None:
    anchors = ("--anchor", "a=1100", "--anchor", "e=900")
    board = venire("rate", scored, *anchors, "--json").json()
    elo = {row["model"]: row["elo"] for row in board["models"]}
    assert (elo["a"], elo["e"]) == (1100.0, 900.0)
    refused = venire("rate", scored, "--method", "elo", *anchors)
    assert refused.code == 2
    assert "one anchor" in refused.err


def test_an_anchor_moves_every_elo_of_a_row(venire: Venire, shared_data: Path) -> None:
    table = shared_data / "softelo_sample" / "battles.parquet"
    name = "gpt-4o-2024-05-13"
    free, held = (
        {row["model"]: row for row in venire("rate", table, "--method", "soft-elo", *words, "--json").json()["models"]}
        for words in ((), ("--anchor", f"{name}=1200"))
    )
    shift = 1200.0 - free[name]["elo"]
    for model, row in free.items():
        for figure in ("elo", "human_elo", "placed_elo", "conformal_lo", "conformal_hi"):
            assert held[model][figure] == pytest.approx(row[figure] + shift, abs=1e-4)


def test_soft_elo_says_how_far_it_may_be_believed(venire: Venire, scored: Path) -> None:
    board = venire("rate", scored, "--method", "soft-elo", "--json").json()
    facts = board["diagnostics"]
    assert (facts["n_fit"], facts["beta"] > 0, 0 <= facts["ece"] <= 1) == (400, True, True)
    assert facts["leave_one_out"]["soft"]["mae"] < facts["leave_one_out"]["hard"]["mae"]
    assert facts["conformal"]["n"] == 4
    assert facts["conformal"]["expected"] is None  # four others cannot bound nine of ten
    assert {row["conformal_lo"] for row in board["models"]} == {None}


def test_soft_elo_says_beside_the_board_what_its_intervals_rest_on(venire: Venire, tmp_path: Path) -> None:
    """Few models have infinite intervals, and parts that never met are placed by the ridge alone: neither is silent."""
    rows = ["model_a,model_b,winner,score_difference,human_winner"]
    for a, b in (("a", "b"), ("b", "c"), ("a", "c"), ("d", "e"), ("e", "f"), ("d", "f")):
        rows += [f"{a},{b},model_a,2,model_a", f"{a},{b},model_b,-1,model_a", f"{a},{b},model_a,1,model_a"]
    table = tmp_path / "battles.csv"
    table.write_text("\n".join(rows))
    shown = " ".join(venire("rate", table, "--method", "soft-elo").out.split())
    assert "note: 5 calibration models" in shown
    assert "anchors fall into 2 parts" in shown


def test_soft_elo_of_recorded_votes_has_the_published_temperature(venire: Venire, shared_data: Path) -> None:
    table = shared_data / "softelo_sample" / "battles.parquet"
    for words in ((), ("--map", "winner=judge_winner")):
        board = venire("rate", table, *words, "--method", "soft-elo", "--json").json()
        facts = board["diagnostics"]
        assert (facts["beta"], facts["n_fit"]) == (pytest.approx(0.652204, abs=1e-5), 639)
        assert facts["conformal"]["expected"] == pytest.approx(13 / 14)


def test_covariates_are_told_with_their_errors_and_the_ratings_without(venire: Venire, scored: Path) -> None:
    words = ("--method", "covariates", "--covariate", "length", "--covariate", "position")
    board = venire("rate", scored, *words, "--json").json()
    effects = {one["name"]: one for one in board["diagnostics"]["covariates"]}
    assert set(effects) == {"length", "position"}
    for one in effects.values():
        assert one["lo"] < one["coefficient"] < one["hi"]
        assert abs(one["coefficient"]) < 4 * one["se"]  # neither plays a part in these verdicts
    assert all("elo_without" in row for row in board["models"])
    assert "covariate" in venire("rate", scored, *words).out


def test_ties_may_be_an_outcome_of_their_own(venire: Venire, scored: Path) -> None:
    refused = venire("rate", scored, "--ties", "davidson")
    assert refused.code == 2
    assert "--merge strict" in refused.err
    for ties, least in (("davidson", 0.0), ("rao-kupper", 1.0)):
        facts = venire("rate", scored, "--ties", ties, "--merge", "strict", "--json").json()["diagnostics"]
        assert facts["tie"] > least
        assert facts["tie_se"] > 0
    dropped = venire("rate", scored, "--ties", "drop", "--json").json()["diagnostics"]
    assert dropped["fits"][0]["judgments"] < dropped["judgments"]


def test_flips_are_ties_or_left_out(venire: Venire, scored: Path) -> None:
    kept, dropped = (venire("rate", scored, "--flips", one, "--json").json()["diagnostics"] for one in ("tie", "drop"))
    assert kept["flips"] > 0
    assert dropped["judgments"] == kept["judgments"] - kept["flips"]


def test_rows_are_kept_by_their_values(venire: Venire, scored: Path) -> None:
    board = venire("rate", scored, "--where", "kind=odd", "--json").json()
    assert board["diagnostics"]["judgments"] == 200
    refused = venire("rate", scored, "--where", "kind=green")
    assert refused.code == 2
    assert "odd" in refused.err
    assert "even" in refused.err


def test_errors_are_by_instruction_by_row_or_by_another_column(venire: Venire, scored: Path) -> None:
    by_default, by_row, by_kind = (
        venire("rate", scored, *words, "--json").json()["diagnostics"]
        for words in ((), ("--cluster", "none"), ("--cluster", "kind"))
    )
    assert (by_default["errors"], by_default["degrees"]) == ("cluster", 39.0)
    assert by_row["errors"] == "sandwich"
    assert (by_kind["errors"], by_kind["degrees"]) == ("cluster", 1.0)


def test_one_instruction_alone_is_said_to_give_no_errors(venire: Venire, tmp_path: Path) -> None:
    table = tmp_path / "battles.csv"
    table.write_text("model_a,model_b,winner,instruction_id\n" + "a,b,model_a,x\na,b,model_b,x\n")
    assert "errors: none" in " ".join(venire("rate", table).out.split())
    assert venire("rate", table, "--json").json()["diagnostics"]["degrees"] is None


def test_methods_stand_side_by_side(venire: Venire, scored: Path) -> None:
    found = venire("rate", scored, "--compare", "--json").json()
    assert found["methods"][0] == "bradley-terry"
    assert set(found["left_out"]) == {"covariates", "consistency"}
    assert found["kendall"]["bradley-terry"] == 1.0
    first = found["models"][0]
    assert (first["model"], first["rank"]["elo"], first["moved"]["elo"]) == ("a", 1, 0)
    beside = venire("rate", scored, "--compare", "--covariate", "length", "--json").json()
    assert {"bradley-terry", "covariates", "elo"} <= set(beside["methods"])
    assert set(beside["left_out"]) == {"consistency"}
    assert "did you mean 'elo'?" in venire("rate", scored, "--compare", "--method", "elo", "--method", "elon").err
    two = venire("rate", scored, "--compare", "--method", "elo", "--method", "win-rate")
    assert "elo" in two.out
    assert "trueskill" not in two.out
    assert venire("rate", scored, "--method", "elo", "--method", "win-rate").code == 2


def test_models_that_nothing_joins_are_not_ranked_against_each_other(venire: Venire, tmp_path: Path) -> None:
    battles = ["a,b,model_a", "a,b,model_a", "a,b,model_b", "b,c,model_a", "b,c,model_b"]
    battles += ["p,q,model_a"] * 9 + ["p,q,model_b"]
    table = tmp_path / "battles.csv"
    table.write_text("\n".join(["model_a,model_b,winner", *battles]))
    found = venire("rate", table, "--compare", "--method", "bradley-terry", "--method", "elo", "--json").json()
    ranks = {row["model"]: row["rank"] for row in found["models"]}
    assert [ranks[name]["bradley-terry"] for name in "abcpq"] == [1, 2, 2, None, None]
    assert None not in [ranks[name]["elo"] for name in "abcpq"]
    assert found["apart"] == ["bradley-terry"]
    shown = venire("rate", table, "--compare", "--method", "bradley-terry", "--method", "elo").out
    assert "common estimate exists under bradley-terry" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--method", "elon"), "here are: bradley-terry"),
        (("--method", "elo", "--ridge", "1"), "elo does not take ridge:"),
        (("--method", "elo", "--judge-weight", "j=2"), "elo does not take judge_weights (--judge-weight):"),
        (
            ("--method", "covariates", "--covariate", "length", "--flips", "drop", "--merge", "strict"),
            "covariates does not take merge, flips",
        ),
        (("--method", "consistency", "--anchor", "a=1200"), "consistency does not take anchors"),
        (("--method", "covariates"), "--covariate NAME"),
        (("--anchor", "z=1000"), "no model 'z'"),
        (("--anchor", "a"), "MODEL=ELO"),
        (("--level", "95"), "such as 0.95"),
        (("--ridge", "-1"), "ridge is -1"),
        (("--seed", "-1"), "seed is -1"),
        (("--cluster", "shelf"), "shelf"),
        (("--errors", "hessian"), "hessian"),
    ],
)
def test_what_does_not_fit_is_one_sentence(venire: Venire, scored: Path, words: tuple[str, ...], told: str) -> None:
    done = venire("rate", scored, *words)
    assert done.code == 2
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_win_rates_of_models_that_never_met_are_marked(venire: Venire, tmp_path: Path) -> None:
    path = tmp_path / "islands.csv"
    rows = [f"{a},{b},{won}" for a, b in ("ab", "cd") for won in ("model_a", "model_b", "model_a")]
    path.write_text("model_a,model_b,winner\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert "2 parts that never met" in venire("rate", path, "--method", "win-rate").out


def test_a_method_says_which_column_it_misses(venire: Venire, tmp_path: Path) -> None:
    plain = tmp_path / "plain.csv"
    plain.write_text("model_a,model_b,winner\na,b,model_a\nb,a,model_a\n", encoding="utf-8")
    for method, column in (("soft-elo", "score_difference"), ("human-elo", "human_winner")):
        done = venire("rate", plain, "--method", method)
        assert (done.code, column in done.err) == (2, True)


def test_a_ladder_of_thousands_of_models_is_rated(venire: Venire, tmp_path: Path) -> None:
    path = tmp_path / "ladder.csv"
    rows = [f"m{n:05d},m{n + 1:05d},{won}" for n in range(2000) for won in ("model_a", "model_b", "model_a")]
    path.write_text("model_a,model_b,winner\n" + "\n".join(rows) + "\n", encoding="utf-8")
    board = venire("rate", path, "--method", "m-elo", "--json").json()
    elo = np.array([row["elo"] for row in board["models"]])
    assert np.diff(elo) == pytest.approx(np.full(2000, -400 * math.log10(2.0)), abs=1e-4)


def test_boards_of_thousands_have_errors_where_asked_and_say_so(
    venire: Venire, scored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.ratings.inference.intervals._MAX_MODELS_WITH_ERRORS", 4)
    plain = venire("rate", scored, "--json").json()
    assert {row["se"] for row in plain["models"]} == {None}
    assert "more than 4 models" in plain["diagnostics"]["fits"][0]["errors_reason"]
    assert "more than 4 models" in venire("rate", scored).out
    asked = venire("rate", scored, "--errors", "sandwich", "--json").json()
    assert all(row["se"] > 0 and row["rank_lo"] for row in asked["models"])


def test_the_document_is_valid_where_nothing_is_known(venire: Venire, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text("model_a,model_b,winner\na,b,tie\n", encoding="utf-8")
    for method in METHODS:
        done = venire("rate", one, "--method", method, "--json")
        if done.code == 0:
            json.loads(done.out)
        assert "Traceback" not in done.err


@pytest.mark.parametrize("how", [("am-elo", "--habit", "position"), ("covariates", "--covariate", "position")])
def test_methods_of_single_verdicts_count_verdicts_and_not_judgments(
    venire: Venire, scored: Path, how: tuple[str, ...]
) -> None:
    judged = venire("rate", scored, "--json").json()["diagnostics"]
    single = venire("rate", scored, "--method", *how, "--json").json()["diagnostics"]
    assert (judged["merge"], single["merge"], single["flips_as"]) == ("mean", "none", "two verdicts")
    assert single["judgments"] == single["statuses"]["ok"] == single["fits"][0]["judgments"]
    assert single["judgments"] > 1.9 * judged["judgments"]
    assert (single["flips"], single["one_order"]) == (judged["flips"], 0)
    said = venire("rate", scored, "--method", *how).out
    assert (
        f"each verdict for itself; {single['judgments']} verdicts, {single['ties']} ties; {single['flips']} times"
        in said
    )
    assert "both orders" not in said


def test_words_of_a_table_are_read_as_told_and_columns_left_aside_are_named(venire: Venire, tmp_path: Path) -> None:
    path = tmp_path / "theirs.csv"
    path.write_text("model_a,model_b,winner,voter,why\noak,elm,it's A,ann,x\nelm,oak,B!,bob,y\n", encoding="utf-8")
    words = ("--value", "it's A=model_a", "--value", "B!=model_b")
    done = venire("rate", path, *words)
    assert done.code == 0
    assert "columns: voter as judge\nwinners: it's A as model_a, B! as model_b\ncolumns left aside: why\n" in done.out
    source = venire("rate", path, *words, "--json").json()["diagnostics"]["source"]
    assert source["left_aside"] == ["why"]
    for wrong, said in (("B!", "--value takes"), ("C=tie", "which no row has"), ("B!=b", "accepted: model_a, model_b")):
        refused = venire("rate", path, "--value", wrong)
        assert (refused.code, said in refused.err) == (2, True), refused.err
