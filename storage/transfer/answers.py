"""A table of prompts and answers, as people hold them: which of its columns are what, and whose answers they are.

| form | columns |
|---|---|
| long | a prompt, a model and an answer in each row; in files of one model each, the file's name is the model's |
| wide | a prompt, and a column of answers for each model |
| conversations | a list of messages that ends with the answer, in place of prompt and answer |
| gathered | a prompt, and all its answers in one column: an object by model, or a list of objects |

Files of other tools are known by their columns (`Format.signs`) and read as `venire import` reads them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of
from venire.arena.records import Completion, Instruction
from venire.arena.wording import few
from venire.storage.transfer.formats import FORMATS, Format, form_of
from venire.storage.transfer.formats.columns import ANSWER_COLUMNS, column_named
from venire.storage.transfer.formats.source import MissingColumnError, TableFile, TableSource, open_table
from venire.storage.transfer.formats.texts import (
    Skipped,
    TextRow,
    digest_id,
    joined,
    message_turn,
    messages,
    turns_of,
)

_OURS = {
    "instruction": "prompt",
    "model": "model",
    "completion": "response",
    "instruction_id": "id",
    "category": "category",
    "reference": "reference",
}
"""Those that a mapping may name, by any name of `ANSWER_COLUMNS`, and what messages call them."""
_ROW = ("instruction", "model", "completion")
"""What each row of a long table has."""

_ASIDE = re.compile(
    r"(unnamed.*|index|row|no|#|split|source|dataset|lang(uage)?|tags?|notes?|comments?|winner|preference|label|score"
    r"|scores|rating|difficulty|level|date|time|timestamp|created(_at)?|updated(_at)?|url|link|tokens|latency|cost"
    r"|seed|temperature|finish_reason|system_prompt|metadata|meta|.*_(id|tokens|length|score|latency|cost|time))",
    re.IGNORECASE,
)
"""Columns of a wide table that are no model's."""

_WHOLE = re.compile(r"\d+(\.0+)?")
_SLUG = 4
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """The prompts and answers of a table, each prompt once, and sentences about how they were read."""

    instructions: tuple[Instruction, ...]
    completions: tuple[Completion, ...]
    notes: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order in which the table has them."""
        return tuple(dict.fromkeys(one.model for one in self.completions))

    @property
    def common(self) -> int:
        """How many prompts have an answer of every model: these are judged."""
        answered = Counter(one.instruction for one in self.completions)
        return sum(count == len(self.models) for count in answered.values())

    @property
    def all_equal(self) -> bool:
        """Whether all answers to a prompt are the same text, for each prompt: then there is nothing to compare."""
        texts = {(one.instruction, one.text) for one in self.completions}
        return len(texts) == len({one.instruction for one in self.completions})


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer as it stands in a table; `place` names its file and row."""

    prompt: str
    model: str
    text: str
    place: str
    id: str | None = None
    category: str = ""
    reference: str | None = None


def read_answers(sources: Sequence[TableSource], mapping: Mapping[str, str] = {}) -> AnswerTable:
    """The prompts and answers of a table, or of several that belong together.

    `mapping` is from our column names to the table's: prompt, model, response, id, category and reference, or what
    tables usually call these. A prompt without an id is named by its first words and a digest, so that it keeps its
    name where rows are added. Raises InputError that names file and row, with what to do: for columns that cannot be
    recognised, answers of fewer than two models, a prompt with two answers of one model, and models that have no
    prompt in common.
    """
    mapping = _in_our_names(mapping)
    notes: list[str] = []
    named = None if mapping else next(filter(None, map(form_of, sources)), None)
    if named is not None:
        found = list(_of_format([one for one in sources if isinstance(one, Path)], FORMATS[named], notes))
    else:
        found = [one for source in sources for one in _of_table(source, mapping, notes, several=len(sources) > 1)]
    return _checked(", ".join(map(str, sources[:3])), found, notes)


