"""Battles that were judged elsewhere, from a plain table, as arrays: one row a verdict.

Columns: `model_a`, `model_b`, `winner` (`model_a`, `model_b`, `tie`, or a name of one of the two; nothing where it
could not be read). A table that knows the order shown has `first`, `second`, `verdict` instead. `score`, the
first-named model's share from 0 to 1, may replace the winner, and so may a score of each model (`score_a` and
`score_b`, or `score_first` and `score_second`), of which the higher wins. Optional are `judge`, `instruction_id`,
`repeat`, `weight`, `score_difference` and `human_winner`. Where a mapping gives the two models other column names,
those name the winner. Other words for the winner are read where a column is certain (`_PLACES`), or by `values`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from venire.arena.battles import Battles, Clustering
from venire.arena.errors import InputError
from venire.arena.hints import setting, setting_of
from venire.arena.records import Status
from venire.arena.wording import suggest
from venire.storage.store.connection import query, quoted
from venire.storage.transfer.formats.columns import (
    NOT,
    RESPONDENTS,
    answers_hint,
    columns_of,
    condition,
    encode,
    feature_cells,
    instruction_note,
    name_cell,
    padded_cell,
    padded_note,
    refuse_bad_features,
    scaled,
    with_synonyms,
)
from venire.storage.transfer.formats.source import TableFile, TableReading, TableSource, open_table

_PLAIN = ("model_a", "model_b", "winner")
_SHOWN = ("first", "second", "verdict")
_SHARE = "score"
_SCORES = (("score_a", "score_b"), ("score_first", "score_second"))
_OPTIONAL = ("judge", "instruction_id", "repeat", "weight", "score_difference", "human_winner")
_NAMES = ("model_a", "model_b", "winner", "judge", "instruction_id", "cluster", "human_winner")
"""Columns of names; the others hold numbers."""

_CELLS = {
    "repeat": "repeat_cell",
    "weight": "weight_cell",
    _SHARE: "outcome_cell",
    "score_difference": "score_cell",
    "human_winner": "human_cell",
}
"""Our columns that are kept as they stand until they are checked."""

_TIES = frozenset(
    {
        *("tie", "tied", "draw", "equal", "both_bad", "both bad", "bothbad"),
        *(f"tie{space}({word})" for space in ("", " ") for word in ("inconsistent", "all bad", "bothbad", "both bad")),
    }
)
"""Words for a tie in any table, in small letters."""

_NUMBERED = ("1", "2")
_PLACES = (
    ("model_a", "model_b"),
    ("model a", "model b"),
    ("model_1", "model_2"),
    ("assistant_a", "assistant_b"),
    ("response_a", "response_b"),
    ("a", "b"),
    ("x", "y"),
    ("left", "right"),
    _NUMBERED,
)
"""Pairs of words for the model named first and second, in small letters: a column that has words of one of these pairs
alone is certain, unless a model is called so; 0 is a tie beside 1 and 2."""

_MAX_WORDS = 64

_ACCEPTED = {
    _SHARE: "a number from 0 to 1, or nothing where the verdict was not read",
    "repeat": "a whole number from 1 on",
    "weight": "a number, 0 or more",
    "score_difference": "a number, or nothing where there is none",
}


def read_battles(
    path: TableSource,
    mapping: Mapping[str, str] = {},
    *,
    values: Mapping[str, str] = {},
    where: Mapping[str, str | Sequence[str]] = {},
    features: Sequence[str] = (),
    cluster: str | None = None,
) -> Battles:
    """Verdicts of a table file, in its order; `mapping` is from our column names to the file's.

    `values` is from the file's words for winners to ours, or to nothing where such a verdict was not read. `where`
    keeps the rows that hold given values (`columns.condition`), `features` are covariates to read (`covariates`),
    `cluster` is a column of the file whose rows belong together in place of an instruction's ("none": no rows do; None:
    those of an instruction, and of a judge where there are enough). The
    order shown is known (`ordered`) where the table names `first` and `second`; what a judge said of one showing more
    than once is then numbered in `repeat`, unless the file does so. A row without a winner has status 1. Without a
    column of judges all verdicts are of the judge `UNNAMED_JUDGE`. Raises InputError that names file, row (the first
    data row is 1) and value.
    """
    return read_battle_table(path, mapping, values=values, where=where, features=features, cluster=cluster).battles


@dataclass(frozen=True, slots=True, eq=False)
class BattleTable:
    """Verdicts of a plain table, the number (verdicts,) of each one's row in the file, and how it was read.

    `columns` are the file's names of ours, `values` what the words for winners were read as that are not ours,
    `left_aside` are the columns of which nothing was read, and `notes` say what else a reader of a board must know.
    """

    battles: Battles
    rows: NDArray[np.int64]
    columns: Mapping[str, str]
    values: Mapping[str, str]
    left_aside: Sequence[str]
    notes: Sequence[str] = ()

    def reading(self) -> TableReading:
        """How the table was read."""
        columns = {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}
        return TableReading("table", columns, dict(self.values), tuple(self.left_aside), tuple(self.notes))


def read_battle_table(
    path: TableSource,
    mapping: Mapping[str, str] = {},
    *,
    values: Mapping[str, str] = {},
    where: Mapping[str, str | Sequence[str]] = {},
    features: Sequence[str] = (),
    cluster: str | None = None,
) -> BattleTable:
    """`read_battles`, with how the table was read."""
    _refuse_unknown(path, mapping, features)
    with closing((table := open_table(path)).connection):
        mapping = with_synonyms(table, _respelt(table, mapping))
        sides, apart = _sides(table, mapping), cluster == "none" and cluster not in table.columns
        judges, instructions = (mapping.get(name, name) for name in ("judge", "instruction_id"))
        named = cluster == judges or (cluster in RESPONDENTS and cluster not in table.columns)
        by_judge = named and judges in table.columns
        known = apart or by_judge or (cluster == instructions and cluster in table.columns)
        theirs = _columns(table, sides, mapping, None if known else cluster)
        covariates = columns_of(table, features, mapping)
        spelling = _Spelling(sides, _given_values(table, theirs, sides, values))
        read = (feature_cells(table, covariates), condition(table, where, mapping))
        _load(table, theirs, spelling, *read)
        found = _bad_row(table, theirs)
        unknown = found is not None and found[1] in ("winner", "human_winner")
        if unknown and (other := _other_words(table, theirs, spelling)):
            table.connection.execute("drop table verdict")
            spelling = replace(spelling, values={**spelling.values, **other})
            _load(table, theirs, spelling, *read)
            found = _bad_row(table, theirs)
        if found is not None:
            raise _refused(table, theirs, spelling, *found)
        refuse_bad_features(table, covariates)
        battles = encode(
            table.connection,
            judge="judge" in theirs,
            instruction="instruction_id" in theirs,
            ordered=sides == _SHOWN,
            cluster="cluster" in theirs,
            numbers=[
                ours for ours, name in _NUMBERS.items() if name in theirs or (ours == "score" and "score_a" in theirs)
            ],
            features={name: f"x{number}" for number, name in enumerate(covariates)},
        )
        rows = table.connection.execute("select row from verdict order by row").fetchnumpy()
        notes = _notes(table, theirs, cluster)
        asked = {mapping.get(name, name) for key in where for name in (key, key.removesuffix(NOT))}
        used = {*theirs.values(), *(column for columns in covariates.values() for column in columns), *asked}
    clustering: Clustering = "crossed" if cluster is None else "none" if apart else "judge" if by_judge else "cluster"
    battles = replace(
        battles, clustering=clustering, features=scaled(battles.features, covariates, battles.status == Status.OK)
    )
    if battles.ordered and "repeat" not in theirs:
        battles = _numbered(battles)
    return BattleTable(
        battles,
        np.asarray(rows["row"], dtype=np.int64),
        theirs,
        spelling.values,
        [name for name in table.columns if name not in used],
        notes,
    )


def _notes(table: TableFile, theirs: Mapping[str, str], cluster: str | None) -> list[str]:
    """What was taken as the instruction, unless rows are grouped otherwise, and that names had spaces around them."""
    grouped = cluster is not None and "instruction_id" not in theirs
    taken = None if grouped else instruction_note(theirs.get("instruction_id"))
    ((padded,),) = table.connection.execute("select count(*) from verdict where padded").fetchall()
    return [*([taken] if taken else []), *([padded_note(padded)] if padded else [])]


_NUMBERS = {"outcome": _SHARE, "weight": "weight", "score": "score_difference", "human": "human_winner"}


def _refuse_unknown(path: TableSource, mapping: Mapping[str, str], features: Sequence[str]) -> None:
    sides = [f"{name}_{side}" for name in features for side in ("a", "b", "first", "second")]
    known = [*_PLAIN, *_OPTIONAL, _SHARE, *_SHOWN, *features, *sides]
    unknown = sorted(set(mapping) - set(known))
    if unknown:
        raise InputError(
            f'{path}: {setting("mapping")} names "{unknown[0]}", which is no column of ours for battles; '
            f"{suggest(unknown[0], known)}"
        )
    said = [name for name in ("winner", "verdict", _SHARE) if name in mapping]
    mixed = [name for name in (*_PLAIN[:2], *_SHOWN[:2]) if name in mapping]
    for names in (said, mixed if {*mixed} & {*_PLAIN} and {*mixed} & {*_SHOWN} else []):
        if len(names) > 1:
            raise InputError(
                f"{path}: {setting('mapping')} names both {names[0]} and {names[-1]}; a table has one of them"
            )


def _respelt(table: TableFile, mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping with names in other letters; of models and winner only where the file has none in ours."""
    forms = {*_PLAIN, *_SHOWN}
    for sides in () if forms & {*table.columns, *mapping} else (_PLAIN, _SHOWN):
        found = table.respelt(sides, mapping)
        if {*sides} <= found.keys():
            return table.respelt(_OPTIONAL, found)
    return table.respelt(_OPTIONAL, mapping)


