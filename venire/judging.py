"""A campaign of one table of answers: its folder with tables, campaign file and store, made and brought up to date.

A rehearsal by simulated judges has a campaign file and a store of its own beside those of real judges, so that its
verdicts are on no board with theirs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from venire.arena.errors import InputError
from venire.arena.hints import setting_of
from venire.arena.records import Completion, Instruction
from venire.arena.wording import few, plain
from venire.configs.loading import campaign_of, checked_file, toml_value
from venire.configs.schema import Judge
from venire.configs.settings import plain_number
from venire.configs.short_names import missing_address
from venire.judges import PROTOCOLS
from venire.judges.providers.price_table import find_price, nearest_model, selling_vendor
from venire.judges.providers.vendors import vendor_of
from venire.reports.wording import counted
from venire.simulation.judge import parse_model
from venire.storage.transfer.answers import AnswerTable
from venire.storage.transfer.delimited import write_rows
from venire.storage.transfer.formats import tables

DEFAULT_MONEY = Decimal(1)
"""US dollars that a new campaign may spend where nobody says."""

_SIMULATED = "simulated"
_PROFILE = "gpt-4-0613"
_TABLES = ("instructions.csv", "completions.csv")
_IN_TABLE = "  # those in the table"
"""Marks a line of ours: a model that comes back to the table is compared again."""


@dataclass(frozen=True, slots=True)
class JudgingWishes:
    """What is wanted of a campaign: its judges by name, US dollars to spend (None: as it is), and a protocol."""

    judges: tuple[str, ...] = ()
    money: Decimal | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class JudgingFolder:
    """A folder that was made or brought up to date: its campaign file, and sentences about what has changed."""

    campaign: Path
    changes: tuple[str, ...]
    """Notes on how the table was read among them."""
    rehearsal: bool


def folder_of(paths: Sequence[Path]) -> Path:
    """Where a campaign of these tables is kept: beside the one table, or beside the folder of several.

    >>> str(folder_of([Path("some/answers.csv")])), str(folder_of([Path("-")]))
    ('some/answers.venire', 'answers.venire')
    """
    first = paths[0]
    if first == Path("-"):
        return Path("answers.venire")
    if len(paths) == 1:
        return first.with_name(f"{first.name.partition('.')[0] or 'answers'}.venire")
    folder = first.parent
    return folder.with_name(f"{folder.name}.venire") if folder.name else Path("answers.venire")


def prepare(
    folder: Path, answers: AnswerTable, made_from: str, wishes: JudgingWishes, *, runs: bool = True
) -> JudgingFolder:
    """Write tables and campaign file into a folder, or bring those that are there up to date.

    What people changed in the campaign file stays. `runs`: the campaign is run at once, so that all prices must be
    known. Raises InputError for no judge, for judges of which some alone are simulated, for one whose vendor, protocol
    or price is not known, and for answers that differ from those that a store of the folder has.
    """
    if runs:
        for name in wishes.judges:
            _refuse_unpriced(name, _judge(name, wishes.protocol), made_from)
    rehearsal = _is_rehearsal(folder, wishes.judges)
    if answers.all_equal:
        raise InputError(
            f"{made_from}: the answers to each prompt are the same text, and nothing can be compared: check which "
            f"column was read as the answers, and name the right one ({setting_of('mapping', 'response', 'COLUMN')})"
        )
    path = folder / ("rehearsal.toml" if rehearsal else "campaign.toml")
    before = _tables_before(folder)
    if before is not None and any(folder.glob("*.duckdb")):
        _refuse_changed(folder, before, answers)
    gone = () if before is None else tuple(name for name in before.models if name not in answers.models)
    there = path.exists()
    text = path.read_text(encoding="utf-8") if there else _new_text(made_from, wishes, rehearsal=rehearsal)
    text, changes = _amended(path, text, wishes, _battles(answers))
    if gone or _IN_TABLE in text:
        text = _with_models(text, answers.models)
    campaign_of(path, text)
    folder.mkdir(parents=True, exist_ok=True)
    _write_tables(folder, answers)
    path.write_text(text, encoding="utf-8")
    own = "; a rehearsal, in a store of its own" if rehearsal else ""
    made = _table_changes(before, answers) if there else [f"wrote {path} and its tables{own}"]
    return JudgingFolder(path, (*answers.notes, *made, *changes), rehearsal)


def _is_rehearsal(folder: Path, judges: Sequence[str]) -> bool:
    if not judges:
        there = [name for name in ("campaign.toml", "rehearsal.toml") if (folder / name).exists()]
        if not there:
            raise InputError(
                "name a judge, such as --judge openai:gpt-4.1-mini; --judge simulated rehearses without a key"
            )
        return there[0] == "rehearsal.toml"
    simulated = [name for name in judges if name.startswith(_SIMULATED)]
    if simulated and len(simulated) < len(judges):
        raise InputError(
            f"{simulated[0]} rehearses, and its verdicts are not put on one board with real ones: name simulated "
            "judges alone, or none"
        )
    return bool(simulated)


def _new_text(made_from: str, wishes: JudgingWishes, *, rehearsal: bool) -> str:
    money = "" if rehearsal else f"\n[budget]\nmoney = {plain_number(wishes.money or DEFAULT_MONEY)}  # US dollars\n"
    simulated = "# A rehearsal: simulated judges cost nothing and say nothing about real models.\n" if rehearsal else ""
    made_from = plain(made_from)
    return f"""# The judging of {made_from}. Change what you like: `venire judge` and `venire run` go on with it.
{simulated}
[data]
instructions = "{_TABLES[0]}"  # both from {made_from}
completions = "{_TABLES[1]}"