def _in_our_names(mapping: Mapping[str, str]) -> dict[str, str]:
    """A mapping by our names of columns. Raises InputError for a name that is none, or a second one of a column."""
    found: dict[str, str] = {}
    for name, theirs in mapping.items():
        ours = next((ours for ours in _OURS if name.lower() in (ours, *ANSWER_COLUMNS[ours])), None)
        if ours is None:
            raise InputError(
                f'{setting("mapping")} names "{name}", which is no column of ours; those are '
                f"{', '.join(_OURS.values())}"
            )
        if found.setdefault(ours, theirs) != theirs:
            raise InputError(
                f'{setting("mapping")} names the column {_OURS[ours]} twice: "{found[ours]}" and "{theirs}"'
            )
    return found


def _of_format(paths: Sequence[Path], form: Format, notes: list[str]) -> Iterator[_Answer]:
    assert form.read is not None
    asked = {record.id: record for record in form.read(paths) if isinstance(record, Instruction)}
    what = few([str(path) for path in paths], 3)
    for record in form.read(paths):
        if isinstance(record, Skipped):
            notes.append(f"left out: {record.path}: row {record.row}: {record.why}")
        elif isinstance(record, Completion) and record.sample > 1:
            notes.append(f"{what}: of several answers of one model to a prompt the first is judged")
        elif isinstance(record, Completion):
            if (one := asked.get(record.instruction)) is None:
                raise InputError(
                    f"{what}: has answers to {record.instruction!r} and not that prompt: give the file of prompts as "
                    "well, such as question.jsonl or the requests of a batch"
                )
            prompt = joined(one.turns) or "\n\n".join(one.turns)
            given = None if one.id == digest_id(one.turns) else one.id
            yield _Answer(prompt, record.model, record.text, what, given, one.category, one.reference)


def _of_table(source: TableSource, mapping: Mapping[str, str], notes: list[str], *, several: bool) -> list[_Answer]:
    with closing((table := open_table(source)).connection):
        return list(_rows(_flattened(table), mapping, notes, several=several))


def _flattened(table: TableFile) -> TableFile:
    """A table whose rows hold all of them in one structure, `data`, as tasks of Label Studio do, without it."""
    if "data" not in table.columns or column_named(table, ANSWER_COLUMNS["instruction"]) is not None:
        return table
    data = table.json("data")
    found = table.execute(f"select distinct json_keys({data}) from {{table}} where json_valid({data})").fetchall()
    keys = dict.fromkeys(key for (row,) in found for key in row or ())
    if not keys:
        return table
    paths = ["'/" + key.replace("~", "~0").replace("/", "~1").replace("'", "''") + "'" for key in keys]
    cells = [f"json_extract_string({data}, {path}) as c{number}" for number, path in enumerate(paths)]
    kinds = ", ".join(f"bool_or(json_type({data}, {path}) in ('OBJECT', 'ARRAY'))" for path in paths)
    nested = table.execute(f"select {kinds} from {{table}}").fetchone() or ()
    columns = {key: "STRUCT" if inner else "VARCHAR" for key, inner in zip(keys, nested, strict=True)}
    return replace(table, columns=columns, delimited=True, reader=f"(select {', '.join(cells)} from {table.reader})")


def _rows(table: TableFile, mapping: Mapping[str, str], notes: list[str], *, several: bool) -> Iterator[_Answer]:
    """The answers of a table of any form."""
    theirs = {
        ours: table.column(ours, mapping) if ours in mapping else column_named(table, names, {*mapping.values()})
        for ours, names in ANSWER_COLUMNS.items()
    }
    columns = {ours: name for ours, name in theirs.items() if name is not None}
    if columns.get("input") == columns.get("instruction"):
        columns.pop("input", None)
    if "instruction" not in columns and "messages" not in columns:
        raise _unclear(table, columns)
    taken = {name for ours, name in columns.items() if ours not in ("completion", "gathered", "messages")}
    others = [name for name in table.columns if name not in taken and not table.nested(name)]
    wide = [name for name in others if not _ASIDE.fullmatch(name) or name in mapping.values()]
    split = "instruction" in columns and "completion" in columns
    if "gathered" in columns and table.nested(columns["gathered"]):
        yield from _gathered(table, columns)
    elif ("messages" in columns and not split) or (
        split and ("model" in columns or "completion" in mapping or several or len(wide) == 1)
    ):
        yield from _long(table, columns, several)
    elif mapping.keys() & {"model", "completion"}:  # whoever names one of them has rows of them
        raise _unclear(table, columns)
    else:
        columns.pop("model", None)
        yield from _wide(table, columns, wide, mapping, notes)


