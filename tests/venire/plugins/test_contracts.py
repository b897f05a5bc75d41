"""Contracts of parts: ours keep them, and whoever does not is told what."""

from __future__ import annotations

import asyncio
import doctest
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from tests.parameters import slow_after
from venire.arena.errors import Fault
from venire.arena.planning import Pick
from venire.arena.records import Ballot, Preference, Reply
from venire.arena.registry import FORMATS, METHODS, POLICIES, PROTOCOLS, PROVIDERS, Registry
from venire.arena.shapes import Shape
from venire.judges.conversation import make_request, read_outcome, user_message
from venire.judges.entry import FOREIGN, ProtocolEntry, ReplyExample
from venire.judges.prompts import choose, show_instruction, show_list, with_options
from venire.judges.providers.batches.base import BatchLimits
from venire.judges.providers.batches.mistral import MistralBatches
from venire.judges.providers.batches.openai import OpenAIBatches
from venire.judges.providers.faults import failure
from venire.judges.providers.openai import OpenAIProvider
from venire.simulation.rehearsal import check_rehearsal, pairwise, ranking
from venire.testing import check_format, check_method, check_policy, check_protocol, check_provider
from venire.testing.batches import check_form

SIGNS = ("1", "-1")
Add = Callable[[Registry[Any], Any], str]


@pytest.fixture
def add() -> Iterator[Add]:
    """Registers a part under a name of its own, until the test has ended."""
    added: list[tuple[Registry[Any], str]] = []

    def register(registry: Registry[Any], part: Any) -> str:
        name = f"tried-{len(added)}"
        registry.register(name, part)
        added.append((registry, name))
        return name

    yield register
    for registry, name in added:
        registry.unregister(name)


def openai_body(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}).encode()


def anthropic_body(text: str) -> bytes:
    usage = {"input_tokens": 9, "output_tokens": 1}
    return json.dumps({"content": [{"type": "text", "text": text}], "usage": usage}).encode()


def gemini_body(text: str) -> bytes:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1}
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()


REPLAYS = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[2] / "judges/providers/batches/vendors").glob("*.json"))
]
BODIES = {"openai": openai_body, "anthropic": anthropic_body, "gemini": gemini_body}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_of_ours_keeps_the_contract(name: str) -> None:
    check_protocol(name)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_of_ours_keeps_the_contract(name: str) -> None:
    check_policy(name)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_ours_keeps_the_contract(name: str) -> None:
    check_method(name)


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "litellm"])
def test_every_provider_of_ours_keeps_the_contract(name: str) -> None:
    check_provider(name, BODIES[name], replays=[one for one in REPLAYS if one["provider"] == name])


