"""What an OpenAI client meets at the simulated provider, over real HTTP on loopback."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from venire.simulation.answer_key import AnswerKey
from venire.simulation.chat_replies import UNREADABLE
from venire.simulation.judge import load_profiles, parse_model, simulate
from venire.simulation.server import JudgeServer

TABLE = json.loads(files("venire.simulation").joinpath("profiles.json").read_bytes())
DIGIT = {"first": "1", "second": "2", "tie": "0", None: UNREADABLE}
STEADY = "simulated/gpt-4-0613@1"

Ask = Callable[..., dict[str, Any]]


def said_of(
    field: Any, model: str, first: str, second: str, instruction_id: str = "q-0", repeat: int = 1, own: int = 0
) -> Any:
    """What the formula says of a pair of the field."""
    profile, seed = parse_model(model)
    chars = [len(field.completion(name, instruction_id)) for name in (first, second)]
    return simulate(profile, seed, instruction_id=instruction_id, first=first, second=second, repeat=repeat, own=own,
                    gap=field.elo[first] - field.elo[second], chars_first=chars[0], chars_second=chars[1])  # fmt: skip


def examples_by_setting() -> list[list[dict[str, Any]]]:
    """The table's examples in groups that one answer key can serve: same ratings and same owner of each text."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for example in TABLE["examples"]:
        groups.setdefault((str(example["instruction_id"]), abs(example["gap"])), []).append(example)
    return list(groups.values())


@pytest.mark.parametrize(
    "examples", examples_by_setting(), ids=lambda group: f"instruction-{group[0]['instruction_id']}"
)
def test_the_examples_of_the_table_hold_over_http(examples: Any, prompt: Any, ask: Ask, talk: Any) -> None:
    one = examples[0]
    elo = {one["first"]: 1000.0 + one["gap"], one["second"]: 1000.0}
    texts = {one[side]: one[side][0] * one[f"chars_{side}"] for side in ("first", "second")}
    own = {example["profile"]: example["first"] for example in examples if example["own"] == 1}
    key = AnswerKey([(str(one["instruction_id"]), "Say.", name, text) for name, text in texts.items()], elo, own)

    async def script(client: Any) -> None:
        for example in examples:
            model = f"simulated/{example['profile']}@{example['seed']}"
            question = prompt("Say.", texts[example["first"]], texts[example["second"]])
            reasons = await client.chat(ask(model, question, seed=example["repeat"]))
            verdict = await client.chat(ask(model, question, "verdict", seed=example["repeat"]))
            assert reasons.usage["completion_tokens"] == example["reply_tokens"]
            assert (verdict.text, verdict.usage["completion_tokens"]) == (DIGIT[example["verdict"]], 1)

    talk(JudgeServer(key, speed=0), script)


def test_the_examples_over_http_are_all_39() -> None:
    assert sum(map(len, examples_by_setting())) == 39


