"""`venire prompts` shows what judges are sent, to the byte, and asks nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest

from venire.configs.loading import load_campaign
from venire.judges import PROTOCOLS
from venire.judges.providers.base import Endpoint
from venire.judges.providers.openai import OpenAIProvider
from venire.orchestrator.recording.ending import Ending
from venire.prompts import render_request

Settle = Callable[..., Ending]
OWN = '[[judge]]\nname = "j"\nmodel = "simulated/gpt-4-0613@1"\nprotocol = "{protocol}"\n{more}\n'
FIRST_SENT = """
select t.protocol, a.trial, a.step, a.request_digest from attempt a join trial t on t.id = a.trial
qualify row_number() over (partition by t.protocol order by a.trial, a.step) <= 2 order by a.trial, a.step
"""
"""The first two calls under each protocol."""


@pytest.fixture
def file(write_campaign: Callable[..., Path]) -> Path:
    return write_campaign(instructions=1)


def of_two_models(file: Path) -> None:
    """Leaves the completions of two of the six models beside a campaign file: one matchup."""
    table = file.with_name("completions.jsonl")
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = sorted({json.loads(line)["model"] for line in lines})[:2]
    table.write_text("".join(line for line in lines if json.loads(line)["model"] in kept), encoding="utf-8")


def in_store(file: Path, query: str) -> list[Any]:
    with duckdb.connect(str(file.with_suffix(".duckdb")), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_every_prompt_is_listed_with_its_purpose_and_variables(venire: Any) -> None:
    found = venire("prompts", "list", "--json").json()
    sent = {(name, prompt) for name, entry in PROTOCOLS.items() for prompt in entry.prompts}
    assert {(one["protocol"], one["prompt"]) for one in found} == sent
    assert all(one["purpose"] and one["expected_answer"] for one in found)
    reasons = next(one for one in found if (one["protocol"], one["prompt"]) == ("two-stage", "reasons"))
    assert reasons["variables"] == ["instruction", "first", "second"]
    assert reasons["digest"] == PROTOCOLS["two-stage"].digests()[0].hex()
    seen = venire("prompts", "list").out
    assert "$instruction $first $second ->" in seen
    assert "own: generate, recorded" in seen


def test_a_prompt_is_shown_as_its_file_stands(venire: Any) -> None:
    shown = venire("prompts", "show", "two-stage/verdict").out
    assert shown.startswith("purpose: the second request; ")
    assert "\n---\nNow decide, on the strength of these reasons." in shown
    assert list(venire("prompts", "show", "direct_reference", "--json").json()) == [
        "direct-reference/question",
        "direct-reference/repair",
    ]
    assert "\n===== two-stage/repair =====\n" in venire("prompts", "show", "two-stage").out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("two", "there is no protocol 'two'; did you mean 'two-stage'?"),
        ("binary/reasons", "protocol 'binary' has no prompt 'reasons'; it sends: question, repair"),
        ("binary/", "has no prompt ''"),
        ("generate", "protocol 'generate' has no prompt of its own"),
    ],
)
def test_a_prompt_that_is_not_there_is_told_with_those_that_are(name: str, told: str, venire: Any) -> None:
    refused = venire("prompts", "show", name)
    assert (refused.code, told in refused.err) == (2, True)


def test_what_is_rendered_is_what_the_judge_was_sent(settle: Settle, write_campaign: Any) -> None:
    """The digest of each call that was sent is that of the request shown for its step, whatever the protocol."""
    protocols = sorted(PROTOCOLS.keys() - {"edit", "generate", "recorded"})
    judges = "".join(
        OWN.format(protocol=one, more='system = "Be strict."').replace('"j"', f'"{one}"') for one in protocols
    )
    file = write_campaign(instructions=1, judges=judges)
    table = file.with_name("instructions.jsonl")
    rows = [json.loads(line) | {"reference": "42"} for line in table.read_text(encoding="utf-8").splitlines()]
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    of_two_models(file)
    before = render_request(load_campaign(file), None, None)  # which also plans
    assert (before.planned_now, before.step, before.outcome) == (True, 1, None)
    assert settle(file) is Ending.COMPLETE
    sent = in_store(file, FIRST_SENT)
    assert len({protocol for protocol, *_ in sent}) == len(protocols)
    wire = OpenAIProvider(Endpoint("http://127.0.0.1:9/v1", None, 1.0, 1))
    for protocol, trial, step, digest in sent:
        found = render_request(load_campaign(file), str(trial), step)
        body = wire.encode("simulated/gpt-4-0613@1", found.request)
        assert sha256(body).digest()[:16] == bytes(digest), (protocol, step)
        assert (found.step, found.planned_now) == (step, False)
        if (trial, step) == (before.trial.id, 1):
            assert found.request == before.request


def test_the_texts_stand_in_their_fences_under_the_role_of_each_message(
    venire: Any, file: Path, settled: Callable[[Path], Path]
) -> None:
    settled(file)
    seen = venire("prompts", "render", file, "--trial", 1).out
    told = venire("prompts", "render", file, "--trial", 1, "--json").json()
    assert [one["role"] for one in told["messages"]] == ["user", "assistant", "user"]
    assert (told["step"], told["steps"], told["status"], told["replies_on_record"]) == (2, 2, "ok", 2)
    for number, one in enumerate(told["messages"], 1):
        assert f"\n----- message {number} of 3: {one['role']} -----\n{one['content']}\n" in seen
    assert f"the order shown: {', '.join(told['shown'])}" in seen
    assert "step 2 of 2" in seen
    assert "settled: ok" in seen
    assert "\n<<<" in told["messages"][0]["content"]


def test_a_trial_is_named_by_number_or_by_the_first_digits_of_its_key(venire: Any, file: Path) -> None:
    told = venire("prompts", "render", file, "--json").json()
    for name in (told["trial"], told["key"], told["key"][:14].upper(), told["key"] + " "):
        assert venire("prompts", "render", file, "--trial", name, "--json").json()["key"] == told["key"]
    assert "there is no such trial" in venire("prompts", "render", file, "--trial", told["key"][3:]).err


def test_what_cannot_be_rendered_is_told(venire: Any, file: Path) -> None:
    for options, told in (
        (("--trial", "9999"), ("--trial 9999", "60 trials", "from 1")),
        (("--trial", ""), ("--trial ''", "hexadecimal")),
        (("--trial", "9" * 40), ("--trial '9999", "hexadecimal")),
        (("--trial", "0x1"), ("--trial", "hexadecimal")),
        (("--step", "2"), ("the reply to step 1 is not on record",)),
        (("--contestants",), ("names no contestant",)),
    ):
        refused = venire("prompts", "render", file, *options)
        assert (refused.code, refused.out) == (2, "")
        assert not [part for part in told if part not in refused.err], refused.err


def test_rendering_reads_a_plan_that_is_there_and_writes_nothing(venire: Any, file: Path) -> None:
    assert venire("plan", file).code == 0
    for table in ("instructions.jsonl", "completions.jsonl"):
        file.with_name(table).unlink()  # whoever imported again would miss them
    before = file.with_suffix(".duckdb").read_bytes()
    shown = venire("prompts", "render", file)
    assert shown.code == 0, shown.err
    assert "the data was imported" not in shown.out
    assert file.with_suffix(".duckdb").read_bytes() == before


def test_without_a_plan_it_is_made_and_told(venire: Any, file: Path) -> None:
    assert "written, as by `venire plan`" in venire("prompts", "render", file).out
    assert "the data was imported" not in venire("prompts", "render", file).out
    assert in_store(file, "select count(*) from attempt") == [(0,)]


def test_what_a_contestant_is_sent_is_its_instruction(venire: Any, write_campaign: Any) -> None:
    more = '[[contestant]]\nname = "new"\nmodel = "simulated/claude-v1@1"'
    told = venire("prompts", "render", write_campaign(more=more), "--contestants", "--json").json()
    assert (told["protocol"], told["shown"], [one["role"] for one in told["messages"]]) == ("generate", [], ["user"])


def test_own_prompts_are_shown_against_ours_and_against_those_of_the_plan(venire: Any, write_campaign: Any) -> None:
    own = "Say 1 or 2.\n$instruction\n$first\n$second"
    judge = OWN.format(protocol="binary", more='prompts = { question = "own.txt" }')
    file = write_campaign(judges=judge)
    file.with_name("own.txt").write_text(own, encoding="utf-8")
    fresh = venire("prompts", "diff", file, "--json").json()
    assert [(one["judge"], one["prompt"], one["against"]) for one in fresh["differences"]] == [
        ("j", "binary/question", "default")
    ]
    assert fresh["told"] == ["there is no store small.duckdb yet to compare with"]
    assert "+Say 1 or 2." in fresh["differences"][0]["diff"].splitlines()
    assert not file.with_suffix(".duckdb").exists()

    assert venire("plan", file).code == 0
    assert "same prompts and settings" in venire("prompts", "diff", file).out

    file.with_name("own.txt").write_text(own.replace("Say", "Write"), encoding="utf-8")
    changed = venire("prompts", "diff", file, "--json").json()["differences"]
    assert [one["against"] for one in changed] == ["default", "store"]
    assert changed[1]["diff"].splitlines()[-5:-3] == ["-Say 1 or 2.", "+Write 1 or 2."]

    write_campaign(judges=judge + 'max_tokens = 9\nsystem = "Be strict."')
    told = venire("prompts", "diff", file, "--json").json()
    assert ("binary/system", "store") in [(one["prompt"], one["against"]) for one in told["differences"]]
    assert told["told"] == ["judge 'j': max_tokens was '800' and is '9'"]


def test_texts_of_an_earlier_version_are_told_from_the_store(
    venire: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of the texts on record a judge was planned with follows from its key."""
    from string import Template

    from venire.judges import prompts

    ours, load = "Now decide: 1, 2 or 0.", prompts.load
    with monkeypatch.context() as earlier:
        earlier.setattr(prompts, "load", lambda p, n: Template(ours) if n == "verdict" else load(p, n))
        assert venire("plan", file).code == 0
    told = venire("prompts", "diff", file, "--json").json()
    assert {(one["judge"], one["prompt"], one["against"]) for one in told["differences"]} == {
        (judge, "two-stage/verdict", "store") for judge in ("gpt-4-0613", "claude-3-opus")
    }
    assert f"-{ours}" in told["differences"][0]["diff"].splitlines()
    refused = venire("prompts", "render", file)
    assert refused.code == 2
    assert "other prompts" in refused.err
    assert "`venire prompts diff" in refused.err


