"""Keywords that several public functions take, declared once as a `TypedDict`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ForwardRef, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def spelled_out(keywords: type, **defaults: object) -> Callable[[_F], _F]:
    """Show each keyword of a TypedDict in the signature of a function that takes `**name: Unpack[keywords]`.

    So help and completion name them, as a type checker does. Their defaults are None, unless `defaults` has another.

    >>> from typing import TypedDict
    >>> Style = TypedDict("Style", {"colour": "str", "bold": "bool"})
    >>> @spelled_out(Style, bold=False)
    ... def draw(line, **style): ...
    >>> inspect.signature(draw)
    <Signature (line, *, colour: 'str' = None, bold: 'bool' = False)>
    """

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        shown = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=_text(annotation)
            )
            for name, annotation in keywords.__annotations__.items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
        return function

    return decorate


def _text(annotation: object) -> object:
    """An annotation as it was written."""
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