def _unclear(table: TableFile, columns: Mapping[str, str]) -> InputError:
    """The error of a table in which only these columns are known, ours by theirs."""
    if {"model_a", "model_b", "winner"} <= table.columns.keys():
        return InputError(
            f"{table.path}: holds verdicts and no answers to judge: `venire rate {table.path}` makes a board of them"
        )
    missing = [ours for ours in _ROW if ours not in columns]
    rest = [name for name in table.columns if name not in columns.values()]
    hints = rest if len(rest) == len(missing) else [table.missing(ours, {}).hint for ours in missing]
    (ours, hint), *more = [(_OURS[ours], hint) for ours, hint in zip(missing, hints, strict=True)]
    names = " and no ".join(f'"{_OURS[ours]}"' for ours in missing)
    header = "; the first row is read as the header: where it is none, put prompt,model,response above it"
    return MissingColumnError(
        f"{table.path}: no column {names}; columns found: {table.listed}. A table of answers has prompt, model and "
        "response in each row, or a prompt and a column of answers for each model"
        + (header if table.delimited and not columns else ""),
        missing[0],
        hint,
        setting_of("mapping", ours, hint, *more),
    )


def _cells(table: TableFile, columns: Iterable[str], labels: Iterable[str] = ()) -> Iterator[TextRow]:
    """The rows with those columns as text, nested ones as JSON, those of `labels` as ids and names."""
    names, ids = list(columns), set(labels)
    cells = [table.name(name) if name in ids and not table.nested(name) else table.json(name) for name in names]
    result = table.execute(f"select {', '.join(cells)} from {{table}}")
    number = 0
    with table.errors():
        while chunk := result.fetchmany(500):
            for row in chunk:
                number += 1
                yield TextRow(Path(str(table.path)), number, dict(zip(names, row, strict=True)))


def _about(row: TextRow, columns: Mapping[str, str]) -> dict[str, Any]:
    """What a row says of its prompt beside the text."""
    cells = {ours: row.cells.get(columns.get(ours, "")) for ours in ("instruction_id", "category", "reference")}
    return {
        "id": cells["instruction_id"] or None,
        "category": cells["category"] or "",
        "reference": cells["reference"] or None,
        "place": f"{row.path}: row {row.number}",
    }


def _prompt(row: TextRow, columns: Mapping[str, str]) -> str:
    """A prompt: a text, perhaps with an input below it, or messages, each that is not the user's marked."""
    said = messages(row, columns["instruction"])
    turns = (row.text(columns["instruction"]),) if said is None else tuple(map(message_turn, said))
    below = row.cells.get(columns.get("input", ""))
    return "\n\n".join([joined(turns) or "\n\n".join(turns), *([below] if below else [])]).strip()


def _long(table: TableFile, columns: Mapping[str, str], several: bool) -> Iterator[_Answer]:
    there = list(dict.fromkeys(columns.values()))
    labels = [columns[ours] for ours in ("model", "instruction_id") if ours in columns]
    if "model" not in columns and not several:
        if columns.get("completion", "").lower() in ANSWER_COLUMNS["model"]:
            raise InputError(
                f'{table.path}: "{columns["completion"]}" was named as the answers, and no other column says whose '
                f"they are: name the column of answers ({setting_of('mapping', 'response', 'COLUMN')})"
            )
        raise InputError(
            f"{table.path}: no column says whose the answers are: add a column model, name the one that says it "
            f"({setting_of('mapping', 'model', 'COLUMN')}), or give a file for each model, named after it"
        )
    stem = str(table.path).replace("\\", "/").rpartition("/")[2].partition(".")[0]
    for row in _cells(table, there, labels):
        if "instruction" in columns and "completion" in columns:
            prompt = _prompt(row, columns)
            text = "\n\n".join(turns_of(row, columns["completion"])) if columns["completion"] in row else ""
        else:
            prompt, text = _conversation(row, columns["messages"])
        model = row.text(columns["model"]) if "model" in columns else stem
        yield _Answer(prompt, model, text, **_about(row, columns))