@pytest.mark.slow
def test_litellm_keeps_the_contract_in_a_process_of_its_own() -> None:
    """Its import warns of what tests take for errors."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tests.venire.plugins.test_contracts import openai_body; "
        "from venire.testing import check_provider; check_provider('litellm', openai_body, model='openai/judge')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parents[3])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["arena.registry", "judges.entry", "judges.providers.base", "simulation.rehearsal"])
def test_examples_of_entries_are_true(module: str) -> None:
    found = doctest.testmod(import_module(f"venire.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize(
    "check", slow_after(3, check_method, check_policy, check_provider, check_format, check_protocol)
)
def test_examples_of_contracts_are_true(check: Any) -> None:
    runner = doctest.DocTestRunner(verbose=False)
    (example,) = doctest.DocTestFinder().find(check, globs=vars(import_module(check.__module__)))
    assert runner.run(example).attempted > 0
    assert runner.failures == 0


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].read is None and FORMATS[name].write])
def test_formats_that_are_only_written_keep_the_contract(name: str) -> None:
    check_format(name)  # test_formats.py tries those that are read, on files


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"number": 5}, "leave its number out"),
        ({"examples": ()}, "has no example of its replies"),
        ({"examples": (ReplyExample(("A>B",), Preference(-1, 1.0)),)}, "is read as"),
        ({"examples": (ReplyExample(("A>B", "A>B"), Preference(1, 1.0)),)}, "no example has 1 replies"),
        ({"expects": ()}, "expects no reply"),
    ],
)
def test_a_protocol_that_does_not_keep_it_is_told_what(add: Add, changes: dict[str, Any], says: str) -> None:
    name = add(PROTOCOLS, replace(PROTOCOLS["five-point"], **{"number": FOREIGN, **changes}))
    with pytest.raises(AssertionError, match=says):
        check_protocol(name)


def test_a_protocol_without_system_text_in_front_is_told_how(add: Add) -> None:
    from venire.judges.protocols.five_point import five_point

    name = add(PROTOCOLS, replace(PROTOCOLS["five-point"], number=FOREIGN, talk=five_point))
    with pytest.raises(AssertionError, match=r"wrap its conversation in prompts\.with_options"):
        check_protocol(name)


@pytest.mark.parametrize(
    ("choose", "says"),
    [
        (lambda state, phase, number, rng: [], "chooses nothing"),
        (lambda state, phase, number, rng: [Pick("m1", "m0", "i0")], "not in the order of their names"),
        (lambda state, phase, number, rng: [Pick("m0", "m1", "i0")] * 2, "a battle twice"),
        (lambda state, phase, number, rng: [Pick("m0", "m1")], "says crossed=False"),
        (lambda state, phase, number, rng: [Pick("m0", "x", "i0")], "not of the field"),
        (lambda state, phase, number, rng: [Pick("m0", "m1", "i1")], "was asked already"),
        (lambda state, phase, number, rng: [Pick("m0", "m1", "i3")], "is barred"),
        (
            lambda state, phase, number, rng: [Pick("m0", "m1", f"i{np.random.default_rng().integers(4, 12)}")],
            "different picks",
        ),
    ],
)
def test_a_policy_that_does_not_keep_it_is_told_what(add: Add, choose: Any, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_policy(add(POLICIES, replace(POLICIES["balanced"], choose=choose)))


def test_a_method_that_does_not_keep_it_is_told_what(add: Add) -> None:
    sound = METHODS["bradley-terry"]

    def upside_down(battles: Any, judgments: Any, options: Any) -> Any:
        found = sound.run(battles, judgments, options)
        return replace(found, ratings=replace(found.ratings, logits=-found.ratings.logits))

    def by_first_row(battles: Any, judgments: Any, options: Any) -> Any:
        found = sound.run(battles, judgments, options)
        return replace(found, ratings=replace(found.ratings, logits=found.ratings.logits + 0.1 * battles.label[0]))

    for run, says in ((upside_down, "and should be"), (by_first_row, "changes a value")):
        with pytest.raises(AssertionError, match=says):
            check_method(add(METHODS, replace(sound, run=run)))


class Talkative(OpenAIProvider):
    """Breaks one promise at a time."""

    broken = ""

    def encode(self, model: str, request: Any) -> bytes:
        body = super().encode(model, request)
        return body if self.broken != "body" else orjson.dumps({**orjson.loads(body), "key": self._secrets[0]})

    async def send(self, body: bytes, idempotency_key: str) -> Reply:
        if self.broken == "twice":
            await super().send(body, idempotency_key)
        reply = await super().send(body, idempotency_key)
        return reply._replace(text="1") if self.broken == "text" else reply

    async def post(self, url: str, body: bytes, idempotency_key: str) -> Any:
        answer = await super().post(url, body, idempotency_key)
        if self.broken == "faults" and answer.status != 200:
            raise failure(f"refused {self._secrets[0]}", Fault.BAD_REQUEST, status=answer.status)
        return answer


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("body", "the key is in the body"),
        ("twice", "one call is 2 requests"),
        ("text", "the text of the answer is '1'"),
        ("faults", "status 429 is BAD_REQUEST, not RATE_LIMITED"),
    ],
)
def test_a_provider_that_does_not_keep_it_is_told_what(add: Add, broken: str, says: str) -> None:
    def open_it(endpoint: Any) -> Any:
        made = Talkative(endpoint)
        made.broken = broken
        return made

    with pytest.raises(AssertionError, match=says):
        check_provider(add(PROVIDERS, replace(PROVIDERS["openai"], open=open_it)), openai_body)


@pytest.fixture
def own_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes the question of a protocol of another package, and gives its folder."""

    def write(text: str) -> str:
        folder = tmp_path / "own_prompts" / "texts"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").touch()
        (folder / "question.txt").write_text(f"a header\n---\n{text}", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "own_prompts", raising=False)
        return "own_prompts:texts"

    return write


