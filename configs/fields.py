"""Keys of a campaign file, each declared once: its values and default, since when there is it, and who reads it how.

`since` is the edition of campaign files that brought a key. A store may hold settings of any edition, so what is
compared leaves out a key that is younger than they are as long as it says what its absence meant. The editions so far:
0 the keys of the first campaigns; 1 other ways to a judge, phases, rules and limits; 2 prices of cached tokens;
3 contestants; 4 editors; 5 structured output and batches. A new key is of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, Flag, auto
from functools import reduce
from inspect import Parameter, Signature
from operator import or_
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from venire.arena.budgets import Shards
from venire.arena.errors import InputError
from venire.configs.problems import found_problems, lines


class Compared(Flag):
    """The campaigns of a file whose settings a key is part of; a change to it is then noticed."""

    NOWHERE = 0
    JUDGING = auto()
    GENERATION = auto()
    EDITING = auto()
    ALL = JUDGING | GENERATION | EDITING


class Shapes(Enum):
    """The rounds that a key shapes: a change to it undoes those that are planned."""

    NONE = auto()
    PHASE = auto()
    """Those of its phase."""
    ALL = auto()


class LaneKey(Enum):
    """What a key is to the lane of a respondent: those of one key to a vendor say the same of it."""

    IDENTITY = auto()
    """What makes two respondents one lane."""
    LIMIT = auto()
    RETRY = auto()
    """Of one lane alone; two lanes may share a key and give up at other times."""
    CONNECTION = auto()


@dataclass(frozen=True, slots=True)
class Declared:
    """What a key of a table is beside its type, values and default."""

    since: int
    shards: Shards
    compared: Compared
    shapes: Shapes
    lane: LaneKey | None
    python: str
    """What it is called in Python."""
    is_first: bool
    """Whether Python may give it first, without its name."""


class _Said(NamedTuple):
    """The same as far as the key says it itself; None: as its table says."""

    since: int
    shards: Shards | None
    compared: Compared | None
    shapes: Shapes | None
    lane: LaneKey | None
    python: str | None
    is_first: bool


def key(
    accepted: str | None,
    *,
    since: int,
    shards: Shards | None = None,
    compared: Compared | None = None,
    shapes: Shapes | None = None,
    lane: LaneKey | None = None,
    alias: str | None = None,
    kw_only: bool = True,
    **field: Any,
) -> Any:
    """A key of a table: the values that are `accepted`, in words, and what else pydantic's `Field` takes.

    `shards`, `compared` and `shapes` are given where they are not those of the table, `lane` where it is one of a lane.
    `alias` is its name in Python where the file's is that of one table of a list, and one that is not `kw_only` may
    come first without its name. These two, `default` and `default_factory` are read by type checkers, by these names.
    """
    info: FieldInfo = Field(description=accepted, **field)
    info.metadata.append(_Said(since, shards, compared, shapes, lane, alias, not kw_only))
    return info


def whole(low: int, high: int, *, since: int, **field: Any) -> Any:
    """A key whose values are whole numbers in a range."""
    return key(f"a whole number from {low} to {high}", since=since, ge=low, le=high, **field)


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    @dataclass_transform(kw_only_default=True, field_specifiers=(key, whole, PrivateAttr))
    class _Tables(ModelMetaclass):
        """Of tables: so type checkers derive the constructor of each from its keys."""

else:
    _Tables = type(BaseModel)


class Table(BaseModel, metaclass=_Tables):
    """A table of the campaign file, or the same written in Python: by keywords, with the file's own keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)
    shards: ClassVar[Shards | None] = None
    """How shards divide the keys that do not say it themselves; None: every key does."""
    compared: ClassVar[Compared] = Compared.ALL
    """Which settings the keys that do not say it themselves are part of, where their table is."""
    shapes: ClassVar[Shapes] = Shapes.ALL
    """The rounds that the keys shape which do not say it themselves."""
    declared: ClassVar[Mapping[str, Declared]] = {}
    """What each key is."""
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Refuse a key that shards would drop, or that would make stored campaigns look changed."""
        cls.declared = {name: cls._declared(name, field) for name, field in cls.model_fields.items()}
        cls.__signature__ = cls._shown()

    @classmethod
    def _shown(cls) -> Signature:
        """The signature for help and hovering: plain types and defaults, under the names of Python."""
        parameters = [
            Parameter(
                about.python,
                Parameter.POSITIONAL_OR_KEYWORD if about.is_first else Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.is_required() else _shown_default(field),
                annotation=_shown_type(field.annotation),
            )
            for field, about in zip(cls.model_fields.values(), cls.declared.values(), strict=True)
        ]
        return Signature(sorted(parameters, key=lambda parameter: parameter.kind))

    @classmethod
    def _declared(cls, name: str, field: FieldInfo) -> Declared:
        said = next((mark for mark in reversed(field.metadata) if isinstance(mark, _Said)), None)
        shards = cls.shards if said is None else said.shards or cls.shards
        if said is None or shards is None:
            raise TypeError(
                f"{cls.__name__}.{name}: declare by `key` since when there is it, and what shards have of it"
            )
        compared = cls.compared if said.compared is None else said.compared
        shapes, python = said.shapes or cls.shapes, said.python or name
        return Declared(said.since, shards, compared, shapes, said.lane, python, said.is_first)

    @classmethod
    def keys_of(cls, *lane: LaneKey) -> tuple[str, ...]:
        """The keys that are so much to a lane: kind by kind, each in the order in which keys are declared."""
        return tuple(name for kind in lane for name, about in cls.declared.items() if about.lane is kind)

    def __init__(self, /, *first: Any, **keys: Any) -> None:
        """Check one table that is written in Python. Raises InputError with a line for each thing that is wrong."""
        if first:
            keys = {**_positional(type(self), first, keys), **keys}
        names = {about.python: name for name, about in self.declared.items()}
        given = {names.get(name, name): _as_written(value) for name, value in keys.items()}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise InputError(lines(type(self).__name__, given, found_problems(error, type(self)))) from None
        self._given = given

    # The mark lets pydantic build nested tables without this constructor: a file is checked as a whole.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @property
    def given(self) -> Mapping[str, Any]:
        """The keys that were written in Python, with plain values as a file would have them."""
        return self._given


def _positional(table: type[Table], values: tuple[Any, ...], keys: Mapping[str, Any]) -> dict[str, Any]:
    """The key that was given without its name. Raises InputError for any other, and for one that is given twice."""
    first = [name for name, about in table.declared.items() if about.is_first]
    if len(values) > len(first):
        raise InputError(f"{table.__name__}: write {'all others' if first else 'all keys'} with their names: KEY=VALUE")
    if not keys.keys().isdisjoint(first):
        raise InputError(f"{table.__name__}: {first[0]} is given twice, once without its name")
    return dict(zip(first, values, strict=False))


def _shown_type(annotation: Any) -> Any:
    """A type without its checks; numbers are written as floats."""
    if annotation is Decimal:
        return float
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return _shown_type(inner[0])
    if kind in (Union, UnionType):
        return reduce(or_, map(_shown_type, inner))
    return annotation if kind in (None, Literal) else kind[tuple(map(_shown_type, inner))]


def _shown_default(field: FieldInfo) -> Any:
    """A default as it is written."""
    return _Empty(field.default_factory) if field.default_factory else _plain_numbers(field.get_default())


class _Empty(NamedTuple):
    """A table whose keys all have their defaults, shown as it is written."""

    table: Any

    def __repr__(self) -> str:
        return f"{self.table.__name__}()"


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_numbers(part) for part in value]
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def _as_written(value: object) -> Any:
    """A value of Python as the parser of a file would give it: exact decimals, texts for paths, lists and dicts."""
    if isinstance(value, Table):
        return dict(value.given)
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _as_written(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_written(part) for part in value]
    return value


def compared_keys(table: Table, part: Compared, edition: int = 0) -> dict[str, Any]:
    """The keys of a table that are settings of `part`, as plain values, defaults included.

    Without those that came after `edition` and equal their default: settings of that edition do not have them.
    """
    found = {}
    for name, field in type(table).model_fields.items():
        about = table.declared[name]
        if part in about.compared:
            within = max(edition, about.since)  # what is in a younger table came with it
            value = _plain(getattr(table, name), part, within)
            absent = _plain(field.get_default(call_default_factory=True), part, within)
            if about.since <= edition or value != absent:
                found[name] = value
    return found


def _plain(value: Any, part: Compared, edition: int) -> Any:
    if isinstance(value, Table):
        return compared_keys(value, part, edition)
    if isinstance(value, list):
        return [_plain(one, part, edition) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one, part, edition) for name, one in value.items()}
    return value