def _conversation(row: TextRow, column: str) -> tuple[str, str]:
    """Prompt and answer of a conversation."""
    said = messages(row, column)
    if not said or said[-1][0] != "assistant" or len(said) < 2:
        raise row.error(f'"{column}" is no list of messages that ends with one of the assistant: leave the row out')
    turns = tuple(map(message_turn, said[:-1]))
    return (joined(turns) or "\n\n".join(turns)).strip(), said[-1][1]


def _gathered(table: TableFile, columns: Mapping[str, str]) -> Iterator[_Answer]:
    """AnswerTable by model in one column, as an object, or as a list of objects with a model and a text."""
    column = columns["gathered"]
    there = list(dict.fromkeys(columns.values()))
    for row in _cells(table, there, [columns["instruction_id"]] if "instruction_id" in columns else ()):
        value = row.value(column)
        pairs = value.items() if isinstance(value, dict) else map(_model_and_text, value or ())
        for pair in pairs:
            if pair is None or (pair[1] is not None and not isinstance(pair[1], str)):
                raise row.error(f'"{column}" holds something other than a model and its text; leave the row out')
            if pair[1] is not None:
                yield _Answer(_prompt(row, columns), str(pair[0]), pair[1], **_about(row, columns))


def _model_and_text(one: Any) -> tuple[Any, Any] | None:
    if not isinstance(one, dict):
        return None
    model, text = (
        next((one[name] for name in ANSWER_COLUMNS[ours] if name in one), None) for ours in ("model", "completion")
    )
    return None if model is None else (model, text)


def _wide(
    table: TableFile, columns: Mapping[str, str], models: Sequence[str], mapping: Mapping[str, str], notes: list[str]
) -> Iterator[_Answer]:
    numbers = [name for name in models if _is_numeric(table, name)]
    if len(models) - len(numbers) >= 2:  # else its answers are numbers
        models = [name for name in models if name not in numbers]
    if not models:
        raise _unclear(table, columns)
    reference, numeric = columns.get("reference"), [name for name in numbers if name not in models]
    aside = [name for name in table.columns if name not in (*models, *columns.values())]
    aside += [
        columns[ours] for ours in ("messages", "gathered", "completion") if columns.get(ours, "") not in ("", *models)
    ]
    notes.append(
        f"{table.path}: {f'reference answers: {reference}; ' if reference else ''}models: {few(models, 8)}"
        + (f"; left aside: {few(aside, 8)}" if aside else "")
        + (f", for its numbers: if {few(numeric, 8)} is a model, write one answer a row" if numeric else "")
        + ". A column that is no model: leave it out of the table"
        + ("" if reference else f"; one of reference answers: {setting_of('mapping', 'reference', 'COLUMN')}")
    )
    about = [columns[ours] for ours in (*_OURS, "input") if ours in columns and ours not in ("model", "completion")]
    for row in _cells(table, dict.fromkeys([*about, *models]), [columns.get("instruction_id", "")]):
        prompt = _prompt(row, columns)
        for model in models:
            if (text := row.cells[model]) is not None and text.strip():
                yield _Answer(prompt, model, text, **_about(row, columns))


def _is_numeric(table: TableFile, column: str) -> bool:
    cell = table.text(column)
    row = table.execute(
        f"select count(*) from {{table}} where {cell} is not null and try_cast({cell} as double) is null"
    ).fetchone()
    return row is not None and row[0] == 0


