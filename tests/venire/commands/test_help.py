"""The help of every verb: examples that can be typed, whole sentences, groups, words to choose from, completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from venire.cli import app
from venire.cli.help import Verb

BUILT: Any = get_command(app)


def verbs(group: Any = BUILT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from verbs(command, (*path, name))
        else:
            yield (*path, name), command


VERBS = dict(verbs())


def help_of(*path: str, short: bool = False) -> str:
    done = CliRunner().invoke(app, [*path, "-h" if short else "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return str(done.output)


@pytest.mark.parametrize("path", VERBS, ids="-".join)
def test_a_verb_ends_its_help_with_examples_that_can_be_typed(path: tuple[str, ...]) -> None:
    examples = help_of(*path).partition("\nExamples:\n")[2].splitlines()
    assert 2 <= len(examples) <= 4, examples
    typed = [shlex.split(part, comments=True) for line in examples for part in re.split("&&|<", line)]
    ours = [words[1:] for words in typed if words[:1] == ["venire"]]
    assert any(tuple(words[: len(path)]) == path for words in ours)
    for words in ours:
        given = max((one for one in VERBS if tuple(words[: len(one)]) == one), key=len)
        parser = VERBS[given].make_parser(VERBS[given].context_class(VERBS[given]))
        parser.parse_args(Verb.with_address(words[len(given) :]))


def test_h_is_help_everywhere_and_no_sentence_is_cut() -> None:
    for path in ((), ("store",), ("prompts",), ("import",), ("rate",)):
        text = help_of(*path, short=True)
        assert "-h, --help" in text
        assert "..." not in text.replace("PATH...", "").replace("ARGS]...", "").replace("}...", ""), text


def test_the_options_of_rate_are_in_groups() -> None:
    headings = re.findall(r"^(\w.*):$", help_of("rate"), re.M)
    assert headings == [
        "Arguments",
        "Method",
        "What is read",
        "How verdicts make judgments",
        "Intervals",
        "Of one method alone",
        "More figures",
        "Options",
        "Examples",
    ]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("rate",), "plackett-luce"),
        (("rate",), "llm-comparator"),
        (("audit",), "alike-judges"),
        (("simulate",), "half-banded"),
        (("simulate",), "direct-reference"),
        (("place",), "near-tie"),
        (("parse",), "alpaca-eval"),
        (("export",), "llm-comparator"),
    ],
)
def test_closed_lists_stand_in_the_help_and_no_name_is_broken(path: tuple[str, ...], name: str) -> None:
    assert re.search(rf"\b{name}\b", help_of(*path).partition("one of:")[2])


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        ("venire rate --method plac", {"plackett-luce"}),
        ("venire audit --check own", {"own-family"}),
        ("venire rate --ties d", {"drop", "davidson"}),
        ("venire pro", {"prompts"}),
    ],
)
def test_a_shell_completes_verbs_and_words(typed: str, proposed: set[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_VENIRE_COMPLETE": "complete_bash"}
    script = "import sys; sys.argv = ['venire']; from venire.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | words, capture_output=True, text=True)
    assert set(done.stdout.split()) == proposed, done.stderr


def test_help_of_all_imports_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['venire', '--help']\n"
        "from venire.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('heavy:', {'numpy', 'scipy', 'duckdb', 'pydantic', 'rich'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("heavy: set()\n")


def test_methods_and_formats_are_described() -> None:
    from venire.arena.registry import FORMATS, METHODS

    for verb, parts in (("methods", METHODS), ("formats", FORMATS)):
        shown = CliRunner().invoke(app, [verb]).output
        for name in parts:
            assert re.search(rf"^{re.escape(name)} +\w", shown, re.M), name


def test_a_worry_has_a_colour_on_a_terminal_and_its_word_everywhere() -> None:
    import io

    from rich.console import Console

    from venire.render.sections import show
    from venire.reports.audit.audit import Audit
    from venire.reports.audit.finding import Finding

    found = Finding(check="transitivity", worry=True, figure=2.0, threshold=1.0, says="there are circles")
    audit = Audit((found,), "real", read=1, models=2, judges=1, instructions=1, level=0.95, seed=0)
    for colour in (True, False):
        out = io.StringIO()
        screen = Console(file=out, force_terminal=True, width=130, no_color=not colour, color_system="standard")
        show(screen, audit.sections())
        assert "WORRY" in out.getvalue()
        assert ("\x1b[1;31m" in out.getvalue()) == colour