def test_a_judgment_on_record_was_asked_nobody_knows_how(venire: Any, file: Path) -> None:
    table = "instruction_id,first,second,verdict\n"
    rows = [json.loads(line) for line in file.with_name("completions.jsonl").read_text(encoding="utf-8").splitlines()]
    a, b = [one for one in rows if one["instruction_id"] == rows[0]["instruction_id"]][:2]
    file.with_name("r.csv").write_text(
        f"{table}{a['instruction_id']},{a['model']},{b['model']},tie\n", encoding="utf-8"
    )
    text = file.read_text(encoding="utf-8").partition("[plan]")[0]
    text += '[plan]\npolicy = "recorded"\n[[judge]]\nmodel = "people"\nprovider = "replay"\nrecorded = "r.csv"\n'
    file.write_text(text, encoding="utf-8")
    assert "judgment was made elsewhere" in venire("prompts", "render", file).out


def test_a_judge_that_cuts_texts_is_the_judge_that_was_planned(
    venire: Any, write_campaign: Any, settle: Settle
) -> None:
    """The danger: the vocabulary that tokens are counted by is part of its key, and is looked up after loading."""
    more = 'max_tokens = 300\ncontext = 1100\ntoo_long = "truncate-both"'
    file = write_campaign(judge=more, instructions=1)
    assert settle(file) is Ending.COMPLETE
    assert venire("prompts", "diff", file, "--json").json() == {"differences": [], "told": []}
    cut, trial = in_store(file, "select cut, trial from attempt where cut > 0 and step = 1 limit 1")[0]
    shown = venire("prompts", "render", file, "--trial", trial, "--step", 1)
    assert shown.code == 0, shown.err
    assert cut > 0
    assert " characters cut ...]" in shown.out