[plan]
policy = "balanced"  # every model, pair of models and prompt equally often
battles = 0  # of 0: every pair of models on every prompt, as far as the budget goes
round = 0
{money}"""


def _battles(answers: AnswerTable) -> int:
    """All battles that there may be: every pair of models on every prompt that all have answered."""
    models = len(answers.models)
    return max(1, models * (models - 1) // 2 * answers.common)


def _amended(path: Path, text: str, wishes: JudgingWishes, battles: int) -> tuple[str, list[str]]:
    """The text of a campaign file with what is wanted and not there, and sentences about that."""
    changes = []
    whole = r"(?m)^battles = (\d+)  # of \1: (.*)\nround = \1$"  # as it was written here, and not by somebody else
    text = re.sub(whole, rf"battles = {battles}  # of {battles}: \g<2>\nround = {battles}", text, count=1)
    if wishes.money is not None:
        amount = plain_number(wishes.money)
        changed = re.sub(r"(?m)^(\[budget\]\s+money = )[\d._]+", rf"\g<1>{amount}", text, count=1)
        if changed == text and f"money = {amount}" not in text and "[budget]" not in text:
            changed = f"{text.rstrip()}\n\n[budget]\nmoney = {amount}  # US dollars\n"
        if changed != text:
            changes.append(f"budget: ${amount}")
        text = changed
    known = checked_file(path).judge if path.exists() else []
    for name in dict.fromkeys(wishes.judges):
        judge = _judge(name, wishes.protocol)
        if any(_is_named(one, judge) for one in known):
            continue
        keys = dict(judge.given)
        if any(one.model == judge.model for one in known):  # asked by another protocol as well
            keys["name"] = f"{judge.model} {judge.protocol}"
        text = f"{text.rstrip()}\n\n[[judge]]\n" + "".join(f"{key} = {toml_value(keys[key])}\n" for key in keys)
        if not _is_priced(judge):
            text += "# price = { input = 1.0, output = 4.0 }  # US dollars per million tokens: put in its own\n"
        changes.append(f"judge {name} is new")
    return text, changes if path.exists() else []


def _is_named(known: Judge, named: Judge) -> bool:
    """Whether a judge of the campaign file is the one that a command names: its address may have been changed there.

    Taking it for another would ask both, one of them where nobody wants to ask any more.
    """
    if known.protocol != named.protocol:
        return False
    if known.model == named.given["model"]:  # with an address of its own a short name is not written out
        return True
    moved = known.base_url is not None and vendor_of(known.base_url) is vendor_of("")
    return known.model == named.model and (
        moved or (known.provider, known.base_url) == (named.provider, named.base_url)
    )


def _judge(name: str, protocol: str | None) -> Judge:
    """A judge that is named on the command line.

    Raises InputError where the name does not say where it is asked, or the protocol or the simulated judge is unknown.
    """
    model = name
    if name.startswith(_SIMULATED):
        profile = name.removeprefix(_SIMULATED).lstrip(":/") or _PROFILE
        model = f"{_SIMULATED}/{profile}{'' if '@' in profile else '@1'}"
        parse_model(model)
    elif Judge(model=name).base_url is None:
        if (vendor := selling_vendor(name)) is None:
            raise InputError(f"--judge {name}: its address is {missing_address(name)}")
        model = f"{vendor}:{name}"
    if protocol is None:
        return Judge(model=model)
    pairwise = [one for one in PROTOCOLS if PROTOCOLS[one].shape.pairwise]
    if protocol not in pairwise:
        raise InputError(f"--protocol {protocol}: shows no two answers, or is none; there are {few(pairwise, 12)}")
    return Judge(model=model, protocol=cast(Any, protocol))


def _refuse_unpriced(name: str, judge: Judge, made_from: str) -> None:
    """Raises InputError for a judge whose price is not known: it may be mistyped."""
    if _is_priced(judge):
        return
    near = nearest_model(judge.model, judge.base_url)
    said = f"did you mean {near}? Else, " if near else ""
    table = shlex.quote(made_from) if " " not in made_from else made_from
    raise InputError(
        f"--judge {name}: no price of this model is known: {said}`venire prices WORD` searches, and "
        f"`venire init FOLDER --from {table} --judge {name}` writes a campaign file in which to give it one, "
        "in the line below it, and which `venire run` runs"
    )


def _is_priced(judge: Judge) -> bool:
    free = judge.free or judge.model.startswith(_SIMULATED)
    return free or find_price(judge.model, judge.base_url) is not None


def _with_models(text: str, models: Sequence[str]) -> str:
    """The text of a campaign file that compares these models alone: the store has others, once in the table."""
    line = f"models = {toml_value(list(models))}{_IN_TABLE}"
    text, found = re.subn(r"(?m)^models = .*$", lambda _: line, text, count=1)
    return text if found else re.sub(r"(?m)^(completions = .*)$", lambda match: f"{match[1]}\n{line}", text, count=1)


def _tables_before(folder: Path) -> AnswerTable | None:
    """What the tables of a folder hold; None where they are not there."""
    asked, answered = (folder / name for name in _TABLES)
    if not (asked.exists() and answered.exists()):
        return None
    instructions = [one for one in tables.read(asked, "instructions") if isinstance(one, Instruction)]
    completions = [one for one in tables.read(answered, "completions") if isinstance(one, Completion)]
    return AnswerTable(tuple(instructions), tuple(completions), ())


def _refuse_changed(folder: Path, before: AnswerTable, now: AnswerTable) -> None:
    """Raises InputError where an answer, or the prompt of an id, is another one than the folder's stores have."""
    texts = {(one.model, one.instruction): one.text for one in before.completions}
    other = [one for one in now.completions if texts.get((one.model, one.instruction), one.text) != one.text]
    prompts = {one.id: one.turns for one in before.instructions}
    asked = [one.id for one in now.instructions if prompts.get(one.id, one.turns) != one.turns]
    if not other and not asked:
        return
    models = few([repr(name) for name in dict.fromkeys(one.model for one in other)])
    what = f"{counted(len(other), 'answer')} of {models} changed (first: to {other[0].instruction!r})" if other else ""
    if asked:
        what = f"the prompt {asked[0]!r} is another one"
    raise InputError(
        f"{folder}: {what} than when it was made, and what was judged stays: judge the table as it is now into another "
        f"folder, -o {folder.with_name(f'{folder.stem}-2{folder.suffix}')}, or give a changed model another name"
    )


