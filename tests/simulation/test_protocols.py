"""Simulated judges answer every protocol from the formula, in replies that are read and scored as real ones are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from math import exp, log, tanh
from typing import Any

import orjson
import pytest

from venire.arena.keys import fence
from venire.arena.records import (
    Ballot,
    Completion,
    GeneratedText,
    Grade,
    Instruction,
    Material,
    Outcome,
    Preference,
    Reply,
    Request,
    Status,
    Trial,
)
from venire.judges import PROTOCOLS
from venire.judges.conversation import advance
from venire.simulation.answer_key import AnswerKey, KnownCompletion
from venire.simulation.chat_replies import UNREADABLE, JudgeReply
from venire.simulation.chat_requests import RequestError, read_request, recognise
from venire.simulation.comparisons import score_sides, utility
from venire.simulation.grades import echoes, grade_letter, margin
from venire.simulation.judge import load_profiles, parse_model, simulate
from venire.simulation.rehearsal import answer_to

STEADY = "simulated/gpt-4-0613@1"
CARELESS = "simulated/vicuna-13b@1"
OPTIONS = {"max_tokens": "4000", "temperature": "0"}


def body(model: str, request: Request) -> dict[str, Any]:
    """The request as a client of this dialect sends it."""
    sent: dict[str, Any] = {"model": model, "messages": list(request.messages), "max_tokens": request.max_tokens}
    sent["seed"] = request.seed
    if request.schema is not None:
        sent["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.schema}}
    if request.top_logprobs:
        sent |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    return sent


def spoken(model: str, request: Request, key: AnswerKey) -> JudgeReply:
    return answer_to(read_request(orjson.dumps(body(model, request))), key)


def shown(
    field: Any, instruction: str, *models: str, turns: tuple[str, ...] = (), texts: tuple[str, ...] = ()
) -> Material:
    said = turns or (field.instructions[instruction],)
    texts = texts or tuple(field.completion(model, instruction) for model in models)
    completions = tuple(Completion(model, instruction, text) for model, text in zip(models, texts, strict=True))
    fences = tuple(fence(text, b"constant") for text in ("\n\n".join(said), *texts))
    return Material(Instruction(instruction, said, reference="The reference."), completions, fences)


def settled(
    protocol: str, model: str, material: Material, key: AnswerKey, repeat: int = 1, **options: str
) -> tuple[Outcome, list[JudgeReply]]:
    """The outcome of a trial that a simulated model answers to its end, and its replies."""
    said: list[JudgeReply] = []
    while True:
        replies = [Reply(one.text, one.finish, output_tokens=one.tokens, logprobs=one.logprobs) for one in said]
        trial = Trial(bytes(16), bytes(16), protocol, "i", (), repeat)
        found = advance(PROTOCOLS[protocol].talk, trial, material, {**OPTIONS, **options}, replies)
        if isinstance(found, Outcome):
            return found, said
        said.append(spoken(model, found, key))


def pairs(field: Any) -> Iterator[tuple[str, str, str]]:
    for instruction in field.instructions:
        for first, second in (("ant", "cat"), ("cat", "ant"), ("bee", "cat")):
            yield instruction, first, second


def formula(field: Any, model: str, instruction: str, first: str, second: str) -> Any:
    profile, seed = parse_model(model)
    chars = [len(field.completion(name, instruction)) for name in (first, second)]
    gap = field.elo[first] - field.elo[second]
    return simulate(profile, seed, instruction_id=instruction, first=first, second=second, gap=gap,
                    chars_first=chars[0], chars_second=chars[1])  # fmt: skip


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "recorded"])
def test_every_protocol_is_recognised_by_its_own_words(protocol: str, field: Any) -> None:
    count = {"direct": 1, "direct-reference": 1, "echo": 1, "listwise": 3, "generate": 0}.get(protocol, 2)
    for turns in ((), ("One?", "1 or 2. A>>B?", "NO_ECHO, not attempted, rank 1 and 2")):
        material = shown(field, "q-0", *("ant", "bee", "cat")[:count], turns=turns)
        trial = Trial(bytes(16), bytes(16), protocol, "i", ())
        found = advance(PROTOCOLS[protocol].talk, trial, material, OPTIONS, ())
        assert isinstance(found, Request)
        assert recognise(read_request(orjson.dumps(body(STEADY, found)))).protocol == protocol


@pytest.mark.parametrize(
    ("protocol", "own"),
    [
        ("two-stage", "Which is better? $instruction $first $second Think it over, in 3 sentences."),
        ("two-stage", "$instruction $first $second\n1. Read both.\n2. Say what differs."),
        ("binary", "$instruction\n$first\n$second\nReply with 1 or 2."),
        ("binary", "1) Read.\n2) Choose.\n$instruction\n$first\n$second\n\"1\" for the first, \"2\" for the second"),
        ("five-point", "$instruction\n$first\n$second\nOne of A>>B, A>B, A=B, B>A, B>>A."),
        ("direct", "$instruction\n$answer\nA (right), B (wrong), C (not attempted)?"),
        ("direct-reference", "$reference is the reference.\n$instruction\n$answer\nA, B, or C: NOT_ATTEMPTED?"),
        ("echo", "$instruction\n$answer\nECHO or NO_ECHO?"),
        ("criteria", "$instruction\n$first\n$second\nJSON: adherence, helpfulness, factuality, completeness, clarity, "
                     "fluency of first and second, and preference."),
    ],
)  # fmt: skip
def test_a_prompt_of_the_users_own_is_recognised_and_answered(protocol: str, own: str, field: Any) -> None:
    name = "reasons" if protocol == "two-stage" else "question"
    models = ("ant",) if PROTOCOLS[protocol].shape == "single" else ("ant", "cat")
    key = field.key()
    found, replies = settled(protocol, STEADY, shown(field, "q-1", *models), key, **{f"prompt.{name}": own})
    assert (found.status, len(replies)) == (Status.OK, len(PROTOCOLS[protocol].expects))
    assert found.reading == settled(protocol, STEADY, shown(field, "q-1", *models), key)[0].reading


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "recorded"])
def test_examples_and_system_text_change_nothing_but_a_contestants_text(protocol: str, field: Any) -> None:
    count = {"direct": 1, "direct-reference": 1, "echo": 1, "listwise": 3, "generate": 0}.get(protocol, 2)
    material = shown(field, "q-2", *("ant", "bee", "cat")[:count])
    front = {"system": "Be fair.", "examples": '[{"user": "1 or 2?", "assistant": "1"}]'}
    plain, dressed = (settled(protocol, STEADY, material, field.key(), **one)[0] for one in ({}, front))
    assert plain.status is Status.OK
    assert (plain == dressed) == (protocol != "generate")


@pytest.mark.parametrize("model", [STEADY, CARELESS, "simulated/claude-v1@4"])
def test_pairwise_verdicts_are_the_formulas(model: str, field: Any) -> None:
    key = field.key()
    band = parse_model(model)[0].tie_band
    strong = 0
    for instruction, first, second in pairs(field):
        said = formula(field, model, instruction, first, second)
        material = shown(field, instruction, first, second)
        sign = {"first": 1, "tie": 0, "second": -1}[said.leaning]
        expected = {
            "binary": (1 if said.z > 0 else -1, pytest.approx(said.z)),
            "five-point": (sign, pytest.approx(sign * (2.0 if abs(said.z) > band + 2 else 1.0))),
            "criteria": (sign, pytest.approx(max(-9.0, min(9.0, round(6 * (said.z / 2)) / 6)))),
        }
        for protocol, (winner, score) in expected.items():
            found, replies = settled(protocol, model, material, key, logprobs="1")
            if said.verdict is None and not said.repairable:
                assert (found.status, len(replies)) == (Status.UNREADABLE, 2)
                continue
            assert len(replies) == (2 if said.verdict is None else 1)
            assert isinstance(found.reading, Preference)
            assert (found.reading.winner, found.reading.score) == (winner, score)
            strong += protocol == "five-point" and abs(found.reading.score or 0) == 2
    assert strong > 0


def test_without_being_asked_no_log_probabilities_are_told(field: Any) -> None:
    found, (reply,) = settled("binary", STEADY, shown(field, "q-0", "ant", "cat"), field.key())
    assert (reply.logprobs, found.reading.score) == ((), None)  # type: ignore[union-attr]


def test_scores_have_the_wanted_mean_difference_within_their_range() -> None:
    for number in range(-130, 131):
        z = number / 10
        levels = [(number * 7 + place * 3) % 15 - 2.0 for place in range(6)]
        first, second = score_sides(z, levels, [0.3, 0.1, 0.2, 0.6, 0.5, 0.4])
        assert all(1 <= score <= 10 for score in (*first, *second))
        mean = sum(a - b for a, b in zip(first, second, strict=True)) / 6
        assert mean == pytest.approx(max(-9.0, min(9.0, z)), abs=1 / 12 + 1e-9)


def test_an_explanation_follows_the_scores_unless_json_alone_is_asked_for(field: Any) -> None:
    material = shown(field, "q-3", "ant", "cat")
    trial = Trial(bytes(16), bytes(16), "criteria", "i", ())
    request = advance(PROTOCOLS["criteria"].talk, trial, material, OPTIONS, ())
    assert isinstance(request, Request)
    held = body(STEADY, request)
    free = {name: value for name, value in held.items() if name != "response_format"}
    texts = [answer_to(read_request(orjson.dumps(sent)), field.key()).text for sent in (held, free)]
    assert json.loads(texts[0]).keys() == {"first", "second", "preference"}
    assert texts[1].startswith(texts[0] + "\n\n")
    assert "first answer" in texts[1]
    assert {sent.text for sent in settled("criteria", STEADY, material, field.key())[1]} == {texts[0]}


def test_grades_follow_the_truth_and_a_reference_brings_them_nearer(field: Any) -> None:
    profile = load_profiles()["gpt-4-0613"]
    right: Counter[str] = Counter()
    correct: Counter[float] = Counter()
    count = 0
    for number in range(1500):
        for elo in (800.0, 1000.0, 1200.0):
            known = KnownCompletion(f"i-{number}", f"model-{elo}", elo)
            truth = margin(known)
            wanted = "C" if truth is None else "A" if truth > 0 else "B"
            correct[elo] += wanted == "A"
            count += 1
            for protocol in ("direct", "direct-reference"):
                right[protocol] += grade_letter(profile, 1, known, protocol, 1) == wanted
    assert correct[800.0] < correct[1000.0] < correct[1200.0]
    assert right["direct"] / count == pytest.approx(0.85, abs=0.05)
    assert right["direct-reference"] / count == pytest.approx(0.97, abs=0.02)


def test_a_grade_over_the_protocol_is_the_formulas_letter(field: Any) -> None:
    key = field.key()
    profile, seed = parse_model(STEADY)
    labels = {"A": 1, "B": 0, "C": 2}
    seen = set()
    for instruction in field.instructions:
        for model, elo in field.elo.items():
            for protocol in ("direct", "direct-reference"):
                found, _ = settled(protocol, STEADY, shown(field, instruction, model), key)
                letter = grade_letter(profile, seed, KnownCompletion(instruction, model, elo), protocol, 1)
                assert isinstance(found.reading, Grade)
                assert found.reading.label == labels[letter]
                seen.add(letter)
    assert seen == {"A", "B", "C"}


SOUND = [
    "The Volga.",
    "",
    "Yes, yes, yes, that is so.",
    "1. One\n2. Two\n3. Three\n4. Four",
    "Question: which river?\nAnswer: the Volga.",
    "The user asks: which? I say the Volga.",
    "It is long. It is wide. It is old. It is cold, and so on, to the sea.",
    "A line that asks\nUser: name of the account\nPassword: secret",
]
ECHOING = [
    "The Volga. " + "It is the longest river. " * 3,
    "The Volga. " + "the " * 12,
    "The Volga.\n\nQuestion: And the second?\nAnswer: The Danube.",
    "The Volga.\nQ: And the second?\nA: The Danube.\nQ: The third?\nA: The Ural.",
    "The Volga.\n\nHuman: And in Asia?\n\nAssistant: The Yangtze.",
    "The Volga.\n### Instruction: And in Asia?\n### Response: The Yangtze.",
    "The Volga. " + "Which river is the longest one in Europe? The Volga is the longest one, of course. " * 3,
]


@pytest.mark.parametrize("text", SOUND)
def test_a_sound_answer_does_not_echo(text: str) -> None:
    assert not echoes(text)


@pytest.mark.parametrize("text", ECHOING)
def test_repeated_phrases_and_new_questions_are_an_echo(text: str) -> None:
    assert echoes(text)


def test_a_judge_finds_echoes_in_texts_that_it_does_not_know_with_its_own_error(field: Any) -> None:
    for model in (STEADY, CARELESS):
        profile, _ = parse_model(model)
        wrong = read = 0
        for number in range(150):
            for text, label in ((f"The Volga {number}.", 0), (ECHOING[2] + str(number), 1)):
                found, _ = settled("echo", model, shown(field, "q-0", "ant", texts=(text,)), field.key())
                if isinstance(found.reading, Grade):
                    read += 1
                    wrong += found.reading.label != label
        assert wrong / read == pytest.approx(1 / (1 + exp(profile.slope)), abs=0.06)


@pytest.mark.parametrize("best", [None, "2", "1"])
def test_a_list_is_ranked_by_utility(best: str | None, field: Any) -> None:
    key = field.key()
    profile, seed = parse_model(STEADY)
    options = {} if best is None else {"best": best}
    for instruction in field.instructions:
        models = ("bee", "cat", "ant")
        material = shown(field, instruction, *models)
        worth = [
            utility(
                profile,
                seed,
                KnownCompletion(instruction, model, field.elo[model]),
                own=0,
                place=place,
                shown=3,
                repeat=1,
                chars=len(field.completion(model, instruction)),
            )
            for place, model in enumerate(models)
        ]  # fmt: skip
        order = sorted(range(3), key=lambda place: -worth[place])[: int(best or 3)]
        found, _ = settled("listwise", STEADY, material, key, **options)
        assert isinstance(found.reading, Ballot)
        assert found.reading.places == tuple(order.index(place) + 1 if place in order else 0 for place in range(3))


@pytest.mark.parametrize("profile", ["gpt-4-0613", "vicuna-13b", "gpt-3.5-turbo-1106"])
def test_two_utilities_differ_as_the_formula_of_a_pair_does(profile: str) -> None:
    """Mean and spread of first minus second over many instructions are those of z."""
    judge = load_profiles()[profile]
    from_pairs, from_lists = [], []
    for number in range(3000):
        item = f"i-{number}"
        from_pairs.append(simulate(judge, 1, instruction_id=item, first="ant", second="bee", gap=60.0, chars_first=900,
                                   chars_second=600).z)  # fmt: skip
        one, two = (
            utility(judge, 1, KnownCompletion(item, model, elo), chars=chars, own=0, place=place, shown=2, repeat=1)
            for place, (model, elo, chars) in enumerate((("ant", 1060.0, 900), ("bee", 1000.0, 600)))
        )
        from_lists.append(one - two)
    for power in (1, 2):
        moments = [sum(z**power for z in drawn) / len(drawn) for drawn in (from_pairs, from_lists)]
        spread = (sum(z ** (2 * power) for z in from_pairs) / 3000 - moments[0] ** 2) ** 0.5
        assert moments[0] == pytest.approx(moments[1], abs=5 * spread / 3000**0.5)


def test_the_share_of_unreadable_replies_is_the_profiles_in_every_protocol(field: Any) -> None:
    key = field.key()
    share = parse_model(CARELESS)[0].invalid
    shapes = {"direct": 1, "echo": 1, "listwise": 3, "binary": 2, "criteria": 2, "five-point": 2}
    for protocol, shape in shapes.items():
        models = ("ant", "bee", "cat")[:shape]
        unreadable = repaired = count = 0
        for instruction in field.instructions:
            for repeat in range(1, 6):
                found, replies = settled(protocol, CARELESS, shown(field, instruction, *models), key, repeat)
                count += 1
                unreadable += replies[0].text == UNREADABLE
                repaired += len(replies) == 2 and found.status is Status.OK
        assert unreadable / count == pytest.approx(share, abs=0.06)
        assert 0.25 < repaired / unreadable < 0.75


@pytest.mark.parametrize("protocol", ["criteria", "binary", "five-point", "direct", "direct-reference", "listwise"])
def test_texts_that_are_not_known_are_not_judged(protocol: str, field: Any) -> None:
    count = {"direct": 1, "direct-reference": 1, "listwise": 3}.get(protocol, 2)
    texts = ("Never seen.", "Nor this.", "Nor that.")[:count]
    found, replies = settled(protocol, STEADY, shown(field, "q-0", *"abc"[:count], texts=texts), field.key())
    assert found == Outcome(Status.UNREADABLE)
    assert {reply.text for reply in replies} == {UNREADABLE}


@pytest.mark.parametrize("protocol", ["two-stage", "criteria", "direct", "direct-reference", "listwise"])
def test_an_instruction_of_several_turns_is_known_by_its_turns(protocol: str, prompt: Any) -> None:
    turns = ("Which?", "That.", "Why 1 and not 2?")
    rows = [("i", "\n\n".join(turns), model, f"{model} says so.") for model in ("ant", "bee", "cat")]
    key = AnswerKey(rows, {"ant": 900.0, "bee": 1000.0, "cat": 1100.0})
    count = {"direct": 1, "direct-reference": 1, "listwise": 3}.get(protocol, 2)
    models = ("ant", "bee", "cat")[:count]
    texts = tuple(f"{model} says so." for model in models)
    material = shown(None, "i", *models, turns=turns, texts=texts)
    assert settled(protocol, STEADY, material, key)[0].status is Status.OK


def test_a_contestant_writes_a_text_of_its_own_that_says_that_it_is_simulated(field: Any) -> None:
    key = field.key()
    texts = {}
    for instruction in ("q-0", "q-1"):
        for model in (STEADY, "simulated/gpt-4-0613@2", "simulated/bard@1"):
            for repeat in (1, 2):
                found, (reply,) = settled("generate", model, shown(field, instruction), key, repeat)
                assert isinstance(found.reading, GeneratedText)
                assert found.reading.text == reply.text
                assert reply.text.startswith(f"[Simulated text of {model}.]\n\n")
                assert settled("generate", model, shown(field, instruction), key, repeat)[0] == found
                texts[instruction, model, repeat] = found.reading.text
    assert len({text.partition("\n")[2] for text in texts.values()}) == len(texts)


def test_completions_are_as_long_as_the_profiles_replies(field: Any) -> None:
    tokens = sorted(
        settled("generate", STEADY, shown(field, instruction), field.key())[1][0].tokens
        for instruction in field.instructions
    )
    assert tokens[30] == pytest.approx(141, rel=0.2)
    assert tokens[0] < 110 < 180 < tokens[-1]


def test_a_completion_that_meets_its_limit_is_truncated(field: Any) -> None:
    found, _ = settled("generate", STEADY, shown(field, "q-0"), field.key(), max_tokens="30")
    assert found == Outcome(Status.TRUNCATED)


def test_log_probabilities_come_over_http_in_the_dialects_form(field: Any, talk: Any, make_server: Any) -> None:
    material = shown(field, "q-0", "ant", "cat")
    trial = Trial(bytes(16), bytes(16), "binary", "i", ())
    request = advance(PROTOCOLS["binary"].talk, trial, material, {**OPTIONS, "logprobs": "1"}, ())
    assert isinstance(request, Request)
    z = formula(field, STEADY, "q-0", "ant", "cat").z

    async def script(client: Any) -> None:
        choice = (await client.chat(body(STEADY, request))).json["choices"][0]
        (place,) = choice["logprobs"]["content"]
        told = {one["token"]: one["logprob"] for one in place["top_logprobs"]}
        assert (place["token"], place["logprob"]) == (choice["message"]["content"], told[place["token"]])
        assert told["1"] - told["2"] == pytest.approx(z)
        assert exp(told["1"]) == pytest.approx(0.99 * (1 + tanh(z / 2)) / 2)
        assert sum(map(exp, told.values())) == pytest.approx(1)
        assert told["0"] == pytest.approx(log(0.01))
        one = (await client.chat({**body(STEADY, request), "top_logprobs": 1})).json["choices"][0]
        assert len(one["logprobs"]["content"][0]["top_logprobs"]) == 1
        plain = {name: value for name, value in body(STEADY, request).items() if "logprobs" not in name}
        assert (await client.chat(plain)).json["choices"][0]["logprobs"] is None

    talk(make_server(), script)


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"logprobs": 1}, "logprobs"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format"),
    ],
)
def test_fields_of_a_wrong_form_are_refused_as_providers_do(wrong: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as told:
        read_request(orjson.dumps({"model": STEADY, "messages": [{"role": "user", "content": "x"}], **wrong}))
    assert told.value.param == param


def test_a_judges_question_without_fences_is_not_taken_for_a_contestants(field: Any) -> None:
    text = re.sub(r"<<<[0-9a-f]{16}\n|\n[0-9a-f]{16}>>>", "", field.prompt("ant", "cat").replace("Compare.", ""))
    for question, protocol in (
        ("Compare two answers to the same instruction.", "generate"),
        (text, "generate"),
    ):
        sent = {"model": STEADY, "messages": [{"role": "user", "content": question}]}
        assert recognise(read_request(orjson.dumps(sent))).protocol == protocol
    material = shown(field, "q-0", "ant", "cat")
    request = advance(
        PROTOCOLS["two-stage"].talk, Trial(bytes(16), bytes(16), "two-stage", "i", ()), material, OPTIONS, ()
    )
    assert isinstance(request, Request)
    bare = re.sub(r"<<<[0-9a-f]{16}\n|\n[0-9a-f]{16}>>>", "", request.messages[0]["content"])
    sent = {"model": STEADY, "messages": [{"role": "user", "content": bare}]}
    assert recognise(read_request(orjson.dumps(sent))).protocol == "two-stage"