def test_an_answer_has_the_form_of_a_chat_completion(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    body = ask(STEADY, field.prompt("ant", "cat"))

    async def script(client: Any) -> None:
        answer = await client.chat(body)
        said = said_of(field, STEADY, "ant", "cat")
        prompt_tokens = round(0.1993 * len(body["messages"][0]["content"]))
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        assert set(answer.json) == {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"}
        assert (answer.json["object"], answer.json["model"]) == ("chat.completion", STEADY)
        assert abs(answer.json["created"] - time.time()) < 60
        (choice,) = answer.json["choices"]
        assert (choice["index"], choice["finish_reason"], choice["message"]["role"]) == (0, "stop", "assistant")
        assert answer.usage == {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": said.reply_tokens,
            "total_tokens": prompt_tokens + said.reply_tokens,
        }

    talk(make_server(), script)


def test_prompt_tokens_count_every_message(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    body = ask(STEADY, field.prompt("ant", "cat"), "verdict")
    characters = sum(len(message["content"]) for message in body["messages"])

    async def script(client: Any) -> None:
        assert (await client.chat(body)).usage["prompt_tokens"] == round(0.1993 * characters)

    talk(make_server(), script)


def test_reasons_speak_of_both_answers_and_hold_no_verdict(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        for number in range(30):
            answer = await client.chat(ask("simulated/claude-v1@3", field.prompt("ant", "cat", f"q-{number}")))
            assert re.search(r"\d", answer.text) is None
            assert "first answer" in answer.text
            assert "second answer" in answer.text
            assert len(answer.text) == pytest.approx(min(1800, answer.usage["completion_tokens"] / 0.1993), rel=0.15)

    talk(make_server(), script)


def test_the_order_of_the_texts_says_who_is_first(field: Any, ask: Ask, talk: Any, prompt: Any) -> None:
    rows = [("i", "Why?", model, text) for model, text in (("weak", "No."), ("strong", "Yes."))]
    server = JudgeServer(AnswerKey(rows, {"weak": 0.0, "strong": 3000.0}), speed=0)

    async def script(client: Any) -> None:
        weak_first = await client.chat(ask(STEADY, prompt("Why?", "No.", "Yes."), "verdict"))
        strong_first = await client.chat(ask(STEADY, prompt("Why?", "Yes.", "No."), "verdict"))
        assert (weak_first.text, strong_first.text) == ("2", "1")

    talk(server, script)


def test_verdicts_are_the_formulas_for_every_profile_order_and_repeat(
    field: Any, ask: Ask, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        for profile in load_profiles():
            for first, second, repeat in (("ant", "bee", 1), ("bee", "ant", 1), ("ant", "bee", 2), ("cat", "bee", 3)):
                model = f"simulated/{profile}@5"
                answer = await client.chat(ask(model, field.prompt(first, second), "verdict", seed=repeat))
                assert answer.text == DIGIT[said_of(field, model, first, second, repeat=repeat).verdict]

    talk(make_server(), script)


def test_a_judge_favours_its_own_answers_where_the_answer_key_names_them(field: Any, ask: Ask, talk: Any) -> None:
    model = "simulated/gpt-4-0125-preview@5"

    async def script(client: Any) -> None:
        swayed = 0
        for instruction_id in field.instructions:
            for first, second, own in (("ant", "bee", -1), ("bee", "ant", 1), ("ant", "cat", 0)):
                answer = await client.chat(ask(model, field.prompt(first, second, instruction_id), "verdict"))
                assert answer.text == DIGIT[said_of(field, model, first, second, instruction_id, own=own).verdict]
                swayed += answer.text != DIGIT[said_of(field, model, first, second, instruction_id).verdict]
        assert swayed > 0

    talk(JudgeServer(field.key(own={"gpt-4-0125-preview": "bee"}), speed=0), script)


def test_a_request_without_seed_is_the_first_repeat(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        bodies = [ask(STEADY, field.prompt("ant", "cat"), **fields) for fields in ({}, {"seed": 1}, {"seed": 2})]
        tokens = [(await client.chat(body)).usage["completion_tokens"] for body in bodies]
        assert tokens[0] == tokens[1] != tokens[2]

    talk(make_server(), script)


def test_about_half_of_the_unreadable_verdicts_are_repaired_to_what_was_meant(
    field: Any, ask: Ask, talk: Any, make_server: Any
) -> None:
    model = "simulated/vicuna-13b@11"

    async def script(client: Any) -> None:
        readable = unreadable = repaired = 0
        for instruction_id in field.instructions:
            for first, second in (("ant", "bee"), ("bee", "ant"), ("cat", "ant"), ("bee", "cat")):
                question = field.prompt(first, second, instruction_id)
                verdict = await client.chat(ask(model, question, "verdict"))
                repair = await client.chat(ask(model, question, "repair"))
                said = said_of(field, model, first, second, instruction_id)
                if verdict.text != UNREADABLE:
                    readable += 1
                    assert repair.text == verdict.text
                    continue
                unreadable += 1
                repaired += repair.text != UNREADABLE
                assert repair.text in (UNREADABLE, DIGIT[said.leaning])
                assert verdict.usage["completion_tokens"] == repair.usage["completion_tokens"] == 1
        assert unreadable / (readable + unreadable) == pytest.approx(0.1319, abs=0.06)
        assert 0.25 < repaired / unreadable < 0.75

    talk(make_server(), script)


@pytest.mark.parametrize("stage", ["reasons", "verdict", "repair"])
def test_texts_that_are_not_known_get_a_reply_that_cannot_be_read(
    stage: str, field: Any, ask: Ask, talk: Any, make_server: Any, prompt: Any
) -> None:
    known = field.completion("ant", "q-0")
    questions = [prompt(field.instructions["q-0"], known, "Never seen."), prompt("Never asked.", known, known)]

    async def script(client: Any) -> None:
        for question in questions:
            answer = await client.chat(ask(STEADY, question, stage, max_tokens=20))
            assert answer.status == 200
            assert re.search(r"\d", answer.text) is None
            assert (answer.text == UNREADABLE) == (stage != "reasons")

    talk(make_server(), script)


def test_a_limit_of_tokens_is_kept(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        question = field.prompt("ant", "cat")
        whole = await client.chat(ask(STEADY, question, max_tokens=1000))
        for name in ("max_tokens", "max_completion_tokens"):
            short = await client.chat(ask(STEADY, question, **{name: 10}))
            assert (short.json["choices"][0]["finish_reason"], short.usage["completion_tokens"]) == ("length", 10)
            assert whole.text.startswith(short.text)
            assert 0 < len(short.text) < 80
        verdict = await client.chat(ask(STEADY, question, "verdict", max_tokens=1))
        assert (verdict.json["choices"][0]["finish_reason"], verdict.text) == ("stop", "2")

    talk(make_server(), script)


def test_a_message_in_parts_is_read_as_one(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    body = ask(STEADY, field.prompt("ant", "cat"))
    whole = body["messages"][0]["content"]
    parts = [{"type": "text", "text": whole[:40]}, {"type": "text", "text": whole[40:]}]
    split = {**body, "messages": [{"role": "system", "content": ""}, {"role": "user", "content": parts}]}

    async def script(client: Any) -> None:
        assert (await client.chat(split)).usage == (await client.chat(body)).usage

    talk(make_server(), script)


@pytest.mark.parametrize("model", ["gpt-4", "simulated/nobody@1", "simulated/bard"])
def test_a_model_that_is_not_simulated_is_not_found(
    model: str, field: Any, ask: Ask, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        answer = await client.chat(ask(model, field.prompt("ant", "cat")))
        assert answer.status == 404
        assert set(answer.json["error"]) == {"message", "type", "code", "param"}
        assert answer.json["error"]["code"] == "model_not_found"
        assert model in answer.json["error"]["message"]

    talk(make_server(), script)


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"model": 1}, "model"),
        ({"model": ""}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["x"]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": [{"content": "x"}]}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"seed": "1"}, "seed"),
        ({"seed": True}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": []}, "stream_options"),
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_a_request_with_a_wrong_field_is_refused_and_the_field_named(
    wrong: dict[str, Any], param: str, field: Any, ask: Ask, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        answer = await client.chat({**ask(STEADY, field.prompt("ant", "cat")), **wrong})
        assert answer.status == 400
        assert (answer.json["error"]["type"], answer.json["error"]["param"]) == ("invalid_request_error", param)
        assert client.server.ledger.entries[0].outcome == "400"

    talk(make_server(), script)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"model"', b'{"model": "\xff"}'])
def test_a_body_that_is_no_object_of_json_is_refused(body: bytes, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        answer = await client.chat(body)
        assert (answer.status, answer.json["error"]["param"]) == (400, None)
        assert client.server.ledger.entries[0].outcome == "400"

    talk(make_server(), script)


def test_the_models_are_listed_and_can_be_asked(field: Any, ask: Ask, talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        listed = (await client.get("/models")).json
        assert listed["object"] == "list"
        names = [model["id"] for model in listed["data"]]
        assert names == [f"simulated/{profile}@4" for profile in load_profiles()]
        assert {model["object"] for model in listed["data"]} == {"model"}
        for name in names:
            assert (await client.chat(ask(name, field.prompt("ant", "cat")))).status == 200

    talk(make_server(seed=4), script)


def test_other_paths_are_refused_in_the_same_form(talk: Any, make_server: Any) -> None:
    async def script(client: Any) -> None:
        for path in ("/embeddings", "/chat/completions"):
            answer = await client.get(path)
            assert (answer.status, set(answer.json)) == (404, {"error"})

    talk(make_server(), script)


def test_a_required_key_is_required_and_a_wrong_one_is_quoted(
    field: Any, ask: Ask, talk: Any, make_server: Any
) -> None:
    async def script(client: Any) -> None:
        body = ask(STEADY, field.prompt("ant", "cat"))
        missing = await client.chat(body)
        wrong = await client.chat(body, {"Authorization": "Bearer sk-wrong"})
        right = await client.chat(body, {"Authorization": "Bearer sk-right"})
        assert (missing.status, wrong.status, right.status) == (401, 401, 200)
        assert "sk-wrong" in wrong.json["error"]["message"]
        assert wrong.json["error"]["code"] == "invalid_api_key"
        assert (await client.get("/models")).status == 401
        assert (await client.get("/models", Authorization="Bearer sk-right")).status == 200
        assert [entry.outcome for entry in client.server.ledger.entries] == ["401", "401", "answered"]

    talk(make_server(require_key="sk-right"), script)


def test_replies_take_the_formulas_time_divided_by_the_speed(
    field: Any, ask: Ask, talk: Any, make_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = said_of(field, STEADY, "ant", "cat")
    times: list[float] = []

    async def note(seconds: float) -> None:
        times.append(seconds)

    async def script(client: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("venire.simulation.server.asyncio.sleep", note)
            for stage in ("reasons", "verdict", "repair"):
                await client.chat(ask(STEADY, field.prompt("ant", "cat"), stage))

    talk(make_server(speed=4.0), script)
    profile = load_profiles()["gpt-4-0613"]
    noise = said.latency_s / (profile.first_token_s + said.reply_tokens / profile.tokens_per_s)
    short = (profile.first_token_s + 1 / profile.tokens_per_s) * noise / 4
    assert times == pytest.approx([said.latency_s / 4, short, short])