async def nothing_listed(batches: Any, since: Any) -> list[Any]:
    return []


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({}, None),
        ({"batches": OpenAIBatches.batches}, "list: .* 404"),
        ({"batches": nothing_listed}, "a list with a batch 'wave-1' is read as"),
        ({"_files": lambda batches, shown: []}, "its answers are read as"),
        ({"cancel": OpenAIBatches.cancel}, "cancel: .* 404"),
        ({"line": OpenAIBatches.line}, "its line is"),
        ({"limits": BatchLimits(10, 10)}, "its limits are"),
        ({"submit": OpenAIBatches.submit}, "submitted: .*POST /v1/batches in place of POST /v1/batch/jobs"),
        ({"_status": OpenAIBatches._status}, "a batch that is running is read with lines 0, not 4"),
    ],
)
def test_a_further_form_of_batches_that_is_half_written_is_told_what(
    add: Add, written: dict[str, Any], says: str | None
) -> None:
    sixth = type("SixthBatches", (MistralBatches,), written)
    name = add(PROVIDERS, replace(PROVIDERS["openai"], batches={**PROVIDERS["openai"].batches, "half-written": sixth}))
    replays = [one for one in REPLAYS if one["provider"] == "openai"]
    with pytest.raises(AssertionError, match="no replay shows what the vendor of its batch interface 'half-written'"):
        check_provider(name, openai_body, replays=replays)
    (mistral,) = (one for one in replays if one["form"] == "mistral")
    with pytest.raises(AssertionError, match=says) if says else nullcontext():
        asyncio.run(check_form(name, "half-written", mistral))


@pytest.mark.parametrize("key", ["list", "files", "answers", "cancel", "limits"])
def test_a_replay_that_leaves_something_out_is_told_what(key: str) -> None:
    replay = {name: value for name, value in REPLAYS[0].items() if name != key}
    with pytest.raises(AssertionError, match=f"its replay has no '{key}'"):
        asyncio.run(check_form(replay["provider"], replay["form"], replay))


def asks(folder: str, read: Callable[[Reply], Any]) -> Any:
    """A conversation of one question that shows each completion in its fence."""

    def talk(trial: Any, material: Any, options: Any) -> Any:
        question = choose(folder, "question", options).substitute(
            instruction=show_instruction(material), answers=show_list(material)
        )
        return read_outcome((yield make_request(trial, options, (user_message(question),))), read)

    return with_options(talk)


@pytest.mark.parametrize(("sign", "says"), [(1, None), (-1, "much better models win .* with A shown first")])
def test_a_protocol_registered_after_others_is_rehearsed_and_its_scale_must_not_be_reversed(
    add: Add, own_prompt: Callable[[str], str], sign: int, says: str | None
) -> None:
    PROTOCOLS["five-point"].check({})
    check_rehearsal("five-point", "simulated/gpt-4-0613@1", {"max_tokens": "9"})
    folder = own_prompt("1 or -1? $instruction $answers")
    entry = ProtocolEntry(
        shape=Shape(2, Preference),
        talk=asks(folder, lambda said: (Preference(int(said.text)), "sign", True) if said.text in SIGNS else None),
        prompts=("question",),
        folder=folder,
        expects=(1,),
        examples=(ReplyExample(("1",), Preference(1)),),
        rehearse=pairwise(lambda verdict: "1" if sign * verdict.z > 0 else "-1"),
    )
    with pytest.raises(AssertionError, match=says) if says else nullcontext():
        check_protocol(add(PROTOCOLS, entry))


@pytest.mark.parametrize(
    ("letters", "shape", "says"),
    slow_after(
        3,
        (" ".join, Shape(3, Ballot), None),
        (lambda best_first: " ".join(reversed(best_first)), Shape(3, Ballot), "much better models win"),
        (lambda best_first: "Well.", Shape(3, Ballot), " 0 of .* simulated replies are read"),
        (" ".join, Shape(4, Ballot), "simulated replies are read"),
        (" ".join, Shape(None, Ballot), "simulated replies are read"),
    ),
)
def test_a_protocol_of_three_answers_is_planned_run_and_rated_or_told_what(
    add: Add, own_prompt: Callable[[str], str], letters: Any, shape: Shape, says: str | None
) -> None:
    folder = own_prompt("Order the letters of these answers: $instruction $answers")

    def read(said: Reply) -> Any:
        named = said.text.split()[-3:]
        places = tuple(named.index(label) + 1 for label in "ABC" if label in named)
        return (Ballot(places), "letters", True) if len(places) == 3 else None

    entry = ProtocolEntry(
        shape=shape,
        talk=asks(folder, read),
        prompts=("question",),
        folder=folder,
        expects=(60,),
        examples=(ReplyExample(("It is clear. B C A",), Ballot((3, 1, 2))),),
        rehearse=ranking(letters, reasons=True),
    )
    with pytest.raises(AssertionError, match=says) if says else nullcontext():
        check_protocol(add(PROTOCOLS, entry))