def _sides(table: TableFile, mapping: Mapping[str, str]) -> tuple[str, str, str]:
    """Our names of the two models and of the winner: as A and B, or in the order shown."""
    for sides in (_PLAIN, _SHOWN):
        if set(mapping) & set(sides[:2]):
            return sides
    if "verdict" in mapping:
        return _SHOWN
    there = table.columns.keys()
    if there >= set(_SHOWN[:2]) and not (there >= set(_PLAIN[:2]) and ("winner" in there or "verdict" not in there)):
        return _SHOWN
    return _PLAIN


def _columns(
    table: TableFile, sides: tuple[str, str, str], mapping: Mapping[str, str], cluster: str | None
) -> dict[str, str]:
    """The file's names of our columns, those that are there; raises InputError for one that is needed and missing."""
    if not {*sides[:2]} & {*table.columns, *mapping}:
        raise _no_models(table, sides[0], mapping)
    theirs = {ours: table.column(name, mapping) for ours, name in zip(_PLAIN, sides[:2], strict=False)}
    said = next((name for name in (sides[2], "winner", "verdict") if name in mapping), None)
    said = said or next((name for name in (sides[2], "winner", "verdict") if name in table.columns), None)
    there = {*table.columns, *mapping}
    if _SHARE in mapping or (said is None and _SHARE in table.columns):
        theirs[_SHARE] = table.column(_SHARE, mapping)
    elif said is None and (scores := next((pair for pair in _SCORES if there.issuperset(pair)), None)):
        theirs |= {ours: table.column(name, mapping) for ours, name in zip(_SCORES[0], scores, strict=True)}
    else:
        theirs["winner"] = table.column(said or sides[2], mapping)
    for name in _OPTIONAL:
        if name in mapping or name in table.columns:
            theirs[name] = table.column(name, mapping)
    if cluster is not None:
        name = cluster if cluster in table.columns else mapping.get(cluster, cluster)
        if name not in table.columns:
            found = ", ".join(list(table.columns)[:30])
            raise InputError(f'{table.path}: {setting("cluster")} names the column "{name}"; columns found: {found}')
        theirs["cluster"] = name
    return theirs


