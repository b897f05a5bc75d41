"""Keywords that several public functions take, declared once as a `TypedDict`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, ForwardRef, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def spelled_out(keywords: type, record: Any) -> Callable[[_F], _F]:
    """Show each keyword of a TypedDict in the signature of a function that takes `**name: Unpack[keywords]`.

    So help and completion name them, as a type checker does. Any other keyword is refused at once, in the name of the
    function: TypeError. Defaults are those of the fields of `record`, the
    dataclass that the function makes of them, and None where a field has none.

    >>> from dataclasses import dataclass
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
    defaults = {one.name: one.default for one in fields(record) if one.default is not MISSING}

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        shown = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=_text(annotation)
            )
            for name, annotation in keywords.__annotations__.items()
        ]
        known = {parameter.name for parameter in (*own, *shown)}

        @wraps(function)
        def checked(*positional: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*positional, **named)

        checked.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
        return cast(_F, checked)

    return decorate


def _text(annotation: object) -> object:
    """An annotation as it was written."""
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
