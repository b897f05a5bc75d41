"""A key of the environment shows in nothing that Python prints or pickles of the product."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import venire
from venire.endpoints import Secrets
from venire.judges.providers import PROVIDERS, Endpoint
from venire.live.guard import TOKEN_VARIABLE, Guard, parse_address

KEY = "sk-planted-0123456789abcdef"


def modules() -> Iterator[Any]:
    """Every module of the product."""
    yield venire
    for module in pkgutil.walk_packages(venire.__path__, "venire."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def members(owner: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A module or class of the product, its functions and constants, and the same of its classes; by name."""
    yield name, owner
    for key, value in list(vars(owner).items()):
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        value = value.fget if isinstance(value, property) else value
        qualified = f"{owner.__qualname__}.{key}" if inspect.isclass(owner) else key
        if inspect.isclass(value) and value.__qualname__ == qualified and value.__module__.startswith("venire"):
            yield from members(value, f"{name}.{key}")
        elif getattr(value, "__module__", name) in (
            name,
            getattr(owner, "__module__", name),
        ):  # and not what it imports
            yield f"{name}.{key}", value


def shown(value: Any) -> Iterator[str]:
    """What help, a tooltip or a print shows of a value."""
    yield inspect.getdoc(value) or ""
    with suppress(TypeError, ValueError):  # no callable, or one of C
        yield str(inspect.signature(value))
    yield repr(value)


def test_no_signature_docstring_or_repr_of_the_product_holds_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    walked = [pair for module in modules() for pair in members(module, module.__name__)]
    assert [name for name, value in walked if any(KEY in text for text in shown(value))] == []
    assert {"venire.api.run", "venire.session.Session.run", "venire.live.guard.Guard.of"} <= {
        name for name, _ in walked
    }


def test_nothing_reads_the_environment_when_it_is_imported() -> None:
    """A constant or a default value that was read at import would hold a key for as long as the process lives."""
    early = []
    for module in modules():
        text = Path(module.__file__).read_text(encoding="utf-8")
        tree = ast.parse(text if "environ" in text or "getenv" in text else "")
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        later = {id(node) for one in functions for statement in one.body for node in ast.walk(statement)}
        reads = [one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr in ("environ", "getenv")]
        early += [f"{module.__file__}:{one.lineno}" for one in reads if id(one) not in later]
    assert early == []


def holders() -> Iterator[Any]:
    """Everything that holds a key while a campaign runs, by the registry of providers."""
    yield Secrets(KEY, f"http://user:{KEY}@127.0.0.1:9")
    yield Guard.of(parse_address("0.0.0.0:0"), {TOKEN_VARIABLE: KEY})
    for name in PROVIDERS:
        entry = PROVIDERS[name]
        endpoint = Endpoint("http://127.0.0.1:9/v1", KEY, 1.0, 1, headers={"X-Title": KEY})
        yield endpoint
        yield entry.open(endpoint)
        yield from (open_batches(endpoint) for open_batches in entry.batches.values())


def test_what_holds_a_key_neither_shows_nor_pickles_it() -> None:
    for holder in holders():
        assert KEY not in repr(holder)
        with pytest.raises(TypeError, match="holds secrets"):
            pickle.dumps(holder)