def _no_models(table: TableFile, side: str, mapping: Mapping[str, str]) -> InputError:
    """The error of a table without two columns of models; with one it may hold scores or ranks of single models."""
    if (hint := answers_hint(table)) is not None:
        return InputError(f"{table.path}: {hint}")
    models = [name for name in table.columns if "model" in name.casefold()]
    ranked = [(ours, name) for name in table.columns for ours in (_SHARE, "rank") if ours in name.casefold()]
    ranked = ranked if len(ranked) == 1 else [(_SHARE, "COLUMN")]
    other = [(ours, theirs) for ours, theirs in [*(("model", name) for name in models), *ranked] if ours != theirs]
    if len(models) != 1 or not other or {"winner", "verdict"} & {*table.columns, *mapping}:
        return InputError(f"{table.missing(side, mapping)}; a table of ballots needs the columns model and rank")
    found = ", ".join(list(table.columns)[:30])
    return InputError(
        f"{table.path}: no columns of two models; columns found: {found}. Scores or ranks of single models are read "
        f"with {setting_of('mapping', *other[0], *other[1:])}"
    )


@dataclass(frozen=True, slots=True)
class _Spelling:
    """What a winner may be called: our names of the two sides and of the winner's column, and other words for ours."""

    sides: tuple[str, str, str]
    values: Mapping[str, str] = field(default_factory=dict)

    def words(self, theirs: Mapping[str, str]) -> dict[str, int]:
        """Our words and their labels; the file's own column names come first."""
        return {self.sides[0]: 1, self.sides[1]: -1, "tie": 0} | {theirs["model_a"]: 1, theirs["model_b"]: -1}

    def cell(self, cell: str) -> str:
        """SQL for a cell in our words."""
        cases = " ".join(f"when {quoted(word)} then {quoted(ours)}" for word, ours in self.values.items())
        return f"case {cell} {cases} else {cell} end" if cases else cell


