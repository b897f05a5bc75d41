"""A small field of contestants, and a client for the simulated provider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest

from venire.arena.keys import fence
from venire.judges.safety.sanitize import enclose
from venire.simulation.answer_key import AnswerKey
from venire.simulation.server import JudgeServer

_TURNS = ("reasons", "Which?", "Unclear.", "One character, please.")
_STAGES = {"reasons": 0, "verdict": 2, "repair": 4}


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> dict[str, Any]:
        return orjson.loads(self.raw)

    @property
    def text(self) -> str:
        return self.json["choices"][0]["message"]["content"]

    @property
    def usage(self) -> dict[str, int]:
        return self.json["usage"]


class Client:
    def __init__(self, session: aiohttp.ClientSession, server: JudgeServer) -> None:
        self.session = session
        self.server = server

    async def get(self, path: str, **headers: str) -> Answered:
        async with self.session.get(self.server.base_url + path, headers=headers) as response:
            return Answered(response.status, response.headers, await response.read())

    async def chat(self, body: dict[str, Any] | bytes, headers: Mapping[str, str] | None = None) -> Answered:
        sent = body if isinstance(body, bytes) else orjson.dumps(body)
        url = self.server.base_url + "/chat/completions"
        async with self.session.post(url, data=sent, headers=headers) as response:
            return Answered(response.status, response.headers, await response.read())


@pytest.fixture(scope="session")
def talk() -> Callable[[JudgeServer, Callable[[Client], Awaitable[None]]], None]:
    """Run a script with a client against a server, on asyncio's own loop."""

    def run(server: JudgeServer, script: Callable[[Client], Awaitable[None]]) -> None:
        async def session() -> None:
            async with server, aiohttp.ClientSession() as opened:
                await script(Client(opened, server))

        asyncio.run(session())

    return run


@pytest.fixture(scope="session")
def prompt() -> Callable[[str, str, str], str]:
    """The first message of a trial, made of an instruction and two completions."""

    def make(*texts: str) -> str:
        return "Compare.\n" + "\n\n".join(enclose(text, fence(text, b"constant")) for text in texts) + "\nGive reasons."

    return make


@pytest.fixture(scope="session")
def ask() -> Callable[..., dict[str, Any]]:
    """A request body for one stage of a trial."""

    def make(model: str, question: str, stage: str = "reasons", **fields: Any) -> dict[str, Any]:
        turns = enumerate(_TURNS[: _STAGES[stage]])
        said = [{"role": ("assistant", "user")[number % 2], "content": turn} for number, turn in turns]
        return {"model": model, "messages": [{"role": "user", "content": question}, *said], **fields}

    return make


@dataclass(frozen=True)
class Field:
    """Contestants `ant`, `bee` and `cat` with their Elo, and their completions of 60 instructions."""

    elo: Mapping[str, float]
    instructions: Mapping[str, str]
    make_prompt: Callable[[str, str, str], str]

    def completion(self, model: str, instruction_id: str) -> str:
        return f"{model} on {instruction_id}: " + "so it is, and so on. " * (len(model + instruction_id) % 7 + 1)

    def prompt(self, first: str, second: str, instruction_id: str = "q-0") -> str:
        shown = (self.completion(model, instruction_id) for model in (first, second))
        return self.make_prompt(self.instructions[instruction_id], *shown)

    def key(self, **options: Any) -> AnswerKey:
        rows = [
            (instruction_id, text, model, self.completion(model, instruction_id))
            for instruction_id, text in self.instructions.items()
            for model in self.elo
        ]
        return AnswerKey(rows, self.elo, **options)


@pytest.fixture(scope="session")
def field(prompt: Callable[[str, str, str], str]) -> Field:
    elo = {"ant": 900.0, "bee": 1000.0, "cat": 1150.0}
    return Field(elo, {f"q-{number}": f"Question number {number}?" for number in range(60)}, prompt)


@pytest.fixture
def make_server(field: Field) -> Callable[..., JudgeServer]:
    """A server of the field that waits for nothing."""

    def make(**options: Any) -> JudgeServer:
        return JudgeServer(field.key(), **{"speed": 0, **options})

    return make
