"""Arguments of public functions: checked against their annotations, and declared once where several take the same.

What a caller reads in a signature is what is accepted: anything else is refused before something is opened or paid,
with a sentence that names the argument and says what it may be.
"""

from __future__ import annotations

import builtins
import inspect
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from decimal import Decimal
from enum import StrEnum
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from venire.arena.errors import InputError
from venire.arena.wording import nearest

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The lowest that a number may be."""

    lowest: int


Count = Annotated[int, AtLeast(1)]
Several = Annotated[int, AtLeast(2)]
Seed = Annotated[int, AtLeast(0)]

_WORDS: Mapping[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Decimal: "a number",
    str: "a text",
    Path: "a path",
    Callable: "a function",
}
_NUMBERS: Mapping[Any, type] = {int: Integral, float: Real, Decimal: Decimal}
"""What stands for a number: those of NumPy too, and no truth value."""
_LISTS = (list, tuple, Sequence, Collection, Iterable)
"""Whatever holds values in a row may stand for any of them, but a text."""


def checked(function: _F) -> _F:
    """Check the arguments of a public function against its signature and their annotations before it is called.

    Raises TypeError, in the name of the function, for an argument that it does not take or that is missing, and
    InputError for a value of another kind.

    >>> @checked
    ... def draw(line: str, *, width: Count = 1): ...
    >>> draw("x", width=0)
    Traceback (most recent call last):
        ...
    venire.arena.errors.InputError: width is 0; give a whole number of 1 or more
    """
    return _checked(function, inspect.signature(function), lambda: _hints(function))


def spelled_out(keywords: type, record: Any) -> Callable[[_F], _F]:
    """`checked`, with each keyword of a TypedDict shown in a function that takes `**name: Unpack[keywords]`.

    So help and completion name them, as a type checker does. Defaults are those of the fields of `record`, the
    dataclass that the function makes of them, and None where a field has none.

    >>> from typing import TypedDict
    >>> class Keywords(TypedDict, total=False):
    ...     colour: str
    ...     bold: bool
    >>> @dataclass
    ... class Style:
    ...     colour: str = "red"
    ...     bold: bool = False
    >>> @spelled_out(Keywords, Style)
    ... def draw(line, **style): ...
    >>> list(inspect.signature(draw).parameters)
    ['line', 'colour', 'bold']
    """
    defaults = {field.name: field.default for field in fields(record) if field.default is not MISSING}

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [kept for kept in signature.parameters.values() if kept.kind is not inspect.Parameter.VAR_KEYWORD]
        shown = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=_text(annotation)
            )
            for name, annotation in keywords.__annotations__.items()
        ]
        return _checked(
            function, signature.replace(parameters=[*own, *shown]), lambda: {**_hints(function), **_hints(keywords)}
        )

    return decorate


def _checked(function: _F, signature: inspect.Signature, hints: Callable[[], Mapping[str, Any]]) -> _F:
    known: Callable[[], Mapping[str, Any]] = cache(
        hints
    )  # read at the first call: annotations may name what is defined further down

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        try:
            signature.bind_partial(*positional, **named)  # names a keyword that there is not before one that is missing
            given = signature.bind(*positional, **named).arguments
        except TypeError as error:
            raise TypeError(f"{function.__qualname__.removesuffix('.__init__')}() {error}") from None
        for name, value in given.items():
            if name in known() and value is not signature.parameters[name].default:
                _check(name, value, known()[name])
        return function(*positional, **named)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return cast(_F, call)


def check_fields(record: Any) -> None:
    """Raise InputError for the first field of a dataclass whose value is not of its annotation."""
    for name, hint in _hints(cast(Any, type(record))).items():
        _check(name, getattr(record, name), hint)


def _text(annotation: object) -> object:
    """An annotation as it was written."""
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation


class _Names(dict[str, Any]):
    """The names of a module; one that is imported for type checkers alone stands for anything."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


@cache
def _hints(of: Any) -> Mapping[str, Any]:
    """The annotations of a function or class as types, with what `Annotated` says of them."""
    return get_type_hints(of, localns=_Names(vars(sys.modules[of.__module__])), include_extras=True)


def _check(name: str, value: object, hint: Any) -> None:
    strange = next(_strange(value, hint), None)
    if strange is None:
        return
    part, accepted = strange.value, _words(hint)
    verb = "is" if part is value else "holds"
    named = isinstance(part, str) and "one of " in accepted and len(part) <= 60
    found = repr(part) if named or isinstance(part, Real | Decimal | None) else _kind(part)
    near = nearest(part, accepted.partition("one of ")[2].split(", ")) if named else None
    hint = f"did you mean {near!r}? " if near is not None else ""
    verb_of = "choose" if accepted.startswith("one of") else "give"
    raise InputError(f"{name} {verb} {found}; {hint}{verb_of.capitalize() if hint else verb_of} {accepted}")


@dataclass(frozen=True, slots=True)
class _Strange:
    """A value that is not of its hint."""

    value: Any


def _strange(value: Any, hint: Any) -> Iterator[_Strange]:
    """What is not of a hint: the value, or one that it holds."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        found = [next(_strange(value, part), None) for part in inner]
        if None not in found:
            yield next((strange for strange in found if strange and strange.value is not value), _Strange(value))
    elif kind is Annotated:
        yield from _strange(value, inner[0])
        if isinstance(value, Real) and value < inner[1].lowest:
            yield _Strange(value)
    elif kind is Mapping and isinstance(value, Mapping):
        for row in value.items():
            for part, of in zip(row, inner, strict=False):
                yield from _strange(part, of)
    elif kind in _LISTS and isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping):
        for part in value:
            yield from _strange(part, inner[0])
    elif not _fits(value, kind, inner):
        yield _Strange(value)


def _fits(value: Any, kind: Any, choices: tuple[Any, ...]) -> bool:
    """Whether a value is of a type that holds no others."""
    if kind is Literal or _is_choice(kind):
        return isinstance(value, str) and value in (choices or set(kind))
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool) and math.isfinite(cast(float, value))
    if kind in (Callable, Iterable):
        return isinstance(value, kind) and not isinstance(value, str | bytes)
    if kind in _LISTS or kind is Mapping:
        return False
    if kind is Any or not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
    return isinstance(value, kind)


def _is_choice(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _words(hint: Any) -> str:
    """What a hint accepts."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        *most, last = sorted({_words(part): None for part in inner}, key="None".__eq__)
        return " or ".join(filter(None, (", ".join(most), last)))
    if kind is Annotated:
        return f"{_words(inner[0])} of {inner[1].lowest} or more"
    if kind is Literal or _is_choice(kind):
        return f"one of {', '.join(inner or kind)}"
    if kind is Mapping:
        return f"a dict from {_words(inner[0])} to {_words(inner[1])}"
    if kind in _LISTS:
        return f"a list that holds {_words(inner[0])}"
    return _WORDS.get(kind) or f"{_article(kind.__name__)} {kind.__name__}"


def _kind(value: object) -> str:
    """The type of a value, which itself may be a secret."""
    name = type(value).__name__
    return f"{_article(name)} {name}"


def _article(name: str) -> str:
    return "an" if name[0].lower() in "aeiou" else "a"