def _given_values(
    table: TableFile, theirs: Mapping[str, str], sides: tuple[str, str, str], values: Mapping[str, str]
) -> dict[str, str]:
    """Words that the user gave ours for. Raises InputError for a word that no row has, and for one that is not ours."""
    columns = [theirs[name] for name in ("winner", "human_winner") if name in theirs]
    values = {word.strip(): ours for word, ours in values.items()}
    for word, ours in values.items():
        if ours not in (*sides[:2], "tie", ""):
            raise InputError(
                f'{table.path}: {setting("values")} gives "{word}" as "{ours}"; accepted: {sides[0]}, {sides[1]}, tie, '
                f"or nothing where it was not read"
            )
    if values:
        occur = {word for column in columns for word in _distinct(table, table.name(column), of="{table}")}
        if missing := [word for word in values if word not in occur]:
            raise InputError(
                f'{table.path}: {setting("values")} names "{missing[0]}", which no row has as its winner; '
                f"{suggest(missing[0], sorted(occur))}"
            )
    return values


def _distinct(table: TableFile, cell: str, *, of: str = "verdict", condition: str = "true") -> list[str]:
    """What a cell of the table `verdict` holds, or of the file (`{table}`), each text once."""
    query = f"select distinct {cell} as word from {of} where {condition} limit 10000"
    with table.errors():
        found = table.execute(query) if of == "{table}" else table.connection.execute(query)
        return [str(word) for (word,) in found.fetchall() if word]