def _checked(what: str, found: Sequence[_Answer], notes: list[str]) -> AnswerTable:
    """The answers with each prompt once. Raises InputError where they cannot be judged."""
    models = list(dict.fromkeys(one.model for one in found))
    if not models:
        raise InputError(f"{what}: holds no answer: write one in at least two models' columns or rows")
    if len(models) < 2:
        raise InputError(
            f"{what}: all answers are of one model, {models[0]!r}, and judges compare two or more: add the answers of "
            "another model to the same prompts, as more rows, a further column, or a further file"
        )
    ids = _ids(found)
    first: dict[tuple[str, str], _Answer] = {}
    for one in found:
        before = first.setdefault((one.prompt, one.model), one)
        if before.text != one.text:
            raise InputError(
                f"{one.place}: another answer of {one.model!r} to the prompt of {before.place.rpartition(': ')[2]} "
                f"({_short(one.prompt)}): keep one of them, or give the second one's model another name"
            )
    if len(first) < len(found):
        notes.append(f"{len(found) - len(first):,} rows stand again, word for word: read once")
    if empty := sum(not one.text.strip() for one in first.values()):
        notes.append(f"{empty:,} answers are empty and are judged so: leave their rows out if they were not given")
    _note_common(what, list(first.values()), models, notes)
    completions = tuple(Completion(one.model, ids[one.prompt], one.text) for one in first.values())
    return AnswerTable(_instructions(found, ids), completions, tuple(dict.fromkeys(notes)))


def _instructions(found: Sequence[_Answer], ids: Mapping[str, str]) -> tuple[Instruction, ...]:
    """Each prompt once. Raises InputError for one with two references."""
    prompts: dict[str, Instruction] = {}
    for one in found:
        known = prompts.get(one.prompt) or Instruction(ids[one.prompt], (one.prompt,), one.reference, one.category)
        if one.reference not in (None, known.reference) and known.reference is not None:
            raise InputError(
                f"{one.place}: its prompt has another reference answer in an earlier row: keep one of them"
            )
        prompts[one.prompt] = replace(
            known, reference=known.reference or one.reference, category=known.category or one.category
        )
    return tuple(prompts.values())


def _note_common(what: str, found: Sequence[_Answer], models: Sequence[str], notes: list[str]) -> None:
    """How many prompts have an answer of every model. Raises InputError for none."""
    by_model = {model: {one.prompt for one in found if one.model == model} for model in models}
    prompts = set().union(*by_model.values())
    common = set.intersection(*by_model.values())
    fewest = min(models, key=lambda model: len(by_model[model]))
    without = f"{fewest!r} has an answer to {len(by_model[fewest]):,} of {len(prompts):,}"
    if not common:
        raise InputError(
            f"{what}: no prompt has an answer of every model, and only such prompts are judged: {without}; add the "
            f"missing answers, write the prompts alike, or leave that model out"
        )
    if len(common) < len(prompts):
        notes.append(
            f"{len(common):,} of {len(prompts):,} prompts have an answer of every model and are judged; the others "
            f"wait ({without}: add its answers, or leave it out)"
        )


def _ids(found: Sequence[_Answer]) -> dict[str, str]:
    """A name for each prompt: its id where ids and prompts belong together, else its first words and a digest."""
    given = {one.prompt: set[str]() for one in found}
    for one in found:
        given[one.prompt].add(one.id or "")
    ids = {prompt: next(iter(names)) for prompt, names in given.items() if len(names) == 1}
    if all(_WHOLE.fullmatch(name) for names in given.values() for name in names):  # 1 and 1.0 are one id
        ids = {prompt: next(iter(names)).partition(".")[0] for prompt, names in given.items()}
    if len(ids) == len(given) and "" not in ids.values() and len({*ids.values()}) == len(ids):
        return ids
    return {prompt: _slug(prompt) for prompt in given}


def _slug(prompt: str) -> str:
    words = re.findall(r"\w+", prompt.casefold())[:_SLUG]
    return "-".join([*(word[:12] for word in words), digest_id([prompt])[:6]])


def _short(prompt: str) -> str:
    line = " ".join(prompt.split())
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…")