def _table_changes(before: AnswerTable | None, now: AnswerTable) -> list[str]:
    if before is None:
        return []
    old, new = {one.id for one in before.instructions}, {one.id for one in now.instructions}
    changes = []
    if names := [name for name in now.models if name not in before.models]:
        changes.append(f"models new in the table: {few(names)}")
    if names := [name for name in before.models if name not in now.models]:
        changes.append(f"models gone from the table: {few(names)}; they are compared no more, their verdicts are kept")
    if new - old:
        changes.append(f"{counted(len(new - old), 'prompt')} new in the table")
    if old - new:
        changes.append(f"{counted(len(old - new), 'prompt')} gone from the table; the store keeps them in the plan")
    return changes


def _write_tables(folder: Path, answers: AnswerTable) -> None:
    rows: Mapping[str, tuple[tuple[str, ...], Iterable[Iterable[object]]]] = {
        _TABLES[0]: (
            ("instruction_id", "instruction", "category", "reference"),
            [(one.id, one.turns[0], one.category, one.reference) for one in answers.instructions],
        ),
        _TABLES[1]: (
            ("model", "instruction_id", "completion"),
            [(one.model, one.instruction, one.text) for one in answers.completions],
        ),
    }
    for name, (header, cells) in rows.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            write_rows(file, header, cells)