def _other_words(table: TableFile, theirs: Mapping[str, str], spelling: _Spelling) -> dict[str, str]:
    """Ours for words of the winner's columns that are none of ours, where a column has one pair of words for sides."""
    a, b, _ = spelling.sides
    models = {name.casefold() for name in _distinct(table, "unnest([model_a, model_b])")}
    found: dict[str, str] = {}
    for place, cell, label in (("winner", "winner", "label"), ("human_winner", "human_cell", "human")):
        unread = _distinct(table, cell, condition=f"{label} is null") if place in theirs else []
        if not 0 < len(unread) <= _MAX_WORDS:
            continue
        words = {word.casefold() for word in _distinct(table, cell)}
        ours = dict.fromkeys(_TIES - models, "tie")  # also beside names of models
        own = {word.casefold() for word in spelling.words(theirs)} - {"tie"}
        pairs = [pair for pair in _PLACES if words & {*pair}]
        certain = len(pairs) == 1 and not words & (models | own - {*pairs[0]})
        if certain and (pairs[0] != _NUMBERED or _only_numbered(words)):
            ours |= dict(zip(pairs[0], (a, b), strict=True)) | ({"0": "tie"} if pairs[0] == _NUMBERED else {})
        found |= {word: ours[word.casefold()] for word in unread if word.casefold() in ours}
    return found


def _only_numbered(words: Collection[str]) -> bool:
    """Whether the numbers in a column are 1 and 2, and 0 for a tie: with others they may be grades or counts."""
    numbers = {word for word in words if word.replace(".", "", 1).lstrip("+-").isdecimal()}
    return "2" in numbers and numbers <= {*_NUMBERED, "0"}


def _load(
    table: TableFile,
    theirs: Mapping[str, str],
    spelling: _Spelling,
    features: Mapping[str, str],
    kept: tuple[str, list[list[str]]],
) -> None:
    """The table `verdict` that `encode` reads, with the cells behind it: the file is parsed once."""
    cells = {_CELLS.get(name, name): "null::varchar" for name in [*_NAMES, *_CELLS]}
    for name, column in theirs.items():
        if name not in _SCORES[0]:
            cells[_CELLS.get(name, name)] = name_cell(table, name, column) if name in _NAMES else table.cell(column)
    names = [column for name, column in theirs.items() if name in _NAMES and not table.nested(column)]
    cells["padded"] = padded_cell(table, names)
    if "score_a" in theirs:
        cells |= _by_scores(*(table.text(theirs[name]) for name in _SCORES[0]), sides=spelling.sides)
    for name in ("winner", "human_cell"):
        cells[name] = spelling.cell(cells[name])
    cells |= features
    chosen = ", ".join(f"{cell} as {name}" for name, cell in cells.items())
    battle = f"select row_number() over () as row, {kept[0]} as kept, {chosen} from {table.reader}"
    of_side = [[word for word, label in spelling.words(theirs).items() if label == side] for side in (1, -1)]
    with table.errors():
        table.connection.execute(
            f"create temp table verdict as with battle as (select * exclude (kept) from ({battle}) where kept) "
            f"{query('battles_verdicts')}",
            [*kept[1], *table.parameters, *of_side, *of_side],
        )


def _by_scores(a: str, b: str, *, sides: tuple[str, str, str]) -> dict[str, str]:
    """SQL for the winner by two scores, the cell itself where one is no number, and for their difference."""
    numbers = [f"try_cast({cell} as double)" for cell in (a, b)]
    empty = f"coalesce({a}, '') in ('', 'nan') or coalesce({b}, '') in ('', 'nan')"
    bad = " ".join(
        f"when not coalesce(isfinite({number}), false) then {cell}"
        for number, cell in zip(numbers, (a, b), strict=True)
    )
    higher = " > ".join(numbers), " < ".join(numbers)
    return {
        "winner": f"case when {empty} then null {bad} when {higher[0]} then '{sides[0]}' when {higher[1]} then "
        f"'{sides[1]}' else 'tie' end",
        "score_cell": f"{numbers[0]} - {numbers[1]}",
    }


def _bad_row(table: TableFile, theirs: Mapping[str, str]) -> tuple[int, str, str | None] | None:
    """The first row that cannot be meant: its number, our name of the column, and the cell."""
    return table.connection.execute(query("battles_bad_row"), {"there": list(theirs)}).fetchone()


