"""A word that is none of a list: the nearest is named, on every road to the list; and verbs where others have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.arena.errors import InputError
from venire.arena.registry import METHODS, POLICIES, PROTOCOLS, REGISTRIES
from venire.arena.wording import nearest
from venire.cli.verbs import VERBS
from venire.configs.loading import load_campaign
from venire.orchestrator.planning.respondents import respondents


def slips(names: Any) -> Iterator[tuple[str, str]]:
    """Names without a letter, each with what is nearest to that: mostly the name itself."""
    for name in names:
        slip = name[:1] + name[2:]
        if slip not in names and (near := nearest(slip, names)) is not None:
            yield slip, near


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda one: one.kind)
def test_every_registry_names_the_nearest(registry: Any) -> None:
    found = list(slips(registry))
    assert len(found) >= len(registry) - 1
    assert sum(near[2:] == slip[1:] for slip, near in found) >= len(found) - 1, found
    for slip, near in found:
        with pytest.raises(InputError, match=f"did you mean '{near}'"):
            registry.find(slip)


def test_every_verb_and_every_verb_of_a_group_is_proposed(venire: Callable[..., Any], verbs: Any) -> None:
    groups = {"": verbs, **{name: one for name, one in verbs.commands.items() if hasattr(one, "commands")}}
    assert set(groups) >= {"", "store", "batch", "import", "prompts"}
    for group, of in groups.items():
        for slip, near in list(slips(of.list_commands(None)))[:30]:
            done = venire(*group.split(), slip)
            assert done.code == 2
            assert f"did you mean '{near}'" in done.err or f"`venire {near}" in done.err, done.err


def test_the_verbs_are_those_of_the_help_with_a_line_each(venire: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = venire("--help").out
    for heading, members in VERBS.items():
        part = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in part] == list(members), f"a verb of {heading} takes two lines"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("backup", "S", "out.duckdb"), "`venire store backup S out.duckdb`"),
        (("store", "report", "S"), "`venire report S`"),
        (("cancel", "S"), "`venire batch cancel S`"),
        (("view", "my store"), "`venire serve 'my store'`"),
        (("batch", "stats"), "'status'"),
        (("rate", "S", "--ties", "dop"), "'drop'"),
    ],
)
def test_a_verb_of_another_place_or_tool_is_proposed_with_its_arguments(
    venire: Callable[..., Any], typed: tuple[str, ...], meant: str
) -> None:
    done = venire(*typed)
    assert done.code == 2
    assert f"did you mean {meant}?" in done.err


def test_what_was_meant_is_done(venire: Callable[..., Any], judged: Callable[..., Path], tmp_path: Path) -> None:
    store = judged()
    assert venire("help", "run").out.startswith("Usage: venire run")
    assert "no batch was sent" in venire("batch", "status", store).out
    assert venire("store", "status", store).out == venire("status", store).out
    for words in (
        ("store", "backup", store),
        ("report", store),
        ("export", store, "battles"),
        ("annotate", store),
        ("store", "merge", store, store),
    ):
        target = tmp_path / f"{len(words)}-{words[1] if words[0] == 'store' else words[0]}.html"
        target = target.with_suffix({"store": ".duckdb", "export": ".csv"}.get(str(words[0]), ".html"))
        done = venire(*words, target)
        assert (target.exists(), done.code) == (True, 0), done.err


@pytest.mark.parametrize(
    ("table", "key", "slip", "near"),
    [
        *(("plan", "policy", slip, near) for slip, near in slips(POLICIES)),
        *(("judge", "protocol", slip, near) for slip, near in slips(PROTOCOLS) if near not in ("generate", "edit")),
    ],
)
def test_a_campaign_file_names_the_nearest(tmp_path: Path, table: str, key: str, slip: str, near: str) -> None:
    plan, judge = ({key: slip} if table == one else {} for one in ("plan", "judge"))
    file = tmp_path / "campaign.toml"
    file.write_text(
        'name = "x"\nstore = "x.duckdb"\n[plan]\n'
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in ({"policy": "random"} | plan).items())
        + "[[judge]]\n"
        + "".join(
            f"{name} = {json.dumps(value)}\n"
            for name, value in ({"model": "simulated/steady@1", "protocol": "two-stage"} | judge).items()
        )
    )
    with pytest.raises(InputError, match=f"did you mean [\"']{near}[\"']"):
        respondents(load_campaign(file))


def test_python_names_the_nearest_of_every_list() -> None:
    rows = [{"model_a": "oak", "model_b": "elm", "winner": "oak"}]
    for slip, near in slips(METHODS):
        with pytest.raises(InputError, match=f"did you mean '{near}'"):
            vn.rate(rows, method=slip)
    with pytest.raises(InputError, match="did you mean 'tie'"):
        vn.rate(rows, both_bad="tye")  # type: ignore[arg-type]
