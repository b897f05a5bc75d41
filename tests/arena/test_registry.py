"""Registries: ours and those of installed packages by one name, loaded when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from venire.arena.errors import InputError
from venire.arena.registry import METHODS, POLICIES, PROTOCOLS, REGISTRIES, Registry

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package of this name on the path, with one module and these entry points (group, name, reference)."""

    def make(package: str, source: str, *points: tuple[str, str, str]) -> None:
        (tmp_path / f"{package}.py").write_text(source, encoding="utf-8")
        facts = tmp_path / f"{package}-1.2.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n", encoding="utf-8")
        lines = [f"[{group}]\n{name} = {reference}\n" for group, name, reference in points]
        (facts / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))

    return make


def words(own: dict[str, str] | None = None) -> Registry[str]:
    return Registry("word", "builtins:str", own or {"ours": "string:digits"})


def test_a_part_is_loaded_when_it_is_asked_for_and_not_before() -> None:
    found = Registry[str]("word", "builtins:str", {"there": "string:digits", "lost": "no_such_module:X"})
    assert list(found) == ["there", "lost"]
    assert "lost" in found
    assert found["there"] == "0123456789"
    with pytest.raises(InputError, match=r"the word 'lost' of venire cannot be loaded from 'no_such_module:X'"):
        found["lost"]


def test_installed_packages_add_parts(install: Install) -> None:
    install("more_words", "HI = 'hi'", ("venire.words", "hi", "more_words:HI"))
    found = words()
    assert (list(found), found["hi"], found.package("hi")) == (["ours", "hi"], "hi", "more_words 1.2")
    assert found.package("ours") == "venire"


@pytest.mark.parametrize(
    ("source", "reference", "says"),
    [
        ("", "bad_words:HI", "cannot be loaded from 'bad_words:HI'"),
        ("import no_such_module", "bad_words:HI", "No module named 'no_such_module'"),
        ("HI = (", "bad_words:HI", "cannot be loaded"),
        ("HI = 5", "bad_words:HI", "is a int, and must be a builtins.str"),
    ],
)
def test_a_package_that_is_broken_is_named_with_what_to_do(
    install: Install, source: str, reference: str, says: str
) -> None:
    install("bad_words", source, ("venire.words", "hi", reference))
    sys.modules.pop("bad_words", None)
    with pytest.raises(InputError, match=says) as told:
        words()["hi"]
    assert "bad_words 1.2" in str(told.value)
    assert "uninstall that package" in str(told.value)
    assert words()["ours"]  # the others go on


def test_two_packages_with_one_name_are_told_apart_by_nobody_and_refused(install: Install) -> None:
    install("more_words", "HI = 'hi'", ("venire.words", "ours", "more_words:HI"))
    with pytest.raises(InputError, match=r"two packages give a word 'ours': venire and more_words 1\.2; uninstall"):
        list(words())
    assert words()["ours"] == "0123456789"  # which needs no look at what is installed


def test_a_name_that_is_unknown_is_answered_with_those_that_are_there() -> None:
    with pytest.raises(InputError, match="there is no word 'x'; there is: ours"):
        words().find("x")
    with pytest.raises(KeyError):
        words()["x"]


def test_a_part_can_be_registered_in_one_process_and_taken_away() -> None:
    found = words()
    found.register("mine", "text")
    assert (found["mine"], list(found), len(found), found.package("mine")) == (
        "text",
        ["ours", "mine"],
        2,
        "this process",
    )
    with pytest.raises(InputError, match="there is a word 'ours' of venire already"):
        found.register("ours", "text")
    with pytest.raises(InputError, match="is a int, and must be"):
        found.register("five", 5)  # type: ignore[arg-type]
    found.unregister("mine")
    assert "mine" not in found


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda one: one.kind)
def test_every_part_of_ours_is_there_and_of_its_class(registry: Registry[object]) -> None:
    assert len(registry) > 3
    for name in registry:
        assert registry[name]
        assert registry.package(name) == "venire"


def test_kinds_have_the_groups_that_the_documentation_names() -> None:
    groups = [registry.group for registry in REGISTRIES]
    assert groups == ["venire.protocols", "venire.providers", "venire.policies", "venire.methods", "venire.formats"]


def test_names_are_known_without_loading_what_they_name() -> None:
    code = (
        "import sys; from venire.arena.registry import METHODS, PROTOCOLS; list(METHODS), list(PROTOCOLS); "
        "print([name for name in sys.modules if name.startswith(('venire.', 'numpy')) and 'arena' not in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"binary"} <= set(PROTOCOLS)
    assert {"elo"} <= set(METHODS)
    assert {"random"} <= set(POLICIES)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_case_and_underscores_make_no_difference_to_the_names_of_a_registry(registry: Registry[Any]) -> None:
    for name in registry:
        assert {registry.named(word) for word in (name, name.replace("-", "_"), name.title())} == {name}
    assert registry.named("No_such") == "No_such"