def _refused(
    table: TableFile, theirs: Mapping[str, str], spelling: _Spelling, row: int, place: str, cell: str | None
) -> InputError:
    sides = spelling.sides
    column = theirs.get({"named": "winner", "human_named": "human_winner"}.get(place, place), "")
    if place == "itself":
        problem = f'"{cell}" meets itself; leave the row out'
    elif place == "winner" and "score_a" in theirs:
        problem = f'"{theirs["score_a"]}" or "{theirs["score_b"]}" is "{(cell or "")[:60]}"; accepted: a number, or '
        problem += "nothing where the verdict was not read"
    elif place in ("named", "human_named"):
        what = "a word for a winner and the name of the other model"
        problem = f'"{column}" is "{cell}", {what}; write {sides[0]}, {sides[1]} or tie'
    elif not cell and place not in _ACCEPTED:
        problem = f'"{column}" is empty; fill it in or leave the row out ({setting_of("where", f"{column}{NOT}", "")})'
    elif place in _ACCEPTED:
        problem = f'"{column}" is "{(cell or "")[:60]}"; accepted: {_ACCEPTED[place]}'
    elif place == "winner" and cell in ("1", "0", "0.5", "1.0", "0.0"):
        problem = f'"{column}" is "{cell}"; accepted: {_accepted(spelling, theirs)}; shares of the first named, from 0 '
        problem += f"to 1, are read with {setting_of('mapping', _SHARE, column)}"
    else:
        problem = _unknown_word(table, theirs, spelling, place, column, cell or "")
    return InputError(f"{table.path}: row {row}: {problem}")


def _accepted(spelling: _Spelling, theirs: Mapping[str, str]) -> str:
    return f"{', '.join(spelling.words(theirs))}, a name of the two models, or nothing"


def _unknown_word(
    table: TableFile, theirs: Mapping[str, str], spelling: _Spelling, place: str, column: str, word: str
) -> str:
    """What is wrong with a word for a winner, how often it occurs, and a remedy that turns no verdict around."""
    cell, label = ("winner", "label") if place == "winner" else ("human_cell", "human")
    ((rows,),) = table.connection.execute(
        f"select count(*) from verdict where {cell} = ? and {label} is null", [word]
    ).fetchall()
    counted = f" in {rows:,} rows" if rows > 1 else ""
    problem = f'"{column}" is "{word[:60]}"{counted}; accepted: {_accepted(spelling, theirs)}'
    models = _distinct(table, "unnest([model_a, model_b])")
    if word in models:
        return f"{problem}; it is a model, but none of the two of this row: mend the row, or leave it out"
    if alike := [name for name in models if name.casefold() == word.casefold()]:
        return f'{problem}; the model is called "{alike[0]}": write both alike'
    if len(word) > 60:
        return f"{problem}; write one of these"
    a, b, _ = spelling.sides
    return f"{problem}; {setting_of('values', word, '')} counts it as not read (or give it tie, {a} or {b})"


def _numbered(battles: Battles) -> Battles:
    """The same verdicts, those of one judge on one showing numbered as repeats in the order of the rows."""
    pairs = len(battles.models) ** 2
    showing = battles.model_a.astype(np.int64) * len(battles.models) + battles.model_b
    asked = (battles.instruction.astype(np.int64) + 1) * len(battles.judges) + battles.judge
    if (int(asked.max(initial=0)) + 1) * pairs >= 2**63:
        asked = np.unique(asked, return_inverse=True)[1].astype(np.int64)  # at most one a row, which leaves room
    key = asked * pairs + showing
    order = np.argsort(key, kind="stable")  # rows of one showing keep their order
    place = np.arange(len(key))
    fresh = np.ones(len(key), dtype=np.bool_)
    fresh[1:] = np.diff(key[order]) != 0
    repeat = np.empty(len(key), dtype=np.int32)
    repeat[order] = place - np.maximum.accumulate(np.where(fresh, place, 0)) + 1
    return replace(battles, repeat=repeat)
