"""Wrong arguments of every public function: whatever is refused is refused in the library's own words.

The calls are those of the functions' examples, with one argument at a time replaced.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import venire.ratings as public
from venire.arena.errors import InputError, VenireError

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(public, name) for name in public.__all__ if inspect.isfunction(getattr(public, name))
}
ARRAYS = (np.array([np.nan]), np.array([]))
WRONG: dict[str, tuple[Any, ...]] = {
    "int": (-1, 0),
    "float": (-1.0, 0.0, float("nan")),
    "ArrayLike": (["q"], *ARRAYS),
    "NDArray": ARRAYS,
    "Vector": ARRAYS,
    "Sequence[int]": ([-1], []),
    "Sequence[float]": ([-1.0], []),
    "Sequence[str]": (["q"], []),
}
"""Values by the annotation that they are of the kind of, or that users give in their place."""


def calls(function: Callable[..., Any]) -> list[inspect.BoundArguments]:
    """The arguments with which the example of a function calls it."""
    made: list[inspect.BoundArguments] = []

    @functools.wraps(function)
    def spy(*args: Any, **kwargs: Any) -> Any:
        made.append(inspect.signature(function).bind(*args, **kwargs))
        return function(*args, **kwargs)

    name, module = function.__name__, sys.modules[function.__module__]
    names = {**vars(module), "np": np}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, name, spy)
        for test in doctest.DocTestFinder(recurse=False).find(function, name, globs={}):
            for line in test.examples:
                exec(line.source, names)
    return made


def spoilt(call: inspect.BoundArguments) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """The same call with one argument replaced by something wrong, one at a time."""
    for name, parameter in call.signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kinds = [kind for kind in WRONG if str(parameter.annotation).startswith(kind)]
        for wrong in WRONG[max(kinds, key=len)] if kinds else ():
            yield name, wrong, {**call.arguments, name: wrong}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_wrong_is_refused_in_words(name: str) -> None:
    found = calls(FUNCTIONS[name])
    assert found, f"the example of {name} does not call it"
    raw = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for argument, wrong, arguments in spoilt(found[0]):
            try:
                FUNCTIONS[name](**arguments)
            except VenireError:
                continue
            except Exception as error:
                raw.append(f"{argument}={wrong!r}: {type(error).__name__}: {error}")
    assert raw == []


def test_a_number_of_models_to_keep_may_stand_alone() -> None:
    given = public.ballots(
        list("aaabbbccc") * 2, ["q"] * 9 + ["r"] * 9, list("abc") * 6, [1, 2, 3, 2, 1, 3, 1, 3, 2] * 2
    )
    known = {"a": 3.0, "b": 2.0, "c": 1.0}
    one, same = (public.truncation(given, known, best, public.borda, replicates=20) for best in (2, [2]))
    assert [found.best for found in one] == [found.best for found in same] == [2]
    with pytest.raises(InputError, match="best has 'q'"):
        public.truncation(given, known, ["q"], public.borda)  # type: ignore[list-item]
