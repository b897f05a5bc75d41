"""Arguments that several verbs share: what a user may write, and what is said of a slip."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict, fields, make_dataclass
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer
from typer.main import get_command

import venire as vn
from venire.api import RunKeywords, RunOptions, VariedKeywords, VariedSettings
from venire.arena.choices import Habit
from venire.arena.errors import InputError
from venire.arena.hints import option_name
from venire.cli import app
from venire.cli.help import Verb
from venire.cli.options import records_of, with_options
from venire.cli.place import PlaceOptions
from venire.cli.simulate import VariedOptions
from venire.cli.verdict_options import FigureOptions, HabitChoice, RatingOptions, SourceOptions, anchors, where
from venire.placement.settings import PlaceKeywords, PlaceSettings
from venire.reports.board.source import SourceKeywords, VerdictSource
from venire.reports.figures import Figures
from venire.running import HostKeywords, RunHost


def test_an_anchor_is_a_model_and_its_rating_and_the_name_may_hold_an_equals_sign() -> None:
    assert anchors(["gpt-4=1250", "org/m=v2=-3.5"]) == {"gpt-4": 1250.0, "org/m=v2": -3.5}
    assert anchors(["a=1", "a=1.0"]) == {"a": 1.0}
    assert anchors([]) == {}


@pytest.mark.parametrize("given", ["gpt-4", "=1250", "gpt-4=", "gpt-4=high", "gpt-4=nan", "gpt-4=inf", ""])
def test_an_anchor_without_a_model_or_a_number_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="--anchor takes MODEL=ELO, as in --anchor gpt-4=1250, and got"):
        anchors(["a=1", given])


def test_a_model_is_anchored_once() -> None:
    with pytest.raises(InputError, match="--anchor gives a both 1 and 2 Elo points"):
        anchors(["a=1", "a=2"])


def test_conditions_are_gathered_by_column() -> None:
    given = ["kind=human", "kind=llm", "judge!=x", "note=a=b", "note!="]
    assert where(given) == {"kind": ("human", "llm"), "judge!": ("x",), "note": ("a=b",), "note!": ("",)}
    assert where([]) == {}


@pytest.mark.parametrize("given", ["kind", "=human", "!=human", ""])
def test_a_condition_without_a_column_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="--where takes COLUMN=VALUE or COLUMN!=VALUE"):
        where([given])


def test_every_habit_of_judges_can_be_named_on_the_command_line() -> None:
    assert [one.value for one in HabitChoice] == list(get_args(Habit))


VERBS: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]
VERBS["votes"] = VERBS["import"].get_command(None, "votes")
TAKERS = [
    pytest.param(verb, name, record, id=f"{verb} {name}")
    for verb, command in VERBS.items()
    for name, record in records_of(command.callback).items()
]


def test_the_verbs_that_read_verdicts_take_one_record() -> None:
    takers = {verb for verb, _, record in (one.values for one in TAKERS) if issubclass(record, SourceOptions)}
    assert takers == {"rate", "audit", "report"}


@pytest.mark.parametrize(("verb", "name", "record"), TAKERS)
def test_an_option_that_is_added_to_a_record_is_one_of_each_verb_that_takes_it(
    verb: str, name: str, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shade = Annotated[str, typer.Option("--shade", help="Added.")]
    copy = make_dataclass("Copy", [("shade", shade, "plain")], bases=(record,), frozen=True)
    taken: dict[str, Any] = {}
    function = inspect.unwrap(VERBS[verb].callback)
    monkeypatch.setitem(function.__annotations__, name, copy)

    @with_options()
    @wraps(function)
    def copied(**given: Any) -> None:
        taken.update(given)

    one_verb = typer.Typer(add_completion=False, rich_markup_mode=None)
    one_verb.command(verb, cls=Verb)(copied)
    command = get_command(one_verb)
    needed = [one for one in command.params if one.required]
    words = chain(*(["x"] if one.param_type_name == "argument" else [one.opts[-1], "x"] for one in needed))
    given = command.make_context(verb, [*words, "--shade", "dark"])
    copied(**given.params)
    assert taken[name].shade == "dark"
    (shown,) = [one.get_help_record(given) for one in command.params if "--shade" in one.opts]
    assert shown[1].startswith("Added.")


def test_each_setting_of_a_source_is_an_option_and_a_keyword() -> None:
    options = {one.name for one in fields(SourceOptions)}
    assert options == set(SourceKeywords.__annotations__)
    assert options | {"paths", "reference"} == {one.name for one in fields(VerdictSource)}
    for function in (vn.rate, vn.compare, vn.audit):
        assert options <= inspect.signature(function).parameters.keys()
    spelt = {one.name: one.opts[0] for one in VERBS["rate"].params}
    assert {name: option_name(name) for name in options} == {name: spelt[name] for name in options}
    rating, figures = ({one.name for one in fields(record)} for record in (RatingOptions, FigureOptions))
    assert rating == {one.name for one in fields(vn.Options)}
    assert figures == {one.name for one in fields(Figures)}


def test_a_keyword_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        vn.rate([{"model_a": "oak", "model_b": "elm", "winner": "tie"}], colour="red")  # type: ignore[call-arg]


def test_options_that_were_not_given_are_those_of_the_library() -> None:
    assert RatingOptions().options(0) == vn.Options()
    assert FigureOptions().figures() == Figures()
    assert SourceOptions().source([Path("x")]) == VerdictSource((Path("x"),))
    assert PlaceSettings.of("m", "x", **vars(PlaceOptions())) == PlaceSettings(Path("x"), "m")
    assert PlaceKeywords.__annotations__.keys() == {one.name for one in fields(PlaceOptions)}
    assert VariedOptions().keywords() == {name: [] for name in VariedKeywords.__annotations__}
    assert asdict(VariedSettings()) == dict.fromkeys(VariedKeywords.__annotations__, ())
    assert asdict(RunOptions()).keys() == RunKeywords.__annotations__.keys()
    assert asdict(RunHost()).keys() == HostKeywords.__annotations__.keys()


@pytest.mark.parametrize("function", [vn.rate, vn.compare, vn.audit, vn.run, vn.generate, vn.simulate, vn.place])
def test_a_keyword_that_is_none_is_refused_at_once_in_the_name_of_the_function(function: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'nope'"):
        function("no-such-file", nope=1)


def commands(group: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each verb with its words, those below another verb too."""
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *names, name)
    if not hasattr(group, "commands"):
        yield names, group


@pytest.mark.parametrize("number", ["nan", "inf", "x"])
def test_an_option_that_takes_a_number_is_refused_by_its_name_where_it_is_given_none(
    number: str, venire: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    walked = set()
    for words, command in commands(get_command(app)):
        assert isinstance(command, Verb)
        needed = [one for one in command.params if one.required]
        given = [*chain(*(["x"] if one.param_type_name == "argument" else [one.opts[-1], "x"] for one in needed))]
        numbers = [one.opts[0] for one in command.params if one.type_descriptor.annotation in (float, int)]
        walked |= set(numbers)
        for option in numbers:
            done = venire(*words, *given, option, number)
            assert done.code == 2, (words, option, done.err)
            assert option in done.err
            assert "Traceback" not in done.err
    assert {"--budget", "--seeds", "--level", "--speed", "--half-width"} <= walked
